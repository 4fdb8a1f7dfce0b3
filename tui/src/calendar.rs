//! Dates, in UTC.

/// A second of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utc {
    year: u64,
    month: u64,
    day: u64,
    of_day: u64,
}

impl Utc {
    /// So many seconds after 1970 began: counted in years that begin in March, in spans of
    /// 400 (Hinnant, "chrono-compatible low-level date algorithms").
    #[must_use]
    pub const fn of(unix_seconds: u64) -> Self {
        let days = unix_seconds / 86_400 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year + (month <= 2) as u64;
        Self { year, month, day, of_day: unix_seconds % 86_400 }
    }

    /// The same by nanoseconds.
    #[must_use]
    pub const fn of_ns(unix_ns: u64) -> Self {
        Self::of(unix_ns / 1_000_000_000)
    }

    /// `20261130-014500`, for names of files.
    #[must_use]
    pub fn stamp(self) -> String {
        let (Self { year, month, day, .. }, (h, m, s)) = (self, self.time());
        format!("{year:04}{month:02}{day:02}-{h:02}{m:02}{s:02}")
    }

    /// `2026-11-30 01:45 UTC`.
    #[must_use]
    pub fn to_the_minute(self) -> String {
        let (Self { year, month, day, .. }, (h, m, _)) = (self, self.time());
        format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02} UTC")
    }

    const fn time(self) -> (u64, u64, u64) {
        (self.of_day / 3600, self.of_day / 60 % 60, self.of_day % 60)
    }
}

/// `2026-11-30 01:45:00 UTC`.
impl std::fmt::Display for Utc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self { year, month, day, .. }, (h, m, s)) = (self, self.time());
        write!(f, "{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(Utc::of(seconds).to_string(), date);
        }
        let utc = Utc::of_ns(1_709_251_199_999_999_999);
        assert_eq!(utc.to_the_minute(), "2024-02-29 23:59 UTC");
        assert_eq!(utc.stamp(), "20240229-235959");
    }
}

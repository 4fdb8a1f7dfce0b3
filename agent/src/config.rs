//! Configuration: in the program by [`Builder`], from outside by the
//! environment, which wins. The table stands in the crate's documentation.
//!
//! All this is read inside the first allocation of the process: no allocation,
//! no formatting here.

use crate::engine::nursery::Nursery;
use crate::engine::{sys, unwind};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::message::Track;
use std::ffi::CStr;

/// Settings made in the program's source; the environment wins over them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Builder {
    /// `None`: the governor moves R.
    pub(crate) interval_bytes: Option<u64>,
    pub(crate) nursery_bytes: u64,
    pub(crate) max_young_bytes: u64,
    pub(crate) phase_bytes: Option<u64>,
    pub(crate) depth: usize,
    pub(crate) memory_bytes: usize,
    pub(crate) seed: Option<u64>,
    pub(crate) name: &'static str,
    pub(crate) frame_pointers: bool,
    pub(crate) track: Track,
}

impl Builder {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        interval_bytes: None,
        nursery_bytes: Nursery::DEFAULT_BYTES,
        max_young_bytes: Nursery::DEFAULT_MAX_YOUNG_BYTES,
        phase_bytes: None,
        depth: unwind::MAX_DEPTH,
        memory_bytes: 64 << 20,
        seed: None,
        name: "",
        frame_pointers: false,
        track: Track::All,
    };
}

/// The environment variables, in the order of [`Notices`]' bits.
const VARIABLES: [&CStr; 12] = [
    c"HEAPTOP",
    c"HEAPTOP_INTERVAL",
    c"HEAPTOP_NURSERY",
    c"HEAPTOP_MAX_YOUNG",
    c"HEAPTOP_PHASE",
    c"HEAPTOP_DEPTH",
    c"HEAPTOP_MEMORY",
    c"HEAPTOP_SEED",
    c"HEAPTOP_NAME",
    c"HEAPTOP_FOLLOW",
    c"HEAPTOP_UNWIND",
    c"HEAPTOP_TRACK",
];

const WANTED: [&str; 12] = [
    "on, off or dormant",
    "auto, or a size of at least 1 byte and less than 4 GiB, such as 512K",
    "a size of at least 1 byte and less than 2^64, such as 2M",
    "a size of less than 2^64 bytes, such as 2K",
    "a size of less than 2^64 bytes, such as 0",
    "a number from 0 to 128",
    "a size from 1M to 64G, such as 64M",
    "a number from 0 to 2^64 - 1",
    "text in UTF-8",
    "1 or 0",
    "tables or frame-pointers",
    "all, promoted or allocations",
];

/// As much of an unusable value is quoted.
const VALUE_CHARS: usize = 60;

/// Which variables were unusable: bit i is that of `VARIABLES[i]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Notices(u16);

impl Notices {
    /// A sentence each. Allocates: for the agent's own thread.
    pub fn sentences(self) -> Vec<String> {
        let unusable = |i: &usize| self.0 & (1 << i) != 0;
        (0..VARIABLES.len())
            .filter(unusable)
            .map(|i| {
                let name = VARIABLES[i].to_string_lossy();
                let value = std::env::var_os(&*name).unwrap_or_default();
                let shown: String = value.to_string_lossy().chars().take(VALUE_CHARS).collect();
                let wanted = WANTED[i];
                format!(
                    "heaptop: {name}={shown} is ignored, as if it were not set: it must be {wanted}."
                )
            })
            .collect()
    }
}

/// Settings in force.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
pub(crate) struct Settings {
    /// Do nothing at all.
    pub off: bool,
    /// Start without sampling.
    pub dormant: bool,
    /// R, to begin with where it is governed.
    pub interval: Interval,
    /// Whether the governor moves it.
    pub governed: bool,
    /// N in bytes.
    pub nursery_bytes: u64,
    /// Largest young block in bytes.
    pub max_young_bytes: u64,
    /// φ in bytes; `None`: random.
    pub phase_bytes: Option<u64>,
    /// Most frames of a callstack.
    pub depth: usize,
    /// Bound of the agent's memory in bytes.
    pub memory_bytes: usize,
    /// Seed; `None`: random.
    pub seed: Option<u64>,
    /// Name; empty: the executable's.
    pub name: &'static str,
    /// Forked children get an agent of their own.
    pub follow: bool,
    /// Callstacks by frame pointers.
    pub frame_pointers: bool,
    /// Which blocks the books are of.
    pub track: Track,
    /// What was unusable.
    pub notices: Notices,
}

const MEMORY_BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 30;

impl Settings {
    /// The builder's settings.
    pub fn from_builder(b: &Builder) -> Self {
        let fixed = b.interval_bytes.and_then(Interval::new);
        let memory = (b.memory_bytes as u64).clamp(*MEMORY_BYTES.start(), *MEMORY_BYTES.end());
        Self {
            off: false,
            dormant: false,
            interval: fixed.unwrap_or(Interval::DEFAULT),
            governed: fixed.is_none(),
            nursery_bytes: b.nursery_bytes.max(1),
            max_young_bytes: b.max_young_bytes,
            phase_bytes: b.phase_bytes,
            depth: b.depth.min(unwind::MAX_DEPTH),
            memory_bytes: memory as usize,
            seed: b.seed,
            name: b.name,
            follow: false,
            frame_pointers: b.frame_pointers,
            track: b.track,
            notices: Notices::default(),
        }
    }

    /// The builder's settings under the environment's.
    pub fn from_environment(builder: &Builder) -> Self {
        // SAFETY: this runs once, at the first stop of the process or in the
        // constructor. `name`, the only value that is kept, is a string of the
        // initial environment, which glibc does not free on setenv.
        Self::read(builder, |name| unsafe { sys::environment(name) })
    }

    pub(crate) fn read(builder: &Builder, variable: impl Fn(&CStr) -> &'static [u8]) -> Self {
        let mut s = Self::from_builder(builder);
        let mut bad = 0;
        for (i, name) in VARIABLES.into_iter().enumerate() {
            let value = variable(name);
            if !value.is_empty() && s.set(i, value).is_none() {
                bad |= 1 << i;
            }
        }
        s.notices = Notices(bad);
        s
    }

    fn set(&mut self, variable: usize, value: &'static [u8]) -> Option<()> {
        match variable {
            0 => match value {
                b"on" | b"1" => {}
                b"off" | b"0" => self.off = true,
                b"dormant" => self.dormant = true,
                _ => return None,
            },
            1 if value == b"auto" => {
                (self.interval, self.governed) = (Interval::DEFAULT, true);
            }
            1 => (self.interval, self.governed) = (Interval::new(size(value)?)?, false),
            2 => self.nursery_bytes = size(value).filter(|&n| n > 0)?,
            3 => self.max_young_bytes = size(value)?,
            4 => self.phase_bytes = Some(size(value)?),
            5 => {
                let depth = number(value).filter(|&d| d <= unwind::MAX_DEPTH as u64)?;
                self.depth = depth as usize;
            }
            6 => {
                let bytes = size(value).filter(|b| MEMORY_BYTES.contains(b))?;
                self.memory_bytes = bytes as usize;
            }
            7 => self.seed = Some(number(value)?),
            8 => self.name = std::str::from_utf8(value).ok()?,
            9 => match value {
                b"1" => self.follow = true,
                b"0" => self.follow = false,
                _ => return None,
            },
            10 => match value {
                b"frame-pointers" => self.frame_pointers = true,
                b"tables" => self.frame_pointers = false,
                _ => return None,
            },
            _ => match value {
                b"all" => self.track = Track::All,
                b"promoted" => self.track = Track::Promoted,
                b"allocations" => self.track = Track::Allocations,
                _ => return None,
            },
        }
        Some(())
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |n, d| {
        let d = d.checked_sub(b'0').filter(|d| *d < 10)?;
        n.checked_mul(10)?.checked_add(u64::from(d))
    })
}

/// A size in bytes, with or without a binary suffix.
pub(crate) fn size(text: &[u8]) -> Option<u64> {
    let end = text.iter().position(|c| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, suffix) = text.split_at_checked(end)?;
    let unit = match suffix {
        b"" | b"B" => 1,
        b"K" | b"k" | b"KB" | b"KiB" => 1 << 10,
        b"M" | b"MB" | b"MiB" => 1 << 20,
        b"G" | b"GB" | b"GiB" => 1 << 30,
        _ => return None,
    };
    number(digits)?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &'static [(&'static CStr, &'static str)]) -> Settings {
        Settings::read(&Builder::DEFAULT, |name| {
            set.iter().find(|(n, _)| *n == name).map_or(&[], |(_, v)| v.as_bytes())
        })
    }

    #[test]
    fn nothing_set_is_the_default() {
        let s = read(&[]);
        assert_eq!(
            (s.interval.bytes(), s.nursery_bytes, s.max_young_bytes),
            (524_288, 2 << 20, 2048)
        );
        assert_eq!((s.depth, s.memory_bytes, s.off, s.dormant), (128, 64 << 20, false, false));
        assert!(s.governed);
        assert_eq!(s.notices, Notices::default());
    }

    #[test]
    fn every_variable_is_taken() {
        let s = read(&[
            (c"HEAPTOP", "dormant"),
            (c"HEAPTOP_INTERVAL", "16KiB"),
            (c"HEAPTOP_NURSERY", "1M"),
            (c"HEAPTOP_MAX_YOUNG", "512"),
            (c"HEAPTOP_PHASE", "0"),
            (c"HEAPTOP_DEPTH", "10"),
            (c"HEAPTOP_MEMORY", "1G"),
            (c"HEAPTOP_SEED", "7"),
            (c"HEAPTOP_NAME", "orders"),
            (c"HEAPTOP_FOLLOW", "1"),
            (c"HEAPTOP_UNWIND", "frame-pointers"),
            (c"HEAPTOP_TRACK", "promoted"),
        ]);
        assert!(s.dormant && !s.off);
        assert_eq!((s.interval.bytes(), s.nursery_bytes, s.max_young_bytes), (16384, 1 << 20, 512));
        assert_eq!((s.phase_bytes, s.depth, s.memory_bytes), (Some(0), 10, 1 << 30));
        assert_eq!((s.seed, s.name, s.notices), (Some(7), "orders", Notices(0)));
        assert!(s.follow && !read(&[]).follow);
        assert!(s.frame_pointers && !read(&[]).frame_pointers);
        let births = read(&[(c"HEAPTOP_TRACK", "allocations")]);
        let tracks = [s.track, births.track, read(&[(c"HEAPTOP_TRACK", "all")]).track];
        assert_eq!(tracks, [Track::Promoted, Track::Allocations, Track::All]);
        assert!(!s.governed, "a set interval is a fixed one");
        assert!(read(&[(c"HEAPTOP", "off")]).off);
        let fixed = Builder { interval_bytes: Some(1), ..Builder::DEFAULT };
        assert!(!Settings::from_builder(&fixed).governed);
        let auto = Settings::read(&fixed, |n| if n == c"HEAPTOP_INTERVAL" { b"auto" } else { b"" });
        assert_eq!((auto.interval, auto.governed), (Interval::DEFAULT, true));
    }

    #[test]
    fn nonsense_is_named_and_the_default_holds() {
        let s = read(&[
            (c"HEAPTOP", "maybe"),
            (c"HEAPTOP_INTERVAL", "0"),
            (c"HEAPTOP_NURSERY", "2 M"),
            (c"HEAPTOP_DEPTH", "129"),
            (c"HEAPTOP_MEMORY", "1K"),
            (c"HEAPTOP_SEED", "99999999999999999999"),
            (c"HEAPTOP_UNWIND", "dwarf"),
            (c"HEAPTOP_TRACK", "some"),
        ]);
        assert_eq!(s.notices, Notices(0b1100_1110_0111));
        assert_eq!((s.interval, s.depth, s.seed), (Interval::DEFAULT, 128, None));
        assert!(s.governed);
        let said = s.notices.sentences();
        assert_eq!(said.len(), 8);
        assert!(said[1].contains("HEAPTOP_INTERVAL") && said[1].contains("512K"), "{said:?}");
        assert!(said[1].contains("less than 4 GiB"), "4 GiB itself is refused: {said:?}");
    }

    #[test]
    fn sizes_have_binary_suffixes() {
        assert_eq!(size(b"3G"), Some(3 << 30));
        for bad in ["", "K", "1.5M", "-1", "99999999999G", "1T", "1KK"] {
            assert_eq!(size(bad.as_bytes()), None, "{bad}");
        }
    }
}

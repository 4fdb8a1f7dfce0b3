//! Sizes as they are written, on the command line and in filters.

use heaptop_protocol::estimate::Interval;

/// Reads a sampling interval: bytes, or a number with K, M or G, with or without
/// `iB` or `B` behind it.
pub(crate) fn interval(text: &str) -> Result<Interval, String> {
    let sentence = || {
        "it must be a size of at least 1 byte and less than 4 GiB, such as 64K, 512KiB or 1M"
            .to_owned()
    };
    number(text).and_then(Interval::new).ok_or_else(sentence)
}

/// Reads a size above 0, written like an interval.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let sentence = || "it must be a size above 0, such as 64M, 512KiB or 1G".to_owned();
    number(text).filter(|&bytes| bytes > 0).ok_or_else(sentence)
}

pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start().to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_binary_and_nonsense_is_a_sentence() {
        let bytes = |text| interval(text).map(Interval::bytes);
        for (text, size) in [("1", 1), ("64K", 64 << 10), ("512 KiB", 512 << 10), ("1m", 1 << 20)] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for text in ["", "K", "0", "4G", "1.5M", "-1", "64Q", "99999999999G", "é"] {
            let said = bytes(text).unwrap_err();
            assert!(said.contains("less than 4 GiB, such as 64K"), "{text}: {said}");
        }
    }
}

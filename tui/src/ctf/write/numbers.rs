//! The numbers and texts of a trace, as they are written.

/// Appends a number of variable length, in the shortest form that every reader takes
/// for what it is: 32 bits are read as signed.
pub(super) fn count(out: &mut Vec<u8>, n: u64) {
    if n <= 252 {
        out.push(n as u8);
    } else if let Ok(n) = u16::try_from(n) {
        out.push(253);
        out.extend(n.to_le_bytes());
    } else if let Ok(n) = i32::try_from(n) {
        out.push(254);
        out.extend(n.to_le_bytes());
    } else {
        out.push(255);
        out.extend(n.to_le_bytes());
    }
}

/// The part of a text that can be written: up to a NUL.
pub(super) fn up_to_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or(text)
}

/// Appends a text and its NUL.
pub(super) fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(up_to_nul(text));
    out.push(0);
}

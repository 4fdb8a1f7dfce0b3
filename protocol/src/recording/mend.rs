//! One bit that has turned over is found by the checksum that it breaks, and set right.
//!
//! CRC-32 is linear: what a bit changes in the checksum depends on how far it stands from the
//! end, and on nothing else. Up to 2³² bits, far more than a chunk may have, no two places
//! change it alike, so the difference between the checksum that is stored and the one that is
//! found names the place, if it was one bit. Disks, memories and networks turn over single
//! bits before anything else.
//!
//! Other damage makes any difference, and is taken for one bit by chance in n of 2³² cases,
//! n being the chunk's bits: 1 in 2,000 for a quarter of a MiB. What is then in it must still
//! unpack. Whoever reads tells that a bit was set right.

/// What eight zero bits make of a checksum whose low byte is this: CRC-32, reflected.
const STEPS: [u32; 256] = steps();
/// The low byte from which a step came, by the high byte that it has led to.
const CAME: [u8; 256] = came();

const fn steps() -> [u32; 256] {
    let mut steps = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        steps[byte] = sum;
        byte += 1;
    }
    steps
}

const fn came() -> [u8; 256] {
    let mut came = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        came[(STEPS[byte] >> 24) as usize] = byte as u8;
        byte += 1;
    }
    came
}

/// Sets the one bit of `bytes` right whose checksum is to be `expected`; in which byte it
/// was, or `None`, and nothing is changed, where it was not one bit.
pub(super) fn mend_stored(bytes: &mut [u8], expected: u32) -> Option<usize> {
    let mut differs = crc32fast::hash(bytes) ^ expected;
    for (at, byte) in bytes.iter_mut().enumerate().rev() {
        // What the checksums differed by before this byte; of the byte itself, in its bits.
        let came = CAME[(differs >> 24) as usize];
        differs = ((differs ^ STEPS[usize::from(came)]) << 8) | u32::from(came);
        if differs < 256 && differs.is_power_of_two() {
            *byte ^= differs as u8;
            return Some(at);
        }
    }
    None
}

/// The same for a header, whose checksum of the first `covered` bytes stands behind them and
/// may be what is wrong; `is_sound` says when it is right.
pub(super) fn mend_header<const N: usize>(
    header: &mut [u8; N],
    covered: usize,
    is_sound: impl Fn(&[u8; N]) -> bool,
) -> Option<usize> {
    for bit in 0..(covered + 4) * 8 {
        let mut copy = *header;
        copy[bit / 8] ^= 1 << (bit % 8);
        if is_sound(&copy) {
            *header = copy;
            return Some(bit / 8);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_is_found_and_two_are_not_taken_for_one() {
        let sound: Vec<u8> = (0..200u8).map(|i| i.wrapping_mul(37)).collect();
        let expected = crc32fast::hash(&sound);
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(mend_stored(&mut bytes, expected), Some(bit / 8), "bit {bit}");
            assert_eq!(bytes, sound, "bit {bit}");
            // Another one as well.
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes[(bit / 8 + 71) % 200] ^= 1;
            let damaged = bytes.clone();
            assert_eq!(mend_stored(&mut bytes, expected), None, "bit {bit}");
            assert_eq!(bytes, damaged, "bit {bit}");
        }
    }

    #[test]
    fn nothing_has_no_bits() {
        assert_eq!(mend_stored(&mut [], 7), None);
    }
}

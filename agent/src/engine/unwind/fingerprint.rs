//! Fingerprints of callstacks: 64 bits, made from the root inward, so that stacks with
//! a common root have a common part of the way.

use super::End;

/// The fingerprint of no frames.
pub const SEED: u64 = 0x243F_6A88_85A3_08D3;

/// One frame further in.
#[inline(always)]
pub fn step(print: u64, frame: u64) -> u64 {
    // A 128-bit product folded: each input bit reaches all output bits.
    let wide = u128::from(print ^ frame) * 0x9E37_79B9_7F4A_7C15_u128;
    (wide as u64) ^ ((wide >> 64) as u64) ^ frame.rotate_left(23)
}

/// That of the whole stack; never 0.
#[inline(always)]
pub const fn finish(print: u64, len: usize, end: End) -> u64 {
    let mut h = print ^ (len as u64) << 8 ^ end as u64;
    h = (h ^ (h >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    h ^= h >> 32;
    if h == 0 { 1 } else { h }
}

/// That of a stack of `len` frames, root first.
pub fn of(frames: impl Iterator<Item = u64>, len: usize, end: End) -> u64 {
    finish(frames.fold(SEED, step), len, end)
}

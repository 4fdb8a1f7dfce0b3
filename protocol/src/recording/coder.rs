//! An adaptive binary coder: yes-or-no decisions at a cost of −log₂ of how probable they
//! were by what came before.
//!
//! The interval `low ..= high` of 32 bits is divided at each decision in proportion to the
//! probabilities, and the part that was decided on is kept; bytes that both ends have in
//! common are written. At the end one more byte tells a number in the interval, behind
//! which zeros are understood. (Carry-less arithmetic coding, as in Mahoney's lpaq.)
//!
//! Encoder and decoder are one trait, [`Coder`], so that what is modelled is written once and
//! cannot differ between the two. A decoder of garbage decides something, always, and
//! stops nowhere: bounds are up to the caller.

/// The probability of a 1, learnt from what was decided with it: fast at first, slower
/// with every decision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bit {
    one: u16,
    seen: u16,
}

impl Bit {
    pub(super) const NEW: Self = Self { one: 1 << 15, seen: 0 };
    /// From here on it learns no slower.
    const LIMIT: u16 = 40;

    fn learn(&mut self, bit: bool) {
        let target = if bit { 65_535 } else { 0 };
        let (one, step) = (i32::from(self.one), i32::from(self.seen) + 2);
        // Never quite sure: a surprise must have a cost that can be paid.
        self.one = (one + (target - one) / step).clamp(32, 65_503) as u16;
        self.seen = (self.seen + 1).min(Self::LIMIT);
    }
}

/// Decides, or hears what was decided.
pub(super) trait Coder {
    /// One decision. An encoder takes `bit` and gives it back; a decoder gives what was
    /// taken.
    fn bit(&mut self, bit: bool, model: &mut Bit) -> bool;

    /// The lowest `bits` of `value`, highest first, each of them as likely as not.
    fn raw(&mut self, value: u64, bits: u32) -> u64 {
        let mut got = 0;
        for i in (0..bits).rev() {
            let mut even = Bit::NEW;
            got = got << 1 | u64::from(self.bit(value >> i & 1 == 1, &mut even));
        }
        got
    }

    /// The lowest `bits` of `value`, each modelled by those above it; `models` are 2^bits.
    fn tree(&mut self, value: u64, bits: u32, models: &mut [Bit]) -> u64 {
        let mut at = 1;
        for i in (0..bits).rev() {
            let bit = self.bit(value >> i & 1 == 1, &mut models[at]);
            at = at << 1 | usize::from(bit);
        }
        at as u64 - (1 << bits)
    }

    /// Any number: how many digits it has, the first of them, and the rest as they are.
    fn number(&mut self, value: u64, model: &mut Number) -> u64 {
        let digits = self.tree(u64::from(64 - value.leading_zeros()), 7, &mut model.digits);
        // A decoder of garbage may hear of more.
        let digits = (digits as u32).min(64);
        let Some(rest) = digits.checked_sub(1) else { return 0 };
        let modelled = rest.min(FIRST);
        let first = value >> (rest - modelled) & ((1 << modelled) - 1);
        let first = self.tree(first, modelled, &mut model.first[digits as usize]);
        let rest_bits = rest - modelled;
        let low = self.raw(value, rest_bits);
        1 << rest | first << rest_bits | low
    }

    /// Any signed number, the small ones first.
    fn signed(&mut self, value: i64, model: &mut Number) -> i64 {
        let folded = ((value << 1) ^ (value >> 63)).cast_unsigned();
        let got = self.number(folded, model);
        (got >> 1).cast_signed() ^ -(got & 1).cast_signed()
    }
}

/// Digits behind the leading one that are modelled.
const FIRST: u32 = 4;

/// How likely numbers are.
#[derive(Debug, Clone)]
pub(super) struct Number {
    digits: [Bit; 128],
    first: [[Bit; 1 << FIRST]; 65],
}

impl Number {
    pub(super) const NEW: Self =
        Self { digits: [Bit::NEW; 128], first: [[Bit::NEW; 1 << FIRST]; 65] };
}

/// `low ≤ high`, and their first bytes differ between two decisions.
#[derive(Debug, Clone, Copy)]
struct Range {
    low: u32,
    high: u32,
}

impl Range {
    const ALL: Self = Self { low: 0, high: u32::MAX };

    /// The last number of a 1's part: below `high`, so that either part has one.
    fn middle(self, one: u16) -> u32 {
        let width = u64::from(self.high - self.low);
        self.low + ((width * u64::from(one)) >> 16) as u32
    }

    fn keep(&mut self, bit: bool, middle: u32) {
        if bit { self.high = middle } else { self.low = middle + 1 }
    }

    fn is_settled(self) -> bool {
        (self.low ^ self.high) >> 24 == 0
    }

    fn shift(&mut self) {
        self.low <<= 8;
        self.high = self.high << 8 | 0xff;
    }
}

/// Writes decisions.
#[derive(Debug)]
pub(super) struct Encoder {
    range: Range,
    out: Vec<u8>,
}

impl Encoder {
    pub(super) const fn new() -> Self {
        Self { range: Range::ALL, out: Vec::new() }
    }

    /// All of it.
    pub(super) fn finish(mut self) -> Vec<u8> {
        // The first bytes differ: this one with zeros behind it lies between.
        self.out.push((self.range.low >> 24) as u8 + 1);
        self.out
    }
}

impl Coder for Encoder {
    fn bit(&mut self, bit: bool, model: &mut Bit) -> bool {
        let middle = self.range.middle(model.one);
        self.range.keep(bit, middle);
        model.learn(bit);
        while self.range.is_settled() {
            self.out.push((self.range.high >> 24) as u8);
            self.range.shift();
        }
        bit
    }
}

/// Reads them.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    range: Range,
    at: u32,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { range: Range::ALL, at: 0, rest: bytes };
        for _ in 0..4 {
            decoder.shift();
        }
        decoder
    }

    fn shift(&mut self) {
        let byte = self.rest.split_off_first().copied().unwrap_or(0);
        self.at = self.at << 8 | u32::from(byte);
    }
}

impl Coder for Decoder<'_> {
    fn bit(&mut self, _: bool, model: &mut Bit) -> bool {
        let middle = self.range.middle(model.one);
        let bit = self.at <= middle;
        self.range.keep(bit, middle);
        model.learn(bit);
        while self.range.is_settled() {
            self.range.shift();
            self.shift();
        }
        bit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decisions_come_back(bits in proptest::collection::vec(any::<bool>(), 0..600)) {
            let mut encoder = Encoder::new();
            let mut models = [Bit::NEW; 3];
            for (i, &bit) in bits.iter().enumerate() {
                encoder.bit(bit, &mut models[i % 3]);
            }
            let bytes = encoder.finish();
            let (mut decoder, mut models) = (Decoder::new(&bytes), [Bit::NEW; 3]);
            for (i, &bit) in bits.iter().enumerate() {
                prop_assert_eq!(decoder.bit(false, &mut models[i % 3]), bit);
            }
        }

        #[test]
        fn numbers_come_back(
            numbers in proptest::collection::vec((any::<u64>(), 0u32..64, any::<i64>()), 0..60),
        ) {
            let mut encoder = Encoder::new();
            let mut model = Number::NEW;
            for &(n, shift, signed) in &numbers {
                encoder.number(n >> shift, &mut model);
                encoder.signed(signed >> shift, &mut model);
            }
            let bytes = encoder.finish();
            let (mut decoder, mut model) = (Decoder::new(&bytes), Number::NEW);
            for &(n, shift, signed) in &numbers {
                prop_assert_eq!(decoder.number(0, &mut model), n >> shift);
                prop_assert_eq!(decoder.signed(0, &mut model), signed >> shift);
            }
        }

        #[test]
        fn garbage_decides_something(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let (mut decoder, mut model) = (Decoder::new(&bytes), Number::NEW);
            for _ in 0..200 {
                decoder.number(0, &mut model);
                decoder.signed(0, &mut model);
            }
        }
    }

    #[test]
    fn what_was_to_be_expected_costs_little() {
        let mut encoder = Encoder::new();
        let mut model = Bit::NEW;
        for i in 0..100_000 {
            encoder.bit(i % 1000 == 0, &mut model);
        }
        let bytes = encoder.finish().len();
        assert!(bytes < 400, "{bytes} bytes for a hundred surprises");
    }
}

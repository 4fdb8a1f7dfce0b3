//! Kinds of memory outside the heap.
//!
//! A kind is an address without code, which stands innermost in a block's callstack, and
//! which the agent's thread turns into a module of the kind's name. Names are written
//! once, by who takes a place with a compare-and-swap, and then read by anybody.

use std::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{AcqRel, Acquire},
};

/// Kinds that are told apart.
const MOST: usize = 64;
/// The longest name, in bytes.
const NAME_BYTES: usize = 60;
/// The first of the addresses that stand for kinds: no code of a program's lies there.
const FIRST: u64 = 0xfff0_0000_0000_0000;
/// The first of the addresses of blocks outside the heap: no memory of a program's lies
/// there.
pub const ADDRESSES: usize = 1 << 62;

/// The next of them.
pub static NEXT: AtomicU64 = AtomicU64::new(0);
static NAMES: [AtomicPtr<String>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];

/// The number of a kind; that of `other` where there are too many.
pub fn number(kind: &str) -> usize {
    let clean = |c: char| if c == '/' || c == ']' || c.is_control() { '_' } else { c };
    // Compared first, so that nothing is allocated for one that is known.
    let is = |name: &str| {
        let mut cut = kind.chars().map(clean);
        name.chars().all(|c| cut.next() == Some(c))
            && (cut.next().is_none() || name.len() >= NAME_BYTES)
    };
    let mut made: Option<Box<String>> = None;
    for (number, place) in NAMES.iter().enumerate().skip(1) {
        loop {
            // SAFETY: null, or a box that is never given back.
            match unsafe { place.load(Acquire).as_ref() } {
                Some(name) if is(name) => return number,
                Some(_) => break,
                None => {}
            }
            let name = made.take().unwrap_or_else(|| {
                let mut name = String::new();
                for c in kind.chars().map(clean) {
                    if name.len() + c.len_utf8() > NAME_BYTES && name.len() >= NAME_BYTES - 3 {
                        break;
                    }
                    name.push(c);
                }
                Box::new(name)
            });
            let name = Box::into_raw(name);
            if place.compare_exchange(std::ptr::null_mut(), name, AcqRel, Acquire).is_ok() {
                return number;
            }
            // SAFETY: the box was made above, and nobody else knows it.
            made = Some(unsafe { Box::from_raw(name) });
        }
    }
    0
}

/// The address that stands for a kind.
pub const fn address(number: usize) -> u64 {
    FIRST + number as u64
}

/// The kind that an address stands for.
pub fn name(address: u64) -> Option<&'static str> {
    let number = usize::try_from(address.checked_sub(FIRST)?).ok().filter(|n| *n < MOST)?;
    // SAFETY: null, or a box that is never given back.
    let name = unsafe { NAMES.get(number)?.load(Acquire).as_ref() };
    Some(name.map_or("other", |name| name.as_str()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_their_names() {
        let gpu = number("gpu");
        assert_eq!((number("gpu"), name(address(gpu))), (gpu, Some("gpu")));
        let odd = number("a/b]\n");
        assert_eq!(name(address(odd)), Some("a_b__"));
        assert_eq!(number("a/b]\n"), odd);
        let long = "x".repeat(100);
        assert_eq!(number(&long), number(&long));
        for i in 0..MOST {
            number(&format!("kind {i}"));
        }
        assert_eq!((number("one too many"), name(address(0))), (0, Some("other")));
        assert_eq!(name(0x1000), None);
    }
}

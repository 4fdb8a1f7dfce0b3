//! Cut at 500 places and with one bit turned in 500 copies: what is sound is told, and a
//! sentence says the rest. Never more than twice the memory that the sound trace takes.

use crate::counting::peak_of;
use crate::session::heard;
use crate::{dumped, sample};
use heaptop::ctf::{Reader, convert, tell};
use heaptop::session::Connection;
use std::io::Cursor;

/// Copies of each: 500 in all.
const SAMPLES: [(&str, u64); 3] =
    [("garbage-413-1e4", 200), ("ext-530head-1e3", 200), ("multidomain-530-begin", 100)];

/// Opens it as `heaptop open` would, with all that a session keeps: events told, and the
/// last sentence.
fn open(bytes: &[u8]) -> (usize, String) {
    let teller = match tell(Cursor::new(bytes.to_vec()), bytes.len() as u64) {
        Ok(teller) => teller,
        Err(error) => return (0, error.to_string()),
    };
    let session = heard(teller);
    let Connection::Ended(how) = session.connection() else { panic!("it has no end") };
    (session.live_block_count(), how.clone())
}

fn sound_or_a_sentence(name: &str, bytes: &[u8], most_bytes: usize) {
    let mut last = String::new();
    let peak = peak_of(|| last = open(bytes).1);
    assert!(!last.is_empty() && !last.contains('\n'), "{name}: {last:?}");
    assert!(peak <= most_bytes, "{name}: {peak} bytes, and at most {most_bytes}: {last}");
}

/// splitmix64: the same each time.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn cut_anywhere() {
    for (name, copies) in SAMPLES {
        let bytes = sample(&format!("{name}.ctf"));
        let sound = peak_of(|| drop(open(&bytes)));
        let whole = dumped(&bytes).0;
        for n in 0..copies {
            let at = (bytes.len() as u64 * n / copies) as usize;
            let cut = &bytes[..at];
            sound_or_a_sentence(name, cut, 2 * sound);
            let (text, _) = dumped(cut);
            assert!(whole.starts_with(&text), "{name}, cut at {at}: another text");
        }
    }
}

#[test]
fn one_bit_turned() {
    let mut state = 20_261_130;
    for (name, copies) in SAMPLES {
        let bytes = sample(&format!("{name}.ctf"));
        let sound = peak_of(|| drop(open(&bytes)));
        for _ in 0..copies {
            let bit = random(&mut state) % (bytes.len() as u64 * 8);
            let mut turned = bytes.clone();
            turned[bit as usize / 8] ^= 1 << (bit % 8);
            sound_or_a_sentence(&format!("{name}, bit {bit}"), &turned, 2 * sound);
            if let Ok(mut reader) = Reader::new(&turned[..]) {
                let mut out = Vec::new();
                convert(&mut reader, &mut out).unwrap();
                assert_eq!(dumped(&out).1, None, "{name}, bit {bit}: what was written is damaged");
            }
        }
    }
}

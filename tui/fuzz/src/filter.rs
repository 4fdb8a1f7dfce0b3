//! Filters as anybody may type them, or give them on the command line: understood, or wrong
//! at a character that is there.

#![no_main]

#[path = "../../../protocol/fuzz/src/seeds.rs"]
mod seeds;

use heaptop::query::filter::{Selection, check, parse, with_thread, without_thread};
use heaptop::session::Session;
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: seeds::write(|| {
        [
            "fill_cache !via:main file:cache.rs",
            "\"a b\" re:^(x|y)+$ hide:grow",
            "thread:\"w \\\"1\\\"\" phase:load cause:realloc",
            "size>4K size<=1MiB age>1m30s lifetime<1ms",
            "born:-10s..12:34:56 died:mark:x..end promoted:yes",
        ]
        .iter()
        .map(|text| text.as_bytes().to_vec())
        .collect()
    }),
    |data: &[u8]| {
        let text = String::from_utf8_lossy(data);
        if let Err(wrong) = parse(&text) {
            assert!(wrong.at <= text.chars().count(), "{wrong:?} of {text:?}");
            assert!(!wrong.says.is_empty());
        } else {
            // A thread put in is the one that is taken out, where there is none yet.
            let (rest, _) = without_thread(&text);
            if without_thread(&rest).1.is_none() {
                assert_eq!(without_thread(&with_thread(&rest, "a\"\\ b")).1.as_deref(), Some("a\"\\ b"));
            }
        }
        let session = Session::new();
        let _ = check(&session, &text);
        let _ = Selection::of(&session, &text);
    }
);

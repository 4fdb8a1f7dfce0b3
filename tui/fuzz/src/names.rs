//! Names from the target's files: mangled or not, of any length and character. What
//! comes of them is short and obeyed by no terminal, and cuts fit where they must.

#![no_main]

#[path = "../../../protocol/fuzz/src/seeds.rs"]
mod seeds;

use heaptop::session::sane::is_hostile;
use heaptop::symbols::fuzzing;
use heaptop::view::text;
use libfuzzer_sys::fuzz_target;

/// Longer than any name that is shown: the viewer's own bound, and the mark of a cut.
const LONGEST: usize = 2048 + 3;

fuzz_target!(
    init: seeds::write(|| {
        [
            "main",
            "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
            "_ZN5alloc3vec16Vec$LT$T$C$A$GT$4push17h0123456789abcdefE",
            "_RNvC6_123foo3bar",
            "_RNvMs_NtCs1234_7mycrate3fooNtB4_3Bar3baz",
            "_RINvNtC3std3mem8align_ofjE",
            "_ZN5space3fooEibc",
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "_ZZN3foo3barEvENKUlvE_clEv",
            "_ZGVZ3foovE1x",
            "__ZN5space3fooEv",
            "7f00 10 LazyCompile:~f a.js:1\n7f08 10 other\n0x1 ff x",
            "<a::b::Type<fn() -> u8> as c::Trait<[T; 3]>>::new::{{closure}}",
            "src/名前/cache.rs:88",
            "a\u{202e}b\u{1b}[31mc\u{200b}e\u{301}",
        ]
        .iter()
        .map(|name| [&[12], name.as_bytes()].concat())
        .collect()
    }),
    |data: &[u8]| {
        let Some((&columns, name)) = data.split_first() else { return };
        let columns = columns.into();
        let name = String::from_utf8_lossy(name);
        let shown = fuzzing::demangle(&name);
        assert!(shown.len() <= 3 * LONGEST, "{} bytes", shown.len());
        assert!(!shown.contains(char::is_control));
        for name in [&*name, &shown] {
            let clean = text::clean(name);
            assert!(!clean.contains(is_hostile));
            for cut in [
                text::keep_start(&clean, columns),
                text::keep_end(&clean, columns),
                text::keep_name(&clean, columns),
                text::keep_path(&clean, columns),
            ] {
                assert!(text::width(&cut) <= columns, "{cut:?} in {columns}");
            }
        }
        for name in fuzzing::perf_map(&name) {
            assert!(!name.contains(char::is_control));
        }
    }
);

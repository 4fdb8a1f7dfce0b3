//! What the format can say and no sample does.

use crate::craft::{Craft, Packet, START, hit, miss};
use crate::{converted, decoder, lines};
use heaptop::ctf::{Birth, Info, Source, Writer, is_ctf};

/// The innermost frames' names of a line.
fn frames(line: &str) -> &str {
    line.split_once(": ").map_or("", |(_, frames)| frames)
}

#[test]
fn four_bytes_tell_a_trace() {
    assert!(is_ctf(&Craft::new(1).bytes[..4]));
    assert!(!is_ctf(b"heaptop\0") && !is_ctf(b"") && !is_ctf(&[0xC1, 0x1F, 0xFC]));
}

/// Events of one microsecond after another, over the turn of the low bits of time.
#[test]
fn every_version_tells_a_life() {
    for version in 1..=3 {
        let mut craft = Craft::new(version);
        let mut p = Packet::at(START, 0).define(START, 5).define_as(START, 6, &[]);
        p = p.birth(START + 5, 3, 0, 0, &[miss(9, 5), miss(10, 6)].concat());
        p = p.promote(START + 15, 0).birth(START + 20, 900, 1, 2, &[]).collect(START + 30, 1);
        p = p.birth(START + 40, 7, 2, 1, &hit(10, 0));
        craft.put(&p);
        let domain = if version == 3 { " dom=0" } else { "" };
        let (lines, sentence) = lines(&craft.bytes);
        assert_eq!(
            lines,
            [
                format!("0000000005 0000000000 alloc 1 len=3{domain}    0: F5@m5.ml:7:1-9 $6"),
                "0000000015 0000000000 promote".into(),
                format!(
                    "0000000020 0000000001 alloc_major 1 len=900{domain}    2: F5@m5.ml:7:1-9 $6"
                ),
                "0000000030 0000000000 collect".into(),
                format!("0000000040 0000000002 alloc_ext 1 len=7{domain}    1: F5@m5.ml:7:1-9 $6"),
            ]
        );
        assert_eq!(sentence, None);
        let decoded = decoder::decode(&converted(&craft.bytes)).unwrap();
        assert_eq!((decoded.births.len(), decoded.ends.len()), (3, 2));
        assert_eq!((decoded.rate, decoded.word_size), (0.1, 64));
        assert_eq!(decoded.parameters, "s=32768");
    }
}

/// Inlined functions: several places of one code, the outermost first.
#[test]
fn a_code_can_be_several_places() {
    let mut craft = Craft::new(2);
    let places = [(31, 31, "a.ml", "A.f"), (0, 31, "", "A.g"), (31, 31, "b.ml", "B.h")];
    let p = Packet::at(START, 0).define_as(START, 5, &places).birth(START, 1, 0, 0, &miss(1, 5));
    craft.put(&p);
    let expected = "A.f@a.ml:7:1-9 A.g@a.ml:7:1-9 B.h@b.ml:7:1-9";
    assert_eq!(frames(&lines(&craft.bytes).0[0]), expected);
    assert_eq!(frames(&lines(&converted(&craft.bytes)).0[0]), expected);
}

/// Tables of 31 names, the last used first, of each file a table of functions.
#[test]
fn names_move_to_the_front() {
    let mut craft = Craft::new(2);
    let mut p = Packet::at(START, 0);
    for code in 0..32 {
        p = p.define(START, 100 + code);
    }
    // m100.ml has fallen off; of the others m131.ml is the first, m101.ml the last.
    p = p.define_as(START, 1, &[(30, 0, "", "")]).define_as(START, 2, &[(1, 31, "", "G")]);
    p = p.define_as(START, 3, &[(0, 1, "", "")]);
    let codes = [miss(1, 1), miss(2, 2), miss(3, 3)].concat();
    craft.put(&p.birth(START, 1, 0, 0, &codes));
    let expected = "F101@m101.ml:7:1-9 G@m131.ml:7:1-9 F131@m131.ml:7:1-9";
    assert_eq!(lines(&craft.bytes).1, None);
    assert_eq!(frames(&lines(&craft.bytes).0[0]), expected);
}

/// A writer of version 1 goes on with the functions of the file that falls off.
#[test]
fn the_first_version_used_tables_again() {
    let mut craft = Craft::new(1);
    let mut p = Packet::at(START, 0);
    for code in 0..31 {
        p = p.define(START, 100 + code);
    }
    p = p.define_as(START, 1, &[(31, 0, "new.ml", "")]);
    craft.put(&p.birth(START, 1, 0, 0, &miss(1, 1)));
    assert_eq!(frames(&lines(&craft.bytes).0[0]), "F100@new.ml:7:1-9");
}

/// A callstack that had been cut: the next one shares more with it than is there.
#[test]
fn a_cut_callstack_stands_for_those_that_share_more() {
    let mut craft = Craft::new(2);
    let mut p = Packet::at(START, 0);
    for code in 1..=4 {
        p = p.define(START, code);
    }
    p = p.birth(START, 1, 0, 0, &[miss(1, 1), miss(2, 2)].concat());
    p = p.birth(START, 2, 0, 3, &miss(3, 3)).birth(START, 3, 0, 1, &hit(3, 0));
    // The codes were followed: 2 comes after 1, and 3 after the beginning.
    craft.put(&p.birth(START, 4, 0, 0, &hit(1, 1)));
    let (lines, sentence) = lines(&craft.bytes);
    let place = |code: u32| format!("F{code}@m{code}.ml:7:1-9");
    assert_eq!(frames(&lines[1]), frames(&lines[0]));
    assert!(lines[1].contains(" 3: "), "{}", lines[1]);
    assert_eq!(frames(&lines[2]), format!("{} {}", place(1), place(3)));
    assert_eq!(frames(&lines[3]), format!("{} {}", place(1), place(2)));
    assert_eq!(sentence, None);
    assert_eq!(lines, crate::lines(&converted(&craft.bytes)).0);
}

/// Runs of predicted codes: none, one, and many, along a circle.
#[test]
fn codes_that_follow_each_other_are_predicted() {
    let mut craft = Craft::new(2);
    let mut p = Packet::at(START, 0).define(START, 1).define(START, 2);
    let circle = [miss(1, 1), miss(2, 2), hit(1, 255), hit(1, 4)].concat();
    p = p.birth(START, 1, 0, 0, &circle).birth(START, 1, 0, 0, &hit(1, 1));
    craft.put(&p);
    let (lines, sentence) = lines(&craft.bytes);
    assert_eq!(sentence, None);
    let depth = |line: &str| frames(line).split(' ').count();
    assert_eq!((depth(&lines[0]), depth(&lines[1])), (2 + 256 + 5, 2));
    let alternate = frames(&lines[0]).split(' ').step_by(2).all(|f| f.starts_with("F1@"));
    assert!(alternate, "{}", lines[0]);
    assert_eq!(lines, crate::lines(&converted(&craft.bytes)).0);
}

/// Domains have tables, callstacks and clocks of their own; a death may be told by
/// another domain than the birth, with the number of an object yet to come.
#[test]
fn domains_interleave() {
    let mut craft = Craft::new(3);
    let p = Packet::at(START + 50, 10_000).of(1).define(START + 50, 1);
    craft.put(&p.birth(START + 50, 1, 0, 0, &miss(1, 1)));
    let p = Packet::at(START + 20, 0).of(2).define(START + 20, 2);
    craft.put(&p.birth(START + 20, 2, 0, 0, &miss(1, 2)));
    craft.put(&Packet::at(START + 60, 1).of(2).promote(START + 60, -10_000));
    craft.put(&Packet::at(START + 70, 1).of(2).collect(START + 70, -10_000));
    craft.put(&Packet::at(START + 80, 10_001).of(1).collect(START + 80, 10_000));
    let (told, sentence) = lines(&craft.bytes);
    assert_eq!(sentence, None);
    assert_eq!(told[2], "0000000060 0000010000 promote");
    assert_eq!(told[4], "0000000080 0000000000 collect");
    // Merged: by time, numbered so.
    let (merged, _) = lines(&converted(&craft.bytes));
    let births = [
        "0000000020 0000000000 alloc 1 len=2    0: F2@m2.ml:7:1-9",
        "0000000050 0000000001 alloc 1 len=1    0: F1@m1.ml:7:1-9",
    ];
    assert_eq!(merged[..2], births);
    assert_eq!(
        merged[2..],
        [
            "0000000060 0000000001 promote",
            "0000000070 0000000001 collect",
            "0000000080 0000000000 collect"
        ]
    );
    decoder::decode(&converted(&craft.bytes)).unwrap();
}

/// Domains come and go: tables of those long silent are given to others.
#[test]
fn there_may_be_any_number_of_domains() {
    let mut craft = Craft::new(3);
    for domain in 0..1000 {
        let id = i64::from(domain);
        let p = Packet::at(START + id, id).of(domain).define(START + id, 1);
        craft.put(&p.birth(START + id, 1, 0, 0, &miss(1, 1)));
    }
    let peak = crate::counting::peak_of(|| {
        let (lines, sentence) = lines(&craft.bytes);
        assert_eq!((lines.len(), sentence), (1000, None));
    });
    assert!(peak < 64 << 20, "{peak} bytes");
    // One that was given up comes back, as itself, and as another of its number.
    let p = Packet::at(START + 1000, 1000).birth(START + 1000, 1, 0, 1, &[]);
    let as_itself = Packet { check: (1, 0, 1), ..p.clone() };
    let mut other = Craft { bytes: craft.bytes.clone(), ..craft };
    let sentence = lines(&craft.put(&as_itself).bytes).1.unwrap();
    assert!(sentence.contains("speaks again after 256 others"), "{sentence}");
    let again = Packet::at(START + 1001, 1001).birth(START + 1001, 1, 0, 1, &[]);
    let first = Packet::at(START + 1000, 1000).birth(START + 1000, 1, 0, 0, &miss(1, 1));
    other.put(&first).put(&Packet { check: (1, 0, 1), ..again });
    assert_eq!(lines(&other.bytes).1, None);
}

/// Packets of a fork that wrote into the same file.
#[test]
fn packets_of_another_process_are_left_out() {
    let mut craft = Craft::new(2);
    let p = Packet::at(START, 0).define(START, 1).birth(START, 1, 0, 0, &miss(1, 1));
    craft.put(&Packet { pid: 7, ..p.clone() }).put(&p);
    assert_eq!(lines(&craft.bytes).0.len(), 1);
    assert_eq!(lines(&craft.bytes).1, None);
}

/// What a writer is given that goes beyond the format's fields and order.
#[test]
fn a_writer_keeps_to_what_every_reader_takes() {
    let info = Info {
        start_us: START,
        sample_rate: 1e-3,
        word_size: 64,
        executable: b"cut\0here".to_vec(),
        host: Vec::new(),
        parameters: Vec::new(),
        pid: 5,
        context: b"context".to_vec(),
        version: 3,
    };
    let mut writer = Writer::new(Vec::new(), &info).unwrap();
    let long: Vec<u8> = vec![b'x'; 5000];
    let place = |line: u32, function: &[u8]| heaptop::ctf::Location {
        file: b"f\0g"[..].into(),
        function: function.into(),
        line,
        start: 1 << 9,
        end: 1 << 11,
    };
    let places = [vec![place(1 << 21, b"F")], vec![place(1, &long)], vec![place(1, b"F"); 300]];
    let lengths = [0, 16, 17, 252, 253, 65_535, 65_536, (1 << 31) - 1, 1 << 31, 1 << 40];
    for (n, &length) in (0i64..).zip(&lengths) {
        let time_us = START + 31_000_000 * n;
        let stack = [n as u64 % 3, 2];
        let birth = Birth {
            time_us,
            length,
            n_samples: 1,
            source: Source::Minor,
            common: None,
            stack: &stack,
        };
        let id = writer.alloc(&birth, |code| &places[code as usize]).unwrap();
        assert_eq!(id, n);
        // Late by an hour: it happens when the one before did.
        writer.promote(time_us - 3_600_000_000, id).unwrap();
    }
    writer.promote(0, 99).unwrap();
    let decoded = decoder::decode(&writer.finish().unwrap()).unwrap();
    assert_eq!(decoded.births.iter().map(|b| b.length).collect::<Vec<_>>(), lengths);
    assert!(decoded.packets > 10 && decoded.checks >= 8, "{}", decoded.packets);
    assert_eq!(decoded.ends.len(), lengths.len());
    assert_eq!((&*decoded.executable, &*decoded.context), ("cut", "context"));
    let text = String::from_utf8(decoded.text).unwrap();
    assert!(text.contains(" F@f:1048575:255-1023"), "{text}");
    assert!(text.contains(" ??@<unknown>:1:1-1"), "{text}");
}

/// Definitions that fill packets of their own, and events that fill theirs; more codes
/// than there are buckets, and those again that were used first.
#[test]
fn packets_are_whole_and_bounded() {
    let mut craft = Craft::new(2);
    for n in 0..2000i64 {
        let mut p = Packet::at(START + n, n);
        let mut codes = Vec::new();
        for code in (n as u64 * 10..n as u64 * 10 + 10).map(|code| code % 17_000) {
            p = p.define(START + n, code);
            codes.extend(miss((code % 16_384) as u16, code));
        }
        craft.put(&p.birth(START + n, 5, 0, 0, &codes));
    }
    let decoded = decoder::decode(&converted(&craft.bytes)).unwrap();
    assert_eq!(decoded.births.len(), 2000);
    assert_eq!(decoded.text, crate::dumped(&craft.bytes).0);
}

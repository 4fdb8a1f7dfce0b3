//! What can be wrong with a trace: what is sound before it is told, and a sentence.

use crate::craft::{Craft, Packet, START, hit, miss, word};
use crate::lines;

/// Two births in a packet, which all damaged traces begin with.
fn sound() -> Craft {
    let mut craft = Craft::new(2);
    let p = Packet::at(START, 0).define(START, 1).birth(START + 1, 1, 0, 0, &miss(9, 1));
    craft.put(&p.birth(START + 2, 1, 0, 1, &[]));
    craft
}

fn next() -> Packet {
    Packet::at(START + 10, 2).birth(START + 10, 1, 0, 1, &[])
}

/// The two sound births are told, so many more with them, and then `sentence`, which
/// names the byte.
fn ends_with(bytes: &[u8], more: usize, sentence: &str) {
    let (lines, said) = lines(bytes);
    let said = said.unwrap_or_else(|| panic!("no sentence: {sentence}"));
    assert_eq!(lines.len(), 2 + more, "{said}");
    assert!(said.contains(sentence) && said.starts_with("at byte "), "{said}");
}

#[test]
fn a_packet_that_does_not_go_on() {
    let broken = |p: Packet, more: usize, sentence: &str| {
        ends_with(&sound().put(&p).bytes, more, sentence);
    };
    let ids = (3, 4);
    broken(Packet { ids, ..next() }, 0, "object 3 follows where 2 should");
    let ids = (2, 4);
    broken(Packet { ids, ..next() }, 1, "a packet has 1 births and says 2");
    let ids = (2, 1);
    broken(Packet { ids, ..next() }, 0, "object numbers are impossible");
    let times = (START, START + 10);
    broken(Packet { times, ..next() }, 0, "time goes back by 2 µs");
    let times = (START + 10, START + 9);
    broken(Packet { times, ..next() }, 0, "ends before it begins");
    let times = (START + 10, START + 10);
    let p = next().birth(START + 11, 1, 0, 1, &[]);
    broken(Packet { times, ..p }, 1, "outside its packet's time");
    let p = next().birth(START + 12, 1, 0, 1, &[]).birth(START + 11, 1, 0, 1, &[]);
    broken(p, 2, "time goes back by 1 µs");
    broken(Packet { check: (9, 0, 2), ..next() }, 0, "table of callstacks is not the writer's");
    broken(Packet { check: (9, 1, 1), ..next() }, 0, "table of callstacks is not the writer's");
    broken(Packet { check: (20_000, 0, 0), ..next() }, 0, "table of callstacks");
}

#[test]
fn what_is_checked_and_right_goes_on() {
    let mut craft = sound();
    craft.put(&Packet { check: (9, 0, 1), ..next() });
    assert_eq!(lines(&craft.bytes).1, None);
}

#[test]
fn an_event_that_is_none() {
    let broken = |p: Packet, sentence: &str| ends_with(&sound().put(&p).bytes, 1, sentence);
    let with = |body: &[u8]| {
        let mut p = next();
        p.body.extend(body);
        p
    };
    let kind = |n: u32| with(&word(n, START + 10));
    broken(kind(5), "unknown kind 5");
    broken(kind(100), "unknown kind 100");
    broken(kind(117), "unknown kind 117");
    broken(kind(0), "another trace begins");
    broken(with(&[1, 2]), "goes beyond its packet");
    broken(next().birth(START + 10, 1, 3, 1, &[]), "unknown source 3");
    broken(next().birth(START + 10, -1, 0, 1, &[]), "a number is negative");
    broken(next().promote(START + 10, -1), "of an object that cannot be");
    broken(next().collect(START + 10, 3), "of an object that cannot be");
    broken(next().collect(START + 10, i64::MIN), "of an object that cannot be");
    broken(next().define_as(START + 10, 2, &[(1, 0, "", "")]), "names what was never defined");
    broken(next().define_as(START + 10, 2, &[(0, 1, "", "")]), "names what was never defined");
    broken(next().define_as(START + 10, 1, &[]), "defined anew and otherwise");
    let mut cut = next().birth(START + 10, 1, 0, 1, &hit(9, 7));
    cut.body.pop();
    broken(cut, "goes beyond its packet");
}

#[test]
fn definitions_may_come_again() {
    let mut craft = sound();
    craft.put(&next().define_as(START + 10, 1, &[(0, 0, "", "")]));
    assert_eq!(lines(&craft.bytes).1, None);
}

#[test]
fn what_is_no_packet() {
    let with = |more: &[u8]| [&sound().bytes, more].concat();
    ends_with(&with(&[0xC1, 0x1F]), 0, "ends inside a packet's header");
    ends_with(&with(&[7; 100]), 0, "there should be a packet and is none");
    let mut craft = sound();
    let whole = craft.bytes.len();
    craft.put(&next());
    ends_with(&craft.bytes[..whole + 40], 0, "ends inside a packet's header");
    ends_with(&craft.bytes[..whole + 70], 0, "ends inside a packet of");
    let broken = |at: usize, value: &[u8], sentence: &str| {
        let mut bytes = craft.bytes.clone();
        bytes[whole + at..whole + at + value.len()].copy_from_slice(value);
        ends_with(&bytes, 0, sentence);
    };
    broken(4, &65u32.to_le_bytes(), "a packet says that it is 65 bits long");
    broken(4, &(8 * 40_000u32).to_le_bytes(), "320000 bits long");
    broken(4, &0x8000_0000_u32.to_le_bytes(), "bits long");
    broken(28, &4u16.to_le_bytes(), "version 4, and 1 to 3 are known");
    broken(28, &3u16.to_le_bytes(), "version 3 follows those of version 2");
}

#[test]
fn what_does_not_begin_as_a_trace() {
    let said = |bytes: &[u8]| {
        let (lines, sentence) = lines(bytes);
        assert!(lines.is_empty());
        sentence.unwrap()
    };
    assert!(said(b"").starts_with("it is empty"));
    assert!(said(b"heaptop").starts_with("it is no memtrace trace"));
    assert!(said(&[0; 100]).starts_with("it is no memtrace trace"));
    assert!(said(&sound().bytes[..20]).contains("ends inside a packet's header"));
    let with = |at: usize, value: &[u8]| {
        let mut bytes = Craft::new(2).bytes;
        bytes[at..at + value.len()].copy_from_slice(value);
        said(&bytes)
    };
    assert!(with(66, &word(1, START)).contains("does not say what program"));
    for rate in [0.0, -1.0, 1.5, f64::NAN] {
        assert!(with(70, &f64::to_le_bytes(rate)).contains("the sampling rate is"), "{rate}");
    }
    assert!(with(78, &[16]).contains("words have 16 bits"));
    // A text without its end.
    assert!(with(79, &[b'x'; 35]).contains("beyond its packet"));
}

/// 85 frames can be asked for with a byte.
#[test]
fn no_callstack_is_deeper_than_memory() {
    let mut craft = sound();
    let codes: Vec<u8> = (0..10_000).flat_map(|_| hit(9, 255)).collect();
    for id in 2..12 {
        craft.put(&Packet::at(START + 10, id).birth(START + 10, 1, 0, i64::from(id > 2), &codes));
    }
    let peak = crate::counting::peak_of(|| {
        let mut reader = heaptop::ctf::Reader::new(&craft.bytes[..]).unwrap();
        let error = loop {
            match reader.next_event() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("2,560,000 frames are too many"),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("deeper than any"), "{error}");
    });
    assert!(peak < 40 << 20, "{peak} bytes");
}

/// The same by many domains, none of which goes too far.
#[test]
fn nor_are_the_callstacks_of_all_domains_together() {
    let mut craft = Craft::new(3);
    let codes: Vec<u8> = (0..4000).flat_map(|_| hit(9, 255)).collect();
    for domain in 0..200 {
        let id = i64::from(domain);
        let p = Packet::at(START + 10, id).of(domain);
        craft.put(&p.birth(START + 10, 1, 0, 0, &codes));
    }
    let peak = crate::counting::peak_of(|| {
        let mut reader = heaptop::ctf::Reader::new(&craft.bytes[..]).unwrap();
        let error = loop {
            match reader.next_event() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("200 times a million frames are too many"),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("deeper than any"), "{error}");
    });
    assert!(peak < 64 << 20, "{peak} bytes");
}

//! What a session hears of a trace.

use crate::craft::{Craft, Packet, START, miss};
use crate::{converted, decoder, sample};
use heaptop::ctf::tell;
use heaptop::query::{self, Question, When};
use heaptop::session::figures::{Followed, Ratio};
use heaptop::session::{Connection, Session};
use heaptop::source::tell::{Progress, Tell};
use heaptop::source::{SourceEvent, State};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::Event;
use heaptop_protocol::message::{AgentKind, FromAgent, HistoryPoint, Peak};
use heaptop_protocol::totals::Totals;
use std::collections::{HashMap, HashSet};
use std::io::Cursor;

/// All that a trace tells, held to the order that is promised.
pub fn told(bytes: &[u8]) -> Vec<SourceEvent> {
    let mut teller = tell(Cursor::new(bytes.to_vec()), bytes.len() as u64).unwrap();
    let mut told: Vec<SourceEvent> = Vec::new();
    let mut progress = Progress { read: 0, of: bytes.len() as u64 };
    while let Some(event) = teller.next() {
        let now = teller.progress();
        assert!(now.of == progress.of && now.read >= progress.read);
        progress = now;
        told.push(event);
    }
    assert!(teller.next().is_none() && progress.read <= progress.of);
    assert!(matches!(told[0], SourceEvent::Message(FromAgent::Hello(_))));
    let is_end = |event: &SourceEvent| matches!(event, SourceEvent::Connection(State::Ended(_)));
    assert_eq!(told.iter().position(is_end), Some(told.len() - 1));
    let (mut stacks, mut threads, mut blocks) = (HashSet::new(), HashSet::new(), HashSet::new());
    let (mut time_ns, mut clock) = (0, 0);
    for event in &told {
        match event {
            SourceEvent::Message(FromAgent::Stack(stack)) => assert!(stacks.insert(stack.id)),
            SourceEvent::Message(FromAgent::Thread(thread)) => assert!(threads.insert(thread.id)),
            SourceEvent::Message(FromAgent::Totals(update)) => {
                assert!(update.stacks.iter().all(|s| stacks.contains(&s.stack)));
            }
            SourceEvent::Message(FromAgent::Events(batch)) => {
                for event in batch.iter() {
                    assert!(event.at().time_ns >= time_ns && event.at().clock >= clock);
                    (time_ns, clock) = (event.at().time_ns, event.at().clock);
                    match event {
                        Event::Alloc(e) => {
                            assert!(stacks.contains(&e.stack) && threads.contains(&e.thread));
                            assert!(blocks.insert(e.id()));
                        }
                        Event::Promote(e) => assert!(blocks.contains(&e.id)),
                        Event::Dealloc(e) => assert!(blocks.remove(&e.id)),
                    }
                }
            }
            _ => {}
        }
    }
    told
}

/// The session that heard it.
pub fn heard(told: impl IntoIterator<Item = SourceEvent>) -> Session {
    let mut session = Session::new();
    for event in told {
        session.apply(event.into());
    }
    session
}

/// Totals by what the second decoder says, and the highest moment.
fn truth(bytes: &[u8]) -> (Totals, f64) {
    let decoded = decoder::decode(&converted(bytes)).unwrap();
    let r = Interval::new((8.0 / decoded.rate).round() as u64).unwrap();
    let weight = |b: &decoder::Birth| r.weight((b.length + u64::from(b.source != 2)) * 8);
    let mut totals = Totals::default();
    let mut order: Vec<(u64, usize, usize)> = Vec::new();
    for (n, birth) in decoded.births.iter().enumerate() {
        order.push((birth.time, 0, n));
    }
    for (n, (time, ..)) in decoded.ends.iter().enumerate() {
        order.push((*time, 1, n));
    }
    order.sort_unstable();
    let mut young: HashMap<u64, bool> = HashMap::new();
    let mut peak = 0.0f64;
    for (_, end, n) in order {
        if end == 0 {
            let w = weight(&decoded.births[n]);
            totals.allocated.add(&w);
            totals.in_use.add(&w);
            young.insert(n as u64, decoded.births[n].source == 0);
            peak = peak.max(totals.in_use.bytes.sum);
            continue;
        }
        let (_, id, promoted) = decoded.ends[n];
        let w = weight(&decoded.births[id as usize]);
        if young[&id] {
            totals.minor.add(&w);
        }
        if promoted {
            totals.promoted.add(&w);
            young.insert(id, false);
        } else {
            totals.in_use.sub(&w);
        }
    }
    (totals, peak)
}

fn near(a: f64, b: f64, off: f64) -> bool {
    (a - b).abs() <= off * b.abs().max(1.0)
}

#[test]
fn totals_are_what_the_trace_says() {
    for name in ["garbage-413-1e4", "ext-530head-1e3", "deep-413-1e3", "multidomain-530-begin"] {
        let bytes = sample(&format!("{name}.ctf"));
        let (truth, peak_bytes) = truth(&bytes);
        let told = told(&bytes);
        let last_peak = |event: &SourceEvent| match event {
            SourceEvent::Message(FromAgent::Peak(peak)) => Some(peak.clone()),
            _ => None,
        };
        let peaks: Vec<Peak> = told.iter().filter_map(last_peak).collect();
        let mut by_stack = HashMap::new();
        for event in &told {
            if let SourceEvent::Message(FromAgent::Totals(update)) = event {
                by_stack.extend(update.stacks.iter().map(|s| (s.stack, s.totals)));
            }
        }
        let mut sum = Totals::default();
        for totals in by_stack.values() {
            sum.merge(totals);
        }
        let session = heard(told);
        let status = *session.status().unwrap();
        let table = query::callsites(&session, &Question::default());
        assert!(table.len > 0, "{name}: no rows");
        for (what, totals) in [("status", &status.totals), ("callstacks", &sum)] {
            for (part, a, b) in [
                ("in use", &totals.in_use, &truth.in_use),
                ("allocated", &totals.allocated, &truth.allocated),
                ("minor", &totals.minor, &truth.minor),
                ("promoted", &totals.promoted, &truth.promoted),
            ] {
                assert_eq!(a.n, b.n, "{name}, {what}, {part}");
                // R in whole bytes, exactly, and 8/λ: not quite the same.
                assert!(near(a.bytes.sum, b.bytes.sum, 2e-3), "{name}, {what}, {part}");
                assert!(near(a.objects.sum, b.objects.sum, 2e-3), "{name}, {what}, {part}");
            }
        }
        assert_eq!(status.live_blocks as usize, session.live_block_count(), "{name}");
        assert_eq!(status.live_blocks, truth.in_use.n, "{name}");
        let listed: f64 = peaks.iter().flat_map(|p| &p.stacks).map(|s| s.in_use.bytes.sum).sum();
        let peak = peaks.last().unwrap();
        assert!(!peak.more && near(listed, peak.in_use.bytes.sum, 1e-9), "{name}");
        assert!(near(peak.in_use.bytes.sum, peak_bytes, 2e-3), "{name}");
        assert_eq!(session.connection(), &Connection::Ended("the trace is over".into()));
    }
}

#[test]
fn a_target_of_ocaml_with_its_names() {
    let session = heard(told(&sample("ext-530head-1e3.ctf")));
    let hello = session.hello().unwrap();
    assert_eq!(hello.kind, AgentKind::Ocaml);
    assert_eq!((hello.nursery_bytes, hello.max_young_bytes), (262_144 * 8, 257 * 8));
    assert!(hello.name.starts_with("ext.53head"), "{}", hello.name);
    let nodes = session.book().nodes();
    let has = |function: &str, location: &str| {
        nodes.iter().any(|n| &*n.label.function == function && &*n.label.location == location)
    };
    assert!(has("Ext_head.ext_round", "ext_head.ml:7"));
    // A slot without debug information is a place in the program.
    assert!(nodes.iter().any(|n| n.label.function.starts_with("ext.53head+0x")));
    assert_eq!(session.threads().len(), 1);
}

/// An external object has no header and is not young; nor is one of the major heap.
#[test]
fn sizes_and_youth() {
    let mut craft = Craft::new(2);
    let p = Packet::at(START, 0).define(START, 1).birth(START, 3, 0, 0, &miss(1, 1));
    craft.put(&p.birth(START, 300, 1, 1, &[]).birth(START, 5, 2, 1, &[]));
    let mut blocks: Vec<(u64, bool)> = Vec::new();
    for event in told(&craft.bytes) {
        if let SourceEvent::Message(FromAgent::Events(batch)) = event {
            blocks.extend(batch.iter().map(|event| match event {
                Event::Alloc(e) => (e.size, e.young),
                other => panic!("{other:?}"),
            }));
        }
    }
    assert_eq!(blocks, [(32, true), (2408, false), (40, false)]);
}

/// λ = 0.1 by words of 8 bytes: each sample is 80 bytes on the allocation clock.
#[test]
fn the_clock_and_the_curve_go_on_with_time() {
    let mut craft = Craft::new(2);
    for second in 0..4 {
        let at = START + second * 1_000_000;
        let codes = if second == 0 { miss(1, 1) } else { Vec::new() };
        let p = Packet::at(at, second).define(at, 1);
        craft.put(&p.birth(at, 3, 0, i64::from(second > 0), &codes));
    }
    let told = told(&craft.bytes);
    let mut clocks = Vec::new();
    let mut points: Vec<HistoryPoint> = Vec::new();
    for event in told {
        match event {
            SourceEvent::Message(FromAgent::Events(b)) => {
                clocks.extend(b.iter().map(|event| (event.at().time_ns, event.at().clock)));
            }
            SourceEvent::Message(FromAgent::History(history)) => points.extend(history.points),
            _ => {}
        }
    }
    let second = 1_000_000_000;
    assert_eq!(clocks, [(0, 0), (second, 80), (2 * second, 160), (3 * second, 240)]);
    assert!(points.len() >= 5, "{points:?}");
    let grows = |w: &[HistoryPoint]| {
        w[0].time_ns <= w[1].time_ns && w[0].allocated_bytes <= w[1].allocated_bytes
    };
    assert!(points.windows(2).all(grows), "{points:?}");
}

/// A sleep of years is one report, not one for each quarter of a second.
#[test]
fn sleep_costs_nothing() {
    let mut craft = Craft::new(2);
    craft.put(&Packet::at(START, 0).define(START, 1).birth(START, 3, 0, 0, &miss(1, 1)));
    let late = START + (1 << 60);
    let mut p = Packet::at(late, 1).collect(late, 0);
    for _ in 0..100 {
        p = p.birth(late, 3, 0, 1, &[]);
    }
    craft.put(&p);
    let told = told(&craft.bytes);
    assert!(told.len() < 40, "{}", told.len());
}

#[test]
fn what_is_damaged_is_heard_as_far_as_it_is_sound() {
    let bytes = sample("multidomain-530-begin.ctf");
    let session = heard(told(&bytes[..bytes.len() - 1000]));
    assert!(session.status().unwrap().samples > 0);
    let Connection::Ended(how) = session.connection() else { panic!("it has an end") };
    assert!(how.starts_with("the trace is sound up to here: at byte "), "{how}");
    assert_eq!(session.damage().len(), 1);
    assert!(session.damage()[0].how.starts_with("at byte "), "{:?}", session.damage());
    let session = heard(told(&sample("pr23-wide-530v023-begin.ctf")));
    let Connection::Ended(how) = session.connection() else { panic!("it has an end") };
    assert!(how.starts_with("nothing of the trace is sound: at byte 623"), "{how}");
    assert!(tell(Cursor::new(b"no trace".to_vec()), 8).is_err());
}

/// What lives say of promotion is what the trace's totals say, to the byte; a larger minor
/// heap promotes no more, and less the larger it is: who died after a few collections
/// would have seen fewer of them.
#[test]
fn promotion_is_the_same_by_lives_and_by_totals() {
    let mut fell = 0;
    for name in ["garbage-413-1e4.ctf", "ext-530head-1e3.ctf", "multidomain-530-begin.ctf"] {
        let session = heard(told(&sample(name)));
        let own_bytes = session.hello().unwrap().nursery_bytes;
        let list = query::promotion(&session, "", When::Now, 1000);
        let rows = list.rows.iter().map(|row| (Some(row.key), &row.figures));
        for (key, figures) in rows.chain([(None, &list.total)]) {
            let lives = query::survival(&session, key, When::Now, "").unwrap();
            let (Ratio::Interval { value, .. }, Ratio::Interval { value: by_lives, high, .. }) =
                (figures.promoted, lives.own)
            else {
                panic!("{name}: {key:?} {:?} {:?}", figures.promoted, lives.own)
            };
            assert!((value - by_lives).abs() < 1e-9, "{name}: {key:?}: {value} and {by_lives}");
            assert_eq!(lives.at(own_bytes / 2), Followed::Unknown);
            let mut most = high;
            for times in [2, 4, 16, 64, 256] {
                let Followed::Bounds { low, high, .. } = lives.at(own_bytes * times) else {
                    panic!("{name}: {:?}", lives.at(own_bytes * times))
                };
                assert!(low <= high && high <= most + 1e-9, "{name} {times}: {high} of {most}");
                most = high;
            }
            fell += usize::from(most < high * 0.9);
        }
    }
    assert!(fell > 0, "the bound from above is one: {fell}");
}

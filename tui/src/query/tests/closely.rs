//! One callsite closely, and what leaks.

use super::*;
use crate::query::details::{Factor, Hint};
use heaptop_protocol::event::{Batch, Cause, Event};
use heaptop_protocol::ids::{BlockId, ThreadId};
use heaptop_protocol::message::{Mark, Thread};

fn exact(estimate: Estimate) -> f64 {
    let Estimate::Exact { value } = estimate else { panic!("{estimate:?}") };
    value
}

fn of(f: &Fixture, function: &str) -> Details {
    details(&f.session, When::Now, key(&f.session, function), "", None).unwrap()
}

/// At R = 1 all that is said is what was done.
#[test]
fn a_callsite_is_told_block_by_block() {
    let mut f = Fixture::new(1);
    f.say(Thread { id: ThreadId(2), tid: 4712, name: "other".into() });
    let near = f.stack(&["main", "near", "leaf@src/leaf.rs:1"]);
    let far = f.stack(&["main", "far", "leaf@src/leaf.rs:1"]);
    let elsewhere = f.stack(&["main", "far", "elsewhere"]);
    f.pass(1.0);
    f.alloc(elsewhere, 5000);
    let kept = f.alloc(near, 100);
    let large = f.alloc(far, 3000);
    f.pass(4.0);
    let brief = f.alloc(near, 60);
    f.pass(1.0);
    f.free(brief);
    let mut dealloc = f.death(large).unwrap();
    dealloc.thread = ThreadId(2);
    f.say(Batch::pack(&[Event::Dealloc(dealloc)]));
    let mut grown = f.birth(near, 40);
    (grown.cause, grown.thread) = (Cause::Realloc, ThreadId(2));
    f.say(Batch::pack(&[Event::Alloc(grown)]));
    f.pass(3.0);

    let d = of(&f, "leaf");
    assert_eq!(exact(d.figures.in_use_bytes), 140.0);
    let stacks: Vec<(String, f64)> = d
        .stacks
        .iter()
        .map(|stack| {
            let names: Vec<&str> = stack.frames.iter().map(|label| &*label.function).collect();
            (names.join(" ← "), exact(stack.in_use_bytes))
        })
        .collect();
    assert_eq!(
        stacks,
        [("leaf ← near ← main".to_owned(), 140.0), ("leaf ← far ← main".to_owned(), 0.0)]
    );
    let sizes: Vec<(u64, u64, f64, f64)> = d
        .sizes
        .iter()
        .map(|row| (row.above, row.to, exact(row.in_use_bytes), exact(row.allocated_bytes)))
        .collect();
    assert_eq!(sizes, [(32, 64, 40.0, 100.0), (64, 128, 100.0, 100.0), (2048, 4096, 0.0, 3000.0)]);
    let share = |ratio: Ratio| {
        let Ratio::Interval { value, .. } = ratio else { panic!("{ratio:?}") };
        (value * 1000.0).round() / 1000.0
    };
    let threads: Vec<(&str, f64)> =
        d.threads.iter().map(|thread| (&*thread.name, share(thread.share))).collect();
    assert_eq!(threads, [("orders", 0.988), ("other", 0.013)]);
    assert_eq!(share(d.freed_elsewhere), 0.98, "3000 of 3060");
    assert_eq!(share(d.by_realloc), 0.013, "40 of 3200");
    assert_eq!((d.deaths, d.ages.len()), (2, 2));
    let blocks: Vec<(BlockId, u64, u64, &str)> = d
        .blocks
        .iter()
        .map(|block| (block.id, block.size, block.age_ns / 1_000_000_000, &*block.thread))
        .collect();
    assert_eq!(blocks, [(kept, 100, 8, "orders"), (grown.id(), 40, 3, "other")]);
    assert!(d.blocks.iter().all(|block| block.address > 0));
    assert_eq!(d.hints, [], "of so few nothing is said");
    assert!(details(&f.session, When::Now, key(&f.session, "main"), "", None).is_none());
    assert!(details(&f.session, When::At(0), key(&f.session, "leaf"), "", None).is_none());
}

/// The same service in three ways: more work, longer stays, larger blocks.
#[test]
fn the_factor_that_moved_is_told() {
    for (what, births, stay, size) in [
        (Factor::Rate, [20, 80], [4, 4], [100, 100]),
        (Factor::Stay, [20, 20], [4, 16], [100, 100]),
        (Factor::Size, [20, 20], [4, 4], [100, 400]),
    ] {
        let mut f = Fixture::new(1);
        let stack = f.stack(&["main", "work"]);
        let mut waiting = std::collections::VecDeque::new();
        for half in 0..2 {
            for second in 0..30 {
                for _ in 0..births[half] {
                    waiting.push_back((f.alloc(stack, size[half]), half * 30 + second));
                }
                while waiting
                    .front()
                    .is_some_and(|(_, at)| at + stay[usize::from(half > 0)] <= half * 30 + second)
                {
                    f.free(waiting.pop_front().unwrap().0);
                }
                f.pass(1.0);
            }
        }
        let factors = of(&f, "work").factors.unwrap();
        assert_eq!(factors.moved.first(), Some(&what), "{factors:?}");
        let both = |of: [Estimate; 2]| of.map(exact);
        for half in 0..2 {
            let (rate, stay) = (both(factors.rate)[half], both(factors.stay_ns)[half]);
            let product = rate * stay / 1e9 * both(factors.size)[half];
            let bytes =
                if half == 1 { exact(of(&f, "work").figures.in_use_bytes) } else { product };
            assert!((product - bytes).abs() < 1.0, "{product} is not {bytes}");
        }
    }
}

/// Each hint comes with what it is about, and with enough samples alone.
#[test]
fn hints_say_what_they_are_based_on() {
    let mut f = Fixture::new(1000);
    let (churn, ladder, leak) =
        (f.stack(&["main", "churn"]), f.stack(&["main", "ladder"]), f.stack(&["main", "leak"]));
    let (few, passed) = (f.stack(&["main", "few"]), f.stack(&["main", "passed"]));
    f.pass(1.0);
    for _ in 0..60 {
        for _ in 0..4 {
            let brief = f.alloc(churn, 500);
            f.free(brief);
            let mut grown = f.birth(ladder, 900);
            grown.cause = Cause::Realloc;
            f.say(Batch::pack(&[Event::Alloc(grown)]));
            f.free(grown.id());
            f.alloc(leak, 100);
            let given = f.alloc(passed, 3000);
            let mut dealloc = f.death(given).unwrap();
            dealloc.thread = ThreadId(2);
            f.say(Batch::pack(&[Event::Dealloc(dealloc)]));
        }
        f.pass(0.5);
    }
    f.alloc(few, 10);
    f.pass(0.5);
    let kinds = |function: &str| {
        let hints = of(&f, function).hints;
        let kind = |hint: &Hint| match *hint {
            Hint::Grows { samples, .. } => ("grows", samples),
            Hint::DiesYoung { samples, .. } => ("dies young", samples),
            Hint::Ladder { samples, .. } => ("ladder", samples),
            Hint::FreedElsewhere { samples, .. } => ("freed elsewhere", samples),
        };
        hints.iter().map(kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds("churn"), [("dies young", 240)]);
    assert_eq!(kinds("ladder"), [("dies young", 240), ("ladder", 240)]);
    assert_eq!(kinds("leak"), [("grows", 240)]);
    assert_eq!(kinds("passed"), [("freed elsewhere", 240)]);
    assert_eq!(kinds("few"), []);
}

/// Generations are cut at the marks, and add up to what is in use.
#[test]
fn generations_lie_between_marks() {
    let mut f = Fixture::new(1);
    let (a, b) = (f.stack(&["main", "a"]), f.stack(&["main", "b"]));
    f.pass(1.0);
    f.alloc(a, 10);
    f.alloc(b, 1);
    let mark = |f: &mut Fixture, label: &str| {
        f.pass(1.0);
        let at = f.now();
        f.say(Mark { at, label: label.into() });
        f.pass(1.0);
    };
    mark(&mut f, "one");
    f.alloc(a, 200);
    let brief = f.alloc(b, 7);
    mark(&mut f, "two");
    f.alloc(a, 3000);
    f.free(brief);
    f.pass(20.0);
    let list = LeakList::ask(&f.session, When::Now, None, "").unwrap();
    let leaks = list.rows(0..usize::MAX);
    let names: Vec<Option<&str>> = leaks.generations.iter().map(|g| g.mark.as_deref()).collect();
    assert_eq!(names, [None, Some("one"), Some("two")]);
    let of = |name: &str| {
        let row = leaks.rows.iter().find(|row| &*row.label.function == name).unwrap();
        let bytes: Vec<f64> = row.figures.generations.iter().map(|e| exact(*e)).collect();
        assert_eq!(bytes.iter().sum::<f64>(), exact(row.figures.in_use_bytes));
        (bytes, exact(row.figures.old_bytes), row.figures.grew)
    };
    assert_eq!(of("a"), (vec![10.0, 200.0, 3000.0], 3210.0, true));
    assert_eq!(of("b"), (vec![1.0, 0.0, 0.0], 1.0, true));
    assert_eq!(leaks.total.growth, Change::Exact { value: 3211.0 });
    // From the second mark on b has shrunk.
    let at = f.session.marks()[1].at.time_ns;
    let list = LeakList::ask(&f.session, When::Now, Some(at), "").unwrap();
    let leaks = list.rows(0..usize::MAX);
    let b = leaks.rows.iter().find(|row| &*row.label.function == "b").unwrap();
    assert_eq!((b.figures.growth, b.figures.grew), (Change::Exact { value: -7.0 }, false));
    // As the list of old blocks and that of growth have it.
    let old = old(&f.session, When::Now, "").unwrap();
    assert_eq!(old.rows.len(), 2);
    for row in &old.rows {
        let leak = leaks.rows.iter().find(|leak| leak.key == row.key).unwrap();
        assert_eq!((leak.figures.old_bytes, leak.figures.median_age), (row.bytes, row.median_age));
    }
}

/// At R = 1 each step of a Vec that grows is told, and what had to be copied for it. A
/// stretch of time has its own.
#[test]
fn a_ladder_of_reallocs_is_told_step_by_step() {
    let mut f = Fixture::new(1);
    let (stack, other) = (f.stack(&["main", "grow"]), f.stack(&["main", "other"]));
    f.pass(1.0);
    let grow = |f: &mut Fixture, most: u64| {
        let mut id = f.alloc(stack, 64);
        let mut size = 64;
        while size < most {
            size *= 2;
            // From 256 to 512 there is room behind it.
            id = f.realloc(id, stack, size, size != 512);
        }
        f.free(id);
        let elsewhere = f.alloc(other, 64);
        let elsewhere = f.realloc(elsewhere, other, 128, true);
        f.free(elsewhere);
        f.pass(1.0);
    };
    grow(&mut f, 1024);
    let from_ns = f.time_ns;
    f.pass(0.5);
    grow(&mut f, 1024);
    grow(&mut f, 256);
    let d = of(&f, "grow");
    let grown = d.grown.as_ref().expect("it grows");
    assert_eq!((exact(grown.steps), grown.largest), (10.0, 1024));
    assert!((exact(grown.each) - 10.0 / 3.0).abs() < 1e-9);
    assert_eq!(exact(grown.copied), 2.0 * (64.0 + 128.0 + 512.0) + 64.0 + 128.0);
    let sizes: Vec<(u64, u64, f64, f64)> =
        grown.sizes.iter().map(|s| (s.from, s.to, exact(s.steps), exact(s.copied))).collect();
    let want = [
        (64, 128, 3.0, 192.0),
        (128, 256, 3.0, 384.0),
        (256, 512, 2.0, 0.0),
        (512, 1024, 2.0, 1024.0),
    ];
    assert_eq!(sizes, want);
    let hint = d.hints.iter().find_map(|hint| match hint {
        Hint::Ladder { each, largest, .. } => Some((exact(*each), *largest)),
        _ => None,
    });
    assert_eq!(hint, Some((10.0 / 3.0, 1024)));
    // What gives back its room asks for none.
    let shrink = f.stack(&["main", "shrink"]);
    for _ in 0..10 {
        let id = f.alloc(other, 1024);
        f.realloc(id, shrink, 300, true);
    }
    f.pass(0.5);
    let hints = of(&f, "shrink").hints;
    assert!(!hints.iter().any(|hint| matches!(hint, Hint::Ladder { .. })), "{hints:?}");
    let range = When::Range { from_ns, to_ns: f.time_ns };
    let later =
        details(&f.session, range, key(&f.session, "grow"), "", None).unwrap().grown.unwrap();
    assert_eq!((exact(later.steps), exact(later.copied)), (6.0, 704.0 + 192.0));
}

/// Where pairs are seen by chance, what is known of them is known from below; where none
/// was, nothing.
#[test]
fn what_pairs_tell_is_a_bound() {
    let mut f = Fixture::new(64 << 10);
    let stack = f.stack(&["main", "grow"]);
    f.pass(1.0);
    for _ in 0..40 {
        let id = f.alloc(stack, 1 << 20);
        let id = f.realloc(id, stack, 2 << 20, true);
        f.free(id);
    }
    f.pass(1.0);
    let grown = of(&f, "grow").grown.unwrap();
    let Estimate::AtLeast { low, samples: 40 } = grown.copied else { panic!("{grown:?}") };
    assert!(low > 38.0 * 1_048_576.0 && low <= 40.1 * 1_048_576.0, "{low}");
    let Estimate::Interval { value, low, high, .. } = grown.each else { panic!("{grown:?}") };
    assert!(low <= 1.0 && 1.0 <= high && (value - 1.0).abs() < 0.01, "{grown:?}");

    let mut f = Fixture::new(64 << 10);
    let stack = f.stack(&["main", "grow"]);
    f.pass(1.0);
    for _ in 0..10 {
        let mut alloc = f.birth(stack, 512);
        alloc.cause = Cause::Realloc;
        f.say(Batch::pack(&[Event::Alloc(alloc)]));
    }
    f.pass(1.0);
    let grown = of(&f, "grow").grown.unwrap();
    assert_eq!((grown.copied, grown.sizes.len()), (Estimate::Unknown, 0));
    assert_eq!(grown.each, Estimate::Unknown, "none was born otherwise");
}

/// A buffer that is made elsewhere is a chain here as well.
#[test]
fn a_chain_may_begin_elsewhere() {
    let mut f = Fixture::new(1);
    let (made, grows) = (f.stack(&["main", "make"]), f.stack(&["main", "grow"]));
    f.pass(1.0);
    for _ in 0..5 {
        let mut id = f.alloc(made, 100);
        for size in [200, 400, 800] {
            id = f.realloc(id, grows, size, true);
        }
        f.free(id);
    }
    f.pass(1.0);
    assert_eq!(exact(of(&f, "grow").grown.unwrap().each), 3.0);
    assert!(of(&f, "make").grown.is_none());
}

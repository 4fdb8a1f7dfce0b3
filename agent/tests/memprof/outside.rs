//! Beside the heap and beside profiles: rows 26, 27, snapshots, measuring.

use crate::help::{adds_up, all_dead, beside, block, exact};
use heaptop_agent::memprof::{Allocation, Cause, Scope, Tracker, start};
use heaptop_agent::testing::{measure, try_measure};
use heaptop_agent::{context, external, mark, phase, snapshot};
use heaptop_protocol::callstack::EXTERNAL;
use heaptop_protocol::frame;
use heaptop_protocol::message::FromAgent;
use heaptop_protocol::recording::Reader;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// What a snapshot says, message by message.
fn said() -> Vec<FromAgent> {
    let mut file = Vec::new();
    snapshot(&mut file).expect("a snapshot can be taken");
    let mut reader = Reader::default();
    reader.feed(&file);
    let mut frames = frame::Reader::default();
    let mut said = Vec::new();
    while let Some(chunk) = reader.next().expect("it is sound") {
        frames.feed(chunk.stored);
        while let Some(frame) = frames.next().expect("it is sound") {
            said.extend(FromAgent::read(&frame).expect("it is sound"));
        }
    }
    said
}

#[derive(Clone, Default)]
struct Outside {
    born: Arc<Mutex<Vec<(u64, String, usize)>>>,
    died: Arc<AtomicU64>,
}

impl Tracker for Outside {
    type Minor = ();
    type Major = ();
    fn alloc_minor(&self, b: &Allocation<'_>) -> Option<()> {
        self.alloc_major(b)
    }
    fn alloc_major(&self, b: &Allocation<'_>) -> Option<()> {
        (b.cause == Cause::External).then(|| {
            let kind = b.external_kind().unwrap_or("none");
            self.born.lock().unwrap().push((b.size, kind.to_owned(), b.callstack.len()));
        })
    }
    fn promote(&self, (): ()) -> Option<()> {
        Some(())
    }
    fn dealloc_minor(&self, (): ()) {
        self.dealloc_major(());
    }
    fn dealloc_major(&self, (): ()) {
        self.died.fetch_add(1, SeqCst);
    }
}

#[test]
fn row_26_memory_outside_the_heap_is_reported_by_the_program() {
    let _beside = beside();
    let tracker = Outside::default();
    let profile = start(exact(), tracker.clone()).unwrap();
    let token = external::alloc(1 << 30, "gpu").expect("at R = 1 all is sampled");
    let small = external::alloc(100, "arena").expect("at R = 1 all is sampled");
    profile.poll();
    let mut born = tracker.born.lock().unwrap().clone();
    born.sort_unstable_by_key(|b| b.0);
    let sizes: Vec<_> = born.iter().map(|b| (b.0, &*b.1, b.2 > 1)).collect();
    assert_eq!(sizes, [(100, "arena", true), (1 << 30, "gpu", true)]);
    assert_eq!(tracker.died.load(SeqCst), 0);
    // The stream sees what is as large, by its kind.
    let said = said();
    let kind = said.iter().find_map(|m| match m {
        FromAgent::Module(m) if m.path == format!("{EXTERNAL}gpu]") => Some(m.id),
        _ => None,
    });
    let kind = kind.expect("the kind is told as a module");
    let stack = said.iter().find_map(|m| match m {
        FromAgent::Stack(s) if s.frames.last().is_some_and(|f| f.module == kind) => Some(s.id),
        _ => None,
    });
    let stack = stack.expect("and stands innermost");
    let lives = |said: &[FromAgent]| {
        said.iter().any(|m| match m {
            FromAgent::SnapshotBlocks(some) => {
                some.blocks.iter().any(|b| (b.stack, b.size) == (stack, 1 << 30))
            }
            _ => false,
        })
    };
    assert!(lives(&said));
    drop((token, small));
    all_dead(&profile);
    assert_eq!(tracker.died.load(SeqCst), 2, "dropping the token frees");
    assert!(!lives(&self::said()));
    adds_up(&profile.stats());
}

#[test]
fn row_27_phases_marks_and_a_context_are_told() {
    let _beside = beside();
    let label = |what: &str| format!("{what} of {}", std::process::id());
    assert!(phase(&label("startup")) && mark(&label("ready")) && context(&label("context")));
    assert!(phase(&label("work")));
    let said = said();
    let mut phases = Vec::new();
    for m in &said {
        match m {
            FromAgent::Phase(p) => phases.push((p.name.clone(), p.at.time_ns, p.at.clock)),
            FromAgent::Mark(m) => assert_eq!(m.label, label("ready")),
            FromAgent::Context(c) => assert_eq!(c.label, label("context")),
            _ => {}
        }
    }
    let names: Vec<_> = phases.iter().map(|p| p.0.clone()).collect();
    assert_eq!(names, [label("startup"), label("work")]);
    assert!(phases[0].1 <= phases[1].1 && phases[0].2 <= phases[1].2, "{phases:?}");
    let marks = said.iter().filter(|m| matches!(m, FromAgent::Mark(_) | FromAgent::Context(_)));
    assert_eq!(marks.count(), 2);
}

#[test]
fn a_snapshot_holds_what_lives() {
    let _beside = beside();
    let kept = block(20 << 20);
    let said = said();
    let lives = said.iter().any(|m| match m {
        FromAgent::SnapshotBlocks(some) => some.blocks.iter().any(|b| b.size == 20 << 20),
        _ => false,
    });
    assert!(lives, "a block of forty intervals");
    let has = |f: fn(&FromAgent) -> bool| said.iter().any(f);
    assert!(has(|m| matches!(m, FromAgent::Hello(_))));
    assert!(has(|m| matches!(m, FromAgent::Totals(_))));
    assert!(has(|m| matches!(m, FromAgent::Status(s) if s.totals.in_use.bytes.sum > 1e7)));
    assert!(!has(|m| matches!(m, FromAgent::Memory(_))));
    drop(kept);
}

#[inline(never)]
fn allocates(n: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..n).map(|_| block(bytes)).collect()
}

#[test]
fn what_a_closure_allocates_is_measured_exactly() {
    let _beside = beside();
    let ((), m) = measure(|| {
        let kept = allocates(100, 1000);
        drop(kept);
        drop(block(50_000));
    });
    // A hundred, the vector of them, and one.
    assert_eq!((m.sums.allocations, m.sums.leaked_blocks, m.missed), (102, 0, 0), "{m}");
    assert_eq!(m.sums.bytes, 100 * 1000 + 100 * 24 + 50_000, "{m}");
    assert_eq!(m.peak_bytes, 100 * 1000 + 100 * 24);
    m.assert_allocations(102..=102);
    m.assert_bytes(..200_000);
    m.assert_peak(110_000);
    m.assert_no_leak();
    let site = &m.callsites()[0];
    assert!(site.function.contains("block"), "{m}");
    assert_eq!(site.sums.allocations, 101);
}

#[test]
fn leaks_and_threads_inside_are_measured_and_messages_name_callsites() {
    let _beside = beside();
    let (kept, m) = measure(|| {
        let thread = heaptop_agent::spawn(|| allocates(10, 333));
        let kept = thread.join().unwrap();
        // None of ours.
        std::thread::spawn(|| drop(allocates(5, 444))).join().unwrap();
        kept
    });
    let callsites = m.callsites();
    let of = callsites.iter().find(|site| site.function.contains("block")).unwrap();
    assert_eq!((of.sums.allocations, of.sums.leaked_bytes), (10, 3330), "{m}");
    drop(kept);
    let failed = catch_unwind(|| m.assert_no_leak()).unwrap_err();
    let said = failed.downcast_ref::<String>().unwrap();
    assert!(said.contains("blocks were not freed, not ..=0"), "{said}");
    assert!(said.contains("block") && said.contains("not freed 10 (3330 bytes)"), "{said}");
    // And by whom it is called.
    assert!(of.callers.first().is_some_and(|caller| caller.contains("allocates")), "{m}");
    let line = said.lines().find(|line| line.contains("not freed 10")).unwrap();
    assert!(line.contains(" < ") && line.contains("allocates"), "{said}");
}

/// Allocates where it is dropped, and so while a thread unwinds.
struct Late;

impl Drop for Late {
    fn drop(&mut self) {
        drop(block(700));
    }
}

#[test]
fn what_is_allocated_as_a_thread_unwinds_is_measured_too() {
    let _beside = beside();
    let (failed, m) = measure(|| {
        catch_unwind(|| {
            let _late = Late;
            resume_unwind(Box::new(7_u64));
        })
    });
    assert!(failed.is_err());
    assert_eq!(m.missed, 0, "{m}");
    let callsites = m.callsites();
    let late = callsites.iter().find(|site| site.function.contains("block")).expect("it is seen");
    assert_eq!((late.sums.bytes, late.sums.leaked_bytes), (700, 0), "{m}");
    // What was thrown is left.
    assert!(m.sums.leaked_blocks > 0, "{m}");
}

#[test]
fn a_new_kind_of_memory_is_no_block_of_the_programs() {
    let _beside = beside();
    let ((), m) = measure(|| drop(external::alloc(1 << 20, "a kind of this test's alone")));
    m.assert_allocations(1..=1);
    m.assert_no_leak();
    let by = &m.callsites()[0].function;
    assert!(by.contains("a_new_kind_of_memory"), "who reports it: {by}");
}

/// What measuring inside a callback says.
#[derive(Clone, Default)]
struct Within(Arc<Mutex<Vec<String>>>);

impl Tracker for Within {
    type Minor = ();
    type Major = ();
    fn alloc_minor(&self, _: &Allocation<'_>) -> Option<()> {
        let why = try_measure(|| 1).err().map_or_else(String::new, |why| why.to_string());
        self.0.lock().unwrap().push(why);
        None
    }
}

#[test]
fn nothing_is_measured_in_a_callback() {
    let within = Within::default();
    let profile = start(exact().scope(Scope::Thread), within.clone()).unwrap();
    drop(block(100));
    profile.stop().unwrap();
    while profile.poll() > 0 {}
    let said = within.0.lock().unwrap();
    assert!(!said.is_empty() && said.iter().all(|why| why.contains("callback")), "{said:?}");
}

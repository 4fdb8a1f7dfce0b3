//! The language, and what it means, against truth by hand.

use super::*;
use crate::query::{self, Direction, Grouping, Metric, Question, Table, When};
use crate::session::Session;
use crate::session::figures::{Estimate, Followed, Lifetime};
use crate::session::fixture::Fixture;
use heaptop_protocol::event::{Batch, Cause, Event, Moment};
use heaptop_protocol::ids::{BlockId, StackId, ThreadId};
use heaptop_protocol::message::{Mark, Phase};
use proptest::prelude::*;

#[test]
fn what_is_wrong_says_where() {
    for (text, at, says) in [
        ("size>4Q", 5, "size wants a size such as 4K"),
        ("size>", 5, "size needs a size"),
        ("a size:4K", 6, "size is compared: size<"),
        ("age>10", 4, "age wants a time such as 10s"),
        ("lifetime<1x b", 9, "lifetime wants a time"),
        ("born:10s", 5, "a range is two moments with .. between"),
        ("cause:new", 6, "cause wants malloc, calloc"),
        ("promoted:maybe", 9, "promoted wants yes or no"),
        ("ok modul:x", 3, "modul: is none of re, via, file, module"),
        ("via:", 4, "via needs a name"),
        ("é re:a(b", 6, "no regular expression: unclosed group"),
        ("re:\"a (b\"", 6, "no regular expression: unclosed group"),
        ("a \"b c", 2, "this \" is never closed"),
        ("\"b\"c", 3, "a space must stand here"),
        ("a ! b", 2, "! stands before"),
        ("!hide:x", 0, "hide takes frames out"),
        ("\"\"", 0, "nothing is looked for"),
    ] {
        let wrong = parse(text).expect_err(text);
        assert_eq!(wrong.at, at, "{text}: {}", wrong.says);
        assert!(wrong.says.starts_with(says), "{text}: {}", wrong.says);
    }
    let many = "a ".repeat(MOST_NAMES + 1);
    assert_eq!(parse(&many).unwrap_err().at, 2 * MOST_NAMES);
    let shown = parse("size>4Q").unwrap_err().shown("size>4Q");
    assert_eq!(shown, "size wants a size such as 4K: at character 6, “4Q”");
}

#[test]
fn what_is_no_predicate_is_a_word() {
    for text in ["std::vec", "Vec<u8>", "file::open", "cache.rs:88", "a=b", "size", "C:\\x", "x:1"]
    {
        let filter = parse(text).unwrap();
        assert_eq!((filter.names.len(), filter.blocks.len()), (1, 0), "{text}");
    }
    let filter = parse("  thread:\"a \\\"b\\\\\"  !size>=4K\tphase:x ").unwrap();
    assert_eq!(filter.blocks.len(), 3);
    assert!(!filter.blocks[1].holds && filter.is_of_blocks());
    assert!(parse(" ").unwrap().is_empty());
    // Every predicate of the help is understood as it is shown there.
    for p in PREDICATES.iter().filter(|p| p.kind != Kind::Not) {
        let shown = p.shown.replace("A..B", "1s..2s").replace("cause:C", "cause:calloc");
        let filter = parse(&shown).unwrap_or_else(|wrong| panic!("{shown}: {}", wrong.says));
        assert!(!filter.is_empty(), "{shown}");
        assert!(p.name.is_empty() || shown.starts_with(p.name), "{shown}");
    }
}

#[test]
fn a_thread_is_put_in_and_taken_out() {
    let name = "a \"b\\";
    let with = with_thread("size>4K x", name);
    assert_eq!(with, "size>4K x thread:\"a \\\"b\\\\\"");
    assert_eq!(without_thread(&with), ("size>4K x".into(), Some(name.into())));
    for kept in ["thread:some", "!thread:\"x\"", "", "thread:\"never"] {
        assert_eq!(without_thread(kept), (kept.into(), None));
    }
}

const S: u64 = 1_000_000_000;

/// A shop at R = 1, attached from its start.
struct Shop {
    f: Fixture,
    cache: StackId,
    parse: StackId,
    gpu: StackId,
}

impl Shop {
    fn new() -> Self {
        let mut f = Fixture::new(1);
        f.name_thread(1, "worker-1");
        f.name_thread(2, "worker-10");
        let cache = f.stack(&["main", "orders::fill_cache@/src/orders/src/cache.rs:88"]);
        let parse = f.stack(&["main", "serve", "httparse::parse@/src/httparse/src/lib.rs:9"]);
        let gpu = f.stack(&["main", "upload"]);
        Self { f, cache, parse, gpu }
    }

    fn alloc(&mut self, thread: u32, stack: StackId, size: u64, cause: Cause) -> BlockId {
        self.f.thread = ThreadId(thread);
        let mut alloc = self.f.birth(stack, size);
        alloc.cause = cause;
        self.f.say(Batch::pack(&[Event::Alloc(alloc)]));
        alloc.id()
    }

    fn phase(&mut self, name: &str) {
        let at = Moment { seq: 0, time_ns: self.f.time_ns, clock: self.f.clock };
        self.f.say(Phase { at, name: name.into() });
    }

    /// Time goes on without a word, to be said at the next report.
    fn wait(&mut self, seconds: f64) {
        self.f.time_ns += (seconds * 1e9) as u64;
    }
}

fn asked(session: &Session, filter: &str, when: When, group: Grouping) -> Table {
    check(session, filter).unwrap_or_else(|wrong| panic!("{filter}: {}", wrong.says));
    let question = Question { filter: filter.into(), when, group, ..Question::default() };
    query::callsites(session, &question)
}

fn bytes(estimate: Estimate) -> Option<f64> {
    match estimate {
        Estimate::Exact { value } => Some(value),
        Estimate::Unknown => None,
        other => panic!("{other:?}"),
    }
}

/// Bytes in use and allocated.
fn both(session: &Session, filter: &str, when: When) -> (Option<f64>, Option<f64>) {
    let total = asked(session, filter, when, Grouping::Callsite).total;
    (bytes(total.in_use_bytes), bytes(total.allocated_bytes))
}

/// What each test below is about, ten seconds of it.
fn ten_seconds() -> Shop {
    let mut s = Shop::new();
    let (cache, parse, gpu) = (s.cache, s.parse, s.gpu);
    s.phase("startup");
    s.wait(1.0); // at 2 s
    s.alloc(1, cache, 10_000, Cause::Malloc);
    let brief = s.alloc(2, parse, 300, Cause::Calloc);
    s.f.time_ns += 500_000;
    s.f.free(brief); // lived 0.5 ms
    s.wait(1.0); // at 3 s
    s.phase("work");
    s.wait(1.0); // at 4 s
    let slow = s.alloc(2, parse, 5_000, Cause::Realloc);
    let kept = s.alloc(1, gpu, 40, Cause::Aligned);
    s.wait(2.0); // at 6 s
    s.f.thread = ThreadId(1);
    s.f.free(slow); // lived 2 s
    s.f.promote(kept);
    s.f.clock += 4 << 20;
    let at = Moment { seq: 0, time_ns: s.f.time_ns, clock: s.f.clock };
    s.f.say(Mark { at, label: "loaded".into() });
    s.wait(4.0); // at 10 s
    s.alloc(1, cache, 7, Cause::Malloc);
    s.f.report();
    s
}

/// What is told of each predicate is what was done.
#[test]
fn predicates_are_what_they_say() {
    let s = ten_seconds();
    let session = &s.f.session;
    let all = (Some(10_047.0), Some(15_347.0));
    assert_eq!(both(session, "", When::Now), all);
    for (filter, in_use, allocated) in [
        // Blocks.
        ("thread:worker", 10_047, 15_347),
        ("thread:\"worker-1\"", 10_047, 10_047),
        ("thread:\"worker-10\"", 0, 5_300),
        ("thread:nobody", 0, 0),
        ("phase:startup", 10_000, 10_300),
        ("phase:\"work\"", 47, 5_047),
        ("phase:\"wor\"", 0, 0),
        ("cause:malloc", 10_007, 10_007),
        ("cause:calloc", 0, 300),
        ("cause:realloc", 0, 5_000),
        ("cause:aligned", 40, 40),
        ("cause:external", 0, 0),
        ("size>4K", 10_000, 15_000),
        ("size<=300", 47, 347),
        ("size=40", 40, 40),
        ("!size>=5000", 47, 347),
        ("age>5s", 10_040, 10_040),
        ("age>=2s", 10_040, 15_040),
        ("age<1s", 7, 307),
        ("born:..3s", 10_000, 10_300),
        ("born:loaded..", 7, 7),
        ("born:-5s..", 7, 7),
        ("born:3s..5s", 40, 5_040),
        ("promoted:yes", 40, 40),
        ("!promoted:yes", 10_007, 15_307),
        ("promoted:no", 7, 307),
        ("!lifetime>1s", 10_047, 10_347),
        ("size>4K !thread:\"worker-10\"", 10_000, 10_000),
        // Callstacks.
        ("fc", 10_007, 10_007),
        ("cache.rs:8", 10_007, 10_007),
        ("httparse", 0, 5_300),
        ("serve", 0, 5_300),
        ("!serve", 10_047, 10_047),
        ("\"fill_\"", 10_007, 10_007),
        ("\"Fill_\"", 0, 0),
        ("re:^(upl|ser)", 40, 5_340),
        ("via:serve", 0, 5_300),
        ("!via:serve", 10_047, 10_047),
        ("file:/src/orders/", 10_007, 10_007),
        ("module:httparse", 0, 5_300),
        ("module:orders", 10_047, 15_347),
        ("hide:serve", 10_047, 15_347),
        // Both.
        ("fc size<100", 7, 7),
    ] {
        let want = (Some(f64::from(in_use)), Some(f64::from(allocated)));
        let got = both(session, filter, When::Now);
        // Of no block at R = 1 it is sure that there is none.
        assert_eq!(got, want, "{filter}");
        let then = both(session, filter, When::At(session.now_ns()));
        assert_eq!(then, want, "{filter}, as of its last moment");
        // Trees count the same.
        let tree = query::callers(
            session,
            When::Now,
            &[],
            Direction::Callees,
            Metric::AllocatedBytes,
            filter,
        );
        assert_eq!(bytes(tree.unwrap().cum), want.1, "{filter}, as a tree");
        // However blocks are put together.
        for group in [Grouping::Size, Grouping::Thread, Grouping::File, Grouping::Crate] {
            let total = asked(session, filter, When::Now, group).total;
            assert_eq!(bytes(total.allocated_bytes), want.1, "{filter} by {group:?}");
            let rows = asked(session, filter, When::Now, group).rows;
            let sum: f64 = rows.iter().filter_map(|row| bytes(row.figures.in_use_bytes)).sum();
            assert_eq!(Some(sum), want.0, "rows of {filter} by {group:?}");
        }
    }
}

/// What is not known under a predicate is `–`, and what it is as of another moment.
#[test]
fn what_a_predicate_makes_unknown() {
    let s = ten_seconds();
    let session = &s.f.session;
    // What is over is in use nowhere: that is no figure.
    for (filter, allocated) in
        [("lifetime<1ms", 300.0), ("lifetime>1s", 5_000.0), ("died:5s..", 5_000.0)]
    {
        assert_eq!(both(session, filter, When::Now), (None, Some(allocated)), "{filter}");
        let total = asked(session, filter, When::Now, Grouping::Callsite).total;
        assert!(total.trend.is_empty(), "{filter}");
    }
    // As of a moment of the past blocks are what they were then.
    assert_eq!(both(session, "age>1s", When::At(5 * S)).0, Some(10_000.0));
    assert_eq!(both(session, "age<=1s", When::At(5 * S)), (Some(5_040.0), Some(5_340.0)));
    assert_eq!(both(session, "lifetime>1s", When::At(5 * S)), (None, Some(0.0)));
    // How long they live says nothing where that is what they are chosen by.
    for (filter, known) in [
        ("", true),
        ("thread:worker", true),
        ("size>1", true),
        ("lifetime<1ms", false),
        ("age>1ms", false),
        ("promoted:no", false),
    ] {
        let total = asked(session, filter, When::Now, Grouping::Callsite).total;
        assert_eq!(total.lifetime != Lifetime::Unknown, known, "{filter}");
        assert_eq!(total.mean != Followed::Unknown, known, "{filter}");
        assert_eq!(query::survival(session, None, When::Now, filter).is_some(), known, "{filter}");
    }
    let threads = query::threads(session, When::Now, "thread:\"worker-10\"");
    assert_eq!(threads.len(), 1);
    assert_eq!(bytes(threads[0].allocated_bytes), Some(5_300.0));
}

/// What happened before heaptop came is in totals, and in no block that is over.
#[test]
fn blocks_from_before_are_known_while_they_live() {
    let mut f = Fixture::unattached(1);
    let stack = f.stack(&["main", "work"]);
    for size in [100, 5_000] {
        f.birth(stack, size);
        let id = f.birth(stack, size).id();
        f.death(id);
    }
    f.time_ns += S;
    f.attach();
    f.pass(1.0);
    let now = |filter: &str| both(&f.session, filter, When::Now);
    assert_eq!(now(""), (Some(5_100.0), Some(10_200.0)));
    assert_eq!(now("work"), (Some(5_100.0), Some(10_200.0)));
    assert_eq!(now("size>4K"), (Some(5_000.0), Some(0.0)));
    // At the highest moment nothing is known of single blocks.
    let peak = |filter: &str| both(&f.session, filter, When::Peak).0;
    assert_eq!(peak("size>4K"), None);
}

/// Time moves what a filter means; a name that comes late is looked at.
#[test]
fn what_a_filter_means_moves_with_the_session() {
    let mut f = Fixture::new(1);
    let bare = f.bare_stack(&["main", "orders::late"]);
    f.alloc(bare, 100);
    f.pass(5.0);
    assert_eq!(both(&f.session, "late", When::Now).0, Some(0.0));
    f.name(&["orders::late"]);
    assert_eq!(both(&f.session, "late", When::Now).0, Some(100.0));
    let other = f.stack(&["main", "orders::late", "below"]);
    f.alloc(other, 30);
    f.report();
    assert_eq!(both(&f.session, "late", When::Now).0, Some(130.0));
    assert_eq!(both(&f.session, "born:-1s..", When::Now).0, Some(30.0));
    f.pass(3.0);
    assert_eq!(both(&f.session, "born:-1s..", When::Now).0, Some(0.0));
    assert!(check(&f.session, "born:nowhere..").unwrap_err().says.contains("no time"));
    assert_eq!(both_unchecked(&f.session, "born:nowhere.."), Some(0.0));
}

fn both_unchecked(session: &Session, filter: &str) -> Option<f64> {
    let question = Question { filter: filter.into(), ..Question::default() };
    bytes(query::callsites(session, &question).total.in_use_bytes)
}

/// Frames that are hidden are in no tree; what they have is their caller's.
#[test]
fn hidden_frames_are_their_callers() {
    let mut f = Fixture::new(1);
    let paths: [(&[&str], u64); 3] =
        [(&["main", "serve", "grow"], 100), (&["main", "grow"], 20), (&["grow"], 3)];
    for (path, size) in paths {
        let stack = f.stack(path);
        f.alloc(stack, size);
    }
    f.report();
    let s = &f.session;
    let stacks =
        query::stacks(s, When::Now, &[], Direction::Callees, Metric::InUseBytes, "hide:grow");
    let mut told: Vec<(String, f64)> = stacks
        .iter()
        .map(|(path, value)| {
            let path: Vec<&str> = path.iter().map(|label| &*label.function).collect();
            (path.join(";"), *value)
        })
        .collect();
    told.sort_by(|a, b| a.0.cmp(&b.0));
    let want = [("(all)", 3.0), ("main", 20.0), ("main;serve", 100.0)];
    assert_eq!(told, want.map(|(path, value)| (path.to_owned(), value)));
    let tree = |direction| {
        query::callers(s, When::Now, &[], direction, Metric::InUseBytes, "hide:grow").unwrap()
    };
    let main = &tree(Direction::Callees).children[0];
    assert_eq!((&*main.label.function, bytes(main.flat)), ("main", Some(20.0)));
    let sites: Vec<String> = tree(Direction::Callers)
        .children
        .iter()
        .map(|node| node.label.function.to_string())
        .collect();
    assert_eq!(sites, ["serve", "main"]);
    // One of them is a callsite now: its callers can be looked at.
    let serve = tree(Direction::Callers).children[0].key;
    let focused =
        query::callers(s, When::Now, &[serve], Direction::Callers, Metric::InUseBytes, "hide:grow");
    assert_eq!(bytes(focused.unwrap().cum), Some(100.0));
}

/// Sums over lives that are over go on where they stopped: after each of many steps they are
/// those of a session that is asked for the first time.
#[test]
fn sums_that_go_on_are_those_of_a_first_look() {
    use crate::session::then::by::{By, Cut};
    let mut f = Fixture::new(1);
    let stacks = [f.stack(&["main", "a"]), f.stack(&["main", "b", "a"])];
    f.time_ns += S / 1000;
    let mut sizes = [0u64; 2];
    let filter = "size>50 via:b";
    for i in 0..150_000u64 {
        f.time_ns += 100_000;
        let (stack, size) = ((i % 2) as usize, 1 + i % 100);
        let id = f.alloc(stacks[stack], size);
        f.free(id);
        sizes[0] += if stack == 1 && size > 50 { size } else { 0 };
        sizes[1] += u64::from(stack == 1 && size > 50);
        if i % 30_000 == 29_999 {
            f.clock += 4 << 20;
            f.pass(20.0);
            let (in_use, allocated) = both(&f.session, filter, When::Now);
            assert_eq!(in_use, Some(0.0));
            assert_eq!(allocated, Some(sizes[0] as f64), "after {i}");
            let table = asked(&f.session, filter, When::Now, Grouping::Callsite);
            assert_eq!(bytes(table.total.allocated_objects), Some(sizes[1] as f64));
            // And others in between are none of theirs.
            let (_, others) = both(&f.session, "!size>50 via:b", When::Now);
            let of_b = both(&f.session, "via:b", When::Now).1.unwrap();
            assert_eq!(others, Some(of_b - sizes[0] as f64));
        }
    }
    // Out of the window of rates.
    f.pass_slowly(12.0);
    let cut: Cut = Selection::of(&f.session, filter).by(By::Group);
    let at = f.session.bounds(When::At(f.session.now_ns()));
    let settled = f.session.settled(&at, &cut).map(|settled| settled.chunks);
    assert_eq!(settled, Some(2), "all but the last chunk need no other look");
}

/// All predicates, each of a kind.
const SINGLE: &[&str] = &[
    "a",
    "re:b$",
    "via:b",
    "file:x.rs",
    "module:orders",
    "thread:\"t1\"",
    "phase:p",
    "cause:malloc",
    "cause:realloc",
    "cause:external",
    "size>64",
    "size<=64",
    "age>2s",
    "lifetime<2s",
    "born:2s..6s",
    "born:-3s..",
    "died:3s..",
    "promoted:yes",
    "promoted:no",
    "\"ab\"",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What a predicate takes and what its opposite takes is all, whatever it is, of now, of
    /// a moment and of a range; and so it is for two threads of any interval.
    #[test]
    fn a_predicate_and_its_opposite_are_all(
        steps in proptest::collection::vec((0usize..4, 1u64..5000, 1u32..3, 0u64..1500, any::<bool>()), 5..60),
        interval in prop_oneof![Just(1u64), Just(64)],
        at in 1u64..20,
    ) {
        let mut f = Fixture::new(interval);
        f.name_thread(1, "t1");
        f.name_thread(2, "t2");
        let stacks = [
            f.stack(&["main", "a@/x.rs:1"]),
            f.stack(&["main", "b", "ab"]),
            f.stack(&["main", "b", "a@/x.rs:1"]),
            f.bare_stack(&["main", "c"]),
        ];
        // What is born in the microsecond in which heaptop came is of before.
        f.time_ns += 1_000_000;
        let mut living = Vec::new();
        for (i, (stack, size, thread, ms, free)) in steps.iter().enumerate() {
            f.thread = ThreadId(*thread);
            if i % 5 == 3 {
                let at = f.now();
                let name = if i % 2 == 0 { "p" } else { "q" };
                f.say(Phase { at, name: name.into() });
            }
            living.push(f.alloc(stacks[*stack], *size));
            f.time_ns += ms * 1_000_000;
            if *free {
                let which = (*size as usize) % living.len();
                f.free(living.swap_remove(which));
            } else if i % 4 == 1 {
                let id = living.swap_remove(0);
                living.push(f.realloc(id, stacks[*stack], *size / 2 + 1, true));
            }
        }
        f.pass(1.0);
        let end = f.time_ns;
        let range = When::Range { from_ns: 1_500_000_000, to_ns: end };
        for when in [When::Now, When::At((at * S).min(end)), range] {
            // As sums over rows, which samples alone are in; what single blocks tell of.
            let sum = |filter: &str, of: fn(&query::Figures) -> Estimate| -> f64 {
                let table = asked(&f.session, filter, when, Grouping::Callsite);
                let point = |row: &query::Row| match of(&row.figures) {
                    Estimate::Exact { value } | Estimate::Interval { value, .. } => value,
                    _ => 0.0,
                };
                table.rows.iter().map(point).sum()
            };
            let figures: [fn(&query::Figures) -> Estimate; 3] =
                [|f| f.in_use_bytes, |f| f.allocated_bytes, |f| f.allocated_objects];
            // Of small blocks at a coarse R objects have no value.
            for of in &figures[..if interval == 1 { 3 } else { 2 }] {
                let of = *of;
                let all = sum("", of);
                for single in SINGLE {
                    let parts = [sum(single, of), sum(&format!("!{single}"), of)];
                    let both = parts[0] + parts[1];
                    prop_assert!((both - all).abs() <= 1e-6 * all.max(1.0),
                        "{single} at {when:?}: {parts:?} are not {all}");
                }
            }
        }
    }

    /// Whatever is typed: no panic, and what is wrong is where something is.
    #[test]
    fn any_line_is_understood_or_wrong_somewhere(line in "[a-z!:<>=\"\\\\.~ é0-9]{0,40}") {
        if let Err(wrong) = parse(&line) {
            prop_assert!(wrong.at <= line.chars().count(), "{line}: {wrong:?}");
            prop_assert!(!wrong.says.is_empty());
        }
        let _ = without_thread(&line);
    }
}

/// The README has the predicates as the help has them.
#[test]
fn the_readme_has_all_predicates() {
    let readme = include_str!("../../../../README.md");
    for p in PREDICATES {
        let row = format!("| `{}` | {} |", p.shown, p.says);
        assert!(readme.contains(&row), "README.md wants the row\n{row}");
    }
}

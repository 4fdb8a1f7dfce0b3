mod flame;
mod growing;
mod moments;
mod rates;
mod sight;
mod tracked;

use super::*;
use crate::session::fixture::Fixture;
use std::fmt::Write;

fn value(estimate: Estimate) -> f64 {
    match estimate {
        Estimate::Exact { value } | Estimate::Interval { value, .. } => value,
        other => panic!("no value: {other:?}"),
    }
}

fn names(table: &Table) -> Vec<&str> {
    table.rows.iter().map(|row| &*row.label.function).collect()
}

fn key(session: &Session, function: &str) -> NodeKey {
    let node = session.book().nodes().iter().find(|n| &*n.label.function == function);
    node.unwrap_or_else(|| panic!("no node {function}")).key
}

/// Function, cum and flat of a tree, indented by depth.
fn picture(node: &Node) -> String {
    fn draw(node: &Node, depth: usize, out: &mut String) {
        let flat = match node.flat {
            Estimate::Unknown => "–".to_owned(),
            flat => value(flat).to_string(),
        };
        let indent = "  ".repeat(depth);
        let name = &node.label.function;
        writeln!(out, "{indent}{name} {} {flat}", value(node.cum)).unwrap();
        for child in &node.children {
            draw(child, depth + 1, out);
        }
    }
    let mut out = String::new();
    draw(node, 0, &mut out);
    out
}

/// main ─► serve ─┬─► parse ─► (alloc)     100
///                └─► fill ─► parse        20
/// main ─► fill                            7
/// main ─► fill ─► fill ─► fill            300
fn orders() -> Fixture {
    let mut f = Fixture::new(1);
    let lib = "alloc::vec::Vec<T>::push@/rustc/59/library/alloc/src/vec/mod.rs:10";
    let stacks: [(&[&str], u64); 4] = [
        (
            &[
                "main",
                "serve@/home/me/orders/src/http.rs:5",
                "parse@/x/httparse/src/lib.rs:9",
                lib,
                "malloc",
            ],
            100,
        ),
        (
            &[
                "main",
                "serve@/home/me/orders/src/http.rs:5",
                "fill",
                "parse@/x/httparse/src/lib.rs:9",
                lib,
            ],
            20,
        ),
        (&["std::rt::lang_start", "main", "fill", "malloc"], 7),
        (&["main", "fill", "fill", "fill", lib], 300),
    ];
    for (functions, size) in stacks {
        let stack = f.stack(functions);
        f.alloc(stack, size);
    }
    f.report();
    f
}

#[test]
fn rows_are_callsites_in_order() {
    let f = orders();
    let table = callsites(&f.session, &Question::default());
    assert_eq!(names(&table), ["fill", "parse"]);
    assert_eq!(value(table.rows[0].figures.in_use_bytes), 307.0);
    assert_eq!(value(table.rows[1].figures.in_use_bytes), 120.0);
    assert_eq!(value(table.total.in_use_bytes), 427.0);
    assert_eq!(&*table.rows[1].label.location, "httparse/src/lib.rs:9");
}

#[test]
fn callers_are_a_tree_from_the_callsite_to_the_root() {
    let f = orders();
    let focus = [key(&f.session, "fill")];
    let tree =
        callers(&f.session, When::Now, &focus, Direction::Callers, Metric::InUseBytes, "").unwrap();
    assert_eq!(
        picture(&tree),
        "fill 307 307\n  fill 300 –\n    fill 300 –\n      main 300 –\n  \
         main 7 –\n    std::rt::lang_start 7 –\n"
    );
}

#[test]
fn a_focus_is_drilled_through_callers() {
    let f = orders();
    let s = &f.session;
    let at = |names: &[&str]| names.iter().map(|n| key(s, n)).collect::<Vec<_>>();
    let drill = |focus: &[NodeKey]| {
        callers(s, When::Now, focus, Direction::Callers, Metric::InUseBytes, "")
            .map(|t| picture(&t))
    };
    assert_eq!(
        drill(&at(&["parse"])).unwrap(),
        "parse 120 120\n  serve 100 –\n    main 100 –\n  fill 20 –\n    serve 20 –\n      main 20 –\n"
    );
    assert_eq!(drill(&at(&["parse", "fill"])).unwrap(), "fill 20 –\n  serve 20 –\n    main 20 –\n");
    assert_eq!(drill(&at(&["parse", "fill", "serve"])).unwrap(), "serve 20 –\n  main 20 –\n");
    // A frame that is no callsite: every stack through it.
    assert_eq!(drill(&at(&["serve"])).unwrap(), "serve 120 –\n  main 120 –\n");
    assert_eq!(drill(&at(&["fill", "parse", "main"])), None);
    assert_eq!(drill(&[NodeKey(12345)]), None);
}

#[test]
fn callees_go_from_the_root_down() {
    let f = orders();
    let s = &f.session;
    let tree = callers(s, When::Now, &[], Direction::Callees, Metric::InUseBytes, "").unwrap();
    assert_eq!(
        picture(&tree),
        "(all) 427 –\n  main 420 –\n    fill 300 –\n      fill 300 –\n        fill 300 300\n    \
         serve 120 –\n      parse 100 100\n      fill 20 –\n        parse 20 20\n  \
         std::rt::lang_start 7 –\n    main 7 –\n      fill 7 7\n"
    );
    let serve =
        callers(s, When::Now, &[key(s, "serve")], Direction::Callees, Metric::InUseBytes, "")
            .unwrap();
    assert_eq!(picture(&serve), "serve 120 –\n  parse 100 100\n  fill 20 –\n    parse 20 20\n");
    assert!((tree.children[0].share - 420.0 / 427.0).abs() < 1e-12);
}

/// `i` turns the tree about: what was drilled through stays drilled through.
#[test]
fn a_focus_is_read_the_other_way_after_turning_about() {
    let f = orders();
    let s = &f.session;
    let focus = [key(s, "parse"), key(s, "fill")];
    let tree = callers(s, When::Now, &focus, Direction::Callees, Metric::InUseBytes, "").unwrap();
    assert_eq!(picture(&tree), "fill 20 –\n  parse 20 20\n");
    let focus = [key(s, "main"), key(s, "serve")];
    let tree = callers(s, When::Now, &focus, Direction::Callers, Metric::InUseBytes, "").unwrap();
    assert_eq!(picture(&tree), "serve 120 –\n  main 120 –\n");
}

#[test]
fn everything_from_the_callsites_up() {
    let f = orders();
    let tree =
        callers(&f.session, When::Now, &[], Direction::Callers, Metric::InUseObjects, "").unwrap();
    assert_eq!(value(tree.cum), 4.0);
    let children: Vec<_> =
        tree.children.iter().map(|c| (&*c.label.function, value(c.flat))).collect();
    assert_eq!(children, [("fill", 2.0), ("parse", 2.0)]);
    assert_eq!(&*find(&f.session, NodeKey::ALL).unwrap().function, "(all)");
    assert_eq!(&*find(&f.session, key(&f.session, "serve")).unwrap().function, "serve");
    assert_eq!(find(&f.session, NodeKey(99)), None);
}

#[test]
fn metrics_are_told_apart() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "work"]);
    let promoted = f.alloc(stack, 100);
    f.promote(promoted);
    let young = f.alloc(stack, 10);
    f.free(young);
    f.report();
    let of = |metric| {
        callers(&f.session, When::Now, &[], Direction::Callees, metric, "")
            .map(|tree| value(tree.cum))
    };
    assert_eq!(of(Metric::InUseBytes), Some(100.0));
    assert_eq!(of(Metric::InUseObjects), Some(1.0));
    assert_eq!(of(Metric::AllocatedBytes), Some(110.0));
    assert_eq!(of(Metric::AllocatedObjects), Some(2.0));
    assert_eq!(of(Metric::PromotedBytes), Some(100.0));
    assert_eq!(of(Metric::ShortLivedBytes), Some(10.0));
}

#[test]
fn filters_look_at_names_along_the_stack_and_at_the_callsites_place() {
    let f = orders();
    let filtered = |text: &str| {
        let question = Question { filter: text.into(), ..Question::default() };
        let table = callsites(&f.session, &question);
        assert_eq!(table.of, 2);
        (names(&table).join(" "), value(table.total.in_use_bytes))
    };
    assert_eq!(filtered("SERVE"), ("parse".into(), 120.0));
    assert_eq!(filtered("httparse"), ("parse".into(), 120.0));
    assert_eq!(filtered("http.rs"), (String::new(), 0.0), "a caller's place");
    assert_eq!(filtered("fill"), ("fill parse".into(), 327.0), "of parse what goes through it");
    assert_eq!(filtered("malloc"), (String::new(), 0.0), "behind the callsite");
    let tree = callers(&f.session, When::Now, &[], Direction::Callees, Metric::InUseBytes, "serve")
        .unwrap();
    assert_eq!(value(tree.cum), 120.0);
}

#[test]
fn unknown_comes_last_in_either_direction_and_ties_go_by_name() {
    let mut f = Fixture::new(1);
    // "known" has promotions, the others have none yet.
    for name in ["b", "known", "a"] {
        let stack = f.stack(&["main", name]);
        let id = f.alloc(stack, 64);
        if name == "known" {
            f.promote(id);
        }
    }
    f.report();
    for descending in [true, false] {
        let question = Question { sort: Column::Promoted, descending, ..Question::default() };
        assert_eq!(names(&callsites(&f.session, &question)), ["known", "a", "b"]);
        let question = Question { sort: Column::InUseBytes, descending, ..Question::default() };
        assert_eq!(names(&callsites(&f.session, &question)), ["a", "b", "known"]);
    }
    let question = Question { sort: Column::Callsite, descending: true, ..Question::default() };
    assert_eq!(names(&callsites(&f.session, &question)), ["known", "b", "a"]);
}

#[test]
fn a_tree_without_room_puts_the_small_together() {
    let mut f = Fixture::new(1);
    let functions: Vec<String> = (0..12_000).map(|i| format!("f{i:05}")).collect();
    for function in &functions {
        let stack = f.stack(&["main", function]);
        f.alloc(stack, 1);
    }
    let large = f.stack(&["main", "large"]);
    f.alloc(large, 5_000);
    // A level deeper, when there is no room left: large ones still show.
    for function in ["x", "y", "z"] {
        let stack = f.stack(&["main", "other", function]);
        f.alloc(stack, 1_000);
    }
    f.report();
    let tree =
        callers(&f.session, When::Now, &[], Direction::Callees, Metric::InUseBytes, "").unwrap();
    let main = &tree.children[0];
    assert_eq!(&*main.children[0].label.function, "large");
    let rest = main.children.last().unwrap();
    assert_eq!(rest.key, NodeKey::SMALLER);
    let shown = main.children.len() - 1;
    assert!(shown <= 10_000);
    assert_eq!(&*rest.label.function, format!("({} smaller)", 12_002 - shown));
    let sum: f64 = main.children.iter().map(|c| value(c.cum)).sum();
    assert_eq!(sum, value(main.cum));
    let other = main.children.iter().find(|c| &*c.label.function == "other").unwrap();
    let names: Vec<&str> = other.children.iter().map(|c| &*c.label.function).collect();
    assert_eq!(names, ["x", "y", "z"]);
}

#[test]
fn recursion_counts_once_from_its_innermost_call_up_and_its_outermost_down() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "f", "g", "f", "leaf"]);
    f.alloc(stack, 10);
    f.report();
    let tree = |direction| {
        let focus = [key(&f.session, "f")];
        picture(&callers(&f.session, When::Now, &focus, direction, Metric::InUseBytes, "").unwrap())
    };
    assert_eq!(tree(Direction::Callers), "f 10 –\n  g 10 –\n    f 10 –\n      main 10 –\n");
    assert_eq!(tree(Direction::Callees), "f 10 –\n  g 10 –\n    f 10 –\n      leaf 10 10\n");
}

#[test]
fn trees_end_at_64_levels() {
    let mut f = Fixture::new(1);
    let deep: Vec<String> = (0..100).map(|i| format!("f{i}")).collect();
    let stack = f.stack(&deep.iter().map(String::as_str).collect::<Vec<_>>());
    f.alloc(stack, 1);
    f.report();
    let tree =
        callers(&f.session, When::Now, &[], Direction::Callees, Metric::InUseBytes, "").unwrap();
    let (mut node, mut depth) = (&tree, 0);
    while let Some(child) = node.children.first() {
        (node, depth) = (child, depth + 1);
    }
    assert_eq!(depth, 64);
}

#[test]
fn whole_stacks_are_for_flamegraphs() {
    let mut f = orders();
    // The same functions once more, through other addresses, and a stack of nothing.
    let again = f.stack(&["main", "fill", "fill", "fill"]);
    f.alloc(again, 5);
    f.stack(&["main", "never"]);
    f.report();
    let s = &f.session;
    let lines = |focus: &[NodeKey], filter: &str| -> Vec<String> {
        let mut lines: Vec<String> =
            stacks(s, When::Now, focus, Direction::Callers, Metric::InUseBytes, filter)
                .iter()
                .map(|(path, value)| {
                    let names: Vec<&str> = path.iter().map(|l| &*l.function).collect();
                    format!("{} {value}", names.join(";"))
                })
                .collect();
        lines.sort();
        lines
    };
    assert_eq!(
        lines(&[], ""),
        [
            "main;fill;fill;fill 305",
            "main;serve;fill;parse 20",
            "main;serve;parse 100",
            "std::rt::lang_start;main;fill 7"
        ]
    );
    assert_eq!(lines(&[key(s, "parse"), key(s, "fill")], ""), ["main;serve;fill;parse 20"]);
    assert_eq!(lines(&[], "lang_start"), ["std::rt::lang_start;main;fill 7"]);
}

/// A tree of callees holds stacks that only pass through its focus; so does its export.
#[test]
fn whole_stacks_are_those_of_the_tree_in_either_direction() {
    let f = orders();
    let s = &f.session;
    for (focus, direction, sum) in [
        (vec!["fill"], Direction::Callers, 307.0),
        (vec!["fill"], Direction::Callees, 327.0),
        (vec!["serve", "fill"], Direction::Callees, 20.0),
        (vec!["parse", "fill"], Direction::Callees, 20.0),
    ] {
        let focus: Vec<NodeKey> = focus.iter().map(|name| key(s, name)).collect();
        let tree = callers(s, When::Now, &focus, direction, Metric::InUseBytes, "").unwrap();
        let stacks = stacks(s, When::Now, &focus, direction, Metric::InUseBytes, "");
        assert_eq!((value(tree.cum), stacks.iter().map(|(_, v)| v).sum()), (sum, sum));
    }
}

#[test]
fn a_tree_grows_where_it_is_open() {
    let f = orders();
    let s = &f.session;
    let whole = callers(s, When::Now, &[], Direction::Callees, Metric::InUseBytes, "").unwrap();
    let mut seen = Vec::new();
    let some = tree(s, When::Now, &[], Direction::Callees, Metric::InUseBytes, "", |branch| {
        seen.push((branch.depth, branch.share));
        branch.depth < 2 && branch.share > 0.5
    });
    let some = some.unwrap();
    assert_eq!(
        picture(&some),
        "(all) 427 –\n  main 420 –\n    fill 300 –\n    serve 120 –\n  std::rt::lang_start 7 –\n"
    );
    let shares = [1.0, 420.0 / 427.0, 7.0 / 427.0, 300.0 / 427.0, 120.0 / 427.0];
    assert_eq!(seen, [0, 1, 1, 2, 2].into_iter().zip(shares).collect::<Vec<_>>());
    let main = &some.children[0];
    assert!(main.children.iter().all(|c| c.branches && c.children.is_empty()));
    assert_eq!(main.path, whole.children[0].path);
    assert_ne!(main.path, some.path);
    assert!(!whole.children[0].children[0].children[0].children[0].branches);
}

#[test]
fn parts_of_the_rows_are_parts_of_the_whole() {
    let mut f = Fixture::new(512);
    for i in 0..200u64 {
        let stack = f.stack(&["main", &format!("site{:03}", i * 77 % 200)]);
        for n in 0..i % 9 {
            let id = f.alloc(stack, 64 << (n % 3));
            match (i + n) % 3 {
                0 => f.promote(id),
                1 => f.free(id),
                _ => {}
            }
            f.time_ns += 1_000_000;
        }
        if i % 20 == 0 {
            f.pass(1.0);
        }
    }
    f.pass(1.0);
    let s = &f.session;
    for sort in Column::ALL {
        for descending in [true, false] {
            for filter in ["", "1"] {
                let filter = filter.into();
                let from = Some(f.session.span().unwrap().0);
                let question = Question {
                    sort,
                    descending,
                    filter,
                    growth_from_ns: from,
                    ..Question::default()
                };
                let whole = callsites(s, &question);
                assert_eq!((whole.first, whole.len, whole.of), (0, whole.rows.len(), 200));
                check_order(&whole, &question);
                for range in [0..0, 0..1, 0..50, 30..40, whole.len - 1..500, 300..400] {
                    let part = Callsites::ask(s, &question).table(range.clone());
                    let end = range.end.min(whole.len);
                    assert_eq!(part.rows, whole.rows[range.start.min(end)..end], "{question:?}");
                    assert_eq!((&part.total, part.len), (&whole.total, whole.len));
                    assert!(part.covers(&range));
                    assert!(range.end > 50 || !part.covers(&(range.start..range.end + 1)));
                }
                let list = Callsites::ask(s, &question);
                for (place, row) in whole.rows.iter().enumerate() {
                    assert_eq!(list.position(row.key), Some(place));
                }
            }
        }
    }
}

/// Rows are in the order of the figures that they show; unknown ones come last.
fn check_order(table: &Table, question: &Question) {
    let of = |e: Estimate| match e {
        Estimate::Unknown => None,
        Estimate::Exact { value } | Estimate::Interval { value, .. } => Some(value),
        Estimate::Below { .. } => Some(0.0),
        Estimate::AtLeast { low, .. } => Some(low),
    };
    let share = |r: Ratio| match r {
        Ratio::Unknown => None,
        Ratio::Interval { value, .. } => Some(value),
    };
    let shown = |row: &Row| {
        let f = &row.figures;
        match question.sort {
            Column::Callsite => Some(row.label.function[4..].parse().unwrap()),
            Column::InUseBytes => of(f.in_use_bytes),
            Column::InUseObjects => of(f.in_use_objects),
            Column::AllocatedBytes => of(f.allocated_bytes),
            Column::AllocatedObjects => of(f.allocated_objects),
            Column::AllocatedRate => of(f.allocated_rate),
            Column::ObjectRate => of(f.object_rate),
            Column::Promoted => share(f.promoted),
            Column::ShortLived => share(f.short_lived),
            Column::Lifetime => f.lifetime.shown_ns(),
            Column::MeanLifetime => match f.mean {
                Followed::Unknown => None,
                Followed::Interval { value: ns, .. } | Followed::Bounds { low: ns, .. } => Some(ns),
            },
            Column::Growth => f.growth.point(),
            Column::Cum => of(f.cum),
            Column::Trend => Some(f.trend.last()? - f.trend.first()?),
        }
    };
    for pair in table.rows.windows(2) {
        let ordered = match (shown(&pair[0]), shown(&pair[1])) {
            (Some(a), Some(b)) if question.descending => a >= b,
            (Some(a), Some(b)) => a <= b,
            (a, b) => a.is_some() || b.is_none(),
        };
        assert!(ordered, "{question:?}: {pair:#?}");
    }
}

#[test]
fn a_held_order_takes_new_rows_at_its_end() {
    let mut f = orders();
    let mut order = Order::default();
    let held = |f: &Fixture, order: &mut Order| {
        let mut list = Callsites::ask(&f.session, &Question::default());
        list.hold(order);
        assert_eq!(list.position(key(&f.session, "parse")), Some(1));
        let table = list.table(0..usize::MAX);
        names(&table).join(" ")
    };
    assert_eq!(held(&f, &mut order), "fill parse");
    for (name, size) in [("parse", 9_000), ("small", 1), ("large", 5_000)] {
        let path: &[&str] = if name == "parse" {
            &["main", "serve@/home/me/orders/src/http.rs:5", "parse@/x/httparse/src/lib.rs:9"]
        } else {
            &["main", name]
        };
        let stack = f.stack(path);
        f.alloc(stack, size);
    }
    f.report();
    assert_eq!(held(&f, &mut order), "fill parse large small");
    let small = f.stack(&["main", "small"]);
    f.alloc(small, 50_000);
    f.report();
    assert_eq!(held(&f, &mut order), "fill parse large small");
    assert_eq!(names(&callsites(&f.session, &Question::default()))[0], "small");
}

const FUNCTIONS: [&str; 8] =
    ["a", "b", "c@/x/p/src/c.rs:1", "d", "std::e", "alloc::vec::Vec<T>::f", "malloc", "g > std::h"];

/// Children never add up to more than their parent, and with what is at the node
/// itself they add up to it.
fn check(node: &Node, direction: Direction) {
    let children: f64 = node.children.iter().map(|c| value(c.cum)).sum();
    assert!(children <= value(node.cum) * (1.0 + 1e-9), "{}", picture(node));
    if direction == Direction::Callees {
        let here = if node.flat == Estimate::Unknown { 0.0 } else { value(node.flat) };
        let sum = children + here;
        assert!((sum / value(node.cum) - 1.0).abs() < 1e-9, "{}", picture(node));
    }
    assert!((0.0..=1.0).contains(&node.share));
    for child in &node.children {
        check(child, direction);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn however_it_is_grouped_the_sum_is_the_same(
        paths in proptest::collection::vec(
            (proptest::collection::vec(0usize..FUNCTIONS.len(), 0..7), 1u64..5000), 1..20),
        named in proptest::collection::vec(0usize..FUNCTIONS.len(), 0..8),
        interval in 1u64..4096,
        filter in "[a-e]?",
    ) {
        let mut f = Fixture::new(interval);
        for (path, size) in &paths {
            let functions: Vec<&str> = path.iter().map(|i| FUNCTIONS[*i]).collect();
            let stack = f.bare_stack(&functions);
            f.alloc(stack, *size);
        }
        f.report();
        let truth: f64 = paths.iter().map(|(_, s)| f.interval.weight(*s).bytes).sum();
        let close = |sum: f64, truth: f64| (sum - truth).abs() <= truth * 1e-9;
        for name in named {
            f.name(&[FUNCTIONS[name]]);
            let all = callsites(&f.session, &Question::default());
            let rows: f64 = all.rows.iter().map(|r| value(r.figures.in_use_bytes)).sum();
            proptest::prop_assert!(close(rows, truth), "{rows} is not {truth}");
            proptest::prop_assert!(close(value(all.total.in_use_bytes), truth));
            proptest::prop_assert!(close(value(f.session.in_use()), truth));
            let flames = stacks(&f.session, When::Now, &[], Direction::Callers, Metric::InUseBytes, "");
            proptest::prop_assert!(close(flames.iter().map(|(_, v)| v).sum(), truth));
            let some = callsites(&f.session, &Question { filter: filter.clone(), ..Question::default() });
            proptest::prop_assert!(some.rows.len() <= all.rows.len());
            proptest::prop_assert_eq!(some.of, all.rows.len());
            for row in &some.rows {
                let whole = all.rows.iter().find(|all| all.key == row.key);
                let whole = value(whole.expect("one of all").figures.in_use_bytes);
                proptest::prop_assert!(value(row.figures.in_use_bytes) <= whole * (1.0 + 1e-9));
            }
            let tree = callers(&f.session, When::Now, &[], Direction::Callers, Metric::InUseBytes, &filter);
            if !some.rows.is_empty() {
                let tree = value(tree.unwrap().cum);
                proptest::prop_assert!(close(value(some.total.in_use_bytes), tree));
            }
            for direction in [Direction::Callers, Direction::Callees] {
                let tree = callers(&f.session, When::Now, &[], direction, Metric::InUseBytes, "").unwrap();
                proptest::prop_assert!(close(value(tree.cum), truth));
                check(&tree, direction);
                for row in &all.rows {
                    let tree = callers(&f.session, When::Now, &[row.key], direction, Metric::InUseBytes, "").unwrap();
                    check(&tree, direction);
                    if direction == Direction::Callers {
                        let row = value(row.figures.in_use_bytes);
                        proptest::prop_assert!(close(value(tree.cum), row));
                    }
                }
            }
            proptest::prop_assert_eq!(callsites(&f.session, &Question::default()), all);
        }
    }
}

mod grouped;

mod closely;

//! The flamegraph's tree.

use super::*;

fn ask(session: &Session, zoom: &[NodeKey], columns: u16, search: &str) -> Option<Flame> {
    let metric = Metric::AllocatedBytes;
    flame(
        session,
        &FlameQuestion {
            when: When::Now,
            metric,
            gained_from_ns: None,
            growth_from_ns: None,
            filter: "",
            zoom,
            columns,
            search,
        },
    )
}

#[test]
fn a_zoom_is_anchored_at_the_root() {
    let f = orders();
    let zoom = [key(&f.session, "main"), key(&f.session, "fill")];
    let flame = ask(&f.session, &zoom, 1000, "").unwrap();
    // What is below serve or another root is elsewhere, though it goes through fill too.
    assert_eq!(picture(&flame.root), "fill 300 –\n  fill 300 –\n    fill 300 300\n");
    let above: Vec<_> = flame.above.iter().map(|a| (&*a.label.function, value(a.cum))).collect();
    assert_eq!(above, [("(all)", 427.0), ("main", 420.0)]);
    assert!((flame.share - 300.0 / 427.0).abs() < 1e-12, "{}", flame.share);
    let elsewhere = [key(&f.session, "fill")];
    assert_eq!(ask(&f.session, &elsewhere, 1000, ""), None, "nothing begins so");
}

#[test]
fn the_root_is_the_tree_of_callees() {
    let f = orders();
    let flame = ask(&f.session, &[], 1000, "").unwrap();
    let (when, metric) = (When::Now, Metric::AllocatedBytes);
    assert_eq!(Some(flame.root), callers(&f.session, when, &[], Direction::Callees, metric, ""));
    assert_eq!((flame.above, flame.share, flame.matched), (vec![], 1.0, None));
}

/// Children, with what is allocated at the frame itself, are the frame.
fn adds_up(node: &Node) {
    let flat = if matches!(node.flat, Estimate::Unknown) { 0.0 } else { value(node.flat) };
    let below: f64 = node.children.iter().map(|child| value(child.cum)).sum();
    if !node.children.is_empty() {
        assert_eq!(below + flat, value(node.cum), "{node:?}");
    }
    node.children.iter().for_each(adds_up);
}

#[test]
fn frames_add_up_and_narrow_ones_stay_closed() {
    let f = orders();
    let whole = ask(&f.session, &[], 1000, "").unwrap();
    adds_up(&whole.root);
    // fill below main ─► fill, 7 of 427, is less than half of one column of five.
    let narrow = ask(&f.session, &[], 5, "").unwrap();
    adds_up(&narrow.root);
    assert!(picture(&narrow.root).len() < picture(&whole.root).len());
}

#[test]
fn what_is_found_counts_once_a_callstack() {
    let f = orders();
    let found =
        |zoom: &[NodeKey], text| ask(&f.session, zoom, 1000, text).unwrap().matched.unwrap();
    // 20 + 7 + 300, in which fill occurs three times over.
    assert!((found(&[], "FILL") - 327.0 / 427.0).abs() < 1e-12);
    assert!((found(&[], "nowhere") - 0.0).abs() < 1e-12);
    let serve = [key(&f.session, "main"), key(&f.session, "serve")];
    assert!((found(&serve, "fill") - 20.0 / 120.0).abs() < 1e-12, "of the zoom");
}

#[test]
fn the_export_has_what_is_shown() {
    let f = orders();
    let zoom = [key(&f.session, "main"), key(&f.session, "serve")];
    let question = FlameQuestion {
        when: When::Now,
        metric: Metric::AllocatedBytes,
        gained_from_ns: None,
        growth_from_ns: None,
        filter: "parse",
        zoom: &zoom,
        columns: 100,
        search: "",
    };
    let (stacks, total, before) = flame_stacks(&f.session, &question);
    let shown = flame(&f.session, &question).unwrap();
    assert_eq!(value(total), value(shown.root.cum));
    assert_eq!(before, None);
    assert_eq!(stacks.iter().map(|(_, value)| value).sum::<f64>(), value(total));
    assert!(stacks.iter().all(|(path, _)| &*path[1].function == "serve"));
}

/// Two sites: one grows by nine blocks of 1000 bytes, one loses its only block.
fn moving() -> (Fixture, u64) {
    let mut f = Fixture::new(1);
    let (grows, shrinks) = (f.stack(&["main", "grows"]), f.stack(&["main", "shrinks"]));
    f.alloc(grows, 1000);
    let goes = f.alloc(shrinks, 400);
    f.pass(5.0);
    let from = f.time_ns;
    f.pass(1.0);
    for _ in 0..9 {
        f.alloc(grows, 1000);
    }
    f.free(goes);
    f.pass(5.0);
    (f, from)
}

#[test]
fn frames_say_by_how_much_they_grew() {
    let (f, from) = moving();
    let question = FlameQuestion {
        when: When::Now,
        metric: Metric::InUseBytes,
        gained_from_ns: None,
        growth_from_ns: Some(from),
        filter: "",
        zoom: &[],
        columns: 100,
        search: "",
    };
    let answer = flame(&f.session, &question).unwrap();
    let grown = |node: &Node| answer.grown[&node.path];
    let main = &answer.root.children[0];
    let exact = |value: f64| Change::Exact { value };
    assert_eq!(grown(&answer.root).change, exact(8600.0));
    assert_eq!(grown(main).change, exact(8600.0));
    let by_name = |name: &str| main.children.iter().find(|n| &*n.label.function == name).unwrap();
    assert_eq!(grown(by_name("grows")).change, exact(9000.0));
    assert!(grown(by_name("grows")).grew && !grown(by_name("shrinks")).grew);
    // Widths may count what was born since and lives.
    let gained = FlameQuestion { gained_from_ns: Some(from), growth_from_ns: None, ..question };
    let answer = flame(&f.session, &gained).unwrap();
    assert_eq!(value(answer.root.cum), 9000.0);
    adds_up(&answer.root);
    assert!(answer.grown.is_empty(), "nobody asked");
    // The export has what there was before.
    let (stacks, total, before) = flame_stacks(&f.session, &question);
    assert_eq!((stacks.len(), value(total)), (1, 10_000.0));
    let before = before.unwrap();
    let was = |name: &str| {
        before.iter().find(|(path, _)| &*path[1].function == name).map(|(_, value)| *value)
    };
    assert_eq!((was("grows"), was("shrinks")), (Some(1000.0), Some(400.0)));
}

/// Key, cum and flat of all nodes, as far as they are there.
fn figures(node: &Node) -> Vec<(NodeKey, Estimate, Estimate, usize)> {
    let mut all = vec![(node.key, node.cum, node.flat, node.children.len())];
    node.children.iter().for_each(|child| all.extend(figures(child)));
    all
}

/// A flamegraph that is kept from one drawing to the next is what a tree says that is grown
/// anew: while totals change, callstacks and names come, and others are asked for.
#[test]
fn what_is_kept_is_what_is_grown_anew() {
    let mut f = Fixture::new(1);
    let mut random = 7u64;
    let mut roll = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    let (mut stacks, mut living) = (Vec::new(), Vec::new());
    let name = |depth: u64, i: u64| format!("f{depth}_{i}");
    let mut zoom_of: Vec<String> = Vec::new();
    let mut many = 0;
    for step in 0..400u64 {
        if stacks.is_empty() || roll(8) == 0 {
            let depth = 2 + roll(7);
            let path: Vec<String> = (0..depth).map(|d| name(d, roll(1 + d))).collect();
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            // Some are named at once, some later, some never.
            stacks.push(if step < 60 { f.stack(&path) } else { f.bare_stack(&path) });
            zoom_of = path[..=roll(2) as usize].iter().map(|s| (*s).to_owned()).collect();
        }
        let stack = stacks[roll(stacks.len() as u64) as usize];
        living.push(f.alloc(stack, 1 + roll(5000)));
        if roll(3) == 0 {
            f.free(living.swap_remove(roll(living.len() as u64) as usize));
        }
        if roll(50) == 0 {
            let names: Vec<String> = (0..8).map(|d| name(d, roll(1 + d))).collect();
            f.name(&names.iter().map(String::as_str).collect::<Vec<_>>());
        }
        f.pass(0.2);
        // Not drawn all the time.
        if roll(3) == 0 {
            continue;
        }
        let metrics = [Metric::InUseBytes, Metric::InUseObjects, Metric::AllocatedBytes];
        let metric = metrics[(step / 40 % 3) as usize];
        let when = match step / 25 % 4 {
            3 => When::At(f.time_ns - 1_000_000_000),
            _ => When::Now,
        };
        let filter = ["", "", "f2", "hide:f1_0", "thread:nobody", "size>100"][roll(6) as usize];
        let columns = [3, 40, 1000][roll(3) as usize];
        let search = ["", "f3_1"][roll(2) as usize];
        let s = &f.session;
        let asked = |zoom: &[NodeKey]| {
            let question = FlameQuestion {
                when,
                metric,
                gained_from_ns: None,
                growth_from_ns: None,
                filter,
                zoom,
                columns,
                search,
            };
            let stacks = flame_stacks(s, &question).0;
            (flame(s, &question), stacks)
        };
        let (got, weighed) = asked(&[]);
        let got = got.unwrap();
        let open = |b: Branch| b.depth == 0 || b.share * f64::from(columns) >= 0.5;
        let anew = tree(s, when, &[], Direction::Callees, metric, filter, open).unwrap();
        assert_eq!(got.root, anew, "at {step}: {filter} {when:?} {metric:?}");
        many = many.max(figures(&anew).len());
        if !search.is_empty() && filter.is_empty() {
            let has = |path: &Vec<Label>| path.iter().any(|label| label.function.contains(search));
            let all: f64 = weighed.iter().map(|(_, v)| v).sum();
            let found: f64 = weighed.iter().filter(|(p, _)| has(p)).map(|(_, v)| v).sum();
            let want = if all > 0.0 { found / all } else { 0.0 };
            assert!((got.matched.unwrap() - want).abs() < 1e-9, "at {step}");
        }
        // The zoom is a part of the whole tree.
        let node_of = |name: &String| {
            let node = s.book().nodes().iter().find(|n| *n.label.function == **name);
            node.map(|node| node.key)
        };
        let Some(zoom) = zoom_of.iter().map(node_of).collect::<Option<Vec<_>>>() else { continue };
        let whole = tree(s, when, &[], Direction::Callees, metric, filter, |_| true).unwrap();
        let mut part = Some(&whole);
        for key in &zoom {
            part = part.and_then(|node| node.children.iter().find(|child| child.key == *key));
        }
        let (got, _) = asked(&zoom);
        assert_eq!(got.is_some(), part.is_some(), "at {step}: {filter}");
        if let (Some(got), Some(part)) = (got, part) {
            assert_eq!((got.root.cum, got.root.flat), (part.cum, part.flat), "at {step}");
            assert_eq!(got.above[0].cum, whole.cum);
            if columns == 1000 {
                let wide = |node: &Node| figures(node).into_iter().filter(|f| f.3 > 0).count();
                assert!(wide(&got.root) <= wide(part));
            }
        }
    }
    assert!(many > 50, "{many} frames at most");
}

/// By how much frames grew is what their callstacks did, also below a zoom.
#[test]
fn growth_of_frames_is_that_of_their_callstacks() {
    let mut f = Fixture::new(1);
    let paths = ["a b c", "a b d", "a e", "a b", "g b c"];
    let stacks: Vec<_> = paths.iter().map(|p| f.stack(&p.split(' ').collect::<Vec<_>>())).collect();
    let old: Vec<_> = stacks.iter().map(|s| f.alloc(*s, 1000)).collect();
    f.pass(1.0);
    let from = f.time_ns;
    f.pass(1.0);
    f.free(old[0]);
    f.free(old[3]);
    for (i, stack) in stacks.iter().enumerate() {
        f.alloc(*stack, 1 << i);
    }
    f.pass(1.0);
    let keys = |names: &[&str]| names.iter().map(|n| key(&f.session, n)).collect::<Vec<_>>();
    for (zoom, root, want) in [
        (keys(&[]), -1969.0, vec![("a", -1985.0), ("b", -1989.0), ("c", -999.0), ("d", 2.0)]),
        (keys(&["a", "b"]), -1989.0, vec![("c", -999.0), ("d", 2.0)]),
        (keys(&["g"]), 16.0, vec![("b", 16.0)]),
    ] {
        let question = FlameQuestion {
            when: When::Now,
            metric: Metric::InUseBytes,
            gained_from_ns: None,
            growth_from_ns: Some(from),
            filter: "",
            zoom: &zoom,
            columns: 1000,
            search: "",
        };
        let answer = flame(&f.session, &question).unwrap();
        let grown = |node: &Node| answer.grown[&node.path].change;
        assert_eq!(grown(&answer.root), Change::Exact { value: root });
        let mut node = &answer.root;
        for (name, value) in want {
            let below = node.children.iter().find(|n| &*n.label.function == name);
            let below = below.unwrap_or_else(|| panic!("no {name} below {node:?}"));
            assert_eq!(grown(below), Change::Exact { value }, "{name}");
            if !below.children.is_empty() {
                node = below;
            }
        }
    }
}

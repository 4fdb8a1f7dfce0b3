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

//! The flamegraph's tree.

use super::*;

fn ask(session: &Session, zoom: &[NodeKey], columns: u16, search: &str) -> Option<Flame> {
    let metric = Metric::AllocatedBytes;
    flame(session, &FlameQuestion { when: When::Now, metric, filter: "", zoom, columns, search })
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
        filter: "parse",
        zoom: &zoom,
        columns: 100,
        search: "",
    };
    let (stacks, total) = flame_stacks(&f.session, &question);
    let shown = flame(&f.session, &question).unwrap();
    assert_eq!(value(total), value(shown.root.cum));
    assert_eq!(stacks.iter().map(|(_, value)| value).sum::<f64>(), value(total));
    assert!(stacks.iter().all(|(path, _)| &*path[1].function == "serve"));
}

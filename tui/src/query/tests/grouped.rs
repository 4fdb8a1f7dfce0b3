//! Rows that are something else than callsites.

use super::*;

fn exact(estimate: Estimate) -> f64 {
    let Estimate::Exact { value } = estimate else { panic!("{estimate:?}") };
    value
}

/// Name and bytes in use of each row.
fn grouped(f: &Fixture, group: Grouping) -> Vec<(String, f64)> {
    let table = callsites(&f.session, &Question { group, ..Question::default() });
    let sum: f64 = table.rows.iter().map(|row| exact(row.figures.in_use_bytes)).sum();
    assert_eq!(sum, exact(table.total.in_use_bytes), "{group:?}: rows add up to the total");
    assert_eq!(table.len, table.of);
    let of = |row: &Row| (row.label.function.to_string(), exact(row.figures.in_use_bytes));
    table.rows.iter().map(of).filter(|(_, bytes)| *bytes > 0.0).collect()
}

fn pairs(rows: &[(&str, f64)]) -> Vec<(String, f64)> {
    rows.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect()
}

/// Two lines of one function, another function of the same file, one of another crate.
fn shop() -> Fixture {
    let mut f = Fixture::new(1);
    for (leaf, size, n) in [
        ("shop::cart::add@shop/src/cart.rs:10", 100, 3),
        ("shop::cart::add@shop/src/cart.rs:20", 50, 2),
        ("shop::cart::list@shop/src/cart.rs:90", 7, 1),
        ("bytes::Buf::grow@bytes/src/buf.rs:5", 3000, 1),
        ("main@shop/src/main.rs:1", 9, 1),
    ] {
        let stack = f.stack(&["run", "shop::serve@shop/src/main.rs:7", leaf]);
        for _ in 0..n {
            f.alloc(stack, size);
        }
    }
    f.pass(1.0);
    f
}

#[test]
fn callsites_are_put_together() {
    let f = shop();
    assert_eq!(
        grouped(&f, Grouping::Function),
        pairs(&[
            ("bytes::Buf::grow", 3000.0),
            ("shop::cart::add", 400.0),
            ("main", 9.0),
            ("shop::cart::list", 7.0),
        ])
    );
    assert_eq!(
        grouped(&f, Grouping::File),
        pairs(&[
            ("bytes/src/buf.rs", 3000.0),
            ("shop/src/cart.rs", 407.0),
            ("shop/src/main.rs", 9.0),
        ])
    );
    // A function without a path is its module's.
    assert_eq!(
        grouped(&f, Grouping::Crate),
        pairs(&[("bytes", 3000.0), ("shop", 407.0), ("orders", 9.0)])
    );
}

#[test]
fn blocks_are_put_together_by_size_and_by_thread() {
    let f = shop();
    assert_eq!(
        grouped(&f, Grouping::Size),
        pairs(&[
            ("> 2 KiB to 4 KiB", 3000.0),
            ("> 64 B to 128 B", 300.0),
            ("> 32 B to 64 B", 100.0),
            ("> 8 B to 16 B", 9.0),
            ("> 4 B to 8 B", 7.0),
        ])
    );
    assert_eq!(grouped(&f, Grouping::Thread), pairs(&[("orders", 3416.0)]));
}

/// What goes through a function counts once, however often it is on the stack.
#[test]
fn functions_have_flat_and_cum() {
    let mut f = orders();
    f.pass(1.0);
    let question = Question { group: Grouping::Function, sort: Column::Cum, ..Question::default() };
    let table = callsites(&f.session, &question);
    let shown: Vec<(&str, f64, f64)> = table
        .rows
        .iter()
        .map(|row| {
            let (flat, cum) = (row.figures.in_use_bytes, row.figures.cum);
            (&*row.label.function, exact(flat), exact(cum))
        })
        .filter(|(_, _, cum)| *cum > 0.0)
        .collect();
    assert_eq!(
        shown,
        [
            ("main", 0.0, 427.0),
            ("fill", 307.0, 327.0),
            ("parse", 120.0, 120.0),
            ("serve", 0.0, 120.0),
            ("std::rt::lang_start", 0.0, 7.0),
        ]
    );
}

#[test]
fn a_class_is_gone_into() {
    let f = shop();
    let question = Question { group: Grouping::File, ..Question::default() };
    let table = callsites(&f.session, &question);
    let key = table.rows[1].key;
    let within = Some((Grouping::File.together().unwrap(), key));
    let table = callsites(&f.session, &Question { within, ..Question::default() });
    let shown: Vec<(&str, f64)> = table
        .rows
        .iter()
        .map(|row| (&*row.label.location, exact(row.figures.in_use_bytes)))
        .collect();
    assert_eq!(
        shown,
        [
            ("shop/src/cart.rs:10", 300.0),
            ("shop/src/cart.rs:20", 100.0),
            ("shop/src/cart.rs:90", 7.0),
        ]
    );
    assert_eq!(exact(table.total.in_use_bytes), 407.0);
}

/// Growth since a moment beside the present; only where it is more than chance is it said
/// to be growth.
#[test]
fn growth_since_a_mark_has_its_evidence() {
    let mut f = Fixture::new(1000);
    let (leak, churn) = (f.stack(&["main", "leak"]), f.stack(&["main", "churn"]));
    let mut waiting = std::collections::VecDeque::new();
    let mut step = |f: &mut Fixture, leaks: bool| {
        for _ in 0..20 {
            if leaks {
                f.alloc(leak, 100);
            }
            waiting.push_back(f.alloc(churn, 100));
            if waiting.len() > 30 {
                f.free(waiting.pop_front().unwrap());
            }
        }
        f.pass(1.0);
    };
    for _ in 0..4 {
        step(&mut f, false);
    }
    let from = f.time_ns;
    for _ in 0..8 {
        step(&mut f, true);
    }
    for group in [Grouping::Callsite, Grouping::Function, Grouping::Crate] {
        let question = Question { group, growth_from_ns: Some(from), ..Question::default() };
        let table = callsites(&f.session, &question);
        for row in &table.rows {
            let figures = &row.figures;
            match &*row.label.function {
                "leak" | "orders" => {
                    assert!(figures.grew, "{group:?} {:?}", figures.growth);
                    let Change::Interval { value, low, high, .. } = figures.growth else {
                        panic!("{:?}", figures.growth)
                    };
                    // 160 samples of 1,000 bytes.
                    assert!(low < 160e3 && 160e3 < high, "{value} {low} {high}");
                }
                _ => assert!(!figures.grew, "{} {:?}", row.label.function, figures.growth),
            }
        }
        assert!(table.total.grew, "{group:?}");
    }
    let nobody_asks = callsites(&f.session, &Question::default());
    assert!(nobody_asks.rows.iter().all(|row| row.figures.growth == Change::Unknown));
}

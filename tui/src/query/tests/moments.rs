//! Which rows there are at other moments than now.

use super::*;
use crate::query::Grouping;

/// `early` lives from the first second on, `brief` in the third alone, `late` from the sixth
/// on.
fn three() -> Fixture {
    let mut f = Fixture::new(1);
    let [early, brief, late] = ["early", "brief", "late"].map(|leaf| f.stack(&["main", leaf]));
    f.alloc(early, 100);
    f.pass(3.0);
    let block = f.alloc(brief, 100);
    f.pass(0.5);
    f.free(block);
    f.pass(2.5);
    f.alloc(late, 100);
    f.pass(1.0);
    f
}

/// What was not there yet is no row, and is not counted; with a filter the others are.
#[test]
fn rows_are_those_that_were_there() {
    let f = three();
    let asked = |when, filter: &str, group| {
        let filter = filter.to_owned();
        let question = Question { filter, when, group, ..Question::default() };
        let table = callsites(&f.session, &question);
        let mut names: Vec<String> =
            table.rows.iter().map(|row| row.label.function.to_string()).collect();
        names.sort_unstable();
        assert_eq!(names.len(), table.len);
        (names.join(" "), table.of)
    };
    let of = |when, filter: &str| asked(when, filter, Grouping::Callsite);
    let start = f.session.span().unwrap().0;
    let at = |seconds: f64| start + (seconds * 1e9) as u64;
    let (first, then) = (When::At(at(2.0)), When::At(at(3.2)));
    let range = When::Range { from_ns: at(2.5), to_ns: at(3.9) };
    assert_eq!(of(When::Now, ""), ("brief early late".into(), 3));
    assert_eq!(of(first, ""), ("early".into(), 1));
    assert_eq!(of(then, ""), ("brief early".into(), 2));
    assert_eq!(of(then, "early"), ("early".into(), 1 + 1));
    assert_eq!(of(range, ""), ("brief early".into(), 2));
    assert_eq!(of(range, "late"), (String::new(), 2));
    // A function that was called, and those alone, is there.
    assert_eq!(asked(first, "", Grouping::Function), ("early main".into(), 2));
    // Of a moment of which nothing is known nothing is left out.
    assert_eq!(of(When::At(0), "").1, 3);
}

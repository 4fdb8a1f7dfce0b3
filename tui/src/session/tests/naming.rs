//! Names that come late, inlined functions, stacks without a callsite.

use super::*;

/// The callstacks that a session has, root first.
fn paths(session: &Session) -> Vec<Vec<String>> {
    let (callers, in_use) = (query::Direction::Callers, query::Metric::InUseBytes);
    let stacks = query::stacks(session, query::When::Now, &[], callers, in_use, "");
    let names = |path: &[query::Label]| path.iter().map(|l| l.function.to_string()).collect();
    stacks.iter().map(|(path, _)| names(path)).collect()
}

#[test]
fn names_regroup_rows_and_change_no_sum() {
    let mut f = Fixture::new(1);
    let lib = "alloc::vec::Vec<T>::push";
    let a = f.bare_stack(&["main", "left", lib]);
    let b = f.bare_stack(&["main", "right", lib]);
    f.alloc(a, 10);
    f.alloc(b, 20);
    f.report();
    let before = table(&f.session);
    assert_eq!(before.rows.len(), 1, "by the innermost address");
    assert!(before.rows[0].label.function.starts_with("orders+0x"), "{:?}", before.rows[0].label);
    assert!(!before.rows[0].label.named);
    let revision = f.session.revision();
    f.name(&[lib]);
    assert!(f.session.revision() > revision);
    assert_eq!(table(&f.session).rows.len(), 2);
    f.name(&["left", "right"]);
    let after = table(&f.session);
    assert_eq!(after.total, before.total);
    assert_eq!(row(&f.session, "left").figures.in_use_bytes, exact(10.0));
    assert_eq!(row(&f.session, "right").figures.in_use_bytes, exact(20.0));
    let revision = f.session.revision();
    f.name(&["left", "right"]);
    assert_eq!(f.session.revision(), revision, "nothing new");
}

#[test]
fn inlined_functions_are_frames() {
    let mut f = Fixture::new(1);
    let frame = "outer@/x/app/src/a.rs:1 > inner@/x/app/src/b.rs:2 > alloc::vec::Vec<T>::push@/rustc/1/library/alloc/src/vec/mod.rs:3";
    let stack = f.stack(&["main", frame, "malloc"]);
    f.alloc(stack, 10);
    f.report();
    assert_eq!(&*row(&f.session, "inner").label.location, "app/src/b.rs:2");
    let path = &query::stacks(
        &f.session,
        query::When::Now,
        &[],
        query::Direction::Callers,
        query::Metric::InUseBytes,
        "",
    )[0]
    .0;
    let names: Vec<&str> = path.iter().map(|l| &*l.function).collect();
    assert_eq!(names, ["main", "outer", "inner"]);
}

#[test]
fn stacks_begin_where_rust_enters_the_program() {
    let mut f = Fixture::new(1);
    let begin = "std::sys::backtrace::__rust_begin_short_backtrace";
    let call = "core::ops::function::FnOnce::call_once";
    let stack = f.stack(&[
        "_start",
        "main",
        "std::rt::lang_start",
        begin,
        call,
        "app::main",
        call,
        "app::f",
    ]);
    f.alloc(stack, 10);
    let early = f.stack(&["_start", "main", begin, "std::rt::init"]);
    f.alloc(early, 10);
    f.report();
    let names: Vec<Vec<String>> = paths(&f.session);
    assert!(names.contains(&vec!["app::main".into(), call.into(), "app::f".into()]), "{names:?}");
    assert_eq!(names.iter().map(Vec::len).max(), Some(3));
}

#[test]
fn stacks_without_program_code_are_said_to_be_so() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["_start", "std::rt::init", "malloc"]);
    f.alloc(stack, 1);
    f.alloc(StackId::OTHER, 2);
    f.alloc(StackId(999), 3);
    f.report();
    assert_eq!(row(&f.session, "std::rt::init (runtime)").figures.in_use_bytes, exact(1.0));
    assert_eq!(row(&f.session, "(other stacks)").figures.in_use_bytes, exact(2.0));
    assert_eq!(row(&f.session, "(undefined callstack)").figures.in_use_bytes, exact(3.0));
}

#[test]
fn stacks_that_were_cut_say_so_at_their_root() {
    use heaptop_protocol::callstack::{Callstack, End};
    let mut f = Fixture::new(1);
    f.name(&["fill"]);
    for (id, end) in [(7, End::Truncated), (8, End::NoUnwindInfo), (9, End::Complete)] {
        let frames = vec![f.frame("fill")];
        f.say(Callstack { id: StackId(id), frames, end });
        f.name(&["fill"]);
        f.alloc(StackId(id), 10);
    }
    f.report();
    assert_eq!(row(&f.session, "fill").figures.in_use_bytes, exact(30.0));
    let mut roots: Vec<String> =
        paths(&f.session).into_iter().map(|mut path| path.swap_remove(0)).collect();
    roots.sort();
    assert_eq!(roots, ["(cut: deeper than is captured)", "(no unwind information)", "fill"]);
}

/// Against the rules of the wire, but nothing may be counted twice.
#[test]
fn a_stack_defined_anew_moves() {
    let mut f = Fixture::new(1);
    let stack = f.stack(&["main", "left"]);
    f.alloc(stack, 10);
    f.report();
    f.name(&["right"]);
    let frames = vec![f.frame("main"), f.frame("right")];
    f.say(Callstack { id: stack, frames, end: End::Complete });
    f.name(&["main", "right"]);
    let rows = table(&f.session).rows;
    assert_eq!(rows.len(), 1);
    assert_eq!((&*rows[0].label.function, rows[0].figures.in_use_bytes), ("right", exact(10.0)));
}

#[test]
fn a_module_defined_anew_renames_bare_frames() {
    let mut f = Fixture::new(1);
    let stack = f.bare_stack(&["main", "jit"]);
    f.alloc(stack, 10);
    f.report();
    f.session.take_wanted_frames();
    let module = f.session.modules()[&ModuleId(1)].clone();
    f.say(heaptop_protocol::callstack::Module { path: "/opt/new\u{7}".into(), ..module });
    let rows = table(&f.session).rows;
    assert!(rows[0].label.function.starts_with("new\u{fffd}+0x"), "{:?}", rows[0].label);
    assert_eq!(f.session.take_wanted_frames().len(), 2, "asked for again");
}

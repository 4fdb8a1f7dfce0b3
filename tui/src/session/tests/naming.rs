//! Names that come late, inlined functions, stacks without a callsite.

use super::*;

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
    let path = &query::stacks(&f.session, &[], query::Metric::InUseBytes, "")[0].0;
    let names: Vec<&str> = path.iter().map(|l| &*l.function).collect();
    assert_eq!(names, ["main", "outer", "inner"]);
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

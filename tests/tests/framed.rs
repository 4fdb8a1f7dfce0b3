//! Callstacks by frame pointers, for a program that was built with them and asks for it:
//! the same as by the tables, except above the C library's own code, which has none.

use heaptop_protocol::callstack::End;
use heaptop_tests::apart;
use heaptop_tests::client::Client;
use heaptop_tests::names::Names;
use heaptop_tests::target::Target;
use std::path::Path;

/// Functions from the root on, and how the callstack ends there.
type Stack = (Vec<String>, End);

/// The callstacks through `three` and through `called_back`.
fn stacks(program: &Path, way: &str) -> [Stack; 2] {
    let name = program.to_str().expect("a path in UTF-8");
    let mut target = Target::start(name, &[], &[("HEAPTOP_UNWIND", way)]);
    target.wait_for("ready");
    let mut client = Client::attach(&target.socket());
    client.snapshot();
    let names = Names::of(&client.told);
    ["three", "called_back"].map(|function| {
        let stack = client.told.stacks.values().find(|s| names.stack(s).contains(&function));
        let stack = stack.unwrap_or_else(|| panic!("{way}: no callstack has {function}"));
        (names.stack(stack).into_iter().map(str::to_owned).collect(), stack.end)
    })
}

#[test]
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
fn frame_pointers_lead_where_tables_do() {
    let program = apart::release("framed", "-C force-frame-pointers=yes").join("fixture-framed");
    let [by_tables, back_by_tables] = stacks(&program, "tables");
    let [by_pointers, back_by_pointers] = stacks(&program, "frame-pointers");
    // Where the callstack begins, in the C library, there are none: its last frames are
    // the program's.
    assert_eq!(by_tables.1, End::Complete);
    let whole = &by_tables.0;
    assert!(whole.ends_with(&by_pointers.0), "{by_pointers:?} is no end of {whole:?}");
    let ends = ["main", "one", "two", "three"];
    let of_ours = |stack: &[String]| -> Vec<String> {
        stack.iter().filter(|f| ends.contains(&&***f)).cloned().collect()
    };
    assert_eq!(of_ours(&by_pointers.0), of_ours(whole));
    assert!(of_ours(whole).ends_with(&ends.map(String::from)), "{whole:?}");

    // qsort uses rbp for what it likes.
    assert_eq!(back_by_tables.1, End::Complete);
    assert!(back_by_tables.0.iter().any(|f| f == "main"), "{back_by_tables:?}");
    assert!(back_by_pointers.0.len() < back_by_tables.0.len(), "{back_by_pointers:?}");
}

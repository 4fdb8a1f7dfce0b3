//! Around other allocators than the system's. Compared with the same binary
//! under `HEAPTOP=off`: what that costs and changes is what it leaves.

use super::worked;
use crate::exact::assert_exact;
use heaptop_tests::run::{Plain, Run};

fn exact_around(allocator: &str, args: &[&str]) {
    let run = Run::of(&format!("fixture-nasty-{allocator}"), args)
        .env("HEAPTOP_INTERVAL", "1")
        .env("HEAPTOP_MEMORY", "512M");
    let (mut target, client, truths) = worked(&run);
    assert_exact(&client.told, &truths);
    let profiled = target.finish().without_truths();
    profiled.assert_same(&run.unprofiled(Plain::Off).to_end().without_truths());
}

fn all_around(allocator: &str) {
    exact_around(allocator, &["race"]);
    exact_around(allocator, &["late-frees"]);
    exact_around(allocator, &["wide"]);
    exact_around(allocator, &["flaky", "3"]);
    exact_around(allocator, &["forks", "50"]);
}

#[test]
fn around_mimalloc() {
    all_around("mimalloc");
}

#[test]
fn around_jemalloc() {
    all_around("jemalloc");
}

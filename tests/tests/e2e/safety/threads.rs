//! Threads: many, many at once, at their very end, with little stack.

use super::{act, ends_as_unprofiled, exact_as_unprofiled, resident_kib, same, started, usual_act};
use crate::exact::{assert_exact, nothing_lost};
use heaptop_tests::client::Client;
use heaptop_tests::truth::Truths;

/// What the agent may grow by from the second round of 2,000 threads to the last:
/// names and numbers, and how far its books are behind. Rings would be ten times that.
const GROWTH_KIB: u64 = 12 << 10;

#[test]
fn ten_thousand_threads_leave_its_memory_flat() {
    let run = act(&["many-threads", "5", "2000"]).input("\n\n\n\n\n\n");
    let mut target = started(&run);
    let mut client = Client::attach(&target.socket());
    let mut after = Vec::new();
    for round in 0..5 {
        target.say("go");
        target.wait_for_line("a round", |line| line.starts_with(&format!("round {round}: ")));
        client.snapshot();
        let agent_kib = client.told.status.unwrap().agent_bytes >> 10;
        after.push((agent_kib, resident_kib(target.pid())));
    }
    target.say("go");
    let truths = Truths::read(&mut target);
    target.wait_for("quiet");
    client.snapshot();
    nothing_lost(&client.told);
    assert_exact(&client.told, &truths);
    // Told once a second, and not all at once.
    client.until("the threads", |told| told.threads.len() >= 10_000);
    let (second, last) = (after[1], after[4]);
    assert!(last.0 <= second.0 + GROWTH_KIB && last.1 <= second.1 + GROWTH_KIB, "{after:?} KiB");
    ends_as_unprofiled(target, &run);
}

#[test]
fn sixty_four_threads_that_free_and_resize_each_others_blocks() {
    exact_as_unprofiled(&["wide"]);
}

#[test]
fn frees_after_all_destructors_of_a_thread() {
    exact_as_unprofiled(&["late-frees"]);
}

#[test]
fn races_of_frees_and_reallocations() {
    let ended = exact_as_unprofiled(&["race"]);
    assert!(ended.stdout.contains("0 damaged"), "{}", ended.stdout);
}

#[test]
fn races_at_the_usual_interval() {
    let run = usual_act(&["race", "100000"]);
    ends_as_unprofiled(started(&run), &run);
}

/// At R = 1, more than it can keep books of: it thins, and loses, and counts.
#[test]
fn races_beyond_the_agents_bound() {
    let run = act(&["race", "30000"]).env("HEAPTOP_MEMORY", "1M");
    let mut target = started(&run);
    let mut client = Client::attach(&target.socket());
    target.say("go");
    target.wait_for("quiet");
    client.snapshot();
    ends_as_unprofiled(target, &run);
}

#[test]
fn threads_with_the_least_stack_have_enough() {
    same(&act(&["small-stacks"]));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn stacks_that_no_table_knows_and_that_end_where_nothing_is_mapped() {
    exact_as_unprofiled(&["bare-stacks"]);
    same(&act(&["bare-stacks"]));
}

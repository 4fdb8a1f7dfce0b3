//! Signal handlers that allocate, wherever they strike; and `errno`.

use super::{act, ends_as_unprofiled, exact_as_unprofiled, same, started, usual_act, worked};
use crate::exact::compare;
use heaptop_tests::names::Names;

#[test]
fn handlers_that_allocate_while_every_block_is_sampled() {
    let run = act(&["alarms"]);
    let (target, client, truths) = worked(&run);
    let totals = Names::of(&client.told).totals(&client.told, &["in_work", "on_signal"]);
    // The threads that were struck have every block.
    assert_eq!(compare(&truths["in_work"], &totals["in_work"]), Vec::<String>::new());
    // The handler's own are seen, unless it has struck inside the agent.
    let (handler, truth) = (&totals["on_signal"], &truths["on_signal"]);
    assert!((1..=truth.allocated_objects).contains(&handler.allocated.n), "{handler:?} {truth:?}");
    assert_eq!(handler.in_use.n, 0);
    ends_as_unprofiled(target, &run);
}

#[test]
fn handlers_that_allocate_at_the_usual_interval() {
    let run = usual_act(&["alarms"]);
    ends_as_unprofiled(started(&run), &run);
}

#[test]
fn handlers_that_fork_and_children_that_go_on() {
    let ended = exact_as_unprofiled(&["forking-handler"]);
    assert!(ended.stdout.contains("all children were well: true"), "{}", ended.stdout);
}

#[test]
fn handlers_that_fork_and_children_that_get_agents_of_their_own() {
    let ended = act(&["forking-handler", "100"]).env("HEAPTOP_FOLLOW", "1").to_end();
    assert!(ended.stdout.contains("all children were well: true"), "{}", ended.stdout);
}

#[test]
fn handlers_that_allocate_while_a_child_gets_its_agent() {
    let ended = same(&usual_act(&["followed-handlers"]).env("HEAPTOP_FOLLOW", "1"));
    assert!(ended.stdout.contains("10 of 10 children were well"), "{}", ended.stdout);
}

#[test]
fn errno_is_left_as_it_was() {
    let ended = same(&act(&["errno"]));
    assert!(ended.stdout.contains("changed [0, 0, 0] times"), "{}", ended.stdout);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calculations_of_the_agents_are_no_exceptions_of_the_programs() {
    for run in [act(&["calculations"]), usual_act(&["calculations"])] {
        for interval in [None, Some("64")] {
            let run = interval.map_or(run.clone(), |r| run.clone().env("HEAPTOP_INTERVAL", r));
            let ended = same(&run.env("HEAPTOP_FOLLOW", "1"));
            assert!(ended.stdout.contains("come up: 0x0\n"), "{}", ended.stdout);
            assert!(ended.stdout.contains("the child ended with 0x700"), "{}", ended.stdout);
        }
    }
}

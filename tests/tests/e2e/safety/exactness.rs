//! Requests of every shape, and an allocator that refuses: all numbers are the
//! program's own.

use super::{act, ends_as_unprofiled, exact_as_unprofiled, same, started, usual_act};

#[test]
fn sizes_alignments_and_reallocations_of_every_kind() {
    exact_as_unprofiled(&["shapes"]);
}

#[test]
fn an_allocator_that_refuses_one_request_in_three() {
    exact_as_unprofiled(&["flaky", "3"]);
}

#[test]
fn an_allocator_that_refuses_nearly_everything() {
    exact_as_unprofiled(&["flaky", "1"]);
    exact_as_unprofiled(&["flaky", "2"]);
}

#[test]
fn refusals_at_the_usual_interval() {
    let run = usual_act(&["flaky", "5"]);
    ends_as_unprofiled(started(&run), &run);
}

#[test]
fn what_c_sees_and_frees_is_as_ever() {
    same(&act(&["c-free"]));
    same(&usual_act(&["c-free"]));
}

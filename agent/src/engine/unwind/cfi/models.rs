//! Threads that look up addresses of one slot of the cache, and one that empties it.

use super::*;
use crate::engine::models::explore;
use loom::thread;

/// Addresses of one slot, and what the tables say about them.
fn crowd() -> [(usize, Rule); 3] {
    let mut found = (0x5555_0000_0000..).filter(|&pc| slot(pc) == 0);
    [(false, 16, Some(-16)), (true, 16, Some(-16)), (false, 0x420, None)].map(
        |(from_rbp, offset, rbp)| (found.next().unwrap_or(0), Rule::new(from_rbp, offset, rbp)),
    )
}

fn ask((pc, rule): (usize, Rule)) {
    assert_eq!(cached(pc, || rule), rule);
}

#[test]
fn no_address_gets_the_rule_of_another() {
    let crowd = crowd();
    explore("cfi: addresses of one slot", 2, move || {
        let one = thread::spawn(move || ask(crowd[0]));
        ask(crowd[1]);
        ask(crowd[2]);
        one.join().unwrap();
        ask(crowd[0]);
    });
}

#[test]
fn forgetting_leaves_no_half_of_a_rule() {
    let crowd = crowd();
    explore("cfi: an address of a slot that is emptied", 2, move || {
        ask(crowd[1]);
        let agent = thread::spawn(forget);
        ask(crowd[0]);
        agent.join().unwrap();
        ask(crowd[0]);
        ask(crowd[1]);
    });
}

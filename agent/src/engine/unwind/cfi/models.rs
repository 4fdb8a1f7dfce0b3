//! Threads that look up addresses of one slot of the cache, while it is emptied.

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

#[test]
fn no_address_gets_the_rule_of_another() {
    let crowd = crowd();
    explore("cfi: addresses of one slot, and forget", 2, move || {
        let ask = move |i: usize| {
            let (pc, rule) = crowd[i];
            assert_eq!(cached(pc, || rule), rule);
        };
        let one = thread::spawn(move || ask(0));
        let agent = thread::spawn(forget);
        ask(1);
        ask(2);
        one.join().unwrap();
        agent.join().unwrap();
        ask(0);
    });
}

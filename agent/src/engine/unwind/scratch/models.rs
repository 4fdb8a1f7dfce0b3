//! Three threads and one stack.

use super::*;
use crate::engine::models::explore;
use crate::engine::unwind::mark;
use loom::cell::UnsafeCell;
use loom::thread;
use std::sync::Arc;

struct Contents(UnsafeCell<u32>);
// SAFETY: that nobody touches it while another does is what the model finds out.
unsafe impl Sync for Contents {}
// SAFETY: a number.
unsafe impl Send for Contents {}

/// Runs on a scratch stack, if one is to be had, and then touches its contents.
fn use_one(contents: &Contents) -> bool {
    run(false, || {
        // Only who has the stack looks where it is.
        let scratch = TAKEN[0].load(Relaxed) && {
            let base = AT[0].load(Relaxed);
            base != 0 && (base..=base + BYTES).contains(&mark().sp)
        };
        if scratch {
            // SAFETY: as above.
            contents.0.with_mut(|number| unsafe { *number += 1 });
        }
        scratch
    })
}

#[test]
fn a_stack_has_one_user_at_a_time() {
    explore("scratch: three threads, one stack", 3, || {
        let contents = Arc::new(Contents(UnsafeCell::new(0)));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let contents = contents.clone();
                thread::spawn(move || u32::from(use_one(&contents)))
            })
            .collect();
        let mut uses = u32::from(use_one(&contents));
        for other in others {
            uses += other.join().unwrap();
        }
        // Whoever comes when it is free gets it.
        assert!(use_one(&contents) && uses >= 1);
        // SAFETY: all are done.
        contents.0.with(|number| assert_eq!(unsafe { *number }, uses + 1));
        // SAFETY: nobody is on it, and the next run maps its own.
        unsafe { libc::munmap(AT[0].load(Relaxed) as *mut c_void, BYTES) };
    });
}

//! Profiles and who samples for them: rows 12 to 15, 17, 19.

use crate::help::{Told, adds_up, block, exact, logged, prompt, turn, until};
use heaptop_agent::memprof::{
    Config, DiscardError, JoinError, LeaveError, Profile, Scope, StartError, Status, StopError,
    Tracker, current, leave, start, suspended,
};
use std::sync::mpsc;

struct Nothing;
impl Tracker for Nothing {
    type Minor = ();
    type Major = ();
}

fn process() -> Config {
    Config::lambda(1.0).unwrap().scope(Scope::Process)
}

#[test]
fn row_12_one_profile_samples_in_a_domain_at_a_time() {
    let _alone = crate::help::alone();
    let (first, log) = logged(exact(), &[1200]);
    assert_eq!(start(exact(), Nothing).err(), Some(StartError::AlreadySampling));
    assert_eq!(start(process(), Nothing).err(), Some(StartError::AlreadySampling));
    // In another thread another profile, at the same time; and the stream beside them.
    let other = std::thread::spawn(|| {
        let (other, log) = logged(exact(), &[1200]);
        drop(block(1200));
        other.poll();
        log.take_ends().len()
    });
    assert_eq!(other.join().unwrap(), 2);
    drop(block(1200));
    first.poll();
    assert_eq!(log.take_ends().len(), 2);
    // Two profiles of the process do not go together either.
    first.stop().unwrap();
    let second = start(process(), Nothing).unwrap();
    let third = std::thread::spawn(|| start(process(), Nothing).err()).join().unwrap();
    assert_eq!(third, Some(StartError::AlreadySampling));
    assert_eq!(start(exact(), Nothing).err(), Some(StartError::AlreadySampling));
    drop(second);
    assert!(start(exact(), Nothing).is_ok());
}

#[test]
fn row_13_after_stop_deaths_and_promotions_go_on() {
    let _beside = crate::help::beside();
    let (first, log) = logged(exact(), &[1300]);
    let kept: Vec<_> = (0..10).map(|_| block(1300)).collect();
    first.poll();
    log.take();
    first.stop().unwrap();
    let unseen = block(1300);
    // While another profile samples.
    let (second, _) = logged(exact(), &[1]);
    turn();
    first.poll();
    drop((kept, unseen));
    first.poll();
    let told = log.take();
    let count = |f: fn(&Told) -> bool| told.iter().filter(|t| f(t)).count();
    assert_eq!(count(|t| matches!(t, Told::Alloc { .. })), 0, "nothing more is sampled");
    assert_eq!(count(|t| matches!(t, Told::Promote { .. })), 10);
    assert_eq!(count(|t| matches!(t, Told::Dealloc { major: true, .. })), 10);
    adds_up(&first.stats());
    drop(second);
}

#[test]
fn row_14_states_that_do_not_follow_are_errors() {
    let _beside = crate::help::beside();
    let (profile, _) = logged(exact(), &[1400]);
    assert_eq!(profile.discard(), Err(DiscardError::StillSampling));
    assert_eq!(profile.status(), Status::Sampling);
    assert_eq!(profile.stop(), Ok(()));
    assert_eq!(profile.stop(), Err(StopError::NotSampling));
    assert_eq!(profile.status(), Status::Stopped);
    assert_eq!(profile.discard(), Ok(()));
    assert_eq!(profile.discard(), Err(DiscardError::AlreadyDiscarded));
    assert_eq!(profile.stop(), Err(StopError::NotSampling));
    assert_eq!(profile.status(), Status::Discarded);
    assert!(StopError::NotSampling.to_string().contains("stopped before"));
}

#[test]
fn row_15_a_thread_that_is_spawned_inherits_the_profile() {
    let _alone = crate::help::alone();
    let (profile, log) = logged(exact(), &[1500, 1501, 1502]);
    let inherits = heaptop_agent::spawn(|| {
        drop(block(1500));
        // And so on.
        heaptop_agent::spawn(|| drop(block(1501))).join().unwrap();
    });
    inherits.join().unwrap();
    std::thread::spawn(|| drop(block(1502))).join().unwrap();
    profile.poll();
    let sizes = |log: &crate::help::Log| {
        let mut sizes = Vec::new();
        for t in log.take() {
            if let Told::Alloc { size, .. } = t {
                sizes.push(size);
            }
        }
        sizes
    };
    assert_eq!(sizes(&log), [1500, 1501], "and no thread that is not spawned so");
    drop(profile);

    let (go, goes) = mpsc::channel::<()>();
    let before = std::thread::spawn(move || {
        goes.recv().unwrap();
        // A thread that was there is reached within 64 KiB of allocations.
        (0..100).for_each(|_| drop(block(1000)));
        drop(block(1501));
    });
    let (profile, log) = logged(process(), &[1500, 1501, 1502]);
    go.send(()).unwrap();
    before.join().unwrap();
    std::thread::spawn(|| drop(block(1502))).join().unwrap();
    drop(block(1500));
    profile.poll();
    let mut sizes = sizes(&log);
    sizes.sort_unstable();
    // Tests beside this one may have blocks of such sizes too.
    sizes.dedup();
    assert_eq!(sizes, [1500, 1501, 1502], "all threads, present and future");
}

#[test]
fn row_17_what_is_discarded_is_dropped_without_callbacks() {
    let _beside = crate::help::beside();
    for config in [exact(), prompt()] {
        let (profile, log) = logged(config, &[1700]);
        let kept: Vec<_> = (0..25).map(|_| block(1700)).collect();
        profile.poll();
        assert_eq!(log.take_ends().len(), 25);
        let unpolled = block(1700);
        log.take();
        profile.stop().unwrap();
        profile.discard().unwrap();
        let dropped = log.dropped();
        assert!(dropped == 25 || dropped == 26, "{dropped} values are dropped");
        drop((kept, unpolled));
        turn();
        assert_eq!((profile.poll(), log.take_ends().len()), (0, 0));
        let stats = profile.stats();
        assert_eq!(stats.live, 0);
        assert_eq!(stats.discarded, dropped, "{stats:?}");
        adds_up(&stats);
    }
}

#[test]
fn row_19_join_current_leave_suspended_status_stats() {
    let _alone = crate::help::alone();
    assert!(current().is_none());
    assert_eq!(leave(), Err(LeaveError::NotSampling));
    let (profile, log) = logged(exact(), &[1900]);
    let same = |a: &Profile, b: &Profile| format!("{a:?}") == format!("{b:?}");
    assert!(current().is_some_and(|p| same(&p, &profile)));
    suspended(|| {
        drop(block(1900));
        // Also within each other.
        suspended(|| drop(block(1900)));
        drop(block(1900));
    });
    profile.poll();
    assert_eq!(log.take_ends().len(), 0, "nothing while it is suspended");
    drop(block(1900));
    profile.poll();
    assert_eq!(log.take_ends().len(), 2);
    leave().unwrap();
    assert!(current().is_none());
    drop(block(1900));
    assert_eq!(profile.status(), Status::Sampling, "it samples others still");
    let joined = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                profile.join().unwrap();
                let twice = profile.join();
                drop(block(1900));
                twice
            })
            .join()
            .unwrap()
    });
    assert_eq!(joined, Err(JoinError::AlreadySampling));
    profile.poll();
    assert_eq!(log.take_ends().len(), 2, "of the thread that joined alone");
    profile.stop().unwrap();
    assert_eq!(profile.join(), Err(JoinError::NotSampling));
    let stats = profile.stats();
    assert_eq!((stats.tracked, stats.deallocated, stats.live), (2, 2, 0));
    assert!(stats.callbacks >= 4 && stats.engine_bytes > 0, "{stats:?}");
    adds_up(&stats);
    drop(profile);

    // A thread that has left the process's profile is apart until that is over.
    let (profile, log) = logged(process(), &[1919]);
    drop(block(1919));
    leave().unwrap();
    drop(block(1919));
    profile.poll();
    assert_eq!(log.take_ends().len(), 2);
    profile.join().unwrap();
    drop(block(1919));
    profile.poll();
    assert_eq!(log.take_ends().len(), 2, "it may come back");
    until("it polls", || profile.poll() == 0);
}

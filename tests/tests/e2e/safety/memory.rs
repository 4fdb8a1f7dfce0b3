//! Where the system gives no more memory: the program gets what it would have
//! got, but for what the agent holds, which is bounded; and it does not end for it.

use super::{NOBODY, act, ends_as_unprofiled, is_root, resident_kib, same, started, usual_act};
use heaptop_tests::client::Client;
use heaptop_tests::run::{Plain, Run};

/// What the agent takes of a process's address space besides its region, at most:
/// its thread's stack, its scratch stacks, its own heap, its code and statics.
const BESIDES_MIB: u64 = 10;
/// The region is at most this part of the address space that a process may have.
const SHARE: u64 = 16;

#[test]
fn under_a_limit_on_address_space_it_gets_nearly_as_far() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mib");
    let got = || std::fs::read_to_string(&path).unwrap().parse::<u64>().unwrap();
    for mib in [32, 48, 64, 72, 80, 100, 160, 300] {
        let run = usual_act(&["hoard", path.to_str().unwrap()]).limit(libc::RLIMIT_AS, mib << 20);
        let plain = run.unprofiled(Plain::Twin).to_end();
        let unprofiled = got();
        run.to_end().assert_same(&plain);
        assert!(plain.status.success(), "{} under {mib} MiB", plain.status);
        let bound = mib / SHARE + BESIDES_MIB;
        assert!(got() + bound >= unprofiled, "{} of {unprofiled} MiB under {mib}", got());
    }
}

/// All that the program can have it has, and the agent needs more.
#[test]
fn an_agent_that_finds_no_memory_waits_for_it() {
    for interval in ["1", "1K", "512K"] {
        let run = act(&["starve"])
            .env("HEAPTOP_INTERVAL", interval)
            .env("HEAPTOP_MEMORY", "4M")
            .limit(libc::RLIMIT_AS, 48 << 20);
        let mut target = started(&run);
        let mut client = Client::greet(&target.socket(), heaptop_protocol::VERSION);
        target.say("go");
        target.wait_for("took all: true");
        target.say("go");
        target.wait_for("worked without memory");
        target.say("go");
        target.wait_for("quiet");
        // There is memory again: it goes on where it was.
        client.until("the first snapshot", |told| told.ended > 0);
        client.snapshot();
        ends_as_unprofiled(target, &run);
    }
}

/// The usual limit on memory that may be locked. The system compares it with all
/// address space, touched or not.
const USUAL_LOCK: u64 = 8 << 20;

#[test]
fn a_small_program_locks_its_memory_beside_the_smallest_agent() {
    if !is_root() {
        return;
    }
    let run = Run::of("fixture-exits", &["3", "lock"])
        .env("HEAPTOP_MEMORY", "1M")
        // The code of a build without optimisation takes the room that glibc's heap would
        // hold ahead.
        .env("MALLOC_TOP_PAD_", "0")
        .limit(libc::RLIMIT_MEMLOCK, USUAL_LOCK)
        .user(NOBODY);
    let mut target = started(&run);
    let mut client = Client::attach(&target.socket());
    client.snapshot();
    let locked = target.finish();
    assert_eq!(locked.stdout, "locked: true\nready\n");
    locked.assert_same(&run.unprofiled(Plain::Off).to_end());
}

/// By a user who may lock as much as he likes. Under a limit, which the system
/// compares with all address space, the agent's counts as well.
#[test]
fn a_program_that_locks_all_its_memory_holds_the_agents_too_and_no_more() {
    let bound = 4;
    let run = act(&["lock"]).env("HEAPTOP_MEMORY", &format!("{bound}M"));
    let locked = run.unprofiled(Plain::Twin).to_end().stdout.contains("locked: true");
    if !locked || !is_root() {
        eprintln!("this test needs to lock memory: nothing was tested");
        return;
    }
    same(&run);
    let resident = |run: &_| {
        let mut target = started(run);
        target.say("go");
        target.wait_for_line("the outcome", |line| line.starts_with("locked: true"));
        target.wait_for("quiet");
        resident_kib(target.pid())
    };
    let (profiled, plain) = (resident(&run), resident(&run.unprofiled(Plain::Twin)));
    let more = (bound + BESIDES_MIB) << 10;
    assert!(profiled <= plain + more, "{profiled} KiB, unprofiled {plain} KiB");
}

#[test]
fn a_user_who_may_have_no_thread_has_a_program_all_the_same() {
    if !is_root() {
        return;
    }
    // Of one process: that is the program's own.
    let run = usual_act(&["work"]).user(NOBODY).limit(libc::RLIMIT_NPROC, 1);
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let reason = directory.path().join("reason");
    let ended = same(&run.env("NASTY_REASON", reason.to_str().unwrap()));
    assert_eq!(ended.stderr, "");
    let reason = std::fs::read_to_string(reason).unwrap();
    assert!(reason.contains("refused the agent's thread"), "it had its thread: {reason:?}");
}

#[test]
fn a_program_that_may_write_no_large_file_gets_no_signal() {
    same(&usual_act(&["work"]).limit(libc::RLIMIT_FSIZE, 1 << 20));
}

#[test]
fn a_service_that_drops_its_privileges_drops_all() {
    if !is_root() {
        return;
    }
    let run = act(&["drop-privileges"]);
    let mut target = started(&run);
    let mut client = Client::attach(&target.socket());
    target.say("go");
    target.wait_for_line("all", |line| line.starts_with("dropped (0, 0), all threads: true"));
    target.wait_for("quiet");
    client.snapshot();
    ends_as_unprofiled(target, &run);
}

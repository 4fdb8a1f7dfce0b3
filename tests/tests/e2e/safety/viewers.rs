//! Viewers that are stopped, killed, slow: the target does not notice.

use super::{act, ends_as_unprofiled, started};
use crate::exact::{assert_exact, nothing_lost};
use heaptop_tests::client::Client;
use heaptop_tests::run::Run;
use heaptop_tests::target::Target;
use heaptop_tests::terminal::Terminal;
use heaptop_tests::truth::Truths;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// More events than sockets and buffers hold.
fn much_work() -> Run {
    act(&["race", "40000"])
}

fn signal(viewer: &Terminal, signal: i32) {
    let pid = viewer.pid().expect("the viewer runs").cast_signed();
    // SAFETY: kill reads no memory; the pid is our child's, not yet reaped.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Has the target do its work, and compares its numbers as a new client sees them.
fn works(target: &mut Target) {
    target.say("go");
    let truths = Truths::read(target);
    target.wait_for("quiet");
    let mut client = Client::attach(&target.socket());
    client.snapshot();
    nothing_lost(&client.told);
    assert_exact(&client.told, &truths);
}

#[test]
fn a_viewer_that_is_stopped_and_goes_on() {
    let run = much_work();
    let mut target = started(&run);
    let viewer = Terminal::viewer(target.directory(), &[]);
    viewer.wait_for("all callsites");
    signal(&viewer, libc::SIGSTOP);
    works(&mut target);
    signal(&viewer, libc::SIGCONT);
    // It sees what went on without it.
    viewer.wait_for("Block::ask");
    ends_as_unprofiled(target, &run);
}

#[test]
fn a_viewer_that_is_killed_while_stopped() {
    let run = much_work();
    let mut target = started(&run);
    let viewer = Terminal::viewer(target.directory(), &[]);
    viewer.wait_for("all callsites");
    signal(&viewer, libc::SIGSTOP);
    target.say("go");
    signal(&viewer, libc::SIGKILL);
    drop(viewer);
    target.wait_for("quiet");
    drop(Client::attach(&target.socket()));
    ends_as_unprofiled(target, &run);
}

#[test]
fn a_viewer_that_reads_a_few_bytes_a_second() {
    let run = much_work();
    let mut target = started(&run);
    let slow: Vec<Client> = (0..4).map(|_| Client::attach(&target.socket())).collect();
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = Vec::new();
    for client in slow {
        let mut stream: UnixStream = client.into_stream();
        let done = Arc::clone(&done);
        readers.push(std::thread::spawn(move || {
            while !done.load(Relaxed) {
                // An error is a time-out: there is nothing.
                let _ = stream.read(&mut [0; 7]);
                std::thread::sleep(Duration::from_millis(100));
            }
        }));
    }
    works(&mut target);
    done.store(true, Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    ends_as_unprofiled(target, &run);
}

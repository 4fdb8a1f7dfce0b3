//! Peers that send what no viewer would, while the program works.

use super::{ends_as_unprofiled, resident_kib, started, usual_act};
use heaptop_protocol::VERSION;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::message::{
    FromViewer, MAGIC, ProfileCommand, SetInterval, SetMark, SetSampling, ViewerHello, WantSnapshot,
};
use heaptop_tests::client::Client;
use heaptop_tests::target::Target;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Most that the agent may hold for sixteen of them: what waits for each, and a
/// frame that has come in part.
const HELD_KIB: u64 = (16 * 8) << 10;

/// Runs `rude` on a thread, over and over, while a target works; the target must
/// end as it would, and serve a viewer at the end.
fn while_it_works(rude: impl Fn(&Target, usize) + Sync) {
    let run = usual_act(&["race", "60000"]);
    let mut target = started(&run);
    let done = AtomicBool::new(false);
    target.say("go");
    let before = resident_kib(target.pid());
    std::thread::scope(|scope| {
        let (target, done, rude) = (&target, &done, &rude);
        let peers = scope.spawn(move || {
            for i in 0.. {
                rude(target, i);
                if done.load(Relaxed) && i > 100 {
                    break;
                }
            }
        });
        done.store(true, Relaxed);
        peers.join().unwrap();
    });
    target.wait_for("quiet");
    let grown = resident_kib(target.pid()).saturating_sub(before);
    assert!(grown < HELD_KIB, "{grown} KiB");
    Client::attach(&target.socket()).snapshot();
    ends_as_unprofiled(target, &run);
}

fn connect(target: &Target) -> UnixStream {
    let stream = UnixStream::connect(target.socket()).expect("it listens");
    // What is not taken need not be sent.
    stream.set_nonblocking(true).expect("it can be made non-blocking");
    stream
}

fn bytes(messages: &[FromViewer]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let hello = ViewerHello { magic: MAGIC, version: VERSION, client: "a test".into() };
    assert!(FromViewer::from(hello).write(&mut bytes));
    for message in messages {
        assert!(message.write(&mut bytes));
    }
    bytes
}

#[test]
fn garbage_and_halves_of_frames() {
    let sound = bytes(&[WantSnapshot {}.into()]);
    while_it_works(|target, i| {
        let mut stream = connect(target);
        let noise: Vec<u8> = (0..1000usize).map(|b| ((b * i * 2_654_435_761) >> 7) as u8).collect();
        let _ = match i % 3 {
            0 => stream.write(&noise),
            1 => stream.write(&sound[..i % sound.len()]),
            _ => stream.write(&sound).and_then(|_| stream.write(&noise)),
        };
    });
}

#[test]
fn lengths_that_cannot_be_and_frames_that_never_end() {
    while_it_works(|target, i| {
        let mut stream = connect(target);
        let mut sound = bytes(&[]);
        let length: u32 = [u32::MAX, 4 << 20, (4 << 20) + 1, i32::MAX as u32][i % 4];
        sound.extend(length.to_le_bytes());
        sound.extend([0; 4]);
        let _ = stream.write_all(&sound).and_then(|()| stream.write_all(&vec![7; 100_000]));
    });
}

#[test]
fn floods_of_commands() {
    let mut commands: Vec<FromViewer> = Vec::new();
    for n in 0..200u64 {
        let interval = Interval::new(1 + n * 7919 % 100_000);
        commands.push(SetInterval { interval }.into());
        commands.push(SetSampling { on: n % 2 == 0 }.into());
        commands.push(WantSnapshot {}.into());
        commands.push(SetMark { label: "m".repeat(1000) }.into());
        commands.push(FromViewer::Profile(match n % 3 {
            0 => ProfileCommand::Start,
            1 => ProfileCommand::Stop,
            _ => ProfileCommand::Discard,
        }));
    }
    let flood = bytes(&commands);
    while_it_works(|target, i| {
        let mut stream = connect(target);
        for _ in 0..=i % 4 {
            let _ = stream.write(&flood);
        }
    });
}

#[test]
fn more_of_them_than_it_serves() {
    let sound = bytes(&[WantSnapshot {}.into()]);
    while_it_works(|target, i| {
        let crowd: Vec<UnixStream> =
            (0..=i % 40).map_while(|_| UnixStream::connect(target.socket()).ok()).collect();
        for mut stream in crowd {
            stream.set_nonblocking(true).expect("it can be made non-blocking");
            let _ = stream.write(&sound);
        }
    });
}

//! A program that links the agent, seen from its own socket: threads that allocate, grow,
//! hand over and free, a fork, stacks with little room. At R = 1, what lives is told
//! exactly. Needs no viewer, so that it runs under sanitizers too: `tests/sanitize`.

use heaptop_agent::Heaptop;
use heaptop_protocol::VERSION;
use heaptop_protocol::frame::Reader;
use heaptop_protocol::message::{FromAgent, FromViewer, MAGIC, ViewerHello, WantSnapshot};
use std::alloc::System;
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, exit};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOC: Heaptop<System> = Heaptop::system();

const THREADS: usize = 3;
const BLOCKS: usize = 400;
/// Sizes that nothing else here has: as born, and as grown.
const BORN: usize = 7_001;
const GROWN: usize = 9_003;
const SMALL_STACK: usize = 5_009;
/// A guard, not a bound: a machine under load takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() {
    // The agent starts before `main`, so its environment is made by a parent.
    if std::env::var_os("HEAPTOP_DIR").is_some() {
        program();
        return;
    }
    let directory = std::env::temp_dir().join(format!("htl{}", std::process::id()));
    std::fs::DirBuilder::new().mode(0o700).create(&directory).expect("a directory can be made");
    let own = std::env::current_exe().expect("a program has a path");
    let status = Command::new(own)
        .envs([("HEAPTOP_INTERVAL", "1"), ("HEAPTOP_MEMORY", "64M"), ("HEAPTOP", "on")])
        .env("HEAPTOP_DIR", &directory)
        .status();
    let _ = std::fs::remove_dir_all(&directory);
    let status = status.expect("it can be started");
    assert!(status.success(), "{status}");
    println!("test result: ok. 1 passed; 0 failed");
    exit(0);
}

#[inline(never)]
fn block(bytes: usize) -> Vec<u8> {
    let mut block = Vec::with_capacity(bytes);
    block.push(1);
    black_box(block)
}

fn program() {
    let socket = heaptop_agent::start().expect("the agent is there");
    let (hand, taken) = mpsc::channel::<Vec<u8>>();
    // Frees what others made, while they make more.
    let frees = thread::spawn(move || taken.iter().map(|b| b.len()).sum::<usize>());
    let makers: Vec<_> = (0..THREADS)
        .map(|_| {
            let hand = hand.clone();
            thread::spawn(move || {
                let mut kept = Vec::new();
                for i in 0..BLOCKS {
                    let mut block = block(BORN);
                    match i % 4 {
                        0 => hand.send(block).expect("somebody frees"),
                        1 => drop(block),
                        2 => {
                            block.reserve_exact(GROWN - 1);
                            kept.push(block);
                        }
                        _ => kept.push(block),
                    }
                }
                kept
            })
        })
        .collect();
    drop(hand);
    let mut kept: Vec<Vec<u8>> = Vec::new();
    for maker in makers {
        kept.extend(maker.join().expect("no thread fails"));
    }
    assert_eq!(frees.join().expect("no thread fails"), THREADS * BLOCKS / 4);
    let narrow = thread::Builder::new().stack_size(32 << 10);
    kept.push(narrow.spawn(|| block(SMALL_STACK)).expect("it starts").join().expect("it ends"));
    fork();
    let truth = BTreeMap::from([
        (BORN, THREADS * BLOCKS / 4),
        (GROWN, THREADS * BLOCKS / 4),
        (SMALL_STACK, 1),
    ]);
    Client::new(socket).see(&truth);
    drop(black_box(kept));
}

/// A child that allocates, and frees what was its parent's.
fn fork() {
    let before = block(BORN);
    // SAFETY: the child uses the allocator, whose locks the system keeps sound over a
    // fork, and leaves.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        drop(before);
        drop((0..100).map(|_| block(BORN)).collect::<Vec<_>>());
        // SAFETY: leaves, without what `exit` does for the parent.
        unsafe { libc::_exit(0) };
    }
    let mut status = -1;
    // SAFETY: the status is valid for writing.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0), "the child is none the worse");
}

/// What one snapshot says of the sizes that are asked about.
#[derive(Default)]
struct Seen {
    by_size: BTreeMap<usize, usize>,
    stacks: Vec<u32>,
}

struct Client {
    stream: UnixStream,
    reader: Reader,
    /// Frames by callstack.
    depths: HashMap<u32, usize>,
}

impl Client {
    fn new(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the agent listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut client = Self { stream, reader: Reader::default(), depths: HashMap::new() };
        assert!(matches!(client.next(), FromAgent::Hello(_)), "the agent greets first");
        let client_name = "tests/linked".into();
        client.say(&ViewerHello { magic: MAGIC, version: VERSION, client: client_name }.into());
        client
    }

    fn say(&mut self, message: &FromViewer) {
        let mut bytes = Vec::new();
        assert!(message.write(&mut bytes));
        self.stream.write_all(&bytes).expect("the agent reads");
    }

    fn next(&mut self) -> FromAgent {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(frame) = self.reader.next().expect("the stream is sound") {
                if let Some(message) = FromAgent::read(&frame).expect("the message is sound") {
                    return message;
                }
                continue;
            }
            let n = self.stream.read(&mut buffer).expect("the agent speaks");
            assert!(n > 0, "the agent hung up");
            self.reader.feed(&buffer[..n]);
        }
    }

    fn snapshot(&mut self, sizes: &BTreeMap<usize, usize>) -> Seen {
        self.say(&WantSnapshot {}.into());
        let mut seen = Seen::default();
        loop {
            match self.next() {
                FromAgent::SnapshotBegin(_) => seen = Seen::default(),
                FromAgent::SnapshotBlocks(listed) => {
                    for block in listed.blocks {
                        let size = block.size as usize;
                        if sizes.contains_key(&size) {
                            *seen.by_size.entry(size).or_default() += 1;
                            seen.stacks.push(block.stack.0);
                        }
                    }
                }
                FromAgent::Stack(stack) => {
                    self.depths.insert(stack.id.0, stack.frames.len());
                }
                FromAgent::SnapshotEnd(_) => return seen,
                FromAgent::Stopped(stopped) => panic!("{}", stopped.reason),
                _ => {}
            }
        }
    }

    /// Waits until the agent tells what is true.
    fn see(&mut self, truth: &BTreeMap<usize, usize>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.snapshot(truth);
            if seen.by_size == *truth {
                for stack in seen.stacks {
                    let depth = self.depths.get(&stack).copied().unwrap_or(0);
                    assert!((4..64).contains(&depth), "a callstack of {depth} frames");
                }
                return;
            }
            assert!(Instant::now() < deadline, "told {:?}, truth {truth:?}", seen.by_size);
        }
    }
}

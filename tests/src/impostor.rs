//! A peer that is no agent: it listens where one would, and says whatever a test
//! wants said. Its pid is the test's own.

use crate::target::socket_directory;
use heaptop_protocol::VERSION;
use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::endpoint;
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::Moment;
use heaptop_protocol::ids::{ModuleId, StackId};
use heaptop_protocol::message::{
    AgentKind, FromAgent, Hello, Losses, MAGIC, Sampling, SnapshotBegin, SnapshotEnd, Status,
    TotalsUpdate,
};
use heaptop_protocol::totals::{StackTotals, Total, Totals};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// It listens until the test ends.
pub struct Impostor {
    directory: TempDir,
    socket: PathBuf,
}

impl Impostor {
    /// Listens, and gives each connection to `talk`, on a thread of its own, with its
    /// number, from 0 on. What `talk` returns is kept open.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    #[must_use]
    pub fn start(talk: impl Fn(usize, &mut UnixStream) + Send + Sync + 'static) -> Self {
        let directory = socket_directory();
        let socket = endpoint::socket(directory.path(), std::process::id());
        let listener = UnixListener::bind(&socket).expect("a socket in a new directory");
        let talk = std::sync::Arc::new(talk);
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let (Ok(mut stream), talk) = (stream, std::sync::Arc::clone(&talk)) else { return };
                std::thread::spawn(move || {
                    talk(number, &mut stream);
                    // Open until the other end has enough of it.
                    let _ = std::io::copy(&mut stream, &mut std::io::sink());
                });
            }
        });
        Self { directory, socket }
    }

    /// Where sockets lie.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

/// Messages as bytes.
///
/// # Panics
///
/// When one is larger than a frame may be.
#[must_use]
pub fn bytes(messages: &[FromAgent]) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        assert!(message.write(&mut out), "it fits into a frame");
    }
    out
}

/// A greeting.
#[must_use]
pub fn hello(name: &str) -> Hello {
    Hello {
        magic: MAGIC,
        version: VERSION,
        agent_version: "0.0.0".into(),
        kind: AgentKind::Linked,
        name: name.into(),
        pid: std::process::id(),
        uptime_ns: 60_000_000_000,
        started_unix_ns: 1_700_000_000_000_000_000,
        nursery_bytes: 2 << 20,
        phase_bytes: 0,
        max_young_bytes: 2 << 10,
        track: heaptop_protocol::message::Track::All,
        depth: 128,
        memory_bound_bytes: 64 << 20,
        notices: Vec::new(),
    }
}

/// The moment of event `seq`.
#[must_use]
pub const fn moment(seq: u64) -> Moment {
    Moment { seq, time_ns: 60_000_000_000 + seq * 1_000_000, clock: 1 << 30 }
}

/// `blocks` live sampled blocks of 4 KiB at R = 1 KiB: 4 KiB each and a little more.
#[must_use]
pub fn totals(blocks: u64) -> Totals {
    let weight = Interval::new(1 << 10).map(|r| r.weight(4 << 10)).unwrap_or_default();
    let mut total = Total::default();
    (0..blocks).for_each(|_| total.add(&weight));
    Totals { in_use: total, allocated: total, ..Totals::default() }
}

/// A status as of event `seq`.
#[must_use]
pub fn status(seq: u64, totals: Totals) -> Status {
    Status {
        at: moment(seq),
        cycle: 0,
        sampling: Sampling::On,
        interval: Interval::new(1 << 10).unwrap_or(Interval::DEFAULT),
        coarsest: Interval::new(1 << 10).unwrap_or(Interval::DEFAULT),
        governed: false,
        gap: false,
        samples: totals.allocated.n,
        totals,
        live_blocks: totals.in_use.n,
        rss_bytes: Some(100 << 20),
        agent_bytes: 1 << 20,
        agent_cpu_ns: 0,
        process_cpu_ns: 0,
        losses: Losses::default(),
    }
}

/// Greeting and figures of a target called `impostor` with one callsite,
/// `program+0x1000`, which holds a hundred blocks.
#[must_use]
pub fn story() -> Vec<FromAgent> {
    let module = Module {
        id: ModuleId(1),
        path: "/nowhere/program".into(),
        build_id: vec![1],
        load_bias: 0,
        range: (0x1000, 0x10_0000),
    };
    let frames = vec![Frame { module: ModuleId(1), offset: 0x1000 }];
    let totals = totals(100);
    vec![
        hello("impostor").into(),
        module.into(),
        Callstack { id: StackId(1), frames, end: End::Complete }.into(),
        SnapshotBegin { at: moment(1) }.into(),
        SnapshotEnd { at: moment(2), blocks: 0 }.into(),
        TotalsUpdate { at: moment(2), stacks: vec![StackTotals { stack: StackId(1), totals }] }
            .into(),
        status(2, totals).into(),
    ]
}

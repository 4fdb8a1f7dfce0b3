//! An agent for tests: a thread that listens and behaves, or does not.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heaptop_protocol::callstack::{Callstack, End, Frame, Module};
use heaptop_protocol::estimate::Interval;
use heaptop_protocol::event::{Alloc, Batch, Cause, Event, Moment};
use heaptop_protocol::frame;
use heaptop_protocol::ids::{ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{
    AgentKind, FromAgent, FromViewer, Hello, Losses, MAGIC, Sampling, Status, TotalsUpdate,
};
use heaptop_protocol::totals::{StackTotals, Totals};
use heaptop_protocol::{VERSION, Version};
use interprocess::local_socket::traits::{ListenerExt, Stream as _};
use interprocess::local_socket::{GenericFilePath, ListenerOptions, Stream, ToFsName};

pub(super) const NAME: &str = "fake";
pub(super) const SAMPLES: u64 = 17;

/// What it does to those who call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Greets, speaks, listens until the viewer goes.
    Normal,
    /// Bytes that are nothing.
    Garbage,
    /// Half of the greeting, then the end.
    HalfHello,
    /// A length no frame may have.
    HugeLength,
    /// A greeting of another version.
    WrongVersion,
    /// A message that is no greeting.
    NoHello,
    /// Nothing.
    Silent,
    /// A byte at a time, slowly.
    Drip,
    /// A long message, a byte at a time, without a pause.
    Trickle,
    /// The end at once.
    ClosesEarly,
    /// All as it should be, then a damaged frame.
    DamagedLater,
    /// All as it should be, then half a frame and the end.
    HalfLater,
    /// All as it should be, then a kind that nobody knows.
    UnknownKind,
    /// Greets and speaks, then the end, at the first call; later as `Normal`.
    ClosesOnce,
    /// As it should be, after two thirds of a second.
    Slow,
    /// As it should be, once so many are called.
    Together(usize),
    /// Sends without end, and counts.
    Floods,
    /// As it should be, of a program whose file was replaced under it.
    Replaced,
}

/// The running agent. Dropping it ends it and removes its socket.
pub(crate) struct Fake {
    over: Arc<AtomicBool>,
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
    /// What viewers said.
    pub(super) heard: Receiver<FromViewer>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        // Wakes the one that accepts.
        let _ = std::os::unix::net::UnixStream::connect(&self.path);
        let _ = self.thread.take().map(JoinHandle::join);
        let _ = std::fs::remove_file(&self.path);
    }
}

pub(crate) fn serve(path: &Path, behaviour: Behaviour) -> Fake {
    let name = path.to_path_buf().to_fs_name::<GenericFilePath>().unwrap();
    let listener = ListenerOptions::new().name(name).create_sync().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let (say, heard) = channel();
    let shared = Arc::clone(&over);
    let thread = std::thread::spawn(move || {
        for (call, stream) in listener.incoming().enumerate() {
            if shared.load(SeqCst) {
                return;
            }
            let (say, over) = (say.clone(), Arc::clone(&shared));
            // Not joined: it ends when the viewer or the agent does.
            std::thread::spawn(move || converse(&stream.unwrap(), behaviour, call, &say, &over));
        }
    });
    Fake { over, path: path.into(), thread: Some(thread), heard }
}

pub(crate) fn hello() -> Hello {
    Hello {
        magic: MAGIC,
        version: VERSION,
        agent_version: "0".into(),
        kind: AgentKind::Linked,
        name: NAME.into(),
        pid: 1,
        uptime_ns: 65_000_000_000,
        started_unix_ns: 0,
        nursery_bytes: 2 << 20,
        phase_bytes: 0,
        max_young_bytes: 2048,
        track: heaptop_protocol::message::Track::All,
        depth: 128,
        memory_bound_bytes: 64 << 20,
        notices: vec![],
    }
}

/// A conversation's messages behind the greeting.
pub(crate) fn script() -> Vec<FromAgent> {
    let at = Moment { seq: 1, time_ns: 5, clock: 100 };
    let frames = vec![Frame { module: ModuleId(1), offset: 0x10 }];
    let mut totals = Totals::default();
    totals.in_use.add(&Interval::DEFAULT.weight(4096));
    let status = Status {
        at,
        cycle: 0,
        sampling: Sampling::On,
        interval: Interval::DEFAULT,
        coarsest: Interval::DEFAULT,
        governed: false,
        gap: false,
        samples: SAMPLES,
        totals,
        live_blocks: 1,
        rss_bytes: None,
        agent_bytes: 0,
        agent_cpu_ns: 0,
        process_cpu_ns: 0,
        losses: Losses::default(),
    };
    let born = Event::Alloc(Alloc {
        at,
        thread: ThreadId(1),
        stack: StackId(1),
        size: 4096,
        n_samples: 1,
        interval: Interval::DEFAULT,
        cause: Cause::Malloc,
        address: 0x1000,
        young: false,
        replaces: None,
    });
    let module = Module {
        id: ModuleId(1),
        path: "/bin/fake".into(),
        build_id: vec![],
        load_bias: 0,
        range: (0, 0x1000),
    };
    vec![
        module.into(),
        Callstack { id: StackId(1), frames, end: End::Complete }.into(),
        TotalsUpdate { at, stacks: vec![StackTotals { stack: StackId(1), totals }] }.into(),
        status.into(),
        Batch::pack(&[born]).into(),
    ]
}

pub(super) fn bytes(messages: impl IntoIterator<Item = FromAgent>) -> Vec<u8> {
    let mut out = Vec::new();
    for message in messages {
        assert!(message.write(&mut out));
    }
    out
}

/// Calls of those that answer together.
static CALLED: AtomicUsize = AtomicUsize::new(0);

fn converse(
    mut stream: &Stream,
    behaviour: Behaviour,
    call: usize,
    say: &Sender<FromViewer>,
    over: &AtomicBool,
) {
    stream.set_recv_timeout(Some(Duration::from_millis(20))).unwrap();
    stream.set_send_timeout(Some(Duration::from_millis(20))).unwrap();
    let greeting = bytes([hello().into()]);
    let mut normal = bytes([FromAgent::from(hello())].into_iter().chain(script()));
    let first = match behaviour {
        Behaviour::Garbage => b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        Behaviour::HalfHello => greeting[..greeting.len() / 2].to_vec(),
        Behaviour::HugeLength => vec![0xff; 64],
        Behaviour::WrongVersion => {
            let version = Version { major: VERSION.major + 1, minor: 0 };
            bytes([Hello { version, ..hello() }.into()])
        }
        Behaviour::Replaced => {
            let name = format!("{NAME} (deleted)");
            bytes([FromAgent::from(Hello { name, ..hello() })].into_iter().chain(script()))
        }
        Behaviour::NoHello => bytes(script()),
        Behaviour::Trickle => {
            let length = frame::MAX_PAYLOAD as u32;
            length.to_le_bytes().into_iter().chain([0; frame::HEADER - 4]).collect()
        }
        Behaviour::Silent | Behaviour::Drip | Behaviour::ClosesEarly => vec![],
        Behaviour::DamagedLater => {
            let end = normal.len() - 1;
            normal[end] ^= 1;
            normal
        }
        Behaviour::HalfLater => {
            normal.pop();
            normal
        }
        Behaviour::UnknownKind => {
            assert!(frame::write(&mut normal, 777, |out| out.push(1)));
            normal
        }
        _ => normal,
    };
    match behaviour {
        Behaviour::Slow => std::thread::sleep(Duration::from_millis(667)),
        Behaviour::Together(all) => {
            CALLED.fetch_add(1, SeqCst);
            while CALLED.load(SeqCst) < all && !over.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        _ => {}
    }
    let _ = stream.write_all(&first);
    let closes = [Behaviour::ClosesEarly, Behaviour::HalfHello];
    if closes.contains(&behaviour) {
        return;
    }
    while behaviour == Behaviour::Trickle && stream.write(&[0]).is_ok() {
        std::thread::yield_now();
    }
    let mut drops = greeting.chunks(1);
    let mut round = 0_u32;
    let mut reader = frame::Reader::default();
    let mut chunk = [0; 4096];
    let start = Instant::now();
    while !over.load(SeqCst) && start.elapsed() < Duration::from_secs(60) {
        match stream.read(&mut chunk) {
            Ok(0) => return,
            Ok(n) => reader.feed(&chunk[..n]),
            Err(_) => {}
        }
        while let Ok(Some(frame)) = reader.next() {
            let _ = say.send(FromViewer::read(&frame).unwrap().unwrap());
            let once = behaviour == Behaviour::ClosesOnce && call == 0;
            if once || behaviour == Behaviour::HalfLater {
                return;
            }
        }
        match behaviour {
            // So slowly that the whole takes longer than anybody waits.
            Behaviour::Drip if round.is_multiple_of(8) => {
                let _ = stream.write(drops.next().unwrap_or_default());
            }
            Behaviour::Floods => drop(stream.write_all(&bytes(script()))),
            _ => {}
        }
        round += 1;
    }
}

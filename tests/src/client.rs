//! A viewer without a screen: it speaks the protocol over a socket and keeps
//! what it is told, twice: plainly, and in the viewer's own model, so that what
//! a screen would show can be asked of the viewer's own queries.
//!
//! It is strict where a real viewer is lenient: an id that is used before it is
//! defined, or defined twice, a birth that is told twice, a message of an
//! unknown kind or a damaged frame is a failure of the agent and panics.

use crate::deadline::Deadline;
use heaptop::query::{Question, Table, callsites};
use heaptop::session::{Input, Session};
use heaptop::symbols::Symbolizer;
use heaptop_protocol::callstack::{Callstack, Module};
use heaptop_protocol::event::Event;
use heaptop_protocol::frame::Reader;
use heaptop_protocol::ids::{BlockId, ModuleId, StackId, ThreadId};
use heaptop_protocol::message::{
    FromAgent, FromViewer, Hello, HistoryPoint, LiveBlock, MAGIC, Mark, Memory, Peak, Phase,
    Status, ViewerHello, WantSnapshot, check_greeting,
};
use heaptop_protocol::totals::Totals;
use heaptop_protocol::{VERSION, Version};
use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How often a blocked read looks at its deadline.
const READ_TIMEOUT: Duration = Duration::from_millis(50);

/// What a conversation has told so far.
#[derive(Default)]
pub struct Told {
    /// Modules by id.
    pub modules: HashMap<ModuleId, Module>,
    /// Names of threads by id; the last one counts.
    pub threads: HashMap<ThreadId, String>,
    /// Callstacks by id.
    pub stacks: HashMap<StackId, Callstack>,
    /// The last absolute totals by callstack.
    pub totals: HashMap<StackId, Totals>,
    /// Live sampled blocks, from snapshots and events.
    pub live: HashMap<BlockId, LiveBlock>,
    /// Births, promotions and deaths told as events.
    pub events: [u64; 3],
    /// The last status.
    pub status: Option<Status>,
    /// The curve.
    pub history: Vec<HistoryPoint>,
    /// Parts of the peak's table.
    pub peak: Vec<Peak>,
    /// Marks.
    pub marks: Vec<Mark>,
    /// Phases, in order.
    pub phases: Vec<Phase>,
    /// What the program says of itself.
    pub context: Option<String>,
    /// Where the agent's memory is.
    pub memory: Option<Memory>,
    /// Callstacks of frees whose deaths were not told yet.
    frees: HashMap<BlockId, StackId>,
    /// Blocks that died, and the callstack of the free, where it was told before.
    pub freed_by: Vec<(BlockId, StackId)>,
    /// Events lost for this client.
    pub dropped: u64,
    /// Why sampling is over, if it is.
    pub stopped: Option<String>,
    /// Snapshots that began.
    pub begun: u64,
    /// Snapshots that ended.
    pub ended: u64,
    /// Blocks listed in the snapshot under way.
    listed: HashSet<BlockId>,
    /// Births and deaths told since it began.
    born_since: HashSet<BlockId>,
    died_since: HashSet<BlockId>,
}

impl Told {
    /// Takes in a message behind the greeting.
    ///
    /// # Panics
    ///
    /// When it is none that a sound agent sends here.
    pub fn apply(&mut self, message: FromAgent) {
        match message {
            FromAgent::Hello(_) => panic!("a second greeting"),
            FromAgent::Module(m) => {
                self.modules.insert(m.id, m);
            }
            FromAgent::Thread(t) => {
                self.threads.insert(t.id, t.name);
            }
            FromAgent::Stack(stack) => {
                for frame in &stack.frames {
                    let known = frame.module == ModuleId::UNKNOWN
                        || self.modules.contains_key(&frame.module);
                    assert!(known, "{:?} is used before it is defined", frame.module);
                }
                assert_ne!(stack.id, StackId::OTHER, "(other stacks) is never defined");
                let id = stack.id;
                assert!(self.stacks.insert(id, stack).is_none(), "{id:?} is defined twice");
            }
            FromAgent::Events(batch) => batch.iter().for_each(|event| self.event(event)),
            FromAgent::Totals(update) => {
                for stack in update.stacks {
                    self.must_know(stack.stack);
                    self.totals.insert(stack.stack, stack.totals);
                }
            }
            FromAgent::Status(status) => self.status = Some(status),
            FromAgent::SnapshotBegin(_) => {
                self.begun += 1;
                self.listed.clear();
                self.born_since.clear();
                self.died_since.clear();
            }
            FromAgent::SnapshotBlocks(list) => {
                for block in list.blocks {
                    self.must_know(block.stack);
                    self.listed.insert(block.id);
                    if !self.died_since.contains(&block.id) {
                        self.live.insert(block.id, block);
                    }
                }
            }
            FromAgent::SnapshotEnd(end) => {
                self.ended += 1;
                assert_eq!(end.blocks, self.listed.len() as u64, "blocks listed in the snapshot");
                let (listed, born) = (&self.listed, &self.born_since);
                self.live.retain(|id, _| listed.contains(id) || born.contains(id));
            }
            FromAgent::History(history) => {
                if history.whole {
                    self.history.clear();
                }
                self.history.extend(history.points);
            }
            FromAgent::Peak(peak) => self.peak.push(peak),
            FromAgent::Dropped(lost) => self.dropped += lost.events,
            FromAgent::Stopped(stopped) => self.stopped = Some(stopped.reason),
            FromAgent::Mark(mark) => self.marks.push(mark),
            FromAgent::Phase(phase) => self.phases.push(phase),
            FromAgent::Context(context) => self.context = Some(context.label),
            FromAgent::FreeStacks(told) => {
                for free in told.frees {
                    self.must_know(free.stack);
                    self.frees.insert(free.id, free.stack);
                }
            }
            FromAgent::Memory(memory) => self.memory = Some(memory),
        }
    }

    fn must_know(&self, stack: StackId) {
        let known = stack == StackId::OTHER || self.stacks.contains_key(&stack);
        assert!(known, "{stack:?} is used before it is defined");
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Alloc(birth) => {
                self.must_know(birth.stack);
                self.events[0] += 1;
                assert!(self.born_since.insert(birth.id()), "{:?} is born twice", birth.id());
                self.live.insert(birth.id(), LiveBlock::from(&birth));
            }
            Event::Promote(promote) => {
                self.events[1] += 1;
                if let Some(block) = self.live.get_mut(&promote.id) {
                    block.young = false;
                }
            }
            Event::Dealloc(death) => {
                self.events[2] += 1;
                if let Some(stack) = self.frees.remove(&death.id) {
                    self.freed_by.push((death.id, stack));
                }
                self.died_since.insert(death.id);
                self.live.remove(&death.id);
            }
        }
    }

    /// The totals over all callstacks for which `wanted` holds.
    pub fn sum(&self, wanted: impl Fn(&Callstack) -> bool) -> Totals {
        let mut sum = Totals::default();
        for (id, totals) in &self.totals {
            if self.stacks.get(id).is_some_and(&wanted) {
                sum.merge(totals);
            }
        }
        sum
    }
}

/// A conversation with an agent.
pub struct Client {
    socket: UnixStream,
    reader: Reader,
    /// The agent's greeting.
    pub hello: Hello,
    /// What it has told since.
    pub told: Told,
    /// The same in the viewer's model.
    pub session: Session,
}

impl Client {
    /// Connects, greets, and waits for the first snapshot to end.
    ///
    /// # Panics
    ///
    /// When the agent does not do its part.
    #[must_use]
    pub fn attach(socket: &Path) -> Self {
        let mut client = Self::greet(socket, VERSION);
        client.until("the first snapshot's end", |told| told.ended > 0);
        client
    }

    /// Connects and greets as a viewer of `version`, without waiting for more.
    ///
    /// # Panics
    ///
    /// When the agent does not greet.
    #[must_use]
    pub fn greet(socket: &Path, version: Version) -> Self {
        let socket = UnixStream::connect(socket)
            .unwrap_or_else(|e| panic!("{} refuses: {e}", socket.display()));
        socket.set_read_timeout(Some(READ_TIMEOUT)).expect("timeouts can be set");
        let (mut reader, deadline) = (Reader::default(), Deadline::default());
        let hello = loop {
            match next(&mut reader) {
                Some(FromAgent::Hello(hello)) => break hello,
                Some(other) => panic!("the first message is {other:?}"),
                None => assert!(fill(&socket, &mut reader, deadline), "no greeting: it hung up"),
            }
        };
        check_greeting(hello.magic, hello.version).expect("the agent is of this release");
        let mut session = Session::new();
        session.apply(Input::Agent(hello.clone().into()));
        let mut client = Self { socket, reader, hello, told: Told::default(), session };
        client.send(&ViewerHello { magic: MAGIC, version, client: "a test".into() }.into());
        client
    }

    /// The bare connection, to be rude with. What has not been read is lost.
    #[must_use]
    pub fn into_stream(self) -> UnixStream {
        self.socket
    }

    /// Sends a message.
    ///
    /// # Panics
    ///
    /// When the agent is gone.
    pub fn send(&mut self, message: &FromViewer) {
        let mut bytes = Vec::new();
        assert!(message.write(&mut bytes), "messages of viewers are small");
        self.socket.write_all(&bytes).expect("the agent listens");
    }

    /// Applies messages until `done`.
    ///
    /// # Panics
    ///
    /// When the agent hangs up, or the deadline passes.
    pub fn until(&mut self, what: &str, done: impl Fn(&Told) -> bool) {
        let deadline = Deadline::default();
        while !done(&self.told) {
            match next(&mut self.reader) {
                Some(message) => self.apply(message),
                None if fill(&self.socket, &mut self.reader, deadline) => {}
                None => panic!("waited for {what}, but the agent hung up"),
            }
        }
    }

    /// Applies messages until the agent hangs up.
    ///
    /// # Panics
    ///
    /// When it does not.
    pub fn until_end(&mut self) {
        let deadline = Deadline::default();
        loop {
            match next(&mut self.reader) {
                Some(message) => self.apply(message),
                None if fill(&self.socket, &mut self.reader, deadline) => {}
                None => return,
            }
        }
    }

    /// Takes in a message behind the greeting.
    ///
    /// # Panics
    ///
    /// When it is none that a sound agent sends here.
    pub fn apply(&mut self, message: FromAgent) {
        self.session.apply(Input::Agent(message.clone()));
        self.told.apply(message);
    }

    /// The viewer's table of callsites, with all names that can be had.
    ///
    /// # Panics
    ///
    /// When the names do not come.
    pub fn table(&mut self) -> Table {
        let (answer, answers) = std::sync::mpsc::channel();
        let symbolizer = Symbolizer::start(move |names| {
            // Nobody waits any more once the deadline has passed.
            let _ = answer.send(names);
        });
        let frames = self.session.take_wanted_frames();
        let modules: Vec<Module> = self.session.modules().values().cloned().collect();
        let mut wanted = frames.len();
        symbolizer.want(self.hello.pid, &modules, frames);
        let deadline = Deadline::default();
        while wanted > 0 {
            let left = deadline.left().expect("names come in time");
            let names = answers.recv_timeout(left).expect("names come");
            wanted -= names.len();
            self.session.apply(Input::Names(names));
        }
        callsites(&self.session, &Question::default())
    }

    /// Asks for a snapshot and waits for its end: totals are then exactly those
    /// of a target that rests.
    ///
    /// # Panics
    ///
    /// When it does not come.
    pub fn snapshot(&mut self) {
        let (begun, ended) = (self.told.begun, self.told.ended);
        assert_eq!(begun, ended, "a snapshot is under way");
        self.send(&WantSnapshot {}.into());
        self.until("the snapshot that was asked for", |told| {
            told.ended > ended && told.begun == told.ended
        });
    }
}

/// The next message that has come whole.
fn next(reader: &mut Reader) -> Option<FromAgent> {
    let frame = reader.next().expect("frames are sound")?;
    let kind = frame.kind;
    let message = FromAgent::read(&frame).expect("messages decode");
    Some(message.unwrap_or_else(|| panic!("kind {kind} is unknown to this version")))
}

/// Reads what there is, waiting for some; `false` at the end of the stream.
fn fill(mut socket: &UnixStream, reader: &mut Reader, deadline: Deadline) -> bool {
    let mut bytes = vec![0; 64 << 10];
    loop {
        match socket.read(&mut bytes) {
            Ok(0) => return false,
            Ok(n) => {
                reader.feed(&bytes[..n]);
                return true;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                assert!(deadline.left().is_some(), "the agent says nothing");
            }
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return false,
            Err(e) => panic!("the socket fails: {e}"),
        }
    }
}

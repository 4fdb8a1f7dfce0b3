//! A connection that is kept: read by a thread of its own, which also comes back
//! after a loss, and written to by another.
//!
//! ```text
//!             ┌───────────── lost, target lives: back off, open again ───┐
//!             ▼                                                          │
//! open ─► Connected ─► messages … ─► end of stream ─► has it exited? ─no─┤
//!                          │                               │yes          │
//!                     damaged: Ended                     Ended ◄─ another version
//! ```
//!
//! The threads share one lock, held for moments: the current stream (the writer
//! takes it, the reader puts it) and whether the link is dropped. A thread that
//! stands in a read or write is freed by shutting the stream down.

use std::io::{ErrorKind, Read};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heaptop_protocol::frame::Reader;
use heaptop_protocol::message::{FromAgent, FromViewer, Hello};
use interprocess::os::unix::uds_local_socket::Stream;

use super::discover;
use super::handshake::{self, Greeted};
use super::inbox::Inbox;
use super::process::{How, Process};
use super::remains::{Known, Remains};
use super::socket::{Patience, Peer};
use super::{LinkError, SourceEvent, State};
use crate::session::names::Named;

/// Time for connecting and greeting: at R = 1 the agent's thread of a busy target
/// may be long behind.
pub(super) const GREETING: Duration = Duration::from_secs(5);
/// First and longest pause before a lost link is opened again.
pub(super) const BACK_OFF: (Duration, Duration) =
    (Duration::from_millis(200), Duration::from_secs(2));
/// A process closes its sockets before it can be seen to have ended: how long to
/// wait for that, before the end of a stream counts as a loss.
const EXITING: Duration = Duration::from_millis(300);
/// Commands that may wait for the agent to read them.
const COMMANDS: usize = 64;
/// Bytes read at once.
const CHUNK: usize = 256 << 10;
/// About what a message of a thousand blocks takes.
const LARGEST: usize = 256 << 10;
/// What a message costs beside its payload.
const OVERHEAD: usize = 128;

/// Who is at the other end.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its pid as the kernel knows it, as seen from here.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Where it listens.
    pub socket: PathBuf,
    /// What it said first.
    pub hello: Hello,
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    state: Mutex<SharedState>,
    dropped: Condvar,
}

#[derive(Default)]
struct SharedState {
    stream: Option<Arc<Stream>>,
    dropped: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits; `false` when the link was dropped meanwhile.
    fn pause(&self, time: Duration) -> bool {
        let state = self.lock();
        let paused = self.dropped.wait_timeout_while(state, time, |s| !s.dropped);
        !paused.unwrap_or_else(PoisonError::into_inner).0.dropped
    }
}

/// A kept connection. Dropping it ends it, and its threads.
pub struct Link {
    target: Target,
    inbox: Arc<Inbox>,
    commands: SyncSender<FromViewer>,
    shared: Arc<Shared>,
}

impl Link {
    /// Connects to the target at `socket`, exchanges greetings, and begins to
    /// read. Returns within five seconds.
    pub fn open(socket: &Path) -> Result<Self, LinkError> {
        Self::open_within(socket, GREETING)
    }

    pub(super) fn open_within(socket: &Path, time: Duration) -> Result<Self, LinkError> {
        let greeted = Greeted::open(socket, Patience::new(time))?;
        let Peer { pid, uid } = greeted.peer;
        let hello = greeted.hello.clone();
        let target = Target { pid, uid, socket: socket.into(), hello };
        let inbox = Arc::new(Inbox::default());
        let shared = Arc::new(Shared::default());
        let (commands, waiting) = sync_channel(COMMANDS);
        let keeper = Keeper {
            socket: socket.into(),
            process: Process::new(pid),
            pid,
            inbox: Arc::clone(&inbox),
            shared: Arc::clone(&shared),
            known: Known::default(),
            remains: None,
        };
        let io =
            |error| LinkError::Io { doing: "start a thread for", socket: socket.into(), error };
        let with_writer = Arc::clone(&shared);
        // The stream stands there before the first command can come.
        let stream = keeper.take_over(&greeted.stream);
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        named("heaptop-write").spawn(move || write_all(&waiting, &with_writer)).map_err(io)?;
        named("heaptop-read").spawn(move || keeper.run(greeted, stream)).map_err(io)?;
        Ok(Self { target, inbox, commands, shared })
    }

    /// Who is at the other end.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Where all that comes from the target arrives.
    #[must_use]
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// For [`Symbolizer::start`](crate::symbols::Symbolizer::start): puts names
    /// into the inbox.
    pub fn name_answers(&self) -> impl Fn(Vec<Named>) + Send + 'static {
        let inbox = Arc::clone(&self.inbox);
        move |named| {
            let bytes = named.iter().map(|n| OVERHEAD + 48 * n.symbols.len()).sum();
            inbox.put(bytes, SourceEvent::Names(named));
        }
    }

    /// Sends a command, without waiting. `false`: there is no connection now, or
    /// the agent does not read.
    #[must_use]
    pub fn send(&self, command: FromViewer) -> bool {
        self.shared.lock().stream.is_some() && self.commands.try_send(command).is_ok()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.dropped = true;
        if let Some(stream) = state.stream.take() {
            let _ = stream.inner().shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.dropped.notify_all();
        self.inbox.close();
    }
}

fn write_all(commands: &Receiver<FromViewer>, shared: &Shared) {
    for command in commands {
        // A command for a connection that is lost is lost with it; the reader
        // sees the end and says so.
        let Some(stream) = shared.lock().stream.clone() else { continue };
        let _ = handshake::send(&stream, &command);
    }
}

/// The state of the reading thread.
struct Keeper {
    socket: PathBuf,
    process: Process,
    pid: u32,
    inbox: Arc<Inbox>,
    shared: Arc<Shared>,
    /// What is needed to read what the target leaves.
    known: Known,
    remains: Option<Remains>,
}

/// How a stream ended.
enum End {
    /// The link was dropped: nobody listens.
    Dropped,
    /// The other end closed it.
    Closed(String),
    /// What came is of no use.
    Damaged(LinkError),
}

/// The pause behind one that was in vain.
pub(super) fn longer(pause: Duration) -> Duration {
    (pause * 2).min(BACK_OFF.1)
}

impl Keeper {
    fn say(&self, state: State) -> bool {
        self.inbox.put(OVERHEAD, SourceEvent::Connection(state))
    }

    /// Makes `stream` the one that is written to and can be shut down.
    fn take_over(&self, stream: &Stream) -> Option<Arc<Stream>> {
        let stream = Arc::new(Stream::from(stream.inner().try_clone().ok()?));
        let mut state = self.shared.lock();
        state.stream = (!state.dropped).then(|| Arc::clone(&stream));
        state.stream.clone()
    }

    fn run(mut self, mut greeted: Greeted, mut stream: Option<Arc<Stream>>) {
        loop {
            if stream.is_none() || !self.say(State::Connected) {
                return;
            }
            let end = self.read(greeted);
            if let Some(stream) = self.shared.lock().stream.take() {
                // A writer that stands in it is let go.
                let _ = stream.inner().shutdown(Shutdown::Both);
            }
            let why = match end {
                End::Dropped => return,
                End::Damaged(error) => {
                    self.say(State::Ended(error.to_string()));
                    return;
                }
                End::Closed(why) => why,
            };
            let ended = self.process.ends_within(EXITING);
            if ended || self.process.is_another_program() {
                self.bury();
                return;
            }
            greeted = match self.come_back(why) {
                Ok(greeted) => greeted,
                Err(Some(sentence)) => {
                    self.say(State::Ended(sentence));
                    return;
                }
                Err(None) => return,
            };
            stream = self.take_over(&greeted.stream);
        }
    }

    /// Reads until the stream ends.
    fn read(&mut self, greeted: Greeted) -> End {
        let Greeted { stream, mut reader, hello, .. } = greeted;
        let hello = FromAgent::Hello(hello);
        self.known.see(&hello);
        let hello = SourceEvent::Message(hello);
        if !self.inbox.put(OVERHEAD, hello) {
            return End::Dropped;
        }
        let mut chunk = vec![0; CHUNK];
        loop {
            match self.deliver(&mut reader) {
                Ok(true) => {}
                Ok(false) => return End::Dropped,
                Err(error) => return End::Damaged(error),
            }
            match (&stream).read(&mut chunk) {
                Ok(0) if reader.pending() > 0 => {
                    return End::Closed("the connection broke off within a message".into());
                }
                Ok(0) => return End::Closed("the agent closed the connection".into()),
                Ok(n) => reader.feed(&chunk[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return End::Closed(format!("the connection broke: {e}")),
            }
        }
    }

    /// Puts the messages that are whole. `false`: nobody takes them.
    fn deliver(&mut self, reader: &mut Reader) -> Result<bool, LinkError> {
        while let Some(frame) = reader.next().map_err(LinkError::Frame)? {
            let bytes = OVERHEAD + frame.payload.len();
            let event = match FromAgent::read(&frame).map_err(LinkError::Message)? {
                Some(message) => {
                    self.known.see(&message);
                    if let FromAgent::Memory(memory) = message {
                        self.remains = Remains::open(self.pid, memory);
                    }
                    SourceEvent::Message(message)
                }
                None => SourceEvent::UnknownMessage {
                    kind: frame.kind,
                    payload: frame.payload.to_vec(),
                },
            };
            if !self.inbox.put(bytes, event) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The target is dead, or its process runs another program: tells the last of what it did, and how it ended.
    fn bury(&self) {
        let mut tell = |message| self.inbox.put(LARGEST, SourceEvent::Message(message));
        let trouble = match &self.remains {
            Some(remains) => remains.tell(&self.known, &mut tell).err(),
            None => Some("the agent's memory was not to be had".to_owned()),
        };
        let code = || self.remains.as_ref().and_then(Remains::exit_code);
        let mut sentence = if self.process.ends_within(Duration::ZERO) {
            let how = self.process.how_it_ended().or_else(|| code().map(How::Code));
            // Who is killed leaves it.
            discover::remove_left_over(&self.socket);
            how.map_or("the target has ended".into(), |how| format!("the target {how}"))
        } else {
            "the target has become another program".into()
        };
        if let Some(trouble) = trouble {
            sentence = format!("{sentence}; what it did last is in no figure: {trouble}");
        }
        self.say(State::Ended(sentence));
    }

    /// Opens the link again, in growing pauses, as long as the target lives.
    /// `Err(None)`: the link was dropped.
    fn come_back(&self, why: String) -> Result<Greeted, Option<String>> {
        let mut pause = BACK_OFF.0;
        let mut lost = Some(why);
        loop {
            if let Some(why) = lost.take()
                && !self.say(State::Lost(why))
            {
                return Err(None);
            }
            if !self.shared.pause(pause) {
                return Err(None);
            }
            if self.process.ends_within(Duration::ZERO) {
                self.bury();
                return Err(None);
            }
            if !self.say(State::Connecting) {
                return Err(None);
            }
            match Greeted::open(&self.socket, Patience::new(GREETING)) {
                Ok(greeted) if greeted.peer.pid == self.pid => return Ok(greeted),
                Ok(greeted) => {
                    return Err(Some(format!(
                        "another process, {}, listens at {} now",
                        greeted.peer.pid,
                        self.socket.display()
                    )));
                }
                Err(
                    error @ (LinkError::Handshake(..)
                    | LinkError::Foreign { .. }
                    | LinkError::OutOfSight(_)),
                ) => {
                    return Err(Some(error.to_string()));
                }
                Err(error) => lost = Some(error.to_string()),
            }
            pause = longer(pause);
        }
    }
}

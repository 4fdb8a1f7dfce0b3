//! One viewer: what it was told, and what waits to be sent.
//!
//! Nothing here blocks. What cannot be sent waits in `out`, up to a bound;
//! beyond it events are dropped and counted, and when there is room again the
//! viewer gets [`Dropped`] and a snapshot, after which its figures are right.
//!
//! A viewer is told, in this order and as room permits: modules, threads and
//! callstacks it does not know (ids before use); a snapshot, if one is due; the
//! events of each pass; changed totals and the status, four times a second.

use super::descriptors::Listed;
use super::ledger::Ledger;
use super::modules::Modules;
use super::record::File;
use super::said::Said;
use super::threads::Threads;
use crate::engine::callstack::Published;
use crate::engine::{Engine, unwind};
use heaptop_protocol::callstack::{Callstack, End};
use heaptop_protocol::event::{Batch, Event};
use heaptop_protocol::frame;
use heaptop_protocol::ids::StackId;
use heaptop_protocol::message::{
    Dropped, FreeStacks, FromAgent, FromViewer, History, HistoryPoint, Memory, Peak, SnapshotBegin,
    SnapshotBlocks, SnapshotEnd, Status, TotalsUpdate, check_greeting,
};
use heaptop_protocol::recording::InRecording;
use heaptop_protocol::remains::unpack;
use interprocess::local_socket::Stream;
use std::io::{self, Read};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Bytes waiting beyond which events are dropped.
const FULL: usize = 1 << 20;
/// Bytes waiting before a pass below which bulk goes on.
const ROOM: usize = 256 << 10;
/// Stacks, blocks or totals in one message.
const CHUNK: usize = 1000;
/// How long a viewer may take to greet.
const GREETING_NS: u64 = 5_000_000_000;
/// Between two statuses.
const STATUS_NS: u64 = 250_000_000;
/// Between two tables of a peak that keeps growing.
const PEAK_NS: u64 = 2_000_000_000;

/// What all viewers are told from.
pub struct Sources<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The books.
    pub ledger: &'a Ledger,
    /// The modules.
    pub modules: &'a Modules,
    /// The threads.
    pub threads: &'a Threads,
    /// What was said of the program's course.
    pub said: &'a Said,
    /// The status, but for this viewer's own losses.
    pub status: &'a Status,
}

/// How far a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Snapshot {
    /// None is due.
    Done,
    /// All totals must go out first.
    Totals,
    /// Blocks from this entry on.
    Blocks { next: u32, listed: u64 },
}

/// Where it goes.
enum Sink {
    Socket {
        listed: Listed,
        /// Closed by `drop`, and only while it is ours.
        stream: ManuallyDrop<Stream>,
    },
    File(File),
}

/// See the module.
#[expect(
    clippy::struct_excessive_bools,
    reason = "what is due has nothing to do with what was said"
)]
pub struct Peer {
    sink: Sink,
    out: Vec<u8>,
    sent: usize,
    reader: frame::Reader,
    greeted: bool,
    accepted_ns: u64,
    modules: usize,
    threads: u64,
    stacks: usize,
    /// What was said below this number was told.
    said: u64,
    /// The next record of the sweep over changed totals, and the pass at its start.
    sweep: Option<(usize, u64)>,
    /// Totals of passes up to this one were sent.
    swept: u64,
    snapshot: Snapshot,
    /// What the books must have worked off before it: see [`Ledger::up_to_now`].
    snapshot_after: u64,
    /// Whether a snapshot was ever begun: events make sense from there on.
    following: bool,
    /// Whether the whole curve is due: at first, and when a point was left out.
    curve_due: bool,
    status_ns: u64,
    peak_epoch: u64,
    peak_ns: u64,
    unsent: u64,
    dropped: u64,
    /// Whether it wants callstacks of frees.
    wants_frees: bool,
}

impl Peer {
    /// A viewer that has just connected.
    pub fn new(stream: Stream, hello: FromAgent, memory: Option<Memory>, now_ns: u64) -> Self {
        let Stream::UdSocket(socket) = &stream;
        let listed = Listed::new(socket);
        let mut peer =
            Self::with(Sink::Socket { listed, stream: ManuallyDrop::new(stream) }, now_ns);
        peer.tell(hello);
        if let Some(memory) = memory {
            peer.tell(memory);
        }
        peer
    }

    /// A file, which is told what a viewer is told.
    pub fn file(file: File, hello: FromAgent, now_ns: u64) -> Self {
        let mut peer = Self::with(Sink::File(file), now_ns);
        peer.greeted = true;
        peer.write(&File::about());
        peer.tell(hello);
        peer
    }

    fn with(sink: Sink, now_ns: u64) -> Self {
        Self {
            sink,
            out: Vec::new(),
            sent: 0,
            reader: frame::Reader::default(),
            greeted: false,
            accepted_ns: now_ns,
            modules: 0,
            threads: 0,
            stacks: 1,
            said: 0,
            sweep: None,
            swept: 0,
            snapshot: Snapshot::Totals,
            snapshot_after: 0,
            following: false,
            curve_due: true,
            status_ns: 0,
            peak_epoch: 0,
            peak_ns: 0,
            unsent: 0,
            dropped: 0,
            wants_frees: false,
        }
    }

    /// Its descriptor, and whether something waits to be written. Nobody waits for a
    /// file.
    pub fn poll(&self) -> Option<(BorrowedFd<'_>, bool)> {
        let Sink::Socket { stream, .. } = &self.sink else { return None };
        let Stream::UdSocket(socket) = &**stream;
        Some((socket.as_fd(), self.waiting() > 0))
    }

    /// Whether it is a file.
    pub const fn is_file(&self) -> bool {
        matches!(self.sink, Sink::File(_))
    }

    /// Why the file takes no more, as viewers are told.
    pub fn trouble(&self, error: &io::Error) -> Option<String> {
        match &self.sink {
            Sink::File(file) => Some(file.trouble(error)),
            Sink::Socket { .. } => None,
        }
    }

    fn waiting(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Queues a message.
    pub fn tell(&mut self, message: impl Into<FromAgent>) {
        // A message too large for a frame is left out whole; chunks never are.
        let _fits = message.into().write(&mut self.out);
    }

    /// Queues what only a recording says.
    pub fn write(&mut self, said: &InRecording) {
        let _fits = said.write(&mut self.out);
    }

    /// Has all that changed be told by the next [`Self::follow`], whatever the clock says.
    pub fn hurry(&mut self) {
        self.status_ns = 0;
        self.peak_ns = 0;
    }

    /// Whether a viewer that has heard all of it knows the books as they are: nothing was
    /// left out, or is due, since the last pass.
    pub fn has_told_all(&self, s: &Sources<'_>) -> bool {
        self.following
            && self.stacks == s.ledger.known()
            && self.dropped == 0
            && self.snapshot == Snapshot::Done
            && self.sweep.is_none()
            && self.swept == s.ledger.pass_number()
            && !self.curve_due
            && self.status_ns != 0
    }

    /// Queues a point of the curve, or leaves it for later.
    pub fn tell_point(&mut self, point: HistoryPoint) {
        if self.curve_due || self.waiting() >= FULL {
            self.curve_due = true;
        } else {
            self.tell(History { whole: false, points: vec![point] });
        }
    }

    /// The curve is to be told anew.
    pub fn want_curve(&mut self) {
        self.curve_due = true;
    }

    /// Reads what the viewer wants; an error ends the conversation.
    pub fn listen(&mut self, now_ns: u64) -> io::Result<Vec<FromViewer>> {
        let Sink::Socket { listed, stream } = &mut self.sink else { return Ok(Vec::new()) };
        check(listed)?;
        let mut wanted = Vec::new();
        let mut buffer = [0; 4096];
        // Bounded, so that a flood from one viewer cannot hold up the others.
        for _ in 0..16 {
            match stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.reader.feed(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
            while let Some(frame) = self.reader.next().map_err(io::Error::other)? {
                match FromViewer::read(&frame).map_err(io::Error::other)? {
                    Some(FromViewer::Hello(hello)) => {
                        check_greeting(hello.magic, hello.version).map_err(io::Error::other)?;
                        self.greeted = true;
                    }
                    Some(FromViewer::WantFreeStacks(c)) if self.greeted => {
                        self.wants_frees = c.on;
                    }
                    Some(command) if self.greeted => wanted.push(command),
                    Some(_) => return Err(io::Error::other("a command before the greeting")),
                    None => {}
                }
            }
        }
        if !self.greeted && now_ns.saturating_sub(self.accepted_ns) > GREETING_NS {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(wanted)
    }

    /// Whether it wants callstacks of frees.
    pub const fn wants_frees(&self) -> bool {
        self.wants_frees
    }

    /// A snapshot of everything is wanted, with all that is worked off once the
    /// books are done with `after`.
    pub fn want_snapshot(&mut self, after: u64) {
        self.snapshot_after = self.snapshot_after.max(after);
        self.snapshot = Snapshot::Totals;
        self.sweep = None;
        self.swept = 0;
    }

    /// Queues what is due after a pass at `now_ns` on the monotonic clock.
    pub fn follow(&mut self, s: &Sources<'_>, now_ns: u64) {
        if !self.greeted {
            return;
        }
        let defined = self.stacks;
        // Whether it has caught up with what was told before. Asked first: the events of one
        // pass can be more than that, and of a busy target's all passes are.
        let room = self.waiting() < ROOM;
        self.define(s);
        self.tell_events(s);
        let mut due = now_ns.saturating_sub(self.status_ns) >= STATUS_NS;
        if self.dropped > 0 && room {
            let events = std::mem::take(&mut self.dropped);
            self.tell(Dropped { events });
            self.want_snapshot(0);
        }
        if room && self.stacks == s.ledger.known() {
            if std::mem::take(&mut self.curve_due) {
                self.tell(History { whole: true, points: s.ledger.history() });
            }
            if !self.following {
                self.following = true;
                due = true;
            }
            // A new callstack's totals follow its first events at once: till then it
            // is a row of which nothing is known.
            if self.snapshot_is_ready(s) || due || self.stacks > defined {
                self.sweep.get_or_insert((0, s.ledger.pass_number()));
            }
            self.tell_totals(s);
            self.tell_snapshot(s);
            if due {
                self.status_ns = now_ns;
                self.tell_status(s);
                self.tell_peak(s, now_ns);
            }
        }
    }

    fn define(&mut self, s: &Sources<'_>) {
        for module in s.modules.known().iter().skip(self.modules) {
            self.tell(module.clone());
        }
        self.modules = s.modules.known().len();
        for thread in s.threads.changed_since(self.threads) {
            self.tell(thread.clone());
        }
        self.threads = s.threads.version();
        // A viewer that reads nothing does without until it does.
        if self.waiting() < FULL {
            s.said.since(self.said).for_each(|said| self.tell(said));
            self.said = s.said.next();
        }
        while self.stacks < s.ledger.known() && self.waiting() < FULL {
            let id = StackId(self.stacks as u32);
            self.stacks += 1;
            if let Published::Whole { frames, end } = s.engine.callstacks.read(s.ledger.raw(id)) {
                self.tell(Callstack {
                    id,
                    frames: frames.into_iter().rev().map(unpack).collect(),
                    end: match end {
                        unwind::End::Complete => End::Complete,
                        unwind::End::Truncated => End::Truncated,
                        unwind::End::NoUnwindInfo => End::NoUnwindInfo,
                    },
                });
            }
        }
    }

    fn tell_events(&mut self, s: &Sources<'_>) {
        let events = s.ledger.events();
        if !self.following || events.is_empty() {
            return;
        }
        if self.waiting() >= FULL || self.stacks < s.ledger.known() {
            let lost = events.iter().filter(|e| !matches!(e, Event::Promote(_))).count() as u64;
            self.unsent += lost;
            self.dropped += lost;
            return;
        }
        if self.wants_frees {
            for frees in s.ledger.frees().chunks(CHUNK) {
                self.tell(FreeStacks { frees: frees.to_vec() });
            }
        }
        for events in events.chunks(Batch::MOST) {
            self.tell(Batch::pack(events));
        }
    }

    fn tell_totals(&mut self, s: &Sources<'_>) {
        while let Some((from, pass)) = self.sweep
            && self.waiting() < FULL
        {
            let stacks: Vec<_> = s
                .ledger
                .changed_since(self.swept)
                .skip_while(|t| (t.stack.0 as usize) < from)
                .take(CHUNK)
                .collect();
            self.sweep = match stacks.last() {
                Some(last) if stacks.len() == CHUNK => Some((last.stack.0 as usize + 1, pass)),
                _ => {
                    self.swept = pass;
                    None
                }
            };
            if !stacks.is_empty() {
                self.tell(TotalsUpdate { at: s.ledger.now(), stacks });
            }
        }
    }

    fn snapshot_is_ready(&self, s: &Sources<'_>) -> bool {
        self.snapshot == Snapshot::Totals && s.ledger.done() >= self.snapshot_after
    }

    fn tell_snapshot(&mut self, s: &Sources<'_>) {
        if self.snapshot_is_ready(s) && self.sweep.is_none() {
            self.tell(SnapshotBegin { at: s.ledger.now() });
            self.snapshot = Snapshot::Blocks { next: 0, listed: 0 };
        }
        let (_, used) = s.engine.tracker.room();
        while let Snapshot::Blocks { mut next, mut listed } = self.snapshot
            && self.waiting() < FULL
        {
            let mut blocks = Vec::with_capacity(CHUNK);
            while (next as usize) < used && blocks.len() < CHUNK {
                blocks.extend(s.ledger.block(next));
                next += 1;
            }
            listed += blocks.len() as u64;
            if !blocks.is_empty() {
                self.tell(SnapshotBlocks { blocks });
            }
            self.snapshot = Snapshot::Blocks { next, listed };
            if next as usize >= used {
                // Totals that changed while blocks were listed over several passes.
                self.sweep = Some((0, s.ledger.pass_number()));
                self.tell_totals(s);
                self.tell_status(s);
                self.tell(SnapshotEnd { at: s.ledger.now(), blocks: listed });
                self.snapshot = Snapshot::Done;
            }
        }
    }

    fn tell_status(&mut self, s: &Sources<'_>) {
        let mut status = *s.status;
        status.losses.unsent = self.unsent;
        self.tell(status);
    }

    fn tell_peak(&mut self, s: &Sources<'_>, now_ns: u64) {
        if s.ledger.peak_epoch() == self.peak_epoch || now_ns.saturating_sub(self.peak_ns) < PEAK_NS
        {
            return;
        }
        (self.peak_epoch, self.peak_ns) = (s.ledger.peak_epoch(), now_ns);
        let (time_ns, in_use, stacks) = s.ledger.peak();
        let parts = stacks.len().div_ceil(CHUNK).max(1);
        for part in 0..parts {
            let stacks = stacks.iter().skip(part * CHUNK).take(CHUNK).copied().collect();
            self.tell(Peak { time_ns, in_use, stacks, more: part + 1 < parts });
        }
    }

    /// Writes what the socket takes; an error ends the conversation.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.waiting() == 0 {
            return Ok(());
        }
        let (listed, stream) = match &mut self.sink {
            Sink::Socket { listed, stream } => (listed, stream),
            Sink::File(file) => {
                // Nothing was ever sent in part: these are whole frames.
                let written = file.put(&self.out);
                self.out.clear();
                return written;
            }
        };
        check(listed)?;
        let Stream::UdSocket(socket) = &**stream;
        let fd = socket.as_fd().as_raw_fd();
        while self.sent < self.out.len() {
            let rest = &self.out[self.sent..];
            // SAFETY: the descriptor is open and `rest` is readable. send, and not
            // write: it fails on what is no socket, and raises no SIGPIPE.
            let n = unsafe {
                libc::send(
                    fd,
                    rest.as_ptr().cast(),
                    rest.len(),
                    libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT,
                )
            };
            match usize::try_from(n) {
                Ok(n) => self.sent += n,
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::WouldBlock => break,
                    e if e.kind() == io::ErrorKind::Interrupted => {}
                    e => return Err(e),
                },
            }
        }
        if self.sent > ROOM || self.sent == self.out.len() {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Sink::Socket { listed, stream } = &mut self.sink
            && listed.is_ours()
        {
            // SAFETY: dropped here and nowhere else.
            unsafe { ManuallyDrop::drop(stream) };
        }
    }
}

/// An error if the program has closed our descriptor: see [`Listed`].
fn check(listed: &Listed) -> io::Result<()> {
    if listed.is_ours() { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
}

#[cfg(all(test, not(loom)))]
mod tests;

//! What the agent's thread does, turn by turn: wait, let viewers in, hear them, do
//! the books, tell the viewers.

use super::governor::{Governor, Reading};
use super::ledger::Ledger;
use super::loader::Patience;
use super::modules::Modules;
use super::peer::{Peer, Sources};
use super::remains::Opened;
use super::said::Said;
use super::server::Server;
use super::stranded::Stranded;
use super::threads::{Ending, Left, Process, Threads};
use super::{Errand, MAX_PEERS, endpoint_is, record, remains};
use crate::engine::{Engine, sys, unwind};
use crate::notes;
use heaptop_protocol::ids::StackId;
use heaptop_protocol::message::{
    AgentKind, FromAgent, FromViewer, Hello, Losses, MAGIC, Mark, ProfileCommand, Sampling, Status,
    Stopped,
};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};

/// While many samples come in: more than [`MANY`] a pass.
const BUSY_MS: i32 = 10;
const MANY: usize = 1000;
/// While some do.
const USUAL_MS: i32 = 50;
/// While none do.
const IDLE_MS: i32 = 100;
/// Longest label of a mark.
const MARK_CHARS: usize = 200;
/// Between two looks at memory and thread names.
const SLOW_NS: u64 = 1_000_000_000;

/// All that the thread works with.
pub struct Desk {
    engine: &'static Engine,
    ledger: Ledger,
    modules: Modules,
    patience: Patience,
    threads: Threads,
    server: Option<Server>,
    peers: Vec<Peer>,
    directories: Vec<PathBuf>,
    notices: Vec<String>,
    said: Said,
    /// Callstacks below this have their frames placed in modules.
    placed: usize,
    rss_bytes: Option<u64>,
    slow_ns: u64,
    stopped: bool,
    /// `None` while R is fixed.
    governor: Option<Governor>,
    /// CPU time that the books have taken.
    books_ns: u64,
    /// The region, for viewers to read after the end.
    memory: Option<Opened>,
    process: Process,
    stranded: Stranded,
    /// The program is over but for this thread.
    over: Option<Ending>,
}

impl Desk {
    /// With the socket open, if it can be. `separate`: in a table of descriptors of this
    /// thread's own.
    pub fn new(errand: Errand, separate: bool) -> Self {
        let Errand { engine, ledger, child, directories, notices, file, .. } = errand;
        let mut desk = Self {
            engine,
            ledger,
            modules: Modules::default(),
            patience: Patience::default(),
            threads: Threads::default(),
            server: None,
            peers: Vec::new(),
            directories,
            notices,
            said: Said::default(),
            placed: 1,
            rss_bytes: None,
            slow_ns: 0,
            stopped: false,
            governor: None,
            books_ns: 0,
            memory: file.and_then(Opened::new),
            process: Process::open(separate),
            stranded: Stranded::default(),
            over: None,
        };
        desk.govern(engine.governed);
        desk.open();
        desk.record(child);
        desk
    }

    fn open(&mut self) {
        match Server::open(&self.directories) {
            Ok(server) => {
                let path = server.path().to_owned();
                unlink_in_the_end(&path);
                endpoint_is(Ok(path));
                self.server = Some(server);
            }
            Err(why) => {
                endpoint_is(Err(why));
            }
        }
    }

    /// Begins the recording that the environment wants.
    fn record(&mut self, child: bool) {
        match record::File::open(child) {
            Some(Ok(file)) => {
                let mut peer = Peer::file(file, self.hello(), sys::monotonic_ns());
                match peer.flush() {
                    Ok(()) => self.peers.push(peer),
                    Err(error) => {
                        record::over();
                        self.notices.extend(peer.trouble(&error));
                    }
                }
            }
            // In the first process it was told before `main` already.
            Some(Err(why)) if !self.notices.contains(&why) => self.notices.push(why),
            Some(Err(_)) | None => {}
        }
    }

    /// One round: some milliseconds of waiting, then what has come up.
    pub fn turn(&mut self) {
        self.wait();
        let now_ns = sys::monotonic_ns();
        self.accept(now_ns);
        self.listen(now_ns);
        self.hear_program();
        self.do_books();
        if self.ledger.thin() {
            self.peers.iter_mut().for_each(|p| p.want_snapshot(0));
            if let Some(governor) = &mut self.governor {
                governor.limit(self.engine.interval());
            }
        }
        self.set_by_governor();
        let slow = now_ns.saturating_sub(self.slow_ns) >= SLOW_NS;
        if !self.know_modules(slow, now_ns) {
            // Within a fork of the program's: what is new is told once it can be placed.
            return self.look_for_exit();
        }
        self.place();
        if slow {
            // Where there is no socket, perhaps because the program closed it.
            if self.server.as_ref().is_none_or(|s| !s.is_open()) {
                self.server = None;
                self.open();
            }
            self.slow_ns = now_ns;
            self.rss_bytes = resident_bytes();
            self.threads.refresh(self.engine);
            self.over = self.look_who_is_left();
        }
        if let Some(point) = self.ledger.tick(self.rss_bytes) {
            self.peers.iter_mut().for_each(|p| p.tell_point(point));
        }
        if self.peers.is_empty() {
            return;
        }
        self.tell(now_ns);
        self.look_for_exit();
    }

    fn look_who_is_left(&mut self) -> Option<Ending> {
        // Twice: it is never to be taken back.
        let [first, again] = [(); 2].map(|()| self.process.left(self.engine));
        match (first, again) {
            (Left::Nobody(_), Left::Nobody(ending)) => return Some(ending),
            (Left::Unknown, Left::Unknown) => self.stranded.look(),
            _ => {}
        }
        None
    }

    /// How the program ends, once all its threads have: the last words are said then.
    pub fn is_over(&mut self) -> Option<Ending> {
        let ending = self.over?;
        remains::exits(self.engine, ending.status().into());
        self.finish_recording();
        Some(ending)
    }

    /// Takes up what was loaded and unloaded, where that matters now; false if it cannot
    /// be known.
    fn know_modules(&mut self, slow: bool, now_ns: u64) -> bool {
        if !slow && self.placed >= self.ledger.known() {
            return true;
        }
        let Some(unloaded) = self.modules.refresh() else {
            self.patience.lose(now_ns);
            return false;
        };
        self.patience.restore();
        if unloaded {
            unwind::forget();
        }
        true
    }

    /// Tells the viewers, and the recording, what is new.
    fn tell(&mut self, now_ns: u64) {
        let status = self.status();
        let sources = Sources {
            engine: self.engine,
            ledger: &self.ledger,
            modules: &self.modules,
            threads: &self.threads,
            said: &self.said,
            status: &status,
        };
        let mut trouble = None;
        self.peers.retain_mut(|peer| {
            peer.follow(&sources, now_ns);
            match peer.flush() {
                Ok(()) => true,
                Err(error) => {
                    trouble = trouble.take().or_else(|| peer.trouble(&error));
                    false
                }
            }
        });
        if let Some(trouble) = trouble {
            self.recording_failed(trouble);
        }
    }

    fn look_for_exit(&mut self) {
        if record::program_exits() {
            self.finish_recording();
        }
    }

    /// Viewers that are there are told by a mark, those that come by a notice.
    fn recording_failed(&mut self, trouble: String) {
        record::over();
        let mark =
            Mark { at: self.ledger.now(), label: trouble.chars().take(MARK_CHARS).collect() };
        self.said.say(mark.into());
        self.notices.push(trouble);
    }

    /// Takes up what the program says of its own course.
    fn hear_program(&mut self) {
        for note in notes::take(self.engine) {
            self.said.note(&note, |ns| self.ledger.since_start(ns));
        }
    }

    /// The program exits and waits: all that happened until now goes into the file.
    ///
    /// Once the books have come so far they rest, though other threads may go on: so what
    /// is told comes to an end, and totals and events are of one moment.
    fn finish_recording(&mut self) {
        let now = self.ledger.up_to_now();
        let end = record::end(remains::exit_code(self.engine));
        let mut more = true;
        while more {
            if self.ledger.done() < now {
                self.hear_program();
                self.ledger.pass();
                self.place();
            } else {
                self.ledger.rest();
            }
            let status = self.status();
            let sources = Sources {
                engine: self.engine,
                ledger: &self.ledger,
                modules: &self.modules,
                threads: &self.threads,
                said: &self.said,
                status: &status,
            };
            let worked_off = self.ledger.done() >= now;
            let Some(file) = self.peers.iter_mut().find(|peer| peer.is_file()) else { break };
            file.hurry();
            file.follow(&sources, sys::monotonic_ns());
            more = !(worked_off && file.has_told_all(&sources));
            if !more {
                file.write(&end);
            }
            if file.flush().is_err() {
                break;
            }
        }
        self.peers.retain(|peer| !peer.is_file());
        record::written();
    }

    /// Places the frames of callstacks that are new in modules.
    fn place(&mut self) {
        for stack in self.placed..self.ledger.known() {
            let raw = self.ledger.raw(StackId(stack as u32));
            self.engine.callstacks.rewrite(raw, |pc| self.modules.place(pc));
        }
        self.placed = self.ledger.known();
    }

    fn accept(&mut self, now_ns: u64) {
        let Some(server) = &self.server else { return };
        while self.peers.len() < MAX_PEERS
            && let Some(stream) = server.accept()
        {
            let memory = self.memory.as_ref().and_then(Opened::told);
            let mut peer = Peer::new(stream, self.hello(), memory, now_ns);
            // At once: what follows may take its time.
            if peer.flush().is_ok() {
                self.peers.push(peer);
            }
        }
    }

    fn wait(&self) {
        let timeout = match self.ledger.worked_off() {
            _ if self.ledger.has_more() => 0,
            0 => IDLE_MS,
            1..MANY => USUAL_MS,
            _ => BUSY_MS,
        };
        let records = self.peers.iter().any(Peer::is_file);
        let timeout = if records { timeout.min(record::LOOK_MS) } else { timeout };
        let watch = |fd: i32, writes: bool| libc::pollfd {
            fd,
            events: libc::POLLIN | if writes { libc::POLLOUT } else { 0 },
            revents: 0,
        };
        let mut fds: Vec<libc::pollfd> = self
            .peers
            .iter()
            .filter_map(Peer::poll)
            .map(|(fd, writes)| watch(fd.as_raw_fd(), writes))
            .collect();
        if self.peers.len() < MAX_PEERS
            && let Some(server) = self.server.as_ref().filter(|s| s.is_open())
        {
            let interprocess::local_socket::Listener::UdSocket(l) = server.listener();
            fds.push(watch(l.as_fd().as_raw_fd(), false));
        }
        // SAFETY: `fds` is a slice of the length given.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        // A sandbox may forbid it: then the time must pass in another way.
        if ready < 0 {
            sys::sleep_ms(timeout.unsigned_abs());
        }
    }

    fn listen(&mut self, now_ns: u64) {
        let mut wanted = Vec::new();
        self.peers.retain_mut(|peer| match peer.listen(now_ns) {
            Ok(commands) => {
                wanted.extend(commands);
                true
            }
            Err(_) => false,
        });
        self.engine.want_frees(self.peers.iter().any(Peer::wants_frees));
        for command in wanted {
            self.obey(command);
        }
    }

    fn obey(&mut self, command: FromViewer) {
        let (interval, on) = (self.engine.interval(), self.engine.rate().interval.is_some());
        match command {
            // The peer's own business.
            FromViewer::Hello(_) | FromViewer::WantFreeStacks(_) => {}
            FromViewer::SetInterval(c) => {
                self.govern(c.interval.is_none());
                self.engine.set_rate(c.interval.unwrap_or(interval), on);
            }
            FromViewer::SetSampling(c) => self.engine.set_rate(interval, c.on && !self.stopped),
            FromViewer::Profile(ProfileCommand::Start) => {
                self.engine.set_rate(interval, !self.stopped);
                self.forget();
            }
            FromViewer::Profile(ProfileCommand::Stop) => self.engine.set_rate(interval, false),
            FromViewer::Profile(ProfileCommand::Discard) => self.forget(),
            FromViewer::SetMark(c) => {
                let label = c.label.chars().take(MARK_CHARS).collect();
                let mark = Mark { at: self.ledger.now(), label };
                self.said.say(mark.into());
            }
            FromViewer::WantSnapshot(_) => {
                let now = self.ledger.up_to_now();
                self.peers.iter_mut().for_each(|p| p.want_snapshot(now));
            }
        }
    }

    /// R is the governor's from now on, or is not.
    fn govern(&mut self, governed: bool) {
        self.governor = governed.then(|| Governor::new(self.reading()));
    }

    fn do_books(&mut self) {
        let before = sys::thread_cpu_ns();
        self.ledger.listen(!self.peers.is_empty());
        self.ledger.pass();
        if self.ledger.worked_off() > 0 {
            self.books_ns += sys::thread_cpu_ns().saturating_sub(before);
        }
    }

    fn reading(&self) -> Reading {
        Reading {
            ns: sys::monotonic_ns(),
            samples: self.engine.samples(),
            sampling_ns: self.books_ns + self.engine.cost_ns(),
            agent_ns: sys::thread_cpu_ns() + self.engine.cost_ns(),
            process_ns: sys::process_cpu_ns(),
        }
    }

    fn set_by_governor(&mut self) {
        let (ns, samples) = (sys::monotonic_ns(), self.engine.samples());
        if !self.governor.as_ref().is_some_and(|governor| governor.is_due(ns, samples)) {
            return;
        }
        let now = self.reading();
        let Some(governor) = &mut self.governor else { return };
        // While nothing is sampled there is nothing to go by.
        if self.engine.rate().interval.is_none() {
            *governor = Governor::new(now);
        } else if let Some(interval) = governor.decide(now, self.engine.interval()) {
            self.engine.set_rate(interval, true);
        }
    }

    fn forget(&mut self) {
        self.ledger.discard();
        self.engine.begin_profile();
        for peer in &mut self.peers {
            peer.want_curve();
            peer.want_snapshot(0);
        }
    }

    /// Sampling is over, for this reason.
    pub fn stopped(&mut self, reason: &str) {
        self.engine.set_rate(self.engine.interval(), false);
        self.stopped = true;
        for peer in &mut self.peers {
            peer.tell(Stopped { reason: reason.to_owned() });
            let _ = peer.flush();
        }
    }

    fn hello(&self) -> FromAgent {
        let now = self.ledger.now();
        let engine = self.engine;
        Hello {
            magic: MAGIC,
            version: heaptop_protocol::VERSION,
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            kind: AgentKind::Linked,
            name: if engine.name.is_empty() { executable() } else { engine.name.to_owned() },
            pid: std::process::id(),
            uptime_ns: now.time_ns,
            started_unix_ns: sys::unix_ns().saturating_sub(now.time_ns),
            nursery_bytes: engine.nursery.bytes,
            phase_bytes: engine.nursery.phase_bytes,
            max_young_bytes: engine.nursery.max_young_bytes,
            track: engine.track,
            depth: engine.depth as u32,
            memory_bound_bytes: engine.memory_bytes as u64,
            notices: self.notices.clone(),
        }
        .into()
    }

    fn status(&self) -> Status {
        let engine = self.engine;
        Status {
            at: self.ledger.now(),
            cycle: self.ledger.cycle(),
            sampling: match engine.rate().interval {
                Some(_) => Sampling::On,
                None if self.stopped => Sampling::Stopped,
                None => Sampling::Paused,
            },
            interval: engine.interval(),
            coarsest: engine.coarsest(),
            governed: self.governor.is_some(),
            gap: engine.has_gap(),
            samples: engine.samples(),
            totals: *self.ledger.totals(),
            live_blocks: u64::from(engine.tracker.live()),
            rss_bytes: self.rss_bytes,
            agent_bytes: (engine.bytes_touched() + self.ledger.bytes_touched()) as u64,
            agent_cpu_ns: sys::thread_cpu_ns() + engine.cost_ns(),
            process_cpu_ns: sys::process_cpu_ns(),
            losses: Losses {
                births: engine.tracker.lost(),
                stacks: self.ledger.unplaced(),
                unsent: 0,
                thinned: self.ledger.thinned(),
            },
        }
    }
}

/// The socket's path, to be removed at the program's end. Never given back.
static PATH: AtomicPtr<libc::c_char> = AtomicPtr::new(std::ptr::null_mut());

fn unlink_in_the_end(path: &std::path::Path) {
    use std::os::unix::ffi::OsStrExt;
    if let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) {
        PATH.store(path.into_raw(), Release);
    }
}

/// In a forked child: the parent's socket is the parent's.
pub fn nothing_to_unlink() {
    PATH.store(std::ptr::null_mut(), Release);
}

/// Removes the socket.
pub extern "C" fn unlink() {
    let path = PATH.load(Acquire);
    // A forked child that exits must leave its parent's socket alone.
    if !path.is_null() && Engine::running().is_some() {
        // SAFETY: the path ends with a zero byte.
        unsafe { libc::unlink(path) };
    }
}

/// Has the socket removed when the program exits in an orderly way. Once.
pub fn unlink_at_exit() {
    // SAFETY: the function has the type asked for and lives for ever.
    unsafe { libc::atexit(unlink) };
}

fn executable() -> String {
    std::fs::read_link("/proc/self/exe")
        .ok()
        .and_then(|p| Some(p.file_name()?.to_string_lossy().into_owned()))
        .unwrap_or_default()
}

fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: no memory involved.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.checked_mul(u64::try_from(page).ok()?)
}

#[cfg(all(test, not(loom)))]
mod tests;

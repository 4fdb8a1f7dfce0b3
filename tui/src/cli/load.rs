//! A session without a screen: of a file, or of a running target.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use heaptop_protocol::message::FromAgent;

use super::{Failure, meant, record};
use crate::session::Session;
use crate::source::file::{self, FileError};
use crate::source::inbox::Event;
use crate::source::tell::Tell;
use crate::source::{Link, SourceEvent, State};
use crate::symbols::Symbolizer;

/// How long a target may take to tell what is there.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long names are waited for; what has none by then is shown without.
const NAMES: Duration = Duration::from_secs(10);
/// Between two looks for a signal.
const LOOK: Duration = Duration::from_millis(100);
/// What a target has to say of a moment comes so much later at most, or it is stopped.
const LATE: Duration = Duration::from_secs(5);
/// Progress is shown after so long, and that often.
const PROGRESS: Duration = Duration::from_millis(500);

/// What a file tells to its end, or what a target tells that is called `source`.
pub(super) fn load(source: &str) -> Result<Session, Failure> {
    let path = Path::new(source);
    if is_file(path) {
        return file(path);
    }
    attach(&target(source)?, Duration::ZERO, &AtomicUsize::new(0))
}

/// Where the target listens that is called `source`. A directory may be called so as well: if
/// nothing else is, it was meant.
fn target(source: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(source);
    meant(source).map_err(|failure| match file::sniff(path) {
        Err(error @ FileError::Directory(_)) => Failure::Usage(error.to_string()),
        _ => failure,
    })
}

/// What a target tells that is called `source`, and what happens in it for so long from then
/// on; a signal ends that early.
pub(super) fn watched(source: &str, time: Duration) -> Result<Session, Failure> {
    attach(&target(source)?, time, &*record::signals()?)
}

/// What a file tells to its end.
pub(super) fn file(path: &Path) -> Result<Session, Failure> {
    let tell = file::open(path).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(hear(tell, &mut Progress::on_terminal()))
}

/// Whether a name means a file: there is one, that is no socket, or it looks like one.
pub(super) fn is_file(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::metadata(path) {
        // A directory of the name of a target is not meant.
        Ok(there) if there.is_dir() => path.components().count() > 1,
        Ok(there) => !there.file_type().is_socket(),
        Err(_) => path.extension().is_some_and(|e| e == "heaptop" || e == "ctf"),
    }
}

/// Hears a file to its end.
pub(super) fn hear(mut tell: Box<dyn Tell>, progress: &mut Progress) -> Session {
    let mut session = Session::new();
    while let Some(event) = tell.next() {
        session.apply(event.into());
        progress.show(&*tell);
    }
    progress.clear();
    session
}

/// Attaches, hears the snapshot and one status, watches for `time`, waits for names, and
/// leaves. A signal that `came` ends the watching early.
fn attach(socket: &Path, time: Duration, came: &AtomicUsize) -> Result<Session, Failure> {
    let link = Link::open(socket).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut heard = Heard::of(&link);
    let end = Instant::now() + PATIENCE;
    while !heard.all_there() {
        if let Some(signal) = signal(came) {
            return Err(Failure::Signal(signal));
        }
        // What a target that has ended left is told as well.
        if let Some(why) = heard.ended {
            return Err(Failure::Failed(why));
        }
        if !heard.more(end.min(Instant::now() + LOOK)) && Instant::now() >= end {
            let seconds = PATIENCE.as_secs();
            return Err(Failure::Failed(format!(
                "the target did not tell what is there within {seconds} s: it is stopped or too busy, try again"
            )));
        }
    }
    // The target's own time is meant, which comes with its word.
    let end = Instant::now() + time + LATE;
    while heard.watched() < time
        && heard.ended.is_none()
        && signal(came).is_none()
        && Instant::now() < end
    {
        heard.more(end.min(Instant::now() + LOOK));
    }
    let end = Instant::now() + NAMES;
    while heard.unnamed > 0 && heard.more(end) {}
    Ok(heard.session)
}

fn signal(came: &AtomicUsize) -> Option<i32> {
    i32::try_from(came.load(SeqCst)).ok().filter(|signal| *signal != 0)
}

/// What a target has told.
struct Heard<'a> {
    link: &'a Link,
    symbols: Symbolizer,
    session: Session,
    /// Frames whose names are looked for.
    unnamed: usize,
    /// The snapshot is complete.
    whole: bool,
    ended: Option<String>,
}

impl<'a> Heard<'a> {
    fn of(link: &'a Link) -> Self {
        let symbols = Symbolizer::start(link.name_answers());
        let session = Session::new();
        Self { link, symbols, session, unnamed: 0, whole: false, ended: None }
    }

    fn all_there(&self) -> bool {
        self.whole && self.session.status().is_some()
    }

    /// For how long its blocks have been seen to come and go.
    fn watched(&self) -> Duration {
        let span = self.session.span().map_or(0, |(from, to)| to.saturating_sub(from));
        Duration::from_nanos(span)
    }

    /// Hears what comes next, until then; whether anything came.
    fn more(&mut self, until: Instant) -> bool {
        let Some(event) = self.link.inbox().take(Some(until)) else { return false };
        let Event::Source(event) = event else { return true };
        match &event {
            SourceEvent::Names(names) => self.unnamed = self.unnamed.saturating_sub(names.len()),
            SourceEvent::Message(FromAgent::SnapshotEnd(_)) => self.whole = true,
            SourceEvent::Connection(State::Ended(why)) => self.ended = Some(why.clone()),
            _ => {}
        }
        self.session.apply(event.into());
        let frames = self.session.take_wanted_frames();
        if !frames.is_empty() {
            let pid = self.link.target().pid;
            self.unnamed += self.symbols.want_of(pid, self.session.modules(), frames);
        }
        true
    }
}

/// Says on a terminal how far a file has been read.
pub(super) struct Progress {
    shown: bool,
    next: Instant,
    events: u32,
    terminal: bool,
}

impl Progress {
    pub(super) fn on_terminal() -> Self {
        Self {
            shown: false,
            next: Instant::now() + PROGRESS,
            events: 0,
            terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, tell: &dyn Tell) {
        // Looking at the clock costs more than an event.
        self.events = self.events.wrapping_add(1);
        if !self.terminal || !self.events.is_multiple_of(64) || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + PROGRESS;
        let of = tell.progress();
        if let Some(percent) = (of.read * 100).checked_div(of.of) {
            // If nobody sees it, nothing is lost.
            let _ = write!(io::stderr(), "\rreading: {} %", percent.min(100));
            self.shown = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r              \r");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{self, Question, When};
    use crate::source::tell::Progress as Read;
    use heaptop_protocol::event::{Alloc, Batch, Event as Happened, Moment};
    use heaptop_protocol::message::{SnapshotBegin, SnapshotEnd};

    /// A file made by hand.
    struct Hand(std::vec::IntoIter<SourceEvent>);

    impl Iterator for Hand {
        type Item = SourceEvent;

        fn next(&mut self) -> Option<SourceEvent> {
            self.0.next()
        }
    }

    impl Tell for Hand {
        fn progress(&self) -> Read {
            Read { read: 5, of: 10 }
        }
    }

    #[test]
    fn a_file_is_heard_to_its_end_and_asked_about_any_moment() {
        let at = |seq, ms: u64| Moment { seq, time_ns: ms * 1_000_000, clock: seq * 1000 };
        let born = |seq, ms| {
            let script = crate::source::fake::script();
            let batch = script.into_iter().find_map(|message| match message {
                FromAgent::Events(batch) => Some(batch),
                _ => None,
            });
            let first = batch.and_then(|batch| batch.iter().next());
            let Some(Happened::Alloc(alloc)) = first else { panic!("the script has a birth") };
            Happened::Alloc(Alloc { at: at(seq, ms), ..alloc })
        };
        let hello = crate::source::fake::hello();
        let told: Vec<FromAgent> = vec![
            hello.into(),
            SnapshotBegin { at: at(1, 1) }.into(),
            SnapshotEnd { at: at(2, 1), blocks: 0 }.into(),
            Batch::pack(&[born(3, 1000), born(4, 2000)]).into(),
        ];
        let mut told: Vec<SourceEvent> = told.into_iter().map(SourceEvent::Message).collect();
        told.push(SourceEvent::Connection(State::Ended("the recording ends here".into())));
        let mut progress = Progress::on_terminal();
        let session = hear(Box::new(Hand(told.into_iter())), &mut progress);
        assert_eq!(session.span(), Some((1_000_000, 2_000_000_000)));
        let ended = crate::session::Connection::Ended("the recording ends here".into());
        assert_eq!(*session.connection(), ended);
        let blocks = |ms: u64| {
            let when = When::At(ms * 1_000_000);
            let question = Question { when, ..Question::default() };
            query::callsites(&session, &question).total.in_use_bytes.point()
        };
        assert_eq!(blocks(2000), blocks(1500).map(|bytes| bytes * 2.0));
        assert!(blocks(1500).is_some_and(|bytes| bytes > 0.0));
        assert_eq!(blocks(500), None, "no R was told: nobody knows what was not seen");
    }

    #[test]
    fn files_are_told_from_targets() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("any");
        std::fs::write(&file, "no recording").unwrap();
        assert!(is_file(&file));
        let socket = dir.path().join("x.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(!is_file(&socket));
        assert!(is_file(Path::new("missing.heaptop")), "the sentence should be about a file");
        assert!(!is_file(Path::new("orders-api")));
        assert!(!is_file(Path::new("4711")));
        let refused = load(file.to_str().unwrap());
        assert!(matches!(refused, Err(Failure::Usage(_))));
        // A directory of the name of no target: `src` is one of the working directory.
        let Err(Failure::Usage(said)) = load("src") else { panic!("there is none in it") };
        assert!(said.starts_with("src is a directory"), "{said}");
    }
}

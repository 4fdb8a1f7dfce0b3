//! A session without a screen: of a file, or of a running target.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use heaptop_protocol::message::FromAgent;

use super::Failure;
use crate::session::Session;
use crate::source::inbox::Event;
use crate::source::tell::Tell;
use crate::source::wanted::Wanted;
use crate::source::{Link, SourceEvent, State, file};
use crate::symbols::Symbolizer;

/// How long a target may take to tell what is there.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long names are waited for; what has none by then is shown without.
const NAMES: Duration = Duration::from_secs(10);
/// Progress is shown after so long, and that often.
const PROGRESS: Duration = Duration::from_millis(500);

/// What a file tells to its end, or what a target tells that is called `source`.
pub(super) fn load(source: &str) -> Result<Session, Failure> {
    let path = Path::new(source);
    if is_file(path) {
        return file(path);
    }
    let socket = Wanted::from(source).socket().map_err(Failure::Usage)?;
    attach(&socket)
}

/// What a file tells to its end.
pub(super) fn file(path: &Path) -> Result<Session, Failure> {
    let tell = file::open(path).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(hear(tell, &mut Progress::on_terminal()))
}

/// Whether a name means a file: there is one, that is no socket, or it looks like one.
fn is_file(path: &Path) -> bool {
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

/// Attaches, hears the snapshot and one status, waits for names, and leaves.
fn attach(socket: &Path) -> Result<Session, Failure> {
    let link = Link::open(socket).map_err(|error| Failure::Usage(error.to_string()))?;
    let symbols = Symbolizer::start(link.name_answers());
    let mut session = Session::new();
    let (mut unnamed, mut whole) = (0usize, false);
    let mut end = Instant::now() + PATIENCE;
    let told = |session: &Session, whole: bool| whole && session.status().is_some();
    while !told(&session, whole) || unnamed > 0 {
        let Some(event) = link.inbox().take(Some(end)) else {
            if told(&session, whole) {
                break;
            }
            let seconds = PATIENCE.as_secs();
            return Err(Failure::Failed(format!(
                "the target did not tell what is there within {seconds} s: it is stopped or too busy, try again"
            )));
        };
        let Event::Source(event) = event else { continue };
        match &event {
            SourceEvent::Names(names) => unnamed = unnamed.saturating_sub(names.len()),
            SourceEvent::Message(FromAgent::SnapshotEnd(_)) if !whole => {
                whole = true;
                end = Instant::now() + NAMES;
            }
            // What a target that has ended left is told as well.
            SourceEvent::Connection(State::Ended(why)) if !told(&session, whole) => {
                return Err(Failure::Failed(why.clone()));
            }
            SourceEvent::Connection(State::Ended(_)) => end = end.min(Instant::now() + NAMES),
            _ => {}
        }
        session.apply(event.into());
        let frames = session.take_wanted_frames();
        if !frames.is_empty() {
            unnamed += symbols.want_of(link.target().pid, session.modules(), frames);
        }
    }
    Ok(session)
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
    }
}

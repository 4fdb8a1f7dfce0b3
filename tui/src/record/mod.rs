//! Recording: what a target says, into a file that tells it again.
//!
//! ```text
//! target ─► link ─► tee ─► output (chunks) ─► FILE.heaptop ─► source::recording
//!             symbolizer ─┘   └ packing: compression
//! ```
//!
//! 1. **A recorder is a viewer** with a connection of its own and a thread of its own,
//!    and writes down what it hears, frame by frame, those too that it does not know.
//!    So a recording begins with a snapshot like any viewer's session, and a full disk, a
//!    slow disk, or a recorder that is killed is no concern of the target or of a screen.
//! 2. **Self-contained**: names are looked for while the target lives, and written as
//!    they are found.
//! 3. **Less than it hears** in one thing: absolute values that are told several times a
//!    second are recorded once ([`thin`]).
//! 4. **Readable at any moment.** Chunks are written in one piece, at the latest after a
//!    second. What ends the recorder costs the last second.
//! 5. **In several files** ([`Plan::rotate`]): the next one's recorder connects, and has a
//!    whole snapshot, before the last one ends. Each file is a recording by itself.

mod dump;
mod file;
pub(crate) mod packing;
mod rotate;
mod seal;
mod tee;
mod thin;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::source::{Link, SourceEvent};
use heaptop_protocol::message::FromAgent;

use crate::source::inbox::{Event, Inbox};
use crate::symbols::Symbolizer;
pub use dump::{DumpError, dump};
use file::Output;
pub use file::RecordError;
use packing::Packer;
pub use rotate::{Plan, Summary, default_name, run};
pub use seal::{SealError, Sealed, seal};
use tee::Tee;

/// How long the last names are waited for.
const NAMES: Duration = Duration::from_secs(5);
/// How long the target's last words are waited for.
const LAST: Duration = Duration::from_millis(1500);
/// Between two looks at the clock while nothing comes.
const LOOK: Duration = Duration::from_millis(500);

/// How far a recording is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes in the file.
    pub bytes: AtomicU64,
    /// Events of blocks.
    pub events: AtomicU64,
    /// Births among them.
    pub samples: AtomicU64,
    /// Events that were lost on the way.
    pub lost: AtomicU64,
    /// Whether a whole snapshot is in it.
    pub synced: AtomicBool,
}

/// Why a recording ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// It was ended while the target lived.
    Stopped,
    /// The target ended: a sentence.
    Target(String),
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stopped => f.write_str("the recording was ended while the target lived"),
            Self::Target(sentence) => f.write_str(sentence),
        }
    }
}

/// A recording in progress, on a thread of its own. Dropping it ends it, and waits
/// for it.
pub struct Recording {
    path: PathBuf,
    progress: Arc<Progress>,
    stop: Arc<AtomicBool>,
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<Result<How, RecordError>>>,
}

impl Recording {
    /// Records what comes over `link` into `path`; a file that is there is replaced if
    /// `replace` says so. `part` is the number of the file among several, or 0. When it ends by
    /// itself, `over` is called.
    pub fn start(
        link: Link,
        path: &Path,
        replace: bool,
        part: u32,
        over: impl Fn() + Send + 'static,
    ) -> Result<Self, RecordError> {
        let output = Output::create(path, replace, Packer::live())?;
        let tee = Tee::new(output, link.target().pid, part)?;
        let (progress, stop) = (Arc::new(Progress::default()), Arc::new(AtomicBool::new(false)));
        let inbox = Arc::clone(link.inbox());
        let (shared, stopped) = (Arc::clone(&progress), Arc::clone(&stop));
        let work = move || {
            let outcome = record(&link, tee, &shared, &stopped);
            over();
            outcome
        };
        let thread = std::thread::Builder::new()
            .name("heaptop-record".into())
            .spawn(work)
            .map_err(RecordError::Thread)?;
        Ok(Self { path: path.into(), progress, stop, inbox, thread: Some(thread) })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The same, to be looked at when it is over.
    #[must_use]
    pub fn share(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Has it end soon, without waiting.
    pub fn stop(&self) {
        self.stop.store(true, SeqCst);
        self.inbox.put_urgent(Event::Wake);
    }

    /// Ends it and waits for the last names and the file's end.
    pub fn finish(mut self) -> Result<How, RecordError> {
        self.stop();
        self.join()
    }

    fn join(&mut self) -> Result<How, RecordError> {
        let joined = self.thread.take().map(JoinHandle::join);
        // A panic was printed already.
        joined.and_then(Result::ok).unwrap_or(Ok(How::Stopped))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stop();
        let _ = self.join();
    }
}

/// Records until the target ends or `stop` says so.
fn record(
    link: &Link,
    mut tee: Tee,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<How, RecordError> {
    let symbols = Symbolizer::start(link.name_answers());
    let inbox = link.inbox();
    while !stop.load(SeqCst) && tee.ended().is_none() {
        let now = Instant::now();
        if tee.due().is_some_and(|due| due <= now) {
            tee.flush(progress)?;
        }
        if let Some(Event::Source(event)) = inbox.take(Some(tee.due().unwrap_or(now + LOOK))) {
            tee.take(event, &symbols, progress)?;
        }
    }
    // All that happened until now is told with the second status from here: the first
    // one may have been on its way.
    let (patience, mut statuses) = (Instant::now() + LAST, 0);
    while tee.ended().is_none() && statuses < 2 {
        match inbox.take(Some(patience)) {
            Some(Event::Source(event)) => {
                statuses += u32::from(matches!(&event, SourceEvent::Message(FromAgent::Status(_))));
                tee.take(event, &symbols, progress)?;
            }
            Some(_) => {}
            None => break,
        }
    }
    // What comes from now on, but for names, is not recorded.
    let patience = Instant::now() + NAMES;
    while tee.awaits_names() {
        match inbox.take(Some(patience)) {
            Some(Event::Source(event @ SourceEvent::Names(_))) => {
                tee.take(event, &symbols, progress)?;
            }
            Some(_) if Instant::now() < patience => {}
            Some(_) | None => break,
        }
    }
    let (_, how) = tee.finish(progress)?;
    Ok(how)
}

/// Bytes so far, of a recording.
#[must_use]
pub fn bytes(progress: &Progress) -> u64 {
    progress.bytes.load(Relaxed)
}

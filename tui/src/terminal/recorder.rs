//! Keys `R` and `W`: record the target that is looked at, or a moment of it, over a
//! connection of their own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime};

use crate::record::{How, Recording, bytes, default_name};
use crate::source::inbox::{Event, Inbox};
use crate::source::{Link, Target};
use crate::view::format::{self, Rounding};

/// How long a whole snapshot may take to come.
const WHOLE: Duration = Duration::from_secs(15);
/// Between two looks for it.
const LOOK: Duration = Duration::from_millis(20);

/// What is being done. Connecting and the end take a moment, and are waited for by
/// threads of their own.
enum Now {
    Nothing,
    Starting(Receiver<Result<Recording, String>>),
    Recording(Recording),
    Ending(Receiver<String>),
}

/// What is to be said of a recording.
pub(super) enum News {
    /// It goes on from now on.
    Began(String),
    /// It is over, or never began.
    Over(String),
}

/// See the module.
pub(super) struct Recorder {
    target: Target,
    inbox: Arc<Inbox>,
    now: Now,
    /// A snapshot that is being written: what is to be said when it is.
    snapshot: Option<Receiver<String>>,
}

impl Recorder {
    pub(super) fn new(target: &Target, inbox: &Arc<Inbox>) -> Self {
        Self { target: target.clone(), inbox: Arc::clone(inbox), now: Now::Nothing, snapshot: None }
    }

    /// Starts or ends; what is to be said about it.
    pub(super) fn toggle(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.now, Now::Nothing) {
            Now::Nothing => {
                self.now = Now::Starting(self.start());
                None
            }
            Now::Recording(recording) => {
                self.now = Now::Ending(self.finish(recording));
                None
            }
            now @ (Now::Starting(_) | Now::Ending(_)) => {
                self.now = now;
                Some("the recording is being started or ended: a moment".into())
            }
        }
    }

    /// Writes a recording of now, in the background; what is to be said about it at once.
    pub(super) fn snapshot(&mut self) -> Option<String> {
        if self.snapshot.is_some() {
            return Some("a snapshot is being written already: a moment".into());
        }
        let (say, written) = channel();
        let (target, inbox) = (self.target.clone(), Arc::clone(&self.inbox));
        Self::spawn(move || {
            let path = default_name(&target.hello.name, target.pid, SystemTime::now());
            let path = path.with_extension("snapshot.heaptop");
            let path = std::path::absolute(&path).unwrap_or(path);
            let said = write_snapshot(&target, &path)
                .unwrap_or_else(|why| format!("no snapshot is written: {why}"));
            let _ = say.send(said);
            inbox.put_urgent(Event::Wake);
        });
        self.snapshot = Some(written);
        None
    }

    /// What has come of it.
    pub(super) fn look_for_snapshot(&mut self) -> Option<String> {
        let said = match self.snapshot.as_ref()?.try_recv() {
            Ok(said) => said,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                "no snapshot is written: there is no thread for it".into()
            }
        };
        self.snapshot = None;
        Some(said)
    }

    /// What is shown while it records.
    pub(super) fn shown(&self) -> Option<(String, String)> {
        let Now::Recording(recording) = &self.now else { return None };
        let bytes = format::bytes(bytes(recording.progress()) as f64, 3, Rounding::Nearest);
        let name = recording.path().file_name().unwrap_or_default();
        Some((name.to_string_lossy().into_owned(), bytes))
    }

    /// Sees what has come of it; what is to be said.
    pub(super) fn look(&mut self) -> Option<News> {
        match &mut self.now {
            Now::Starting(started) => match started.try_recv() {
                Ok(Ok(recording)) => {
                    let said = format!("recording into {}", recording.path().display());
                    self.now = Now::Recording(recording);
                    return Some(News::Began(said));
                }
                Ok(Err(why)) => {
                    self.now = Now::Nothing;
                    return Some(News::Over(format!("nothing is recorded: {why}")));
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.now = Now::Nothing,
            },
            Now::Recording(recording) if recording.is_over() => {
                if let Now::Recording(recording) = std::mem::replace(&mut self.now, Now::Nothing) {
                    return Some(News::Over(sentence(recording)));
                }
            }
            Now::Ending(ended) => match ended.try_recv() {
                Ok(said) => {
                    self.now = Now::Nothing;
                    return Some(News::Over(said));
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.now = Now::Nothing,
            },
            Now::Nothing | Now::Recording(_) => {}
        }
        None
    }

    /// Whether there is nothing to end.
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.now, Now::Nothing) && self.snapshot.is_none()
    }

    /// Ends what is going on, and waits for it; what was recorded, in a sentence.
    pub(super) fn end(self) -> Option<String> {
        let snapshot = self.snapshot.and_then(|written| written.recv().ok());
        let recorded = match self.now {
            Now::Nothing => None,
            Now::Starting(started) => started.recv().ok().and_then(Result::ok).map(sentence),
            Now::Recording(recording) => Some(sentence(recording)),
            Now::Ending(ended) => ended.recv().ok(),
        };
        let said: Vec<String> = snapshot.into_iter().chain(recorded).collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    fn start(&self) -> Receiver<Result<Recording, String>> {
        let (say, started) = channel();
        let (target, inbox) = (self.target.clone(), Arc::clone(&self.inbox));
        Self::spawn(move || {
            let path = default_name(&target.hello.name, target.pid, SystemTime::now());
            let path = std::path::absolute(&path).unwrap_or(path);
            let over = {
                let inbox = Arc::clone(&inbox);
                move || inbox.put_urgent(Event::Wake)
            };
            let recording =
                Link::open(&target.socket).map_err(|error| error.to_string()).and_then(|link| {
                    Recording::start(link, &path, false, 0, over).map_err(|error| error.to_string())
                });
            // Nobody receives once the viewer ends: the recording ends with it.
            let _ = say.send(recording);
            inbox.put_urgent(Event::Wake);
        });
        started
    }

    fn finish(&self, recording: Recording) -> Receiver<String> {
        let (say, ended) = channel();
        let inbox = Arc::clone(&self.inbox);
        Self::spawn(move || {
            let _ = say.send(sentence(recording));
            inbox.put_urgent(Event::Wake);
        });
        ended
    }

    /// Without a thread nothing comes of it, and the other end of the channel says so.
    fn spawn(work: impl FnOnce() + Send + 'static) {
        let _ = std::thread::Builder::new().name("heaptop-record".into()).spawn(work);
    }
}

/// A recording that ends as soon as all is in it that a viewer is told at first: what is
/// in use and was allocated, the live sampled blocks, the curve, phases and marks, and
/// the names.
fn write_snapshot(target: &Target, path: &Path) -> Result<String, String> {
    let link = Link::open(&target.socket).map_err(|error| error.to_string())?;
    let recording =
        Recording::start(link, path, false, 0, || ()).map_err(|error| error.to_string())?;
    let (progress, began) = (recording.share(), Instant::now());
    while !progress.synced.load(Relaxed) && !recording.is_over() && began.elapsed() < WHOLE {
        std::thread::sleep(LOOK);
    }
    recording.finish().map_err(|error| error.to_string())?;
    if progress.synced.load(Relaxed) {
        let bytes = format::bytes(bytes(&progress) as f64, 3, Rounding::Nearest);
        Ok(format!("snapshot written: {}, {bytes}", path.display()))
    } else {
        // A part of a snapshot says less than there is.
        let _ = std::fs::remove_file(path);
        Err("the target did not tell all of it".into())
    }
}

/// Ends the recording: what there is of it.
fn sentence(recording: Recording) -> String {
    let path = recording.path().to_owned();
    let progress = recording.share();
    match recording.finish() {
        Ok(how) => {
            let bytes = format::bytes(bytes(&progress) as f64, 3, Rounding::Nearest);
            let how = match how {
                How::Stopped => String::new(),
                How::Target(how) => format!(": {how}"),
            };
            format!("recorded {}, {bytes}{how}", path.display())
        }
        Err(error) => error.to_string(),
    }
}

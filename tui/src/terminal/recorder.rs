//! Key `R`: records the target that is looked at, over a connection of its own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::SystemTime;

use crate::record::{How, Recording, bytes, default_name};
use crate::source::inbox::{Event, Inbox};
use crate::source::{Link, Target};
use crate::view::format::{self, Rounding};

/// What is being done. Connecting and the end take a moment, and are waited for by
/// threads of their own.
enum Now {
    Nothing,
    Starting(Receiver<Result<Recording, String>>),
    Recording(Recording),
    Ending(Receiver<String>),
}

/// See the module.
pub(super) struct Recorder {
    target: Target,
    inbox: Arc<Inbox>,
    now: Now,
}

impl Recorder {
    pub(super) fn new(target: &Target, inbox: &Arc<Inbox>) -> Self {
        Self { target: target.clone(), inbox: Arc::clone(inbox), now: Now::Nothing }
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

    /// What is shown while it records.
    pub(super) fn shown(&self) -> Option<(String, String)> {
        let Now::Recording(recording) = &self.now else { return None };
        let bytes = format::bytes(bytes(recording.progress()) as f64, 3, Rounding::Nearest);
        let name = recording.path().file_name().unwrap_or_default();
        Some((name.to_string_lossy().into_owned(), bytes))
    }

    /// Sees what has come of it; what is to be said.
    pub(super) fn look(&mut self) -> Option<String> {
        match &mut self.now {
            Now::Starting(started) => match started.try_recv() {
                Ok(Ok(recording)) => {
                    let said = format!("recording into {}; R ends it", recording.path().display());
                    self.now = Now::Recording(recording);
                    return Some(said);
                }
                Ok(Err(why)) => {
                    self.now = Now::Nothing;
                    return Some(format!("nothing is recorded: {why}"));
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.now = Now::Nothing,
            },
            Now::Recording(recording) if recording.is_over() => {
                if let Now::Recording(recording) = std::mem::replace(&mut self.now, Now::Nothing) {
                    return Some(sentence(recording));
                }
            }
            Now::Ending(ended) => match ended.try_recv() {
                Ok(said) => {
                    self.now = Now::Nothing;
                    return Some(said);
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => self.now = Now::Nothing,
            },
            Now::Nothing | Now::Recording(_) => {}
        }
        None
    }

    /// Ends what is going on, and waits for it; what was recorded, in a sentence.
    pub(super) fn end(self) -> Option<String> {
        match self.now {
            Now::Nothing => None,
            Now::Starting(started) => started.recv().ok()?.ok().map(sentence),
            Now::Recording(recording) => Some(sentence(recording)),
            Now::Ending(ended) => ended.recv().ok(),
        }
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

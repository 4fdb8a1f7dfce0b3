//! A session without a screen: everything that a target at rest has to tell, with
//! all names.

use std::path::Path;
use std::time::{Duration, Instant};

use heaptop_protocol::message::{FromAgent, WantSnapshot};

use crate::session::{Input, Session};
use crate::source::inbox::Event;
use crate::source::{Link, SourceEvent, State};
use crate::symbols::Symbolizer;

/// Attaches to the target at `socket`, which rests, and reads until nothing is
/// left to be told: the snapshot of its greeting, one more, whose totals are
/// then exactly its own, and a name for each frame.
pub(super) fn session(socket: &Path, patience: Duration) -> Result<Session, String> {
    let link = Link::open(socket).map_err(|error| error.to_string())?;
    let symbols = Symbolizer::start(link.name_answers());
    let mut session = Session::new();
    let (mut snapshots, mut unnamed) = (0, 0usize);
    let end = Instant::now() + patience;
    while snapshots < 2 || unnamed > 0 {
        let Some(event) = link.inbox().take(Some(end)) else {
            return Err(format!(
                "the demo's figures did not come within {} s: the machine is too busy, try again",
                patience.as_secs()
            ));
        };
        let Event::Source(event) = event else { continue };
        match event {
            SourceEvent::Message(message) => {
                let ended = matches!(message, FromAgent::SnapshotEnd(_));
                session.apply(Input::Agent(message));
                if ended {
                    snapshots += 1;
                    if snapshots == 1 && !link.send(WantSnapshot {}.into()) {
                        return Err("the demo's agent takes no commands".into());
                    }
                }
            }
            SourceEvent::UnknownMessage { .. } => session.apply(Input::UnknownMessage),
            SourceEvent::Names(names) => {
                unnamed = unnamed.saturating_sub(names.len());
                session.apply(Input::Names(names));
            }
            SourceEvent::Connection(State::Lost(why) | State::Ended(why)) => return Err(why),
            SourceEvent::Connection(State::Connecting | State::Connected)
            | SourceEvent::Damage(_) => {}
        }
        let frames = session.take_wanted_frames();
        if !frames.is_empty() {
            unnamed += symbols.want_of(link.target().pid, session.modules(), frames);
        }
    }
    Ok(session)
}

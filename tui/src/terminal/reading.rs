//! A file that is read in the background, as fast as the screen takes it in.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use heaptop_protocol::event::Batch;
use heaptop_protocol::message::FromAgent;

use crate::source::SourceEvent;
use crate::source::inbox::Inbox;
use crate::source::tell::{Progress, Tell};

/// What an event counts against the inbox's bound, which is there for memory, so as to
/// be about right for the largest.
const BYTES: usize = 4096;
/// What one of many events of blocks takes.
const EVENT: usize = 128;
/// All of it is read.
const DONE: u8 = 101;

/// See the module. Dropping it ends the reading.
pub(super) struct Reading {
    inbox: Arc<Inbox>,
    percent: Arc<AtomicU8>,
}

impl Reading {
    pub(super) fn start(mut tell: Box<dyn Tell>, inbox: &Arc<Inbox>) -> io::Result<Self> {
        let percent = Arc::new(AtomicU8::new(percent(tell.progress())));
        let (put, shared) = (Arc::clone(inbox), Arc::clone(&percent));
        let work = move || {
            while let Some(event) = tell.next() {
                shared.store(self::percent(tell.progress()), Relaxed);
                if !put.put(size(&event), event) {
                    return;
                }
            }
            shared.store(DONE, Relaxed);
            put.put_urgent(crate::source::inbox::Event::Wake);
        };
        std::thread::Builder::new().name("heaptop-read".into()).spawn(work)?;
        Ok(Self { inbox: Arc::clone(inbox), percent })
    }

    /// How much is read, in percent; `None` once it is all.
    pub(super) fn percent(&self) -> Option<u8> {
        Some(self.percent.load(Relaxed)).filter(|percent| *percent <= 100)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

fn percent(progress: Progress) -> u8 {
    let Progress { read, of } = progress;
    // It may grow while it is read.
    (read.min(of) as f64 / of.max(1) as f64 * 100.0) as u8
}

fn size(event: &SourceEvent) -> usize {
    match event {
        SourceEvent::Message(FromAgent::Events(batch)) => BYTES + EVENT * Batch::len(batch),
        SourceEvent::Message(_) | SourceEvent::UnknownMessage { .. } => BYTES,
        SourceEvent::Names(names) => BYTES + EVENT * names.len(),
        SourceEvent::Connection(_) | SourceEvent::Damage(_) => 0,
    }
}

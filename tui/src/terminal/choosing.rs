//! Looking for targets and attaching to one, in the background: either may take as long as
//! the slowest target needs to answer, and the screen goes on meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::Outlet;
use crate::app::targets::{Candidate, Look};
use crate::source::demo::Demo;
use crate::source::discover::{Found, Survey, kind, survey};
use crate::source::inbox::Event;
use crate::source::{Link, LinkError};

/// Between the end of a look and the next one. Each asks every target how it is.
const AGAIN: Duration = Duration::from_secs(2);

/// A target that has answered.
pub(super) struct Opened {
    pub(super) link: Link,
    /// It was started for this, and ends with it.
    pub(super) demo: Option<Demo>,
}

/// What one attempt came to.
type Attempt = (u64, Result<Opened, String>);

/// See the module.
pub(super) struct Choosing {
    outlet: Arc<Outlet>,
    looks: (Sender<Look>, Receiver<Look>),
    looking: bool,
    /// When to look again.
    next: Instant,
    opened: (Sender<Attempt>, Receiver<Attempt>),
    /// The attempt that somebody waits for.
    number: u64,
}

impl Choosing {
    pub(super) fn new(outlet: &Arc<Outlet>) -> Self {
        let outlet = Arc::clone(outlet);
        let (looks, opened) = (channel(), channel());
        Self { outlet, looks, looking: false, next: Instant::now(), opened, number: 0 }
    }

    /// When the next look is due; `None` while one goes on.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.looking).then_some(self.next)
    }

    /// Looks, if it is time for it.
    pub(super) fn look(&mut self, now: Instant) {
        if self.due().is_none_or(|due| due > now) {
            return;
        }
        self.looking = true;
        let (say, outlet) = (self.looks.0.clone(), Arc::clone(&self.outlet));
        let started = spawn("heaptop-targets", move || {
            // Nobody receives once the viewer ends.
            let _ = say.send(look(survey()));
            outlet.put(Event::Wake);
        });
        if let Err(trouble) = started {
            let _ = self.looks.0.send(Look { trouble: Some(trouble), ..Look::default() });
            self.outlet.put(Event::Wake);
        }
    }

    /// Nobody looks at targets any more: who does next sees new ones.
    pub(super) fn rest(&mut self) {
        self.next = Instant::now();
    }

    /// What was found.
    pub(super) fn take_look(&mut self) -> Option<Look> {
        let look = self.looks.1.try_recv().ok()?;
        (self.looking, self.next) = (false, Instant::now() + AGAIN);
        Some(look)
    }

    /// Attaches to the target that listens at `socket`.
    pub(super) fn open(&mut self, socket: PathBuf) {
        self.attempt(move || open(&socket, None));
    }

    /// Starts the demo, and attaches to it.
    pub(super) fn start_demo(&mut self) {
        self.attempt(|| {
            let demo = Demo::start()?;
            let socket = demo.socket().to_owned();
            open(&socket, Some(demo))
        });
    }

    fn attempt(&mut self, work: impl FnOnce() -> Result<Opened, String> + Send + 'static) {
        self.number += 1;
        let number = self.number;
        let (say, outlet) = (self.opened.0.clone(), Arc::clone(&self.outlet));
        let started = spawn("heaptop-attach", move || {
            let _ = say.send((number, work()));
            outlet.put(Event::Wake);
        });
        if let Err(why) = started {
            let _ = self.opened.0.send((number, Err(why)));
            self.outlet.put(Event::Wake);
        }
    }

    /// Nobody waits for what is being attached to.
    pub(super) fn leave_off(&mut self) {
        self.number += 1;
    }

    /// What has come of the attempt that somebody waits for.
    pub(super) fn take_opened(&mut self) -> Option<Result<Opened, String>> {
        self.opened.1.try_iter().filter(|(number, _)| *number == self.number).last().map(|(_, o)| o)
    }
}

fn open(socket: &std::path::Path, demo: Option<Demo>) -> Result<Opened, String> {
    let link = Link::open(socket).map_err(|error| error.to_string())?;
    Ok(Opened { link, demo })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).map_err(|error| format!("there is no thread for it: {error}"))
}

/// What was found, as the list shows it.
pub(super) fn look(found: Result<Survey, LinkError>) -> Look {
    match found {
        Ok(Survey { targets, troubles }) => {
            let trouble = match &troubles[..] {
                [] => None,
                [one] => Some(one.clone()),
                [one, more @ ..] => Some(format!("{one}; and {} more like it", more.len())),
            };
            Look { targets: targets.iter().map(candidate).collect(), trouble }
        }
        Err(error) => Look { targets: Vec::new(), trouble: Some(error.to_string()) },
    }
}

fn candidate(found: &Found) -> Candidate {
    let target = &found.target;
    Candidate {
        pid: target.pid,
        parent: found.parent,
        name: target.hello.name.clone(),
        kind: kind(&target.hello),
        socket: target.socket.clone(),
        interval_bytes: found.status.map(|status| status.interval.bytes()),
        in_use: found.in_use(),
        uptime_ns: found.uptime_ns(),
    }
}

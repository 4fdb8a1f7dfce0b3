//! A session on the screen: brings source, session, application and symbols together.
//! The source is a live target, or a file that is read in the background.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::event::Event as Input;
use heaptop_protocol::callstack::Module;
use rustc_hash::FxHashSet;

use super::reading::Reading;
use super::recorder::Recorder;
use super::silence::Silence;
use super::{Ended, Order, PACE, Ui, run_ui, sources};
use crate::app::settings::Settings;
use crate::app::{App, Effect, Message, Options, outcome};
use crate::export::{self, Format, Shown};
use crate::session::{Connection, Damage, Session};
use crate::source::inbox::{Event, Inbox};
use crate::source::tell::Tell;
use crate::source::{Link, SourceEvent};
use crate::symbols::Symbolizer;
use crate::system::Memory;
use crate::view;

/// Between two looks at what the system knows.
const SYSTEM: Duration = Duration::from_secs(1);
/// Between two steps of a time cursor that moves by itself.
const PLAY: Duration = Duration::from_millis(100);

/// How a screen is wanted.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What the terminal takes.
    pub options: Options,
    /// How it begins.
    pub settings: Settings,
    /// Shortest time between two drawings of what the target sends.
    pub refresh: Duration,
    /// What is to be said first.
    pub said: Vec<String>,
    /// It is the user's first screen.
    pub first: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            options: Options::default(),
            settings: Settings::default(),
            refresh: PACE,
            said: Vec::new(),
            first: false,
        }
    }
}

impl Setup {
    fn app(self, new: impl FnOnce(Options) -> App) -> App {
        let mut app = new(self.options).configured(self.settings);
        if self.first {
            app = app.first();
        }
        app.tell(self.said);
        app
    }
}

/// Shows the link's target until the user leaves, and restores the terminal. What was
/// recorded until then is told afterwards, as a sentence.
pub fn run(
    link: Link,
    symbols: Symbolizer,
    setup: Setup,
) -> anyhow::Result<(Ended, Option<String>)> {
    let inbox = Arc::clone(link.inbox());
    let recorder = Recorder::new(link.target(), &inbox);
    let refresh = setup.refresh;
    let app = setup.app(App::new);
    let mut live = Live::new(&inbox, Feed::Target { link, symbols, recorder }, app, refresh);
    let ended = run_ui(&inbox, &mut live).context("the terminal cannot be used")?;
    let file = match live.feed {
        Feed::Target { recorder, .. } => recorder.end(),
        Feed::File(_) => None,
    };
    Ok((ended, file))
}

/// Shows what a file tells, the same way; where it was found to be damaged until then goes to
/// `damage`.
pub fn show(tell: Box<dyn Tell>, setup: Setup, damage: &mut Vec<Damage>) -> anyhow::Result<Ended> {
    let inbox = Arc::new(Inbox::default());
    let reading = Reading::start(tell, &inbox).context("the file cannot be read")?;
    let refresh = setup.refresh;
    let app = setup.app(App::of_file);
    let mut live = Live::new(&inbox, Feed::File(reading), app, refresh);
    let ended = run_ui(&inbox, &mut live).context("the terminal cannot be used");
    damage.extend_from_slice(live.session.damage());
    ended
}

/// Where it comes from.
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Feed {
    Target { link: Link, symbols: Symbolizer, recorder: Recorder },
    File(Reading),
}

struct Live {
    feed: Feed,
    /// Shortest time between two drawings of what it tells.
    refresh: Duration,
    session: Session,
    app: App,
    silence: Silence,
    /// Up to when the time cursor has moved by itself, while it does.
    played: Instant,
    /// Messages from work in the background.
    done: (Sender<Message>, Receiver<Message>),
    inbox: Arc<Inbox>,
    /// When the system was asked last for what it knows of the target's memory.
    asked_system: Option<Instant>,
    /// The last command whose effect is awaited, and since when.
    asked: Option<(u64, Instant)>,
}

impl Live {
    fn new(inbox: &Arc<Inbox>, feed: Feed, app: App, refresh: Duration) -> Self {
        Self {
            feed,
            refresh,
            session: Session::new(),
            app,
            silence: Silence::from(Instant::now()),
            played: Instant::now(),
            done: channel(),
            inbox: Arc::clone(inbox),
            asked_system: None,
            asked: None,
        }
    }

    fn update(&mut self, message: Message) -> Vec<Order> {
        let playing = self.app.playing();
        let effects = self.app.update(message, &self.session);
        let awaited = self.app.awaited_answer();
        if awaited != self.asked.map(|(number, _)| number) {
            self.asked = awaited.map(|number| (number, Instant::now()));
        }
        if !playing {
            self.played = Instant::now();
        }
        effects.into_iter().filter_map(|effect| self.carry_out(effect)).collect()
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Order> {
        match effect {
            Effect::Quit => return Some(Order::Quit),
            Effect::Suspend => return Some(Order::Suspend),
            Effect::Copy(text) => return Some(Order::Copy(text)),
            Effect::Export(shown, format) => self.export(shown, format),
            Effect::Propose(shown) => {
                let directory = std::env::current_dir().unwrap_or_default();
                let paths = export::propose(&shown, &directory);
                self.app.update(Message::Proposed(paths), &self.session);
            }
            Effect::Read(file) => self.read_source(file),
            Effect::Record => {
                if let Feed::Target { recorder, .. } = &mut self.feed
                    && let Some(said) = recorder.toggle()
                {
                    self.app.update(Message::Note(said), &self.session);
                }
            }
            Effect::Send(command) => {
                if let Feed::Target { link, .. } = &self.feed
                    && !link.send(command.clone())
                {
                    self.app.update(Message::NotSent(command), &self.session);
                }
            }
            Effect::Snapshot => {
                if let Feed::Target { recorder, .. } = &mut self.feed
                    && let Some(said) = recorder.snapshot()
                {
                    self.app.update(Message::Note(said), &self.session);
                }
            }
        }
        None
    }

    /// Until when the effect of a command is waited for.
    fn answer_due(&self) -> Option<Instant> {
        let (number, since) = self.asked?;
        (self.app.awaited_answer() == Some(number)).then(|| since + outcome::PATIENCE)
    }

    /// Writes an export into the working directory, in the background.
    fn export(&self, shown: Box<Shown>, format: Format) {
        let (done, inbox) = (self.done.0.clone(), Arc::clone(&self.inbox));
        let work = move || {
            let written = std::env::current_dir()
                .map_err(|e| format!("the working directory is not to be had: {e}"))
                .and_then(|directory| export::run(&shown, format, &directory));
            // Nobody receives once the viewer ends.
            let _ = done.send(Message::Exported(written));
            inbox.put_urgent(Event::Wake);
        };
        let started = std::thread::Builder::new().name("heaptop-export".into()).spawn(work);
        if let Err(error) = started {
            let _ = self.done.0.send(Message::Exported(Err(error.to_string())));
            self.inbox.put_urgent(Event::Wake);
        }
    }

    /// Reads a source file, in the background.
    fn read_source(&self, file: Arc<str>) {
        let (done, inbox) = (self.done.0.clone(), Arc::clone(&self.inbox));
        let pid = match &self.feed {
            Feed::Target { link, .. } => Some(link.target().pid),
            Feed::File(_) => None,
        };
        let of = Arc::clone(&file);
        let work = move || {
            let text = sources::read(&file, pid);
            let _ = done.send(Message::Source(file, text));
            inbox.put_urgent(Event::Wake);
        };
        let started = std::thread::Builder::new().name("heaptop-source".into()).spawn(work);
        if let Err(error) = started {
            let _ = self.done.0.send(Message::Source(of, Err(error.to_string())));
            self.inbox.put_urgent(Event::Wake);
        }
    }

    /// Asks for the names of frames that are new. A file brings its own.
    fn want_names(&mut self) {
        let frames = self.session.take_wanted_frames();
        let Feed::Target { link, symbols, .. } = &self.feed else { return };
        if frames.is_empty() {
            return;
        }
        let concerned: FxHashSet<_> = frames.iter().map(|frame| frame.module).collect();
        let known = self.session.modules();
        let modules: Vec<Module> =
            concerned.iter().filter_map(|id| known.get(id)).cloned().collect();
        symbols.want(link.target().pid, &modules, frames);
    }

    /// What the system knows of the target's memory, once a second while somebody looks.
    fn ask_system(&mut self) {
        let Feed::Target { link, .. } = &self.feed else { return };
        if !self.app.wants_system() {
            self.asked_system = None;
            return;
        }
        let now = Instant::now();
        if self.asked_system.is_none_or(|asked| now >= asked + SYSTEM) {
            self.asked_system = Some(now);
            let there = *self.session.connection() == Connection::Connected;
            let memory = there.then(|| Memory::read(link.target().pid));
            self.app.update(Message::System(memory), &self.session);
        }
    }

    /// How far the work in the background is.
    fn look(&mut self) {
        let (message, notes) = match &mut self.feed {
            Feed::File(reading) => (Message::Reading(reading.percent()), [None, None]),
            Feed::Target { recorder, .. } => {
                let notes = [recorder.look(), recorder.look_for_snapshot()];
                (Message::Recording(recorder.shown()), notes)
            }
        };
        self.app.update(message, &self.session);
        for note in notes.into_iter().flatten() {
            self.app.update(Message::Note(note), &self.session);
        }
    }
}

impl Ui for Live {
    fn pace(&self) -> Duration {
        self.refresh
    }

    fn input(&mut self, event: Input) -> Vec<Order> {
        match event {
            Input::Key(key) => self.update(Message::Key(key)),
            Input::Mouse(mouse) => self.update(Message::Mouse(mouse)),
            Input::Paste(text) => self.update(Message::Paste(text)),
            _ => Vec::new(),
        }
    }

    fn source(&mut self, event: SourceEvent) {
        // Names are found here, and no news of the target.
        if !matches!(event, SourceEvent::Names(_)) {
            self.silence = Silence::from(Instant::now());
            self.app.update(Message::Silence(None), &self.session);
        }
        self.session.apply(event.into());
    }

    fn wake(&mut self) {
        let messages: Vec<Message> = self.done.1.try_iter().collect();
        for message in messages {
            self.app.update(message, &self.session);
        }
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.app.update(Message::Resize(columns, rows), &self.session);
    }

    fn alarm(&self) -> Option<Instant> {
        let connected = *self.session.connection() == Connection::Connected;
        let silence = connected.then(|| self.silence.look());
        let step = self.app.playing().then(|| self.played + PLAY);
        let answer = self.answer_due();
        silence.into_iter().chain(step).chain(answer).min()
    }

    fn ring(&mut self) {
        let now = Instant::now();
        if self.app.playing() && now >= self.played + PLAY {
            let passed = now.saturating_duration_since(std::mem::replace(&mut self.played, now));
            self.app.update(Message::Passed(passed.as_nanos() as u64), &self.session);
        }
        if self.answer_due().is_some_and(|due| now >= due) {
            self.asked = None;
            self.app.update(Message::NoAnswer, &self.session);
        }
        if now >= self.silence.look() {
            let seconds = self.silence.seconds(now);
            self.app.update(Message::Silence(seconds), &self.session);
        }
    }

    fn refresh(&mut self) -> bool {
        self.want_names();
        self.look();
        self.ask_system();
        // What may be wanted by itself is told to the agent, never to the terminal.
        let _ = self.update(Message::Refresh);
        self.app.take_dirty()
    }

    fn draw(&mut self, frame: &mut ratatui::Frame<'_>) {
        view::draw(&self.app, frame);
    }
}

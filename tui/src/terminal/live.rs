//! A session on the screen: brings source, session, application and symbols together.
//! The source is a live target, or a file that is read in the background.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use crossterm::event::Event as Input;

use super::choosing::{self, Choosing, Opened};
use super::reading::Reading;
use super::recorder::{News, Recorder};
use super::silence::Silence;
use super::{Ended, Order, Outlet, PACE, Ui, run_ui, sources};
use crate::app::export::Job;
use crate::app::keys::Action;
use crate::app::settings::Settings;
use crate::app::{App, Effect, Message, Options, outcome};
use crate::export::{self, Format};
use crate::session::{Connection, Damage, Session};
use crate::source::demo::Demo;
use crate::source::discover::Survey;
use crate::source::inbox::{Event, Inbox};
use crate::source::tell::Tell;
use crate::source::{Link, SourceEvent};
use crate::symbols::Symbolizer;
use crate::system::Memory;
use crate::view;

/// Between two looks at what the system knows.
const SYSTEM: Duration = Duration::from_secs(1);
/// For so long a selection has to stand before its details are asked for,
const STILL: Duration = Duration::from_millis(120);
/// and so many times as long as they took to make the last time: they have a twentieth of the
/// time at most.
const SHARE: u32 = 20;
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
    /// A viewer as it is wanted.
    fn app(&self, new: impl FnOnce(Options) -> App) -> App {
        new(self.options).configured(self.settings.clone())
    }
}

/// What is shown first.
#[expect(clippy::large_enum_variant, reason = "there is one")]
pub enum Begin {
    /// A target, and the demo if it is that: it ends when the viewer does.
    Target(Link, Option<Demo>),
    /// The targets, to choose one.
    Choice(Survey),
    /// What a file tells, and where it lies.
    File(Box<dyn Tell>, PathBuf),
}

/// What is to be said once the screen is left.
#[derive(Debug)]
pub struct Left {
    /// How it was.
    pub ended: Ended,
    /// What was recorded, in sentences.
    pub said: Vec<String>,
    /// Where the file that was shown was found to be damaged until then.
    pub damage: Vec<Damage>,
}

/// Shows it until the user leaves, and restores the terminal.
pub fn run(begin: Begin, setup: Setup) -> anyhow::Result<Left> {
    let mut live = Live::new(setup);
    match begin {
        Begin::Target(link, demo) => live.attach(Opened { link, demo }),
        Begin::Choice(survey) => {
            let look = choosing::look(Ok(survey));
            live.app.update(Message::Targets(look), &live.session);
        }
        Begin::File(tell, path) => live.read(tell, path).context("the file cannot be read")?,
    }
    live.app.tell(std::mem::take(&mut live.setup.said));
    let outlet = Arc::clone(&live.outlet);
    let ended = run_ui(&outlet, &mut live).context("the terminal cannot be used")?;
    live.see_damage();
    let damage = std::mem::take(&mut live.damage);
    Ok(Left { ended, said: live.end(), damage })
}

/// Where it comes from.
#[expect(clippy::large_enum_variant, reason = "there is one")]
enum Feed {
    /// A target is to be chosen first.
    Nothing,
    Target {
        link: Link,
        symbols: Symbolizer,
        recorder: Recorder,
    },
    File(Reading),
}

struct Live {
    feed: Feed,
    setup: Setup,
    session: Session,
    app: App,
    /// Columns and rows of the terminal.
    size: (u16, u16),
    silence: Silence,
    /// Up to when the time cursor has moved by itself, while it does.
    played: Instant,
    /// Messages from work in the background.
    done: (Sender<Message>, Receiver<Message>),
    outlet: Arc<Outlet>,
    choosing: Choosing,
    demo: Option<Demo>,
    /// Where a file that was shown is damaged.
    damage: Vec<Damage>,
    /// Recorders of targets that were left: each says what was recorded, and ends.
    ending: Vec<JoinHandle<()>>,
    /// When the system was asked last for what it knows of the target's memory.
    asked_system: Option<Instant>,
    /// The last command whose effect is awaited, and since when.
    asked: Option<(u64, Instant)>,
    /// What the pane of details waits for, and since when.
    pane: Option<(u64, Instant)>,
    /// How long its details took to make.
    pane_took: Duration,
}

impl Live {
    /// Without a target.
    fn new(setup: Setup) -> Self {
        let outlet = Outlet::new(&Arc::new(Inbox::default()));
        Self {
            feed: Feed::Nothing,
            app: setup.app(App::without_target),
            setup,
            session: Session::new(),
            size: (80, 24),
            silence: Silence::from(Instant::now()),
            played: Instant::now(),
            done: channel(),
            choosing: Choosing::new(&outlet),
            outlet,
            demo: None,
            damage: Vec::new(),
            ending: Vec::new(),
            asked_system: None,
            asked: None,
            pane: None,
            pane_took: Duration::ZERO,
        }
    }

    /// Shows another target from now on, as if nothing had been shown before.
    fn attach(&mut self, Opened { link, demo }: Opened) {
        let inbox = Arc::clone(link.inbox());
        let symbols = Symbolizer::start(link.name_answers());
        let recorder = Recorder::new(link.target(), &inbox);
        let socket = link.target().socket.clone();
        self.demo = demo.or_else(|| self.demo.take());
        let feed = Feed::Target { link, symbols, recorder };
        self.begin(feed, &inbox, |options| App::new(options).of_target(socket));
    }

    /// Shows what a file tells.
    fn read(&mut self, tell: Box<dyn Tell>, path: PathBuf) -> io::Result<()> {
        let inbox = Arc::new(Inbox::default());
        let reading = Reading::start(tell, &inbox)?;
        self.begin(Feed::File(reading), &inbox, |options| App::of_file(options).at(path));
        Ok(())
    }

    fn begin(&mut self, feed: Feed, inbox: &Arc<Inbox>, new: impl FnOnce(Options) -> App) {
        // Before what fed the screen until now is let go, and its inbox with it.
        self.outlet.lead_to(inbox);
        let before = std::mem::replace(&mut self.feed, feed);
        match before {
            Feed::Target { recorder, .. } => self.end_recorder(recorder),
            Feed::File(_) => self.see_damage(),
            Feed::Nothing => {}
        }
        self.session = Session::new();
        self.app = self.setup.app(new);
        if std::mem::take(&mut self.setup.first) {
            self.app.is_first();
        }
        self.silence = Silence::from(Instant::now());
        (self.asked_system, self.asked, self.pane) = (None, None, None);
        self.app.update(Message::Resize(self.size.0, self.size.1), &self.session);
    }

    /// Keeps what was found of a file that is left.
    fn see_damage(&mut self) {
        self.damage.extend_from_slice(self.session.damage());
    }

    /// Ends what is recorded of a target that is left, which may take a moment.
    fn end_recorder(&mut self, recorder: Recorder) {
        if recorder.is_idle() {
            return;
        }
        let (done, outlet) = (self.done.0.clone(), Arc::clone(&self.outlet));
        let work = move || {
            if let Some(said) = recorder.end() {
                let _ = done.send(Message::Note(said));
                outlet.put(Event::Wake);
            }
        };
        // Without a thread its file has what was written so far.
        let thread = std::thread::Builder::new().name("heaptop-record".into()).spawn(work);
        self.ending.extend(thread);
    }

    /// The screen is left: what is to be said of recordings.
    fn end(self) -> Vec<String> {
        for thread in self.ending {
            let _ = thread.join();
        }
        let late = self.done.1.try_iter().filter_map(|message| match message {
            Message::Note(said) => Some(said),
            _ => None,
        });
        let mut said: Vec<String> = late.collect();
        if let Feed::Target { recorder, .. } = self.feed {
            said.extend(recorder.end());
        }
        said
    }

    fn update(&mut self, message: Message) -> Vec<Order> {
        let playing = self.app.playing();
        let effects = self.app.update(message, &self.session);
        let awaited = self.app.awaited_answer();
        if awaited != self.asked.map(|(number, _)| number) {
            self.asked = awaited.map(|number| (number, Instant::now()));
        }
        let awaited = self.app.awaited_pane();
        if awaited != self.pane.map(|(number, _)| number) {
            self.pane = awaited.map(|number| (number, Instant::now()));
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
            Effect::Export(job) => self.export(job),
            Effect::Propose(shown, to) => {
                let proposed = to.names().and_then(|names| export::propose(&shown, &names));
                self.app.update(Message::Proposed(to, proposed), &self.session);
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
            Effect::Attach(socket) => self.choosing.open(socket),
            Effect::Stay => self.choosing.leave_off(),
            // One that runs will do.
            Effect::Demo => match self.demo.as_ref().map(Demo::socket).filter(|s| s.exists()) {
                Some(socket) => self.choosing.open(socket.to_owned()),
                None => self.choosing.start_demo(),
            },
        }
        None
    }

    /// Until when the effect of a command is waited for.
    fn answer_due(&self) -> Option<Instant> {
        let (number, since) = self.asked?;
        (self.app.awaited_answer() == Some(number)).then(|| since + outcome::PATIENCE)
    }

    /// When the details beside the rows are to be asked for.
    fn pane_due(&self) -> Option<Instant> {
        self.pane.map(|(_, since)| since + STILL.max(self.pane_took * SHARE))
    }

    /// Writes an export, in the background.
    fn export(&self, job: Job) {
        let (done, outlet) = (self.done.0.clone(), Arc::clone(&self.outlet));
        let number = job.number;
        let work = move || {
            // Nobody receives once the viewer ends.
            let _ = done.send(Message::Exported(number, written(&job)));
            outlet.put(Event::Wake);
        };
        let started = std::thread::Builder::new().name("heaptop-export".into()).spawn(work);
        if let Err(error) = started {
            let _ = self.done.0.send(Message::Exported(number, Err(error.to_string())));
            self.outlet.put(Event::Wake);
        }
    }

    /// Reads a source file, in the background.
    fn read_source(&self, file: Arc<str>) {
        let (done, outlet) = (self.done.0.clone(), Arc::clone(&self.outlet));
        let pid = match &self.feed {
            Feed::Target { link, .. } => Some(link.target().pid),
            Feed::File(_) | Feed::Nothing => None,
        };
        let of = Arc::clone(&file);
        let work = move || {
            let text = sources::read(&file, pid);
            let _ = done.send(Message::Source(file, text));
            outlet.put(Event::Wake);
        };
        let started = std::thread::Builder::new().name("heaptop-source".into()).spawn(work);
        if let Err(error) = started {
            let _ = self.done.0.send(Message::Source(of, Err(error.to_string())));
            self.outlet.put(Event::Wake);
        }
    }

    /// Asks for the names of frames that are new. A file brings its own.
    fn want_names(&mut self) {
        let frames = self.session.take_wanted_frames();
        if let Feed::Target { link, symbols, .. } = &self.feed
            && !frames.is_empty()
        {
            // They come when they come.
            let _ = symbols.want_of(link.target().pid, self.session.modules(), frames);
        }
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
        let (message, news, snapshot) = match &mut self.feed {
            Feed::Nothing => return,
            Feed::File(reading) => (Message::Reading(reading.percent()), None, None),
            Feed::Target { recorder, .. } => {
                let (news, snapshot) = (recorder.look(), recorder.look_for_snapshot());
                (Message::Recording(recorder.shown()), news, snapshot)
            }
        };
        self.app.update(message, &self.session);
        let news = news.map(|news| match news {
            News::Began(said) => self.app.with_key(&said, Action::Record, "ends it"),
            News::Over(said) => said,
        });
        for note in news.into_iter().chain(snapshot) {
            self.app.update(Message::Note(note), &self.session);
        }
    }
}

/// Writes a new file: its path, and what it could not hold; or a sentence.
fn written(job: &Job) -> Result<(PathBuf, Vec<String>), String> {
    let names = job.to.names()?;
    match job.format {
        Format::Ctf => export::trace(&job.shown, &names),
        format => export::run(&job.shown, format, &names).map(|path| (path, Vec::new())),
    }
}

impl Ui for Live {
    fn pace(&self) -> Duration {
        self.setup.refresh
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
            let told = self.app.silence();
            self.app.update(Message::Silence(None), &self.session);
            if let Some(seconds) = told {
                self.session.was_silent(seconds);
            }
        }
        self.session.apply(event.into());
    }

    fn wake(&mut self) {
        let messages: Vec<Message> = self.done.1.try_iter().collect();
        for message in messages {
            self.app.update(message, &self.session);
        }
        while let Some(look) = self.choosing.take_look() {
            self.app.update(Message::Targets(look), &self.session);
        }
        match self.choosing.take_opened() {
            Some(Ok(opened)) => self.attach(opened),
            Some(Err(why)) => {
                self.app.update(Message::NotAttached(why), &self.session);
            }
            None => {}
        }
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.size = (columns, rows);
        self.app.update(Message::Resize(columns, rows), &self.session);
    }

    fn alarm(&self) -> Option<Instant> {
        let connected = *self.session.connection() == Connection::Connected;
        let silence = connected.then(|| self.silence.look());
        let step = self.app.playing().then(|| self.played + PLAY);
        let answer = self.answer_due();
        let look = if self.app.choosing() { self.choosing.due() } else { None };
        let pane = self.pane_due();
        let under_way = self.app.under_way().map(|_| Instant::now());
        [silence, step, answer, look, pane, under_way].into_iter().flatten().min()
    }

    fn ring(&mut self) {
        let now = Instant::now();
        if self.app.playing() && now >= self.played + PLAY {
            let passed = now.saturating_duration_since(std::mem::replace(&mut self.played, now));
            self.app.update(Message::Passed(passed.as_nanos() as u64), &self.session);
        }
        if self.app.under_way().is_some() {
            self.app.update(Message::GoOn, &self.session);
        }
        if self.answer_due().is_some_and(|due| now >= due) {
            self.asked = None;
            self.app.update(Message::NoAnswer, &self.session);
        }
        if self.app.choosing() {
            self.choosing.look(now);
        }
        if self.pane_due().is_some_and(|due| now >= due) {
            // It sends nothing.
            let _ = self.update(Message::Still);
            self.pane_took = now.elapsed();
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
        if self.app.choosing() {
            self.choosing.look(Instant::now());
        } else {
            self.choosing.rest();
        }
        // What may be wanted by itself is told to the agent, never to the terminal.
        let _ = self.update(Message::Refresh);
        self.app.take_dirty()
    }

    fn draw(&mut self, frame: &mut ratatui::Frame<'_>) {
        view::draw(&self.app, frame);
    }
}

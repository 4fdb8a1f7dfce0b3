//! The viewer's state: what is on the screen, and what keys do to it.
//!
//! [`App::update`] is the only mutation. It takes a message and the session,
//! asks `query`, and returns effects for the terminal loop to carry out; it does
//! no IO and knows no widget. The answers to the questions of the screens
//! ([`Table`], [`Node`](crate::query::Node)) are held here, so that the view only
//! draws, and so that a paused screen stays as it is while the stream goes on. Of
//! large answers only what is near to the screen is asked for, and all of it when
//! the screen is paused: what is scrolled or opened then was held already.
//!
//! Screens are a stack: callsites, the flamegraph, the timeline … at the bottom, callers
//! above, one for each drill, the help on top. There are no flags for what is shown. The
//! others of the lowest wait beside it, and so do callers that were left: each keeps its
//! cursor, and its last answer, until it is shown again.
//!
//! To add a screen: a [`Place`](keys::Place) and a line of [`TABS`](keys::TABS), a
//! [`Screen`], which says what of it is shared with others (`moves`, `ask`, `rooms`), a
//! file here for what it remembers and asks, a file in `view` that draws it.
//!
//! A paused screen is asked anew only by the user's own doing (another focus,
//! filter, metric, order); the answer is then as of that moment and is held. The
//! stacks for an export are taken together with what is shown, so that both say
//! the same.

mod ask;
pub mod base;
mod columns;
mod commands;
pub mod cursor;
pub mod details;
pub mod export;
mod filter;
pub mod flame;
pub mod keymap;
pub mod keys;
pub mod leaks;
pub mod log;
mod mouse;
mod moves;
mod offers;
pub mod outcome;
pub mod pane;
pub mod promotion;
pub mod rooms;
mod screens;
pub mod settings;
pub mod source;
pub mod summary;
pub mod targets;
pub mod threads;
pub mod time;
pub mod timeline;
mod travel;
pub mod tree;
pub mod typed;
mod update;
pub mod words;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::{KeyEvent, MouseEvent};
use heaptop_protocol::message::FromViewer;

use crate::calendar::Utc;
use crate::export::{Destination, Proposal, Shown};
use crate::query::filter::Wrong;
use crate::query::{Column, Grouping, Metric, NodeKey, Order, Question, Table, When};
use crate::session::Connection;
use crate::session::log::Line;
use crate::system::Memory;
use crate::view::theme::Theme;
use base::GrowthBase;
pub use commands::Wanted;
use cursor::Cursor;
use rooms::{Rooms, Wishes};
pub use screens::{Callers, Screen};
use settings::Settings;
use summary::{Live, Summary};
use time::Times;
use typed::Prompt;
pub use typed::Typed;

/// How the terminal wants the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// What it is coloured with.
    pub theme: Theme,
    /// Only ASCII characters may be used.
    pub ascii: bool,
}

/// What happens to the viewer.
#[derive(Debug)]
pub enum Message {
    /// A key.
    Key(KeyEvent),
    /// The mouse.
    Mouse(MouseEvent),
    /// Text was pasted.
    Paste(String),
    /// The terminal has this many columns and rows. Must come before the first drawing.
    Resize(u16, u16),
    /// The session may have changed.
    Refresh,
    /// Where each format of [`Effect::Propose`] would go, or why none can, in a sentence.
    Proposed(Destination, Result<Vec<Proposal>, String>),
    /// The export of this number has ended: with its file and what it could not hold, or a
    /// sentence.
    Exported(u64, Result<(PathBuf, Vec<String>), String>),
    /// A sentence to show until the next key.
    Note(String),
    /// This command could not be sent.
    NotSent(FromViewer),
    /// For [`outcome::PATIENCE`] nothing was seen of a command.
    NoAnswer,
    /// So many nanoseconds have passed while [`App::playing`].
    Passed(u64),
    /// There is time for what is under way: [`App::under_way`].
    GoOn,
    /// For so many seconds the connected target has said nothing; `None`: it speaks.
    Silence(Option<u64>),
    /// So many percent of the file are read; `None`: all of it.
    Reading(Option<u8>),
    /// What the system knows of the target's memory.
    System(Option<Memory>),
    /// A source file was read, or cannot be: a sentence.
    Source(Arc<str>, Result<source::Text, String>),
    /// What is being recorded: the file's name, and how large it is.
    Recording(Option<(String, String)>),
    /// For a moment [`App::awaited_pane`] has been the same.
    Still,
    /// What a look for targets found.
    Targets(targets::Look),
    /// The target could not be attached to: a sentence.
    NotAttached(String),
}

/// What the terminal loop shall do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Restore the terminal, stop the process, come back and draw anew.
    Suspend,
    /// Run [`crate::export::run`] and answer with [`Message::Exported`].
    Export(export::Job),
    /// Run [`crate::export::propose`] and answer with [`Message::Proposed`].
    Propose(Box<Shown>, Destination),
    /// Put the text on the clipboard (OSC 52).
    Copy(String),
    /// Tell the agent.
    Send(FromViewer),
    /// Start a recording, or end it.
    Record,
    /// Write a recording of now; what comes of it is a [`Message::Note`].
    Snapshot,
    /// Read a source file and answer with [`Message::Source`].
    Read(Arc<str>),
    /// Attach to the target that listens here, with a viewer anew, or answer with
    /// [`Message::NotAttached`].
    Attach(PathBuf),
    /// The same for the demo, started for it.
    Demo,
    /// Leave off attaching.
    Stay,
}

/// The state. See the module.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own of any screen")]
pub struct App {
    options: Options,
    settings: Settings,
    size: (u16, u16),
    /// Never empty; one of [`Screen::lowest`] is at the bottom.
    stack: Vec<Screen>,
    /// The others of them.
    lowest: Vec<Screen>,
    /// Callers that wait while they are not shown.
    aside: Vec<Screen>,
    question: Question,
    /// The callsites' columns in order, as the user has them.
    columns: Vec<Column>,
    /// Whether the user has chosen them: then the first ones are worth the most.
    columns_chosen: bool,
    /// Where the selection was when rows were last grouped so.
    left: Vec<(Grouping, Cursor)>,
    /// What was gone into: what rows were, which of them, and its name.
    left_group: Option<(Grouping, NodeKey, Arc<str>)>,
    /// What growth is counted from.
    growth_base: GrowthBase,
    /// Marks that are made by the clock.
    automatic: leaks::Automatic,
    /// Whether callstacks of frees were asked for.
    frees_wanted: bool,
    /// A limit of bytes in use, for forecasts.
    limit: Option<u64>,
    /// What the system knows of the target's memory, while somebody looks.
    system: Option<Memory>,
    /// So many columns behind the first are passed over where room is short.
    passed_over: usize,
    metric: Metric,
    times: Times,
    prompt: Option<Prompt>,
    /// What is wrong with the filter that is typed.
    wrong: Option<Wrong>,
    history: filter::History,
    wanted: Option<Wanted>,
    /// Commands whose effect is not seen yet.
    asked: Vec<outcome::Asked>,
    /// The number of the last of them.
    last_asked: u64,
    /// What a finer R would give the selected row: said beside its key.
    hint: Option<(NodeKey, String)>,
    /// Where on the time bar the mouse was pressed, in nanoseconds since the agent's start.
    pressed_ns: Option<u64>,
    paused: bool,
    order_held: bool,
    /// It is the user's first screen, and no key was pressed yet.
    first: bool,
    /// While it is held: the order.
    order: Order,
    summary: Summary,
    live: Live,
    table: Option<Table>,
    /// The details beside the rows.
    pane: Option<Box<details::Details>>,
    /// How many of those there were.
    panes: u64,
    /// Taken when the screen was paused.
    export: Option<Box<Shown>>,
    /// The directory that exports go to, as it was chosen last; empty: the working one.
    directory: String,
    /// How many exports were written so far.
    exports: u64,
    note: Option<String>,
    /// A source file that has to be read.
    unread: Option<Arc<str>>,
    /// What was said so far, for the log.
    said: VecDeque<Line>,
    /// Seconds.
    silence: Option<u64>,
    /// How far the moment is that is asked for, in percent, while it is added up.
    under_way: Option<u8>,
    /// The session's revision at the last refresh.
    revision: Option<u64>,
    /// What is shown is a file.
    file: Option<Reading>,
    /// Where that file lies.
    path: Option<PathBuf>,
    /// There is no target, and no file.
    unattached: bool,
    /// Where the target listens.
    attached: Option<PathBuf>,
    /// What is being recorded: the file's name, and how large it is.
    recording: Option<(String, String)>,
    dirty: bool,
}

/// How far a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// So many percent.
    Percent(u8),
    /// All of it.
    Done,
}

impl App {
    /// A viewer that has seen nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let [first, others @ ..] = Screen::lowest();
        Self {
            options,
            settings: Settings::default(),
            size: (80, 24),
            stack: vec![first],
            lowest: others.into(),
            aside: Vec::new(),
            question: Question::default(),
            columns: Column::ALL.to_vec(),
            columns_chosen: false,
            left: Vec::new(),
            left_group: None,
            growth_base: GrowthBase::default(),
            automatic: leaks::Automatic::default(),
            frees_wanted: false,
            limit: None,
            system: None,
            passed_over: 0,
            metric: Metric::InUseBytes,
            times: Times::default(),
            prompt: None,
            wrong: None,
            history: filter::History::default(),
            wanted: None,
            asked: Vec::new(),
            last_asked: 0,
            hint: None,
            pressed_ns: None,
            paused: false,
            order_held: false,
            first: false,
            order: Order::default(),
            summary: Summary::unknown(),
            live: Live::unknown(),
            table: None,
            pane: None,
            panes: 0,
            export: None,
            directory: String::new(),
            exports: 0,
            note: None,
            unread: None,
            said: VecDeque::new(),
            silence: None,
            under_way: None,
            revision: None,
            file: None,
            path: None,
            unattached: false,
            attached: None,
            recording: None,
            dirty: true,
        }
    }

    /// The same for a file, of which nothing is read yet.
    #[must_use]
    pub fn of_file(options: Options) -> Self {
        Self { file: Some(Reading::Percent(0)), ..Self::new(options) }
    }

    /// The same for the file that lies there.
    #[must_use]
    pub fn at(mut self, path: PathBuf) -> Self {
        self.path = Some(path);
        self
    }

    /// How far the file is read; `None`: what is shown is a live target.
    #[must_use]
    pub const fn file(&self) -> Option<Reading> {
        self.file
    }

    /// What is being recorded: the file's name, and how large it is.
    #[must_use]
    pub const fn recording(&self) -> Option<&(String, String)> {
        self.recording.as_ref()
    }

    /// How the terminal wants the screen.
    #[must_use]
    pub const fn options(&self) -> Options {
        self.options
    }

    /// The screen on top.
    #[must_use]
    pub fn screen(&self) -> &Screen {
        self.stack.last().unwrap_or(&Screen::NONE)
    }

    /// All screens, the lowest first.
    #[must_use]
    pub fn screens(&self) -> &[Screen] {
        &self.stack
    }

    /// The header's figures.
    #[must_use]
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The header's other part.
    #[must_use]
    pub const fn live(&self) -> &Live {
        &self.live
    }

    /// The callsites; `None` before the first answer.
    #[must_use]
    pub const fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// How rows are wanted.
    #[must_use]
    pub const fn question(&self) -> &Question {
        &self.question
    }

    /// The callsites' columns in order, and how many behind the first are
    /// passed over where room is short.
    #[must_use]
    pub fn columns(&self) -> (&[Column], usize) {
        (&self.columns, self.passed_over)
    }

    /// Whether the user has chosen columns, or their order.
    #[must_use]
    pub const fn columns_are_chosen(&self) -> bool {
        self.columns_chosen
    }

    /// What trees and exports count.
    #[must_use]
    pub const fn metric(&self) -> Metric {
        self.metric
    }

    /// The time cursor.
    #[must_use]
    pub const fn times(&self) -> &Times {
        &self.times
    }

    /// Whether the time cursor moves by itself: [`Message::Passed`] moves it.
    #[must_use]
    pub const fn playing(&self) -> bool {
        self.times.playing()
    }

    /// Whether the screen is paused.
    #[must_use]
    pub const fn paused(&self) -> bool {
        self.paused
    }

    /// Whether the order of rows is held.
    #[must_use]
    pub const fn order_held(&self) -> bool {
        self.order_held
    }

    /// A sentence about what just happened.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// What is being typed, so far, and where the cursor stands, in columns.
    #[must_use]
    pub fn prompt(&self) -> Option<(&Typed, &str, usize)> {
        self.prompt.as_ref().map(|p| (&p.kind, p.input.value(), p.input.visual_cursor()))
    }

    /// What a finer R would give the selected row.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_ref().map(|(_, hint)| hint.as_str())
    }

    /// For how many seconds a connected target has said nothing, once that was told.
    #[must_use]
    pub const fn silence(&self) -> Option<u64> {
        self.silence
    }

    /// What must be read: news until the next key, else trouble, else notices.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        if let (None, Screen::Targets(targets)) = (&self.note, self.shown()) {
            return self.about_targets(targets);
        }
        self.note
            .clone()
            .or_else(|| match self.file {
                Some(reading) => Some(self.about_file(reading)),
                None => self.trouble(),
            })
            .or_else(|| self.live.notices.last().cloned())
    }

    /// What is wrong, in a sentence, with the key that helps.
    fn trouble(&self) -> Option<String> {
        let trouble = self.live.trouble(self.silence)?;
        Some(match self.live.remedy(self.silence) {
            Some((action, does)) => self.with_key(&trouble, action, does),
            None => trouble,
        })
    }

    /// What is to be known of a file: how far it is read, or how it ended.
    fn about_file(&self, reading: Reading) -> String {
        let when = self.summary.recorded_unix_ns.map_or_else(
            || "a recording".to_owned(),
            |unix_ns| format!("recorded {}", Utc::of_ns(unix_ns).to_the_minute()),
        );
        match (reading, &self.live.connection) {
            (Reading::Percent(percent), _) => {
                format!("{when}; reading {percent} %, figures are as of what is read")
            }
            (Reading::Done, Connection::Ended(how)) => {
                format!("{when}; {how}")
            }
            (Reading::Done, _) => when,
        }
    }

    /// The filter of what is shown; empty: there is none.
    #[must_use]
    pub fn filter(&self) -> &str {
        match self.shown() {
            Screen::Targets(targets) => &targets.filter,
            _ => &self.question.filter,
        }
    }

    /// What the callsites that are shown are those of, where one was gone into: a file, say,
    /// and its name.
    #[must_use]
    pub fn class(&self) -> Option<(&'static str, &str)> {
        let (group, _, name) = self.left_group.as_ref()?;
        let shown = matches!(self.shown(), Screen::Callsites(_)) && self.question.within.is_some();
        shown.then_some((group.names()[0], &**name))
    }

    /// Lines of each part of the screen.
    #[must_use]
    pub fn rooms(&self) -> Rooms {
        let lines =
            |sentence: String| crate::view::sentence_lines(&sentence, self.size.0).len() as u16;
        let wishes = Wishes {
            sentence: self.sentence().map_or(0, lines),
            bare: self.choosing(),
            past: self.question.when != When::Now,
            typed: self.prompt.is_some(),
            filter: !self.filter().is_empty() || self.class().is_some(),
            // The timeline is a larger one.
            curve: !matches!(self.screen(), Screen::Timeline(_)),
            list: !matches!(
                self.screen(),
                Screen::Help { .. }
                    | Screen::Columns { .. }
                    | Screen::Export(_)
                    | Screen::Flame(_)
                    | Screen::Timeline(_)
                    | Screen::Leaks(_)
                    | Screen::Log(_)
                    | Screen::Details(_)
            ),
            total: matches!(
                self.screen(),
                Screen::Callsites(_)
                    | Screen::Flame(_)
                    | Screen::Threads(_)
                    | Screen::Promotion(_)
                    | Screen::Leaks(_)
            ),
            crumbs: matches!(
                self.screen(),
                Screen::Callers(_) | Screen::Flame(_) | Screen::Source(_)
            ),
            panel: matches!(self.screen(), Screen::Promotion(_)),
        };
        rooms::divide(self.size.0, self.size.1, wishes)
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

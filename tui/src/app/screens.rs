//! The screens, and what each remembers.

use super::cursor::Cursor;
use super::details::Details;
use super::export::Menu;
use super::flame::Flame;
use super::keys::Place;
use super::leaks::Leaks;
use super::log::Log;
use super::promotion::Promotion;
use super::source::Source;
use super::targets::Targets;
use super::threads::Threads;
use super::timeline::Timeline;
use super::tree::{Opened, TreeRow};
use crate::query::{Direction, Label, Node, NodeKey};

/// One screen of the stack.
#[derive(Debug, Clone)]
pub enum Screen {
    /// The live table.
    Callsites(Cursor),
    /// Callers or callees of a focus.
    Callers(Box<Callers>),
    /// Callstacks as frames.
    Flame(Box<Flame>),
    /// The target over time.
    Timeline(Box<Timeline>),
    /// What survives the nursery.
    Promotion(Box<Promotion>),
    /// What is old, and what grew.
    Leaks(Box<Leaks>),
    /// Who allocates, and who frees.
    Threads(Box<Threads>),
    /// A source file.
    Source(Box<Source>),
    /// What was said.
    Log(Box<Log>),
    /// One callsite closely.
    Details(Box<Details>),
    /// Which columns the callsites have.
    Columns {
        /// The selected one.
        cursor: Cursor,
    },
    /// What can be written.
    Export(Menu),
    /// What can be attached to.
    Targets(Box<Targets>),
    /// The keys.
    Help {
        /// First line shown.
        offset: usize,
    },
}

impl Screen {
    /// What stands for the screen of an empty stack, which there never is.
    pub(super) const NONE: Self = Self::Help { offset: 0 };

    /// Those that others lie on. There is one of each: the first is shown at the start.
    pub(super) fn lowest() -> [Self; 8] {
        [
            Self::Callsites(Cursor::default()),
            Self::Flame(Box::default()),
            Self::Timeline(Box::default()),
            Self::Promotion(Box::default()),
            Self::Leaks(Box::default()),
            Self::Threads(Box::default()),
            Self::Source(Box::default()),
            Self::Log(Box::default()),
        ]
    }

    /// Whether it is a screen of its own, which others lie over.
    #[must_use]
    pub const fn is_list(&self) -> bool {
        !matches!(self, Self::Help { .. } | Self::Columns { .. } | Self::Export(_))
    }

    /// As at the start: all that the user can have changed of it but what it is of.
    pub(super) fn reset(&mut self) {
        match self {
            Self::Callsites(cursor) => *cursor = Cursor::default(),
            Self::Callers(c) => {
                c.direction = Direction::Callers;
                c.opened.clear();
                c.cursor.reset();
            }
            Self::Flame(f) => **f = Flame::default(),
            Self::Timeline(t) => **t = Timeline::default(),
            Self::Promotion(p) => **p = Promotion::default(),
            Self::Leaks(l) => **l = Leaks::default(),
            Self::Threads(t) => **t = Threads::default(),
            Self::Source(_)
            | Self::Log(_)
            | Self::Details(_)
            | Self::Columns { .. }
            | Self::Export(_)
            | Self::Targets(_)
            | Self::Help { .. } => {}
        }
    }

    /// Where its keys are in the table.
    #[must_use]
    pub const fn place(&self) -> Place {
        match self {
            Self::Callsites(_) => Place::Callsites,
            Self::Callers(_) => Place::Callers,
            Self::Flame(_) => Place::Flame,
            Self::Timeline(_) => Place::Timeline,
            Self::Promotion(_) => Place::Promotion,
            Self::Leaks(_) => Place::Leaks,
            Self::Threads(_) => Place::Threads,
            Self::Source(_) => Place::Source,
            Self::Log(_) => Place::Log,
            Self::Details(_) => Place::Details,
            Self::Columns { .. } => Place::Columns,
            Self::Export(_) => Place::Export,
            Self::Targets(_) => Place::Targets,
            Self::Help { .. } => Place::Help,
        }
    }
}

/// A tree of callers or callees.
#[derive(Debug, Clone)]
pub struct Callers {
    /// The focus, as the query takes it.
    pub focus: Vec<NodeKey>,
    /// Names of the focus, as known when it was chosen or last seen.
    pub crumbs: Vec<Label>,
    /// Which way it opens.
    pub direction: Direction,
    /// The query's answer; `None` when the focus carries nothing.
    pub tree: Option<Node>,
    /// The rows of `tree`.
    pub rows: Vec<TreeRow>,
    /// Which branches are open.
    pub opened: Opened,
    /// The selected row.
    pub cursor: Cursor,
}

impl Callers {
    /// The callers of `focus`.
    #[must_use]
    pub fn of(focus: Vec<NodeKey>, crumbs: Vec<Label>, direction: Direction) -> Self {
        Self {
            focus,
            crumbs,
            direction,
            tree: None,
            rows: Vec::new(),
            opened: Opened::new(),
            cursor: Cursor::default(),
        }
    }

    /// The tree whose focus is the row at `index`: this focus, and the way from
    /// it down to the row. `None` for the focus itself, and for rows that stand
    /// for many.
    #[must_use]
    pub fn drilled(&self, index: usize) -> Option<Self> {
        let mut at = index;
        let mut way = Vec::new();
        while let Some(row) = self.rows.get(at).filter(|row| row.depth > 0) {
            if row.key == NodeKey::SMALLER {
                return None;
            }
            way.push((row.key, row.label.clone()));
            at = row.parent;
        }
        if way.is_empty() {
            return None;
        }
        let (mut focus, mut crumbs) = (self.focus.clone(), self.crumbs.clone());
        for (key, label) in way.into_iter().rev() {
            focus.push(key);
            crumbs.push(label);
        }
        Some(Self::of(focus, crumbs, self.direction))
    }
}

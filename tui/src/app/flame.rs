//! The flamegraph: what it remembers, what it asks, and where its frames are.
//!
//! Where a frame is must be known here too: keys go from frame to frame, and the mouse
//! selects one. Frames of one parent stand by name, so that they keep their places while
//! numbers move; what was put together stands last.

use super::App;
use super::base::GrowthBase;
use super::keys::Action;
use super::screens::Screen;
use crate::query::{
    self, Flame as Answer, FlameQuestion, FrameGrown, Label, Metric, Node, NodeKey, Question, When,
};
use crate::session::Session;
use crate::session::figures::Estimate;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Flame {
    /// The way to the frame that has all the width, the outermost first.
    pub zoom: Vec<NodeKey>,
    /// The answer; `None` before the first one, and where nothing begins as the zoom does.
    pub answer: Option<Answer>,
    /// Its frames, row by row from the zoom on, from left to right.
    pub bars: Vec<Bar>,
    /// [`Bar::path`] of the selected one.
    selected: u64,
    /// Rows that are passed over.
    pub offset: usize,
    /// The root is at the bottom.
    pub upward: bool,
    /// What it stays at while the target goes on.
    pub frozen: Option<When>,
    /// What is looked for; empty: nothing.
    pub search: String,
    /// Widths count what was born since the base of growth and lives.
    pub gained: bool,
    /// Frames say by how much they grew since that.
    pub compared: bool,
    /// The base's name, if it is a mark.
    pub base: Option<String>,
    /// Columns that `bars` were placed in.
    columns: u16,
}

/// One frame on the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// 0: the zoom.
    pub row: usize,
    /// Its first column.
    pub x: u16,
    /// How many it has, at least 1.
    pub width: u16,
    /// [`Node::path`].
    pub path: u64,
    /// Which function and line.
    pub key: NodeKey,
    /// Its name.
    pub label: Label,
    /// With all that it calls.
    pub cum: Estimate,
    /// What is allocated at it itself.
    pub flat: Estimate,
    /// `cum` over the zoom's.
    pub share: f64,
    /// The place of its parent; its own for the zoom.
    pub parent: usize,
    /// Whether its name has what is looked for.
    pub found: bool,
    /// By how much it grew, where that is asked for and known.
    pub grown: Option<FrameGrown>,
}

/// Places the frames below `root` in so many columns. Edges are rounded, not widths: frames
/// side by side neither overlap nor drift, and those of less than half a column may have
/// none.
#[must_use]
pub fn place<'a>(answer: &'a Answer, columns: u16, search: &str) -> Vec<Bar> {
    let root = &answer.root;
    let search = search.to_lowercase();
    let bar = |node: &Node, row: usize, edges: (f64, f64), parent: usize| {
        let [x, end] = [edges.0, edges.1].map(|edge| (edge * f64::from(columns)).round() as u16);
        let has = |text: &str| text.to_lowercase().contains(&search);
        let leaf = !matches!(node.flat, Estimate::Unknown);
        let found =
            !search.is_empty() && (has(&node.label.function) || leaf && has(&node.label.location));
        (end > x).then(|| Bar {
            row,
            x,
            width: end - x,
            path: node.path,
            key: node.key,
            label: node.label.clone(),
            cum: node.cum,
            flat: node.flat,
            share: node.share,
            parent,
            found,
            grown: answer.grown.get(&node.path).copied(),
        })
    };
    let Some(first) = bar(root, 0, (0.0, 1.0), 0) else { return Vec::new() };
    let mut bars = vec![first];
    // Nodes of a row, with the place of their bar and their left edge.
    let mut row: Vec<(&'a Node, usize, f64)> = vec![(root, 0, 0.0)];
    for depth in 1.. {
        let mut below = Vec::new();
        for (node, parent, mut edge) in row {
            let mut children: Vec<&'a Node> = node.children.iter().collect();
            let place = |node: &'a Node| {
                let Label { function, location, .. } = &node.label;
                (node.key == NodeKey::SMALLER, function, location)
            };
            children.sort_by(|a, b| place(a).cmp(&place(b)));
            for child in children {
                let end = edge + child.share;
                if let Some(bar) = bar(child, depth, (edge, end.min(1.0)), parent) {
                    below.push((child, bars.len(), edge));
                    bars.push(bar);
                }
                edge = end;
            }
        }
        if below.is_empty() {
            break;
        }
        row = below;
    }
    bars
}

impl Flame {
    /// The place of the selected frame among the bars: the zoom where there is none.
    #[must_use]
    pub fn at(&self) -> usize {
        self.bars.iter().position(|bar| bar.path == self.selected).unwrap_or(0)
    }

    /// The selected frame.
    #[must_use]
    pub fn selected(&self) -> Option<&Bar> {
        self.bars.get(self.at())
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.bars.last().map_or(0, |bar| bar.row + 1)
    }

    /// The line of the body, of `page` lines, that a row is on.
    #[must_use]
    pub fn line(&self, row: usize, page: usize) -> Option<usize> {
        let line = row.checked_sub(self.offset).filter(|line| *line < page)?;
        Some(if self.upward { page - 1 - line } else { line })
    }

    /// Selects another frame, and brings it into sight.
    fn select(&mut self, at: usize, page: usize) {
        let Some(bar) = self.bars.get(at) else { return };
        self.selected = bar.path;
        self.show(page);
    }

    /// Puts the offset right.
    fn show(&mut self, page: usize) {
        let page = page.max(1);
        let row = self.selected().map_or(0, |bar| bar.row);
        let most = self.rows().saturating_sub(page);
        let least = (row + 1).saturating_sub(page);
        self.offset = self.offset.clamp(least, row.max(least)).min(most.max(least));
    }

    /// A row further from the root, or back.
    pub(super) fn climb(&mut self, away: bool, steps: usize, page: usize) {
        let mut at = self.at();
        for _ in 0..steps {
            let next = if away {
                // The widest.
                let below = self.bars.iter().enumerate().filter(|(i, b)| b.parent == at && *i > 0);
                below.max_by_key(|(i, b)| (b.width, usize::MAX - i)).map(|(i, _)| i)
            } else {
                self.bars.get(at).map(|bar| bar.parent)
            };
            match next {
                Some(next) if next != at => at = next,
                _ => break,
            }
        }
        self.select(at, page);
    }

    /// To the next frame of the row, or the one before.
    pub(super) fn along(&mut self, right: bool, page: usize) {
        let at = self.at();
        let Some(row) = self.bars.get(at).map(|bar| bar.row) else { return };
        let next = if right { at.checked_add(1) } else { at.checked_sub(1) };
        if let Some(next) = next.filter(|&next| self.bars.get(next).is_some_and(|b| b.row == row)) {
            self.select(next, page);
        }
    }

    /// To the next frame that has what is looked for, or the one before.
    pub(super) fn next_found(&mut self, forward: bool, page: usize) -> bool {
        let found = self.bars.iter().enumerate().filter(|(_, bar)| bar.found).map(|(i, _)| i);
        let found: Vec<usize> = found.collect();
        let at = self.at();
        let next = if forward {
            found.iter().find(|&&i| i > at).or(found.first())
        } else {
            found.iter().rev().find(|&&i| i < at).or(found.last())
        };
        if let Some(&next) = next {
            self.select(next, page);
        }
        next.is_some()
    }

    /// The frame at a place of the body.
    fn bar_at(&self, x: u16, line: usize, page: usize) -> Option<usize> {
        let line = if self.upward { page.checked_sub(line + 1)? } else { line };
        let row = line + self.offset;
        self.bars.iter().position(|bar| bar.row == row && (bar.x..bar.x + bar.width).contains(&x))
    }

    /// The way from the root to a frame.
    fn way_to(&self, at: usize) -> Vec<NodeKey> {
        let mut way = Vec::new();
        let mut at = at;
        while let Some(bar) = self.bars.get(at).filter(|bar| bar.row > 0) {
            way.push(bar.key);
            at = bar.parent;
        }
        let below = way.into_iter().rev();
        self.zoom.iter().copied().chain(below).collect()
    }
}

impl App {
    pub(super) fn ask_flame(&mut self, session: &Session) {
        let page = usize::from(self.rooms().body);
        let columns = self.size.0;
        let base = self.growth_base;
        let (metric, question) = (self.metric, &self.question);
        let Some(Screen::Flame(f)) = self.stack.first_mut() else { return };
        let when = f.frozen.unwrap_or(question.when);
        let (base, name) = base.moment(session, when).unzip();
        f.base = name.flatten();
        let question = f.question(question, metric, base, columns);
        let answer = query::flame(session, &question);
        if answer != f.answer || f.columns != columns {
            f.bars = answer.as_ref().map_or_else(Vec::new, |a| place(a, columns, &f.search));
            (f.answer, f.columns) = (answer, columns);
            self.dirty = true;
        }
        f.show(page);
    }

    /// Size or selection have changed.
    pub(super) fn place_flame(&mut self) {
        let page = usize::from(self.rooms().body);
        let columns = self.size.0;
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return };
        if f.columns != columns {
            f.columns = columns;
            let search = f.search.clone();
            f.bars = f.answer.as_ref().map_or_else(Vec::new, |a| place(a, columns, &search));
        }
        f.show(page);
    }

    /// Gives the selected frame all the width; of the zoom, takes it back.
    pub(super) fn zoom_in(&mut self, session: &Session) {
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return };
        let at = f.at();
        if at == 0 {
            self.zoom_out(session);
            return;
        }
        if f.bars.get(at).is_none_or(|bar| bar.key == NodeKey::SMALLER) {
            return;
        }
        f.zoom = f.way_to(at);
        f.offset = 0;
        self.zoomed(session);
    }

    /// One frame back towards the root. Whether there was a zoom.
    pub(super) fn zoom_out(&mut self, session: &Session) -> bool {
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return false };
        if f.zoom.pop().is_none() {
            return false;
        }
        f.offset = 0;
        self.zoomed(session);
        true
    }

    fn zoomed(&mut self, session: &Session) {
        self.dirty = true;
        self.ask(session);
        if let Some(Screen::Flame(f)) = self.stack.last_mut() {
            f.selected = f.bars.first().map_or(0, |bar| bar.path);
        }
    }

    /// It stays at this moment, or goes on.
    pub(super) fn freeze(&mut self, session: &Session) {
        let when = self.question.when;
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return };
        f.frozen = match (f.frozen, when) {
            (Some(_), _) => None,
            (None, When::Now) if session.span().is_none() => {
                return self.say("no moment is known yet that it could stay at".into());
            }
            (None, When::Now) => Some(When::At(session.now_ns())),
            (None, when) => Some(when),
        };
        let frozen = f.frozen.is_some();
        self.say(if frozen {
            let said = "the flamegraph stays at this moment";
            self.with_key(said, Action::Freeze, "lets it go on")
        } else {
            "the flamegraph goes on".into()
        });
        self.ask(session);
    }

    /// Another text is looked for.
    pub(super) fn look_for(&mut self, text: &str, session: &Session) {
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return };
        if f.search != text {
            text.clone_into(&mut f.search);
            // The frames' marks follow from it.
            f.answer = None;
            self.dirty = true;
            self.ask(session);
        }
    }

    /// Nothing is looked for any more. Whether anything was.
    pub(super) fn find_nothing(&mut self, session: &Session) -> bool {
        let searches = matches!(self.screen(), Screen::Flame(f) if !f.search.is_empty());
        if searches {
            self.look_for("", session);
            self.say("nothing is looked for any more".into());
        }
        searches
    }

    /// To the next frame that has what is looked for.
    pub(super) fn next_match(&mut self, forward: bool) {
        let page = usize::from(self.rooms().body);
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return };
        if f.search.is_empty() {
            self.say(self.with_key("nothing is looked for", Action::Find, "asks for a text"));
        } else if !f.next_found(forward, page) {
            let text = f.search.clone();
            self.say(format!("no frame that is wide enough to be seen has “{text}”"));
        }
    }

    /// The mouse is pressed on the flamegraph: selects a frame; the selected one is zoomed
    /// into.
    pub(super) fn point_at_frame(&mut self, x: u16, line: usize, session: &Session) {
        let page = usize::from(self.rooms().body);
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return };
        let Some(at) = f.bar_at(x, line, page) else { return };
        if at == f.at() {
            self.zoom_in(session);
        } else {
            f.select(at, page);
        }
    }

    /// What is asked of the flamegraph's callstacks, for an export.
    pub(super) fn flame_question<'a>(
        &'a self,
        flame: &'a Flame,
        session: &Session,
    ) -> FlameQuestion<'a> {
        let when = flame.frozen.unwrap_or(self.question.when);
        let base = self.growth_base.moment(session, when).map(|(at, _)| at);
        flame.question(&self.question, self.metric, base, self.size.0)
    }

    /// The flamegraph's next metric: behind all others stands what was gained, which is in
    /// use: other screens count that then. Whether that was all there was to do.
    pub(super) fn next_flame_metric(&mut self, session: &Session) -> bool {
        let last = self.metric == Metric::ShortLivedBytes;
        let base = self.growth_base.moment(session, self.question.when);
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return false };
        if f.gained {
            // The first comes behind it.
            (f.gained, self.metric) = (false, Metric::ShortLivedBytes);
            return false;
        }
        if !last {
            return false;
        }
        (f.gained, self.metric) = (true, Metric::InUseBytes);
        let base = base.and_then(|(_, name)| name);
        let since = self.grown_since(base.as_deref(), usize::MAX);
        let range = matches!(self.question.when, When::Range { .. });
        let alive = if range { "alive at its end" } else { "alive" };
        self.say(format!("counting bytes gained: born {since} and {alive}"));
        self.ask(session);
        true
    }

    /// Frames say by how much they grew, from the last mark on; from one before; not any
    /// more.
    pub(super) fn compare_flame(&mut self, session: &Session) {
        let Some(Screen::Flame(f)) = self.stack.last_mut() else { return };
        if !f.compared {
            f.compared = true;
            let Some((at, name)) = self.growth_base.moment(session, self.question.when) else {
                return self.say("no moment but now is known yet".into());
            };
            self.say_base(at, name, session);
            return self.look(session);
        }
        if self.growth_base == GrowthBase::Came {
            f.compared = false;
            self.growth_base = GrowthBase::default();
            self.say("frames do not say by how much they grew any more".into());
            return self.look(session);
        }
        self.next_growth_base(session);
    }
}

impl Flame {
    fn question<'a>(
        &'a self,
        question: &'a Question,
        metric: Metric,
        base: Option<u64>,
        columns: u16,
    ) -> FlameQuestion<'a> {
        FlameQuestion {
            when: self.frozen.unwrap_or(question.when),
            metric,
            gained_from_ns: base.filter(|_| self.gained),
            growth_from_ns: base.filter(|_| self.compared),
            filter: &question.filter,
            zoom: &self.zoom,
            columns,
            search: &self.search,
        }
    }
}

//! What messages do to the state.

use crossterm::event::{KeyEvent, KeyEventKind};
use tui_input::Input;

use super::base::GrowthBase;
use super::keys::{Action, TimeKey};
use super::time::Times;
use super::{App, Effect, Message, Prompt, Reading, Screen, Typed};
use crate::export;
use crate::query::{Column, Direction, Grouping, Metric, Order, Sorted};
use crate::session::Session;
use crate::view;

/// What `m` goes through.
const METRICS: [Metric; 6] = [
    Metric::InUseBytes,
    Metric::InUseObjects,
    Metric::AllocatedBytes,
    Metric::AllocatedObjects,
    Metric::PromotedBytes,
    Metric::ShortLivedBytes,
];

impl App {
    /// Takes a message; what comes back is for the terminal loop to do.
    pub fn update(&mut self, message: Message, session: &Session) -> Vec<Effect> {
        let mut effects = self.take(message, session);
        effects.extend(self.unread.take().map(Effect::Read));
        effects
    }

    fn take(&mut self, message: Message, session: &Session) -> Vec<Effect> {
        match message {
            Message::Key(key) if key.kind == KeyEventKind::Release => return Vec::new(),
            Message::Key(key) => {
                self.dirty = true;
                self.note = None;
                self.first = false;
                return self.key(key, session);
            }
            Message::Mouse(event) => {
                // A question or a line that is typed wants its answer first.
                if self.wanted.is_none() && self.prompt.is_none() {
                    let effects = self.mouse(event, session);
                    self.settle(session);
                    return effects;
                }
            }
            Message::Paste(pasted) => self.paste(&pasted, session),
            Message::Resize(columns, rows) => {
                self.dirty |= self.size != (columns, rows);
                self.size = (columns, rows);
                if matches!(self.shown(), Screen::Timeline(_)) && self.has_answer() {
                    // Its columns are the terminal's.
                    self.ask(session);
                }
            }
            Message::Refresh => {
                self.refresh(session);
                let mark = self.automatic_mark(session);
                self.settle(session);
                return mark.into_iter().chain(self.ask_for_frees(session)).collect();
            }
            Message::System(memory) => self.system_is(memory),
            Message::Source(file, text) => self.source_is(&file, text),
            Message::Proposed(to, proposed) => self.proposed(to, proposed),
            Message::Exported(number, written) => self.exported_is(number, written),
            Message::Note(sentence) => self.say(sentence),
            Message::NotSent(command) => self.not_sent(&command),
            Message::NoAnswer => self.no_answer(session),
            Message::GoOn if self.under_way.is_some() => self.look(session),
            Message::GoOn => return Vec::new(),
            // Each moment is seen before the next.
            Message::Passed(_) if self.under_way.is_some() => {}
            Message::Passed(ns) => self.play_on(ns, session),
            Message::Still => self.ask_pane(session),
            Message::Targets(look) => self.targets_are(look),
            Message::NotAttached(why) => self.not_attached(&why),
            Message::Reading(percent) => {
                let reading = percent.map_or(Reading::Done, Reading::Percent);
                if self.file != Some(reading) {
                    (self.dirty, self.file) = (true, Some(reading));
                    // No news come behind the last: what is made once a second is made now.
                    self.forget_details();
                }
            }
            Message::Recording(recording) => {
                self.dirty |= self.recording != recording;
                self.recording = recording;
            }
            Message::Silence(seconds) if seconds == self.silence => return Vec::new(),
            Message::Silence(seconds) => {
                self.silence = seconds;
                // A paused screen stands still; by the next key it is told there too.
                self.dirty |= !self.paused;
            }
        }
        self.settle(session);
        Vec::new()
    }

    pub(super) fn say(&mut self, sentence: String) {
        self.keep_said(&sentence);
        self.note = Some(sentence);
        self.dirty = true;
    }

    fn key(&mut self, key: KeyEvent, session: &Session) -> Vec<Effect> {
        if self.wanted.is_some() {
            let effects = self.answer(&key, session);
            self.settle(session);
            return effects;
        }
        if self.prompt.is_some() {
            let effects = self.prompt_key(key, session);
            self.settle(session);
            return effects;
        }
        let effects = if let Some(action) = self.keymap().action(&key, self.screen().place()) {
            self.act(action, session)
        } else {
            self.say_where(&key);
            Vec::new()
        };
        self.settle(session);
        effects
    }

    pub(super) fn act(&mut self, action: Action, session: &Session) -> Vec<Effect> {
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Export => return self.open_export(session),
            Action::Write => return self.write_export(),
            Action::Path => self.type_path(),
            Action::Copy => {
                if let Some(text) = self.selected_text() {
                    // Terminals drop it, or ask first, without a word to us.
                    self.say("the row was sent to the terminal's clipboard".into());
                    return vec![Effect::Copy(text)];
                }
            }
            Action::Help => {
                if !self.close_help() {
                    self.stack.push(Screen::Help { offset: 0 });
                }
            }
            Action::Go(place) => self.go_to(place, session),
            Action::NextScreen => self.go_along(true, session),
            Action::FormerScreen => self.go_along(false, session),
            Action::Up
            | Action::Down
            | Action::PageUp
            | Action::PageDown
            | Action::First
            | Action::Last => self.move_along(action, session),
            Action::Left => self.sideways(false, session),
            Action::Right => self.sideways(true, session),
            Action::Drill => self.drill(session),
            Action::Back if matches!(self.screen(), Screen::Targets(_)) => {
                return self.back_from_targets(session);
            }
            Action::Back => self.back(session),
            Action::Targets => self.open_targets(),
            Action::Attach => return self.attach(session),
            Action::Demo => return self.start_demo(),
            Action::Mark => {
                if self.can_tell(session) {
                    self.prompt = Some(Prompt { input: Input::default(), kind: Typed::Mark });
                }
            }
            Action::Record => {
                // What records may be ended when the target is gone.
                if self.recording.is_some() || self.can_tell(session) {
                    return vec![Effect::Record];
                }
            }
            Action::Snapshot => {
                if self.can_tell(session) {
                    self.say("a snapshot is being written".into());
                    return vec![Effect::Snapshot];
                }
            }
            Action::Finer => self.want_interval(true, session),
            Action::Coarser => self.want_interval(false, session),
            Action::Sampling => self.want_sampling(session),
            Action::Time(TimeKey::Peak) => self.go_to_peak(session),
            Action::Time(TimeKey::Play) => self.play(session),
            Action::Time(key @ (TimeKey::Begin | TimeKey::End)) => self.set_end(key, session),
            Action::Time(key) => self.travel(session, |times, span| times.act(key, span)),
            Action::SortColumn | Action::SortDirection => self.sort(action, session),
            Action::Metric if self.next_flame_metric(session) => {}
            Action::Metric => self.next_metric(session),
            Action::Invert => self.invert(session),
            Action::Find => self.find(),
            Action::NextMatch { forward } => match self.screen() {
                Screen::Source(_) => self.next_line(forward),
                _ => self.next_match(forward),
            },
            Action::Freeze => self.freeze(session),
            Action::Pause => self.pause(session),
            Action::Hold => {
                self.order_held = !self.order_held;
                self.order = Order::default();
                match &self.table {
                    // All that is shown, in the order in which it is.
                    Some(table) if self.order_held && table.rows.len() == table.len => {
                        self.order.extend(table.rows.iter().map(|row| row.key));
                    }
                    _ => self.ask(session),
                }
            }
            Action::Nursery { larger } => self.nursery(larger),
            Action::Reset => self.reset(session),
            Action::Group
            | Action::Columns
            | Action::ToggleColumn
            | Action::ColumnLeft
            | Action::ColumnRight
            | Action::ResetColumns
            | Action::GrowthBase
            | Action::Details
            | Action::Automatic
            | Action::Filter
            | Action::NextThread { .. }
            | Action::Limit => self.act_on_rows(action, session),
        }
        Vec::new()
    }

    fn next_metric(&mut self, session: &Session) {
        let at = METRICS.iter().position(|&m| m == self.metric).unwrap_or(0);
        self.metric = METRICS[(at + 1) % METRICS.len()];
        self.say(format!("counting {}", export::metric(self.metric)));
        self.ask(session);
    }

    fn invert(&mut self, session: &Session) {
        match self.stack.last_mut() {
            Some(Screen::Flame(f)) => f.upward = !f.upward,
            Some(Screen::Callers(c)) => {
                c.direction = match c.direction {
                    Direction::Callers => Direction::Callees,
                    Direction::Callees => Direction::Callers,
                };
                c.cursor.reset();
                self.ask(session);
            }
            _ => {}
        }
    }

    /// Starts typing what is looked for.
    fn find(&mut self) {
        if let Screen::Flame(f) = self.screen() {
            let before = f.search.clone();
            let input = Input::new(before.clone());
            self.prompt = Some(Prompt { input, kind: Typed::Find(before) });
        }
    }

    /// What rows are, which columns they have, and what growth is counted from.
    fn act_on_rows(&mut self, action: Action, session: &Session) {
        match action {
            Action::Group => self.next_group(session),
            Action::Columns => {
                if self.close_columns() {
                    self.come_back(session);
                } else {
                    self.open_columns();
                }
            }
            Action::ToggleColumn => self.toggle_column(),
            Action::ColumnLeft => self.move_column(false),
            Action::ColumnRight => self.move_column(true),
            Action::ResetColumns => self.reset_columns(),
            Action::GrowthBase if matches!(self.screen(), Screen::Flame(_)) => {
                self.compare_flame(session);
            }
            Action::GrowthBase => self.next_growth_base(session),
            Action::Details => self.open_details(session),
            Action::Automatic => self.next_period(session),
            Action::Filter if matches!(self.screen(), Screen::Targets(_)) => self.type_narrower(),
            Action::Filter => self.type_filter(),
            Action::NextThread { forward } => self.next_thread(forward, session),
            Action::Limit => {
                self.prompt = Some(Prompt { input: Input::default(), kind: Typed::Limit });
            }
            _ => {}
        }
    }

    /// By the next column, or the other way round.
    fn sort(&mut self, action: Action, session: &Session) {
        if !self.sorts_callsites() {
            self.sort_rows(action == Action::SortColumn);
            return self.ask(session);
        }
        if action == Action::SortColumn {
            self.question.sort = self.next_sort();
            // Names from A, figures from the largest.
            self.question.descending = self.question.sort != Column::Callsite;
        } else {
            self.question.descending = !self.question.descending;
        }
        self.order_held = false;
        self.ask(session);
    }

    fn sorts_callsites(&self) -> bool {
        !matches!(self.screen(), Screen::Promotion(_) | Screen::Threads(_) | Screen::Leaks(_))
    }

    /// Other lists than the callsites' are sorted by the next column, or the other way round.
    fn sort_rows(&mut self, next: bool) {
        let width = self.list_columns();
        match self.stack.last_mut() {
            Some(Screen::Promotion(p)) if next => {
                // Of the columns that are seen: else nobody knew what the order is.
                let seen = view::promotion::columns_seen(width);
                p.order = Sorted::by_first(p.order.next());
                while !seen.contains(&p.order.column) {
                    p.order = Sorted::by_first(p.order.next());
                }
            }
            Some(Screen::Promotion(p)) => p.order = p.order.by(p.order.column),
            Some(Screen::Leaks(l)) if next => {
                let answer = l.answer.as_ref();
                let generations = answer.map_or(0, |answer| answer.generations.len());
                let seen = view::leaks::columns_seen(answer, width);
                l.order = Sorted::by_first(l.order.next(generations));
                while !seen.contains(&l.order.column) {
                    l.order = Sorted::by_first(l.order.next(generations));
                }
            }
            Some(Screen::Leaks(l)) => l.order = l.order.by(l.order.column),
            Some(Screen::Threads(t)) if next => t.sort_next(),
            Some(Screen::Threads(t)) => t.sort_by(t.sort),
            _ => {}
        }
    }

    /// The column behind the one that rows are sorted by.
    fn next_sort(&self) -> Column {
        let has =
            |&&column: &&Column| column != Column::Cum || self.question.group == Grouping::Function;
        let columns: Vec<Column> = self.columns.iter().filter(has).copied().collect();
        let next = columns.iter().position(|&c| c == self.question.sort).map_or(0, |at| at + 1);
        columns.get(next).or(columns.first()).copied().unwrap_or(Column::InUseBytes)
    }

    /// Rows are something else.
    fn next_group(&mut self, session: &Session) {
        let before = self.question.group;
        let at = Grouping::ALL.iter().position(|&g| g == before).unwrap_or(0);
        let next = Grouping::ALL[(at + 1) % Grouping::ALL.len()];
        if let Some(Screen::Callsites(cursor)) = self.stack.first() {
            self.left.retain(|(group, _)| *group != before);
            self.left.push((before, *cursor));
        }
        self.group_by(next, session);
        let back = self.left.iter().find(|(group, _)| *group == next).map(|(_, cursor)| *cursor);
        if let (Some(back), Some(Screen::Callsites(cursor))) = (back, self.stack.first_mut()) {
            *cursor = back;
            self.ask(session);
        }
        let [_, many] = self.question.group.names();
        self.say(format!("rows are {many}"));
    }

    /// Rows are of this kind from now on.
    pub(super) fn group_by(&mut self, group: Grouping, session: &Session) {
        self.question.group = group;
        self.question.within = None;
        if self.question.sort == Column::Cum && group != Grouping::Function {
            self.question.sort = Column::InUseBytes;
        }
        (self.order_held, self.order) = (false, Order::default());
        if let Some(Screen::Callsites(cursor)) = self.stack.first_mut() {
            cursor.reset();
        }
        self.ask(session);
    }

    /// The view as at the start, on the screen that is shown. What the target was told (marks,
    /// R) and what was typed for it (a limit) stay.
    fn reset(&mut self, session: &Session) {
        self.question = self.settings.question();
        self.growth_base = GrowthBase::default();
        self.reset_columns();
        for screen in self.stack.iter_mut().chain(&mut self.lowest).chain(&mut self.aside) {
            screen.reset();
        }
        (self.left, self.left_group) = (Vec::new(), None);
        self.passed_over = 0;
        self.metric = self.settings.metric;
        self.times = Times::default();
        (self.order_held, self.order) = (false, Order::default());
        self.paused = false;
        self.export = None;
        self.look(session);
        let said = "the view is as at the start";
        self.say(match self.growth_base.moment(session, self.question.when) {
            Some((_, Some(mark))) => format!("{said}; growth is counted from “{mark}” on"),
            _ => said.into(),
        });
    }
}

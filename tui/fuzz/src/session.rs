//! A session that hears anything in any order, is asked everything, and is drawn.
//! Nothing panics, and what is shown is sound: figures are finite, ends of intervals
//! are in order, shares are shares, and no character commands the terminal.

#![no_main]

mod said;
#[path = "../../../protocol/fuzz/src/seeds.rs"]
mod seeds;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use heaptop::app::{App, Effect, Message, Options};
use heaptop::query::{self, Column, Direction, Grouping, Metric, Node, NodeKey, Question, When};
use heaptop::session::Session;
use heaptop::session::figures::{Estimate, Ratio};
use heaptop::session::sane::is_hostile;
use heaptop::view;
use libfuzzer_sys::fuzz_target;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use said::Bytes;

const METRICS: [Metric; 6] = [
    Metric::InUseBytes,
    Metric::InUseObjects,
    Metric::AllocatedBytes,
    Metric::AllocatedObjects,
    Metric::PromotedBytes,
    Metric::ShortLivedBytes,
];

const KEYS: [KeyCode; 40] = {
    use KeyCode::{
        BackTab, Backspace, Char, Down, End, Enter, Esc, Home, Left, PageDown, Right, Tab, Up,
    };
    [
        Enter,
        Esc,
        Up,
        Down,
        Left,
        Right,
        PageDown,
        Home,
        End,
        Tab,
        BackTab,
        Backspace,
        Char('/'),
        Char('?'),
        Char('p'),
        Char('P'),
        Char('m'),
        Char('s'),
        Char('S'),
        Char('r'),
        Char('e'),
        Char('y'),
        Char('h'),
        Char('o'),
        Char('c'),
        Char('i'),
        Char('t'),
        Char('d'),
        Char('f'),
        Char('a'),
        Char(' '),
        Char('+'),
        Char('-'),
        Char('<'),
        Char('>'),
        Char('1'),
        Char('2'),
        Char('g'),
        Char('x'),
        Char('é'),
    ]
};

fn sound(estimate: Estimate) {
    match estimate {
        Estimate::Unknown => {}
        Estimate::Exact { value } => assert!(value.is_finite() && value >= 0.0),
        Estimate::Interval { value, low, high, .. } => {
            assert!(0.0 <= low && low <= value && value <= high && high.is_finite());
        }
        Estimate::Below { high } => assert!(high.is_finite() && high >= 0.0),
        Estimate::AtLeast { low, .. } => assert!(low.is_finite() && low >= 0.0),
    }
}

fn share(ratio: Ratio) {
    if let Ratio::Interval { value, low, high, .. } = ratio {
        assert!(0.0 <= low && low <= value && value <= high && high <= 1.0, "{ratio:?}");
    }
}

fn tree(node: &Node, depth: usize) {
    sound(node.cum);
    sound(node.flat);
    assert!((0.0..=1.0 + 1e-9).contains(&node.share), "{}", node.share);
    assert!(depth < 10_000);
    for child in &node.children {
        tree(child, depth + 1);
    }
}

/// Asks one of each kind.
fn ask(session: &Session, said: &mut Bytes<'_>) {
    let filter = if said.flag() { said.text() } else { String::new() };
    let when = match said.below(4) {
        0 => When::Now,
        1 => When::At(said.time()),
        2 => When::Range { from_ns: said.time(), to_ns: said.time() },
        _ => When::Peak,
    };
    let question = Question {
        sort: Column::ALL[said.below(Column::ALL.len())],
        descending: said.flag(),
        filter: filter.clone(),
        when,
        group: Grouping::ALL[said.below(Grouping::ALL.len())],
        within: None,
        growth_from_ns: said.flag().then(|| said.time()),
    };
    let table = query::callsites(session, &question);
    assert!(table.rows.len() <= table.of && table.len == table.rows.len());
    for figures in table.rows.iter().map(|row| &row.figures).chain([&table.total]) {
        sound(figures.in_use_bytes);
        sound(figures.in_use_objects);
        sound(figures.allocated_bytes);
        sound(figures.allocated_objects);
        sound(figures.allocated_rate);
        sound(figures.object_rate);
        share(figures.promoted);
        share(figures.short_lived);
        assert!(figures.trend.iter().all(|v| v.is_finite()));
    }
    let mut focus: Vec<NodeKey> = Vec::new();
    // What else rows are made by has no callers.
    let site = question.group == Grouping::Callsite;
    if let Some(row) = table.rows.get(said.below(table.rows.len())).filter(|_| site) {
        assert_eq!(query::find(session, row.key).as_ref(), Some(&row.label));
        focus.extend(said.flag().then_some(row.key));
    }
    let direction = if said.flag() { Direction::Callers } else { Direction::Callees };
    let metric = METRICS[said.below(METRICS.len())];
    if let Some(node) = query::callers(session, when, &focus, direction, metric, &filter) {
        tree(&node, 0);
    }
    for (_, weight) in query::stacks(session, when, &focus, direction, metric, &filter) {
        assert!(weight.is_finite() && weight >= 0.0);
    }
    sound(session.in_use());
    sound(session.allocated_rate());
    share(session.promotion());
}

/// Draws, and looks at what would reach the terminal.
fn draw(app: &mut App, session: &Session, terminal: &mut Terminal<TestBackend>) {
    app.update(Message::Refresh, session);
    if terminal.draw(|frame| view::draw(app, frame)).is_ok() {
        for cell in terminal.backend().buffer().content() {
            assert!(!cell.symbol().contains(is_hostile), "{:?}", cell.symbol());
        }
    }
}

fuzz_target!(
    init: seeds::write(seeds),
    |data: &[u8]| {
        let mut said = Bytes(data);
        let mut session = Session::new();
        let mut app = App::new(Options { ascii: said.flag(), ..Options::default() });
        let (columns, rows) = (u16::from(said.byte()) % 130, u16::from(said.byte()) % 40);
        let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, rows));
        app.update(Message::Resize(columns, rows), &session);
        while !said.is_empty() {
            match said.below(8) {
                0 => ask(&session, &mut said),
                1 => {
                    let key = KeyEvent::new(KEYS[said.below(KEYS.len())], KeyModifiers::NONE);
                    for effect in app.update(Message::Key(key), &session) {
                        if let Effect::Export(job) = effect {
                            let _ = job.shown.bytes(job.format);
                        }
                    }
                    if said.flag() {
                        draw(&mut app, &session, &mut terminal);
                    }
                }
                _ => {
                    if let Some(input) = said.input() {
                        session.apply(input);
                    }
                }
            }
        }
        ask(&session, &mut said);
        // 64 by events that are made here, and a few bytes for each on the wire.
        assert!(session.live_block_count() <= 64 + data.len());
        draw(&mut app, &session, &mut terminal);
    }
);

/// Conversations: `2` and a kind say something, `0` asks, `1` presses a key.
fn seeds() -> Vec<Vec<u8>> {
    let hears = |kinds: &[u8]| -> Vec<u8> {
        // Ten bytes each, with all sorts of numbers in them.
        kinds.iter().flat_map(|&k| [2, k, 1, 3, 5, 1, 2, 130, 1, 7, 0, 0, 1, 2]).collect()
    };
    let mut all = vec![vec![0, 80, 24], vec![1, 20, 5, 1, 0], vec![0, 160, 50, 1, 13, 1, 2]];
    for kind in 0..20 {
        let mut seed = vec![0, 100, 30];
        seed.extend(hears(&[0, 1, 3, 15, kind, 5, 6, 9]));
        seed.extend([0, 1, 2, 0, 1, 1, 1, 3, 0, 0]);
        all.push(seed);
    }
    let mut talk = vec![0, 120, 40];
    talk.extend(hears(&[
        17, 0, 1, 2, 3, 3, 7, 8, 9, 4, 4, 5, 6, 10, 11, 15, 16, 4, 5, 6, 12, 14, 13,
    ]));
    talk.extend((0..40).flat_map(|key| [1, key, key]));
    all.push(talk);
    all
}

//! Keys, mouse, pastes, sizes and news at random: nothing panics, what is selected is
//! there, and a filter that is taken away leaves the totals that there were.
//!
//! `tests/keys SECONDS` runs it for longer; a failure names the seed and the step.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::testing::{drawn, orders};
use super::theme::Theme;
use crate::app::targets::{Candidate, Look};
use crate::app::{App, Message, Options, Screen};
use crate::session::figures::Estimate;
use crate::session::fixture::Fixture;
use crate::session::{Connection, Input};

/// How long it runs, unless the environment says so.
const SECONDS: u64 = 10;
/// Steps of one viewer.
const STEPS: usize = 400;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const CODES: &[KeyCode] = &[
    KeyCode::Enter,
    KeyCode::Esc,
    KeyCode::Backspace,
    KeyCode::Tab,
    KeyCode::BackTab,
    KeyCode::Up,
    KeyCode::Down,
    KeyCode::Left,
    KeyCode::Right,
    KeyCode::Home,
    KeyCode::End,
    KeyCode::PageUp,
    KeyCode::PageDown,
    KeyCode::Delete,
    KeyCode::F(1),
];
const PASTES: &[&str] = &["", "orders", "re:(", "ö\u{301}名\x1b[2J", "a\nb\t", "size>1K !via:x"];
const SIZES: &[(u16, u16)] =
    &[(80, 24), (20, 5), (300, 80), (120, 40), (1, 1), (0, 0), (7, 3), (200, 2), (3, 90)];

fn key(random: &mut Random) -> Message {
    let code = match random.below(4) {
        0 => random.of(CODES),
        _ => KeyCode::Char(char::from(b' ' + random.below(95) as u8)),
    };
    let held = match random.below(20) {
        0 => KeyModifiers::CONTROL,
        1 => KeyModifiers::ALT,
        _ => KeyModifiers::NONE,
    };
    Message::Key(KeyEvent::new(code, held))
}

fn mouse(random: &mut Random) -> Message {
    let button = MouseButton::Left;
    let kind = random.of(&[
        MouseEventKind::Down(button),
        MouseEventKind::Up(button),
        MouseEventKind::Drag(button),
        MouseEventKind::ScrollUp,
        MouseEventKind::ScrollDown,
    ]);
    let (column, row) = (random.below(320) as u16, random.below(90) as u16);
    Message::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

/// What a look for targets finds.
fn targets(random: &mut Random) -> Look {
    let target = |pid: u32, parent| Candidate {
        pid,
        parent: Some(parent),
        name: format!("orders-{pid}"),
        kind: "linked",
        socket: format!("/s/{pid}.sock").into(),
        interval_bytes: None,
        in_use: Estimate::Unknown,
        uptime_ns: 0,
    };
    let pids: Vec<u32> = (1..40).filter(|_| random.below(4) == 0).collect();
    let targets = pids.iter().map(|&pid| target(pid, random.below(40) as u32)).collect();
    Look { targets, trouble: (random.below(3) == 0).then(|| "no heaptop".into()) }
}

/// What happens in the target.
fn news(random: &mut Random, f: &mut Fixture) {
    match random.below(6) {
        0 | 1 => {
            let stack = f.stack(&["main", "serve", random.of(&["grow", "fill", "new_one"])]);
            let id = f.alloc(stack, 1 + random.below(1 << 20) as u64);
            if random.below(2) == 0 {
                f.free(id);
            }
        }
        2 | 3 => f.pass(random.of(&[0.1, 1.0, 70.0])),
        4 => f.report(),
        _ => {
            let ways = [Connection::Connected, Connection::Lost("gone".into())];
            let way = ways[random.below(2)].clone();
            f.session.apply(Input::Connection(way));
        }
    }
}

/// That what is selected is there.
fn in_range(app: &App) -> Result<(), String> {
    let (index, len) = match app.screen() {
        Screen::Callsites(cursor) => (cursor.index(), app.table().map_or(0, |t| t.len)),
        Screen::Callers(c) => (c.cursor.index(), c.rows.len()),
        Screen::Targets(t) => (t.cursor.index(), t.counts().0),
        Screen::Leaks(l) => (l.cursor.index(), l.answer.as_ref().map_or(0, |a| a.len)),
        Screen::Flame(f) => (f.at(), f.bars.len()),
        _ => return Ok(()),
    };
    if index < len.max(1) { Ok(()) } else { Err(format!("row {index} of {len} is selected")) }
}

fn press(app: &mut App, f: &Fixture, codes: &[KeyCode]) {
    for &code in codes {
        app.update(Message::Key(KeyEvent::new(code, KeyModifiers::NONE)), &f.session);
    }
}

/// A filter, and everything as at the start again: the same totals.
fn filter_and_back(app: &mut App, f: &Fixture) -> Result<(), String> {
    // A line that is typed, what is attached to, what is looked for, and the list itself.
    let esc = KeyCode::Esc;
    let reset = [esc, esc, esc, esc, KeyCode::Char('1'), KeyCode::Char('r')];
    let total = |app: &App| app.table().map(|t| (format!("{:?}", t.total), t.len, t.of));
    press(app, f, &reset);
    let before = total(app);
    press(app, f, &"/fill".chars().map(KeyCode::Char).collect::<Vec<_>>());
    press(app, f, &[KeyCode::Enter]);
    press(app, f, &reset);
    let after = total(app);
    if before == after { Ok(()) } else { Err(format!("{before:?} became {after:?}")) }
}

fn run(seed: u64, until: Instant) {
    let mut random = Random(seed | 1);
    let mut f = orders();
    let theme = if seed.is_multiple_of(2) { Theme::default() } else { Theme::mono() };
    let mut app = App::new(Options { theme, ascii: seed.is_multiple_of(3) });
    let mut size = (80, 24);
    app.update(Message::Resize(size.0, size.1), &f.session);
    for step in 0..STEPS {
        if Instant::now() >= until {
            return;
        }
        // Nobody leaves: the next key is one of a viewer that goes on.
        let _effects = match random.below(20) {
            0 => {
                size = random.of(SIZES);
                app.update(Message::Resize(size.0, size.1), &f.session)
            }
            1 => app.update(Message::Paste(random.of(PASTES).into()), &f.session),
            2 => app.update(mouse(&mut random), &f.session),
            3 => app.update(Message::Targets(targets(&mut random)), &f.session),
            4 => {
                let ns = random.below(1 << 30) as u64;
                app.update(Message::Passed(ns), &f.session)
            }
            5 if random.below(2) == 0 => app.update(Message::NoAnswer, &f.session),
            5 => app.update(Message::Still, &f.session),
            6..=8 => {
                news(&mut random, &mut f);
                app.update(Message::Refresh, &f.session)
            }
            _ => app.update(key(&mut random), &f.session),
        };
        if let Err(why) = in_range(&app) {
            panic!("seed {seed}, step {step}: {why}");
        }
        if random.below(100) == 0
            && let Err(why) = filter_and_back(&mut app, &f)
        {
            panic!("seed {seed}, step {step}: {why}");
        }
        if size.0 > 0 && size.1 > 0 && random.below(4) == 0 {
            drawn(&app, size);
        }
    }
}

#[test]
fn random_keys_break_nothing() {
    let set = std::env::var("HEAPTOP_KEYS_SECONDS").ok().and_then(|s| s.parse().ok());
    let until = Instant::now() + Duration::from_secs(set.unwrap_or(SECONDS));
    let mut seed = 1;
    while Instant::now() < until {
        // What panics is printed with its place; the seed with it.
        let outcome = std::panic::catch_unwind(|| run(seed, until));
        assert!(outcome.is_ok(), "seed {seed}");
        seed += 1;
    }
    println!("{} viewers of {STEPS} steps", seed - 1);
}

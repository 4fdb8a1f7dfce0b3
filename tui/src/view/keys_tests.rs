//! Keys, mouse, pastes, sizes, configurations, answers and news at random: nothing panics,
//! what is selected is there, and a filter that is taken away leaves the totals that there
//! were.
//!
//! `tests/keys SECONDS SEED` runs it for longer, from another seed on; a failure names the
//! seed and the step.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::testing::{drawn, orders};
use super::theme::{Depth, Theme};
use crate::app::source::Text;
use crate::app::targets::Look;
use crate::app::testing::target;
use crate::app::{App, Effect, Message, Options, Screen};
use crate::config;
use crate::export::Proposal;
use crate::query::Figures;
use crate::session::fixture::Fixture;
use crate::session::{Connection, Damage, Input, Missing};
use heaptop_protocol::message::{Dropped, Losses, Mark, Phase, Sampling};

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
const PASTES: &[&str] = &[
    "",
    "orders",
    "re:(",
    "re:(?i)FILL|grow$",
    "ö\u{301}名\x1b[2J\u{202e}👩\u{200d}👩",
    "a\nb\t",
    "size>1K !via:x",
    "born:start..end died:-10s..",
    "hide:main thread:\"orders\" cause:malloc",
    "age>10s lifetime<1ms promoted:yes",
    "2G",
];
const SIZES: &[(u16, u16)] = &[
    (80, 24),
    (20, 5),
    (300, 80),
    (120, 40),
    (500, 200),
    (1, 1),
    (0, 0),
    (0, 40),
    (80, 0),
    (7, 3),
    (200, 2),
    (3, 90),
];
/// Lines of a configuration, right and wrong. Keys stay: the test presses them.
const SETTINGS: &[&str] = &[
    "theme = \"light\"",
    "theme = \"colour-blind\"",
    "theme = \"mono\"",
    "ascii = true",
    "screen = \"leaks\"",
    "screen = \"flame\"",
    "screen = 7",
    "sort = \"lifetime\"",
    "sort = \"growth\"",
    "descending = false",
    "group = \"function\"",
    "group = \"size\"",
    "metric = \"promoted-bytes\"",
    "columns = [\"trend\", \"growth\", \"in-use-bytes\"]",
    "columns = []",
    "limit = \"1M\"",
    "automatic-marks = 5",
    "export-directory = \"~/ö\"",
    "nonsense = [",
];

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
    let (column, row) = if random.below(2) == 0 {
        (random.below(520) as u16, random.below(210) as u16)
    } else {
        (random.below(80) as u16, random.below(24) as u16)
    };
    Message::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE })
}

/// What a look for targets finds.
fn targets(random: &mut Random) -> Look {
    let target = |pid: u32, parent| target(pid, Some(parent), &format!("orders-{pid}"));
    let pids: Vec<u32> = (1..40).filter(|_| random.below(4) == 0).collect();
    let targets = pids.iter().map(|&pid| target(pid, random.below(40) as u32)).collect();
    Look { targets, trouble: (random.below(3) == 0).then(|| "no heaptop".into()) }
}

/// What happens in the target.
fn news(random: &mut Random, f: &mut Fixture) {
    match random.below(16) {
        0..=4 => {
            let stack = f.stack(&["main", "serve", random.of(&["grow", "fill", "new_one"])]);
            let id = f.alloc(stack, 1 + random.below(1 << 20) as u64);
            if random.below(2) == 0 {
                f.free(id);
            }
        }
        5..=7 => f.pass(random.of(&[0.1, 1.0, 70.0])),
        8 => f.report(),
        9 => f.snapshot(),
        10 => {
            let at = f.now();
            f.say(Mark { at, label: random.of(PASTES).into() });
        }
        11 => {
            let at = f.now();
            f.say(Phase { at, name: random.of(PASTES).into() });
        }
        12 => f.say(Dropped { events: 1 + random.below(1000) as u64 }),
        13 => {
            f.losses = Losses { births: random.below(9) as u64, ..f.losses };
            f.sampling = random.of(&[Sampling::On, Sampling::Paused]);
            f.report();
        }
        14 => {
            let missing = random.of(&[Missing::Nothing, Missing::Between, Missing::End]);
            f.session.apply(Input::Damage(Damage { how: random.of(PASTES).into(), missing }));
        }
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
        Screen::Promotion(p) => (p.cursor.index(), p.answer.as_ref().map_or(0, |a| a.rows.len())),
        Screen::Threads(t) => (t.cursor.index(), t.rows.as_ref().map_or(0, Vec::len)),
        Screen::Timeline(t) => (t.cursor.index(), t.answer.as_ref().map_or(0, |a| a.series.len())),
        Screen::Columns { cursor } => (cursor.index(), app.columns_listed().len()),
        Screen::Export(menu) => (menu.cursor.index(), menu.formats().len()),
        Screen::Source(s) => (s.at(), s.len()),
        Screen::Log(_) | Screen::Details(_) | Screen::Help { .. } => return Ok(()),
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
    let total = |app: &App| {
        let of = |f: &Figures| format!("{:?} {:?} {:?}", f.in_use_bytes, f.allocated_bytes, f.mean);
        app.table().map(|t| (of(&t.total), t.len, t.of))
    };
    let filtered = |app: &mut App| {
        press(app, f, &reset);
        press(app, f, &"/fill".chars().map(KeyCode::Char).collect::<Vec<_>>());
        press(app, f, &[KeyCode::Enter]);
        press(app, f, &reset);
    };
    // Single events wait for the agent's next report to be shown, but for who asks anew.
    filtered(app);
    let before = total(app);
    filtered(app);
    let after = total(app);
    if before == after {
        return Ok(());
    }
    let (paused, file) = (app.paused(), app.file());
    Err(format!("{before:?} became {after:?}, paused: {paused}, file: {file:?}"))
}

/// A line that is typed is left by Esc, whatever it is for.
fn left(app: &mut App, f: &Fixture) -> Result<(), String> {
    press(app, f, &[KeyCode::Esc]);
    app.prompt().map_or(Ok(()), |(kind, ..)| Err(format!("Esc does not leave {kind:?}")))
}

/// What the terminal loop would answer, or what it would if it failed.
fn answers(effects: Vec<Effect>, random: &mut Random) -> Vec<Message> {
    let well = random.below(2) == 0;
    let path = || std::path::PathBuf::from(PASTES[4]);
    let answer = |effect| match effect {
        Effect::Propose(shown, to) if well => {
            let taken = (random.below(2) == 0).then(|| PASTES[4].to_owned());
            let proposal = Proposal { path: path(), taken };
            Some(Message::Proposed(to, Ok(vec![proposal; shown.formats().len()])))
        }
        Effect::Propose(_, to) => Some(Message::Proposed(to, Err("there is no directory".into()))),
        Effect::Export(job) => {
            let written = if well { Ok((path(), Vec::new())) } else { Err("it is full".into()) };
            (random.below(8) > 0).then_some(Message::Exported(job.number, written))
        }
        Effect::Send(command) => (!well).then_some(Message::NotSent(command)),
        Effect::Read(file) if well => {
            let lines = PASTES.iter().map(|line| (*line).to_owned()).collect();
            Some(Message::Source(file, Ok(Text { path: path(), lines, changed_unix_ns: None })))
        }
        Effect::Read(file) => Some(Message::Source(file, Err("it is not there".into()))),
        Effect::Record => Some(Message::Recording(well.then(|| ("a".into(), "1 MiB".into())))),
        Effect::Snapshot => Some(Message::Note("written".into())),
        Effect::Attach(_) | Effect::Demo => {
            (!well).then(|| Message::NotAttached("it is gone".into()))
        }
        Effect::Quit | Effect::Suspend | Effect::Copy(_) | Effect::Stay => None,
    };
    effects.into_iter().filter_map(answer).collect()
}

/// A viewer as somebody has configured it.
fn viewer(random: &mut Random) -> App {
    let lines: Vec<&str> = (0..random.below(4)).map(|_| random.of(SETTINGS)).collect();
    let (config, _) = config::parse(&lines.join("\n"));
    let depth = random.of(&[Depth::Sixteen, Depth::Indexed, Depth::True]);
    let options = Options { theme: Theme::new(config.palette, depth), ascii: config.ascii };
    let app = if random.below(4) == 0 { App::of_file(options) } else { App::new(options) };
    app.configured(config.settings)
}

fn run(seed: u64, until: Instant) {
    // Neighbours have nothing in common.
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut f = orders();
    let mut app = viewer(&mut random);
    let mut size = (80, 24);
    app.update(Message::Resize(size.0, size.1), &f.session);
    for step in 0..STEPS {
        if Instant::now() >= until {
            return;
        }
        // Nobody leaves: the next key is one of a viewer that goes on.
        let effects = match random.below(20) {
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
            5 => {
                let percent = (random.below(2) == 0).then_some(random.below(101) as u8);
                let silence = (random.below(2) == 0).then_some(random.below(100) as u64);
                let told = match random.below(4) {
                    0 => Message::NoAnswer,
                    1 => Message::Reading(percent),
                    2 => Message::Still,
                    _ => Message::Silence(silence),
                };
                app.update(told, &f.session)
            }
            6..=8 => {
                news(&mut random, &mut f);
                app.update(Message::Refresh, &f.session)
            }
            _ => app.update(key(&mut random), &f.session),
        };
        for answer in answers(effects, &mut random) {
            app.update(answer, &f.session);
        }
        if let Err(why) = in_range(&app) {
            panic!("seed {seed}, step {step}: {why}");
        }
        if app.prompt().is_some()
            && random.below(30) == 0
            && let Err(why) = left(&mut app, &f)
        {
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
    let set = |name| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let seconds = set("HEAPTOP_KEYS_SECONDS").unwrap_or(SECONDS);
    let until = Instant::now() + Duration::from_secs(seconds);
    let first = set("HEAPTOP_KEYS_SEED").unwrap_or(1);
    let mut seed = first;
    while Instant::now() < until {
        // What panics is printed with its place; the seed with it.
        let outcome = std::panic::catch_unwind(|| run(seed, until));
        assert!(outcome.is_ok(), "seed {seed}");
        seed += 1;
    }
    println!("{} viewers of {STEPS} steps, from seed {first} on", seed - first);
}

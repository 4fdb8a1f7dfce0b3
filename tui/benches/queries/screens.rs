//! Every screen, with every grouping and all that needs the past, while samples come in:
//! how long a frame takes, how long a key takes until it is drawn, and how both grow with
//! the target.
//!
//! Times are of this thread on the CPU: what else the machine does is not in them.

use super::{STACKS_OF_A_SITE, Target};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use heaptop::app::{App, Message, Options};
use heaptop::session::Input;
use heaptop::view;
use heaptop_protocol::event::Batch;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Name, the keys that go there, and the size of the terminal: all columns need a wide one.
const SCREENS: &[(&str, &str, (u16, u16))] = &[
    ("callsites", "1", (160, 50)),
    ("callsites, all columns, growth", "1", (300, 80)),
    ("callsites by growth", "1sssssssssss", (300, 80)),
    ("functions", "1t", (300, 80)),
    (NEWS, "1t", (300, 80)),
    ("files", "1tt", (300, 80)),
    ("crates and modules", "1ttt", (300, 80)),
    ("size classes", "1tttt", (300, 80)),
    ("threads", "1ttttt", (300, 80)),
    ("callers", "2", (160, 50)),
    ("flamegraph", "3", (160, 50)),
    ("time", "4", (160, 50)),
    ("promotion", "5", (160, 50)),
    ("threads' own screen", "6", (160, 50)),
    ("leaks", "7", (160, 50)),
    ("details", "1d", (160, 50)),
    ("callsites at the cursor", "1,,,", (160, 50)),
];

/// With each frame of this one a callstack comes.
const NEWS: &str = "functions, a new callstack each";

/// Frames that are measured of each: four a second of the target's time, so what is made
/// anew once a second is in one of four.
const FRAMES: usize = 40;
/// Keys that are measured, a twentieth of a second apart.
const KEYS: usize = 40;
/// A twentieth of a second at 200,000 events a second.
const EVENTS: u64 = 10_000;

/// One screen at one size.
struct Measured {
    /// How long another key had to wait behind the last that goes there,
    first: Duration,
    /// and how long it took until it was there: a moment of the past is added up in slices.
    there: Duration,
    median: Duration,
    longest: Duration,
    key: Duration,
}

/// CPU time of this thread.
pub fn now() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// Measures all screens at each of the sizes, in callstacks, ten lives over for each; prints
/// a line for each and, of more than one size, how times grow.
pub fn measure(sizes: &[u64], only: &[String]) {
    let mut table: Vec<Vec<Measured>> = Vec::new();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(&**part));
    println!(
        "{:>8} {:<34} {:>11} {:>11} {:>11} {:>11} {:>11}",
        "stacks", "ms of CPU", "first", "there", "median", "longest", "key"
    );
    for &stacks in sizes {
        let target = &mut Target::new(stacks, stacks / STACKS_OF_A_SITE);
        grow(target, stacks as usize * 10);
        let rows = SCREENS.iter().filter(|(name, ..)| wanted(name)).map(|(name, keys, size)| {
            let measured = screen(target, keys, *size, *name == NEWS);
            println!(
                "{stacks:>8} {name:<34} {:>11.3} {:>11.3} {:>11.3} {:>11.3} {:>11.3}",
                ms(measured.first),
                ms(measured.there),
                ms(measured.median),
                ms(measured.longest),
                ms(measured.key)
            );
            measured
        });
        table.push(rows.collect());
    }
    if sizes.len() < 2 {
        return;
    }
    println!("\nms of CPU, by callstacks: {sizes:?}, ten lives over for each");
    println!("{:<34} {:>30} {:>30} {:>30}", "", "median frame", "longest frame", "key to paint");
    for (at, (name, ..)) in SCREENS.iter().filter(|(name, ..)| wanted(name)).enumerate() {
        let of = |part: fn(&Measured) -> Duration| {
            let values = table.iter().map(|rows| format!("{:>9.2}", ms(part(&rows[at]))));
            values.collect::<Vec<_>>().join(" ")
        };
        println!(
            "{name:<34} {:>30} {:>30} {:>30}",
            of(|m| m.median),
            of(|m| m.longest),
            of(|m| m.key)
        );
    }
}

/// Until so many lives are over, at 2,000 samples a second, in front of somebody: with each
/// refresh a little of what other screens need is made ahead.
pub fn grow(target: &mut Target, lives: usize) {
    let mut app = App::new(Options::default());
    while target.session.lives_over().len() < lives {
        let events = target.events(1_000);
        target.say(Batch::pack(&events));
        target.at.time_ns += 500_000_000;
        target.report(target.stacks.min(1_000));
        app.update(Message::Refresh, &target.session);
    }
}

fn screen(target: &mut Target, keys: &str, size: (u16, u16), news: bool) -> Measured {
    let mut terminal =
        Terminal::new(TestBackend::new(size.0, size.1)).expect("a test backend does not fail");
    let mut app = App::new(Options::default());
    let key = |code| Message::Key(KeyEvent::new(code, KeyModifiers::NONE));
    let mut paint = |app: &mut App, t: &Target, message: Message| {
        let start = now();
        app.update(message, &t.session);
        terminal.draw(|frame| view::draw(app, frame)).expect("a test backend does not fail");
        now().saturating_sub(start)
    };
    app.update(Message::Resize(size.0, size.1), &target.session);
    app.update(Message::Refresh, &target.session);
    let (mut first, mut there) = (Duration::ZERO, Duration::ZERO);
    for c in keys.chars() {
        first = paint(&mut app, target, key(KeyCode::Char(c)));
        there = first;
        while app.under_way().is_some() {
            let slice = paint(&mut app, target, Message::GoOn);
            (first, there) = (first.max(slice), there + slice);
        }
    }
    let mut frames: Vec<Duration> = (0..FRAMES)
        .map(|_| {
            target.go_on(250);
            if news {
                target.one_more();
            }
            paint(&mut app, target, Message::Refresh)
        })
        .collect();
    frames.sort_unstable();
    // The key comes behind the events of a frame and the frame itself, if it is due.
    let keys = (0..KEYS).map(|i| {
        let batch = Batch::pack(&target.events(EVENTS / 2));
        target.at.time_ns += 50_000_000;
        let update = target.update(if i % 5 == 0 { target.stacks.min(10_000) } else { 0 });
        let start = now();
        target.session.apply(Input::Agent(batch.into()));
        target.session.apply(Input::Agent(update.into()));
        app.update(Message::Refresh, &target.session);
        let heard = now().saturating_sub(start);
        heard + paint(&mut app, target, key(KeyCode::Down))
    });
    let key = keys.max().unwrap_or_default();
    Measured { first, there, median: frames[FRAMES / 2], longest: frames[FRAMES - 1], key }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

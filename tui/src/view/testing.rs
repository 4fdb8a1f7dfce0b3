//! What the tests of the screens share: a target to look at, keys, and drawn
//! screens as text.

use std::fmt::Write as _;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Modifier, Style};

use super::draw;
use super::theme::{self, Theme};
use crate::app::settings::Settings;
pub(super) use crate::app::testing::{key, press};
use crate::app::{App, Message, Options};
use crate::session::Session;
use crate::session::fixture::Fixture;

/// A service with a cache that stays, sessions that leak, buffers and requests
/// that die young, half a minute after its start.
pub(super) fn orders() -> Fixture {
    let mut f = Fixture::new(64 << 10);
    let http =
        ["main@orders/src/main.rs:12", "tokio::runtime::Runtime::block_on@tokio/src/rt.rs:301"];
    let stack = |f: &mut Fixture, leaf: &[&str]| {
        let path: Vec<&str> = http.iter().chain(leaf).copied().collect();
        f.stack(&path)
    };
    let cache = stack(
        &mut f,
        &[
            "orders::warm_up@orders/src/main.rs:40",
            "orders::cache::fill_cache@orders/src/cache.rs:88",
        ],
    );
    let login = stack(
        &mut f,
        &[
            "orders::http::serve_request@orders/src/http.rs:131",
            "orders::auth::forget_session@orders/src/auth.rs:41",
        ],
    );
    let grow = stack(
        &mut f,
        &[
            "orders::http::serve_request@orders/src/http.rs:140",
            "orders::http::read_body@orders/src/http.rs:77",
            "bytes::buf::Buf::grow@bytes/src/buf.rs:210",
        ],
    );
    let parse = stack(
        &mut f,
        &[
            "orders::http::serve_request@orders/src/http.rs:140",
            "<httparse::Parser<'_, alloc::vec::Vec<u8>> as httparse::Parse>::parse_header@httparse/src/lib.rs:97",
        ],
    );
    let admin = stack(
        &mut f,
        &[
            "orders::admin::dump@orders/src/admin.rs:9",
            "orders::cache::fill_cache@orders/src/cache.rs:88",
        ],
    );
    let bare = f.bare_stack(&["main@orders/src/main.rs:12", "no name"]);
    for i in 0..120 {
        let block = f.alloc(cache, 1024);
        f.promote(block);
        if i % 20 == 0 {
            f.alloc(admin, 4096);
        }
    }
    f.alloc(bare, 300_000);
    for _ in 0..60 {
        f.pass(0.5);
        let kept = f.alloc(login, 700);
        f.promote(kept);
        let buffer = f.alloc(grow, 48_000);
        let header = f.alloc(parse, 64);
        f.pass(0.002);
        f.free(buffer);
        f.free(header);
    }
    f.pass(0.5);
    f
}

/// A minute of one callsite whose blocks live for 8 MiB of allocation, one whose die
/// soon, and one whose stay.
pub(super) fn nurseries() -> Fixture {
    let mut f = Fixture::new(16 << 10);
    let slow = f.stack(&["main", "orders::queue::push@orders/src/queue.rs:12"]);
    let soon = f.stack(&["main", "orders::http::parse_header@orders/src/http.rs:97"]);
    let stay = f.stack(&["main", "orders::cache::fill_cache@orders/src/cache.rs:88"]);
    let mut waiting = Vec::new();
    let mut turned = 0;
    for step in 0..3600_u64 {
        let (brief, long) = (f.alloc(soon, 512), f.alloc(slow, 1024));
        f.clock += 30_000;
        f.free(brief);
        waiting.push((long, f.clock));
        if step % 40 == 0 {
            let kept = f.alloc(stay, 2000);
            waiting.push((kept, u64::MAX / 2));
        }
        if f.clock / (2 << 20) > turned {
            // A cycle is over: who lives is promoted.
            turned = f.clock / (2 << 20);
            let young: Vec<_> = waiting.iter().map(|(id, _)| *id).collect();
            for id in young {
                f.promote(id);
            }
        }
        let clock = f.clock;
        let dead = |born: u64| born.saturating_add(8 << 20) < clock;
        for (id, _) in waiting.extract_if(.., |(_, born)| dead(*born)).collect::<Vec<_>>() {
            f.free(id);
        }
        if step % 60 == 0 {
            f.pass(1.0);
        }
    }
    f.pass(0.5);
    f
}

/// Starts at a size and takes keys: `⏎ ⎋ ↓ → ←` and characters.
pub(super) fn run(session: &Session, (width, height): (u16, u16), keys: &str) -> App {
    let mut app = App::new(Options::default());
    app.update(Message::Resize(width, height), session);
    app.update(Message::Refresh, session);
    press(&mut app, session, keys);
    app
}

/// The same for a user who has chosen something.
pub(super) fn run_with(
    session: &Session,
    (width, height): (u16, u16),
    settings: Settings,
    keys: &str,
) -> App {
    let mut app = App::new(Options::default()).configured(settings);
    app.update(Message::Resize(width, height), session);
    app.update(Message::Refresh, session);
    press(&mut app, session, keys);
    app
}

pub(super) fn drawn(app: &App, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// The lines of a buffer, without the spaces at their ends.
pub(super) fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    buffer
        .content
        .chunks(width.max(1))
        .map(|row| {
            let mut line = String::new();
            let mut covered = 0;
            for cell in row {
                // A wide character covers the cell behind it.
                if covered == 0 {
                    line.push_str(cell.symbol());
                    covered = super::text::width(cell.symbol()).saturating_sub(1);
                } else {
                    covered -= 1;
                }
            }
            line.trim_end().to_owned() + "\n"
        })
        .collect()
}

/// One letter a cell: `r`ed, `R`everse, `b`old, `d`im, `.` plain.
pub(super) fn styles(buffer: &Buffer) -> String {
    let letter = |style: Style| {
        let has = |m| style.add_modifier.contains(m);
        match style.fg {
            fg if fg == Theme::default().style(theme::LOSS).fg => 'r',
            _ if has(Modifier::REVERSED) => 'R',
            _ if has(Modifier::BOLD) => 'b',
            _ if has(Modifier::DIM) => 'd',
            _ => '.',
        }
    };
    let width = usize::from(buffer.area.width);
    buffer
        .content
        .chunks(width)
        .map(|row| row.iter().map(|c| letter(c.style())).collect::<String>() + "\n")
        .collect()
}

/// A letter for each style that there is, in the order in which they come, and a line below
/// that says what each is.
pub(super) fn painted(buffer: &Buffer) -> String {
    let mut known: Vec<Style> = vec![Cell::default().style()];
    let mut drawn = String::new();
    for row in buffer.content.chunks(usize::from(buffer.area.width)) {
        for cell in row {
            let style = cell.style();
            let at = known.iter().position(|k| *k == style).unwrap_or_else(|| {
                known.push(style);
                known.len() - 1
            });
            drawn.push(if at == 0 { '.' } else { char::from(b'a' + at as u8 - 1) });
        }
        drawn.push('\n');
    }
    for (at, style) in known.iter().enumerate().skip(1) {
        let letter = char::from(b'a' + at as u8 - 1);
        let color = |c: Option<_>| format!("{:?}", c.unwrap_or_default());
        let (fg, bg) = (color(style.fg), color(style.bg));
        let _ = writeln!(drawn, "{letter} {fg} on {bg} {:?}", style.add_modifier);
    }
    drawn
}

pub(super) fn screen(session: &Session, size: (u16, u16), keys: &str) -> String {
    text(&drawn(&run(session, size, keys), size))
}

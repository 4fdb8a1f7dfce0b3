//! What tests of the state share: a viewer that has seen its target, and keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::targets::Candidate;
use super::{App, Effect, Message, Options};
use crate::session::Session;
use crate::session::figures::Estimate;
use crate::session::fixture::Fixture;
use crate::view::theme::Theme;

/// A viewer of the target, on 80 columns and 24 rows.
pub(crate) fn started(f: &Fixture) -> App {
    let mut app = App::new(Options { theme: Theme::mono(), ascii: false });
    app.update(Message::Resize(80, 24), &f.session);
    refresh(&mut app, f);
    app
}

/// News of the target.
pub(crate) fn refresh(app: &mut App, f: &Fixture) {
    app.update(Message::Refresh, &f.session);
}

/// A key without Control.
pub(crate) fn key(code: KeyCode) -> Message {
    Message::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Presses keys: `⏎ ⎋ ↓ → ← ⇥` and characters.
pub(crate) fn press(app: &mut App, session: &Session, keys: &str) -> Vec<Effect> {
    let code = |c| match c {
        '⏎' => KeyCode::Enter,
        '⎋' => KeyCode::Esc,
        '↓' => KeyCode::Down,
        '→' => KeyCode::Right,
        '←' => KeyCode::Left,
        '⇥' => KeyCode::Tab,
        c => KeyCode::Char(c),
    };
    keys.chars().flat_map(|c| app.update(key(code(c)), session)).collect()
}

/// A target that can be attached to.
pub(crate) fn target(pid: u32, parent: Option<u32>, name: &str) -> Candidate {
    Candidate {
        pid,
        parent,
        name: name.into(),
        kind: "linked",
        socket: format!("/s/{pid}.sock").into(),
        interval_bytes: Some(512 << 10),
        in_use: Estimate::Unknown,
        uptime_ns: 0,
    }
}

//! What each theme makes of each screen.

use super::testing::{drawn, orders, painted, press};
use super::theme::{Depth, Palette, Theme};
use crate::app::{App, Message, Options};

/// Screens, with the keys that lead there.
const SCREENS: [(&str, &str); 13] = [
    ("callsites", ""),
    ("callers", "2"),
    ("flame", "3D"),
    ("time", "4"),
    ("promotion", "5"),
    ("threads", "6"),
    ("leaks", "7"),
    ("source", "8"),
    ("log", "9"),
    ("details", "d"),
    ("columns", "c"),
    ("export", "e"),
    ("help", "?"),
];

#[test]
fn each_screen_in_each_theme() {
    let mut f = orders();
    f.losses.births = 12_345;
    f.pass(0.5);
    let size = (80, 24);
    for (name, palette, depth) in [
        ("dark", Palette::Dark, Depth::Sixteen),
        ("dark_true", Palette::Dark, Depth::True),
        ("light", Palette::Light, Depth::Sixteen),
        ("light_256", Palette::Light, Depth::Indexed),
        ("colour_blind", Palette::ColourBlind, Depth::Indexed),
        ("mono", Palette::Mono, Depth::True),
    ] {
        let theme = Theme::new(palette, depth);
        for (screen, keys) in SCREENS {
            let mut app = App::new(Options { theme, ..Options::default() });
            app.update(Message::Resize(size.0, size.1), &f.session);
            app.update(Message::Refresh, &f.session);
            press(&mut app, &f.session, keys);
            let buffer = drawn(&app, size);
            insta::assert_snapshot!(format!("theme_{name}_{screen}"), painted(&buffer));
        }
    }
}

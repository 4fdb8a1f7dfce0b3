//! Themes: how what is drawn gets its colours.
//!
//! Screens are drawn in **roles**. Colour carries meaning only twice, so two roles are inks:
//! [`LOSS`] and [`GROWTH`]; a third, [`FRAME`], is the ground of a flamegraph's frames. All
//! else is weight and place, and is drawn by modifiers: dim, bold, inverse video. When the
//! screen is drawn, [`Theme::paint`] goes over its cells once and puts what the theme has for
//! each role in its place. So a screen cannot use a colour that a theme does not know, and
//! this is the one room that names colours.
//!
//! What a theme has for a role depends on how many colours the terminal shows: [`Depth`].
//! With 16 they are the terminal's own, whose shades its user has chosen; with 256 and more
//! they are given, since what the terminal makes of its own is not known.
//!
//! ```text
//!               loss          growth        dim           frames
//! dark          red           yellow        as dim        inverse; greys from 256 colours on
//! light         red           magenta       grey          inverse; greys from 256 colours on
//! colour-blind  vermilion     blue          as dim        inverse; greys from 256 colours on
//! mono          inverse bold  bold italic   as dim        inverse
//! ```
//!
//! Yellow cannot be read on white, and many terminals draw dim text there so faintly that it
//! cannot either. Vermilion and blue are of Okabe and Ito's set, which people who see two
//! colours tell apart; they do on black and on white. Signs (▲, `dropped`) say the same where
//! there is no colour.

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier, Style};

/// What was lost.
pub const LOSS: Style = Style::new().fg(LOSS_INK).add_modifier(Modifier::BOLD);
/// Growth with evidence.
pub const GROWTH: Style = Style::new().fg(GROWTH_INK).add_modifier(Modifier::BOLD);
/// A flamegraph's frame, and the frame beside it.
pub const FRAME: [Style; 2] = [
    Style::new().bg(FRAME_GROUND).add_modifier(Modifier::REVERSED),
    Style::new().bg(FRAME_GROUND).add_modifier(Modifier::REVERSED.union(Modifier::DIM)),
];

// These stand for roles until the screen is painted; none reaches a terminal.
const LOSS_INK: Color = Color::Red;
const GROWTH_INK: Color = Color::Yellow;
const FRAME_GROUND: Color = Color::Blue;

/// Which colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Palette {
    /// For terminals with a dark ground.
    #[default]
    Dark,
    /// For terminals with a light ground.
    Light,
    /// Told apart by people who see two colours; on dark and on light grounds.
    ColourBlind,
    /// No colour.
    Mono,
}

/// How many colours the terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// The terminal's own.
    #[default]
    Sixteen,
    /// A table of 256.
    Indexed,
    /// Red, green and blue in 8 bits each.
    True,
}

/// See the module. Without anything said: dark, with 16 colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    palette: Palette,
    depth: Depth,
}

impl Depth {
    /// What the environment says of the terminal; `variable` reads it.
    #[must_use]
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Self {
        let term = variable("TERM").unwrap_or_default();
        match variable("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Self::True,
            _ if term.ends_with("-direct") => Self::True,
            _ if term.contains("256color") => Self::Indexed,
            _ => Self::Sixteen,
        }
    }
}

/// One colour for each depth: by the terminal's name for it, by its place in the table, and
/// by red, green and blue.
#[derive(Clone, Copy)]
struct Shade(Color, u8, (u8, u8, u8));

impl Shade {
    const fn at(self, depth: Depth) -> Color {
        let (red, green, blue) = self.2;
        match depth {
            Depth::Sixteen => self.0,
            Depth::Indexed => Color::Indexed(self.1),
            Depth::True => Color::Rgb(red, green, blue),
        }
    }
}

/// Ink, then the grounds of frames side by side. From 256 colours on.
struct Frames(Shade, [Shade; 2]);

/// What of a palette has colours.
struct Shades {
    loss: Shade,
    growth: Shade,
    /// `None`: the terminal's own dim.
    dim: Option<Shade>,
    frames: Frames,
}

const DARK: Shades = Shades {
    loss: Shade(Color::Red, 203, (0xff, 0x5f, 0x5f)),
    growth: Shade(Color::Yellow, 221, (0xff, 0xd7, 0x5f)),
    dim: None,
    frames: Frames(
        Shade(Color::White, 253, (0xda, 0xda, 0xda)),
        [
            Shade(Color::Black, 240, (0x50, 0x56, 0x5e)),
            Shade(Color::Black, 237, (0x38, 0x3c, 0x42)),
        ],
    ),
};

const LIGHT: Shades = Shades {
    loss: Shade(Color::Red, 160, (0xc0, 0x10, 0x10)),
    growth: Shade(Color::Magenta, 90, (0x87, 0x00, 0x87)),
    dim: Some(Shade(Color::DarkGray, 241, (0x62, 0x62, 0x62))),
    frames: Frames(
        Shade(Color::Black, 234, (0x1c, 0x1c, 0x1c)),
        [
            Shade(Color::White, 250, (0xbc, 0xc0, 0xc6)),
            Shade(Color::White, 253, (0xd8, 0xdb, 0xe0)),
        ],
    ),
};

const COLOUR_BLIND: Shades = Shades {
    loss: Shade(Color::Red, 166, (0xd5, 0x5e, 0x00)),
    growth: Shade(Color::Blue, 32, (0x2b, 0x86, 0xc5)),
    dim: None,
    frames: Frames(
        Shade(Color::White, 231, (0xff, 0xff, 0xff)),
        [
            Shade(Color::Black, 240, (0x58, 0x58, 0x58)),
            Shade(Color::Black, 243, (0x70, 0x70, 0x70)),
        ],
    ),
};

impl Theme {
    /// A palette on a terminal that shows so many colours.
    #[must_use]
    pub const fn new(palette: Palette, depth: Depth) -> Self {
        Self { palette, depth }
    }

    /// Weight and place alone.
    #[must_use]
    pub const fn mono() -> Self {
        Self::new(Palette::Mono, Depth::Sixteen)
    }

    const fn shades(self) -> Option<&'static Shades> {
        match self.palette {
            Palette::Dark => Some(&DARK),
            Palette::Light => Some(&LIGHT),
            Palette::ColourBlind => Some(&COLOUR_BLIND),
            Palette::Mono => None,
        }
    }

    /// What a role's style becomes.
    #[must_use]
    pub fn style(self, role: Style) -> Style {
        let mut cell = Cell::new(" ");
        cell.set_style(role);
        self.paint_cell(&mut cell);
        cell.style()
    }

    /// Puts what the theme has for each role into the cells of a drawn screen.
    pub fn paint(self, buffer: &mut Buffer) {
        for cell in &mut buffer.content {
            let plain = cell.fg == Color::Reset && cell.bg == Color::Reset;
            if !plain || cell.modifier.contains(Modifier::DIM) {
                self.paint_cell(cell);
            }
        }
    }

    fn paint_cell(self, cell: &mut Cell) {
        let (ink, ground) = (cell.fg, cell.bg);
        (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        let Some(shades) = self.shades() else {
            return match ink {
                LOSS_INK => cell.modifier |= Modifier::REVERSED,
                GROWTH_INK => cell.modifier |= Modifier::ITALIC,
                _ => {}
            };
        };
        let dim = cell.modifier.contains(Modifier::DIM);
        let reversed = cell.modifier.contains(Modifier::REVERSED);
        match (ink, shades.dim) {
            (LOSS_INK, _) => cell.fg = shades.loss.at(self.depth),
            (GROWTH_INK, _) => cell.fg = shades.growth.at(self.depth),
            _ if ground == FRAME_GROUND && reversed
                // With the terminal's own colours frames stay in inverse video.
                && self.depth != Depth::Sixteen =>
            {
                let Frames(ink, grounds) = &shades.frames;
                cell.fg = ink.at(self.depth);
                cell.bg = grounds[usize::from(dim)].at(self.depth);
                cell.modifier -= Modifier::DIM | Modifier::REVERSED;
            }
            // In inverse video a grey would be the ground.
            (_, Some(grey)) if dim && !reversed => {
                cell.fg = grey.at(self.depth);
                cell.modifier -= Modifier::DIM;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rgb(style: Style) -> [f64; 3] {
        match style.fg {
            Some(Color::Rgb(r, g, b)) => [r, g, b].map(|part| {
                let part = f64::from(part) / 255.0;
                if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
            }),
            other => panic!("no true colour: {other:?}"),
        }
    }

    fn luminance(rgb: [f64; 3]) -> f64 {
        0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]
    }

    /// As WCAG 2 defines it.
    fn contrast(a: f64, b: f64) -> f64 {
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn colours_can_be_read_on_the_ground_they_are_for() {
        const BLACK: f64 = 0.0;
        const WHITE: f64 = 1.0;
        for (palette, grounds, least) in [
            (Palette::Dark, &[BLACK][..], 4.5),
            (Palette::Light, &[WHITE][..], 4.5),
            (Palette::ColourBlind, &[BLACK, WHITE][..], 3.5),
        ] {
            let theme = Theme::new(palette, Depth::True);
            for role in [LOSS, GROWTH] {
                let ink = luminance(rgb(theme.style(role)));
                for &ground in grounds {
                    let contrast = contrast(ink, ground);
                    assert!(contrast >= least, "{palette:?} {role:?}: {contrast}");
                }
            }
            for frame in FRAME {
                let frame = theme.style(frame);
                let ground = Style::new().fg(frame.bg.unwrap());
                let contrast = contrast(luminance(rgb(frame)), luminance(rgb(ground)));
                assert!(contrast >= 4.5, "{palette:?} {frame:?}: {contrast}");
            }
        }
    }

    /// What people see who lack one kind of cone, after Machado, Oliveira and Fernandes
    /// (2009), at full severity, on linear light.
    #[test]
    fn loss_and_growth_are_told_apart_by_who_sees_two_colours() {
        let lacks = [
            [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
            [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        ];
        let theme = Theme::new(Palette::ColourBlind, Depth::True);
        let [loss, growth] = [LOSS, GROWTH].map(|role| rgb(theme.style(role)));
        for matrix in lacks {
            let seen = |ink: [f64; 3]| {
                matrix.map(|row| row.iter().zip(ink).map(|(m, part)| m * part).sum::<f64>())
            };
            let (a, b) = (seen(loss), seen(growth));
            let apart = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            assert!(apart > 0.4, "{apart}");
        }
    }

    #[test]
    fn no_role_reaches_the_terminal_as_it_is_drawn() {
        for depth in [Depth::Sixteen, Depth::Indexed, Depth::True] {
            for palette in [Palette::Dark, Palette::Light, Palette::ColourBlind, Palette::Mono] {
                let theme = Theme::new(palette, depth);
                for role in [LOSS, GROWTH, FRAME[0], FRAME[1]] {
                    let style = theme.style(role);
                    assert_ne!(style.bg, Some(FRAME_GROUND));
                    let plain = style.fg == Some(Color::Reset) && style.bg == Some(Color::Reset);
                    assert!(plain || palette != Palette::Mono, "{style:?}");
                    let own =
                        |c: Option<Color>| !matches!(c, Some(Color::Rgb(..) | Color::Indexed(_)));
                    assert_eq!(own(style.fg), plain || depth == Depth::Sixteen, "{style:?}");
                }
                assert_ne!(theme.style(LOSS), theme.style(GROWTH));
                assert_ne!(theme.style(FRAME[0]), theme.style(FRAME[1]));
            }
        }
    }

    #[test]
    fn depth_is_what_the_environment_says() {
        let of = |term: &str, colorterm: Option<&str>| {
            Depth::of(|name| match name {
                "TERM" => Some(term.to_owned()),
                "COLORTERM" => colorterm.map(str::to_owned),
                _ => None,
            })
        };
        assert_eq!(of("xterm-256color", Some("truecolor")), Depth::True);
        assert_eq!(of("xterm", Some("24bit")), Depth::True);
        assert_eq!(of("xterm-direct", None), Depth::True);
        assert_eq!(of("xterm-256color", None), Depth::Indexed);
        assert_eq!(of("xterm-256color", Some("")), Depth::Indexed);
        assert_eq!(of("linux", None), Depth::Sixteen);
    }
}

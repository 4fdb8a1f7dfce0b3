//! A film: screens one after the other, each for some seconds, with what was pressed.
//!
//! As SVG it plays in any page, by style sheets alone: all screens lie upon one another, and
//! one at a time is visible. Lines that several screens have are in it once. Where nothing
//! may move, the first screen stands. As an asciicast (version 2) it plays in a terminal.

use crate::picture::{self, HEIGHT, MARGIN, Rows};
use std::collections::HashMap;
use std::fmt::Write as _;

/// One screen.
struct Shot {
    /// Places of its lines among all lines.
    lines: Vec<usize>,
    key: String,
    caption: String,
    seconds: f64,
}

/// See the module.
#[derive(Default)]
pub struct Film {
    shots: Vec<Shot>,
    lines: Vec<String>,
    at: HashMap<String, usize>,
    columns: usize,
    last: Option<vt100::Screen>,
    cast: String,
    time: f64,
}

impl Film {
    /// A screen, after `key` was pressed, which does what `caption` says.
    pub fn shot(&mut self, screen: vt100::Screen, key: &str, caption: &str, seconds: f64) {
        let rows = rows(&screen);
        self.columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let lines = rows.iter().map(|cells| self.line(picture::row(cells))).collect();
        self.shots.push(Shot { lines, key: key.into(), caption: caption.into(), seconds });
        let bytes = if let Some(last) = &self.last {
            screen.state_diff(last)
        } else {
            let (height, width) = screen.size();
            let header = serde_json::json!({
                "version": 2, "width": width, "height": height, "title": "heaptop demo",
                "env": {"TERM": "xterm-256color"},
            });
            let _ = writeln!(self.cast, "{header}");
            screen.state_formatted()
        };
        let event = serde_json::json!([self.time, "o", String::from_utf8_lossy(&bytes)]);
        let _ = writeln!(self.cast, "{event}");
        self.time += seconds;
        self.last = Some(screen);
    }

    fn line(&mut self, line: String) -> usize {
        *self.at.entry(line).or_insert_with_key(|line| {
            self.lines.push(line.clone());
            self.lines.len() - 1
        })
    }

    /// For terminals.
    pub fn cast(&self) -> String {
        // The last screen is there as long as it should be.
        let end = serde_json::json!([self.time, "o", ""]);
        format!("{}{end}\n", self.cast)
    }

    /// For pages.
    pub fn svg(&self) -> String {
        let rows = self.shots.iter().map(|shot| shot.lines.len()).max().unwrap_or(0);
        let mut style = String::from(".k{font-weight:bold;fill:#1c2128}.h{visibility:hidden}");
        let mut time = 0.0;
        for (number, shot) in self.shots.iter().enumerate() {
            let [from, to] = [time, time + shot.seconds].map(|at| at / self.time * 100.0);
            time += shot.seconds;
            // Who is first begins visible, who is last ends so.
            let before = if number == 0 { "" } else { "0%{visibility:hidden}" };
            let after = if number + 1 == self.shots.len() {
                String::new()
            } else {
                format!("{to:.3}%{{visibility:hidden}}")
            };
            let _ = write!(
                style,
                "@keyframes f{number}{{{before}{from:.3}%{{visibility:visible}}{after}}}\
                 .f{number}{{animation:f{number} {:.1}s step-end infinite}}",
                self.time
            );
        }
        style += "@media(prefers-reduced-motion:reduce){g{animation:none!important}}";
        // The caption has two lines of its own.
        let size = picture::size(self.columns, rows + 2);
        let mut svg = picture::begin(size, &style);
        svg += "<defs>\n";
        for (at, line) in self.lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
            let _ = writeln!(svg, "<g id=\"l{at}\">{line}</g>");
        }
        svg += "</defs>\n";
        for (number, shot) in self.shots.iter().enumerate() {
            let hidden = if number == 0 { "" } else { " h" };
            let _ = write!(svg, "<g class=\"f{number}{hidden}\">");
            for (row, line) in shot.lines.iter().enumerate() {
                if !self.lines[*line].is_empty() {
                    let y = MARGIN + row as f64 * HEIGHT;
                    let _ = write!(svg, "<use href=\"#l{line}\" x=\"{MARGIN}\" y=\"{y}\"/>");
                }
            }
            caption(&mut svg, shot, MARGIN + rows as f64 * HEIGHT);
            svg += "</g>\n";
        }
        svg + "</svg>\n"
    }
}

/// A key as it looks on a keyboard, and what it does.
fn caption(svg: &mut String, shot: &Shot, y: f64) {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let mut x = MARGIN + 8.4;
    if !shot.key.is_empty() {
        let width = shot.key.chars().count() as f64 * 8.4 + 14.0;
        let _ = write!(
            svg,
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"22\" rx=\"4\" fill=\"#d8dee9\"/>\
             <text class=\"k\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            y + 9.0,
            x + 7.0,
            y + 25.0,
            escaped(&shot.key)
        );
        x += width + 12.0;
    }
    let _ =
        write!(svg, "<text x=\"{x:.1}\" y=\"{:.1}\">{}</text>", y + 25.0, escaped(&shot.caption));
}

/// A screen's cells.
pub fn rows(screen: &vt100::Screen) -> Rows {
    let (rows, columns) = screen.size();
    let row = |r| (0..columns).filter_map(|c| screen.cell(r, c).cloned()).collect();
    (0..rows).map(row).collect()
}

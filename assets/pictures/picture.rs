//! A terminal's screen as SVG: text as text, and what is drawn with block characters as
//! rectangles, since fonts leave gaps between them.

use std::fmt::Write as _;

/// A character's width and a line's height in the picture's units.
const WIDTH: f64 = 8.4;
pub const HEIGHT: f64 = 18.0;
pub const MARGIN: f64 = 12.0;

const INK: &str = "#d8dee9";
pub const PAPER: &str = "#1c2128";
/// The terminal's own sixteen colours.
const OWN: [&str; 16] = [
    "#3b4252", "#f47067", "#8ddb8c", "#f6d365", "#6cb6ff", "#dcbdfb", "#76e3ea", "#d8dee9",
    "#636e7b", "#ff938a", "#b4f1b4", "#ffe8a1", "#96d0ff", "#eedcff", "#b3f0ff", "#ffffff",
];

/// A screen's cells, row by row.
pub type Rows = Vec<Vec<vt100::Cell>>;

/// Width and height of a picture of so many columns and lines.
pub fn size(columns: usize, lines: usize) -> (f64, f64) {
    (columns as f64 * WIDTH + 2.0 * MARGIN, lines as f64 * HEIGHT + 2.0 * MARGIN)
}

/// The beginning of a picture: what it is on, and how its text looks.
pub fn begin((width, height): (f64, f64), style: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
         font-size=\"14\" fill=\"{INK}\">\n\
         <style>text{{white-space:pre}}path,rect{{shape-rendering:crispEdges}}.b{{font-weight:bold}}.d{{opacity:.6}}.i{{font-style:italic}}{style}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    )
}

/// A picture that stands still.
pub fn still(rows: &Rows) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut svg = begin(size(columns, rows.len()), "");
    for (at, cells) in rows.iter().enumerate() {
        let row = row(cells);
        if !row.is_empty() {
            let y = MARGIN + at as f64 * HEIGHT;
            let _ = writeln!(svg, "<g transform=\"translate({MARGIN} {y})\">{row}</g>");
        }
    }
    svg + "</svg>\n"
}

/// One line, whose left upper corner is the origin; empty where nothing stands.
pub fn row(cells: &[vt100::Cell]) -> String {
    let looks =
        |c: &vt100::Cell| (c.bold(), c.dim(), c.italic(), c.inverse(), c.fgcolor(), c.bgcolor());
    let (mut svg, mut column) = (String::new(), 0);
    for run in cells.chunk_by(|a, b| looks(a) == looks(b)) {
        draw(&mut svg, column, run);
        column += run.len();
    }
    svg
}

/// Cells that look alike, from a column on.
fn draw(svg: &mut String, column: usize, run: &[vt100::Cell]) {
    let Some(first) = run.first() else { return };
    let ink = colour(first.fgcolor()).unwrap_or_else(|| INK.into());
    let paper = colour(first.bgcolor());
    let (ink, paper) = if first.inverse() {
        (paper.unwrap_or_else(|| PAPER.into()), Some(ink))
    } else {
        (ink, paper)
    };
    let x = column as f64 * WIDTH;
    let faint = if first.dim() { " class=\"d\"" } else { "" };
    if let Some(paper) = paper {
        let width = run.len() as f64 * WIDTH;
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{paper}\"/>"
        );
    }
    let fill = if ink == INK { String::new() } else { format!(" fill=\"{ink}\"") };
    let mut text = String::new();
    // What is drawn, by how much of its ink it has: shades, and all else.
    let mut paths =
        [(0.3, String::new()), (0.5, String::new()), (0.75, String::new()), (1.0, String::new())];
    for (at, cell) in run.iter().enumerate() {
        let content = if cell.has_contents() { cell.contents() } else { " " };
        let mut characters = content.chars();
        let first = characters.next();
        match (first.map(blocks), characters.next()) {
            (Some(blocks), None) if !blocks.is_empty() => {
                let shade = first.and_then(|c| "░▒▓".chars().position(|shade| shade == c));
                let path = &mut paths[shade.unwrap_or(3)].1;
                let x = (column + at) as f64 * WIDTH;
                for [left, top, right, bottom] in blocks {
                    let (x, width) = (x + left * WIDTH, (right - left) * WIDTH);
                    let (y, height) = (top * HEIGHT, (bottom - top) * HEIGHT);
                    let _ = write!(path, "M{x:.1} {y:.2}h{width:.1}v{height:.2}h-{width:.1}z");
                }
                text.push(' ');
            }
            _ => text.push_str(content),
        }
    }
    for (shade, path) in paths.iter().filter(|(_, path)| !path.is_empty()) {
        let part = if *shade < 1.0 { format!(" fill-opacity=\"{shade}\"") } else { String::new() };
        let _ = write!(svg, "<path d=\"{path}\"{fill}{part}{faint}/>");
    }
    // What is drawn with characters keeps its columns: each stretch of text begins at its own.
    let mut from = column;
    for word in stretches(&text) {
        let columns = word.chars().count();
        if word.trim().is_empty() {
            from += columns;
            continue;
        }
        let (x, width) = (from as f64 * WIDTH, columns as f64 * WIDTH);
        let classes: String = [(first.bold(), "b"), (first.dim(), "d"), (first.italic(), "i")]
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, class)| *class)
            .collect::<Vec<_>>()
            .join(" ");
        let class = if classes.is_empty() { classes } else { format!(" class=\"{classes}\"") };
        let word = word.replace('&', "&amp;").replace('<', "&lt;");
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"13.5\" textLength=\"{width:.1}\"{fill}{class}>{word}</text>"
        );
        from += columns;
    }
}

/// Text cut where more than two spaces stand.
fn stretches(text: &str) -> Vec<&str> {
    let (mut cut, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("   ") {
        let spaces = rest[at..].bytes().take_while(|b| *b == b' ').count();
        cut.extend([&rest[..at], &rest[at..at + spaces]]);
        rest = &rest[at + spaces..];
    }
    cut.push(rest);
    cut
}

/// A block character as rectangles in a cell: left, top, right and bottom as parts of it.
/// Empty for every other character.
fn blocks(c: char) -> Vec<[f64; 4]> {
    let eighths = |of: u32| f64::from(of) / 8.0;
    match c {
        '▁'..='█' => vec![[0.0, 1.0 - eighths(c as u32 - '▁' as u32 + 1), 1.0, 1.0]],
        '▉'..='▏' => vec![[0.0, 0.0, eighths('▏' as u32 - c as u32 + 1), 1.0]],
        '▀' => vec![[0.0, 0.0, 1.0, 0.5]],
        '▐' => vec![[0.5, 0.0, 1.0, 1.0]],
        '▞' => vec![[0.5, 0.0, 1.0, 0.5], [0.0, 0.5, 0.5, 1.0]],
        '░' | '▒' | '▓' => vec![[0.0, 0.0, 1.0, 1.0]],
        '─' => vec![[0.0, 0.48, 1.0, 0.54]],
        '│' => vec![[0.46, 0.0, 0.54, 1.0]],
        _ => Vec::new(),
    }
}

/// A colour that is not the terminal's ground or ink.
fn colour(colour: vt100::Color) -> Option<String> {
    match colour {
        vt100::Color::Default => None,
        vt100::Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        vt100::Color::Idx(at) => Some(match at {
            0..16 => OWN[usize::from(at)].into(),
            16..232 => {
                let part = |of: u8| if of == 0 { 0 } else { 55 + 40 * of };
                let (red, green, blue) = ((at - 16) / 36, (at - 16) / 6 % 6, (at - 16) % 6);
                format!("#{:02x}{:02x}{:02x}", part(red), part(green), part(blue))
            }
            232.. => format!("#{0:02x}{0:02x}{0:02x}", 8 + 10 * (at - 232)),
        }),
    }
}

//! Makes the pictures of the README from the real program: runs the viewer on
//! the demo in a pseudo-terminal, presses keys, and writes what is on the screen
//! as SVG beside this file. `assets/make` builds what is needed and runs it.

use heaptop_tests::deadline::Deadline;
use heaptop_tests::target::socket_directory;
use heaptop_tests::terminal::Terminal;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

const ROWS: u16 = 24;
const COLUMNS: u16 = 132;
/// A character's width and a line's height in the picture's units.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 12.0;

const INK: &str = "#d8dee9";
const PAPER: &str = "#1c2128";
const LOSS: &str = "#f47067";

fn main() {
    let directory = socket_directory();
    let mut terminal = Terminal::start("heaptop", directory.path(), &["demo"], (ROWS, COLUMNS));
    // Half a minute, so that the leak has grown and the cache is full.
    let grown = Deadline::after(Duration::from_secs(60));
    terminal
        .by(grown, "a leak of 1 MiB", |screen| {
            let leak = screen.lines().find(|line| line.contains("forget_session"))?;
            leak.contains("MiB").then_some(())
        })
        .unwrap_or_else(|message| panic!("{message}"));
    save("callsites", &terminal);
    terminal.press("\r");
    terminal.wait_for("Enter focus");
    save("callers", &terminal);
    terminal.press("q");
    terminal.wait();
}

fn save(name: &str, terminal: &Terminal) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("assets").join(format!("{name}.svg"));
    std::fs::write(&path, picture(&terminal.cells())).expect("assets can be written to");
    println!("{}", path.display());
}

fn picture(rows: &[Vec<vt100::Cell>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let (width, height) =
        (columns as f64 * WIDTH + 2.0 * MARGIN, rows.len() as f64 * HEIGHT + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace\" \
         font-size=\"14\" xml:space=\"preserve\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n"
    );
    for (row, cells) in rows.iter().enumerate() {
        for (column, run) in runs(cells) {
            draw(&mut svg, row, column, run);
        }
    }
    svg + "</svg>\n"
}

/// Cells that look alike and stand side by side, with their first column.
fn runs(cells: &[vt100::Cell]) -> Vec<(usize, &[vt100::Cell])> {
    let looks = |c: &vt100::Cell| (c.bold(), c.dim(), c.inverse(), c.fgcolor());
    let mut column = 0;
    cells
        .chunk_by(|a, b| looks(a) == looks(b))
        .map(|run| {
            let at = column;
            column += run.len();
            (at, run)
        })
        .collect()
}

fn draw(svg: &mut String, row: usize, column: usize, run: &[vt100::Cell]) {
    let Some(first) = run.first() else { return };
    let text: String =
        run.iter().map(|c| if c.has_contents() { c.contents() } else { " " }).collect();
    if text.trim().is_empty() && !first.inverse() {
        return;
    }
    let (x, y) = (MARGIN + column as f64 * WIDTH, MARGIN + row as f64 * HEIGHT);
    let width = run.len() as f64 * WIDTH;
    // The viewer uses one colour: red is loss.
    let ink = if first.fgcolor() == vt100::Color::Default { INK } else { LOSS };
    let (ink, paper) = if first.inverse() { (PAPER, Some(ink)) } else { (ink, None) };
    if let Some(paper) = paper {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{paper}\"/>"
        );
    }
    let weight = if first.bold() { " font-weight=\"bold\"" } else { "" };
    let faint = if first.dim() { " opacity=\"0.6\"" } else { "" };
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let baseline = y + HEIGHT * 0.75;
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{baseline:.1}\" textLength=\"{width:.1}\" fill=\"{ink}\"{weight}{faint}>{text}</text>"
    );
}

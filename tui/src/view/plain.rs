//! `--ascii`: every character of the drawn screen becomes an ASCII one, in its
//! own place, so that no width changes.

use ratatui::buffer::{Buffer, Cell};

/// Replaces what is not ASCII.
pub fn ascii(buffer: &mut Buffer) {
    let columns = usize::from(buffer.area.width).max(1);
    for row in buffer.content.chunks_mut(columns) {
        for at in 0..row.len() {
            let Some(sign) = row[at].symbol().chars().next().filter(|sign| !sign.is_ascii()) else {
                continue;
            };
            row[at].set_char(substitute(sign));
            if matches!(sign, '≥' | '≤') {
                or_equal(row, at);
            }
        }
    }
}

/// `≥ 1` and `> 1` say different things: the sign at `at` becomes two, over a blank beside it,
/// so that nothing moves. One that has no blank on either side stays one sign.
fn or_equal(row: &mut [Cell], at: usize) {
    let blank = |row: &[Cell], at: usize| row.get(at).is_some_and(|cell| cell.symbol() == " ");
    if blank(row, at + 1) {
        row[at + 1].set_char('=');
    } else if let Some(before) = at.checked_sub(1).filter(|before| blank(row, *before)) {
        let sign = row[at].symbol().to_owned();
        row[before].set_symbol(&sign);
        row[at].set_char('=');
    }
}

const fn substitute(c: char) -> char {
    match c {
        '±' => '~',
        '≥' | '▸' | '▶' | '›' | '→' => '>',
        '≤' | '‹' | '←' => '<',
        '▼' => 'v',
        '▲' => '^',
        'µ' => 'u',
        '×' | '▞' => 'x',
        '▓' => '%',
        '░' => ':',
        '╱' => '/',
        '└' => '`',
        '○' => 'o',
        '│' | '┆' | '├' | '┤' | '▏' | '▎' | '▍' => '|',
        '“' | '”' => '"',
        '▁' => '_',
        '▂' | '…' => '.',
        '▃' => ',',
        '▄' | '–' | '─' | '·' => '-',
        '▅' | '▒' | '▌' | '▋' | '▊' => '=',
        '▆' | '┼' => '+',
        '▇' | '◆' => '*',
        '█' | '▉' => '#',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// All signs that screens, their sentences and figures are made of.
    fn signs(directory: &Path, found: &mut Vec<(String, char)>) {
        for entry in directory.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.contains("test") || name == "snapshots" {
                // What they are made of is not shown.
            } else if path.is_dir() {
                signs(&path, found);
            } else {
                let source = std::fs::read_to_string(&path).unwrap();
                let lines = source.lines().take_while(|line| *line != "#[cfg(test)]");
                let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
                let signs = lines.flat_map(str::chars).filter(|c| !c.is_ascii());
                found.extend(signs.map(|sign| (name.clone(), sign)));
            }
        }
    }

    #[test]
    fn a_bound_says_whether_it_is_reached() {
        let plain = |text: &str| {
            let mut buffer = Buffer::with_lines([text]);
            ascii(&mut buffer);
            buffer.content.iter().map(Cell::symbol).collect::<String>()
        };
        assert_eq!(plain("≥ 1.2 M  100 % ≥ 97 ≤ 4 KiB"), ">=1.2 M  100 % >=97 <=4 KiB");
        assert_eq!(plain("> 1 min > 4"), "> 1 min > 4");
        assert_eq!(plain("at ≥1"), "at>=1", "a blank before it will do");
        assert_eq!(plain("≥1≤"), ">1<", "and without any it is one sign");
        assert_eq!(plain("▸≥"), ">>");
        let mut rows = Buffer::with_lines(["a≥", " b"]);
        ascii(&mut rows);
        assert_eq!(rows, Buffer::with_lines(["a>", " b"]), "the next row is another");
    }

    #[test]
    fn every_sign_of_the_screens_has_one_in_its_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found = Vec::new();
        for directory in ["app", "view", "query", "session"] {
            signs(&root.join(directory), &mut found);
        }
        assert!(found.iter().any(|(_, sign)| *sign == '±'));
        for (name, sign) in found {
            // What stands for a character that cannot be shown is one that cannot.
            assert!(substitute(sign) != '?' || sign == '\u{fffd}', "{sign} of {name}");
        }
    }
}

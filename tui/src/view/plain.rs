//! `--ascii`: every character of the drawn screen becomes an ASCII one, in its
//! own place, so that no width changes.

use ratatui::buffer::Buffer;

/// Replaces what is not ASCII.
pub fn ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let plain = cell.symbol().chars().next().map_or(' ', substitute);
            cell.set_char(plain);
        }
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

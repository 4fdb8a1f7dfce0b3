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
        '≥' | '▸' | '▶' | '›' => '>',
        '≤' | '‹' => '<',
        '▼' => 'v',
        '▲' => '^',
        'µ' => 'u',
        '×' | '▞' => 'x',
        '▓' => '%',
        '░' => ':',
        '╱' => '/',
        '└' => '`',
        '○' => 'o',
        '│' | '┆' | '├' | '┤' => '|',
        '“' | '”' => '"',
        '▁' => '_',
        '▂' | '…' => '.',
        '▃' => ',',
        '▄' | '–' | '─' | '·' => '-',
        '▅' | '▒' => '=',
        '▆' | '┼' => '+',
        '▇' | '◆' => '*',
        '█' => '#',
        _ => '?',
    }
}

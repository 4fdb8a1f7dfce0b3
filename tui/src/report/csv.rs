//! A report for spreadsheets: RFC 4180, a header line with units in it.
//!
//! Of a figure there are four columns: `in_use_bytes`, `in_use_bytes_low`,
//! `in_use_bytes_high`, `in_use_bytes_samples`; empty where that is not known. Text is
//! always quoted. The sum is in no row: it can be told from none. Nor has damage of a file a
//! place: the program says it on standard error, and by its exit code.

use super::json::ends;
use super::{Cell, Report, View};
use std::io::{self, Write};

/// Writes it.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut header = Vec::new();
    let tree = report.view == View::Callers;
    for (at, column) in report.columns.iter().enumerate() {
        if at == 0 && tree {
            header.push("depth".to_owned());
        }
        header.push(column.id.to_owned());
        if is_figure(report, at) {
            header.extend(["low", "high", "samples"].map(|end| format!("{}_{end}", column.id)));
        }
    }
    write!(out, "{}\r\n", header.join(","))?;
    for row in &report.rows {
        let mut fields = Vec::new();
        for (at, cell) in row.iter().enumerate() {
            match cell {
                Cell::Function(label, depth) => {
                    if tree {
                        fields.push(depth.to_string());
                    }
                    fields.push(quoted(&label.function));
                }
                Cell::Text(text) => fields.push(quoted(text)),
                Cell::Part(share) => fields.push(number(Some(*share))),
                Cell::Number(whole) | Cell::Time(whole) => {
                    fields.push(whole.map_or_else(String::new, |n| n.to_string()));
                }
                Cell::Bytes(bytes) => fields.push(bytes.to_string()),
                Cell::Mark(is, _) => fields.push(is.to_string()),
                figure => {
                    let ends = ends(figure);
                    fields.push(number(ends.and_then(|ends| ends.value)));
                    if is_figure(report, at) {
                        fields.push(number(ends.and_then(|ends| ends.low)));
                        fields.push(number(ends.and_then(|ends| ends.high)));
                        let samples = ends.and_then(|ends| ends.samples);
                        fields.push(samples.map_or_else(String::new, |n| n.to_string()));
                    }
                }
            }
        }
        write!(out, "{}\r\n", fields.join(","))?;
    }
    Ok(())
}

/// Columns whose ids end in a unit, and in which no estimates stand.
const WHOLE: [&str; 4] = ["share_of_root", "from_ns", "to_ns", "clock_bytes"];

/// Whether figures stand in a column.
fn is_figure(report: &Report, at: usize) -> bool {
    // Columns have cells of one kind: ids that end in a unit.
    let id = report.columns[at].id;
    !WHOLE.contains(&id)
        && ["_bytes", "_objects", "_per_second", "_share", "_ns"].iter().any(|u| id.ends_with(u))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn number(value: Option<f64>) -> String {
    value.filter(|v| v.is_finite()).map_or_else(String::new, |v| v.to_string())
}

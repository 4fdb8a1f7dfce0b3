//! Stacks to a flamegraph.
//!
//! Inferno draws; four things are done here because it gets them wrong.
//! **Names**: `;` would split a frame, control characters make invalid XML, a
//! number at the end would be read as a count. **Order**: it sorts whole lines,
//! in which `a b;…` comes between `a` and `a;…` and tears frame `a` in two; so
//! stacks are sorted here, frame by frame, and drawn in the order given, which
//! is what its flame-chart mode does. **Counts**: it counts in whole numbers and
//! wraps on overflow; so weights are rounded at their running sums, which keeps
//! every frame within one unit of the truth, and totals are bounded. **Cuts**: its script
//! cuts a text that is too long in the midst of a character; half of one is taken away.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use inferno::flamegraph::{self, Direction, Options, TextTruncateDirection};

use super::prune;
use crate::query::Label;
use crate::view::text;

/// Totals up to here are exact in `f64`, and far from wrapping in `u64`.
const LARGEST_TOTAL: f64 = 9e15;

/// Where inferno's script cuts texts.
const CUTS: [&str; 2] = ["txt.substring(0, substringLength)", "txt.substring(0, x)"];

/// Why there is no picture.
#[derive(Debug)]
pub enum ExportError {
    /// There is nothing in it.
    Empty,
    /// More than can be counted.
    TooLarge,
    /// The drawing failed.
    Drawing(std::io::Error),
}

impl std::fmt::Display for ExportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => f.write_str(
                "there is nothing to export: no sample in this metric, focus and filter",
            ),
            Self::TooLarge => f.write_str(
                "the flamegraph's total is too large to be counted: choose a narrower focus",
            ),
            Self::Drawing(why) => write!(f, "the flamegraph could not be drawn: {why}"),
        }
    }
}

impl std::error::Error for ExportError {}

/// How a flamegraph is drawn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shape<'a> {
    /// The root is on top.
    pub icicle: bool,
    /// What callstacks weighed before: frames are coloured by the difference.
    pub before: Option<&'a [(Vec<Label>, f64)]>,
}

/// A flamegraph of `stacks` (root first, with their weights in `unit`).
pub fn svg(
    stacks: &[(Vec<Label>, f64)],
    title: &str,
    subtitle: &str,
    unit: &str,
    shape: Shape<'_>,
) -> Result<Vec<u8>, ExportError> {
    let lines = match shape.before {
        None => folded(stacks, prune::MOST_FRAMES)?,
        Some(before) => compared(stacks, before)?,
    };
    let mut options = Options::default();
    options.title = xml_text(title);
    options.subtitle = Some(xml_text(subtitle));
    options.count_name = unit.into();
    options.name_type = "Function:".into();
    options.hash = true;
    options.deterministic = true;
    options.flame_chart = true;
    // What a name begins with says more than the end of the place behind it.
    options.text_truncate_direction = TextTruncateDirection::Right;
    if shape.icicle {
        options.direction = Direction::Inverted;
    }
    // Nothing is left out in silence: what is too narrow was pruned into a frame.
    options.min_width = 0.0;
    let mut out = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut out)
        .map_err(ExportError::Drawing)?;
    Ok(whole_characters(out))
}

/// What the picture's script has cut ends with a whole character.
fn whole_characters(svg: Vec<u8>) -> Vec<u8> {
    match String::from_utf8(svg) {
        Ok(mut text) => {
            for cut in CUTS {
                text = text.replace(cut, &format!("{cut}.replace(/[\\uD800-\\uDBFF]$/, \"\")"));
            }
            text.into_bytes()
        }
        Err(error) => error.into_bytes(),
    }
}

/// As [`folded`], with the weight before in front of the one now. Callstacks that weigh
/// nothing any more have no width, and are not in the picture.
fn compared(
    stacks: &[(Vec<Label>, f64)],
    before: &[(Vec<Label>, f64)],
) -> Result<Vec<String>, ExportError> {
    // The same checks, and what is too narrow put together as of now.
    folded(stacks, prune::MOST_FRAMES)?;
    let names = |labels: &[Label]| labels.iter().map(frame_name).collect::<Vec<_>>();
    let was: HashMap<Vec<String>, f64> =
        before.iter().map(|(labels, weight)| (names(labels), *weight)).collect();
    let mut named = named(stacks);
    let before: Vec<f64> =
        named.iter().map(|(path, _)| was.get(path).copied().unwrap_or(0.0)).collect();
    prune::prune(&mut named, prune::MOST_FRAMES, prune::SMALLEST_SHARE);
    let mut sums: BTreeMap<Reverse<Vec<String>>, (f64, f64)> = BTreeMap::new();
    for ((path, weight), before) in named.into_iter().zip(before) {
        let sum = sums.entry(Reverse(path)).or_default();
        *sum = (sum.0 + before, sum.1 + weight);
    }
    let mut lines = Vec::with_capacity(sums.len());
    let mut now = 0.0f64;
    for (Reverse(path), (before, weight)) in sums {
        let from = now.round();
        now += weight;
        let count = (now.round() - from) as u64;
        if count > 0 {
            lines.push(format!("{} {} {count}", path.join(";"), before.round().max(0.0) as u64));
        }
    }
    Ok(lines)
}

/// Names and weights of the callstacks that weigh something.
/// Those that have a width.
fn wide(stacks: &[(Vec<Label>, f64)]) -> impl Iterator<Item = &(Vec<Label>, f64)> {
    let wide = |weight: f64| weight.is_finite() && weight > 0.0;
    stacks.iter().filter(move |(labels, weight)| !labels.is_empty() && wide(*weight))
}

/// Whether there is a picture of them: none of less than half a byte.
pub fn check(stacks: &[(Vec<Label>, f64)]) -> Result<(), ExportError> {
    let total: f64 = wide(stacks).map(|(_, weight)| weight).sum();
    if total < 0.5 {
        return Err(ExportError::Empty);
    }
    if total > LARGEST_TOTAL {
        return Err(ExportError::TooLarge);
    }
    Ok(())
}

fn named(stacks: &[(Vec<Label>, f64)]) -> Vec<(Vec<String>, f64)> {
    wide(stacks)
        .map(|(labels, weight)| (labels.iter().map(frame_name).collect(), *weight))
        .collect()
}

/// One line a stack, in the order in which flame-chart mode wants them.
pub fn folded(
    stacks: &[(Vec<Label>, f64)],
    most_frames: usize,
) -> Result<Vec<String>, ExportError> {
    check(stacks)?;
    let mut named = named(stacks);
    prune::prune(&mut named, most_frames, prune::SMALLEST_SHARE);
    named.sort_by(|a, b| Reverse(&a.0).cmp(&Reverse(&b.0)));
    let mut lines = Vec::with_capacity(named.len());
    let mut sum = 0.0f64;
    for (names, weight) in &named {
        let before = sum.round();
        sum += weight;
        let count = (sum.round() - before) as u64;
        if count > 0 {
            lines.push(format!("{} {count}", names.join(";")));
        }
    }
    Ok(lines)
}

/// A frame's text: the function, and where it is.
fn frame_name(label: &Label) -> String {
    let mut name = text::name(&label.function).replace(';', ",");
    if !label.location.is_empty() {
        name = format!("{name} ({})", xml_text(&label.location).replace(';', ","));
    }
    // A last word of digits would be read as a count, `_[k]` as an annotation,
    // `# ` as a comment.
    if let Some((head, tail)) = name.rsplit_once(' ')
        && tail.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        name = format!("{head}_{tail}");
    }
    if name.ends_with("_[k]")
        || name.ends_with("_[w]")
        || name.ends_with("_[i]")
        || name.ends_with("_[j]")
    {
        name.push('\u{B7}');
    }
    if name.starts_with('#') { format!("\u{B7}{name}") } else { name.trim().into() }
}

/// `text` without what XML cannot hold: all of that is hostile to a terminal as well.
fn xml_text(text: &str) -> String {
    text::clean(text).into_owned()
}

#[cfg(test)]
#[path = "svg_tests.rs"]
mod tests;

//! Curves made of block characters, one value a column, from 0 to the largest.

/// Heights of a cell in eighths; the first is an empty cell.
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// `values` as `height` lines of at most `columns`, top first. Fewer values than
/// columns stretch, more are taken together by their maximum. A value above 0
/// is never an empty column; a missing one (not finite) always is.
#[must_use]
pub fn lines(values: &[f64], columns: usize, height: usize) -> Vec<String> {
    if height == 0 {
        return Vec::new();
    }
    let points = fit(values, columns);
    let largest = points.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let steps = height * 8;
    let heights: Vec<usize> = points
        .iter()
        .map(|&v| match v {
            v if !v.is_finite() => 0,
            // On the floor: known to be nothing, or nothing to compare with.
            v if v <= 0.0 || largest <= 0.0 => 1,
            v => ((v / largest * steps as f64).round() as usize).clamp(1, steps),
        })
        .collect();
    (0..height)
        .rev()
        .map(|line| heights.iter().map(|&h| EIGHTHS[h.saturating_sub(line * 8).min(8)]).collect())
        .collect()
}

/// `values` as one line.
#[must_use]
pub fn line(values: &[f64], columns: usize) -> String {
    lines(values, columns, 1).pop().unwrap_or_default()
}

/// Exactly `columns` values, or none.
fn fit(values: &[f64], columns: usize) -> Vec<f64> {
    let n = values.len();
    if n == 0 {
        return Vec::new();
    }
    (0..columns)
        .map(|i| {
            let from = i * n / columns;
            let to = ((i + 1) * n / columns).max(from + 1);
            values[from..to].iter().copied().fold(f64::NAN, f64::max)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_steps_to_the_largest() {
        assert_eq!(line(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 8), "▁▂▃▄▅▆▇█");
        assert_eq!(line(&[0.0, 0.0], 2), "▁▁");
        assert_eq!(line(&[], 8), "");
        assert_eq!(line(&[f64::NAN, 1.0], 2), " █");
    }

    #[test]
    fn curves_stretch_and_keep_their_maximum() {
        assert_eq!(line(&[1.0, 8.0], 6), "▁▁▁███");
        assert_eq!(line(&[1.0, 8.0, 1.0, 1.0], 2), "█▁");
    }

    #[test]
    fn lines_stand_on_each_other() {
        assert_eq!(lines(&[1.0, 2.0, 4.0], 3, 2), ["  █", "▄██"]);
    }
}

//! The proof as text.

use std::io::{self, Write};

use super::compare::{Outcome, Quantity, Verdict};
use super::truth::Truth;
use crate::view::format::UNKNOWN;
use crate::view::text;

/// Prints the first run in full, of the others what they missed, and the sum.
pub(super) fn print(runs: &[(u32, Vec<Outcome>)], out: &mut impl Write) -> io::Result<()> {
    if let Some((_, first)) = runs.first() {
        rows(first, out)?;
        writeln!(out)?;
    }
    let (mut hits, mut claims) = (0, 0);
    for (number, (seed, outcomes)) in (1..).zip(runs) {
        let of = |verdict| outcomes.iter().filter(|o| o.verdict() == verdict).count();
        let (hit, missed) = (of(Verdict::Hit), of(Verdict::Miss));
        hits += hit;
        claims += hit + missed;
        if runs.len() > 1 {
            writeln!(out, "run {number}, seed {seed}: {hit} of {} hold", hit + missed)?;
            for o in outcomes.iter().filter(|o| o.verdict() == Verdict::Miss && number > 1) {
                writeln!(
                    out,
                    "    MISS {} {}: {} is not in {} to {}",
                    o.callsite,
                    o.quantity.title(),
                    number_or_unknown(o.truth, o.quantity),
                    number_or_unknown(o.low, o.quantity),
                    number_or_unknown(o.high, o.quantity),
                )?;
            }
        }
    }
    let percent = 100.0 * f64::from(hits as u32) / f64::from((claims as u32).max(1));
    writeln!(
        out,
        "{hits} of {claims} intervals hold the truth: {percent:.1} %. 95 % are expected to: 1 in 20 misses."
    )?;
    writeln!(out, "Figures of one callsite share their samples, so their misses come together.")
}

/// Prints how the exact run did.
pub(super) fn print_exact(
    truths: &[Truth],
    wrong: &[Outcome],
    out: &mut impl Write,
) -> io::Result<()> {
    let counters = truths.len() * 4;
    writeln!(
        out,
        "Exact run, R = 1: {} of {counters} figures equal the program's own counters.",
        counters.saturating_sub(wrong.len())
    )?;
    for o in wrong {
        writeln!(
            out,
            "    WRONG {} {}: {}, and the program counted {}",
            o.callsite,
            o.quantity.title(),
            number_or_unknown(o.value.or(o.low), o.quantity),
            number_or_unknown(o.truth, o.quantity),
        )?;
    }
    Ok(())
}

fn rows(outcomes: &[Outcome], out: &mut impl Write) -> io::Result<()> {
    let heading = ["callsite", "quantity", "truth", "estimate", "95 % from", "to", ""];
    let rows = outcomes.iter().map(|o| {
        let [truth, value, low, high] =
            [o.truth, o.value, o.low, o.high].map(|v| number_or_unknown(v, o.quantity));
        let verdict = match o.verdict() {
            Verdict::Hit => "hit",
            Verdict::Miss => "MISS",
            Verdict::Nothing => UNKNOWN,
        };
        let quantity = o.quantity.title().into();
        [o.callsite.clone(), quantity, truth, value, low, high, verdict.into()]
    });
    let rows: Vec<[String; 7]> = std::iter::once(heading.map(String::from)).chain(rows).collect();
    let widths: [usize; 7] = std::array::from_fn(|column| {
        rows.iter().map(|row| text::width(&row[column])).max().unwrap_or(0)
    });
    for row in &rows {
        let cells: Vec<String> = (0..)
            .zip(row)
            .map(|(column, cell)| match column {
                0 | 1 | 6 => text::left(cell, widths[column]),
                _ => text::right(cell, widths[column]),
            })
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// Whole numbers in groups of three; shares in percent.
fn number_or_unknown(number: Option<i64>, quantity: Quantity) -> String {
    let Some(number) = number else { return UNKNOWN.into() };
    let number = number.unsigned_abs();
    match quantity {
        Quantity::Promoted => format!("{}.{:03} %", number / 1000, number % 1000),
        _ => crate::view::format::grouped(number as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare::tests::outcome;
    use super::*;
    use crate::session::figures::Estimate;

    #[test]
    fn the_sum_is_over_all_runs_and_every_miss_is_told() {
        let of = |low, high| {
            outcome(Some(5000.0), Estimate::Interval { value: 4000.0, low, high, samples: 9 })
        };
        let runs = [
            (7, vec![of(1.0, 9000.0), outcome(Some(1.0), Estimate::Unknown)]),
            (8, vec![of(1.0, 4000.4)]),
        ];
        let mut out = Vec::new();
        print(&runs, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(
            out.contains("f         in use    5,000     4,000          1  9,000  hit"),
            "{out}"
        );
        assert!(out.contains("f         in use        1         –          –      –  –"), "{out}");
        assert!(out.contains("run 1, seed 7: 1 of 1 hold"), "{out}");
        assert!(out.contains("MISS f in use: 5,000 is not in 1 to 4,000"), "{out}");
        assert!(out.contains("1 of 2 intervals hold the truth: 50.0 %."), "{out}");
    }

    #[test]
    fn shares_are_printed_in_percent() {
        assert_eq!(number_or_unknown(Some(2_037), Quantity::Promoted), "2.037 %");
        assert_eq!(number_or_unknown(Some(100_000), Quantity::Promoted), "100.000 %");
        assert_eq!(number_or_unknown(None, Quantity::Promoted), "–");
    }
}

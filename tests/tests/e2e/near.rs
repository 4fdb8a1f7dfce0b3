//! Estimates against truths, such that a right estimate never fails by chance.
//!
//! A Horvitz–Thompson sum over hundreds of samples is normal, and its variance
//! is estimated with it: six standard errors are left once in 10⁸ figures.

use heaptop_protocol::totals::{Moments, Total};

const ERRORS: f64 = 6.0;
/// Samples behind a figure that the normal law needs.
const ENOUGH: u64 = 100;

fn check(what: &str, got: &Moments, n: u64, (low, high): (f64, f64)) {
    assert!(n >= ENOUGH, "{what}: {n} samples are too few to judge");
    let room = ERRORS * got.variance.sqrt();
    assert!(
        got.sum + room >= low && got.sum - room <= high,
        "{what}: {} ± {room} over {n} samples, the truth is {low} to {high}",
        got.sum
    );
}

/// Bytes and objects of a set, against a truth that moved from `low` to `high`
/// while it was looked at.
pub fn assert_near(what: &str, got: &Total, low: (u64, u64), high: (u64, u64)) {
    check(&format!("objects {what}"), &got.objects, got.n, (low.0 as f64, high.0 as f64));
    check(&format!("bytes {what}"), &got.bytes, got.n, (low.1 as f64, high.1 as f64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptop_protocol::estimate::Interval;

    fn estimate(blocks: u64) -> Total {
        let (r, mut total) = (Interval::new(16 << 10).unwrap(), Total::default());
        (0..blocks).for_each(|_| total.add(&r.weight(500)));
        total
    }

    #[test]
    fn the_truth_is_near_itself() {
        let total = estimate(400);
        let truth = (total.objects.sum as u64, total.bytes.sum as u64);
        assert_near("here", &total, truth, truth);
    }

    #[test]
    #[should_panic(expected = "the truth is")]
    fn twice_the_truth_is_not() {
        let total = estimate(400);
        let truth = (total.objects.sum as u64 / 2, total.bytes.sum as u64 / 2);
        assert_near("twice", &total, truth, truth);
    }

    #[test]
    #[should_panic(expected = "too few")]
    fn a_handful_of_samples_proves_nothing() {
        assert_near("few", &estimate(5), (1, 1), (1, 1));
    }
}

use super::*;

const ONE: Mass = Mass { w: 1.0, w2: 1.0 };

fn second(n: u64) -> u64 {
    n * 1_000_000_000
}

#[test]
fn buckets_are_in_order_and_hold_their_ages() {
    let mut last = 0;
    for age in (0..64).flat_map(|e| [0, 1, 3].map(|x| (1u64 << e) + x * ((1 << e) / 4))) {
        let b = usize::from(bucket(age));
        assert!(b >= last && b < BUCKETS, "{age}");
        assert!(begins(b) <= age as f64 && age.max(8) as f64 <= begins(b + 1), "{age}");
        last = b;
    }
    assert_eq!(usize::from(bucket(u64::MAX)), BUCKETS - 1);
}

#[test]
fn nobody_dead_is_beyond_the_oldest() {
    let mut table = Table::default();
    assert_eq!(table.median(), Lifetime::Unknown);
    for n in 1..=5 {
        table.censored(bucket(second(60)), ONE);
        table.n_blocks = n;
        assert_eq!(table.median(), Lifetime::Unknown, "five of five can be chance");
    }
    for _ in 0..12 {
        table.censored(bucket(second(60)), ONE);
    }
    table.n_blocks = 17;
    let Lifetime::Beyond { ns, samples: 17 } = table.median() else { panic!("no deaths") };
    assert!((ns / 60e9 - 1.0).abs() < 0.13, "{ns}");
}

/// Of twenty, eight die at 1 s: over half live, but a half is not ruled out beyond it.
#[test]
fn beyond_is_as_far_as_is_sure() {
    let mut table = Table::default();
    for i in 0..20 {
        if i < 8 {
            table.died(bucket(second(1)), ONE);
        } else {
            table.censored(bucket(second(60)), ONE);
        }
    }
    table.n_blocks = 20;
    let Lifetime::Beyond { ns, .. } = table.median() else { panic!("12 of 20 live") };
    assert!(ns > 0.8e9 && ns < 1.3e9, "{ns}");
}

/// Those who were old already when first seen say nothing of young ages.
#[test]
fn late_entries_are_at_risk_from_their_entry_on() {
    let mut table = Table::default();
    for _ in 0..40 {
        // Born unseen; first seen at 100 s, alive at 110 s.
        table.entered(bucket(second(100)), ONE);
        table.censored(bucket(second(110)), ONE);
        // Born seen, dead after a second.
        table.died(bucket(second(1)), ONE);
        // Born seen, alive at 10 s.
        table.censored(bucket(second(10)), Mass { w: 0.5, w2: 0.25 });
    }
    let Lifetime::Median { ns, .. } = table.median() else { panic!("2 of 3 die at 1 s") };
    assert!((ns / 1e9 - 1.0).abs() < 0.13, "{ns}");
}

#[test]
fn clearing_leaves_nothing() {
    let mut table = Table::default();
    table.died(bucket(5), ONE);
    table.died(bucket(second(1000)), ONE);
    table.n_deaths = 2;
    table.clear();
    assert_eq!(table.median(), Lifetime::Unknown);
    table.died(bucket(second(1)), ONE);
    table.died(bucket(second(1)), ONE);
    let mut other = Table::default();
    other.merge(&table);
    assert_eq!(other.median(), table.median());
}

#[test]
fn limits_are_those_of_the_binomial_test() {
    for n in [5.4, 6.0, 17.0, 333.3, 9000.0] {
        assert!((LIMITS.at(n) - limit(n)).abs() < 1e-3, "{n}");
    }
    assert!((LIMITS.at(MANY) - limit(MANY)).abs() < 1e-3);
    // 6 of 6 is 1.6 %, 5 of 6 is 11 %.
    assert!(LIMITS.at(6.0) > 5.0 / 6.0 && LIMITS.at(6.0) <= 1.0);
}

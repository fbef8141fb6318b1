//! How long operations took, in little room however many there are.

use std::time::Duration;

/// Buckets per doubling: one is at most 1/128 of its value wide.
const PARTS: u64 = 128;
const BITS: u32 = PARTS.trailing_zeros();
const BUCKETS: usize = ((64 - BITS + 1) as usize) * PARTS as usize;

/// A histogram of nanoseconds. Below 128 ns its buckets are exact; above, all are equally wide in
/// proportion.
pub struct Latencies {
    counts: Box<[u64]>,
    count: u64,
    most: u64,
}

/// Their summary, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percentiles {
    /// Half of them took no longer.
    pub p50: f64,
    /// 90 % took no longer.
    pub p90: f64,
    /// 99 % took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Latencies {
    /// None yet.
    pub fn new() -> Latencies {
        Latencies { counts: vec![0; BUCKETS].into(), count: 0, most: 0 }
    }

    /// One more.
    pub fn add(&mut self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += 1;
        self.count += 1;
        self.most = self.most.max(nanoseconds);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// None if there were no operations.
    pub fn percentiles(&self) -> Option<Percentiles> {
        (self.count > 0).then(|| Percentiles {
            p50: self.percentile(50),
            p90: self.percentile(90),
            p99: self.percentile(99),
            max: self.most as f64 * 1e-9,
        })
    }

    /// The time in seconds that so many percent do not exceed, within 0.4 %.
    fn percentile(&self, percent: u64) -> f64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1) as u64;
        let mut passed = 0;
        let at = self.counts.iter().position(|count| {
            passed += count;
            passed >= rank
        });
        // The rank is not above the count, so one is found.
        middle(at.unwrap_or(BUCKETS - 1)).min(self.most) as f64 * 1e-9
    }
}

fn bucket(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let doubling = u64::from(value.ilog2() - BITS);
    let part = (value >> doubling) - PARTS;
    ((doubling + 1) * PARTS + part) as usize
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let doubling = bucket / PARTS - 1;
    let width = 1 << doubling;
    (PARTS + bucket % PARTS) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_narrow_and_cover_all_values() {
        let values =
            (0..64).flat_map(|shift| [1_u64 << shift, (1 << shift) + 1, u64::MAX >> shift]);
        for value in values.chain([0, 127, 128, 129, 255, 256, 999_999_937]) {
            let bucket = bucket(value);
            assert!(bucket < BUCKETS);
            let error = middle(bucket).abs_diff(value);
            assert!(error <= value / 256 + 1, "{value} is taken for {}", middle(bucket));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.percentiles(), None);
        for microseconds in (1..=1000).rev() {
            latencies.add(Duration::from_micros(microseconds));
        }
        let measured = latencies.percentiles().unwrap();
        for (measured, exact) in
            [(measured.p50, 500e-6), (measured.p90, 900e-6), (measured.p99, 990e-6)]
        {
            assert!((measured / exact - 1.0).abs() < 0.004, "{measured} beside {exact}");
        }
        assert_eq!(measured.max, 1e-3);
        assert_eq!(latencies.count(), 1000);
    }

    #[test]
    fn no_percentile_is_above_the_longest() {
        let mut latencies = Latencies::new();
        latencies.add(Duration::from_nanos(1_000_000));
        let measured = latencies.percentiles().unwrap();
        assert!(measured.p50 <= measured.max && measured.p99 <= measured.max);
    }
}

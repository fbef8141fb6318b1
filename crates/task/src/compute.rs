//! The tasks that compute, and that move memory.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::options::OptionParser;
use crate::phase::{Measure, Phase};

/// How much is to be done.
#[derive(Debug, Clone, Copy)]
enum Amount {
    Times(u64),
    For(Duration),
}

impl Amount {
    /// Whether that is to continue which has done so much since then.
    fn goes_on(self, done: u64, began: Instant) -> bool {
        match self {
            Amount::Times(times) => done < times,
            Amount::For(time) => began.elapsed() < time,
        }
    }
}

/// Where neither option says it.
const USUAL: Amount = Amount::For(Duration::from_secs(1));

/// Operations between two looks at the clock: some 30 µs.
const BATCH: u64 = 1 << 14;

/// Compute.
pub fn cpu(mut words: OptionParser) -> Result<Vec<Phase>, Failure> {
    let mut amount = None;
    while let Some(name) = words.next()? {
        let given = match name.as_str() {
            "operations" => Amount::Times(words.whole(&name, 1, 1 << 53)?),
            "seconds" => Amount::For(words.seconds(&name)?),
            _ => return Err(OptionParser::unknown(&name)),
        };
        once(&mut amount, given, "--operations or --seconds")?;
    }
    let amount = amount.unwrap_or(USUAL);
    let began = Instant::now();
    let mut done = 0;
    let mut value = black_box(1_u64);
    while amount.goes_on(done, began) {
        let batch = match amount {
            Amount::Times(times) => BATCH.min(times - done),
            Amount::For(_) => BATCH,
        };
        value = computed(value, batch);
        done += batch;
    }
    let took = began.elapsed();
    black_box(value);
    Ok(vec![Phase::counted("cpu", took, done)])
}

/// So many dependent operations.
fn computed(mut value: u64, operations: u64) -> u64 {
    for _ in 0..operations {
        value = (value ^ (value >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(1);
    }
    value
}

/// Move memory.
pub fn memory(mut words: OptionParser) -> Result<Vec<Phase>, Failure> {
    let mut amount = None;
    let mut size: u64 = 256 << 20;
    while let Some(name) = words.next()? {
        let given = match name.as_str() {
            "size" => {
                size = words.size(&name)?;
                continue;
            }
            "passes" => Amount::Times(words.whole(&name, 1, 1 << 53)?),
            "seconds" => Amount::For(words.seconds(&name)?),
            _ => return Err(OptionParser::unknown(&name)),
        };
        once(&mut amount, given, "--passes or --seconds")?;
    }
    let amount = amount.unwrap_or(USUAL);
    let elements = usize::try_from(size / 24).unwrap_or(usize::MAX);
    if elements == 0 {
        return Err(Failure::Usage(
            "--size: is not enough for an element of each array, 24 bytes".into(),
        ));
    }
    let (mut a, b, c) = (array(elements, 0.0)?, array(elements, 1.0)?, array(elements, 2.0)?);
    let mut measure = Measure::begin("memory");
    let began = Instant::now();
    let mut passes = 0;
    while amount.goes_on(passes, began) {
        measure.operation(24 * elements as u64, || triad(&mut a, &b, &c));
        black_box(&mut a);
        passes += 1;
    }
    Ok(vec![measure.end()])
}

fn triad(a: &mut [f64], b: &[f64], c: &[f64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + 3.0 * c;
    }
}

/// An array all of whose pages are there.
fn array(elements: usize, value: f64) -> Result<Vec<f64>, Failure> {
    let mut array = Vec::new();
    array.try_reserve_exact(elements).map_err(|_| {
        Failure::Failed("there is no memory for arrays of this size; give a smaller --size".into())
    })?;
    // Memory that the system has filled with zeros has pages only when it is written to.
    array.resize(elements, black_box(value));
    Ok(array)
}

fn once(amount: &mut Option<Amount>, given: Amount, options: &str) -> Result<(), Failure> {
    match amount.replace(given) {
        None => Ok(()),
        Some(_) => Err(Failure::Usage(format!("give one of {options}, once"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> OptionParser {
        OptionParser::new(text.split_whitespace().map(Into::into))
    }

    #[test]
    fn results_do_not_depend_on_batches() {
        assert_eq!(computed(computed(1, 10), 7), computed(1, 17));
        assert_ne!(computed(1, 17), computed(1, 16));
    }

    #[test]
    fn a_triad_is_computed() {
        let (mut a, b, c) = (vec![0.0; 3], vec![1.0, 2.0, 3.0], vec![10.0, 20.0, 30.0]);
        triad(&mut a, &b, &c);
        assert_eq!(a, [31.0, 62.0, 93.0]);
    }

    #[test]
    fn amounts_are_given_once() {
        for text in ["--operations 5 --seconds 1", "--seconds 0 --seconds 0"] {
            assert!(matches!(cpu(words(text)), Err(Failure::Usage(_))), "{text}");
        }
        for text in ["--passes 0", "--size 23", "--passes 1 --seconds 0"] {
            assert!(matches!(memory(words(text)), Err(Failure::Usage(_))), "{text}");
        }
    }
}

//! Phases of a task: how they are measured and reported.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::latency::{Latencies, Percentiles};

/// A part of the work that is done.
#[derive(Debug)]
pub struct Phase {
    name: &'static str,
    seconds: f64,
    bytes: u64,
    operations: u64,
    latency: Option<Percentiles>,
}

/// A running part of the work.
pub struct Measure {
    name: &'static str,
    began: Instant,
    /// What was done meanwhile and does not belong to it.
    aside: Duration,
    bytes: u64,
    operations: Latencies,
}

impl Measure {
    /// It begins now.
    pub fn begin(name: &'static str) -> Measure {
        let operations = Latencies::new();
        Measure { name, began: Instant::now(), aside: Duration::ZERO, bytes: 0, operations }
    }

    /// Do something that is not measured.
    pub fn aside<T>(&mut self, what: impl FnOnce() -> T) -> T {
        let before = Instant::now();
        let done = what();
        self.aside += before.elapsed();
        done
    }

    /// One operation, which moves so many bytes.
    pub fn operation<T>(&mut self, bytes: u64, what: impl FnOnce() -> T) -> T {
        let before = Instant::now();
        let done = what();
        self.operations.add(before.elapsed());
        self.bytes += bytes;
        done
    }

    /// It ends now.
    pub fn end(self) -> Phase {
        let seconds = self.began.elapsed().saturating_sub(self.aside).as_secs_f64();
        Phase {
            name: self.name,
            seconds,
            bytes: self.bytes,
            operations: self.operations.count(),
            latency: self.operations.percentiles(),
        }
    }
}

impl Phase {
    /// A phase of operations too short to be timed one by one.
    pub fn counted(name: &'static str, took: Duration, operations: u64) -> Phase {
        Phase { name, seconds: took.as_secs_f64(), bytes: 0, operations, latency: None }
    }
}

/// The line of JSON that tells them.
pub fn line(phases: &[Phase]) -> String {
    let mut text = String::from("{\"phases\": [");
    for (number, phase) in phases.iter().enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        let Phase { name, seconds, bytes, operations, latency } = phase;
        // Texts take all that is written to them.
        let _ = write!(
            text,
            "{comma}{{\"name\": \"{name}\", \"seconds\": {seconds:.9}, \"bytes\": {bytes}, \
             \"operations\": {operations}, \"latency\": "
        );
        let _ = match latency {
            None => write!(text, "null}}"),
            Some(Percentiles { p50, p90, p99, max }) => {
                write!(
                    text,
                    "{{\"p50\": {p50:.9}, \"p90\": {p90:.9}, \"p99\": {p99:.9}, \"max\": {max:.9}}}}}"
                )
            }
        };
    }
    text.push_str("]}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_reported_as_json() {
        let latency = Some(Percentiles { p50: 0.5, p90: 1.0, p99: 1e-7, max: 2.0 });
        let write = Phase { name: "write", seconds: 1.25, bytes: 64, operations: 2, latency };
        let cpu = Phase::counted("cpu", Duration::from_secs(2), 1000);
        assert_eq!(
            line(&[write, cpu]),
            "{\"phases\": [{\"name\": \"write\", \"seconds\": 1.250000000, \"bytes\": 64, \
             \"operations\": 2, \"latency\": {\"p50\": 0.500000000, \
             \"p90\": 1.000000000, \"p99\": 0.000000100, \"max\": 2.000000000}}, \
             {\"name\": \"cpu\", \"seconds\": 2.000000000, \"bytes\": 0, \
             \"operations\": 1000, \"latency\": null}]}\n"
        );
    }

    #[test]
    fn what_is_done_aside_does_not_count() {
        let mut measure = Measure::begin("read");
        measure.operation(10, || std::thread::sleep(Duration::from_millis(2)));
        measure.operation(5, || ());
        let took = Instant::now();
        measure.aside(|| std::thread::sleep(Duration::from_millis(50)));
        let aside = took.elapsed();
        let began = measure.began;
        let phase = measure.end();
        assert!(phase.seconds <= (began.elapsed() - Duration::from_millis(50)).as_secs_f64());
        assert!(aside >= Duration::from_millis(50));
        assert_eq!((phase.bytes, phase.operations), (15, 2));
        assert!(phase.latency.unwrap().max >= 0.002);
    }
}

//! The functions that every native worker has.

use std::time::Duration;

use gridrpc_wire::Value;

use crate::sys::monotonic_ns;
use crate::worker::each::each;
use crate::worker::native::{Argument, NativeError, Results};

/// A native function: reads its arguments, pushes its results.
pub(crate) type Function = fn(&[Argument], &mut Results<'_>) -> Result<(), NativeError>;

const FUNCTIONS: [(&str, Function); 6] = [
    ("builtin/null", null),
    ("builtin/echo", echo),
    ("builtin/sleep", sleep),
    ("builtin/task", task),
    ("builtin/check", check),
    ("builtin/each", each),
];

/// Memory is mapped in pieces of this size, bytes.
const PAGE: usize = 4096;
/// The longest sleep, seconds: a year.
const LONGEST: f64 = 365.0 * 86_400.0;

/// The names of all of them.
#[must_use]
pub fn names() -> Vec<&'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name).collect()
}

pub(crate) fn find(name: &str) -> Option<Function> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

fn expect<'a, const N: usize>(
    arguments: &'a [Argument],
    names: &str,
) -> Result<&'a [Argument; N], NativeError> {
    arguments.try_into().map_err(|_| {
        NativeError::Arguments(format!(
            "it takes {N} arguments ({names}), but {} were given",
            arguments.len()
        ))
    })
}

/// Does nothing: what is left is the cost of a call.
fn null(_arguments: &[Argument], _results: &mut Results<'_>) -> Result<(), NativeError> {
    Ok(())
}

/// Returns its arguments.
fn echo(arguments: &[Argument], results: &mut Results<'_>) -> Result<(), NativeError> {
    for argument in arguments {
        match argument {
            Argument::None => results.push(Value::None),
            Argument::Int(value) => results.push(Value::Int(*value)),
            Argument::Float(value) => results.push(Value::Float(*value)),
            Argument::Text(value) => results.push(Value::Text(value.clone())),
            Argument::Bytes(bytes) => {
                let bytes = bytes.bytes();
                results.push_bytes(bytes.len(), |place| place.copy_from_slice(bytes))?;
            }
            Argument::Array(array, elements) => results.push_array(array, elements.bytes())?,
        }
    }
    Ok(())
}

fn sleep_for(seconds: f64) -> Result<f64, NativeError> {
    if !(0.0..=LONGEST).contains(&seconds) {
        return Err(NativeError::Arguments(format!(
            "`seconds` is {seconds}, not a time from 0 to {LONGEST} s"
        )));
    }
    let start = monotonic_ns();
    if seconds > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    Ok((monotonic_ns() - start) as f64 / 1e9)
}

/// `sleep(seconds)`: sleeps without loading the processor; returns the seconds really slept.
fn sleep(arguments: &[Argument], results: &mut Results<'_>) -> Result<(), NativeError> {
    let [seconds] = expect(arguments, "seconds")?;
    results.push(Value::Float(sleep_for(seconds.number("seconds")?)?));
    Ok(())
}

/// Reads one byte of every page, so that the data has really arrived.
fn touch(bytes: &[u8]) -> u8 {
    bytes.iter().step_by(PAGE).fold(0, |sum, byte| sum ^ std::hint::black_box(*byte))
}

/// `task(seconds, data, shared, output_bytes)`: one task of the compute-grid benchmark. Reads a
/// byte of each page of its data, stamps calc-in, sleeps, fills its output with fresh bytes and
/// stamps calc-out. Returns calc-in, calc-out and the time slept (s, monotonic clock), the process
/// id and the output.
fn task(arguments: &[Argument], results: &mut Results<'_>) -> Result<(), NativeError> {
    let [seconds, data, shared, output] = expect(arguments, "seconds, data, shared, output_bytes")?;
    let touched = touch(data.bytes("data")?) ^ touch(shared.bytes("shared")?);
    let calc_in = monotonic_ns();
    let slept = sleep_for(seconds.number("seconds")?)?;
    let fresh = touched ^ (monotonic_ns() as u8);
    results.push_bytes(output.count("output_bytes")?, |place| place.fill(fresh))?;
    let calc_out = monotonic_ns();
    for stamp in [calc_in, calc_out] {
        results.push(Value::Float(stamp as f64 / 1e9));
    }
    results.push(Value::Float(slept));
    results.push(Value::Int(std::process::id().into()));
    Ok(())
}

/// `check(data, shared, output_bytes)`: CRC-32 of both, and an output whose byte `i` is
/// `i % 251`, for the checksum pass of the benchmarks.
fn check(arguments: &[Argument], results: &mut Results<'_>) -> Result<(), NativeError> {
    let [data, shared, output] = expect(arguments, "data, shared, output_bytes")?;
    for bytes in [data.bytes("data")?, shared.bytes("shared")?] {
        results.push(Value::Int(crc32fast::hash(bytes).into()));
    }
    results.push_bytes(output.count("output_bytes")?, |place| {
        place.iter_mut().enumerate().for_each(|(index, byte)| *byte = (index % 251) as u8);
    })
}

//! The tasks of `gridbench sync` that nobody has to write.
//!
//! `gridbench-task TASK OPTIONS` does a piece of work, in one thread, and prints what it did as a
//! line of JSON: phases with their seconds, bytes, operations and latencies, in the form of
//! python/gridbench/sync/record.py. Many of these programs start at one instant, so start-up is
//! short: few dependencies, and nothing that is set up before it is needed.

mod compute;
mod data;
mod failure;
mod help;
mod latency;
mod metadata;
mod options;
mod pattern;
mod phase;
mod stop;
mod transfer;

use std::ffi::OsString;
use std::io::Write as _;
use std::thread;

use failure::Failure;
use options::OptionParser;

/// Runs the task that the first argument names, with the others as its options, and returns the
/// exit status: 0, 1 if the task could not do its work, 2 if it was not told properly what to do.
/// A task that a signal stops removes what it made, and has the signal end the process.
pub fn run(arguments: impl Iterator<Item = OsString>) -> u8 {
    let mut arguments = arguments;
    let task = arguments.next().unwrap_or_default().to_string_lossy().into_owned();
    match dispatch(&task, OptionParser::new(arguments)) {
        Ok(text) => match print(&text) {
            Ok(()) => 0,
            Err(error) => {
                complain(&format!("gridbench-task {task}: cannot print the result: {error}"));
                1
            }
        },
        Err(Failure::Help) => u8::from(print(&help::of(&task)).is_err()),
        Err(Failure::Usage(what)) if task.is_empty() => {
            complain(&format!("gridbench-task: {what}"));
            2
        }
        Err(Failure::Usage(what)) => {
            complain(&format!("gridbench-task {task}: {what}"));
            2
        }
        Err(Failure::Failed(what)) => {
            complain(&format!("gridbench-task {task}: {what}"));
            1
        }
        Err(Failure::Stopped(signal)) => stop::end_by(signal),
    }
}

/// What the task prints.
fn dispatch(task: &str, words: OptionParser) -> Result<String, Failure> {
    let phases = match task {
        "sleep" => {
            thread::sleep(options::sleep(words)?);
            return Ok(String::new());
        }
        "write" => transfer::write(&transfer::Options::parse(words)?)?,
        "read" => transfer::read(&transfer::Options::parse(words)?)?,
        "write-read" => transfer::write_and_read(&transfer::Options::parse(words)?)?,
        "metadata" => metadata::run(&metadata::Options::parse(words)?)?,
        "cpu" => compute::cpu(words)?,
        "memory" => compute::memory(words)?,
        "--help" | "-h" | "help" => return Err(Failure::Help),
        "--version" => return Ok(format!("gridbench-task {}\n", env!("CARGO_PKG_VERSION"))),
        "" => return Err(Failure::Usage(format!("which task? {}", help::NAMES))),
        _ => return Err(Failure::Usage(format!("there is no such task; {}", help::NAMES))),
    };
    Ok(phase::line(&phases))
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn complain(text: &str) {
    // There is nobody left to tell if that fails too.
    let _ = writeln!(std::io::stderr(), "{text}");
}

//! `gridrpc session`: runs the Python program for sessions, which execute Python functions.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use thiserror::Error;

/// Arguments of the Python program.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Options {
    /// start, list, show, cancel or stop, and their options; see `--help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    words: Vec<OsString>,
}

/// Why it cannot be run.
#[derive(Debug, Error)]
#[error("sessions need Python, and `{}` could not be started: {error}", python.display())]
pub struct SessionError {
    python: PathBuf,
    error: std::io::Error,
}

/// Replaces this process with the Python program; returns only on failure.
#[must_use]
pub fn become_program(options: &Options) -> SessionError {
    let python = python();
    let mut command = Command::new(&python);
    // -P keeps the current folder from shadowing Python's modules.
    command.args(["-P", "-m", "gridrpc._session"]).args(&options.words);
    SessionError { error: command.exec(), python }
}

/// The Python installed next to this program, or else the default one.
fn python() -> PathBuf {
    let beside = |program: PathBuf| {
        let found = program.with_file_name("python3");
        found.is_file().then_some(found)
    };
    std::env::current_exe().ok().and_then(beside).unwrap_or_else(|| "python3".into())
}

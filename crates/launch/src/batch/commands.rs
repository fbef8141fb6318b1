//! Commands of a batch system, each with a timeout; all end with the client.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use gridrpc_sys::lock;
use gridrpc_sys::process::end_with_parent;

use crate::child::{Child, how};
use crate::launcher::SUBMITTED;
use crate::permits::Permits;

/// Timeout of a command. Slurm's commands retry for a while if nobody answers.
const LONGEST: Duration = Duration::from_secs(60);
/// How long a command that timed out may take to exit.
const LEAVING: Duration = Duration::from_secs(2);

/// How many jobs all groups submit at once: each submission is a process here and work for the batch system.
static SUBMISSIONS: LazyLock<Permits> = LazyLock::new(|| Permits::new(4));

/// A command behind the prefix of its group. Its output is parsed.
pub(crate) fn prefixed(prefix: &[String], name: &str) -> Command {
    let mut command = match prefix {
        [] => Command::new(name),
        [first, others @ ..] => {
            let mut command = Command::new(first);
            command.args(others).arg(name);
            command
        }
    };
    command.env("LC_ALL", "C");
    command
}

/// Runs commands one at a time.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    running: Mutex<Option<Arc<Child>>>,
    ended: AtomicBool,
    /// Last output of the submit command on standard error; empty if there is none, or if no command runs.
    said: Mutex<String>,
}

/// Reason a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It does not exist or cannot be started, with the reason.
    Absent(String),
    /// The batch system does not answer, at least for now; its message.
    Silent(String),
    /// The batch system refused the request; its message.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Absent(words) | Failure::Silent(words) | Failure::Refused(words)) = self;
        f.write_str(words)
    }
}

/// A job's permit to be submitted.
pub(crate) struct Submission<'a> {
    commands: &'a Commands,
    /// Called when the command writes to standard error: some report there why they wait.
    handle_line: &'a (dyn Fn() + Sync),
}

impl Submission<'_> {
    /// Runs the submit command with `input` on its standard input and returns its output.
    pub(crate) fn run(&self, command: &mut Command, input: &str) -> Result<String, Failure> {
        self.run_partly(command, input).map_err(|(failure, _)| failure)
    }

    /// The same; a command that fails returns its output too.
    pub(crate) fn run_partly(
        &self,
        command: &mut Command,
        input: &str,
    ) -> Result<String, (Failure, String)> {
        let handle_line = |line: &str| {
            line.clone_into(&mut lock(&self.commands.said));
            (self.handle_line)();
        };
        let ran = self.commands.run_heard(command, input, &handle_line);
        lock(&self.commands.said).clear();
        ran
    }
}

impl Commands {
    /// Runs a command to its end with `input` on its standard input and returns its output.
    pub(crate) fn run(&self, command: &mut Command, input: &str) -> Result<String, Failure> {
        self.run_partly(command, input).map_err(|(failure, _)| failure)
    }

    /// The same; a command that fails returns its output too, for those that fail when they miss one of several
    /// jobs.
    pub(crate) fn run_partly(
        &self,
        command: &mut Command,
        input: &str,
    ) -> Result<String, (Failure, String)> {
        self.run_heard(command, input, &|_| ())
    }

    fn run_heard(
        &self,
        command: &mut Command,
        input: &str,
        handle_line: &(dyn Fn(&str) + Sync),
    ) -> Result<String, (Failure, String)> {
        let failed = |failure| (failure, String::new());
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_with_parent(command);
        let (child, pipes) = {
            let mut running = lock(&self.running);
            if self.ended.load(Ordering::Acquire) {
                return Err(failed(Failure::Silent(CLOSING.to_owned())));
            }
            let (child, pipes) = Child::spawn(command).map_err(|error| {
                failed(Failure::Absent(format!("`{name}` could not be started: {error}")))
            })?;
            *running = Some(Arc::clone(&child));
            (child, pipes)
        };
        Arc::clone(&child).end_soon(LONGEST, LONGEST + LEAVING);
        if let Some(mut stdin) = pipes.stdin {
            // A command that does not read its input reports why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let (mut output, mut error) = (Vec::new(), Vec::new());
        std::thread::scope(|scope| {
            let (stderr, error) = (pipes.stderr, &mut error);
            let reads = std::thread::Builder::new().name("gridrpc-hears".into());
            // Without a thread its standard error is not read; the command still ends.
            let _ = reads
                .spawn_scoped(scope, move || stderr.map(|pipe| lines(pipe, error, handle_line)));
            let _ = pipes.stdout.map(|mut pipe| pipe.read_to_end(&mut output));
        });
        let status = child.wait();
        *lock(&self.running) = None;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
        let (output, error) = (text(output), text(error));
        let failure = match status.map(|status| status.code()) {
            Some(Some(0)) => return Ok(output),
            Some(None) if error.is_empty() => {
                Failure::Silent(format!("`{name}` ended before it was done"))
            }
            Some(None) => Failure::Silent(format!(
                "`{name}` ended before it was done, and said: {}",
                error.lines().map(str::trim).collect::<Vec<_>>().join("; ")
            )),
            _ if error.is_empty() => {
                Failure::Refused(format!("`{name}` ended with {}", how(status)))
            }
            _ => Failure::Refused(error),
        };
        Err((failure, output))
    }

    /// The state of agents whose job has not been submitted yet.
    pub(super) fn submitting(&self) -> String {
        match &**lock(&self.said) {
            "" => SUBMITTED.to_owned(),
            said => format!("{SUBMITTED} ({said})"),
        }
    }

    /// Runs `submit` when it has a permit. `handle_line` is called whenever `submitting` changes.
    pub(super) fn in_turn<R>(
        &self,
        handle_line: &(dyn Fn() + Sync),
        submit: impl FnOnce(&Submission<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let permit = SUBMISSIONS.take(|| !self.ended.load(Ordering::Acquire));
        // Nothing was submitted, so no unknown job can exist.
        let _permit = permit.ok_or_else(|| Failure::Refused(CLOSING.to_owned()))?;
        submit(&Submission { commands: self, handle_line })
    }

    /// Whether no further commands run.
    pub(super) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends the running command and refuses further ones.
    pub(crate) fn end(&self) {
        let running = lock(&self.running);
        self.ended.store(true, Ordering::Release);
        if let Some(child) = &*running {
            child.kill();
        }
        drop(running);
        SUBMISSIONS.wake();
    }
}

const CLOSING: &str = "this grid is being closed";

/// Reads a command's standard error until it ends or cannot be read.
fn lines(pipe: ChildStderr, all: &mut Vec<u8>, handle_line: &dyn Fn(&str)) -> io::Result<()> {
    let mut pipe = BufReader::new(pipe);
    loop {
        let begin = all.len();
        if pipe.read_until(b'\n', all)? == 0 {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&all[begin..]);
        if !line.trim().is_empty() {
            handle_line(line.trim());
        }
    }
}

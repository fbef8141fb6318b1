//! Running the commands of a batch system: each has a bound, and ends when the client does.

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

/// How long a command may take. Those of Slurm try for a while if nobody answers.
const LONGEST: Duration = Duration::from_secs(60);
/// How long one may take to end that took too long.
const LEAVING: Duration = Duration::from_secs(2);

/// How many jobs are submitted at once, by all groups: each is a process, and a task of the batch system.
static SUBMISSIONS: LazyLock<Permits> = LazyLock::new(|| Permits::new(4));

/// Runs one command after the other.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    running: Mutex<Option<Arc<Child>>>,
    ended: AtomicBool,
    /// What the command that submits has written last to its standard error; empty: nothing, or none runs.
    said: Mutex<String>,
}

/// Why a command has not done what it was to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It is not there, or cannot be started: why.
    Absent(String),
    /// The batch system does not answer, at least not now: its words.
    Silent(String),
    /// The batch system has refused: its words.
    Refused(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Absent(words) | Failure::Silent(words) | Failure::Refused(words)) = self;
        f.write_str(words)
    }
}

/// The turn of a job that is submitted.
pub(crate) struct Submission<'a> {
    commands: &'a Commands,
    /// Hears that the command has written something to its standard error: some write there why they wait.
    hear: &'a (dyn Fn() + Sync),
}

impl Submission<'_> {
    /// Runs the command that submits, with this on its standard input; what it has written.
    pub(crate) fn run(&self, command: &mut Command, input: &str) -> Result<String, Failure> {
        let hear = |line: &str| {
            line.clone_into(&mut lock(&self.commands.said));
            (self.hear)();
        };
        let ran = self.commands.run_heard(command, input, &hear);
        lock(&self.commands.said).clear();
        ran
    }
}

impl Commands {
    /// Runs a command to its end, with this on its standard input; what it has written.
    pub(crate) fn run(&self, command: &mut Command, input: &str) -> Result<String, Failure> {
        self.run_heard(command, input, &|_| ())
    }

    fn run_heard(
        &self,
        command: &mut Command,
        input: &str,
        hear: &(dyn Fn(&str) + Sync),
    ) -> Result<String, Failure> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        end_with_parent(command);
        let (child, pipes) = {
            let mut running = lock(&self.running);
            if self.ended.load(Ordering::Acquire) {
                return Err(Failure::Silent(CLOSING.to_owned()));
            }
            let (child, pipes) = Child::spawn(command).map_err(|error| {
                Failure::Absent(format!("`{name}` could not be started: {error}"))
            })?;
            *running = Some(Arc::clone(&child));
            (child, pipes)
        };
        Arc::clone(&child).end_soon(LONGEST, LONGEST + LEAVING);
        if let Some(mut stdin) = pipes.stdin {
            // One that does not read it says why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let (mut output, mut error) = (Vec::new(), Vec::new());
        std::thread::scope(|scope| {
            let (stderr, error) = (pipes.stderr, &mut error);
            let reads = std::thread::Builder::new().name("gridrpc-hears".into());
            // Without a thread, what it writes there is not heard; it ends nevertheless.
            let _ = reads.spawn_scoped(scope, move || stderr.map(|pipe| lines(pipe, error, hear)));
            let _ = pipes.stdout.map(|mut pipe| pipe.read_to_end(&mut output));
        });
        let status = child.wait();
        *lock(&self.running) = None;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
        let (output, error) = (text(output), text(error));
        match status.map(|status| status.code()) {
            Some(Some(0)) => Ok(output),
            Some(None) if error.is_empty() => {
                Err(Failure::Silent(format!("`{name}` ended before it was done")))
            }
            Some(None) => Err(Failure::Silent(format!(
                "`{name}` ended before it was done, and said: {}",
                error.lines().map(str::trim).collect::<Vec<_>>().join("; ")
            ))),
            _ if error.is_empty() => {
                Err(Failure::Refused(format!("`{name}` ended with {}", how(status))))
            }
            _ => Err(Failure::Refused(error)),
        }
    }

    /// How far the start of an agent has come that waits for its job to be submitted.
    pub(super) fn submitting(&self) -> String {
        match &**lock(&self.said) {
            "" => SUBMITTED.to_owned(),
            said => format!("{SUBMITTED} ({said})"),
        }
    }

    /// Does what submits a job, when its turn has come. `hear`: hears that `submitting` is another.
    pub(super) fn in_turn<R>(
        &self,
        hear: &(dyn Fn() + Sync),
        submit: impl FnOnce(&Submission<'_>) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        let permit = SUBMISSIONS.take(|| !self.ended.load(Ordering::Acquire));
        // Nothing was submitted: no job can be there that nobody knows of.
        let _permit = permit.ok_or_else(|| Failure::Refused(CLOSING.to_owned()))?;
        submit(&Submission { commands: self, hear })
    }

    /// Whether nothing more is run.
    pub(super) fn have_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ends what runs, and runs nothing more.
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

/// Reads what a command writes to its standard error, to its end or as far as it can be read.
fn lines(pipe: ChildStderr, all: &mut Vec<u8>, hear: &dyn Fn(&str)) -> io::Result<()> {
    let mut pipe = BufReader::new(pipe);
    loop {
        let begin = all.len();
        if pipe.read_until(b'\n', all)? == 0 {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&all[begin..]);
        if !line.trim().is_empty() {
            hear(line.trim());
        }
    }
}

//! Probes a Python interpreter for the packages that workers need.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A Python interpreter; fields that could not be determined are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Python {
    /// The command.
    pub command: String,
    /// Its version, if it runs.
    pub version: Option<String>,
    /// The version of the package if it can be imported.
    pub gridrpc: Option<String>,
    /// See `gridrpc`.
    pub numpy: Option<String>,
    /// See `gridrpc`.
    pub cloudpickle: Option<String>,
    /// Why Python or a package is unavailable.
    pub fault: Option<String>,
    /// Duration of the probe, ms.
    pub milliseconds: u64,
}

/// Timeout of the probe: the first start of a Python on a network file system is slow.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// Prefix of the answer: imported modules may print.
const MARK: &str = "gridrpc-doctor: ";
/// The probe. It must run with any Python, including ones too old for gridrpc and for `-P`: it imports
/// nothing before the current directory is off the path.
const CODE: &str = r#"
import sys
sys.path[:] = [place for place in sys.path if place]
import json
found = {"version": "%d.%d.%d" % sys.version_info[:3]}
for name in ("gridrpc", "numpy", "cloudpickle"):
    try:
        found[name] = str(getattr(__import__(name), "__version__", "of unknown version"))
    except BaseException as error:
        found.setdefault("fault", "`import %s` fails: %s: %s" % (name, type(error).__name__, error))
        if name == "gridrpc":
            break
print("gridrpc-doctor: " + json.dumps(found))
"#;

/// The probe's output.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    version: Option<String>,
    gridrpc: Option<String>,
    numpy: Option<String>,
    cloudpickle: Option<String>,
    fault: Option<String>,
}

/// Probes a Python in a directory (empty: the current one) with these additional environment variables.
pub fn probe(command: &str, directory: &str, environment: &[&str]) -> Python {
    probe_within(HANDSHAKE_TIMEOUT, command, directory, environment)
}

pub(crate) fn probe_within(
    timeout: Duration,
    command: &str,
    directory: &str,
    environment: &[&str],
) -> Python {
    let mut python = Command::new(command);
    python.arg("-c").arg(CODE).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    python.envs(environment.iter().filter_map(|text| text.split_once('=')));
    if !directory.is_empty() {
        python.current_dir(directory);
    }
    // So that it can be killed with its children.
    python.process_group(0);
    let begin = Instant::now();
    let ran = python.spawn().and_then(|child| wait(child, begin + timeout));
    let milliseconds = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut found = Python { command: command.to_owned(), milliseconds, ..Python::default() };
    match ran {
        Err(error) => found.fault = Some(format!("`{command}` cannot be run: {error}")),
        Ok(None) => {
            let seconds = timeout.as_secs_f64();
            found.fault = Some(format!("`{command}` has not answered in {seconds} s"));
        }
        Ok(Some(ProcessOutput { status, output, errors })) => {
            let line = output.lines().find_map(|line| line.strip_prefix(MARK));
            let answer = line.and_then(|line| serde_json::from_str::<Answer>(line).ok());
            let Some(answer) = answer else {
                let last = errors.lines().rev().find(|line| !line.trim().is_empty());
                let last = last.map(|line| format!(": {line}")).unwrap_or_default();
                found.fault =
                    Some(format!("`{command}` does not run as Python does ({status}){last}"));
                return found;
            };
            let Answer { version, gridrpc, numpy, cloudpickle, fault } = answer;
            found = Python { version, gridrpc, numpy, cloudpickle, fault, ..found };
        }
    }
    found
}

/// A process that has ended.
struct ProcessOutput {
    status: ExitStatus,
    output: String,
    errors: String,
}

/// Waits for a process to end, and kills it and its children after a timeout.
fn wait(mut child: Child, until: Instant) -> io::Result<Option<ProcessOutput>> {
    let output = child.stdout.take().map(read_all);
    let errors = child.stderr.take().map(read_all);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() >= until {
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let Some(status) = status else {
        // Fails only if it has just ended.
        let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
        child.wait()?;
        return Ok(None);
    };
    // A child that it left behind may hold the pipes open.
    let text = |from: Option<mpsc::Receiver<Vec<u8>>>| {
        let bytes = from.and_then(|from| from.recv_timeout(Duration::from_secs(1)).ok());
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    };
    Ok(Some(ProcessOutput { status, output: text(output), errors: text(errors) }))
}

fn read_all(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    // Without a thread its output stays unknown.
    let _ = thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        // Whatever was read before a failure is useful.
        let _ = from.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_reported() {
        let found = probe("/no/such/python", "", &[]);
        let fault = found.fault.unwrap();
        assert!(fault.contains("`/no/such/python` cannot be run: No such file"), "{fault}");
    }

    #[test]
    fn what_is_no_python_is_reported() {
        let found = probe("false", "", &[]);
        let fault = found.fault.unwrap();
        assert!(fault.contains("does not run as Python does (exit status: 1)"), "{fault}");
    }

    #[test]
    fn one_that_does_not_answer_is_ended() {
        let file = std::env::temp_dir().join(format!("gridrpc-slow-{}", std::process::id()));
        // Another process writes it, so that nothing here has it open when it runs.
        let write = r#"printf '#!/bin/sh\nsleep 60' >"$1" && chmod 755 "$1""#;
        assert!(
            Command::new("sh").args(["-c", write, "sh"]).arg(&file).status().unwrap().success()
        );
        let begin = Instant::now();
        let found = probe_within(Duration::from_millis(300), file.to_str().unwrap(), "", &[]);
        std::fs::remove_file(&file).unwrap();
        let fault = found.fault.unwrap();
        assert!(fault.contains("has not answered in 0.3 s"), "{fault}");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
}

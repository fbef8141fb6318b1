//! Command that starts ranks, and its process.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gridrpc_sys::process::end_with_parent;
use gridrpc_sys::thread_limits::THREADS;
use gridrpc_wire::{NODES, Ranks};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, geteuid};

use super::listener::{Listener, SECRET};

/// Default command.
const USUAL: &str = "mpirun";
/// Environment variable with another command for this host.
const VARIABLE: &str = "GRIDRPC_MPIRUN";
/// Lines of the ranks' standard error that are reported with their loss.
const TAIL: usize = 40;
/// How long ranks may take to end by themselves, and after a request.
const BY_ITSELF: Duration = Duration::from_millis(500);
const ASKED: Duration = Duration::from_secs(5);

/// Variables that ranks of other jobs leave in the environment.
const OF_RANKS: [&str; 4] = ["OMPI_", "PMI", "PRTE_", "HYDI_"];
/// Variables of batch systems. With them, `mpirun` starts its ranks on the nodes of an allocation. Unless this host is
/// all of these nodes, the ranks belong here, beside their worker.
const OF_JOBS: [&str; 4] = ["SLURM_", "PE_HOSTFILE", "PBS_", "LSB_"];
/// Options of Open MPI 4 and 5. The grid counts places, so ranks are not bound to processors, and there may be more
/// of them than `mpirun` assumes.
const OPTIONS: [(&str, &str); 4] = [
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
    ("PRTE_MCA_hwloc_default_binding_policy", "none"),
];
const AS_ROOT: [&str; 2] = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"];

/// Environment of ranks and of `mpirun`.
#[must_use]
pub fn environment() -> Vec<(OsString, OsString)> {
    let jobs = if Nodes::of_this_host().is_some() { &[][..] } else { &OF_JOBS };
    let is_foreign = |name: &OsStr| {
        let mut foreign = OF_RANKS.iter().chain(jobs);
        foreign.any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()))
    };
    let inherited = std::env::vars_os().filter(|(name, _)| !is_foreign(name));
    let options = OPTIONS.iter().map(|(name, value)| (name.into(), value.into()));
    let as_root = AS_ROOT.iter().filter(|_| geteuid().is_root());
    inherited.chain(options).chain(as_root.map(|name| (name.into(), "1".into()))).collect()
}

/// The nodes of the job that this host stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nodes {
    count: u32,
    /// Cores of each.
    cores: u32,
}

impl Nodes {
    /// Those of the host of this process; none: it is one node.
    pub(super) fn of_this_host() -> Option<Nodes> {
        Nodes::parse(&std::env::var(NODES).ok()?)
    }

    fn parse(text: &str) -> Option<Nodes> {
        let (count, cores) = text.split_once('x')?;
        Some(Nodes { count: count.parse().ok()?, cores: cores.parse().ok()? })
    }

    /// Options of `mpirun`: a node gets as many ranks as it has cores for.
    fn options(self, ranks: u32, threads: u32) -> [String; 2] {
        let Nodes { count, cores } = self;
        let fit = cores / threads.max(1);
        let each = fit.max(ranks.div_ceil(count.max(1))).max(1);
        ["--map-by".to_owned(), format!("ppr:{each}:node")]
    }
}

/// Options of `mpirun` for this many ranks, with so many threads each, on the nodes of this host; none: it is one
/// node.
#[must_use]
pub fn options_for_nodes(ranks: u32, threads: u32) -> Option<[String; 2]> {
    Nodes::of_this_host().map(|nodes| nodes.options(ranks, threads))
}

/// Options of `mpirun` that pass variables on to other nodes.
fn passed_on() -> impl Iterator<Item = &'static str> {
    [SECRET].into_iter().chain(THREADS).flat_map(|name| ["-x", name])
}

/// The command to use: that of this host, or the one that the grid names.
pub(super) fn chosen(named: &str) -> String {
    let here = std::env::var(VARIABLE).ok().filter(|command| !command.is_empty());
    let named = if named.is_empty() { USUAL } else { named };
    here.unwrap_or_else(|| named.to_owned())
}

/// A command that has started ranks.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    tail: Arc<Mutex<VecDeque<String>>>,
    /// Whether its output is no longer news.
    quiet: Arc<AtomicBool>,
    /// Disconnects at the end of its output.
    silence: Receiver<()>,
}

impl Running {
    /// Starts ranks: each runs `program`, which connects to `listener`.
    pub(super) fn start(
        command: &str,
        asked: &Ranks,
        nodes: Option<Nodes>,
        program: &Path,
        listener: &Listener,
    ) -> io::Result<Running> {
        let (ranks, threads) = (asked.ranks, asked.threads);
        let words = shlex::split(command).unwrap_or_default();
        let [name, arguments @ ..] = &words[..] else { return Err(io::ErrorKind::NotFound.into()) };
        let mut command = Command::new(name);
        command
            .args(arguments)
            .args(nodes.iter().flat_map(|nodes| nodes.options(ranks, threads)))
            .args(nodes.iter().flat_map(|_| passed_on()))
            .arg("-n")
            .arg(ranks.to_string())
            .arg(program)
            .arg("rank")
            .arg(listener.place()?);
        command.env_clear().envs(environment());
        command.envs(THREADS.map(|name| (name, threads.to_string())));
        command.envs(listener.secret().map(|secret| (SECRET, secret)));
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        // Signals to the worker's group, such as ^C in a terminal, are handled by the worker.
        command.process_group(0);
        end_with_parent(&mut command);
        let mut child = command.spawn()?;
        let (tail, quiet) = (Arc::default(), Arc::default());
        let (speaks, silence) = mpsc::channel();
        if let Some(errors) = child.stderr.take() {
            let (tail, quiet) = (Arc::clone(&tail), Arc::clone(&quiet));
            std::thread::Builder::new().name("gridrpc-ranks".into()).spawn(move || {
                pass_on(errors, &tail, &quiet);
                drop(speaks);
            })?;
        }
        Ok(Running { child, tail, quiet, silence })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The last standard error output of ranks and the command.
    pub(super) fn tail(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.iter().map(String::as_str).collect()
    }

    /// Its exit status, if it has ended.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for its end. Returns `None` if that takes too long.
    pub(super) fn wait(&mut self) -> Option<ExitStatus> {
        self.wait_at_most(ASKED)
    }

    fn wait_at_most(&mut self, time: Duration) -> Option<ExitStatus> {
        // Its standard error stays open until it ends.
        if self.silence.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            return self.ended();
        }
        self.child.wait().ok()
    }

    /// Ends it. Its ranks end as requested; otherwise it passes the signal on to them.
    pub(super) fn end(&mut self) {
        self.quiet.store(true, Ordering::Relaxed);
        let group = Pid::from_raw(self.pid().cast_signed());
        for (time, signal) in [(BY_ITSELF, Signal::SIGTERM), (ASKED, Signal::SIGKILL)] {
            if self.wait_at_most(time).is_some() {
                return;
            }
            // It has not been reaped, so the process id is still its own.
            let _ = killpg(group, signal);
        }
        let _ = self.child.wait();
    }
}

/// Passes on the output, and keeps the last lines.
fn pass_on(errors: ChildStderr, tail: &Mutex<VecDeque<String>>, quiet: &AtomicBool) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    while matches!(errors.read_until(b'\n', &mut line), Ok(1..)) {
        if !quiet.load(Ordering::Relaxed) {
            let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
            if tail.len() == TAIL {
                tail.pop_front();
            }
            tail.push_back(String::from_utf8_lossy(&line).into_owned());
            drop(tail);
            // There is nobody to report a write error to.
            let _ = io::stderr().write_all(&line);
        }
        line.clear();
    }
}

/// How it ended, for people and as numbers: its status, or the signal that ended it.
pub(super) fn how(status: ExitStatus) -> (String, Option<i32>, Option<i32>) {
    match status.signal() {
        Some(signal) => (format!("by signal {signal}"), None, Some(signal)),
        None => {
            let status = status.code().unwrap_or_default();
            (format!("with status {status}"), Some(status), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_get_as_many_ranks_as_they_have_cores_for() {
        let each = |text: &str, ranks, threads| {
            let nodes = Nodes::parse(text).unwrap();
            nodes.options(ranks, threads)[1].clone()
        };
        assert_eq!(each("2x8", 4, 1), "ppr:8:node");
        assert_eq!(each("2x8", 8, 2), "ppr:4:node");
        // Two of three threads each fit into eight cores, and five have to be somewhere.
        assert_eq!(each("2x8", 5, 3), "ppr:3:node");
        assert_eq!(each("2x1", 2, 4), "ppr:1:node");
        assert_eq!(Nodes::parse("2"), None);
    }
}

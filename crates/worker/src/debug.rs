//! Debuggers on workers: `GRIDRPC_DEBUG`, set by the client, says what each worker does before its
//! first call.
//!
//! - `wait`: it waits until a debugger has attached to it.
//! - anything else is a command that is started, with `{pid}` and `{worker}` filled in, such as
//!   `xterm -e gdb -p {pid}`; the worker waits until it has attached.

use std::process::{Command, Stdio};
use std::time::Duration;

const VARIABLE: &str = "GRIDRPC_DEBUG";
const LOOK: Duration = Duration::from_millis(50);

/// Does what the variable says; returns when the debugger is there, or its command has ended.
pub(super) fn attend(worker: u32) {
    let Some(wanted) = std::env::var(VARIABLE).ok().filter(|wanted| !wanted.is_empty()) else {
        return;
    };
    allow_all();
    let pid = std::process::id();
    let mut debugger = None;
    if wanted == "wait" {
        eprintln!("worker {worker} waits for a debugger: gdb -p {pid}");
    } else {
        let filled = wanted.replace("{pid}", &pid.to_string());
        let filled = filled.replace("{worker}", &worker.to_string());
        // The shell stands between, so that the debugger outlives nobody by accident.
        let started = Command::new("sh").args(["-c", &filled]).stdin(Stdio::null()).spawn();
        match started {
            Ok(child) => debugger = Some(child),
            Err(error) => return eprintln!("worker {worker}: no debugger: {error}"),
        }
    }
    while !is_traced() {
        if let Some(child) = &mut debugger
            && !matches!(child.try_wait(), Ok(None))
        {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// Debuggers that are no parents of ours may attach, where the kernel asks for leave.
fn allow_all() {
    // SAFETY: plain system call; fails where the kernel does not ask.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
}

fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_none_or(|pid| pid.trim() != "0")
}

//! Debuggers for workers. The client sets `GRIDRPC_DEBUG` to what each worker does before its first call:
//!
//! - `wait`: wait until a debugger has attached.
//! - anything else: a command to start, with `{pid}` and `{worker}` filled in, such as `xterm -e gdb -p {pid}`. The
//!   worker waits until it has attached.

use std::process::{Command, Stdio};
use std::time::Duration;

const VARIABLE: &str = "GRIDRPC_DEBUG";
const LOOK: Duration = Duration::from_millis(50);

/// Carries out the variable's value. Returns when the debugger has attached or its command has ended.
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
        // Started through a shell, so that the debugger does not outlive its terminal by accident.
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

/// Allows debuggers that are not our parents to attach, where the kernel requires permission.
fn allow_all() {
    // SAFETY: plain system call; fails where no permission is needed.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
}

fn is_traced() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_none_or(|pid| pid.trim() != "0")
}

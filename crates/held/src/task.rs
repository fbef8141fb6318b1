//! A task: a program that is started, held, let go and waited for.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, Uid};

use crate::gate::{Gate, has_priority, has_usual_priority};
use crate::{Error, entry};

/// Where a task waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// At the entry of its program, which is loaded and linked.
    Entry,
    /// Before it executes its program.
    Exec,
}

/// The command to run.
#[derive(Debug)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// Without its name.
    pub arguments: Vec<OsString>,
    /// All variables of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The folder that it runs in.
    pub directory: PathBuf,
    /// What it prints.
    pub output: File,
    /// What it prints as errors.
    pub errors: File,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// The exit status, or minus the number of the signal that ended it.
    pub status: i32,
    /// When it continued, nanoseconds of the monotonic clock; None: it never did.
    pub began: Option<i64>,
    /// When its process had ended.
    pub ended: i64,
    /// Processor time in its program, seconds.
    pub user: f64,
    /// The same in the kernel.
    pub system: f64,
    /// The most memory that was resident, bytes.
    pub memory: u64,
}

/// A process that waits, runs or has ended. It is killed, with its process group, when this is dropped.
#[derive(Debug)]
pub struct Task {
    pid: Pid,
    descriptor: OwnedFd,
    gate: Arc<Gate>,
    starter: Option<JoinHandle<io::Result<()>>>,
    end: Option<io::Result<Ended>>,
}

impl Task {
    /// Starts a process, which then waits.
    pub fn prepare(program: Program, hold: Hold) -> Result<Task, Error> {
        let gate = Arc::new(Gate::new()?);
        match hold {
            Hold::Entry => at_entry(program, gate),
            Hold::Exec => before_exec(program, gate),
        }
    }

    /// Lets it continue at this time of the monotonic clock, nanoseconds; at once if that is over.
    pub fn release(&self, at: i64) {
        self.gate.open(at);
    }

    /// The process.
    pub fn id(&self) -> i32 {
        self.pid.as_raw()
    }

    /// How it ended, once `wait_for` has seen that. An error: it could not execute its program, which a
    /// task that waits before its exec only then finds out.
    pub fn ended(&self) -> Option<Result<Ended, &io::Error>> {
        self.end.as_ref().map(|end| end.as_ref().copied())
    }

    /// Its process has ended at this time.
    fn see_end(&mut self, ended: i64) {
        let started = self.starter.take().map_or(Ok(()), |starter| {
            starter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        // One that could not be executed was reaped by who has started it.
        self.end = Some(started.and_then(|()| reap(self.pid)).map(|(status, usage)| Ended {
            status,
            began: self.gate.began(),
            ended,
            user: seconds(usage.ru_utime),
            system: seconds(usage.ru_stime),
            memory: usage.ru_maxrss.unsigned_abs() * 1024,
        }));
    }

    /// Ends its processes, which is then still to be waited for.
    pub fn kill(&self) {
        // It leads a group of its own; one that waits before its exec may not have come so far.
        let _ = killpg(self.pid, Signal::SIGKILL);
        let _ = kill(self.pid, Signal::SIGKILL);
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.kill();
            let _ = wait_for(&mut [self], i64::MAX);
        }
    }
}

/// Nanoseconds of the monotonic clock.
pub fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock is there, and the time is written to a place for one.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn command(program: Program) -> Command {
    let mut command = Command::new(program.path);
    command
        .args(program.arguments)
        .env_clear()
        .envs(program.environment)
        .current_dir(program.directory)
        .stdin(Stdio::null())
        .stdout(program.output)
        .stderr(program.errors)
        .process_group(0);
    command
}

fn at_entry(program: Program, gate: Arc<Gate>) -> Result<Task, Error> {
    if has_other_rights(&program.path) {
        return Err(Error::Entry("it would run without the rights of its file's owner".to_owned()));
    }
    let mut command = command(program);
    let memory = gate.memory().as_raw_fd();
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            if libc::fcntl(memory, libc::F_SETFD, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            nix::sys::ptrace::traceme().map_err(io::Error::from)
        });
    }
    let child = command.spawn().map_err(Error::Start)?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let held = entry::hold(pid, memory, &gate);
    // From here on it is killed when something goes wrong.
    let task = task(pid, Arc::clone(&gate), None)?;
    held?;
    if has_priority(pid.as_raw()) {
        gate.set_urgent();
    }
    Ok(task)
}

/// Whether a program runs with rights that it loses when somebody traces it.
fn has_other_rights(path: &Path) -> bool {
    let bits = libc::S_ISUID | libc::S_ISGID;
    !Uid::effective().is_root() && path.metadata().is_ok_and(|file| file.mode() & bits != 0)
}

fn before_exec(program: Program, gate: Arc<Gate>) -> Result<Task, Error> {
    let mut command = command(program);
    let its = Arc::clone(&gate);
    // SAFETY: only system calls between fork and exec.
    unsafe {
        command.pre_exec(move || {
            its.pass();
            Ok(())
        });
    }
    let its = Arc::clone(&gate);
    // Starting a process returns when that has executed its program.
    let starter = thread::Builder::new()
        .name("starter".to_owned())
        .spawn(move || {
            let started = command.spawn();
            its.will_not_wait();
            started.map(|_| ())
        })
        .map_err(Error::System)?;
    match gate.until_waiting() {
        Some(pid) => task(Pid::from_raw(pid), gate, Some(starter)),
        None => match starter.join() {
            Ok(Err(error)) => Err(Error::Start(error)),
            _ => Err(Error::System(io::ErrorKind::Other.into())),
        },
    }
}

fn task(
    pid: Pid,
    gate: Arc<Gate>,
    starter: Option<JoinHandle<io::Result<()>>>,
) -> Result<Task, Error> {
    // SAFETY: a system call with numbers; what it returns is a new descriptor, or negative.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    if descriptor < 0 {
        let error = io::Error::last_os_error();
        let _ = kill(pid, Signal::SIGKILL);
        let _ = waitpid(pid, Some(WaitPidFlag::__WALL));
        return Err(Error::System(error));
    }
    // SAFETY: nobody else has it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor as i32) };
    Ok(Task { pid, descriptor, gate, starter, end: None })
}

/// Waits for the ends of tasks, until this time of the monotonic clock, nanoseconds: whether all have
/// ended.
///
/// The thread has a real-time priority meanwhile, if that is allowed: it is to see each end when it comes,
/// although more tasks want to run than there are processors.
pub fn wait_for(tasks: &mut [&mut Task], until: i64) -> io::Result<bool> {
    let urgent = has_priority(0);
    let all = see_ends(tasks, until);
    if urgent {
        has_usual_priority();
    }
    all
}

fn see_ends(tasks: &mut [&mut Task], until: i64) -> io::Result<bool> {
    let watched = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut left = 0;
    for (number, task) in tasks.iter().enumerate().filter(|(_, task)| task.end.is_none()) {
        let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLONESHOT, number as u64);
        watched.add(&task.descriptor, event)?;
        left += 1;
    }
    // Nothing else is done while tasks end: it would keep others from ending.
    let mut seen = Vec::with_capacity(left);
    let mut events = [EpollEvent::empty(); 64];
    while seen.len() < left {
        let time = until.saturating_sub(now()).max(0).div_euclid(1_000_000) + 1;
        let timeout = EpollTimeout::try_from(time.min(1_000_000)).unwrap_or(EpollTimeout::ZERO);
        let count = match watched.wait(&mut events, timeout) {
            Ok(0) if now() >= until => break,
            Ok(count) => count,
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let ended = now();
        seen.extend(events[..count].iter().map(|event| (event.data() as usize, ended)));
    }
    for &(number, ended) in &seen {
        tasks[number].see_end(ended);
    }
    Ok(seen.len() == left)
}

fn reap(pid: Pid) -> io::Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: numbers alone, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are written to places for them.
    let found = unsafe { libc::wait4(pid.as_raw(), &raw mut status, libc::__WALL, &raw mut usage) };
    if found < 0 {
        return Err(io::Error::last_os_error());
    }
    let exit_status =
        if libc::WIFSIGNALED(status) { -libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
    Ok((exit_status, usage))
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}

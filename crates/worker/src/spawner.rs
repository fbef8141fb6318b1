//! Spawner: the small process that starts workers by forking itself.
//!
//! It is prepared once (a Python spawner has imported the modules of its workers), has one thread, and only forks,
//! reaps and reports, so forking it is cheap and safe. When the client is gone it ends its workers at once, and they
//! end with it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridrpc_link::{LinkError, NOT_PRELOADED, Received, Receiver, Sender, Socket};
use gridrpc_sys::memory;
use gridrpc_transport::Unix;
use gridrpc_wire::{Message, Prepare};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getppid, setpgid};

use crate::leftovers::Leftovers;
use crate::module::preload;
use crate::orphan;
use crate::stopped::Stopped;

/// Role of the process after [`Spawner::run`].
#[derive(Debug)]
pub enum Role {
    /// It is a new worker with this connection.
    Worker(OwnedFd),
    /// It was the spawner and has nothing left to do.
    Done,
}

/// The spawner's state.
#[derive(Debug)]
pub struct Spawner {
    receiver: Receiver,
    sender: Sender,
    children: SignalFd,
    /// Process ids of the live workers, by number.
    workers: HashMap<u32, Pid>,
    /// Compiled modules that still have to be loaded.
    to_load: Vec<PathBuf>,
    leftovers: Leftovers,
    stopped: Stopped,
    old_mask: SigSet,
    /// When to end the remaining workers; set once the client wants no more workers.
    closing: Option<Instant>,
    /// When to run deferred preparation for replacement workers; set when the first workers have been started.
    leisure: Option<Instant>,
    had_leisure: bool,
}

/// A request to start workers: their numbers, and three descriptors for each.
type SpawnRequest = (Vec<u32>, Vec<OwnedFd>);

/// How long workers have to end by themselves.
const GRACE: Duration = Duration::from_millis(300);
/// How long killed processes may take to end.
const DYING: Duration = Duration::from_secs(1);
/// How long after the first workers the deferred preparation starts.
const LEISURE: Duration = Duration::from_millis(50);
/// When memory runs out, the kernel ends workers before the client, so that one call is lost, not all of them.
const OOM_SCORE: &str = "300";

impl Spawner {
    /// Takes the control connection from standard input, and prepares this process.
    ///
    /// # Errors
    /// When standard input is no socket or the system refuses something.
    pub fn new() -> io::Result<Spawner> {
        let control = io::stdin().as_fd().try_clone_to_owned()?;
        orphan::end_with_client(control.as_fd())?;
        let control: Socket = Arc::new(Unix(control));
        // Workers must not read the control connection, nor the terminal.
        nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
        // Ctrl-C on the terminal is for the client, which then ends this process.
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        // Not allowed everywhere, and never required.
        let _ = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE);
        // A client that ignores SIGCHLD must not make this process ignore it.
        // SAFETY: no handler is set.
        unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl)? };
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let mut old_mask = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), Some(&mut old_mask))?;
        let children = SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Spawner {
            receiver: Receiver::new(Arc::clone(&control), 0),
            sender: Sender::new(control),
            children,
            workers: HashMap::new(),
            to_load: Vec::new(),
            leftovers: Leftovers::new()?,
            stopped: Stopped::new(),
            old_mask,
            closing: None,
            leisure: None,
            had_leisure: false,
        })
    }

    /// Serves the client until it is gone. `prepare` receives the settings that workers need, or nothing when the
    /// first workers have been started and there is time for deferred preparation. `fork` returns the child's process
    /// id, or none in the child.
    ///
    /// # Errors
    /// When the client breaks the protocol, or `prepare` fails.
    pub fn run<E: From<LinkError>>(
        mut self,
        prepare: impl FnMut(&Prepare<'_>) -> Result<(), E>,
        fork: impl FnMut() -> Result<Option<i32>, E>,
    ) -> Result<Role, E> {
        gridrpc_shm::mark_forked();
        // Determined once, for all workers.
        let _ = memory::most();
        let ours = Pid::this();
        let role = self.serve(prepare, fork);
        // In a new worker an error is its own, but the inherited state is not.
        if role.is_err() && Pid::this() == ours {
            self.end();
        }
        role
    }

    fn serve<E: From<LinkError>>(
        &mut self,
        mut prepare: impl FnMut(&Prepare<'_>) -> Result<(), E>,
        mut fork: impl FnMut() -> Result<Option<i32>, E>,
    ) -> Result<Role, E> {
        loop {
            let (control, child) = self.wait().map_err(LinkError::from)?;
            if child {
                self.reap()?;
            }
            if control {
                if !self.receive()? {
                    return Ok(self.end());
                }
                let mut requests = self.take_requests(&mut prepare)?;
                // Requests that arrived during preparation may need preparation too.
                while !requests.is_empty() && self.has_come().map_err(LinkError::from)? {
                    if !self.receive()? {
                        return Ok(self.end());
                    }
                    requests.append(&mut self.take_requests(&mut prepare)?);
                }
                for (workers, descriptors) in requests {
                    if let Some(connection) = self.spawn(&workers, descriptors, &mut fork)? {
                        return Ok(Role::Worker(connection));
                    }
                }
            }
            self.end_stopped();
            if self.leisure.is_some_and(|from| Instant::now() >= from) {
                (self.leisure, self.had_leisure) = (None, true);
                let nothing = Prepare::default();
                orphan::while_busy(self.leftovers.own(), || prepare(&nothing))?;
                self.leftovers.note_own(self.workers.values().copied());
            }
            if let Some(until) = self.closing {
                if Instant::now() >= until {
                    self.end_workers();
                }
                if self.workers.is_empty() && self.leftovers.is_empty() {
                    return Ok(Role::Done);
                }
            }
        }
    }

    /// Handles the client's messages. Returns `false` if the client is gone.
    fn receive(&mut self) -> Result<bool, LinkError> {
        match self.receiver.fill() {
            Ok(count) => Ok(count > 0),
            // The client had not read all messages.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for the client or a child. Returns the ready ones.
    fn wait(&mut self) -> io::Result<(bool, bool)> {
        // Once they have been killed, the workers end without further action.
        let closing = self.closing.filter(|until| *until > Instant::now());
        let dues = [closing, self.leftovers.kill(false), self.stopped.next(), self.leisure];
        let timeout = time_until(dues.into_iter().flatten().min());
        let control = self.receiver.socket();
        let children = self.children.as_fd();
        let mut waited =
            [PollFd::new(control, PollFlags::POLLIN), PollFd::new(children, PollFlags::POLLIN)];
        match poll(&mut waited, timeout) {
            Err(nix::errno::Errno::EINTR) => Ok((false, false)),
            Err(errno) => Err(errno.into()),
            Ok(_) => Ok((is_ready(&waited[0]), is_ready(&waited[1]))),
        }
    }

    /// Whether another message of the client has arrived.
    fn has_come(&self) -> io::Result<bool> {
        let mut waited = [PollFd::new(self.receiver.socket(), PollFlags::POLLIN)];
        match poll(&mut waited, PollTimeout::ZERO) {
            Err(nix::errno::Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
            Ok(_) => Ok(is_ready(&waited[0])),
        }
    }

    fn take_requests<E: From<LinkError>>(
        &mut self,
        prepare: &mut impl FnMut(&Prepare<'_>) -> Result<(), E>,
    ) -> Result<Vec<SpawnRequest>, E> {
        let Spawner { receiver, workers, closing, leftovers, to_load, .. } = self;
        let mut requests = Vec::new();
        receiver.drain(|received: Received<'_>| -> Result<(), E> {
            match received.message {
                Message::Prepare(preparation) => {
                    to_load.extend(preparation.libraries.iter().map(PathBuf::from));
                    orphan::while_busy(leftovers.own(), || {
                        prepare(&preparation)?;
                        // A loading error is reported to the next request for workers.
                        let _ = load(to_load);
                        Ok::<(), E>(())
                    })?;
                    leftovers.note_own(workers.values().copied());
                }
                Message::Spawn { workers } => requests.push((workers, received.descriptors)),
                Message::Kill { worker } => {
                    if let Some(pid) = workers.get(&worker) {
                        // It may have ended by itself; it has not been reaped yet.
                        let _ = kill(*pid, Signal::SIGKILL);
                    }
                }
                Message::Goodbye => *closing = Some(Instant::now() + GRACE),
                other => {
                    return Err(LinkError::Unexpected(format!("{:?}", other.kind())).into());
                }
            }
            Ok(())
        })?;
        Ok(requests)
    }

    /// Forks the workers of one request. In a child, returns its connection.
    fn spawn<E: From<LinkError>>(
        &mut self,
        workers: &[u32],
        descriptors: Vec<OwnedFd>,
        fork: &mut impl FnMut() -> Result<Option<i32>, E>,
    ) -> Result<Option<OwnedFd>, E> {
        if let Err(why) = orphan::while_busy(self.leftovers.own(), || load(&mut self.to_load)) {
            let error = format!("{NOT_PRELOADED}{why}");
            for worker in workers {
                let failed_start =
                    Message::Started { worker: *worker, pid: 0, passes: false, error: &error };
                self.report(&failed_start)?;
            }
            self.flush()?;
            return Ok(None);
        }
        let ours = Pid::this();
        let mut descriptors = descriptors.into_iter();
        for worker in workers {
            let mut next = || descriptors.next();
            let (Some(connection), Some(stdout), Some(stderr)) = (next(), next(), next()) else {
                return Err(LinkError::Unexpected("a request without descriptors".into()).into());
            };
            match fork() {
                Ok(None) => {
                    self.become_worker(*worker, ours, &stdout, &stderr).map_err(LinkError::from)?;
                    return Ok(Some(connection));
                }
                Ok(Some(pid)) => {
                    self.workers.insert(*worker, Pid::from_raw(pid));
                    let (pid, passes, error) = (pid as u32, false, "");
                    self.report(&Message::Started { worker: *worker, pid, passes, error })?;
                }
                Err(_) => {
                    let error = &io::Error::last_os_error().to_string();
                    let (pid, passes) = (0, true);
                    self.report(&Message::Started { worker: *worker, pid, passes, error })?;
                }
            }
        }
        if !self.had_leisure && self.leisure.is_none() {
            self.leisure = Some(Instant::now() + LEISURE);
        }
        self.flush()?;
        Ok(None)
    }

    /// In a new child: cuts its ties to the spawner, except that it ends with it.
    fn become_worker(
        &self,
        worker: u32,
        parent: Pid,
        stdout: &OwnedFd,
        stderr: &OwnedFd,
    ) -> io::Result<()> {
        nix::unistd::dup2_stdout(stdout)?;
        nix::unistd::dup2_stderr(stderr)?;
        orphan::leave_to_spawner()?;
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&self.old_mask), None)?;
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        self.leftovers.become_worker()?;
        // If the spawner is killed, the client ends the whole group.
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        if getppid() != parent {
            // The spawner ended before the signal was set up.
            std::process::exit(0);
        }
        let name = std::ffi::CString::new(format!("gridrpc-w{worker}"))?;
        nix::sys::prctl::set_name(&name)?;
        Ok(())
    }

    /// Reports the children that have ended.
    fn reap(&mut self) -> Result<(), LinkError> {
        while let Ok(Some(_)) = self.children.read_signal() {}
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED | WaitPidFlag::WCONTINUED;
        let mut ended = false;
        let mut failed_start = Ok(());
        loop {
            let (pid, status, signal) = match waitpid(None, Some(flags)) {
                Ok(WaitStatus::Exited(pid, status)) => (pid, status as u32, 0),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, 0, signal as u32),
                Ok(WaitStatus::Stopped(pid, _)) => {
                    if self.workers.values().any(|worker| *worker == pid) {
                        self.stopped.has_stopped(pid);
                    }
                    continue;
                }
                Ok(WaitStatus::Continued(pid)) => {
                    self.stopped.goes_on(pid);
                    continue;
                }
                Ok(WaitStatus::StillAlive) | Err(_) => break,
                Ok(_) => continue,
            };
            ended = true;
            self.stopped.goes_on(pid);
            self.leftovers.ended(pid);
            let worker = self.workers.iter().find(|(_, other)| **other == pid).map(|(id, _)| *id);
            if let Some(worker) = worker {
                self.workers.remove(&worker);
                let pid = pid.as_raw() as u32;
                failed_start =
                    failed_start.and(self.report(&Message::Exited { worker, pid, status, signal }));
            }
        }
        if ended {
            self.leftovers.look(self.workers.values().copied());
        }
        failed_start?;
        self.flush()
    }

    /// Ends workers that have been stopped for too long.
    fn end_stopped(&mut self) {
        for pid in self.stopped.overdue() {
            let worker = self.workers.iter().find(|(_, other)| **other == pid).map(|(id, _)| *id);
            if let Some(worker) = worker {
                eprintln!(
                    "gridrpc: worker {worker} (process {pid}) was stopped and did not continue: it is \
                     ended (see `stall`)"
                );
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
    }

    /// The client is gone: ends the workers and their leftovers.
    fn end(&mut self) -> Role {
        self.end_workers();
        let until = Instant::now() + GRACE + DYING;
        self.closing = Some(until);
        while !(self.workers.is_empty() && self.leftovers.is_empty()) && Instant::now() < until {
            // The connection is at its end, and would always be ready.
            let due = self.leftovers.kill(false).unwrap_or(until).min(until);
            let mut waited = [PollFd::new(self.children.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waited, time_until(Some(due))) {
                // There is nobody left to report to.
                Ok(_) | Err(nix::errno::Errno::EINTR) => drop(self.reap()),
                Err(_) => break,
            }
        }
        self.leftovers.kill(true);
        Role::Done
    }

    fn end_workers(&self) {
        for pid in self.workers.values() {
            let _ = kill(*pid, Signal::SIGKILL);
        }
    }

    fn report(&mut self, message: &Message<'_>) -> Result<(), LinkError> {
        Ok(self.sender.push(message)?)
    }

    fn flush(&mut self) -> Result<(), LinkError> {
        // The receiving half detects a client that is gone.
        let _ = self.sender.flush();
        Ok(())
    }
}

/// Loads modules, and removes the loaded ones from the list.
fn load(modules: &mut Vec<PathBuf>) -> Result<(), String> {
    while let Some(module) = modules.first() {
        preload::load(module)?;
        modules.remove(0);
    }
    Ok(())
}

fn time_until(due: Option<Instant>) -> PollTimeout {
    let Some(due) = due else { return PollTimeout::NONE };
    let left = due.saturating_duration_since(Instant::now());
    PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::ZERO)
}

fn is_ready(waited: &PollFd<'_>) -> bool {
    waited.any().unwrap_or(false)
}

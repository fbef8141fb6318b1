//! Workers of this machine that have ended or are to end, and the spawner's end.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use gridrpc_core::{CallId, Cause, Loss, Time, WorkerId};
use gridrpc_link::{LinkError, NOT_PRELOADED};
use gridrpc_shm::progress;
use gridrpc_sys::process::leftovers_end;
use gridrpc_sys::worker_groups::WorkerGroups;
use gridrpc_sys::{forks, monotonic_ns};
use gridrpc_wire::{Message, Order};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::output;
use crate::reactor::deadlines::{Deadline, Process, SpawnerRequest};
use crate::reactor::spawner::{ANSWER, Ending, Spawner, flush_control};
use crate::reactor::worker_input::WorkerInput;
use crate::reactor::{Reactor, shortage};
use crate::sync::now;

/// How long a spawner that has closed its connection has to report why, and to end by itself.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long an agent waits for its own end when another process has ended its workers, and the minimum interval
/// between such waits.
const OWN_END: Duration = Duration::from_millis(200);
const OWN_END_AGAIN: u64 = 2_000_000_000;

impl Reactor {
    /// Reads messages of the spawner.
    pub(super) fn poll_spawner(&mut self) {
        let Some(spawner) = &mut self.spawner else { return };
        match spawner.receiver.fill() {
            Ok(count) if count > 0 => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Ok(_) | Err(_) => {
                let wanted = self.closing.is_none();
                return self.spawner_ended_within(if wanted { LAST_WORDS } else { Duration::ZERO });
            }
        }
        let mut gone = Vec::new();
        self.common.lock().forked = true;
        let heard = spawner.receiver.drain(|received| -> Result<(), LinkError> {
            match received.message {
                Message::Started { worker, pid, .. } if pid != 0 => {
                    if let Some(Some(worker_input)) = self.worker_inputs.get_mut(worker as usize) {
                        worker_input.started = true;
                    }
                }
                Message::Started { worker, passes, error, .. } => {
                    let cause = match passes {
                        true => shortage::not_forked(error),
                        false => Cause::Failed(error.to_owned()),
                    };
                    gone.push((worker, 0, cause));
                }
                Message::Exited { worker, pid, status, signal: 0 } => {
                    gone.push((worker, pid, Cause::Exit(status)));
                }
                Message::Exited { worker, pid, signal, .. } => {
                    gone.push((worker, pid, Cause::Signal { signal, out_of_memory: false }));
                }
                other => return Err(LinkError::Unexpected(format!("{:?}", other.kind()))),
            }
            Ok(())
        });
        for (worker, pid, cause) in gone {
            self.worker_ended(worker, pid, cause);
        }
        if heard.is_err() {
            self.spawner_ended();
        }
    }

    /// Handles the end of a worker process: takes its unsent messages and reports its loss.
    fn worker_ended(&mut self, index: u32, pid: u32, mut cause: Cause) {
        if self.worker_inputs.get(index as usize).is_none_or(Option::is_none) {
            return;
        }
        while self.read_worker(index) {}
        self.take_rest(index);
        let Some(mut worker_input) = self.worker_inputs[index as usize].take() else { return };
        worker_input.read_output();
        // Descriptors that a child of the worker holds open would be reported forever.
        self.stop_watching(&worker_input);
        if let Some(why) = worker_input.broken {
            cause = Cause::Failed(why);
        }
        if let Cause::Signal { signal, out_of_memory } = &mut cause
            && *signal == libc::SIGKILL as u32
        {
            let kills = gridrpc_sys::out_of_memory_kills();
            *out_of_memory = kills > std::mem::replace(&mut self.memory_kills, kills);
        }
        if let Some(group) = worker_input.group {
            let limit = self.worker_groups.as_ref().and_then(WorkerGroups::memory);
            if let Some(limit) = limit.filter(|_| was_killed(&cause) && group.ran_out_of_memory()) {
                cause = Cause::MemoryLimit(limit);
            }
            self.to_remove.add(group);
        }
        // Other signals may be our own, or a bug in a function.
        if matches!(cause, Cause::Signal { signal, .. } if signal == libc::SIGTERM as u32) {
            self.await_own_end();
        }
        self.report_loss(WorkerId(index), pid, cause, worker_input.stderr.text());
    }

    /// Waits for the agent's own end. A batch system ends the processes of a job one after another. An agent whose
    /// workers end first would report killed workers; its launcher knows the real reason and reports it once the
    /// agent is gone too.
    fn await_own_end(&mut self) {
        if !self.config.is_of_agent || self.closing.is_some() {
            return;
        }
        if self.own_end_awaited.is_none_or(|last| last + OWN_END_AGAIN <= now()) {
            std::thread::sleep(OWN_END);
            self.own_end_awaited = Some(now());
        }
    }

    /// `pid`: 0 if the spawner has not reported the process id; the worker itself may have.
    pub(super) fn report_loss(&self, worker: WorkerId, pid: u32, cause: Cause, stderr: String) {
        // Calls whose functions have not started run elsewhere.
        let entered = progress::entered(&self.progress.mapping, worker.0);
        let recovered = match self.closing {
            None => self.outboxes.recover(worker.0),
            Some(_) => None,
        };
        let mut state = self.common.lock();
        let out = state.workers.disconnect(worker);
        let known_pid = out.as_ref().map_or(0, |out| out.pid);
        let pid = if pid == 0 { known_pid } else { pid };
        let loss = Loss { worker: worker.0, pid, host: self.host.clone(), cause, stderr };
        state.dismissed.remove(&worker);
        let now = Time(monotonic_ns());
        state.recovered =
            recovered.map(|(call, recovered)| (CallId(call), recovered, Order::NATIVE));
        state.drive(|core, out| core.worker_lost(now, worker, entered, loss, out));
        state.recovered = None;
        let broken = state.core.broken().cloned();
        self.common.finish(state);
        // Payloads that the worker still read are returned to the pool outside the lock.
        drop(out);
        self.common.workers_changed(broken.as_deref());
    }

    /// Handles the end of the spawner and of its workers: the kernel ends them with it.
    pub(super) fn spawner_ended(&mut self) {
        self.spawner_ended_within(Duration::ZERO);
    }

    /// Does the same after waiting up to `timeout` for the spawner to end by itself.
    fn spawner_ended_within(&mut self, timeout: Duration) {
        let Some(mut spawner) = self.spawner.take() else { return };
        let _ = self.epoll.delete(spawner.receiver.socket());
        forks::forget(spawner.receiver.socket().as_raw_fd());
        // It has closed its connection or is overdue: it has nothing left to do.
        let Ending { how, signal } = spawner.end(timeout);
        if matches!(signal, Some(libc::SIGTERM | libc::SIGKILL)) {
            self.await_own_end();
        }
        let stderr = self.spawner_tail.as_mut().map_or_else(String::new, |tail| {
            tail.read();
            tail.text()
        });
        self.stop_watching_spawner_stderr();
        let why = self.why_it_ended(&spawner, &Ending { how, signal });
        for index in 0..self.worker_inputs.len() as u32 {
            if self.worker_inputs[index as usize].is_some() {
                self.end_group(index);
            }
            if let Some(worker_input) = &mut self.worker_inputs[index as usize] {
                worker_input.read_output();
                let own = worker_input.stderr.text();
                while self.read_worker(index) {}
                self.take_rest(index);
                if let Some(worker_input) = self.worker_inputs[index as usize].take() {
                    self.stop_watching(&worker_input);
                    worker_input.group.into_iter().for_each(|group| self.to_remove.add(group));
                }
                let text = if own.is_empty() { stderr.clone() } else { own };
                self.report_loss(WorkerId(index), 0, Cause::Failed(why.clone()), text);
            }
        }
    }

    /// The reason why the spawner ended. Before its first worker it loads the preloaded modules.
    fn why_it_ended(&self, spawner: &Spawner, ending: &Ending) -> String {
        let Ending { how, signal } = ending;
        let launch = &self.config.launch;
        let libraries = &launch.preparation.preload.libraries;
        if self.worker_inputs.iter().flatten().any(|worker_input| worker_input.started)
            || (libraries.is_empty() && spawner.forked)
        {
            return format!("the process that starts workers ended ({how})");
        }
        if libraries.is_empty() {
            // No hint for a killed spawner: whoever killed it knows why.
            let advice = if signal.is_none() { launch.advised() } else { String::new() };
            return format!(
                "`{}` ended ({how}) before it had started a worker{advice}",
                launch.command()
            );
        }
        let files = libraries.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ");
        format!(
            "{NOT_PRELOADED}the process that loads {files} ended ({how}): take out the one that ends it, and \
             each worker loads it before its first call of it"
        )
    }

    /// Ends the processes that a worker's functions have started, if the spawner no longer can.
    fn end_group(&self, index: u32) {
        let mut state = self.common.lock();
        let pid = state.workers.get(WorkerId(index)).map_or(0, |out| out.pid);
        drop(state);
        if pid != 0 && leftovers_end() {
            let _ = killpg(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
    }

    /// Handles a request that the spawner has not answered in time: the spawner may have been stopped.
    pub(super) fn see_to_unanswered(&mut self, requested: SpawnerRequest) {
        let worker_input = self.worker_inputs[requested.process.index as usize].as_ref();
        let done =
            worker_input.is_none_or(|worker_input| !requested.to_end && worker_input.started);
        let Some(spawner) = self.spawner.as_ref().filter(|_| !done) else { return };
        if requested.to_end && requested.urged {
            return self.spawner_ended();
        }
        spawner.urge();
        self.deadlines
            .add(now() + ANSWER, Deadline::Answer(SpawnerRequest { urged: true, ..requested }));
    }

    /// Makes the spawner end workers at once.
    pub(super) fn kill(&mut self, workers: &[WorkerId]) {
        let Some(spawner) = &mut self.spawner else { return };
        for worker in workers {
            if spawner.sender.push(&Message::Kill { worker: worker.0 }).is_err() {
                // Workers that cannot be ended one by one end with the spawner.
                return self.spawner_ended();
            }
            let process =
                Process { index: worker.0, generation: self.generations[worker.0 as usize] };
            let requested = SpawnerRequest { process, to_end: true, urged: false };
            self.deadlines.add(now() + ANSWER, Deadline::Answer(requested));
        }
        // The receiving half detects a spawner that is gone.
        let _ = flush_control(&mut spawner.sender);
    }

    /// Tells the spawner that no more workers are needed.
    pub(super) fn say_goodbye(&mut self) {
        // No worker has been started yet, and none will be.
        self.forked = None;
        if let Some(spawner) = &mut self.spawner {
            if spawner.sender.push(&Message::Goodbye).is_err() {
                return self.spawner_ended();
            }
            let _ = flush_control(&mut spawner.sender);
        }
    }

    fn stop_watching(&self, worker_input: &WorkerInput) {
        let outputs = worker_input.stdout.iter().chain([&worker_input.stderr]);
        for descriptor in
            outputs.map(output::OutputPipe::descriptor).chain([worker_input.receiver.socket()])
        {
            // Fails for a descriptor that has already reached its end.
            let _ = self.epoll.delete(descriptor);
        }
    }

    pub(super) fn stop_watching_spawner_stderr(&mut self) {
        if let Some(tail) = self.spawner_tail.take() {
            let _ = self.epoll.delete(tail.descriptor());
        }
    }
}

fn was_killed(cause: &Cause) -> bool {
    matches!(cause, Cause::Signal { signal, .. } if *signal == libc::SIGKILL as u32)
}

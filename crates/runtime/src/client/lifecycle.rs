//! The reactor's other half: starting the spawner and the workers, and burying them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use gridrpc_core::{CallId, Cause, Loss, Time, WorkerId};
use gridrpc_wire::{Hello, Message, Place, Prepare, VERSION};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::borrowed::Mapped;
use crate::client::common::Common;
use crate::client::deadlines::{Asked, Due, Process};
use crate::client::launch::{Pair, Spawner, do_not_block, output_pipe, pair};
use crate::client::output::{self, Output, Passing, Stream, Upward};
use crate::client::reactor::{Inlet, Reactor, Token};
use crate::client::shortage;
use crate::client::state::outgoing::WorkerOut;
use crate::client::sync::now;
use crate::forks;
use crate::link::{LinkError, Outbound, Placement, Push, Receiver, Sender, Socket, Watch};
use crate::sys::{self, monotonic_ns};
use crate::worker::leftovers;
use crate::worker::outboxes::BoxMemory;
use crate::worker::progress::{self, GivingBack};

/// How many workers one request starts. The spawner forks the first while the next are prepared, and
/// each process has few descriptors that are not its own. At 256 of them and more the kernel
/// enlarges the table of a process with threads, which takes it 16 ms.
const BATCH: usize = 16;
/// The longest result that is taken, bytes: the address space sets the real bound.
pub(super) const MAX_PAYLOAD: u64 = 1 << 40;
/// How often a full kernel queue of descriptors in flight is tried again, and after how long.
const FULL_TRIES: u32 = 2000;
const FULL_WAIT: Duration = Duration::from_millis(1);

/// How long the spawner has for an answer before somebody looks to it, ns.
const ANSWER: u64 = 2_000_000_000;

/// How long a spawner that has closed its connection has to say why, and to end by itself.
const LAST_WORDS: Duration = Duration::from_millis(300);

impl Reactor {
    /// Starts the next processes that have been asked for: some in one turn, so that the first can be
    /// heard while others are still to be started.
    pub(super) fn start_next(&mut self) {
        let count = self.to_start.len().min(BATCH);
        let workers: Vec<_> = self.to_start.drain(..count).collect();
        // It prepares itself while connections are made.
        if !workers.is_empty() && self.see_to_spawner(&workers) {
            self.start_batch(&workers);
        }
    }

    /// Sees that there is a spawner. If there can be none, these workers are lost.
    fn see_to_spawner(&mut self, workers: &[WorkerId]) -> bool {
        if self.spawner.is_some() {
            return true;
        }
        let Err(error) = self.start_spawner() else { return true };
        let cause = shortage::no_spawner(&self.config.launch.program, &error);
        for worker in workers {
            self.report_loss(*worker, 0, cause.clone(), String::new());
        }
        false
    }

    fn start_batch(&mut self, workers: &[WorkerId]) {
        for worker in workers {
            self.make_place(worker.0);
        }
        let pairs: io::Result<Vec<Pair>> = workers.iter().map(|_| pair()).collect();
        if let Err(error) = pairs.and_then(|pairs| self.try_batch(workers, pairs)) {
            let cause = shortage::not_started(&error);
            for worker in workers {
                self.inlets[worker.0 as usize] = None;
                self.report_loss(*worker, 0, cause.clone(), String::new());
            }
        }
    }

    fn start_spawner(&mut self) -> io::Result<()> {
        let mut spawner = match self.forked.take() {
            Some(forked) => Spawner::take_over(forked)?,
            None => Spawner::start(&self.config.launch)?,
        };
        forks::close_in_children(spawner.receiver.socket().as_raw_fd());
        let watched = EpollEvent::new(EpollFlags::EPOLLIN, Token::Spawner.encode());
        self.epoll.add(spawner.receiver.socket(), watched)?;
        if let Some(stderr) = spawner.stderr.take() {
            do_not_block(&stderr)?;
            let tail =
                output::Outlet::new(stderr, Stream::Stderr, Passing::AsItComes, &self.printers);
            let watched = EpollEvent::new(EpollFlags::EPOLLIN, Token::SpawnerStderr.encode());
            self.epoll.add(tail.descriptor(), watched)?;
            self.spawner_tail = Some(tail);
        }
        let preparation = &self.config.launch.preparation;
        let message = Message::Prepare(Prepare {
            directory: &preparation.directory,
            path: preparation.path.iter().map(String::as_str).collect(),
            modules: preparation.modules.iter().map(String::as_str).collect(),
        });
        spawner.sender.push(&message).map_err(io::Error::other)?;
        self.spawner = Some(spawner);
        Ok(())
    }

    /// Has the spawner import modules before it goes on forking.
    pub(super) fn prepare(&mut self, modules: &[String]) {
        if modules.is_empty() {
            return;
        }
        let Some(spawner) = &mut self.spawner else { return };
        let modules = modules.iter().map(String::as_str).collect();
        let message = Message::Prepare(Prepare { directory: "", path: Vec::new(), modules });
        if spawner.sender.push(&message).is_ok() {
            // A spawner that is gone shows itself on its receiving half.
            let _ = flush_control(&mut spawner.sender);
        }
    }

    fn try_batch(&mut self, workers: &[WorkerId], pairs: Vec<Pair>) -> io::Result<()> {
        let mut descriptors = Vec::with_capacity(3 * workers.len());
        let output = self.config.output;
        let own_stdout = if output == Output::Plain { Some(own_stdout()?) } else { None };
        for (worker, pair) in workers.iter().zip(pairs) {
            let index = worker.0;
            let (stderr, their_stderr) = output_pipe()?;
            let (stdout, their_stdout) = match &own_stdout {
                Some(stdout) => (None, Arc::clone(stdout)),
                None => output_pipe().map(|(ours, theirs)| (Some(ours), theirs))?,
            };
            descriptors.extend([pair.theirs, their_stdout, their_stderr]);
            let generation = self.generations[index as usize].wrapping_add(1);
            self.generations[index as usize] = generation;
            progress::reset(&self.progress.mapping, index);

            let token = Token::Worker { index, generation }.encode();
            let mapped = Mapped::given_back(GivingBack::new(&self.progress.mapping, index))
                .passed_on_by(&self.common.pool);
            let watch = watch_writing(&self.epoll, &pair.ours, token);
            let up = Arc::new(Outbound::new(Arc::clone(&pair.ours), watch));
            let out = WorkerOut::new(Arc::clone(&up), mapped.returns());
            let outbox = self.greet(&up, index)?;
            let watched = EpollEvent::new(EpollFlags::EPOLLIN, token);
            self.epoll.add(pair.ours.socket(), watched)?;
            let passing = match output {
                Output::Plain => Passing::AsItComes,
                Output::Labelled => Passing::Labelled(format!("[worker {index}] ")),
                Output::Upstream => match &self.common.upstream {
                    Some(client) => {
                        Passing::Up(Upward { client: Arc::clone(client), worker: index })
                    }
                    None => Passing::Not,
                },
                Output::Kept => Passing::Not,
            };
            let watch = |pipe, stream, token: Token| -> io::Result<output::Outlet> {
                let output = output::Outlet::new(pipe, stream, passing.clone(), &self.printers);
                let event = EpollEvent::new(EpollFlags::EPOLLIN, token.encode());
                self.epoll.add(output.descriptor(), event)?;
                Ok(output)
            };
            let token = Token::WorkerStderr { index, generation };
            let stderr = watch(stderr, Stream::Stderr, token)?;
            let token = Token::WorkerStdout { index, generation };
            let stdout = stdout.map(|pipe| watch(pipe, Stream::Stdout, token)).transpose()?;
            up.flush();
            let mut receiver = Receiver::new(pair.ours, MAX_PAYLOAD);
            receiver.place_streams(placement(&self.common));

            self.inlets[index as usize] = Some(Inlet {
                generation,
                up,
                receiver,
                outbox,
                mapped,
                stdout,
                stderr,
                host: self.host.clone(),
                started: false,
                broken: None,
                at_end: false,
            });
            let mut state = self.common.lock();
            state.connect(*worker, out);
            self.common.finish(state);
        }
        let Some(spawner) = &mut self.spawner else { return Err(io::ErrorKind::NotFound.into()) };
        let message = Message::Spawn { workers: workers.iter().map(|worker| worker.0).collect() };
        spawner.sender.push_with(&message, descriptors).map_err(io::Error::other)?;
        for worker in workers {
            let process =
                Process { index: worker.0, generation: self.generations[worker.0 as usize] };
            let asked = Asked { process, to_end: false, urged: false };
            self.deadlines.add(now() + ANSWER, Due::Answer(asked));
        }
        flush_control(&mut spawner.sender)
    }

    /// Places are numbered in the order in which they are first asked for.
    fn make_place(&mut self, index: u32) {
        let places = self.inlets.len().max(index as usize + 1);
        self.inlets.resize_with(places, || None);
        self.generations.resize(places, 0);
    }

    fn stop_watching(&self, inlet: &Inlet) {
        let outputs = inlet.stdout.iter().chain([&inlet.stderr]);
        for descriptor in outputs.map(output::Outlet::descriptor).chain([inlet.receiver.socket()]) {
            // Fails for one that has been at its end before.
            let _ = self.epoll.delete(descriptor);
        }
    }

    /// Returns where the worker is to lay what it holds back.
    fn greet(&mut self, up: &Outbound, worker: u32) -> io::Result<BoxMemory> {
        let hello = Message::Hello(Hello {
            min_version: VERSION,
            max_version: VERSION,
            shared_memory: true,
            worker,
            shared_threshold: self.config.shared_threshold as u64,
            clock: monotonic_ns(),
        });
        let (file, outbox) = self.outboxes.prepare(worker)?;
        let files = vec![Arc::clone(&self.progress.file), file];
        up.pushing().push_with(&hello, files).map_err(io::Error::other)?;
        Ok(outbox)
    }

    /// Has the spawner end workers at once.
    pub(super) fn kill(&mut self, workers: &[WorkerId]) {
        let Some(spawner) = &mut self.spawner else { return };
        for worker in workers {
            if spawner.sender.push(&Message::Kill { worker: worker.0 }).is_err() {
                // Workers that cannot be ended one by one end with the spawner.
                return self.bury_spawner();
            }
            let process =
                Process { index: worker.0, generation: self.generations[worker.0 as usize] };
            let asked = Asked { process, to_end: true, urged: false };
            self.deadlines.add(now() + ANSWER, Due::Answer(asked));
        }
        // A spawner that is gone shows itself on its receiving half.
        let _ = flush_control(&mut spawner.sender);
    }

    /// Tells the spawner that no more workers are wanted.
    pub(super) fn say_goodbye(&mut self) {
        // No worker has been started yet, and none will be.
        self.forked = None;
        if let Some(spawner) = &mut self.spawner {
            if spawner.sender.push(&Message::Goodbye).is_err() {
                return self.bury_spawner();
            }
            let _ = flush_control(&mut spawner.sender);
        }
    }

    /// Reads what the spawner reports.
    pub(super) fn hear_spawner(&mut self) {
        let Some(spawner) = &mut self.spawner else { return };
        match spawner.receiver.fill() {
            Ok(count) if count > 0 => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Ok(_) | Err(_) => {
                let wanted = self.closing.is_none();
                return self.bury_spawner_after(if wanted { LAST_WORDS } else { Duration::ZERO });
            }
        }
        let mut gone = Vec::new();
        self.common.lock().forked = true;
        let heard = spawner.receiver.drain(|received| -> Result<(), LinkError> {
            match received.message {
                Message::Started { worker, pid, .. } if pid != 0 => {
                    if let Some(Some(inlet)) = self.inlets.get_mut(worker as usize) {
                        inlet.started = true;
                    }
                }
                Message::Started { worker, error, .. } => {
                    gone.push((worker, 0, shortage::not_forked(error)));
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
            self.bury(worker, pid, cause);
        }
        if heard.is_err() {
            self.bury_spawner();
        }
    }

    /// A worker's process is gone: take what it still had sent, and report its loss.
    fn bury(&mut self, index: u32, pid: u32, mut cause: Cause) {
        if self.inlets.get(index as usize).is_none_or(Option::is_none) {
            return;
        }
        while self.read_worker(index) {}
        self.take_rest(index);
        let Some(mut inlet) = self.inlets[index as usize].take() else { return };
        inlet.read_output();
        // Descriptors that a child of the worker holds open would be reported for ever.
        self.stop_watching(&inlet);
        if let Some(why) = inlet.broken {
            cause = Cause::Failed(why);
        }
        if let Cause::Signal { signal, out_of_memory } = &mut cause
            && *signal == libc::SIGKILL as u32
        {
            let kills = sys::out_of_memory_kills();
            *out_of_memory = kills > std::mem::replace(&mut self.memory_kills, kills);
        }
        self.report_loss(WorkerId(index), pid, cause, inlet.stderr.text());
    }

    /// `pid`: 0 if the spawner has not said which process it was; the worker itself may have.
    fn report_loss(&self, worker: WorkerId, pid: u32, cause: Cause, stderr: String) {
        let begun = progress::begun(&self.progress.mapping, worker.0);
        let mut state = self.common.lock();
        let out = state.workers.disconnect(worker);
        let told = out.as_ref().map_or(0, |out| out.pid);
        let pid = if pid == 0 { told } else { pid };
        let loss = Loss { worker: worker.0, pid, host: self.host.clone(), cause, stderr };
        state.dismissed.remove(&worker);
        let now = Time(monotonic_ns());
        state.drive(|core, out| core.worker_lost(now, worker, begun, loss, out));
        self.common.finish(state);
        // What the worker still read goes back to the pool, outside the lock.
        drop(out);
        self.common.changed.notify_all();
        if let Some(upstream) = &self.common.upstream {
            upstream.changed();
        }
    }

    /// The spawner is gone, and so are its workers: the kernel ends them with it.
    pub(super) fn bury_spawner(&mut self) {
        self.bury_spawner_after(Duration::ZERO);
    }

    /// The same, when it has had so long to end by itself.
    fn bury_spawner_after(&mut self, patience: Duration) {
        let Some(mut spawner) = self.spawner.take() else { return };
        let _ = self.epoll.delete(spawner.receiver.socket());
        forks::forget(spawner.receiver.socket().as_raw_fd());
        // It has closed its connection, or is overdue: it has nothing left to do.
        let how = spawner.end(patience);
        let stderr = self.spawner_tail.as_mut().map_or_else(String::new, |tail| {
            tail.read();
            tail.text()
        });
        self.stop_watching_spawner_stderr();
        for index in 0..self.inlets.len() as u32 {
            if self.inlets[index as usize].is_some() {
                self.end_group(index);
            }
            if let Some(inlet) = &mut self.inlets[index as usize] {
                inlet.read_output();
                let own = inlet.stderr.text();
                while self.read_worker(index) {}
                self.take_rest(index);
                let why = format!("the process that starts workers ended ({how})");
                if let Some(inlet) = self.inlets[index as usize].take() {
                    self.stop_watching(&inlet);
                }
                let text = if own.is_empty() { stderr.clone() } else { own };
                self.report_loss(WorkerId(index), 0, Cause::Failed(why), text);
            }
        }
    }

    /// Ends what the functions of a worker have started, if the spawner cannot do so any more.
    fn end_group(&self, index: u32) {
        let mut state = self.common.lock();
        let pid = state.workers.get(WorkerId(index)).map_or(0, |out| out.pid);
        drop(state);
        if pid != 0 && leftovers::end_with_worker() {
            let _ = killpg(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
    }

    /// Sees to what the spawner has not answered in time: somebody may have stopped it.
    pub(super) fn see_to_unanswered(&mut self, asked: Asked) {
        let inlet = self.inlets[asked.process.index as usize].as_ref();
        let done = inlet.is_none_or(|inlet| !asked.to_end && inlet.started);
        let Some(spawner) = self.spawner.as_ref().filter(|_| !done) else { return };
        if asked.to_end && asked.urged {
            return self.bury_spawner();
        }
        spawner.urge();
        self.deadlines.add(now() + ANSWER, Due::Answer(Asked { urged: true, ..asked }));
    }

    pub(super) fn stop_watching_spawner_stderr(&mut self) {
        if let Some(tail) = self.spawner_tail.take() {
            let _ = self.epoll.delete(tail.descriptor());
        }
    }
}

/// Our own standard output, for workers to write to; nowhere if there is none.
fn own_stdout() -> io::Result<Arc<OwnedFd>> {
    let copied = io::stdout().as_fd().try_clone_to_owned();
    Ok(Arc::new(match copied {
        Ok(stdout) => stdout,
        Err(_) => std::fs::File::options().write(true).open("/dev/null")?.into(),
    }))
}

/// Has results that callers want in memory of their own received there.
pub(super) fn placement(common: &Arc<Common>) -> Placement {
    let common = Arc::downgrade(common);
    Box::new(move |message, lengths| {
        let Message::Reply { call, sections, .. } = message else { return Vec::new() };
        let Some(common) = common.upgrade() else { return Vec::new() };
        let call = common.lock().core.payload(CallId(*call)).cloned();
        let Some(call) = call else { return Vec::new() };
        let streamed = sections.iter().enumerate();
        let streamed = streamed.filter(|(_, section)| section.place == Place::Stream);
        let places: Vec<_> = streamed.map(|(index, _)| call.sink(index)).collect();
        debug_assert_eq!(places.len(), lengths.len());
        places
    })
}

/// Has the reactor told when a socket can be written to, while something waits for that.
fn watch_writing(epoll: &Arc<Epoll>, socket: &Socket, token: u64) -> Watch {
    let (epoll, socket) = (Arc::clone(epoll), Arc::downgrade(socket));
    Box::new(move |blocked| {
        let mut flags = EpollFlags::EPOLLIN;
        flags.set(EpollFlags::EPOLLOUT, blocked);
        let mut event = EpollEvent::new(flags, token);
        if let Some(socket) = socket.upgrade() {
            // Fails only for a descriptor that is no longer watched, because its worker is gone.
            let _ = epoll.modify(socket.socket(), &mut event);
        }
    })
}

/// Sends all: the spawner does nothing but read.
fn flush_control(sender: &mut Sender) -> io::Result<()> {
    for _ in 0..FULL_TRIES {
        match sender.flush() {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Too many descriptors in flight: the spawner is about to take some.
            Err(error) if error.raw_os_error() == Some(libc::ETOOMANYREFS) => {}
            Err(error) => return Err(error),
        }
        std::thread::sleep(FULL_WAIT);
    }
    Err(io::ErrorKind::TimedOut.into())
}

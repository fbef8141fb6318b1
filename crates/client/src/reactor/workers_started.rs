//! Starting the spawner and the workers of this machine.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use gridrpc_core::WorkerId;
use gridrpc_link::{Outbound, Push, Receiver, Socket, Watch};
use gridrpc_shm::borrowed::Mapped;
use gridrpc_shm::outboxes::BoxMemory;
use gridrpc_shm::progress::{self, ReturnMarks};
use gridrpc_sys::worker_groups::WorkerGroups;
use gridrpc_sys::{fd_limit, forks, monotonic_ns};
use gridrpc_wire::{Hello, Message, Prepare, VERSION};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};

use crate::output::{self, ClientRoute, Output, OutputRoute, Stream};
use crate::reactor::deadlines::{Deadline, Process, SpawnerRequest};
use crate::reactor::spawner::{
    ANSWER, Pair, Spawner, do_not_block, flush_control, output_pipe, pair,
};
use crate::reactor::token::Token;
use crate::reactor::worker_input::{MAX_PAYLOAD, WorkerInput, placement};
use crate::reactor::{Reactor, shortage};
use crate::state::send_queues::WorkerOut;
use crate::sync::now;

/// Number of workers started by one request. The spawner forks the first ones while the next ones are prepared, and
/// each process inherits few foreign descriptors.
const BATCH: usize = 16;
/// Files that a client has open besides those of its workers.
const OTHER_FILES: usize = 24;

impl Reactor {
    /// Starts the next requested processes. Each turn starts only a batch, so that the first workers can connect
    /// while others are still starting.
    pub(super) fn start_next(&mut self) {
        let count = self.to_start.len().min(BATCH);
        let workers: Vec<_> = self.to_start.drain(..count).collect();
        // The spawner starts up while connections are made.
        if !workers.is_empty() && self.see_to_spawner(&workers) {
            if !self.to_start.is_empty() {
                // Done once for all workers, while the spawner starts up.
                fd_limit::make(self.most_files());
            }
            self.start_batch(&workers);
        }
    }

    /// Number of open files when the last workers start. Reserving room for more could double the time.
    fn most_files(&self) -> u64 {
        let of_each = if self.config.output == Output::Plain { 2 } else { 3 };
        // The descriptors of a batch are open at both ends.
        (OTHER_FILES + of_each * (self.worker_inputs.len() + BATCH)) as u64
    }

    /// Ensures that there is a spawner. If none can start, these workers are lost.
    fn see_to_spawner(&mut self, workers: &[WorkerId]) -> bool {
        if self.spawner.is_some() {
            return true;
        }
        let Err(error) = self.start_spawner() else { return true };
        let cause = shortage::no_spawner(&self.config.launch, &error);
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
                self.worker_inputs[worker.0 as usize] = None;
                self.report_loss(*worker, 0, cause.clone(), String::new());
            }
        }
    }

    fn start_spawner(&mut self) -> io::Result<()> {
        let mut spawner = match self.forked.take() {
            Some(forked) => Spawner::take_over(forked)?,
            None => {
                let grouped = self.worker_groups.as_ref().map(WorkerGroups::holds);
                let workers = self.common.lock().core.workers_here() as u32;
                Spawner::start(&self.config.launch, grouped.unwrap_or_default(), workers)?
            }
        };
        forks::close_in_children(spawner.receiver.socket().as_raw_fd());
        let watched = EpollEvent::new(EpollFlags::EPOLLIN, Token::Spawner.encode());
        self.epoll.add(spawner.receiver.socket(), watched)?;
        if let Some(stderr) = spawner.stderr.take() {
            do_not_block(&stderr)?;
            let tail = output::OutputPipe::new(
                stderr,
                Stream::Stderr,
                OutputRoute::AsItComes,
                &self.printers,
            );
            let watched = EpollEvent::new(EpollFlags::EPOLLIN, Token::SpawnerStderr.encode());
            self.epoll.add(tail.descriptor(), watched)?;
            self.spawner_tail = Some(tail);
        }
        let preparation = &self.config.launch.preparation;
        let message = Message::Prepare(Prepare {
            directory: &preparation.directory,
            path: texts(&preparation.path),
            modules: texts(&preparation.preload.modules),
            libraries: texts(&preparation.preload.libraries),
        });
        spawner.sender.push(&message).map_err(io::Error::other)?;
        self.spawner = Some(spawner);
        Ok(())
    }

    /// Makes the spawner import modules before it forks more workers.
    pub(super) fn prepare(&mut self, modules: &[String]) {
        if modules.is_empty() {
            return;
        }
        let Some(spawner) = &mut self.spawner else { return };
        let modules = texts(modules);
        let message = Message::Prepare(Prepare { modules, ..Prepare::default() });
        if spawner.sender.push(&message).is_ok() {
            // The receiving half detects a spawner that is gone.
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
            let mapped = Mapped::given_back(ReturnMarks::new(&self.progress.mapping, index))
                .passed_on_by(&self.common.pool);
            let watch = watch_writing(&self.epoll, &pair.ours, token);
            let up = Arc::new(Outbound::new(Arc::clone(&pair.ours), watch));
            let out = WorkerOut::new(Arc::clone(&up), mapped.returns());
            let outbox = self.greet(&up, index)?;
            let watched = EpollEvent::new(EpollFlags::EPOLLIN, token);
            self.epoll.add(pair.ours.socket(), watched)?;
            let passing = match output {
                Output::Plain => OutputRoute::AsItComes,
                Output::Labelled => OutputRoute::Labelled(format!("[worker {index}] ")),
                Output::Parent => {
                    let clients = Arc::clone(&self.common.parents);
                    OutputRoute::Up(ClientRoute { clients, worker: index })
                }
                Output::Kept => OutputRoute::Not,
            };
            let watch = |pipe, stream, token: Token| -> io::Result<output::OutputPipe> {
                let output = output::OutputPipe::new(pipe, stream, passing.clone(), &self.printers);
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

            self.worker_inputs[index as usize] = Some(WorkerInput {
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
                group: None,
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
            let requested = SpawnerRequest { process, to_end: false, urged: false };
            self.deadlines.add(now() + ANSWER, Deadline::Answer(requested));
        }
        match flush_control(&mut spawner.sender) {
            // The receiving half detects a spawner that is gone.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }

    /// Creates places in the order of their numbers, as they are first requested.
    fn make_place(&mut self, index: u32) {
        let places = self.worker_inputs.len().max(index as usize + 1);
        self.worker_inputs.resize_with(places, || None);
        self.generations.resize(places, 0);
    }

    /// Sends the first messages to a worker. Returns the memory for its unsent answers.
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
}

fn texts(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// Our own standard output, for workers to write to; /dev/null if there is none.
fn own_stdout() -> io::Result<Arc<OwnedFd>> {
    let copied = io::stdout().as_fd().try_clone_to_owned();
    Ok(Arc::new(match copied {
        Ok(stdout) => stdout,
        Err(_) => std::fs::File::options().write(true).open("/dev/null")?.into(),
    }))
}

/// Makes the reactor watch for a writable socket while messages wait for it.
fn watch_writing(epoll: &Arc<Epoll>, socket: &Socket, token: u64) -> Watch {
    let (epoll, socket) = (Arc::clone(epoll), Arc::downgrade(socket));
    Box::new(move |blocked| {
        let mut flags = EpollFlags::EPOLLIN;
        flags.set(EpollFlags::EPOLLOUT, blocked);
        let mut event = EpollEvent::new(flags, token);
        if let Some(socket) = socket.upgrade() {
            // Fails only for a descriptor that is no longer watched because its worker is gone.
            let _ = epoll.modify(socket.socket(), &mut event);
        }
    })
}

//! Reactor: reads all answers, runs the timers, starts workers and cleans up after them.

mod deadlines;
mod groups_to_remove;
mod hosts_heard;
mod hosts_lost;
mod hosts_started;
mod shortage;
pub(crate) mod spawner;
mod token;
mod worker_groups;
mod worker_input;
mod workers_heard;
mod workers_lost;
mod workers_started;

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use gridrpc_core::{Time, WorkerId};
use gridrpc_shm::outboxes::Outboxes;
use gridrpc_shm::progress::{self, ProgressMemory, Side};
use gridrpc_shm::segment;
use gridrpc_sys::spin_wait::SpinWait;
use gridrpc_sys::worker_groups::WorkerGroups;
use gridrpc_wire::WireError;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags, EpollTimeout};

use crate::common::Common;
use crate::common::callbacks::Runner;
use crate::config::Config;
use crate::hosts::commands::HostSettings;
use crate::hosts::peers::Hosts;
use crate::live::{About, StatsSocket};
use crate::output;
use crate::reactor::deadlines::{Deadline, Deadlines, Process, Routine};
use crate::reactor::groups_to_remove::GroupsToRemove;
use crate::reactor::spawner::{Forked, Spawner};
use crate::reactor::token::Token;
use crate::reactor::worker_input::WorkerInput;
use crate::reactor_lock::Read;
use crate::sync::now;

/// State of the reactor.
#[derive(Debug)]
pub(crate) struct Reactor {
    common: Arc<Common>,
    epoll: Arc<Epoll>,
    config: Config,
    /// The hosts, if there are any.
    hosts: Option<Hosts>,
    requests: HostSettings,
    /// Socket for live statistics; `None` if the system has no abstract sockets.
    offer: Option<StatsSocket>,
    /// The first spawner, if the client has forked it.
    forked: Option<Forked>,
    spawner: Option<Spawner>,
    spawner_tail: Option<output::OutputPipe>,
    printers: output::Printers,
    runner: Arc<Runner>,
    worker_inputs: Vec<Option<WorkerInput>>,
    generations: Vec<u32>,
    /// Shared memory with the progress of workers.
    progress: ProgressMemory,
    outboxes: Outboxes,
    memory_kills: u64,
    /// Control groups of the workers, if they hold any limits.
    worker_groups: Option<WorkerGroups>,
    to_remove: GroupsToRemove,
    /// When this process, an agent, last waited for its own end.
    own_end_awaited: Option<Time>,
    host: String,
    /// Places that still need a process.
    to_start: VecDeque<WorkerId>,
    /// Deadlines of everything that is due.
    deadlines: Deadlines,
    /// Time of the next search for unused memory.
    give_up_at: Time,
    /// Segments of workers may be mapped. While they are, leases are returned at the same interval: a worker without
    /// calls would otherwise never receive them.
    maps_results: bool,
    spin_wait: SpinWait,
    /// Number of looks while it spins.
    looks: u32,
    /// The worker that runs the only call. With more calls, the processors have better things to do than to spin.
    lone: Option<WorkerId>,
    /// Deadline for everything to be gone, once the grid is closed.
    closing: Option<Time>,
    finished: bool,
}

/// Maximum number of events taken from the queue at once.
const EVENTS: usize = 64;
/// While it spins, every so many looks are at all connections.
const POLL_AFTER: u32 = 8;
/// How long an incomplete line waits for its end, ns.
const LINE: u64 = 200_000_000;
/// How long workers have to end by themselves when the grid is closed, ns, and how often the reactor checks whether
/// all are gone.
const CLOSE_GRACE: u64 = 3_000_000_000;
const LOOK_WHILE_CLOSING: u64 = 20_000_000;
/// Interval of searches for unused memory, ns.
const LOOK_EVERY: u64 = segment::LOOK_EVERY.as_nanos() as u64;

impl Read for Reactor {
    /// Runs due timers, waits for events until `until` at most, and handles them. With `until`, which a waiting
    /// caller passes, it spins for a moment before it sleeps. Returns `false` when the grid is closed and its workers
    /// are gone.
    fn turn(&mut self, until: Option<Time>) -> bool {
        self.take_host_events();
        self.do_what_is_wanted();
        self.do_what_is_due();
        if self.finished {
            return false;
        }
        let next = self.deadlines.next().into_iter().chain(until).min();
        let timeout = match next {
            None => EpollTimeout::NONE,
            Some(next) => milliseconds(next.since(now())),
        };
        let passes_on = self.hosts.is_some() || self.common.parents.any();
        let apart = |worker: &WorkerId| {
            let memory = &self.progress.mapping;
            let worker = progress::meet(memory, worker.0, Side::Client, passes_on);
            !worker.is_some_and(|worker| worker.is_here)
        };
        // A poll without sleeping runs `apart` too, because the worker has to know where this side runs.
        let lone = self.lone.filter(|worker| until.is_some() && apart(worker));
        if let Some(lone) = lone.filter(|_| timeout != EpollTimeout::ZERO)
            && self.look_for_answer(lone, passes_on)
        {
            return true;
        }
        let begin = now();
        let has_come = self.wait_and_dispatch(timeout);
        // A call to a host has to wake several processes before all of them spin.
        if lone.is_some() && has_come && passes_on {
            self.spin_wait.slept(now().since(begin));
        }
        true
    }
}

impl Reactor {
    pub(crate) fn new(
        common: Arc<Common>,
        runner: Arc<Runner>,
        about: Arc<About>,
        config: Config,
        progress: ProgressMemory,
        forked: Option<Forked>,
        worker_groups: Option<WorkerGroups>,
    ) -> io::Result<Reactor> {
        let workers = config.settings.workers as usize;
        let epoll = Arc::clone(&common.lock().epoll);
        let wake = EpollEvent::new(EpollFlags::EPOLLIN, Token::Wake.encode());
        epoll.add(common.wakeup.as_fd(), wake)?;
        // An agent's grid is shown as part of its client's.
        let offer = (!config.is_of_agent).then(|| StatsSocket::open(about)).flatten();
        if let Some(offer) = &offer {
            // Edge-triggered: a connection that cannot be accepted does not keep this thread busy.
            let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
            epoll.add(offer, EpollEvent::new(flags, Token::Looked.encode()))?;
        }
        let requests = HostSettings::new(&config);
        let first = config.settings.workers;
        let groups = config.groups.clone();
        let hosts = groups.map(|groups| Hosts::new(groups, first, &common));
        Ok(Reactor {
            hosts,
            requests,
            common,
            epoll,
            config,
            offer,
            forked,
            spawner: None,
            spawner_tail: None,
            printers: output::Printers::new(),
            runner,
            worker_inputs: (0..workers).map(|_| None).collect(),
            generations: vec![0; workers],
            progress,
            outboxes: Outboxes::default(),
            memory_kills: gridrpc_sys::out_of_memory_kills(),
            worker_groups,
            to_remove: GroupsToRemove::default(),
            own_end_awaited: None,
            host: gridrpc_sys::host_name(),
            to_start: VecDeque::new(),
            deadlines: Deadlines::new(),
            give_up_at: Time(0),
            maps_results: false,
            spin_wait: SpinWait::default(),
            looks: 0,
            lone: None,
            closing: None,
            finished: false,
        })
    }

    /// Spins for the answer to the only call. Tries to read it instead of polling first, which would take a system call
    /// more; polls now and then, as other events must not wait. Returns whether anything has come.
    fn look_for_answer(&mut self, executor: WorkerId, passes_on: bool) -> bool {
        let mut spin_wait = std::mem::take(&mut self.spin_wait);
        spin_wait.set_yields(passes_on);
        let has_come = spin_wait.look(|| {
            self.looks = self.looks.wrapping_add(1);
            let host = self.hosts.as_ref().and_then(|hosts| hosts.index(executor));
            let worker_input = self.worker_inputs.get(executor.0 as usize).and_then(Option::as_ref);
            match host {
                _ if self.looks.is_multiple_of(POLL_AFTER) => {
                    self.wait_and_dispatch(EpollTimeout::ZERO)
                }
                Some(index) => self.poll_host(index as u32),
                None if worker_input.is_some_and(|input| !input.is_over()) => {
                    self.poll_worker(executor.0)
                }
                None => false,
            }
        });
        self.spin_wait = spin_wait;
        has_come
    }

    /// Waits for events, and handles them. Returns whether there were any.
    fn wait_and_dispatch(&mut self, timeout: EpollTimeout) -> bool {
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(errno) => unreachable!("waiting on an event queue that is ours: {errno}"),
        };
        for event in &events[..count] {
            self.dispatch(*event);
        }
        count > 0
    }

    /// Runs the core's due timers, and carries out requests of the core and of callers.
    fn do_what_is_wanted(&mut self) {
        let common = Arc::clone(&self.common);
        let requests = common.kept_requests.take();
        let now = now();
        let mut state = common.lock();
        if !requests.is_empty() {
            state.pass_to_hosts(requests);
        }
        if state.core.next_tick().is_some_and(|next| next <= now) {
            state.tick(now);
        }
        let is_host = |id: &WorkerId| self.hosts.as_ref().is_some_and(|hosts| hosts.has(*id));
        let (hosts, here): (Vec<_>, Vec<_>) = state.to_start.drain(..).partition(is_host);
        self.to_start.extend(here);
        let to_collect = std::mem::take(&mut state.to_collect);
        let unsendable = std::mem::take(&mut state.unsendable);
        let to_retire = std::mem::take(&mut state.to_retire);
        let to_kill = std::mem::take(&mut state.to_kill);
        let to_prepare = std::mem::take(&mut state.to_prepare);
        if state.closing && !state.closing_heard {
            state.closing_heard = true;
            self.closing = Some(now + CLOSE_GRACE);
            self.say_goodbye();
            self.dismiss_hosts();
        }
        let idle = self.to_start.is_empty() && to_kill.is_empty();
        self.lone = (state.core.live() == 1).then_some(state.last_sent);
        let until = if idle { state.next_tick() } else { Some(now) };
        state.reactor_sleeps_until = Some(until.unwrap_or(Time(u64::MAX)));
        self.deadlines.set(Routine::Core, until);
        common.finish(state);
        for worker in to_collect {
            self.collect(worker.0);
        }
        for (worker, error) in unsendable {
            self.give_up(worker, &error);
        }
        if !to_kill.is_empty() {
            self.kill(&to_kill);
        }
        if self.closing.is_none() {
            self.retire_hosts(&to_retire);
            if !hosts.is_empty() {
                self.start_hosts(&hosts);
            }
            self.start_next();
        } else {
            self.to_start.clear();
        }
        self.prepare(&to_prepare);
    }

    /// Runs everything else that is due, and sets its next deadline.
    fn do_what_is_due(&mut self) {
        let now = now();
        if now >= self.give_up_at {
            self.give_up_at = now + LOOK_EVERY;
            self.common.give_up_old(self.maps_results);
            let mut inputs = self.worker_inputs.iter().flatten();
            self.maps_results = inputs.any(|input| !input.mapped.is_empty());
        }
        let may_go = self.maps_results || self.common.has_memory();
        let may_go = may_go.then_some(self.give_up_at);
        self.deadlines.set(Routine::Memory, may_go);
        while let Some(due) = self.deadlines.take(now) {
            match due {
                Deadline::Gone(process) if self.is_there(process) => {
                    self.kill(&[WorkerId(process.index)]);
                }
                Deadline::Line(process) if self.is_there(process) => self.end_lines(process.index),
                Deadline::Answer(requested) if self.is_there(requested.process) => {
                    self.see_to_unanswered(requested)
                }
                Deadline::Dialled(agent) => self.see_to_agent(agent),
                Deadline::Heard(connection) => self.see_to_host(connection),
                Deadline::Left(connection) => self.see_to_left(connection),
                // The process that it concerns is gone.
                _ => {}
            }
        }
        let remove_at = self.to_remove.remove();
        self.deadlines.set(Routine::Groups, remove_at);
        if self.hosts.is_some() {
            let fetching = self.fetch_from_hosts();
            self.deadlines.set(Routine::Fetches, fetching);
        }
        if let Some(deadline) = self.closing {
            self.see_to_closing(now, deadline);
        }
    }

    /// Finishes closing the grid when everything is gone or the deadline has passed.
    fn see_to_closing(&mut self, now: Time, deadline: Time) {
        self.leave_servers();
        let gone = self.spawner.is_none() && self.hosts.as_ref().is_none_or(Hosts::are_gone);
        if !gone && now < deadline {
            return self.deadlines.set(Routine::Closing, Some(now + LOOK_WHILE_CLOSING));
        }
        self.spawner_ended();
        self.end_groups();
        self.end_hosts();
        self.printers.settle();
        self.offer = None;
        self.finished = true;
    }

    /// Whether this process is still in its place.
    fn is_there(&self, process: Process) -> bool {
        let worker_input = self.worker_inputs.get(process.index as usize).and_then(Option::as_ref);
        worker_input.is_some_and(|worker_input| worker_input.generation == process.generation)
    }

    fn dispatch(&mut self, event: EpollEvent) {
        let Some(token) = Token::decode(event.data()) else { return };
        match token {
            Token::Wake => {
                // Only the wake-up matters.
                self.common.wakeup.clear();
            }
            Token::Spawner => self.poll_spawner(),
            Token::Looked => {
                if let Some(offer) = &self.offer {
                    offer.answer(&self.common);
                }
            }
            Token::Host { index, generation } => {
                if self.is_current_host(index, generation) {
                    if event.events().contains(EpollFlags::EPOLLOUT) {
                        self.send_to_host(index);
                    }
                    self.poll_host(index);
                }
            }
            Token::SpawnerStderr => {
                // Only stop watching at its end: its output belongs to the losses that follow.
                if let Some(tail) = &mut self.spawner_tail
                    && !tail.read()
                {
                    let _ = self.epoll.delete(tail.descriptor());
                }
            }
            Token::Worker { index, generation } => {
                if self.is_current(index, generation) {
                    if event.events().contains(EpollFlags::EPOLLOUT) {
                        self.go_on_sending(index);
                    }
                    self.poll_worker(index);
                }
            }
            Token::WorkerStdout { index, generation }
            | Token::WorkerStderr { index, generation } => {
                if self.is_current(index, generation)
                    && let Some(worker_input) = &mut self.worker_inputs[index as usize]
                {
                    let stderr = matches!(token, Token::WorkerStderr { .. });
                    let output = if stderr {
                        Some(&mut worker_input.stderr)
                    } else {
                        worker_input.stdout.as_mut()
                    };
                    let Some(output) = output else { return };
                    if !output.read() {
                        // Ended, or closed by the worker: a descriptor at its end is always ready.
                        let _ = self.epoll.delete(output.descriptor());
                    } else if output.has_begun() {
                        let process = Process { index, generation: worker_input.generation };
                        self.deadlines.add(now() + LINE, Deadline::Line(process));
                    }
                }
            }
        }
    }

    fn is_current(&self, index: u32, generation: u32) -> bool {
        let worker_input = self.worker_inputs.get(index as usize).and_then(Option::as_ref);
        worker_input
            .is_some_and(|worker_input| Token::is_generation(worker_input.generation, generation))
    }

    fn go_on_sending(&self, index: u32) {
        if let Some(worker_input) = &self.worker_inputs[index as usize] {
            worker_input.up.flush();
        }
    }

    /// Passes on incomplete lines of a worker that have waited for a while, such as a prompt.
    fn end_lines(&mut self, index: u32) {
        if let Some(worker_input) = self.worker_inputs[index as usize].as_mut() {
            worker_input
                .stdout
                .iter_mut()
                .chain([&mut worker_input.stderr])
                .for_each(output::OutputPipe::end);
        }
    }

    /// Ends a worker because a message to it exceeds the limits of the format.
    fn give_up(&mut self, worker: WorkerId, error: &WireError) {
        if self.hosts.as_ref().is_some_and(|hosts| hosts.has(worker)) {
            return self.give_up_host(worker, error);
        }
        let Some(worker_input) = self.worker_inputs[worker.0 as usize].as_mut() else { return };
        worker_input.broken.get_or_insert(format!("a message for it cannot be sent: {error}"));
        let _ = self.epoll.delete(worker_input.receiver.socket());
        self.kill(&[worker]);
    }
}

/// A time-out rounded up to whole milliseconds, so that the wait does not end too early again and again.
fn milliseconds(ns: u64) -> EpollTimeout {
    let ms = ns.div_ceil(1_000_000).min(60_000);
    EpollTimeout::try_from(ms as i32).unwrap_or(EpollTimeout::ZERO)
}

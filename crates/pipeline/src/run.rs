//! What happens in one run. Each method is something that happens to a task or worker.

use std::collections::VecDeque;

use crate::case::{Case, Stamps};
use crate::event::RunEvent;
use crate::memory::Memory;
use crate::parameters::{Link, Parameters};
use crate::spreading::{DataRoute, Spreading};
use crate::stages::{Simulation, Stage, Stages};
use crate::throttling::{MemoryPressure, Shortage, Throttling};

/// A run under way: each step of [`Run::go_on`] follows tasks a little further.
pub struct Run<'a> {
    pub(crate) case: &'a Case,
    pub(crate) parameters: &'a Parameters,
    pub(crate) stages: Stages<RunEvent>,
    pub(crate) stamps: Stamps,
    pub(crate) shortage: Option<Shortage>,
    spreading: Spreading,
    memory: Memory,
    waiting: VecDeque<u32>,
    idle: VecDeque<u32>,
    /// Workers that are busy and may be sent a task ahead, each as often as it may.
    spare: VecDeque<u32>,
    /// By worker: tasks whose data is with it while it does another.
    inbox: Vec<VecDeque<u32>>,
    busy: Vec<bool>,
    unmade: usize,
    submitted: u32,
    outstanding: u32,
    retrieved: u32,
    pub(crate) submitting: bool,
    processors: Stage,
    to_workers: Stage,
    from_workers: Stage,
    maker: Stage,
    client: Stage,
    /// With a manager one thread of the client submits, another takes results.
    collector: Stage,
    lock: Option<Stage>,
    pub(crate) inward: Stage,
    outward: Stage,
}

impl<'a> Run<'a> {
    /// At its beginning. `throttling` is of a manager, and of one that sends no tasks ahead.
    ///
    /// # Panics
    /// If a worker has no host, or the number of one is not below that of workers.
    pub fn new(
        case: &'a Case,
        parameters: &'a Parameters,
        throttling: Option<&'a Throttling>,
    ) -> Run<'a> {
        let (tasks, workers) = (case.sleep.len(), case.ready.len());
        assert!(
            case.host.len() == workers && case.host.iter().all(|&one| (one as usize) < workers)
        );
        let mut stages = Stages::new();
        let processors = if parameters.processors.is_finite() {
            stages.evenly(parameters.processors)
        } else {
            stages.freely()
        };
        let mut to_workers = link_stage(&mut stages, &parameters.to_workers);
        // With shared data a link that takes no time for tasks may take some.
        if parameters.shared_rate.is_finite() && stages.is_through(to_workers) {
            to_workers = stages.in_turn(None);
        }
        let from_workers = link_stage(&mut stages, &parameters.from_workers);
        let maker = stages.in_turn(Some(processors));
        let client = stages.in_turn(Some(processors));
        let lock = parameters.client_lock.then(|| stages.in_turn(Some(processors)));
        let (mut collector, mut inward, mut outward) = (client, client, client);
        if let Some(manager) = &parameters.manager {
            collector = stages.in_turn(Some(processors));
            inward = link_stage(&mut stages, &manager.inward);
            outward = link_stage(&mut stages, &manager.outward);
        }
        let shortage = throttling.map(|one| Shortage::new(one, tasks, &mut stages));
        let retained = case.bytes_in > 0.0 && case.bytes_in >= parameters.kept_from;
        let chained = case.bytes_shared >= parameters.chained_from;
        let mut run = Run {
            case,
            parameters,
            stages,
            stamps: Stamps::new(tasks),
            shortage,
            spreading: Spreading::new(workers, workers, chained),
            memory: Memory::new(tasks, workers, retained, parameters.most_left),
            waiting: VecDeque::new(),
            idle: VecDeque::new(),
            spare: VecDeque::new(),
            inbox: vec![VecDeque::new(); if parameters.ahead > 0 { workers } else { 0 }],
            busy: vec![false; workers],
            unmade: workers,
            submitted: 0,
            outstanding: 0,
            retrieved: 0,
            submitting: false,
            processors,
            to_workers,
            from_workers,
            maker,
            client,
            collector,
            lock,
            inward,
            outward,
        };
        run.begin();
        run
    }

    fn begin(&mut self) {
        let (case, parameters) = (self.case, self.parameters);
        if parameters.manager.is_some() {
            let size = case.bytes_shared;
            let work = if size > 0.0 { parameters.share.of(size) } else { 0.0 };
            self.stages.queue(self.client, work, RunEvent::Shared, 0, false, None);
        } else {
            self.waiting.extend(0..case.sleep.len() as u32);
        }
        for (worker, &time) in (0..).zip(&case.ready) {
            match &parameters.start {
                None => self.stages.at(time, RunEvent::WorkerFree, worker),
                Some(start) => {
                    let before = start.constant + start.prepare * case.ready.len() as f64;
                    self.stages.at(time + before, RunEvent::Wanted, worker);
                }
            }
        }
    }

    /// Continues by so many events at most; whether there are more.
    pub fn go_on(&mut self, events: usize) -> bool {
        self.step(events)
    }

    /// How many results the client has taken.
    pub fn retrieved(&self) -> usize {
        self.retrieved as usize
    }

    /// When nothing is left to happen, of all tasks.
    pub fn stamps(self) -> Stamps {
        self.stamps
    }

    /// Use of the manager's memory, if it is limited.
    pub fn pressure(&self) -> Option<MemoryPressure> {
        self.shortage.as_ref().map(Shortage::pressure)
    }

    fn worker_of(&self, task: u32) -> u32 {
        self.stamps.worker[task as usize] as u32
    }

    fn host_of(&self, task: u32) -> u32 {
        self.case.host[self.worker_of(task) as usize]
    }

    /// A task passes a stage, in no time if that takes none.
    pub(crate) fn pass(&mut self, stage: Stage, work: f64, then: RunEvent, task: u32) {
        if let Some(then) = self.stages.add(stage, work, then, task) {
            self.happen(then, task);
        }
    }

    /// A worker works.
    fn labour(&mut self, work: f64, then: RunEvent, task: u32) {
        if work == 0.0 {
            self.happen(then, task);
        } else {
            self.pass(self.processors, work, then, task);
        }
    }

    // Workers start.

    /// The process of a worker is there, and starts up.
    fn made(&mut self, worker: u32) {
        let Some(start) = &self.parameters.start else { return };
        self.unmade -= 1;
        self.pass(self.processors, start.parallel, RunEvent::CameUp, worker);
        if start.all_first && self.unmade == 0 {
            self.dispatch();
        }
    }

    /// A worker can take its first task. Of those that are idle it is the last to be chosen.
    fn adopted(&mut self, worker: u32) {
        if self.parameters.last_used_first {
            self.idle.push_front(worker);
        } else {
            self.idle.push_back(worker);
        }
        self.spare.extend(std::iter::repeat_n(worker, self.parameters.ahead));
        self.dispatch();
    }

    // The client submits.

    /// The client begins to submit another task, if there is one and room for it.
    pub(crate) fn submit_next(&mut self) {
        let (case, parameters) = (self.case, self.parameters);
        if self.submitting || self.submitted as usize == case.sleep.len() {
            return;
        }
        let bytes = (self.waiting.len() + 1) as f64 * case.bytes_in;
        let full = !self.waiting.is_empty() && bytes > parameters.most_waiting_bytes;
        if full || f64::from(self.outstanding) >= parameters.most_outstanding {
            return;
        }
        self.submitting = true;
        let (work, task) = (parameters.submit_cost, self.submitted);
        self.stages.queue(self.client, work, RunEvent::Copies, task, false, self.lock);
        self.submitted += 1;
        self.outstanding += 1;
    }

    /// The client copies a task's data.
    fn copies(&mut self, task: u32) {
        let work = self.copy_work(task);
        if work == 0.0 {
            self.leaves_client(task);
        } else {
            self.stages.queue(self.client, work, RunEvent::LeavesClient, task, false, None);
        }
    }

    fn copy_work(&mut self, task: u32) -> f64 {
        let (parameters, size) = (self.parameters, self.case.bytes_in);
        let work = parameters.submit_per_byte * size;
        if self.memory.is_new_for(task) { work + parameters.new_input.of(size) } else { work }
    }

    /// The client has done its part to submit a task. Whether a manager that is short of memory takes
    /// it is another matter.
    fn leaves_client(&mut self, task: u32) {
        let Some(manager) = &self.parameters.manager else {
            self.stamps.submit[task as usize] = self.stages.now();
            self.send(task);
            return;
        };
        if self.shortage.is_some() {
            self.reaches_door(task);
        } else {
            let work = manager.inward.work(self.case.bytes_in);
            self.pass(self.inward, work, RunEvent::ReachesManager, task);
            self.submitting = false;
        }
        self.submit_next();
    }

    /// A task's data is with the manager.
    fn reaches_manager(&mut self, task: u32) {
        self.taken_in(task);
        self.stamps.submit[task as usize] = self.stages.now();
        self.waiting.push_back(task);
        self.dispatch();
        if self.shortage.is_some() {
            self.page();
            self.take_next();
        }
    }

    // Tasks meet workers.

    /// A worker can take a task.
    fn worker_free(&mut self, worker: u32) {
        self.idle.push_back(worker);
        self.spare.extend(std::iter::repeat_n(worker, self.parameters.ahead));
        self.dispatch();
    }

    /// Gives waiting tasks to idle workers, in order of arrival.
    pub(crate) fn dispatch(&mut self) {
        let held = self.parameters.start.is_some_and(|one| one.all_first) && self.unmade > 0;
        if held || self.has_halted() {
            return;
        }
        while !self.waiting.is_empty() {
            let last = self.parameters.last_used_first;
            let idle = if last { self.idle.pop_back() } else { self.idle.pop_front() };
            let Some(worker) = idle.or_else(|| self.spare.pop_front()) else { return };
            let Some(task) = self.waiting.pop_front() else { return };
            self.stamps.worker[task as usize] = i64::from(worker);
            if self.parameters.manager.is_some() {
                self.send(task);
                self.submit_next();
            } else {
                // A client that has taken a result first makes use of the worker, and then takes
                // the next one.
                let work = self.parameters.submit_cost + self.copy_work(task);
                self.stages.queue(self.client, work, RunEvent::LeavesClient, task, true, None);
            }
        }
    }

    /// A task's data starts on its way to its worker; what is on disk has to be read first.
    fn send(&mut self, task: u32) {
        if !self.needs_reading(task) {
            self.send_data(task);
        }
    }

    /// A task's data, which is in memory, starts on its way to its worker.
    pub(crate) fn send_data(&mut self, task: u32) {
        self.stamps.sent[task as usize] = self.stages.now();
        let (link, shared) = (&self.parameters.to_workers, self.case.bytes_shared);
        let work = link.work(self.case.bytes_in);
        if shared == 0.0 {
            self.pass(self.to_workers, work, RunEvent::ReachesWorker, task);
            return;
        }
        let alone = shared / self.parameters.shared_rate.min(link.each);
        let host = self.host_of(task);
        match self.spreading.comes(host) {
            DataRoute::Along => {
                return self.pass(self.to_workers, work + alone, RunEvent::SharedReachesHost, task);
            }
            DataRoute::HandedOn => {
                self.stages.at(self.stages.now() + alone, RunEvent::HandedOn, host)
            }
            DataRoute::Otherwise => {}
        }
        self.pass(self.to_workers, work, RunEvent::ReachesHost, task);
    }

    // The worker does one.

    /// A task's data is at its host, and the shared data.
    fn shared_reaches_host(&mut self, task: u32) {
        for host in self.spreading.came(self.host_of(task)) {
            self.shared_arrives(host);
        }
        self.reaches_host(task);
    }

    fn shared_arrives(&mut self, host: u32) {
        for task in self.spreading.arrive(host) {
            self.has_shared(task);
        }
    }

    /// A neighbour has handed on to a host what it has of the shared data.
    fn handed_on(&mut self, host: u32) {
        if self.spreading.handed_on(host) {
            self.shared_arrives(host);
        }
    }

    /// A task's data is at its host, and needs the shared data.
    fn reaches_host(&mut self, task: u32) {
        if self.spreading.is_there_for(self.host_of(task), task) {
            self.has_shared(task);
        }
    }

    /// The host has the shared data, which the worker takes if this is its first task.
    fn has_shared(&mut self, task: u32) {
        if self.spreading.takes(self.worker_of(task)) {
            let work = self.parameters.take_shared.of(self.case.bytes_shared);
            self.labour(work, RunEvent::ReachesWorker, task);
        } else {
            self.reaches_worker(task);
        }
    }

    /// A task's data is with its worker.
    fn reaches_worker(&mut self, task: u32) {
        self.begin_or_wait(task);
        self.worker_has();
    }

    fn begin_or_wait(&mut self, task: u32) {
        let worker = self.worker_of(task);
        if self.busy[worker as usize] {
            self.inbox[worker as usize].push_back(task);
            return;
        }
        self.busy[worker as usize] = true;
        let (parameters, size) = (self.parameters, self.case.bytes_in);
        let mut work = parameters.take.of(size);
        if self.memory.is_unseen_by(worker, task) {
            work += parameters.map_input.of(size);
        }
        self.labour(work, RunEvent::Taken, task);
    }

    /// The worker has a task, and is about to compute.
    fn taken(&mut self, task: u32) {
        let begin = self.stages.now() + self.parameters.start_latency;
        self.stamps.calc_in[task as usize] = begin;
        self.stages.at(begin + self.case.sleep[task as usize], RunEvent::Slept, task);
    }

    /// The rest is a task's output.
    fn slept(&mut self, task: u32) {
        let (parameters, size) = (self.parameters, self.case.bytes_out);
        let mut work = parameters.make.of(size);
        let retained = size > 0.0 && size >= parameters.kept_from;
        if retained && self.memory.is_new_for_output(self.worker_of(task), task) {
            work += parameters.new_output.of(size);
        }
        self.labour(work, RunEvent::Computed, task);
    }

    /// A result starts on its way back, unless a manager that has halted takes none.
    fn computed(&mut self, task: u32) {
        self.stamps.calc_out[task as usize] = self.stages.now();
        if !self.holds_back(task) {
            self.answer(task);
        }
    }

    /// A result starts on its way back.
    pub(crate) fn answer(&mut self, task: u32) {
        let work = self.parameters.from_workers.work(self.case.bytes_out);
        self.pass(self.from_workers, work, RunEvent::LeavesWorker, task);
    }

    /// A result is with the manager, or at the client's door.
    fn leaves_worker(&mut self, task: u32) {
        self.hold(self.case.bytes_out);
        self.is_done(task);
        let worker = self.worker_of(task);
        self.busy[worker as usize] = false;
        self.memory.leave(task);
        let Some(manager) = &self.parameters.manager else {
            self.reaches_client(task);
            return;
        };
        if let Some(next) = self.inbox.get_mut(worker as usize).and_then(VecDeque::pop_front) {
            self.reaches_worker(next);
        }
        self.slot_free(worker);
        let work = manager.outward.work(self.case.bytes_out);
        self.pass(self.outward, work, RunEvent::ReachesClient, task);
    }

    /// A worker can be sent one more task.
    fn slot_free(&mut self, worker: u32) {
        let busy = self.busy[worker as usize];
        (if busy { &mut self.spare } else { &mut self.idle }).push_back(worker);
        self.dispatch();
    }

    // The client takes results.

    /// A result waits until the client takes it.
    fn reaches_client(&mut self, task: u32) {
        let latency = self.parameters.return_latency;
        if latency == 0.0 {
            self.noticed(task);
        } else {
            self.stages.at(self.stages.now() + latency, RunEvent::Noticed, task);
        }
        self.hold(-self.case.bytes_out);
    }

    /// The client begins to take a result when it has done what it was asked before.
    fn noticed(&mut self, task: u32) {
        let mut work = self.parameters.retrieve_cost;
        if self.case.bytes_out > 0.0 {
            work += self.parameters.take_output.of(self.case.bytes_out);
        }
        if self.memory.is_output_unseen(task) {
            work += self.parameters.map_output.of(self.case.bytes_out);
        }
        self.stages.queue(self.collector, work, RunEvent::Retrieved, task, false, self.lock);
    }

    /// A result is in the client's hand.
    fn retrieved_one(&mut self, task: u32) {
        self.retrieved += 1;
        self.stamps.retrieve[task as usize] = self.stages.now();
        let worker = self.worker_of(task);
        self.memory.leave_output(worker);
        if self.parameters.manager.is_some() {
            self.outstanding -= 1;
            self.submit_next();
        } else {
            self.slot_free(worker);
        }
    }
}

impl Simulation<RunEvent> for Run<'_> {
    fn stages(&mut self) -> &mut Stages<RunEvent> {
        &mut self.stages
    }

    fn happen(&mut self, what: RunEvent, which: u32) {
        match what {
            RunEvent::Wanted => {
                let work = self.parameters.start.map_or(0.0, |start| start.serial);
                self.stages.queue(self.maker, work, RunEvent::Made, which, false, None);
            }
            RunEvent::Made => self.made(which),
            RunEvent::CameUp => {
                let work = self.parameters.start.map_or(0.0, |start| start.adopt);
                self.stages.queue(self.collector, work, RunEvent::Adopted, which, false, None);
            }
            RunEvent::Adopted => self.adopted(which),
            RunEvent::WorkerFree => self.worker_free(which),
            RunEvent::Shared => self.submit_next(),
            RunEvent::Copies => self.copies(which),
            RunEvent::LeavesClient => self.leaves_client(which),
            RunEvent::ReachesManager => self.reaches_manager(which),
            RunEvent::SharedReachesHost => self.shared_reaches_host(which),
            RunEvent::ReachesHost => self.reaches_host(which),
            RunEvent::HandedOn => self.handed_on(which),
            RunEvent::ReachesWorker => self.reaches_worker(which),
            RunEvent::Taken => self.taken(which),
            RunEvent::Slept => self.slept(which),
            RunEvent::Computed => self.computed(which),
            RunEvent::LeavesWorker => self.leaves_worker(which),
            RunEvent::Noticed => self.noticed(which),
            RunEvent::ReachesClient => self.reaches_client(which),
            RunEvent::Retrieved => self.retrieved_one(which),
            RunEvent::Written => self.written(which),
            RunEvent::ReadBack => self.read_back(which),
        }
    }
}

fn link_stage(stages: &mut Stages<RunEvent>, link: &Link) -> Stage {
    if link.work(1.0) == 0.0 {
        stages.through()
    } else if link.sharing == crate::Sharing::ProcessorSharing {
        stages.evenly(link.at_once())
    } else {
        stages.in_turn(None)
    }
}

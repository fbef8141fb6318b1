//! Thousands of random schedules of submissions, answers, deaths, cancels and clock jumps,
//! each a pure function of its seed; every invariant is checked after every step.

use std::collections::{HashMap, HashSet, VecDeque};

use gridrpc_core::{
    Action, BlobId, CallId, Cause, Core, End, FunctionId, Loss, Refusal, Reservation, Settings,
    Standing, Task, Time, Took, WorkerId,
};

/// What the world outside the core knows of one worker process.
#[derive(Default)]
struct Process {
    alive: bool,
    ready: bool,
    doomed: bool,
    dismissed: bool,
    inbox: VecDeque<(u64, CallId, u32)>,
    /// How many calls have come in, and how many of those in the inbox it has begun.
    received: u64,
    begun: usize,
    taught: HashSet<FunctionId>,
    blobs: HashSet<BlobId>,
    /// Data that it was told to let go of.
    letting_go: Vec<BlobId>,
}

impl Process {
    /// The serial number of the first call that it has not begun.
    fn begun_serial(&self) -> u64 {
        self.inbox.get(self.begun).map_or(self.received, |(serial, ..)| *serial)
    }
}

/// What the caller knows of one call.
struct Wanted {
    id: CallId,
    idempotent: bool,
    blobs: Vec<BlobId>,
    on: Option<Reservation>,
    begun: u32,
    ended: bool,
}

impl Wanted {
    /// How often it may run.
    fn tries(&self, settings: &Settings) -> u32 {
        if self.idempotent && self.on.is_none() { settings.retries + 1 } else { 1 }
    }
}

struct World {
    rng: fastrand::Rng,
    now: Time,
    core: Core<u32>,
    processes: Vec<Process>,
    calls: Vec<Wanted>,
    blobs: Vec<BlobId>,
    reserved: Vec<Reservation>,
    freed: HashSet<BlobId>,
    /// Data that somebody outside the grid may read.
    passed_on: HashSet<BlobId>,
    counts: HashMap<&'static str, u64>,
    settings: Settings,
    /// Functions take next to nothing, most of the time.
    light: bool,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = fastrand::Rng::with_seed(seed);
        let settings = Settings {
            workers: rng.u32(1..8),
            cores: rng.usize(1..4),
            max_queued: rng.usize(1..40),
            max_queued_bytes: rng.u64(1..5000),
            grace: rng.u64(1..2_000_000),
            retries: rng.u32(0..3),
            max_failed_starts: rng.u32(1..5),
        };
        let light = rng.bool();
        let processes = (0..settings.workers).map(|_| Process::default()).collect();
        let mut world = World {
            rng,
            now: Time(1),
            core: Core::new(settings.clone()),
            processes,
            calls: Vec::new(),
            blobs: Vec::new(),
            reserved: Vec::new(),
            freed: HashSet::new(),
            passed_on: HashSet::new(),
            counts: HashMap::new(),
            settings,
            light,
        };
        let mut out = Vec::new();
        world.core.open(world.now, &mut out);
        world.perform(out);
        world
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn perform(&mut self, actions: Vec<Action<u32>>) {
        let mut taken = Vec::new();
        for action in actions {
            match action {
                Action::Start(id) => {
                    let places = self.processes.len().max(id.0 as usize + 1);
                    self.processes.resize_with(places, Process::default);
                    let process = &mut self.processes[id.0 as usize];
                    assert!(!process.alive, "started twice");
                    *process = Process { alive: true, ..Process::default() };
                }
                Action::Teach { worker, function } => {
                    let new = self.processes[worker.0 as usize].taught.insert(function);
                    assert!(new, "taught twice");
                }
                Action::Share { worker, blob } => {
                    assert!(!self.freed.contains(&blob), "shared after it was freed");
                    let new = self.processes[worker.0 as usize].blobs.insert(blob);
                    assert!(new, "shared twice");
                }
                Action::Unshare { worker, blob } => {
                    let had = self.processes[worker.0 as usize].blobs.remove(&blob);
                    assert!(had, "unshared what it never had");
                    self.processes[worker.0 as usize].letting_go.push(blob);
                }
                Action::Send { worker, call, function, payload, .. } => {
                    let process = &mut self.processes[worker.0 as usize];
                    assert!(process.alive && process.ready && !process.doomed);
                    assert!(process.taught.contains(&function), "sent before it was taught");
                    let wanted = &self.calls[payload as usize];
                    assert!(!wanted.ended, "sent after its end");
                    assert!(wanted.blobs.iter().all(|blob| process.blobs.contains(blob)));
                    assert!(wanted.on.is_none_or(|on| on.worker == worker));
                    let last = process.inbox.back().map_or(0, |(_, _, payload)| payload + 1);
                    assert!(wanted.on.is_none() || last <= payload, "out of order");
                    process.inbox.push_back((process.received, call, payload));
                    process.received += 1;
                }
                Action::End { call, payload, end } => {
                    let wanted = &mut self.calls[payload as usize];
                    assert_eq!(wanted.id, call);
                    assert!(!wanted.ended, "{call:?} ended twice");
                    wanted.ended = true;
                    if matches!(end, End::WorkerLost(_)) {
                        // Calls for a reserved worker end with it, begun or not.
                        if wanted.on.is_none() {
                            assert!(wanted.begun > 0, "failed although it never ran");
                            assert_eq!(wanted.begun, wanted.tries(&self.settings));
                        }
                    }
                    self.count(match end {
                        End::Cancelled => "cancelled",
                        End::DeadlineExceeded(_) => "deadline",
                        End::WorkerLost(_) => "lost",
                        End::NoWorkers(_) => "no workers",
                        End::Closed => "closed",
                    });
                }
                Action::Free { blob, unread } => {
                    let passed_on = self.passed_on.contains(&blob);
                    assert_eq!(unread, !passed_on, "its memory could be written over");
                    self.count(if unread { "unread" } else { "passed on" });
                    assert!(self.freed.insert(blob), "freed twice");
                    let users = self.calls.iter().filter(|call| call.blobs.contains(&blob));
                    assert!(users.into_iter().all(|call| call.ended), "freed while in use");
                    for process in &self.processes {
                        let reads =
                            process.blobs.contains(&blob) || process.letting_go.contains(&blob);
                        assert!(!reads || !process.alive);
                    }
                }
                Action::Forget(payload) => assert!(self.calls[payload as usize].ended),
                Action::TakeBack { worker, head, below } => taken.push((worker, head, below)),
                Action::Cancel { worker, call } => {
                    let process = &self.processes[worker.0 as usize];
                    assert!(process.inbox.iter().any(|(_, sent, _)| *sent == call));
                }
                Action::Dismiss(id) => {
                    let process = &mut self.processes[id.0 as usize];
                    assert!(process.alive, "dismissed without a process");
                    process.dismissed = true;
                    self.count("dismissed");
                }
                Action::Kill(id) => {
                    let process = &mut self.processes[id.0 as usize];
                    assert!(process.alive && !process.doomed, "killed twice");
                    process.doomed = true;
                    self.count("killed");
                }
            }
        }
        for (worker, head, below) in taken {
            self.take_back(worker, head, below);
        }
    }

    /// The worker passes over what it has not begun, if it has begun its first call.
    fn take_back(&mut self, id: WorkerId, head: u64, below: u64) {
        self.begin_some(id.0 as usize);
        let process = &mut self.processes[id.0 as usize];
        let place = process.inbox.iter().position(|(serial, ..)| *serial == head);
        assert!(place.is_some(), "the head has been answered");
        if place.is_none_or(|place| process.begun <= place) {
            return;
        }
        let begun = process.begun_serial();
        process.inbox.retain(|(serial, ..)| *serial < begun || *serial >= below);
        let mut out = Vec::new();
        self.core.taken_back(self.now, id, begun as u32, below, &mut out);
        self.count("taken back");
        self.perform(out);
    }

    /// A worker may have begun any number of the calls that it has, in order.
    fn begin_some(&mut self, index: usize) {
        let process = &mut self.processes[index];
        let begun = self.rng.usize(process.begun..=process.inbox.len());
        for (_, _, payload) in process.inbox.range(process.begun..begun) {
            let wanted = &mut self.calls[*payload as usize];
            wanted.begun += 1;
            assert!(wanted.begun <= wanted.tries(&self.settings), "ran too often");
        }
        process.begun = begun;
    }

    fn step(&mut self) {
        let mut out = Vec::new();
        match self.rng.u32(0..100) {
            0..2 => {
                let count = self.rng.u32(1..3);
                let reserved = self.core.reserve(count, &mut out);
                self.reserved.extend(reserved);
            }
            2..4 => {
                if let Some(on) = self.rng.choice(&self.reserved).copied() {
                    self.core.release(self.now, on, &mut out);
                    assert_eq!(self.core.standing(on), Standing::Released);
                }
            }
            4..30 => self.submit(&mut out),
            30..56 => self.answer(&mut out),
            56..60 => self.let_go(&mut out),
            60..72 => self.become_ready(&mut out),
            72..77 => self.die(&mut out),
            77..82 => {
                if let Some(id) = self.some_call() {
                    self.core.cancel(self.now, id, &mut out);
                }
            }
            82..86 => {
                let live = |p: &Process| p.alive && p.ready && !p.doomed;
                if let Some(index) = self.pick(live) {
                    self.begin_some(index);
                    let begun = self.processes[index].begun_serial() as u32;
                    self.core.progressed(self.now, WorkerId(index as u32), begun);
                }
            }
            86..94 => {
                let jump = if self.rng.bool() { 50_000 } else { 20_000_000 };
                self.now = self.now + self.rng.u64(0..jump);
                self.core.tick(self.now, &mut out);
                let next = self.core.next_tick();
                assert!(next.is_none_or(|at| at > self.now), "a due timer was left");
            }
            94..97 => {
                let blob = BlobId(self.blobs.len() as u64 + 100);
                self.blobs.push(blob);
                self.core.share(blob);
            }
            _ => {
                if let Some(blob) = self.rng.choice(&self.blobs).copied() {
                    self.core.unshare(blob, &mut out);
                }
            }
        }
        self.perform(out);
        self.core.check();
    }

    fn some_call(&mut self) -> Option<CallId> {
        self.rng.choice(&self.calls).map(|call| call.id)
    }

    fn submit(&mut self, out: &mut Vec<Action<u32>>) {
        for _ in 0..self.rng.u32(1..20) {
            let bytes = self.rng.u64(0..1000);
            if !self.core.has_room(bytes) {
                assert!(self.core.queued() > 0);
                self.count("full");
                return;
            }
            let index = self.calls.len() as u32;
            let mut blobs = Vec::new();
            if self.rng.u32(0..4) == 0 && !self.blobs.is_empty() {
                blobs.push(self.blobs[self.rng.usize(0..self.blobs.len())]);
            }
            let mut task = Task::new(FunctionId(self.rng.u32(0..4)), index);
            if self.rng.u32(0..4) == 0 {
                task.on = self.rng.choice(&self.reserved).copied();
            }
            let on = task.on;
            task.bytes = bytes;
            task.idempotent = self.rng.bool();
            task.blobs.clone_from(&blobs);
            let soon = self.now + self.rng.u64(0..30_000_000);
            task.deadline = (self.rng.u32(0..5) == 0).then_some(soon);
            let idempotent = task.idempotent;
            // The core names the call before it acts on it: know it first.
            let mut actions = Vec::new();
            match self.core.submit(self.now, task, &mut actions) {
                Ok(id) => {
                    self.calls.push(Wanted { id, idempotent, blobs, on, begun: 0, ended: false });
                    self.count(if on.is_some() { "reserved" } else { "submitted" });
                }
                Err(Refusal::UnknownBlob(blob)) => assert!(blobs.contains(&blob)),
                Err(Refusal::NoWorkers(_)) => assert!(self.core.broken().is_some()),
                Err(Refusal::Closed) => unreachable!("nobody closed it"),
                Err(Refusal::ReservedLost(_)) => {
                    let lost = on.map(|on| self.core.standing(on));
                    assert!(matches!(lost, Some(Standing::Lost(_))));
                    self.count("reserved lost");
                }
                Err(Refusal::Released) => {
                    assert_eq!(on.map(|on| self.core.standing(on)), Some(Standing::Released));
                }
            }
            self.perform(actions);
            self.core.check();
            let waiting = self.core.queued();
            assert!(waiting <= self.settings.max_queued + 256 * self.processes.len());
        }
        out.clear();
    }

    fn pick(&mut self, fits: impl Fn(&Process) -> bool) -> Option<usize> {
        let fitting: Vec<usize> =
            (0..self.processes.len()).filter(|index| fits(&self.processes[*index])).collect();
        self.rng.choice(fitting)
    }

    fn answer(&mut self, out: &mut Vec<Action<u32>>) {
        let Some(index) = self.pick(|p| p.alive && !p.doomed && !p.inbox.is_empty()) else {
            return;
        };
        let process = &mut self.processes[index];
        let Some((_, call, payload)) = process.inbox.pop_front() else { return };
        let was_begun = process.begun > 0;
        process.begun = process.begun.saturating_sub(1);
        let most = if self.light { 500 } else { 100_000 };
        let ran = if self.rng.u32(0..50) == 0 { 10_000_000 } else { self.rng.u64(50..most) };
        let took = Took { ran, whole: ran + self.rng.u64(0..most) };
        self.now = self.now + self.rng.u64(0..50_000);
        let wanted = &mut self.calls[payload as usize];
        wanted.begun += u32::from(!was_begun);
        let id = WorkerId(index as u32);
        let wrong = CallId(u64::MAX);
        assert!(self.core.replied(self.now, id, wrong, took, out).is_err());
        match self.core.replied(self.now, id, call, took, out).expect("in order") {
            (back, true) => {
                assert_eq!(back, payload);
                assert!(!wanted.ended, "answered after its end");
                wanted.ended = true;
                self.count("answered");
            }
            (_, false) => assert!(wanted.ended, "a live call's answer was thrown away"),
        }
    }

    /// A worker reads data no more that it was told to let go of.
    fn let_go(&mut self, out: &mut Vec<Action<u32>>) {
        let Some(index) = self.pick(|p| p.alive && !p.letting_go.is_empty()) else { return };
        let letting_go = &mut self.processes[index].letting_go;
        let blob = letting_go.swap_remove(self.rng.usize(0..letting_go.len()));
        let unread = self.rng.u32(0..4) > 0;
        if !unread {
            self.passed_on.insert(blob);
        }
        self.core.blob_dropped(WorkerId(index as u32), blob, unread, out);
    }

    fn become_ready(&mut self, out: &mut Vec<Action<u32>>) {
        let Some(index) = self.pick(|p| p.alive && !p.ready) else { return };
        self.processes[index].ready = true;
        self.core.worker_ready(self.now, WorkerId(index as u32), out);
    }

    fn die(&mut self, out: &mut Vec<Action<u32>>) {
        let gone = |p: &Process| p.doomed || p.dismissed && p.inbox.is_empty();
        let index = self.pick(gone).or_else(|| self.pick(|p| p.alive));
        let Some(index) = index else { return };
        self.begin_some(index);
        let known = self.rng.bool();
        if !known {
            // All that it held may have run, so none may be run again without leave.
            let process = &mut self.processes[index];
            for (_, _, payload) in process.inbox.range(process.begun..) {
                self.calls[*payload as usize].begun += 1;
            }
        }
        let process = std::mem::take(&mut self.processes[index]);
        self.passed_on.extend(process.blobs.iter().chain(&process.letting_go));
        let started = known.then_some(process.begun_serial() as u32);
        let loss = Loss {
            worker: index as u32,
            pid: 1,
            host: "here".into(),
            cause: Cause::Signal { signal: 9, out_of_memory: false },
            stderr: String::new(),
        };
        self.core.worker_lost(self.now, WorkerId(index as u32), started, loss, out);
        self.count("deaths");
    }

    /// Lets all calls end, without further faults, and looks for what is left over.
    fn drain(&mut self) {
        for _ in 0..100_000 {
            let busy = |p: &Process| p.doomed || p.dismissed || !p.inbox.is_empty();
            if self.core.live() == 0 && self.pick(busy).is_none() {
                break;
            }
            let mut out = Vec::new();
            self.become_ready(&mut out);
            self.perform(std::mem::take(&mut out));
            if self.pick(|p| p.doomed || p.dismissed && p.inbox.is_empty()).is_some() {
                self.die(&mut out);
            } else {
                self.answer(&mut out);
            }
            self.perform(std::mem::take(&mut out));
            self.now = self.now + 10_000_000;
            self.core.tick(self.now, &mut out);
            self.perform(out);
            self.core.check();
        }
        assert_eq!(self.core.live(), 0, "calls never end");
        assert!(self.calls.iter().all(|call| call.ended));
        let mut out = Vec::new();
        for blob in self.blobs.clone() {
            self.core.unshare(blob, &mut out);
        }
        self.perform(out);
        while self.pick(|p| p.alive && !p.letting_go.is_empty()).is_some() {
            let mut out = Vec::new();
            self.let_go(&mut out);
            self.perform(out);
            self.core.check();
        }
        assert_eq!(self.freed.len(), self.blobs.len(), "shared data leaks");
        assert!(self.core.timers() <= 2 * 1024, "timers leak: {}", self.core.timers());
    }
}

#[test]
fn random_schedules_keep_every_invariant() {
    let mut totals: HashMap<&'static str, u64> = HashMap::new();
    for seed in 0..3000 {
        let mut world = World::new(seed);
        let steps = world.rng.u32(10..300);
        for _ in 0..steps {
            world.step();
        }
        if world.rng.u32(0..5) == 0 {
            let mut out = Vec::new();
            world.core.close(world.now, &mut out);
            world.perform(out);
            world.core.check();
            assert!(world.calls.iter().all(|call| call.ended));
        } else {
            world.drain();
        }
        for (what, count) in world.counts {
            *totals.entry(what).or_default() += count;
        }
    }
    // A simulation that never meets a fault shows nothing.
    for what in [
        "submitted",
        "answered",
        "cancelled",
        "deadline",
        "lost",
        "no workers",
        "closed",
        "killed",
        "full",
        "deaths",
        "taken back",
        "reserved",
        "reserved lost",
        "dismissed",
        "unread",
        "passed on",
    ] {
        assert!(totals.get(what).copied().unwrap_or(0) > 100, "hardly any {what}: {totals:?}");
    }
}

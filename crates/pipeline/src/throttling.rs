//! A manager that runs short of memory, and takes four steps against it.
//!
//! The bytes that it holds are the data of tasks that have come to it and have not reached a worker,
//! and results that have not reached the client. One that sends a task again when its worker is lost
//! keeps its data until it has the result. From a share of its memory on
//!
//! - *proactive*: new requests are taken more slowly, and data is written to disk: what is only kept
//!   first, then what waits, which has to be read again before it can be sent;
//! - *severe*: still more slowly, tasks that wait come first;
//! - *critical*: new tasks are held back, results go out first;
//! - *halt*: nothing is taken, sent or accepted from workers until there is room again; what is on
//!   its way arrives, results leave, and writing to disk goes on.

use std::collections::VecDeque;

use crate::run::{Run, What};
use crate::stages::{Stage, Stages};

/// How short of memory the manager is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    #[default]
    Normal,
    Proactive,
    Severe,
    Critical,
    Halt,
}

/// When a manager takes which step; the steps are shares of its memory that are in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttling {
    /// Bytes.
    pub memory: f64,
    /// Bytes per second, written or read.
    pub disk: f64,
    /// So many times as long takes a new request, in each of the first two steps.
    pub slower: f64,
    /// Proactive, severe, critical, halt.
    pub steps: [f64; 4],
    /// A task's data is kept until the manager has its result, not only until a worker has it.
    pub until_done: bool,
}

impl Throttling {
    /// The step to be taken with so many bytes in use.
    fn level(&self, used: f64) -> Level {
        match self.steps.iter().filter(|&share| used >= share * self.memory).count() {
            0 => Level::Normal,
            1 => Level::Proactive,
            2 => Level::Severe,
            3 => Level::Critical,
            _ => Level::Halt,
        }
    }
}

/// What became of the manager's memory in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    /// Bytes, the most that were held at one time.
    pub most: f64,
    /// Tasks whose data was written to disk.
    pub paged: u64,
    /// Seconds.
    pub disk_busy: f64,
    /// The furthest step that was taken.
    pub worst: Level,
}

/// Where a task's data is, as far as that matters for paging.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Data {
    Elsewhere,
    InMemory,
    OnDisk,
    /// In memory, though a worker has it or soon will.
    Kept,
}

/// The manager's memory in a run.
pub(crate) struct Shortage {
    throttling: Throttling,
    pressure: Pressure,
    used: f64,
    level: Level,
    /// Tasks that the client has submitted, and the manager has not begun to take.
    at_door: VecDeque<u32>,
    taking: bool,
    /// Tasks that wait in memory, and some that do so no more; the newest last.
    in_memory: Vec<u32>,
    /// Tasks whose data is kept, and some for which it is so no more; the newest last.
    kept: Vec<u32>,
    /// By task.
    data: Vec<Data>,
    held_results: VecDeque<u32>,
    disk: Stage,
    writing: bool,
}

impl Shortage {
    pub fn new(throttling: &Throttling, tasks: usize, stages: &mut Stages<What>) -> Shortage {
        Shortage {
            throttling: *throttling,
            pressure: Pressure::default(),
            used: 0.0,
            level: Level::Normal,
            at_door: VecDeque::new(),
            taking: false,
            in_memory: Vec::new(),
            kept: Vec::new(),
            data: vec![Data::Elsewhere; tasks],
            held_results: VecDeque::new(),
            disk: stages.in_turn(None),
            writing: false,
        }
    }

    pub fn pressure(&self) -> Pressure {
        self.pressure
    }

    /// A task's data, which is in memory, is about to be sent.
    fn keep(&mut self, task: u32) {
        if self.throttling.until_done {
            self.data[task as usize] = Data::Kept;
            self.kept.push(task);
        }
    }

    /// The newest task whose data is kept, as that is not needed any more; else the newest whose data
    /// waits in memory, as the oldest will be needed soon.
    fn newest(&mut self) -> Option<u32> {
        while let Some(task) = self.kept.pop() {
            if self.data[task as usize] == Data::Kept {
                return Some(task);
            }
        }
        while let Some(task) = self.in_memory.pop() {
            if self.data[task as usize] == Data::InMemory {
                return Some(task);
            }
        }
        None
    }
}

impl Run<'_> {
    // Tasks come in, one after the other.

    /// The client has submitted a task.
    pub(crate) fn reaches_door(&mut self, task: u32) {
        if let Some(shortage) = &mut self.shortage {
            shortage.at_door.push_back(task);
        }
        self.submitting = false;
        self.take_next();
    }

    /// The manager begins to take another task, unless it cannot afford that.
    pub(crate) fn take_next(&mut self) {
        let (Some(manager), Some(shortage)) = (&self.parameters.manager, &mut self.shortage) else {
            return;
        };
        if shortage.taking || shortage.level >= Level::Critical {
            return;
        }
        let Some(task) = shortage.at_door.pop_front() else { return };
        shortage.taking = true;
        let slower = shortage.throttling.slower.powf(f64::from(shortage.level as u8));
        let work = manager.inward.work(self.case.bytes_in) * slower;
        self.pass(self.inward, work, What::ReachesManager, task);
    }

    /// The manager has taken a task.
    pub(crate) fn taken_in(&mut self, task: u32) {
        let Some(shortage) = &mut self.shortage else { return };
        shortage.taking = false;
        shortage.in_memory.push(task);
        shortage.data[task as usize] = Data::InMemory;
        self.hold(self.case.bytes_in);
    }

    // What waits goes to disk.

    /// Writes the data of another task to disk, if memory is short.
    pub(crate) fn page(&mut self) {
        let size = self.case.bytes_in;
        let Some(shortage) = &mut self.shortage else { return };
        if shortage.writing || shortage.level == Level::Normal || size == 0.0 {
            return;
        }
        let Some(task) = shortage.newest() else { return };
        let work = size / shortage.throttling.disk;
        shortage.writing = true;
        shortage.pressure.disk_busy += work;
        self.stages.queue(shortage.disk, work, What::Written, task, false, None);
    }

    /// A task's data need not be kept in memory, unless it was sent meanwhile.
    pub(crate) fn written(&mut self, task: u32) {
        let Some(shortage) = &mut self.shortage else { return };
        shortage.writing = false;
        let data = &mut shortage.data[task as usize];
        let before = *data;
        if before == Data::InMemory || before == Data::Kept {
            *data = if before == Data::Kept { Data::Elsewhere } else { Data::OnDisk };
            shortage.pressure.paged += 1;
            self.hold(-self.case.bytes_in);
        }
        self.page();
    }

    // Tasks go out.

    /// Whether nothing is sent.
    pub(crate) fn has_halted(&self) -> bool {
        self.shortage.as_ref().is_some_and(|one| one.level >= Level::Halt)
    }

    /// A task is to be sent. Whether its data has to be read from disk first, which begins.
    pub(crate) fn needs_reading(&mut self, task: u32) -> bool {
        let Some(shortage) = &mut self.shortage else { return false };
        let data = std::mem::replace(&mut shortage.data[task as usize], Data::Elsewhere);
        if data != Data::OnDisk {
            shortage.keep(task);
            return false;
        }
        let work = self.case.bytes_in / shortage.throttling.disk;
        shortage.pressure.disk_busy += work;
        self.stages.queue(shortage.disk, work, What::ReadBack, task, true, None);
        true
    }

    /// A task's data is in memory again.
    pub(crate) fn read_back(&mut self, task: u32) {
        if let Some(shortage) = &mut self.shortage {
            shortage.keep(task);
        }
        self.hold(self.case.bytes_in);
        self.send_data(task);
    }

    /// A worker has a task's data, which need not be kept unless for recovery.
    pub(crate) fn worker_has(&mut self) {
        if self.shortage.as_ref().is_some_and(|one| !one.throttling.until_done) {
            self.hold(-self.case.bytes_in);
        }
    }

    // Results go back.

    /// The manager has a task's result, so that nothing needs the task's data any more.
    pub(crate) fn is_done(&mut self, task: u32) {
        let Some(shortage) = &mut self.shortage else { return };
        if shortage.data[task as usize] == Data::Kept {
            shortage.data[task as usize] = Data::Elsewhere;
            self.hold(-self.case.bytes_in);
        }
    }

    /// A task has its result. Whether that has to wait, as a manager that has halted takes none.
    pub(crate) fn holds_back(&mut self, task: u32) -> bool {
        match &mut self.shortage {
            Some(shortage) if shortage.level == Level::Halt => {
                shortage.held_results.push_back(task);
                true
            }
            _ => false,
        }
    }

    // Memory is taken and given back.

    /// So many bytes more, or less, are held; what that allows goes on.
    pub(crate) fn hold(&mut self, size: f64) {
        let Some(shortage) = &mut self.shortage else { return };
        if size == 0.0 {
            return;
        }
        shortage.used += size;
        let before = shortage.level;
        shortage.level = shortage.throttling.level(shortage.used);
        shortage.pressure.most = shortage.pressure.most.max(shortage.used);
        shortage.pressure.worst = shortage.pressure.worst.max(shortage.level);
        if before == Level::Halt && !self.has_halted() {
            self.resume();
        }
        let affords = |one: &Shortage| before >= Level::Critical && one.level < Level::Critical;
        if self.shortage.as_ref().is_some_and(affords) {
            self.take_next();
        }
        self.page();
    }

    /// What had to wait while everything stood still goes on.
    fn resume(&mut self) {
        while let Some(task) = self.shortage.as_mut().and_then(|one| one.held_results.pop_front()) {
            self.answer(task);
        }
        self.dispatch();
    }
}

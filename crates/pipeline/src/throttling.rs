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
//!   its way arrives, results leave, and writing to disk continues.

use std::collections::VecDeque;

use crate::event::RunEvent;
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
    pub fn level(&self, used: f64) -> Level {
        match self.steps.iter().filter(|&share| used >= share * self.memory).count() {
            0 => Level::Normal,
            1 => Level::Proactive,
            2 => Level::Severe,
            3 => Level::Critical,
            _ => Level::Halt,
        }
    }
}

/// Use of the manager's memory in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MemoryPressure {
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
pub enum Data {
    Elsewhere,
    InMemory,
    OnDisk,
    /// In memory, though a worker has it or soon will.
    Kept,
}

/// The manager's memory in a run.
pub(crate) struct Shortage {
    pub throttling: Throttling,
    pub pressure: MemoryPressure,
    pub used: f64,
    pub level: Level,
    /// Tasks that the client has submitted, and the manager has not begun to take.
    pub at_door: VecDeque<u32>,
    pub taking: bool,
    /// Tasks that wait in memory, and some that do so no more; the newest last.
    pub in_memory: Vec<u32>,
    /// Tasks whose data is kept, and some for which it is so no more; the newest last.
    retained: Vec<u32>,
    /// By task.
    pub data: Vec<Data>,
    pub held_results: VecDeque<u32>,
    pub disk: Stage,
    pub writing: bool,
}

impl Shortage {
    pub fn new(throttling: &Throttling, tasks: usize, stages: &mut Stages<RunEvent>) -> Shortage {
        Shortage {
            throttling: *throttling,
            pressure: MemoryPressure::default(),
            used: 0.0,
            level: Level::Normal,
            at_door: VecDeque::new(),
            taking: false,
            in_memory: Vec::new(),
            retained: Vec::new(),
            data: vec![Data::Elsewhere; tasks],
            held_results: VecDeque::new(),
            disk: stages.in_turn(None),
            writing: false,
        }
    }

    pub fn pressure(&self) -> MemoryPressure {
        self.pressure
    }

    /// A task's data, which is in memory, is about to be sent.
    pub fn keep(&mut self, task: u32) {
        if self.throttling.until_done {
            self.data[task as usize] = Data::Kept;
            self.retained.push(task);
        }
    }

    /// The newest task whose data is kept, as that is not needed any more; else the newest whose data
    /// waits in memory, as the oldest will be needed soon.
    pub fn newest(&mut self) -> Option<u32> {
        while let Some(task) = self.retained.pop() {
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

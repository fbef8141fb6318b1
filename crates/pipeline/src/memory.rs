//! Pieces of memory that tasks' data lies in, which are used again.

use std::collections::HashSet;

/// Those of a run. What has none of its own, goes within messages.
pub struct Memory {
    /// Each task's data has a piece, until its result is there.
    retained: bool,
    pieces: u32,
    piece: Vec<u32>,
    /// Pieces that earlier tasks have left to the client: the last is used next.
    left: Vec<u32>,
    most_left: f64,
    /// Pieces that each worker has read from.
    seen: HashSet<(u32, u32)>,
    /// By worker: pieces that earlier outputs have left to it.
    left_outputs: Vec<u32>,
    /// By task: the output lies in memory that the client has not seen.
    unseen_output: Vec<bool>,
}

impl Memory {
    /// For so many tasks and workers.
    pub fn new(tasks: usize, workers: usize, retained: bool, most_left: f64) -> Memory {
        Memory {
            retained,
            pieces: 0,
            piece: if retained { vec![0; tasks] } else { Vec::new() },
            left: Vec::new(),
            most_left,
            seen: HashSet::new(),
            left_outputs: vec![0; workers],
            unseen_output: vec![false; tasks],
        }
    }

    /// A task's data needs a piece. Whether that is new.
    pub fn is_new_for(&mut self, task: u32) -> bool {
        if !self.retained {
            return false;
        }
        let left = self.left.pop();
        self.piece[task as usize] = left.unwrap_or_else(|| {
            self.pieces += 1;
            self.pieces - 1
        });
        left.is_none()
    }

    /// A worker reads a task's data. Whether it has not seen that piece before.
    pub fn is_unseen_by(&mut self, worker: u32, task: u32) -> bool {
        self.retained && self.seen.insert((worker, self.piece[task as usize]))
    }

    /// A task needs its data no more.
    pub fn leave(&mut self, task: u32) {
        if self.retained && (self.left.len() as f64) < self.most_left {
            self.left.push(self.piece[task as usize]);
        }
    }

    /// A task's output needs a piece of its worker's. Whether that is new.
    pub fn is_new_for_output(&mut self, worker: u32, task: u32) -> bool {
        let left = &mut self.left_outputs[worker as usize];
        if *left > 0 {
            *left -= 1;
            return false;
        }
        self.unseen_output[task as usize] = true;
        true
    }

    /// Whether the client sees a task's output in memory that is new to it.
    pub fn is_output_unseen(&self, task: u32) -> bool {
        self.unseen_output[task as usize]
    }

    /// The client has done with an output of this worker's.
    pub fn leave_output(&mut self, worker: u32) {
        self.left_outputs[worker as usize] += 1;
    }
}

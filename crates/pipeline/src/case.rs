//! What goes into a run, and what comes out of it.

/// A workload on workers. Times are in seconds, sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Of each task, in the order of submission.
    pub sleep: Vec<f64>,
    /// When each worker has started; or when it is requested, in a system with a `Start`.
    pub ready: Vec<f64>,
    /// Number of each worker's host, below the number of workers.
    pub host: Vec<u32>,
    /// Of each task's data; so too the two below.
    pub bytes_in: f64,
    /// See `bytes_in`.
    pub bytes_out: f64,
    /// See `bytes_in`.
    pub bytes_shared: f64,
}

impl Case {
    /// Tasks without data, on workers that have a host each.
    pub fn new(sleep: Vec<f64>, ready: Vec<f64>) -> Case {
        let host = (0..ready.len() as u32).collect();
        Case { sleep, ready, host, bytes_in: 0.0, bytes_out: 0.0, bytes_shared: 0.0 }
    }

    /// The same with these sizes: of each task's data, its output, and the shared data.
    pub fn with_bytes(self, bytes_in: f64, bytes_out: f64, bytes_shared: f64) -> Case {
        Case { bytes_in, bytes_out, bytes_shared, ..self }
    }
}

/// The stamps of all tasks in the order of submission; seconds, NaN of what has not happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stamps {
    /// When the client had handed the task over.
    pub submit: Vec<f64>,
    /// When its data started on its way to its worker.
    pub sent: Vec<f64>,
    /// When it began to compute.
    pub calc_in: Vec<f64>,
    /// When it had its output.
    pub calc_out: Vec<f64>,
    /// When its result was in the client's hand.
    pub retrieve: Vec<f64>,
    /// Number of the worker that computed it; -1: none.
    pub worker: Vec<i64>,
}

/// Quantities that compare runs; seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunTimes {
    /// From t = 0 until the last result is in the client's hand.
    pub total: f64,
    /// Until the first task computed.
    pub first_calc_in: f64,
    /// Until the last of the workers that had one computed its first.
    pub last_worker_calc_in: f64,
    /// Mean of what tasks computed longer than they were to sleep.
    pub extra: f64,
}

impl Stamps {
    /// Of this many tasks before the first begins.
    pub(crate) fn new(tasks: usize) -> Stamps {
        let none = vec![f64::NAN; tasks];
        Stamps {
            submit: none.clone(),
            sent: none.clone(),
            calc_in: none.clone(),
            calc_out: none.clone(),
            retrieve: none,
            worker: vec![-1; tasks],
        }
    }

    /// What a run with these stamps would be compared by.
    pub fn figures(&self, case: &Case) -> RunTimes {
        let mut firsts = vec![f64::INFINITY; case.ready.len()];
        let mut extra = 0.0;
        for (task, &worker) in self.worker.iter().enumerate() {
            if let Some(first) = usize::try_from(worker).ok().and_then(|one| firsts.get_mut(one)) {
                *first = first.min(self.calc_in[task]);
            }
            extra += self.calc_out[task] - self.calc_in[task] - case.sleep[task];
        }
        let firsts = firsts.into_iter().filter(|first| first.is_finite());
        RunTimes {
            total: self.retrieve.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            first_calc_in: self.calc_in.iter().copied().fold(f64::INFINITY, f64::min),
            last_worker_calc_in: firsts.fold(f64::NEG_INFINITY, f64::max),
            extra: extra / self.worker.len() as f64,
        }
    }
}

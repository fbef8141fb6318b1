//! How a system behaves. Times are in seconds, sizes in bytes.

/// How messages share a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One message after the other.
    FirstComeFirstServed,
    /// All at once, with equal shares.
    ProcessorSharing,
}

/// A way for data, shared by all messages in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Bytes per second, of all messages together.
    pub rate: f64,
    /// Seconds that each message takes of it besides its bytes.
    pub per_message: f64,
    /// How messages share it.
    pub sharing: Sharing,
    /// Bytes per second of one message at most: as much as a worker's own link takes.
    pub each: f64,
}

impl Default for Link {
    /// One that takes no time.
    fn default() -> Link {
        Link {
            rate: f64::INFINITY,
            per_message: 0.0,
            sharing: Sharing::FirstComeFirstServed,
            each: f64::INFINITY,
        }
    }
}

impl Link {
    /// Seconds that a message of `size` bytes takes when there is no other.
    pub fn work(&self, size: f64) -> f64 {
        self.per_message + size / self.rate.min(self.each)
    }

    /// So many messages fill it, if all go at once; in turn it is one.
    pub fn at_once(&self) -> f64 {
        let evenly = self.sharing == Sharing::ProcessorSharing && self.each < self.rate;
        if evenly { self.rate / self.each } else { 1.0 }
    }
}

/// What takes all tasks and gives them to free workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Manager {
    /// From the client.
    pub inward: Link,
    /// To the client.
    pub outward: Link,
}

/// Processor time per message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuCost {
    /// Seconds for each message.
    pub fixed: f64,
    /// Seconds for each of its bytes.
    pub per_byte: f64,
}

impl CpuCost {
    /// Seconds for a message of `size` bytes.
    pub fn of(&self, size: f64) -> f64 {
        self.fixed + self.per_byte * size
    }
}

/// How workers come up once they have been requested, at the time their case gives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Start {
    /// Seconds before the first is made; besides, for each worker, `prepare`.
    pub constant: f64,
    /// See `constant`.
    pub prepare: f64,
    /// Processor time of each in the process that makes one after the other.
    pub serial: f64,
    /// Each worker's own processor time, before it can take a task.
    pub parallel: f64,
    /// The client's own work for each worker that has come up.
    pub adopt: f64,
    /// No task is given out before all workers have been made.
    pub all_first: bool,
}

/// How a system behaves. Each number is described in `gridbench.model.pipeline`, which gives
/// them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Parameters {
    pub to_workers: Link,
    pub from_workers: Link,
    pub manager: Option<Manager>,
    pub shared_rate: f64,
    pub chained_from: f64,
    pub submit_cost: f64,
    pub submit_per_byte: f64,
    pub retrieve_cost: f64,
    pub start_latency: f64,
    pub return_latency: f64,
    pub start: Option<Start>,
    pub share: CpuCost,
    pub take_shared: CpuCost,
    pub take: CpuCost,
    pub map_input: CpuCost,
    pub make: CpuCost,
    pub new_input: CpuCost,
    pub new_output: CpuCost,
    pub map_output: CpuCost,
    /// The client's own to take a result that has data, besides.
    pub take_output: CpuCost,
    pub last_used_first: bool,
    pub kept_from: f64,
    pub most_left: f64,
    pub processors: f64,
    pub client_lock: bool,
    pub ahead: usize,
    pub most_waiting_bytes: f64,
    pub most_outstanding: f64,
}

impl Default for Parameters {
    /// Nothing costs anything, and nothing has a bound.
    fn default() -> Parameters {
        Parameters {
            to_workers: Link::default(),
            from_workers: Link::default(),
            manager: None,
            shared_rate: f64::INFINITY,
            chained_from: f64::INFINITY,
            submit_cost: 0.0,
            submit_per_byte: 0.0,
            retrieve_cost: 0.0,
            start_latency: 0.0,
            return_latency: 0.0,
            start: None,
            share: CpuCost::default(),
            take_shared: CpuCost::default(),
            take: CpuCost::default(),
            map_input: CpuCost::default(),
            make: CpuCost::default(),
            new_input: CpuCost::default(),
            new_output: CpuCost::default(),
            map_output: CpuCost::default(),
            take_output: CpuCost::default(),
            last_used_first: false,
            kept_from: 0.0,
            most_left: f64::INFINITY,
            processors: f64::INFINITY,
            client_lock: false,
            ahead: 0,
            most_waiting_bytes: f64::INFINITY,
            most_outstanding: f64::INFINITY,
        }
    }
}

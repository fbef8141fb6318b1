//! Send queues, under the state lock: to the workers of this machine and to the agents of hosts.

mod host_memory;
mod hosts;
mod reserved_workers;
mod workers;

pub(crate) use host_memory::HostMemory;
pub(crate) use hosts::{HostOut, HostsOut, Terms};
pub(crate) use workers::{Unsent, WorkerOut, WorkersOut};

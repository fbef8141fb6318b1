//! What a host has that a worker process has not, and what programs learn of it.

use std::sync::Arc;

use crate::elastic::Stay;
use crate::end::Loss;
use crate::queue::Queue;
use crate::resources::Available;

/// What a host has that a process has not.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// Workers that have answered there.
    pub(crate) slots: usize,
    /// Workers that there are to be.
    pub(crate) wanted: usize,
    /// Processors that each of its workers has; 0 means 1.
    pub(crate) cores: u32,
    /// Its group, as errors name it.
    pub(crate) group: Arc<str>,
    /// What else calls may take of it.
    pub(crate) available: Available,
    /// Its places are collected for a call that asks for several: others have to wait.
    pub(crate) collects: bool,
    /// How long a message takes to go there and back, ns.
    pub(crate) round_trip: u64,
    /// Functions there make calls themselves, and may wait for them: nothing is sent ahead.
    pub(crate) nests: bool,
    /// It has told once how many workers it is to have.
    pub(crate) known: bool,
    /// A worker has answered since it has joined.
    pub(crate) serves: bool,
    /// Calls whose arguments are there.
    pub(crate) nearby: Queue,
    /// How it was lost last, or could not be had, if no worker has answered since.
    pub(crate) loss: Option<Arc<Loss>>,
    /// How long it is to stay.
    pub(crate) stay: Stay,
}

/// How far a host has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStage {
    /// It is not asked for, as there is no work for it.
    Unwanted,
    /// It has been asked for, or will be again.
    Starting,
    /// Workers there have answered.
    Ready,
    /// It is being given back.
    Ending,
    /// It could not be had.
    GivenUp,
}

/// How a host is getting on.
#[derive(Clone, Debug)]
pub struct HostStatus {
    /// How far it has come.
    pub stage: HostStage,
    /// Workers there that have answered.
    pub ready: usize,
    /// How many there are to be; 0: it has not told yet.
    pub workers: usize,
    /// How it was lost last, or could not be had, if no worker has answered since.
    pub loss: Option<Arc<Loss>>,
}

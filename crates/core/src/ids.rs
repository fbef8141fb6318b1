//! Typed ids, and time.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// A time on the client's monotonic clock, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The time elapsed since `earlier`, ns; 0 if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A duration in the unit of [`Time`], ns.
pub(crate) fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<u64> for Time {
    type Output = Time;

    fn add(self, ns: u64) -> Time {
        Time(self.0.saturating_add(ns))
    }
}

/// A call. Unique within the life of a [`crate::Core`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl CallId {
    pub(crate) fn new(index: u32, generation: u32) -> CallId {
        CallId(u64::from(generation) << 32 | u64::from(index))
    }

    pub(crate) fn index(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call {}.{}", self.index(), self.generation())
    }
}

/// A place for a worker in the grid, from 0. When its process is lost, another one takes the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

impl WorkerId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A function registered by the caller, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// Owner of calls, among those who share a grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(pub u32);

impl Owner {
    /// The process that opened the grid.
    pub const SELF: Owner = Owner(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Executors that calls can be bound to: the workers of this machine, or hosts passed to [`crate::Core::add_group`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// The workers of this machine.
    pub const HERE: GroupId = GroupId(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Shared data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub u64);

impl BlobId {
    /// Set in numbers of data that a server keeps under a name. Clients draw numbers without it.
    pub const NAMED: u64 = 1 << 63;

    /// Whether a server keeps the data under a name. Its client has no copy.
    #[must_use]
    pub fn is_named(self) -> bool {
        self.0 & BlobId::NAMED != 0
    }
}

/// A worker that runs the calls of one owner only, in order. Its process is not replaced, because its state would be
/// lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    /// The worker.
    pub worker: WorkerId,
    /// Distinguishes this reservation from others of the same place.
    pub ticket: u64,
}

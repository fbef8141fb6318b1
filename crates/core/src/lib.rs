//! Scheduling core of a grid: calls, workers, deadlines, cancellation, shared data, back-pressure.
//!
//! [`Core`] is a pure state machine. Events go in as method calls that carry the time;
//! the resulting work comes out as [`Action`]s. It owns no socket, no clock and no thread, so the
//! unit tests, the simulation in `tests/simulation.rs` and the real reactor run the same code.
//!
//! A [`Policy`] selects the executor of each call. The default is [`Adaptive`]; the simulations pass with other
//! policies too.
//!
//! Payloads stay outside: the core sees sizes and names, and hands the caller's own `T` back
//! with the actions that concern it.
//!
//! ```
//! use gridrpc_core::{Action, Core, FunctionId, OccupiedTime, Settings, Task, Time, WorkerId};
//!
//! let mut core = Core::new(Settings { workers: 1, ..Settings::default() });
//! let mut actions = Vec::new();
//! core.open(Time(0), &mut actions);
//! core.worker_ready(Time(1), WorkerId(0), &mut actions);
//! actions.clear();
//! let call = core.submit(Time(2), Task::new(FunctionId(0), "payload"), &mut actions).unwrap();
//! assert!(matches!(actions[..], [Action::Teach { .. }, Action::Send { .. }]));
//! let took = OccupiedTime { ran: 500, whole: 800 };
//! let ended = core.replied(Time(3), WorkerId(0), call, took, &mut actions);
//! assert_eq!(ended.unwrap(), ("payload", true));
//! ```

mod adaptive;
mod blobs;
mod calls;
mod core;
mod counters;
mod dependents;
mod elastic;
mod end;
mod group;
mod host;
mod host_summary;
mod ids;
mod interface;
mod options;
mod owners;
mod pace;
mod policy;
mod queue;
mod resource_request;
mod resources;
mod timers;
mod workers;

pub use crate::core::Core;
pub use adaptive::Adaptive;
pub use counters::{Activity, CallCounters};
pub use end::{Cause, End, Loss, NestedCallLimit, NoFittingHost, Site, TimeLimit, TooManyCores};
pub use host::{HostRetry, HostStage, HostStatus};
pub use host_summary::summarise_hosts;
pub use ids::{BlobId, CallId, FunctionId, GroupId, Owner, Reservation, Time, WorkerId};
pub use interface::{Action, Claim, OccupiedTime, Refusal, ReservationState, Settings, Task};
pub use options::CallOptions;
pub use owners::Quota;
pub use pace::HostPace;
pub use policy::{Policy, View};
pub use resources::{MEMORY, Resources};
pub use timers::DueTimer;
pub use workers::UnexpectedReply;

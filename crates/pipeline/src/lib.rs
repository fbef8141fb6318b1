//! A run as tasks on their way: client, link, perhaps a manager, workers, and back.
//!
//! ```text
//! client -> (link -> manager) -> link -> worker: take, sleep, answer -> link (-> link) -> client
//! ```
//!
//! Each of these can do only so much at a time, and all of them work at once: that is what overlaps.
//! On one machine, client and workers also share its processors. A [`Run`] follows every task of a
//! [`Case`] through them, by [`Parameters`], and gives its [`Stamps`]. It has no clock but its own,
//! and nothing is drawn at random.
//!
//! A [`ServersRun`] follows the calls of many clients on the servers of a [`Network`], on the same links.
//!
//! ```
//! use gridbench_pipeline::{Case, Link, Parameters, Run};
//!
//! // Two tasks of a second on a worker, with data that takes half a second on its way.
//! let case = Case::new(vec![1.0, 1.0], vec![0.0]).with_bytes(50.0, 0.0, 0.0);
//! let link = Link { rate: 100.0, ..Link::default() };
//! let parameters = Parameters { to_workers: link, ..Parameters::default() };
//! let mut run = Run::new(&case, &parameters, None);
//! while run.go_on(10_000) {}
//! let stamps = run.stamps();
//! assert_eq!(stamps.calc_in, [0.5, 2.0]);
//! assert_eq!(stamps.retrieve, [1.5, 3.0]);
//! ```

mod case;
mod clock;
mod event;
mod manager;
mod memory;
mod network;
mod parameters;
mod run;
mod servers;
mod spreading;
mod stages;
mod throttling;

pub use case::{Case, RunTimes, Stamps};
pub use network::{
    Assignment, CallPlan, CallStamps, ClientLink, InvalidNetwork, MOST_LINKS, NO_SERVER, Network,
    SimulatedServer,
};
pub use parameters::{CpuCost, Link, Manager, Parameters, Sharing, Start};
pub use run::Run;
pub use servers::ServersRun;
pub use throttling::{Level, MemoryPressure, Throttling};

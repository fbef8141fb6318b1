//! Servers, clients and links of a simulation, the calls, and what happened to them.

use gridrpc_placement::{Policy, Work};

use crate::stages::Stage;

/// The server of a call that was left out.
pub const NO_SERVER: u32 = u32::MAX;
/// Most links: groups of clients times servers.
pub const MOST_LINKS: usize = Stage::MAX as usize / 2;

/// A server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedServer {
    /// Calls that run at a time; others wait in order of arrival.
    pub slots: u32,
    /// Operations per second of a call.
    pub speed: f64,
    /// Number of cores, as announced.
    pub cores: u32,
    /// Operations per second of a call, as announced.
    pub announced_speed: f64,
    /// Time of an announcement, s.
    pub phase: f64,
}

/// A link between a group of clients and a server. In each direction, its connections share the bandwidth evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientLink {
    /// Bytes per second in each direction.
    pub bandwidth: f64,
    /// Latency of a message, s.
    pub latency: f64,
}

/// Servers, clients, and links between them.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// The servers.
    pub servers: Vec<SimulatedServer>,
    /// For each client the number of its group.
    pub clients: Vec<u32>,
    /// For each group the links to all servers, one group after the other.
    pub links: Vec<ClientLink>,
    /// What a call of each function needs.
    pub functions: Vec<Work>,
    /// Time between two announcements of a server, s; 0: clients always know all loads.
    pub interval: f64,
}

/// When clients call which functions.
#[derive(Clone, Debug, Default)]
pub struct CallPlan {
    /// Times in ascending order, s.
    pub at: Vec<f64>,
    /// The client of each call.
    pub client: Vec<u32>,
    /// The function of each call.
    pub function: Vec<u32>,
    /// Whether a client leaves out a call while one of its calls has not ended.
    pub skips_busy: bool,
}

/// How the servers of calls are found.
#[derive(Clone, Debug)]
pub enum Assignment {
    /// Each client chooses by this policy; the seed is that of `Policy::Random`.
    Policy(Policy, u64),
    /// The server of each call.
    Given(Vec<u32>),
}

/// What happened to the calls; NaN: it did not happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallStamps {
    /// The server; `NO_SERVER`: the call was left out.
    pub server: Vec<u32>,
    /// The function starts on the server.
    pub started: Vec<f64>,
    /// The function ends.
    pub computed: Vec<f64>,
    /// The client has the results.
    pub ended: Vec<f64>,
}

/// Why a simulation cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidNetwork(pub &'static str);

/// What makes a simulation impossible.
pub(crate) fn check(
    network: &Network,
    plan: &CallPlan,
    assignment: &Assignment,
) -> Result<(), InvalidNetwork> {
    let (servers, calls) = (network.servers.len(), plan.at.len());
    let groups = network.clients.iter().max().map_or(0, |&most| most as usize + 1);
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let below = |values: &[u32], count: usize| values.iter().all(|&one| (one as usize) < count);
    let wrong = [
        (servers == 0, "there is no server"),
        (network.links.len() > MOST_LINKS, "there are too many links"),
        (network.links.len() < groups * servers, "a group has no link to a server"),
        (u32::try_from(calls).is_err(), "there are too many calls"),
        (
            plan.client.len() != calls || plan.function.len() != calls,
            "a call has no client or no function",
        ),
        (!below(&plan.client, network.clients.len()), "a call has an unknown client"),
        (!below(&plan.function, network.functions.len()), "a call has an unknown function"),
        (!plan.at.is_sorted() || !plan.at.iter().all(|at| at.is_finite()), "times do not ascend"),
        (
            !network.servers.iter().all(|one| one.slots > 0 && positive(one.speed)),
            "a server cannot run calls",
        ),
        (!network.links.iter().all(|one| positive(one.bandwidth)), "a link has no bandwidth"),
        (
            !network.links.iter().all(|one| one.latency.is_finite() && one.latency >= 0.0),
            "a latency is negative",
        ),
        (
            !(network.interval.is_finite() && network.interval >= 0.0),
            "the interval of announcements is negative",
        ),
        (
            matches!(assignment, Assignment::Given(given)
                if given.len() != calls || !below(given, servers)),
            "a call is assigned to an unknown server",
        ),
    ];
    wrong.into_iter().find(|(is, _)| *is).map_or(Ok(()), |(_, what)| Err(InvalidNetwork(what)))
}

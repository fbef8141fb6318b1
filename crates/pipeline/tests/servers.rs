//! Calls of many clients on many servers, by hand and at random.

use gridbench_pipeline::{
    Assignment, CallPlan, CallStamps, ClientLink, NO_SERVER, Network, ServersRun, SimulatedServer,
};
use gridrpc_placement::{Policy, Work};

const SERVER: SimulatedServer =
    SimulatedServer { slots: 1, speed: 1.0, cores: 1, announced_speed: 1.0, phase: 0.0 };
const LINK: ClientLink = ClientLink { bandwidth: 100.0, latency: 0.0 };
/// Without transfers.
const SECOND: Work = Work { bytes_in: 0.0, bytes_out: 0.0, operations: 1.0 };
const LEAST_LOAD: Assignment = Assignment::Policy(Policy::LeastLoad, 1);

/// Servers on links of their own with clients of one group.
fn network(servers: &[SimulatedServer], clients: usize, work: Work) -> Network {
    Network {
        servers: servers.to_vec(),
        clients: vec![0; clients],
        links: vec![LINK; servers.len()],
        functions: vec![work],
        interval: 0.0,
    }
}

/// Calls of one function: times and clients.
fn plan(calls: &[(f64, u32)]) -> CallPlan {
    CallPlan {
        at: calls.iter().map(|call| call.0).collect(),
        client: calls.iter().map(|call| call.1).collect(),
        function: vec![0; calls.len()],
        skips_busy: false,
    }
}

fn simulated(network: &Network, plan: &CallPlan, assignment: &Assignment) -> CallStamps {
    let mut run = ServersRun::new(network, plan, assignment).unwrap();
    while run.go_on(7) {}
    assert_eq!(run.ended(), plan.at.len());
    run.stamps()
}

fn given(servers: &[u32]) -> Assignment {
    Assignment::Given(servers.to_vec())
}

#[test]
fn transfers_share_a_link_and_cores_do_not_wait_for_them() {
    // Two calls of 100 bytes share the link: both arrive at 2. One core computes them in turn, until 3 and 4. The results,
    // 50 bytes each, have the link for themselves.
    let work = Work { bytes_in: 100.0, bytes_out: 50.0, operations: 1.0 };
    let network = network(&[SERVER], 2, work);
    let stamps = simulated(&network, &plan(&[(0.0, 0), (0.0, 1)]), &given(&[0, 0]));
    assert_eq!(stamps.started, [2.0, 3.0]);
    assert_eq!(stamps.computed, [3.0, 4.0]);
    assert_eq!(stamps.ended, [3.5, 4.5]);
}

#[test]
fn a_link_is_shared_only_while_transfers_overlap() {
    // The first is alone until 1, with half done; both get half until it ends at 2; the second then has 50 left.
    let work = Work { bytes_in: 100.0, ..SECOND };
    let mut network = network(&[SERVER], 2, work);
    network.links[0].bandwidth = 100.0;
    let calls = plan(&[(0.0, 0), (0.5, 1)]);
    let stamps = simulated(&network, &calls, &given(&[0, 0]));
    assert_eq!(stamps.started, [1.5, 2.5]);
    assert_eq!(stamps.ended, [2.5, 3.5]);
}

#[test]
fn a_client_sends_as_many_calls_as_the_server_runs() {
    // The second call is sent when the first has ended, so the core waits for its arguments.
    let work = Work { bytes_in: 100.0, bytes_out: 50.0, operations: 1.0 };
    let network = network(&[SERVER], 1, work);
    let stamps = simulated(&network, &plan(&[(0.0, 0), (0.0, 0)]), &given(&[0, 0]));
    assert_eq!(stamps.started, [1.0, 3.5]);
    assert_eq!(stamps.ended, [2.5, 5.0]);
}

#[test]
fn directions_and_groups_do_not_share_links() {
    let work = Work { bytes_in: 100.0, bytes_out: 100.0, operations: 1.0 };
    let mut network = network(&[SimulatedServer { slots: 4, ..SERVER }], 2, work);
    network.clients = vec![0, 1];
    network.links = vec![LINK; 2];
    // The second call sends while the first receives.
    let calls = plan(&[(0.0, 0), (0.0, 1), (2.0, 0)]);
    let stamps = simulated(&network, &calls, &given(&[0, 0, 0]));
    assert_eq!(stamps.ended, [3.0, 3.0, 5.0]);
}

#[test]
fn latency_counts_once_in_each_direction() {
    let mut network = network(&[SERVER], 1, SECOND);
    network.links[0].latency = 0.25;
    let stamps = simulated(&network, &plan(&[(1.0, 0)]), &given(&[0]));
    assert_eq!((stamps.started[0], stamps.ended[0]), (1.25, 2.5));
}

#[test]
fn as_many_calls_run_as_the_server_has_slots_and_the_first_come_first() {
    let network = network(&[SimulatedServer { slots: 2, ..SERVER }], 1, SECOND);
    let stamps = simulated(&network, &plan(&[(0.0, 0); 5]), &given(&[0; 5]));
    assert_eq!(stamps.ended, [1.0, 1.0, 2.0, 2.0, 3.0]);
}

#[test]
fn a_client_that_waits_leaves_out_calls() {
    let network = network(&[SERVER], 2, SECOND);
    let mut calls = plan(&[(0.0, 0), (0.5, 0), (0.5, 1), (1.5, 0)]);
    calls.skips_busy = true;
    let stamps = simulated(&network, &calls, &given(&[0; 4]));
    assert_eq!(stamps.server, [0, NO_SERVER, 0, 0]);
    assert!(stamps.ended[1].is_nan());
    assert_eq!(stamps.ended[3], 3.0);
}

#[test]
fn a_client_counts_its_own_calls_at_once_and_others_after_announcements() {
    let mut network = network(&[SERVER; 3], 2, SECOND);
    network.interval = 1.0;
    // One client spreads its calls.
    let own = simulated(&network, &plan(&[(0.5, 0); 3]), &LEAST_LOAD);
    assert_eq!(own.server, [0, 1, 2]);
    // Two clients do not know of each other's calls.
    let two = simulated(&network, &plan(&[(0.5, 0), (0.5, 1)]), &LEAST_LOAD);
    assert_eq!(two.server, [0, 0]);
    // Known loads need no announcement: a call reaches its server before the next one is made.
    network.interval = 0.0;
    let known = simulated(&network, &plan(&[(0.5, 0), (0.6, 1)]), &LEAST_LOAD);
    assert_eq!(known.server, [0, 1]);
}

#[test]
fn answers_are_used_as_long_as_clients_with_a_directory_use_them() {
    // Server 0 is busy from 0.5 to 10.5. It announces that at 1.
    let mut network = network(&[SERVER; 2], 2, Work { operations: 10.0, ..SECOND });
    network.interval = 1.0;
    let server_of = |at: f64| {
        let calls = plan(&[(0.5, 0), (0.5, 1), (0.9, 1), (at, 1)]);
        simulated(&network, &calls, &LEAST_LOAD).server[3]
    };
    // The answer of 0.5 is valid: its own call on each server is what client 1 knows. Then the answer is used once
    // more while the next is fetched.
    assert_eq!([server_of(2.4), server_of(2.6)], [0, 0]);
    let calls = plan(&[(0.5, 0), (0.5, 1), (0.9, 1), (2.6, 1), (2.7, 1)]);
    let stamps = simulated(&network, &calls, &LEAST_LOAD);
    // At 2.7 it knows that 0 has two calls and 1 has one, and that its own call at 2.6 went to 0.
    assert_eq!(stamps.server, [0, 0, 1, 0, 1]);
}

#[test]
fn clients_learn_speeds_from_their_calls() {
    // The announced speed of the first is a lie; after one call of each, the client knows.
    let liar = SimulatedServer { announced_speed: 8.0, speed: 0.5, ..SERVER };
    let mut network = network(&[liar, SERVER], 1, SECOND);
    network.interval = 3.0;
    let times: Vec<(f64, u32)> = (0..5).map(|call| (10.0 * f64::from(call), 0)).collect();
    let policy = Assignment::Policy(Policy::LeastTime, 1);
    assert_eq!(simulated(&network, &plan(&times), &policy).server, [0, 1, 1, 1, 1]);
}

#[test]
fn policies_without_knowledge_take_turns_or_draw() {
    let network = network(&[SERVER; 3], 1, SECOND);
    let calls = plan(&[(0.0, 0); 300]);
    let turns = simulated(&network, &calls, &Assignment::Policy(Policy::RoundRobin, 1));
    assert_eq!(turns.server[..4], [0, 1, 2, 0]);
    let drawn = |seed| simulated(&network, &calls, &Assignment::Policy(Policy::Random, seed));
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1).server, drawn(2).server);
    for server in 0..3 {
        let count = drawn(1).server.iter().filter(|&&one| one == server).count();
        assert!((70..=130).contains(&count), "{count} of 300 on server {server}");
    }
}

#[test]
fn every_call_ends_once_whatever_the_network_is_like() {
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..200 {
        let servers: Vec<SimulatedServer> = (0..random.usize(1..6))
            .map(|_| SimulatedServer {
                slots: random.u32(1..4),
                speed: 0.1 + random.f64(),
                phase: random.f64(),
                ..SERVER
            })
            .collect();
        let mut network = network(&servers, random.usize(1..5), SECOND);
        network.functions.push(Work { bytes_in: 500.0, bytes_out: 90.0, operations: 2.0 });
        network.interval = [0.0, 0.5, 7.0][round % 3];
        let mut at: Vec<f64> = (0..random.usize(1..60)).map(|_| 30.0 * random.f64()).collect();
        at.sort_by(f64::total_cmp);
        let clients = network.clients.len() as u32;
        let calls = CallPlan {
            client: at.iter().map(|_| random.u32(0..clients)).collect(),
            function: at.iter().map(|_| random.u32(0..2)).collect(),
            skips_busy: round % 4 == 0,
            at,
        };
        let name = Policy::NAMES[round % 6];
        let assignment = Assignment::Policy(name.parse().unwrap(), 3);
        let stamps = simulated(&network, &calls, &assignment);
        for call in 0..calls.at.len() {
            if stamps.server[call] == NO_SERVER {
                assert!(calls.skips_busy && stamps.ended[call].is_nan(), "{name}");
                continue;
            }
            let stages =
                [calls.at[call], stamps.started[call], stamps.computed[call], stamps.ended[call]];
            assert!(stages.is_sorted() && stages[3].is_finite(), "{name}: {stages:?}");
            let server = &servers[stamps.server[call] as usize];
            let operations = network.functions[calls.function[call] as usize].operations;
            assert!((stages[2] - stages[1] - operations / server.speed).abs() < 1e-9, "{name}");
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = network(&[SERVER; 2], 2, SECOND);
    let calls = plan(&[(0.0, 0), (1.0, 1)]);
    let why = |network: &Network, plan: &CallPlan, assignment: &Assignment| {
        ServersRun::new(network, plan, assignment).err().map(|wrong| wrong.0)
    };
    assert_eq!(why(&good, &calls, &LEAST_LOAD), None);
    let none = Network { servers: Vec::new(), ..good.clone() };
    assert_eq!(why(&none, &calls, &LEAST_LOAD), Some("there is no server"));
    let cut = Network { links: vec![LINK], ..good.clone() };
    assert_eq!(why(&cut, &calls, &LEAST_LOAD), Some("a group has no link to a server"));
    let stuck = Network { links: vec![ClientLink { bandwidth: 0.0, ..LINK }; 2], ..good.clone() };
    assert_eq!(why(&stuck, &calls, &LEAST_LOAD), Some("a link has no bandwidth"));
    let back = plan(&[(1.0, 0), (0.0, 1)]);
    assert_eq!(why(&good, &back, &LEAST_LOAD), Some("times do not ascend"));
    let stranger = plan(&[(0.0, 7)]);
    assert_eq!(why(&good, &stranger, &LEAST_LOAD), Some("a call has an unknown client"));
    let wrong = given(&[0, 2]);
    assert_eq!(why(&good, &calls, &wrong), Some("a call is assigned to an unknown server"));
    let never = Network { interval: f64::NAN, ..good.clone() };
    let negative = Some("the interval of announcements is negative");
    assert_eq!(why(&never, &calls, &LEAST_LOAD), negative);
}

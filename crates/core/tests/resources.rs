//! Calls that ask for resources of a host, or say how long they take.

use std::time::Duration;

use gridrpc_core::{
    Action, CallId, CallOptions, Cause, Core, End, FunctionId, Loss, MEMORY, OccupiedTime, Refusal,
    Resources, Settings, Task, Time, WorkerId,
};

const S: u64 = 1_000_000_000;
const GB: u64 = 1_000_000_000;

fn some(amounts: &[(&str, u64)]) -> Resources {
    Resources::new(amounts.iter().map(|(name, amount)| ((*name).into(), *amount)))
}

const NAMES: [&str; 2] = ["first", "second"];

/// Hosts with so many workers each, which are there, and offer so much.
fn hosts(offers: &[(u32, Resources)]) -> Core<u32> {
    let hosts = offers.iter().map(|(workers, _)| *workers).collect();
    let mut core = Core::new(Settings { workers: 0, hosts, ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    for (index, (workers, offered)) in offers.iter().enumerate() {
        let id = WorkerId(index as u32);
        core.host_offers(id, NAMES[index], offered);
        core.host_joined(id, *workers, &mut out);
        core.host_has(Time(0), id, *workers, *workers, &mut out);
    }
    core
}

fn call(payload: u32, amounts: &[(&str, u64)]) -> Task<u32> {
    Task {
        options: CallOptions { resources: some(amounts), ..CallOptions::DEFAULT },
        ..Task::new(FunctionId(0), payload)
    }
}

/// Submits it; returns the calls sent, with their workers.
fn submit(core: &mut Core<u32>, task: Task<u32>) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    core.submit(Time(1), task, &mut out).expect("taken");
    core.check();
    sends(&out)
}

fn sends(out: &[Action<u32>]) -> Vec<(u32, u32)> {
    let send = |action: &Action<u32>| match action {
        Action::Send { worker, payload, .. } => Some((*payload, worker.0)),
        _ => None,
    };
    out.iter().filter_map(send).collect()
}

/// Calls sent when this call ends.
fn answer(core: &mut Core<u32>, host: u32, call: CallId) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    let took = OccupiedTime { ran: S, whole: S };
    core.replied(Time(2), WorkerId(host), call, took, &mut out).expect("it has it");
    core.check();
    sends(&out)
}

/// The calls are numbered as they are submitted.
fn id(number: u64) -> CallId {
    CallId(number)
}

fn loss() -> Loss {
    let cause = Cause::Exit(1);
    Loss { worker: 0, pid: 0, host: "node".into(), cause, stderr: String::new() }
}

#[test]
fn calls_go_where_there_is_what_they_ask_for_and_hold_up_nobody() {
    let mut core = hosts(&[(3, some(&[])), (3, some(&[("gpu", 1)]))]);
    assert_eq!(submit(&mut core, call(0, &[("gpu", 1)])), [(0, 1)]);
    assert_eq!(submit(&mut core, call(1, &[("gpu", 1)])), [], "there is one");
    // All places are for those behind it that need none, those of its own host as well.
    for payload in 2..7 {
        assert_eq!(submit(&mut core, call(payload, &[])).len(), 1, "{payload}");
    }
    assert_eq!(submit(&mut core, call(7, &[])), [], "there is no place");
    // It was there before the other, and goes first as soon as it can.
    assert_eq!(answer(&mut core, 1, id(0)), [(1, 1)]);
}

#[test]
fn a_stream_of_small_ones_does_not_keep_one_waiting_that_asks_for_much() {
    let mut core = hosts(&[(4, some(&[("gpu", 2), ("licence", 1)]))]);
    assert_eq!(submit(&mut core, call(0, &[("gpu", 1)])), [(0, 0)]);
    assert_eq!(submit(&mut core, call(1, &[("gpu", 2)])), []);
    assert_eq!(submit(&mut core, call(2, &[("gpu", 1)])), [], "it would come before");
    assert_eq!(submit(&mut core, call(3, &[("licence", 1)])), [(3, 0)], "it needs no other");
    assert_eq!(answer(&mut core, 0, id(0)), [(1, 0)]);
    assert_eq!(answer(&mut core, 0, id(1)), [(2, 0)]);
}

#[test]
fn a_call_that_can_have_what_it_asks_for_gets_a_place_before_others() {
    let mut core = hosts(&[(1, some(&[("gpu", 1)]))]);
    assert_eq!(submit(&mut core, call(0, &[])), [(0, 0)]);
    assert_eq!(submit(&mut core, call(1, &[("gpu", 1)])), []);
    assert_eq!(submit(&mut core, call(2, &[])), []);
    assert_eq!(answer(&mut core, 0, id(0)), [(1, 0)]);
}

#[test]
fn many_wait_and_all_that_fit_are_sent_when_a_host_comes() {
    let mut core = hosts(&[(2, some(&[("gpu", 40)])), (50, some(&[("gpu", 40)]))]);
    core.worker_lost(Time(1), WorkerId(1), None, loss(), &mut Vec::new());
    for payload in 0..60 {
        submit(&mut core, call(payload, &[("gpu", 1)]));
    }
    let mut out = Vec::new();
    core.host_joined(WorkerId(1), 50, &mut out);
    core.host_has(Time(2), WorkerId(1), 50, 50, &mut out);
    core.check();
    assert_eq!(sends(&out).len(), 40);
}

#[test]
fn what_is_taken_is_free_again_however_the_call_ends() {
    let mut core = hosts(&[(4, some(&[("gpu", 3), (MEMORY, 4 * GB)]))]);
    let mut out = Vec::new();
    let requested = [("gpu", 1), (MEMORY, GB)];
    for payload in 0..3 {
        submit(&mut core, call(payload, &requested));
    }
    assert_eq!(core.resources_in_use(), some(&[("gpu", 3), (MEMORY, 3 * GB)]));
    let took = OccupiedTime { ran: S, whole: S };
    core.raised(Time(2), WorkerId(0), id(0), took, &mut out).expect("it has it");
    core.check();
    assert_eq!(core.resources_in_use(), some(&[("gpu", 2), (MEMORY, 2 * GB)]));
    // One that nobody waits for runs on until its worker has it no more.
    core.cancel(Time(2), id(1), &mut out);
    assert_eq!(core.resources_in_use(), some(&[("gpu", 2), (MEMORY, 2 * GB)]));
    core.host_ended(Time(3), WorkerId(0), id(1), End::Cancelled, &mut out).expect("it has it");
    assert_eq!(core.resources_in_use(), some(&requested));
    core.worker_lost(Time(4), WorkerId(0), None, loss(), &mut out);
    core.check();
    assert!(core.resources_in_use().is_empty());
}

#[test]
fn what_no_host_has_is_refused_and_told() {
    let mut core =
        hosts(&[(2, some(&[("gpu", 1), (MEMORY, 64 * GB)])), (8, some(&[(MEMORY, 16 * GB)]))]);
    let mut refused = |task| match core.submit(Time(1), task, &mut Vec::new()) {
        Err(Refusal::NoFittingHost(why)) => why.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(call(0, &[("gpu", 2), (MEMORY, 1)])),
        "the call asks for 2 of \"gpu\" and 1 bytes of memory, which no host has: \
         \"first\" has 1 of \"gpu\" and 64 GB of memory; \"second\" has 16 GB of memory"
    );
    // Each of them has one of it.
    assert_eq!(
        refused(with(call(0, &[("gpu", 1)]), |options| options.cores = 4)),
        "the call asks for 4 cores and 1 of \"gpu\", which no host has: \
         \"first\" has workers for 2 cores and 1 of \"gpu\" and 64 GB of memory; \
         \"second\" has workers for 8 cores and 16 GB of memory"
    );
    assert!(refused(call(0, &[("licence", u64::MAX)])).contains("18446744073709551615"));
    core.check();
}

#[test]
fn a_host_that_turns_out_to_have_less_memory_ends_the_call() {
    let mut core: Core<u32> =
        Core::new(Settings { workers: 0, hosts: vec![1], ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    core.submit(Time(1), call(7, &[(MEMORY, 8 * GB)]), &mut out).expect("it may have as much");
    core.host_offers(WorkerId(0), "small", &some(&[(MEMORY, 4 * GB)]));
    core.host_joined(WorkerId(0), 1, &mut out);
    core.host_has(Time(2), WorkerId(0), 1, 1, &mut out);
    core.check();
    let ended =
        |action: &Action<u32>| matches!(action, Action::End { end: End::NoFittingHost(_), .. });
    assert!(out.iter().any(ended), "{out:?}");
}

#[test]
fn this_machine_has_resources_as_well() {
    let settings = Settings { workers: 2, resources: some(&[("gpu", 1)]), ..Settings::default() };
    let mut core: Core<u32> = Core::new(settings);
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    (0..2).for_each(|worker| core.worker_ready(Time(0), WorkerId(worker), &mut out));
    assert_eq!(submit(&mut core, call(0, &[("gpu", 1)])).len(), 1);
    assert_eq!(submit(&mut core, call(1, &[("gpu", 1)])), []);
    assert_eq!(submit(&mut core, call(2, &[])).len(), 1);
    let refused = core.submit(Time(1), call(3, &[("gpu", 2)]), &mut out);
    assert!(matches!(refused, Err(Refusal::NoFittingHost(_))), "{refused:?}");
}

#[test]
fn a_worker_that_waits_for_a_call_does_not_run_it_without_what_it_asks_for() {
    let mut core = hosts(&[(1, some(&[])), (1, some(&[("gpu", 1)]))]);
    assert_eq!(submit(&mut core, call(0, &[])), [(0, 0)]);
    assert_eq!(submit(&mut core, call(1, &[("gpu", 1)])), [(1, 1)]);
    let mut out = Vec::new();
    core.claim(Time(1), id(1), WorkerId(0), &mut out);
    core.retracted(Time(2), WorkerId(1), &[id(1)], &mut out);
    core.check();
    assert!(!out.iter().any(|action| matches!(action, Action::Run { .. })), "{out:?}");
    assert_eq!(sends(&out), [(1, 1)]);
}

fn long(payload: u32, seconds: u64) -> Task<u32> {
    Task {
        options: CallOptions {
            expected: Some(Duration::from_nanos(seconds * S)),
            ..CallOptions::DEFAULT
        },
        ..Task::new(FunctionId(0), payload)
    }
}

#[test]
fn a_call_is_not_begun_that_says_it_takes_longer_than_its_host_stays() {
    let mut core = hosts(&[(2, some(&[])), (2, some(&[]))]);
    core.host_ends(Time(0), WorkerId(0), Time(100 * S));
    core.host_ends(Time(0), WorkerId(1), Time(1000 * S));
    assert_eq!(submit(&mut core, long(0, 200)), [(0, 1)]);
    assert_eq!(submit(&mut core, long(1, 200)), [(1, 1)]);
    assert_eq!(submit(&mut core, long(2, 200)), [], "it would be cut off");
    // Those behind it continue, if they are done before.
    assert_eq!(submit(&mut core, long(3, 90)), [(3, 0)]);
    assert_eq!(submit(&mut core, call(4, &[])), [(4, 0)]);
    assert_eq!(answer(&mut core, 1, id(0)), [(2, 1)]);
}

#[test]
fn calls_are_sent_when_the_one_before_them_is_cancelled_that_their_host_has_no_time_for() {
    let mut core = hosts(&[(2, some(&[("gpu", 1)]))]);
    core.host_ends(Time(0), WorkerId(0), Time(100 * S));
    let mut out = Vec::new();
    core.submit(Time(1), call(0, &[]), &mut out).expect("taken");
    let took = OccupiedTime { ran: 60 * S, whole: 60 * S };
    core.replied(Time(60 * S), WorkerId(0), id(0), took, &mut out).expect("it has it");
    out.clear();
    let first = core.submit(Time(60 * S), call(1, &[]), &mut out).expect("taken");
    for (payload, amounts) in [(2, &[][..]), (3, &[("gpu", 1)])] {
        let task = Task { function: FunctionId(1), ..call(payload, amounts) };
        core.submit(Time(60 * S), task, &mut out).expect("taken");
    }
    assert_eq!(sends(&out), [], "they wait for their turn, and nothing runs");
    core.cancel(Time(61 * S), first, &mut out);
    assert_eq!(sends(&out), [(2, 0), (3, 0)]);
}

#[test]
fn a_call_that_takes_longer_than_any_job_is_refused() {
    let mut core = hosts(&[(1, some(&[]))]);
    core.host_ends(Time(0), WorkerId(0), Time(3600 * S));
    let mut out = Vec::new();
    let refused = core.submit(Time(1), long(0, 3600), &mut out);
    let Err(Refusal::NoFittingHost(why)) = refused else { panic!("{refused:?}") };
    let error_text = "the call asks for 3600 s of time, which no host has: \
                \"first\" has jobs of 3600 s";
    assert_eq!(why.to_string(), error_text);
    assert!(core.submit(Time(1), long(1, 3590), &mut out).is_ok());
    assert_eq!(sends(&out), [(1, 0)]);
}

/// A job of a minute has begun there, and its first worker answers after so many seconds.
fn job_of_a_minute(core: &mut Core<u32>, begins: Time, start: u64) -> Vec<Action<u32>> {
    let mut out = Vec::new();
    core.host_joined(WorkerId(0), 1, &mut out);
    core.host_ends(begins, WorkerId(0), begins + 60 * S);
    for second in 1..start {
        core.tick(begins + second * S, &mut out);
        assert_eq!(out, [], "how much time it will have is not known before");
    }
    core.host_has(begins + start * S, WorkerId(0), 1, 1, &mut out);
    core.check();
    out
}

#[test]
fn jobs_are_not_begun_for_ever_for_a_call_that_none_has_time_for_when_it_serves() {
    let settings = Settings { workers: 0, hosts: vec![1], ..Settings::default() };
    let mut core: Core<u32> = Core::new(settings);
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    core.host_offers(WorkerId(0), "lab", &some(&[]));
    core.submit(Time(0), long(0, 54), &mut out).expect("nothing is known of the jobs");
    assert_eq!(sends(&job_of_a_minute(&mut core, Time(S), 3)), [(0, 0)]);
    out.clear();
    let took = OccupiedTime { ran: S, whole: S };
    core.replied(Time(9 * S), WorkerId(0), id(0), took, &mut out).expect("it has it");
    // There would have been time for this one as well, but only at first.
    core.submit(Time(9 * S), long(1, 55), &mut out).expect("another job may have time");
    assert_eq!(sends(&out), []);
    core.tick(Time(10 * S), &mut out);
    assert!(out.contains(&Action::Dismiss(WorkerId(0))), "{out:?}");
    core.worker_lost(Time(11 * S), WorkerId(0), None, loss(), &mut out);
    let out = job_of_a_minute(&mut core, Time(40 * S), 4);
    let ended = |action: &Action<u32>| match action {
        Action::End { end: End::NoFittingHost(why), .. } => Some(why.to_string()),
        _ => None,
    };
    let error_text: Vec<String> = out.iter().filter_map(ended).collect();
    let requested = "the call asks for 55 s of time, which no host has: \"lab\" has jobs of 56 s";
    assert_eq!(error_text, [requested]);
}

#[test]
fn hosts_are_requested_that_have_what_waits_and_as_many_as_it_takes() {
    let settings = Settings { workers: 0, hosts: vec![4; 6], ..Settings::default() };
    let mut core: Core<u32> = Core::new(settings);
    let ids: Vec<WorkerId> = (0..6).map(WorkerId).collect();
    let (plain, fast) = ids.split_at(3);
    core.add_group("plain", false, plain.to_vec());
    core.add_group("fast", false, fast.to_vec());
    fast.iter().for_each(|id| core.host_offers(*id, "fast", &some(&[("gpu", 2)])));
    core.make_elastic(plain.to_vec(), 0, 5 * S);
    core.make_elastic(fast.to_vec(), 0, 5 * S);
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    for payload in 0..3 {
        core.submit(Time(S), call(payload, &[("gpu", 1)]), &mut out).expect("taken");
    }
    core.tick(Time(S), &mut out);
    // Each of these has four workers, and graphics processors for two calls.
    assert_eq!(out, [Action::Start(fast[0]), Action::Start(fast[1])]);
}

/// The task with other options.
fn with<T>(mut task: Task<T>, change: impl FnOnce(&mut CallOptions)) -> Task<T> {
    change(&mut task.options);
    task
}

//! Work per worker and per due timer, independent of the number of workers.

use gridrpc_core::{
    Action, CallOptions, Cause, Core, FunctionId, Loss, OccupiedTime, Settings, Task, Time,
    WorkerId,
};

const F: FunctionId = FunctionId(0);
const MS: u64 = 1_000_000;

fn grid(workers: u32) -> Core<u32> {
    let mut core = Core::new(Settings { workers, cores: 2, ..Settings::default() });
    let mut out = Vec::new();
    core.open(Time(0), &mut out);
    (0..workers).for_each(|id| core.worker_ready(Time(0), WorkerId(id), &mut out));
    core
}

fn task(payload: u32) -> Task<u32> {
    let options = CallOptions { idempotent: true, ..CallOptions::DEFAULT };
    Task { options, ..Task::new(F, payload) }
}

/// Submits a call; returns the workers that received its function, and the call.
fn submit(core: &mut Core<u32>, now: Time) -> (Option<WorkerId>, Option<WorkerId>) {
    let mut out = Vec::new();
    core.submit(now, task(1), &mut out).unwrap();
    let (mut error_text, mut sent) = (None, None);
    for action in out {
        match action {
            Action::Teach { worker, .. } => error_text = Some(worker),
            Action::Send { worker, call, .. } => {
                sent = Some(worker);
                let took = OccupiedTime { ran: 10 * MS, whole: 10 * MS };
                core.replied(now, worker, call, took, &mut Vec::new()).unwrap();
            }
            _ => {}
        }
    }
    (error_text, sent)
}

#[test]
fn a_number_that_means_another_function_is_reported_again_to_who_knew_the_old_one() {
    let mut core = grid(3);
    let (error_text, sent) = submit(&mut core, Time(1));
    assert_eq!(error_text, sent);
    assert_eq!(submit(&mut core, Time(2)), (None, sent), "once is enough");
    core.replace_function(F);
    assert_eq!(submit(&mut core, Time(3)), (sent, sent));
    assert_eq!(submit(&mut core, Time(4)), (None, sent));
    core.check();
}

#[test]
fn workers_that_are_lost_while_idle_leave_the_others_in_their_order() {
    let workers = 300;
    let mut core = grid(workers);
    let (_, used) = submit(&mut core, Time(1));
    let used = used.unwrap();
    let cause = Cause::Exit(1);
    let loss = |worker| Loss {
        worker,
        pid: 1,
        host: String::new(),
        cause: cause.clone(),
        stderr: String::new(),
    };
    for round in 0..3 {
        for id in (0..workers).filter(|id| *id != used.0) {
            let now = Time(10 + round);
            core.worker_lost(now, WorkerId(id), Some(1), loss(id), &mut Vec::new());
            core.worker_ready(now, WorkerId(id), &mut Vec::new());
            core.check();
        }
    }
    assert_eq!(submit(&mut core, Time(20)).1, Some(used), "the one used last");
}

#[test]
fn of_many_workers_only_those_that_are_due_are_looked_at() {
    let mut core = grid(100);
    let mut out = Vec::new();
    let took = OccupiedTime { ran: 1000, whole: 1000 };
    for _ in 0..50 {
        let call = core.submit(Time(1), task(1), &mut out).unwrap();
        let to = out.iter().find_map(|action| match action {
            Action::Send { worker, call: sent, .. } if *sent == call => Some(*worker),
            _ => None,
        });
        core.replied(Time(1), to.unwrap(), call, took, &mut out).unwrap();
    }
    out.clear();
    // One that is at the first, and others behind it.
    for _ in 0..5 {
        core.submit(Time(2), task(1), &mut out).unwrap();
    }
    let mut busy: Vec<WorkerId> = out
        .iter()
        .filter_map(|action| match action {
            Action::Send { worker, .. } => Some(*worker),
            _ => None,
        })
        .collect();
    busy.dedup();
    let mut due = Vec::new();
    let later = Time(10 * MS);
    while let Some(one) = core.next_due(later) {
        due.extend(one.worker());
        core.deal_with(later, one, &mut out);
    }
    assert!(!due.is_empty() && due.iter().all(|worker| busy.contains(worker)), "{due:?} {busy:?}");
    core.check();
}

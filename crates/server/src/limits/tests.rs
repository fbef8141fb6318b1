//! Each limit, and random sequences of calls.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

const HOUR: u64 = 3600;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn unlimited() -> Limits {
    Limits { queued: Limit::Unlimited, ..Limits::default() }
}

fn begin(limiter: &mut Limiter, limits: &Limits, now: Duration) -> Result<CallToken, LimitReached> {
    limiter.try_begin("ann", limits, 10, now)
}

#[test]
fn users_are_counted_apart() {
    let mut limiter = Limiter::default();
    let limits = Limits { bytes: Limit::At(10), ..unlimited() };
    limiter.try_begin("ann", &limits, 10, at(0)).unwrap();
    let error = limiter.try_begin("ann", &limits, 1, at(0)).unwrap_err();
    assert_eq!((error.user.as_str(), error.limit), ("ann", "bytes"));
    limiter.try_begin("bob", &limits, 10, at(0)).unwrap();
}

#[test]
fn calls_beyond_those_that_may_run_wait() {
    let mut limiter = Limiter::default();
    let limits = Limits { calls: Limit::At(2), queued: Limit::At(1), ..Limits::default() };
    let tokens: Vec<CallToken> =
        (0..3).map(|_| begin(&mut limiter, &limits, at(0)).unwrap()).collect();
    limiter.try_start(tokens[0], &limits, 1).unwrap();
    limiter.try_start(tokens[1], &limits, 1).unwrap();
    let error = limiter.try_start(tokens[2], &limits, 1).unwrap_err();
    assert_eq!((error.limit, error.value, error.allowed), ("calls", 3.0, 2.0));
    let error = begin(&mut limiter, &limits, at(0)).unwrap_err();
    assert_eq!((error.limit, error.value, error.allowed), ("queued", 2.0, 1.0));
    assert_eq!(error.queue, QueueState { running: 2, waiting: 1, bytes: 30, workers: 2 });
    assert!(limiter.end(tokens[0], at(0), at(1)));
    limiter.try_start(tokens[2], &limits, 1).unwrap();
    begin(&mut limiter, &limits, at(1)).unwrap();
}

#[test]
fn without_a_queue_as_many_calls_as_may_run_are_admitted() {
    let mut limiter = Limiter::default();
    let limits = Limits { calls: Limit::At(2), queued: Limit::At(0), ..Limits::default() };
    let first = begin(&mut limiter, &limits, at(0)).unwrap();
    begin(&mut limiter, &limits, at(0)).unwrap();
    assert_eq!(begin(&mut limiter, &limits, at(0)).unwrap_err().limit, "queued");
    limiter.end(first, at(0), at(0));
    begin(&mut limiter, &limits, at(0)).unwrap();
}

#[test]
fn a_queue_has_a_bound_even_if_all_calls_may_run() {
    let mut limiter = Limiter::default();
    let limits = Limits { queued: Limit::At(1), ..Limits::default() };
    let first = begin(&mut limiter, &limits, at(0)).unwrap();
    begin(&mut limiter, &limits, at(0)).unwrap();
    let error = begin(&mut limiter, &limits, at(0)).unwrap_err();
    assert_eq!((error.limit, error.value, error.allowed), ("queued", 2.0, 1.0));
    limiter.try_start(first, &limits, 1).unwrap();
    begin(&mut limiter, &limits, at(0)).unwrap();
}

#[test]
fn bytes_are_held_until_the_end() {
    let mut limiter = Limiter::default();
    let limits = Limits { bytes: Limit::At(100), ..unlimited() };
    let token = limiter.try_begin("ann", &limits, 60, at(0)).unwrap();
    let error = limiter.try_begin("ann", &limits, 41, at(0)).unwrap_err();
    assert_eq!((error.value, error.is_hopeless()), (101.0, false));
    assert_eq!(
        error.to_string(),
        "the limit `bytes` of user \"ann\" is reached: the arguments would have 101 bytes, and 100 \
         may be held (now: 0 running, 1 waiting, 60 bytes, 0 workers); try again when calls have ended"
    );
    limiter.try_start(token, &limits, 1).unwrap();
    assert!(limiter.try_begin("ann", &limits, 41, at(0)).is_err());
    limiter.end(token, at(0), at(0));
    limiter.try_begin("ann", &limits, 100, at(0)).unwrap();
    let error = limiter.try_begin("bob", &limits, 101, at(0)).unwrap_err();
    assert!(error.is_hopeless());
    assert!(
        error
            .to_string()
            .ends_with("this call alone exceeds it: ask the server's owner for a higher limit")
    );
}

#[test]
fn sums_of_bytes_and_workers_do_not_overflow() {
    let mut limiter = Limiter::default();
    let token = limiter.try_begin("ann", &unlimited(), u64::MAX - 1, at(0)).unwrap();
    assert_eq!(limiter.try_begin("ann", &unlimited(), 7, at(0)).unwrap_err().limit, "bytes");
    let error = limiter.try_start(token, &unlimited(), u64::MAX).unwrap_err();
    assert_eq!(error.limit, "workers");
    limiter.end(token, Duration::MAX, at(0));
    let token = limiter.try_begin("ann", &unlimited(), 7, at(0)).unwrap();
    limiter.end(token, Duration::MAX, at(0));
    assert_eq!(limiter.cpu_time("ann"), Duration::MAX);
}

#[test]
fn workers_are_in_use_from_the_start_to_the_end() {
    let mut limiter = Limiter::default();
    let limits = Limits { workers: Limit::At(4), ..unlimited() };
    let one = begin(&mut limiter, &limits, at(0)).unwrap();
    let two = begin(&mut limiter, &limits, at(0)).unwrap();
    limiter.try_start(one, &limits, 3).unwrap();
    let error = limiter.try_start(two, &limits, 2).unwrap_err();
    assert_eq!((error.limit, error.value, error.is_hopeless()), ("workers", 5.0, false));
    assert!(limiter.try_start(two, &limits, 5).unwrap_err().is_hopeless());
    limiter.end(one, at(0), at(0));
    limiter.try_start(two, &limits, 2).unwrap();
    assert_eq!(limiter.queue("ann").workers, 2);
}

#[test]
fn an_object_takes_a_worker_and_its_calls_take_none() {
    let limits = Limits { calls: Limit::At(1), workers: Limit::At(1), ..unlimited() };
    let mut limiter = Limiter::default();
    let object = limiter.try_reserve("ann", &limits, at(0)).unwrap();
    let error = limiter.try_reserve("ann", &limits, at(0)).unwrap_err();
    assert_eq!((error.limit, error.value, error.allowed), ("workers", 2.0, 1.0));
    let [method, other] = [0, 1].map(|_| limiter.try_begin("ann", &limits, 0, at(0)).unwrap());
    limiter.try_start(method, &limits, 0).unwrap();
    assert_eq!(limiter.try_start(other, &limits, 0).unwrap_err().limit, "calls");
    limiter.end(method, at(0), at(1));
    assert_eq!(limiter.try_start(other, &limits, 1).unwrap_err().limit, "workers");
    assert!(limiter.end(object, at(0), at(1)));
    limiter.try_start(other, &limits, 1).unwrap();
    limiter.end(other, at(0), at(2));
    assert_eq!(limiter.queue("ann"), QueueState::default());
}

#[test]
fn a_rate_has_a_burst_of_one_second() {
    let mut limiter = Limiter::default();
    let limits = Limits { rate: 4.0, ..unlimited() };
    let admitted = |limiter: &mut Limiter, now| {
        (0..10).filter(|_| begin(limiter, &limits, now).is_ok()).count()
    };
    assert_eq!(admitted(&mut limiter, at(5)), 4);
    let error = begin(&mut limiter, &limits, at(5)).unwrap_err();
    assert_eq!((error.limit, error.allowed), ("rate", 4.0));
    assert_eq!(error.retry_after, Some(Duration::from_millis(250)));
    assert!(error.to_string().contains("4 calls per second are allowed"), "{error}");
    assert!(error.to_string().ends_with("; try again in 250 ms"), "{error}");
    assert_eq!(admitted(&mut limiter, Duration::from_millis(5249)), 0);
    assert_eq!(admitted(&mut limiter, Duration::from_millis(5250)), 1);
    assert_eq!(admitted(&mut limiter, at(100)), 4);
    // A clock that goes back gives no tokens.
    assert_eq!(admitted(&mut limiter, at(50)), 0);
    assert_eq!(admitted(&mut limiter, at(100)), 0);
}

#[test]
fn a_rate_below_one_call_per_second() {
    let mut limiter = Limiter::default();
    let limits = Limits { rate: 0.01, ..unlimited() };
    begin(&mut limiter, &limits, at(0)).unwrap();
    let error = begin(&mut limiter, &limits, at(40)).unwrap_err();
    assert_eq!(error.retry_after.map(|time| time.as_secs_f64().round()), Some(60.0));
    begin(&mut limiter, &limits, at(100)).unwrap();
}

#[test]
fn a_rejected_call_takes_no_token() {
    let mut limiter = Limiter::default();
    let limits = Limits { rate: 1.0, bytes: Limit::At(10), ..unlimited() };
    assert!(limiter.try_begin("ann", &limits, 11, at(0)).is_err());
    limiter.try_begin("ann", &limits, 10, at(0)).unwrap();
}

#[test]
fn limits_can_change_while_calls_run() {
    let mut limiter = Limiter::default();
    let token = begin(&mut limiter, &unlimited(), at(0)).unwrap();
    let limits = Limits { bytes: Limit::At(10), rate: 1.0, ..unlimited() };
    assert_eq!(begin(&mut limiter, &limits, at(0)).unwrap_err().limit, "bytes");
    limiter.end(token, at(0), at(0));
    begin(&mut limiter, &limits, at(0)).unwrap();
}

#[test]
fn cpu_time_counts_for_a_day() {
    let mut limiter = Limiter::default();
    let limits = Limits { cpu_seconds: Limit::At(100), ..unlimited() };
    let mut use_cpu = |cpu: u64, now: u64| {
        let token = begin(&mut limiter, &limits, at(now))?;
        limiter.end(token, at(cpu), at(now));
        Ok::<(), LimitReached>(())
    };
    use_cpu(60, HOUR / 2).unwrap();
    use_cpu(30, 2 * HOUR).unwrap();
    use_cpu(15, 3 * HOUR).unwrap();
    let error = use_cpu(1, 4 * HOUR).unwrap_err();
    assert_eq!((error.limit, error.value), ("cpu_seconds_per_day", 105.0));
    // The first hour is over for a day at 25:00.
    assert_eq!(error.retry_after, Some(at(21 * HOUR)));
    assert!(error.to_string().ends_with("; try again in 21 h"), "{error}");
    assert!(use_cpu(1, 25 * HOUR - 1).is_err());
    use_cpu(60, 25 * HOUR).unwrap();
    let error = use_cpu(1, 25 * HOUR).unwrap_err();
    assert_eq!(error.retry_after, Some(at(2 * HOUR)));
    assert_eq!(limiter.cpu_time("ann"), at(105));
    assert_eq!(limiter.cpu_time("bob"), at(0));
}

#[test]
fn cpu_time_outlives_a_restart() {
    let limits = Limits { cpu_seconds: Limit::At(100), rate: 2.0, ..unlimited() };
    let mut before = Limiter::default();
    for (hour, cpu) in [(1, 30), (4, 50)] {
        let token = begin(&mut before, &limits, at(hour * HOUR)).unwrap();
        before.end(token, at(cpu), at(hour * HOUR));
    }
    let mut after = Limiter::default();
    let token = begin(&mut after, &limits, at(4 * HOUR)).unwrap();
    after.end(token, at(20), at(4 * HOUR));
    after.restore(before.cpu_usage());
    assert_eq!(after.cpu_time("ann"), at(100));
    let error = begin(&mut after, &limits, at(5 * HOUR)).unwrap_err();
    assert_eq!((error.limit, error.retry_after), ("cpu_seconds_per_day", Some(at(21 * HOUR))));
    let mut usage = after.cpu_usage();
    usage.sort_by_key(|usage| usage.hour);
    let hours: Vec<(u64, Duration)> = usage.iter().map(|usage| (usage.hour, usage.cpu)).collect();
    assert_eq!(hours, [(1, at(30)), (4, at(70))]);
    // The rate of a restored user is that of the next call.
    let mut new = Limiter::default();
    new.restore(vec![CpuUsage { user: "ann".into(), hour: 4, cpu: at(1) }]);
    let admitted = (0..9).filter(|_| begin(&mut new, &limits, at(5 * HOUR)).is_ok()).count();
    assert_eq!(admitted, 2);
}

#[test]
fn without_cpu_time_no_call_is_admitted() {
    let mut limiter = Limiter::default();
    let limits = Limits { cpu_seconds: Limit::At(0), ..unlimited() };
    let error = begin(&mut limiter, &limits, at(0)).unwrap_err();
    assert_eq!((error.retry_after, error.is_hopeless()), (None, true));
}

#[test]
fn the_time_of_the_next_end_is_estimated() {
    let mut limiter = Limiter::default();
    let limits = Limits { calls: Limit::At(1), queued: Limit::At(1), ..Limits::default() };
    for second in 0..5 {
        let token = begin(&mut limiter, &limits, at(3 * second)).unwrap();
        limiter.try_start(token, &limits, 1).unwrap();
        limiter.end(token, at(0), at(3 * second));
    }
    let token = begin(&mut limiter, &limits, at(15)).unwrap();
    limiter.try_start(token, &limits, 1).unwrap();
    begin(&mut limiter, &limits, at(15)).unwrap();
    let error = begin(&mut limiter, &limits, at(15)).unwrap_err();
    assert_eq!((error.limit, error.retry_after), ("queued", Some(at(3))));
    assert!(error.to_string().ends_with("; try again in 3 s"), "{error}");
}

#[test]
fn a_call_ends_once() {
    let mut limiter = Limiter::default();
    let token = begin(&mut limiter, &unlimited(), at(0)).unwrap();
    begin(&mut limiter, &unlimited(), at(0)).unwrap();
    assert!(limiter.end(token, at(7), at(0)));
    assert!(!limiter.end(token, at(7), at(0)));
    limiter.try_start(token, &unlimited(), 1).unwrap();
    assert_eq!(limiter.queue("ann"), QueueState { running: 0, waiting: 1, bytes: 10, workers: 0 });
    assert_eq!(limiter.cpu_time("ann"), at(7));
}

#[test]
fn idle_users_are_forgotten_when_nothing_counts() {
    let mut limiter = Limiter::default();
    let limits = Limits { rate: 0.001, ..unlimited() };
    let token = begin(&mut limiter, &limits, at(0)).unwrap();
    let other = limiter.try_begin("bob", &unlimited(), 1, at(0)).unwrap();
    limiter.end(token, at(0), at(0));
    limiter.end(other, at(1), at(0));
    limiter.forget_idle(at(999));
    assert_eq!(limiter.known_users(), 2, "ann's rate and bob's CPU time count");
    limiter.forget_idle(at(1001));
    assert_eq!(limiter.known_users(), 1);
    limiter.forget_idle(at(25 * HOUR));
    assert_eq!(limiter.known_users(), 0);
    begin(&mut limiter, &limits, at(26 * HOUR)).unwrap();
    limiter.forget_idle(at(99 * HOUR));
    assert_eq!(limiter.known_users(), 1, "a call waits");
}

/// A step of a random sequence; calls are chosen by index.
#[derive(Clone, Debug)]
enum Step {
    Begin { user: usize, bytes: u64 },
    Start { call: usize, workers: u64 },
    End { call: usize, cpu: u64 },
    Wait { seconds: u64 },
    Forget,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_usize, 0..40_u64).prop_map(|(user, bytes)| Step::Begin { user, bytes }),
        3 => (any::<usize>(), 1..4_u64).prop_map(|(call, workers)| Step::Start { call, workers }),
        3 => (any::<usize>(), 0..50_u64).prop_map(|(call, cpu)| Step::End { call, cpu }),
        1 => (0..2 * HOUR).prop_map(|seconds| Step::Wait { seconds }),
        1 => (0..2_u64).prop_map(|seconds| Step::Wait { seconds }),
        1 => Just(Step::Forget),
    ]
}

fn limit(most: u64) -> impl Strategy<Value = Limit> {
    prop_oneof![(0..most).prop_map(Limit::At), Just(Limit::Unlimited)]
}

fn limits() -> impl Strategy<Value = Limits> {
    let rate = prop_oneof![0.1..20.0_f64, Just(f64::INFINITY)];
    (limit(5), limit(5), limit(100), rate, limit(8), limit(200)).prop_map(
        |(calls, queued, bytes, rate, workers, cpu_seconds)| Limits {
            calls,
            queued,
            bytes,
            rate,
            workers,
            cpu_seconds,
            ..Limits::default()
        },
    )
}

const USERS: [&str; 3] = ["ann", "bob", "eve"];

/// A call as the test remembers it.
#[derive(Clone, Copy, Debug)]
struct Model {
    user: usize,
    bytes: u64,
    workers: Option<u64>,
}

proptest! {
    /// The counters are always those of the calls that have not ended, and within the limits.
    #[test]
    fn counters_are_those_of_the_calls(
        limits in limits(), steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut limiter = Limiter::default();
        let (mut tokens, mut calls) = (Vec::<CallToken>::new(), HashMap::<CallToken, Model>::new());
        let (mut now, mut begun) = (at(0), vec![Vec::<Duration>::new(); USERS.len()]);
        for step in steps {
            match step {
                Step::Begin { user, bytes } => {
                    match limiter.try_begin(USERS[user], &limits, bytes, now) {
                        Ok(token) => {
                            prop_assert!(!tokens.contains(&token));
                            tokens.push(token);
                            calls.insert(token, Model { user, bytes, workers: None });
                            begun[user].push(now);
                        }
                        Err(error) => {
                            prop_assert_eq!(error.user.as_str(), USERS[user]);
                            prop_assert!(!error.to_string().is_empty());
                        }
                    }
                }
                Step::Start { call, workers } if !tokens.is_empty() => {
                    let token = tokens[call % tokens.len()];
                    let started = limiter.try_start(token, &limits, workers);
                    if let Some(call) = calls.get_mut(&token) && started.is_ok() {
                        call.workers.get_or_insert(workers);
                    }
                }
                Step::End { call, cpu } if !tokens.is_empty() => {
                    let token = tokens[call % tokens.len()];
                    let is_first = calls.remove(&token).is_some();
                    prop_assert_eq!(limiter.end(token, at(cpu), now), is_first);
                }
                Step::Start { .. } | Step::End { .. } => {}
                Step::Wait { seconds } => now += at(seconds),
                Step::Forget => limiter.forget_idle(now),
            }
            for (index, user) in USERS.iter().enumerate() {
                let held = || calls.values().filter(|call| call.user == index);
                let queue = QueueState {
                    running: held().filter(|call| call.workers.is_some()).count() as u64,
                    waiting: held().filter(|call| call.workers.is_none()).count() as u64,
                    bytes: held().map(|call| call.bytes).sum(),
                    workers: held().filter_map(|call| call.workers).sum(),
                };
                prop_assert_eq!(limiter.queue(user), queue);
                prop_assert!(limits.calls.allows(queue.running));
                prop_assert!(limits.workers.allows(queue.workers));
                prop_assert!(limits.bytes.allows(queue.bytes));
                if let (Limit::At(calls), Limit::At(queued)) = (limits.calls, limits.queued) {
                    prop_assert!(queue.running + queue.waiting <= calls + queued);
                }
                if let Some(tokens) = limiter.tokens_of(user).filter(|_| limits.rate.is_finite()) {
                    prop_assert!((0.0..=limits.rate.max(1.0)).contains(&tokens), "{}", tokens);
                }
                // In any second, those of the burst and those of the second are admitted.
                let last = begun[index].iter().filter(|begun| **begun + at(1) > now).count();
                prop_assert!(last as f64 <= limits.rate.max(1.0) + limits.rate + 1e-6);
            }
        }
    }

    /// After the time that an error gives, its limit has room.
    #[test]
    fn trying_again_helps(
        limits in limits(), cpu in prop::collection::vec((0..100_u64, 0..3 * HOUR), 1..20),
    ) {
        let limits = Limits { queued: Limit::Unlimited, ..limits };
        let (mut limiter, mut now) = (Limiter::default(), at(0));
        for (cpu, pause) in cpu {
            match limiter.try_begin("ann", &limits, 0, now) {
                Ok(token) => {
                    limiter.end(token, at(cpu), now);
                }
                Err(error) => {
                    prop_assert_eq!(error.retry_after.is_none(), error.is_hopeless());
                    let Some(wait) = error.retry_after else { break };
                    now += wait;
                    let again = limiter.try_begin("ann", &limits, 0, now);
                    let is_reached_again = again.err().is_some_and(|again| again.limit == error.limit);
                    prop_assert!(!is_reached_again, "{}", error);
                }
            }
            now += at(pause / 50);
        }
    }

    /// No 24 hours have more CPU time than allowed, but for calls that are admitted and then use more.
    #[test]
    fn a_day_has_no_more_than_its_cpu_time(
        calls in prop::collection::vec((1..20_u64, 0..6 * HOUR), 1..60),
    ) {
        const ALLOWED: u64 = 100;
        let limits = Limits { cpu_seconds: Limit::At(ALLOWED), ..unlimited() };
        let (mut limiter, mut now) = (Limiter::default(), at(0));
        let mut used: Vec<(Duration, u64)> = Vec::new();
        for (cpu, pause) in calls {
            now += at(pause);
            if let Ok(token) = limiter.try_begin("ann", &limits, 0, now) {
                limiter.end(token, at(cpu), now);
                used.push((now, cpu));
            }
            let day = used.iter().filter(|(then, _)| *then + at(24 * HOUR) > now);
            let of_day: u64 = day.map(|(_, cpu)| cpu).sum();
            prop_assert!(of_day < ALLOWED + 20);
        }
    }
}

//! The stages that tasks go through: each has work to do, and says when it is done.
//!
//! A stage serves its jobs in turn, or all of them evenly, each at its share of the speed, as
//! connections share a network and processes the processors of a machine.

use std::collections::VecDeque;

use crate::clock::Queue;

/// Number of a stage.
pub type Stage = u16;

/// What happens next, to a task or worker; or within a stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next<T> {
    /// What follows a job.
    Then(T),
    /// A stage in turn has done its job.
    Done(Stage),
    /// A stage that serves evenly has planned to have done one now.
    Due(Stage),
}

/// The next event, and its task or worker.
type Event<T> = (Next<T>, u32);

struct Job<T> {
    work: f64,
    next: Next<T>,
    which: u32,
    on: Option<Stage>,
}

enum Kind<T> {
    /// Every job at once and at full speed: nobody waits for anybody.
    Freely,
    /// Nothing to be done: a job is done at once.
    Through,
    FirstComeFirstServed(FirstComeFirstServed<T>),
    ProcessorSharing(ProcessorSharing<T>),
}

/// One job at a time, in order of arrival; none while there are urgent ones.
struct FirstComeFirstServed<T> {
    /// The stage that does its work, for one that is itself a job among others: a thread on the
    /// processors of its machine. Without it the work takes as long as it is.
    on: Option<Stage>,
    /// What follows the job under way.
    now: Option<Next<T>>,
    urgent: VecDeque<Job<T>>,
    others: VecDeque<Job<T>>,
}

/// All jobs at once, each at an equal share of the speed.
///
/// There are `servers` of full speed, and none helps another with the same job: up to so many jobs
/// continue at full speed. A link has one, a machine as many as it has processors.
///
/// What counts is the work that a job would have got if it had been there all the time: a job is
/// done when that has grown by the job's own. So nothing has to be recomputed for each of them when
/// their number changes.
struct ProcessorSharing<T> {
    servers: f64,
    given: f64,
    since: f64,
    jobs: Queue<Event<T>>,
    plan: u32,
    /// When the next job was found to be done; too early if others have come since.
    planned: f64,
    /// Others have come since.
    changed: bool,
}

impl<T> ProcessorSharing<T> {
    fn go_on(&mut self, now: f64) {
        let jobs = self.jobs.len() as f64;
        if jobs > self.servers {
            self.given += (now - self.since) * (self.servers / jobs);
        } else if jobs > 0.0 {
            self.given += now - self.since;
        }
        self.since = now;
    }

    /// When the next job is done if no other comes.
    fn end(&self, now: f64) -> Option<f64> {
        let jobs = self.jobs.len() as f64;
        let mut left = self.jobs.first()? - self.given;
        if left <= 0.0 {
            return Some(now);
        }
        if jobs > self.servers {
            left *= jobs / self.servers;
        }
        Some(now + left)
    }

    /// A plan that was made before is void.
    fn plan_for(&mut self, end: f64) -> u32 {
        self.plan = self.plan.wrapping_add(1);
        self.planned = end;
        self.changed = false;
        self.plan
    }
}

/// All stages, and the time.
pub struct Stages<T> {
    now: f64,
    later: Queue<Event<T>>,
    stages: Vec<Kind<T>>,
}

impl<T: Copy> Stages<T> {
    pub fn new() -> Stages<T> {
        Stages { now: 0.0, later: Queue::default(), stages: Vec::new() }
    }

    /// Seconds since the run began.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// A stage without a queue.
    pub fn freely(&mut self) -> Stage {
        self.another(Kind::Freely)
    }

    /// A stage that takes no time.
    pub fn through(&mut self) -> Stage {
        self.another(Kind::Through)
    }

    /// A stage of one job at a time, whose work another does.
    pub fn in_turn(&mut self, on: Option<Stage>) -> Stage {
        let (urgent, others) = Default::default();
        self.another(Kind::FirstComeFirstServed(FirstComeFirstServed {
            on,
            now: None,
            urgent,
            others,
        }))
    }

    /// A stage whose jobs share so many servers.
    pub fn evenly(&mut self, servers: f64) -> Stage {
        self.another(Kind::ProcessorSharing(ProcessorSharing {
            servers,
            given: 0.0,
            since: 0.0,
            jobs: Queue::default(),
            plan: 0,
            planned: f64::INFINITY,
            changed: false,
        }))
    }

    fn another(&mut self, kind: Kind<T>) -> Stage {
        self.stages.push(kind);
        (self.stages.len() - 1) as Stage
    }

    /// Whether a stage takes no time.
    pub fn is_through(&self, stage: Stage) -> bool {
        matches!(self.stages[usize::from(stage)], Kind::Through)
    }

    /// Has something happen at `time`; of equal times, in the order of these calls.
    pub fn at(&mut self, time: f64, then: T, which: u32) {
        self.later.push(time, (Next::Then(then), which));
    }

    /// From now on do `work` (seconds, if there were no other), and then `then`. Through a stage that
    /// takes no time, it happens at once: then it is handed back.
    #[must_use]
    pub fn add(&mut self, stage: Stage, work: f64, then: T, which: u32) -> Option<T> {
        if self.is_through(stage) {
            return Some(then);
        }
        self.begin(stage, Job { work, next: Next::Then(then), which, on: None }, false);
        None
    }

    /// The same at a stage in turn, where the job may be urgent, and may be done on another stage
    /// than all: what a thread does under a lock.
    pub fn queue(
        &mut self,
        stage: Stage,
        work: f64,
        then: T,
        which: u32,
        urgent: bool,
        on: Option<Stage>,
    ) {
        self.begin(stage, Job { work, next: Next::Then(then), which, on }, urgent);
    }

    fn begin(&mut self, stage: Stage, job: Job<T>, urgent: bool) {
        let now = self.now;
        match &mut self.stages[usize::from(stage)] {
            Kind::Freely | Kind::Through => self.later.push(now + job.work, (job.next, job.which)),
            Kind::FirstComeFirstServed(one) if one.now.is_some() => {
                (if urgent { &mut one.urgent } else { &mut one.others }).push_back(job);
            }
            Kind::FirstComeFirstServed(one) => {
                one.now = Some(job.next);
                let on = job.on.or(one.on);
                self.work_on(stage, on, job.work, job.which);
            }
            Kind::ProcessorSharing(one) => {
                one.go_on(now);
                one.jobs.push(one.given + job.work, (job.next, job.which));
                match one.end(now) {
                    Some(end) if end < one.planned => {
                        let plan = one.plan_for(end);
                        self.later.push(end, (Next::Due(stage), plan));
                    }
                    _ => one.changed = true,
                }
            }
        }
    }

    /// Another stage, or none, does the work of a job of one in turn.
    fn work_on(&mut self, stage: Stage, on: Option<Stage>, work: f64, which: u32) {
        match on {
            Some(on) => {
                self.begin(on, Job { work, next: Next::Done(stage), which, on: None }, false)
            }
            None => self.later.push(self.now + work, (Next::Done(stage), which)),
        }
    }

    /// The next event; time advances to it.
    pub fn next(&mut self) -> Option<Event<T>> {
        let first = self.later.pop()?;
        self.now = first.at();
        Some(first.what)
    }

    /// What follows the job that a stage in turn has done. Before the next begins that has to
    /// happen, as its result may be urgent: see `turn`.
    fn done(&self, stage: Stage) -> Option<Next<T>> {
        match &self.stages[usize::from(stage)] {
            Kind::FirstComeFirstServed(one) => one.now,
            _ => None,
        }
    }

    /// A stage in turn continues to its next job.
    fn turn(&mut self, stage: Stage) {
        let Kind::FirstComeFirstServed(one) = &mut self.stages[usize::from(stage)] else { return };
        one.now = None;
        if let Some(job) = one.urgent.pop_front().or_else(|| one.others.pop_front()) {
            one.now = Some(job.next);
            let on = job.on.or(one.on);
            self.work_on(stage, on, job.work, job.which);
        }
    }

    /// What follows the job that a stage which serves evenly has done, if the plan still holds.
    fn due(&mut self, stage: Stage, plan: u32) -> Option<Event<T>> {
        let now = self.now;
        let Kind::ProcessorSharing(one) = &mut self.stages[usize::from(stage)] else { return None };
        if plan != one.plan {
            return None;
        }
        if one.changed {
            one.go_on(now);
            if let Some(end) = one.end(now).filter(|&end| end > now) {
                let plan = one.plan_for(end);
                self.later.push(end, (Next::Due(stage), plan));
                return None;
            }
        }
        let job = one.jobs.pop()?;
        // Set, not added up: rounding must not leave a rest of the job.
        one.given = job.at();
        one.since = now;
        match one.end(now) {
            Some(end) => {
                let plan = one.plan_for(end);
                self.later.push(end, (Next::Due(stage), plan));
            }
            None => one.planned = f64::INFINITY,
        }
        Some(job.what)
    }
}

/// A simulation with stages, which handles the ends of their jobs.
pub trait Simulation<T: Copy> {
    /// Its stages.
    fn stages(&mut self) -> &mut Stages<T>;

    /// Something happens to a task or worker.
    fn happen(&mut self, what: T, which: u32);

    /// Continues by so many events; whether there are more.
    fn step(&mut self, events: usize) -> bool {
        for _ in 0..events {
            let Some((next, which)) = self.stages().next() else { return false };
            self.follow(next, which);
        }
        true
    }

    /// Handles the next event.
    fn follow(&mut self, next: Next<T>, which: u32) {
        match next {
            Next::Then(what) => self.happen(what, which),
            Next::Done(stage) => {
                if let Some(then) = self.stages().done(stage) {
                    self.follow(then, which);
                }
                self.stages().turn(stage);
            }
            Next::Due(stage) => {
                if let Some((then, which)) = self.stages().due(stage, which) {
                    self.follow(then, which);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs that come at their time to one stage, and when each has ended.
    struct Jobs {
        stages: Stages<Step>,
        stage: Stage,
        jobs: Vec<(f64, f64, bool)>,
        ended: Vec<f64>,
        order: Vec<u32>,
    }

    #[derive(Clone, Copy)]
    enum Step {
        Comes,
        Ends,
    }

    impl Simulation<Step> for Jobs {
        fn stages(&mut self) -> &mut Stages<Step> {
            &mut self.stages
        }

        fn happen(&mut self, what: Step, which: u32) {
            let (_, work, urgent) = self.jobs[which as usize];
            match what {
                Step::Comes => {
                    self.stages.queue(self.stage, work, Step::Ends, which, urgent, None);
                }
                Step::Ends => {
                    self.ended[which as usize] = self.stages.now();
                    self.order.push(which);
                }
            }
        }
    }

    fn followed(make: fn(&mut Stages<Step>) -> Stage, jobs: &[(f64, f64, bool)]) -> Jobs {
        let mut stages = Stages::new();
        let stage = make(&mut stages);
        for (number, &(time, ..)) in (0..).zip(jobs) {
            stages.at(time, Step::Comes, number);
        }
        let ended = vec![f64::NAN; jobs.len()];
        let mut world = Jobs { stages, stage, jobs: jobs.to_vec(), ended, order: Vec::new() };
        while world.step(3) {}
        world
    }

    fn ends(make: fn(&mut Stages<Step>) -> Stage, jobs: &[(f64, f64)]) -> Vec<f64> {
        let jobs: Vec<_> = jobs.iter().map(|&(time, work)| (time, work, false)).collect();
        followed(make, &jobs).ended
    }

    #[test]
    fn jobs_in_turn_wait_for_each_other() {
        assert_eq!(
            ends(|all| all.in_turn(None), &[(0.0, 2.0), (1.0, 2.0), (9.0, 1.0)]),
            [2.0, 4.0, 10.0]
        );
    }

    #[test]
    fn an_urgent_job_comes_before_those_that_wait() {
        let jobs = [(0.0, 1.0, false), (0.0, 1.0, false), (0.0, 1.0, false), (0.0, 1.0, true)];
        assert_eq!(followed(|all| all.in_turn(None), &jobs).order, [0, 3, 1, 2]);
    }

    #[test]
    fn jobs_that_share_evenly_end_together_if_they_came_together() {
        assert_eq!(ends(|all| all.evenly(1.0), &[(0.0, 2.0), (0.0, 2.0), (0.0, 2.0)]), [6.0; 3]);
    }

    #[test]
    fn a_job_that_shares_is_slower_only_while_it_shares() {
        // The first is alone until 1; then both get half until it ends, at 3; the second is alone again.
        let jobs = [(0.0, 2.0), (1.0, 2.0), (6.0, 1.0)];
        assert_eq!(ends(|all| all.evenly(1.0), &jobs), [3.0, 4.0, 7.0]);
    }

    #[test]
    fn up_to_as_many_jobs_as_servers_go_on_at_full_speed() {
        // Four share two until the short ones have got 1 s each; then the last is alone.
        let jobs = [(0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (0.0, 2.0)];
        assert_eq!(ends(|all| all.evenly(2.0), &jobs), [2.0, 2.0, 2.0, 3.0]);
    }

    #[test]
    fn jobs_in_turn_on_a_shared_stage_take_longer_while_others_use_it() {
        let make: fn(&mut Stages<Step>) -> Stage = |all| {
            let on = all.evenly(1.0);
            all.queue(on, 1.0, Step::Ends, 1, false, None);
            all.in_turn(Some(on))
        };
        assert_eq!(ends(make, &[(0.0, 1.0), (9.0, 1.0)])[0], 2.0);
    }

    /// Up to 30 jobs, by time.
    fn some_jobs(random: &mut fastrand::Rng) -> Vec<(f64, f64)> {
        let mut times: Vec<f64> = (0..random.usize(1..=30)).map(|_| 100.0 * random.f64()).collect();
        times.sort_by(f64::total_cmp);
        times.into_iter().map(|time| (time, 0.001 + 10.0 * random.f64())).collect()
    }

    fn latest(ends: &[f64]) -> f64 {
        ends.iter().copied().fold(0.0, f64::max)
    }

    #[test]
    fn sharing_evenly_takes_as_long_in_all_as_in_turn() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..500 {
            let jobs = some_jobs(&mut random);
            let evenly = ends(|all| all.evenly(1.0), &jobs);
            let in_turn = ends(|all| all.in_turn(None), &jobs);
            assert!((latest(&evenly) / latest(&in_turn) - 1.0).abs() < 1e-6, "{jobs:?}");
        }
    }

    #[test]
    fn servers_are_never_idle_while_enough_jobs_wait() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..500 {
            let jobs = some_jobs(&mut random);
            let all: f64 = jobs.iter().map(|job| job.1).sum();
            for (end, (time, work)) in ends(|all| all.evenly(3.0), &jobs).into_iter().zip(&jobs) {
                assert!(end >= (time + work) * (1.0 - 1e-9), "{jobs:?}");
                // Even with all others in the way, and nothing done before it came.
                assert!(end <= (time + work + all) * (1.0 + 1e-9), "{jobs:?}");
            }
        }
    }
}

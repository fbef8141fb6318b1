//! The job tracker: one thread that submits jobs, queries their state, and cancels them.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gridrpc_sys::lock;

use super::commands::{Commands, Failure, Submission};
use super::folder::{self, FilePlacement, Folder};
use super::system::System;
use super::task::{JobRequest, JobState, Task, TaskStatus, VanishedTask};
use super::watcher::Watcher;
use crate::agents::never_started;
use crate::launcher::{COPIES, Event, QUEUED, Report, SUBMITTED, Start, UNANSWERED};

/// Shortest and longest pause between status queries; the pause grows by half each time. One query covers all
/// jobs, since the batch system serves many users.
const SOON: Duration = Duration::from_millis(100);
const WAITING: Duration = Duration::from_secs(5);
/// Pause between status queries once all agents' jobs run.
const RUNNING: Duration = Duration::from_secs(30);
/// Pause between status queries while a job is about to end.
const ENDING: Duration = Duration::from_millis(100);
/// How long a requeued job waits for an agent to take its place.
const ADOPTION: Duration = Duration::from_secs(60);
/// How much earlier a job's wall time may expire than computed here: its start is seen with a delay.
const UNSURE: Duration = WAITING;
/// How many consecutive queries look for the end of a lost agent.
const LOOKS: u32 = 20;

/// A request to the tracker.
#[derive(Debug)]
pub(super) enum Order {
    Start(Vec<Start>),
    Stop(u32),
    /// An agent is lost: find out how it ended.
    Look(u32),
    Close,
}

/// An agent whose end has not been reported.
#[derive(Debug)]
struct Member {
    /// The host's name in the configuration.
    host: String,
    job: String,
    /// The agent's number in its request, from 0.
    number: usize,
    /// Its task in the job, if the job has several.
    task: Option<usize>,
    folder: PathBuf,
    /// The state reported last.
    state: String,
    runs: bool,
    /// The node it runs on, if known.
    node: String,
    /// The run of its job, if known.
    run: String,
    /// It has been stopped.
    stopped: bool,
    /// Remaining queries for its end.
    looks: u32,
    /// When its job expires, as reported.
    ends: Option<Instant>,
}

impl Member {
    /// Whether its wall time is known to have expired.
    fn is_over(&self) -> bool {
        self.ends.is_some_and(|ends| ends <= Instant::now() + UNSURE)
    }
}

#[derive(Debug)]
pub(super) struct JobTracker<S> {
    system: S,
    placing: FilePlacement,
    stop_timeout: Duration,
    report: Report,
    commands: Arc<Commands>,
    known: Arc<Mutex<HashSet<u32>>>,
    members: HashMap<u32, Member>,
    /// Places in requeued jobs whose agents are lost, and when the offer to take them expires.
    requeued: Vec<(Instant, Member)>,
    folder: Option<Folder>,
    watcher: Option<Watcher>,
    pause: Duration,
    /// Whether jobs without a known number may exist: a submission got no answer.
    has_unknown_jobs: bool,
}

impl<S: System> JobTracker<S> {
    pub(super) fn new(
        system: S,
        placing: FilePlacement,
        stop_timeout: Duration,
        report: Report,
        commands: &Arc<Commands>,
        known: &Arc<Mutex<HashSet<u32>>>,
    ) -> JobTracker<S> {
        let (commands, known) = (Arc::clone(commands), Arc::clone(known));
        let (members, requeued) = (HashMap::new(), Vec::new());
        let (folder, watcher, pause, has_unknown_jobs) = (None, None, SOON, false);
        JobTracker {
            system,
            placing,
            stop_timeout,
            report,
            commands,
            known,
            members,
            requeued,
            folder,
            watcher,
            pause,
            has_unknown_jobs,
        }
    }

    /// Handles orders until the launcher closes.
    pub(super) fn serve(mut self, orders: &Receiver<Order>) {
        let mut due = Instant::now();
        loop {
            let first = if self.members.is_empty() && self.requeued.is_empty() {
                orders.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                orders.recv_timeout(due.saturating_duration_since(Instant::now()))
            };
            let mut open = !matches!(first, Err(RecvTimeoutError::Disconnected));
            // Orders that arrive together become one request to the batch system.
            let all: Vec<Order> = first.into_iter().chain(orders.try_iter()).collect();
            let mut stopped = Vec::new();
            for order in all {
                match order {
                    Order::Start(starts) => {
                        self.submit(starts);
                        (self.pause, due) = (SOON, Instant::now() + SOON);
                    }
                    Order::Stop(agent) => stopped.push(agent),
                    Order::Look(agent) => {
                        if let Some(member) = self.members.get_mut(&agent) {
                            member.looks = LOOKS;
                        }
                        due = Instant::now();
                    }
                    Order::Close => open = false,
                }
            }
            if !open {
                return self.close();
            }
            if !stopped.is_empty() {
                self.stop(&stopped);
            }
            if due <= Instant::now() {
                self.look();
                due = Instant::now() + self.next();
            }
        }
    }

    /// Time until the next query.
    fn next(&mut self) -> Duration {
        if self.members.values().any(|member| member.looks > 0) {
            return ENDING;
        }
        let longest = match self.members.values().all(|member| member.runs) {
            true => RUNNING,
            false => WAITING,
        };
        self.pause = (self.pause * 3 / 2).min(longest);
        self.pause
    }

    fn submit(&mut self, starts: Vec<Start>) {
        let starts = self.adopt(starts);
        if starts.is_empty() {
            return;
        }
        match self.try_to_submit(&starts) {
            Ok((job, folder)) => {
                let has_tasks = starts.len() > 1 && self.system.has_tasks();
                for (index, start) in starts.into_iter().enumerate() {
                    let member = Member {
                        host: start.host,
                        job: job.clone(),
                        number: index,
                        task: has_tasks.then_some(index),
                        folder: folder.clone(),
                        state: String::new(),
                        runs: false,
                        node: String::new(),
                        run: String::new(),
                        stopped: false,
                        looks: 0,
                        ends: None,
                    };
                    self.members.insert(start.agent, member);
                    self.report_state(start.agent, format!("{QUEUED} as job {job}"));
                }
            }
            Err(why) => {
                for start in starts {
                    self.end(start.agent, Event::Failed(why.clone()));
                }
            }
        }
    }

    /// Submits a job; returns it with its ticket folder.
    fn try_to_submit(&mut self, starts: &[Start]) -> Result<(String, PathBuf), String> {
        let (agents, report) = (starts.iter().map(|start| start.agent), self.report.clone());
        let agents: Vec<u32> = agents.collect();
        let notify = |state: &str| {
            for agent in &agents {
                report.notify(*agent, Event::State(state.to_owned()));
            }
        };
        let program = self.placing.program(|| notify(COPIES))?;
        let all = match &mut self.folder {
            Some(all) => all,
            none => none.insert(self.placing.open()?),
        };
        let watcher = match &mut self.watcher {
            Some(watcher) => Some(watcher),
            none => {
                let (cancelling, name) = (self.system.cancelling(), self.system.job_name());
                let start = Watcher::start(cancelling, name, all.path(), self.system.prefix());
                let start = start.map_err(|error| {
                    format!("the process that ends the jobs could not be started: {error}")
                })?;
                Some(none.insert(start))
            }
        };
        let numbered = starts.iter().enumerate();
        let put = all.put(numbered.map(|(n, start)| (n.to_string(), &start.ticket)))?;
        let folder = folder::text(&put)?;
        let wanted = JobRequest { agents: starts.len(), program: &program, folder: &folder };
        notify(SUBMITTED);
        let hear = || notify(&self.commands.submitting());
        let submit = |submission: &Submission<'_>| self.system.submit(submission, &wanted);
        let job = self.commands.in_turn(&hear, submit).map_err(|error| {
            let _ = std::fs::remove_dir_all(&put);
            self.has_unknown_jobs |= matches!(error, Failure::Silent(_));
            error.to_string()
        })?;
        if let Some(watcher) = watcher {
            watcher.knows(&job);
        }
        Ok((job, put))
    }

    /// Queries the state of all jobs and reports changes.
    fn look(&mut self) {
        self.cancel_unwanted();
        let mut jobs: Vec<&str> = self.members.values().map(|member| &*member.job).collect();
        jobs.sort_unstable();
        jobs.dedup();
        if jobs.is_empty() {
            return;
        }
        let look = |jobs: &[&str]| self.system.look(&self.commands, jobs);
        let seen = match self.system.status_query() {
            Some(status_query) => status_query.ask(&jobs, || self.commands.have_ended(), look),
            None => look(&jobs),
        };
        let seen = match seen {
            Ok(seen) => seen,
            Err(failure) => {
                let agents: Vec<u32> = self.members.keys().copied().collect();
                for agent in agents {
                    self.report_state(agent, format!("{UNANSWERED}: {failure}"));
                    self.count_down(agent);
                }
                return;
            }
        };
        let stands: HashMap<(&str, Option<usize>), &TaskStatus> =
            seen.iter().map(|one| ((&*one.task.job, one.task.number), one)).collect();
        let mut changes = Vec::new();
        for (agent, member) in &self.members {
            let of = |number| stands.get(&(&*member.job, number)).copied();
            let seen = of(Some(member.number)).or_else(|| of(None));
            changes
                .push((*agent, seen.map(|seen| (seen.job_state.clone(), seen.left, &*seen.run))));
        }
        for (agent, seen) in changes {
            if let Some((JobState::Runs(_), left, run)) = &seen {
                if self.is_another_run(agent, run) {
                    self.was_taken(agent);
                    continue;
                }
                self.report_end(agent, *left);
            }
            self.take(agent, seen.map(|(job_state, ..)| job_state));
        }
        // Retry jobs that could not be cancelled earlier.
        let stopped = self.members.iter().filter(|(_, member)| member.stopped);
        let stopped: Vec<u32> = stopped.map(|(agent, _)| *agent).collect();
        if !stopped.is_empty() {
            self.stop(&stopped);
        }
    }

    fn take(&mut self, agent: u32, job_state: Option<JobState>) {
        let Some(member) = self.members.get_mut(&agent) else { return };
        let job = &member.job;
        let status = || folder::status(&member.folder, member.number);
        // The job script may record an agent's end before the batch system reports it.
        let job_state = job_state.filter(|job_state| {
            !matches!(job_state, JobState::Runs(_)) || member.looks == 0 || status().is_none()
        });
        let job_state = job_state.unwrap_or_else(|| {
            let task = Task { job: job.clone(), number: member.task };
            let is_over = member.is_over();
            let gone = VanishedTask { task: &task, node: &member.node, status: status(), is_over };
            self.system.gone(&self.commands, &gone)
        });
        match job_state {
            JobState::Queued(_) if (member.runs || member.looks > 0) && !member.stopped => {
                self.was_taken(agent);
            }
            JobState::Queued(why) => {
                let state = match &*why {
                    "" => format!("{QUEUED} as job {job}"),
                    why => format!("{QUEUED} as job {job} ({why})"),
                };
                self.report_state(agent, state);
            }
            JobState::Runs(node) => {
                member.runs = true;
                member.node.clone_from(&node);
                let state = match &*node {
                    "" => format!("is starting (job {job})"),
                    node => format!("is starting on {node} (job {job})"),
                };
                self.report_state(agent, state);
                self.count_down(agent);
            }
            JobState::Ended(how) => {
                let said = folder::said(&member.folder, member.number);
                if !said.is_empty() && !member.stopped {
                    self.report.notify(agent, Event::Said(said));
                }
                self.end(agent, Event::Ended(how));
            }
            JobState::Refused(why) if member.stopped => self.end(agent, Event::Ended(why)),
            JobState::Refused(why) => self.end(agent, Event::Failed(why)),
        }
    }

    /// Reports when a running agent's job expires.
    fn report_end(&mut self, agent: u32, left: Option<Duration>) {
        let Some(member) = self.members.get_mut(&agent) else { return };
        // Unless the system knows better, it has just started.
        let new = self.system.wall_time().filter(|_| member.ends.is_none());
        let Some(left) = left.or(new) else { return };
        let ends = Instant::now() + left;
        let known = member.ends.is_some_and(|known| {
            known.max(ends).duration_since(known.min(ends)) < Duration::from_secs(2)
        });
        if !known {
            member.ends = Some(ends);
            self.report.notify(agent, Event::EndsIn(left));
        }
    }

    /// Whether the job of a lost agent already runs again: a requeued job may wait only for a moment. `run`:
    /// the run of the job.
    fn is_another_run(&mut self, agent: u32, run: &str) -> bool {
        let Some(member) = self.members.get_mut(&agent) else { return false };
        let is_gone = member.looks > 0 && !member.stopped;
        let is_another = is_gone && !member.run.is_empty() && member.run != run;
        run.clone_into(&mut member.run);
        is_another
    }

    /// Handles the loss of a node that the system took from an agent's job. If the job will run again,
    /// another agent may take its place with a new ticket; the old ticket has been used.
    fn was_taken(&mut self, agent: u32) {
        if !self.system.requeues() {
            let Some(member) = self.members.get(&agent) else { return };
            let (job, number) = (member.job.clone(), member.task);
            // A job removed for its wall time may be seen leaving its node first.
            let how = match member.is_over() {
                true => format!("its job {job} has reached its wall time: see `wall_time`"),
                false => format!("its job {job} had to leave its node"),
            };
            // If this fails, the job finds no ticket and ends.
            let _ = self.system.cancel(&self.commands, &[Task { job, number }]);
            return self.end(agent, Event::Ended(how));
        }
        let Some(mut member) = self.members.remove(&agent) else { return };
        let how = format!("its job {} {}", member.job, self.system.requeued());
        member.runs = false;
        (member.looks, member.ends) = (0, None);
        member.state.clear();
        self.requeued.push((Instant::now() + ADOPTION, member));
        lock(&self.known).remove(&agent);
        self.report.notify(agent, Event::Ended(how));
    }

    /// Assigns agents to the places of requeued jobs. Returns those that need new jobs.
    fn adopt(&mut self, starts: Vec<Start>) -> Vec<Start> {
        let mut rest = Vec::new();
        for start in starts {
            let place = self.requeued.iter().position(|(_, member)| member.host == start.host);
            let Some(place) = place else {
                rest.push(start);
                continue;
            };
            let (_, member) = self.requeued.remove(place);
            match folder::renew(&member.folder, member.number, &start.ticket) {
                Ok(()) => {
                    let state = format!("{QUEUED} as job {} (it was requeued)", member.job);
                    self.members.insert(start.agent, member);
                    self.report_state(start.agent, state);
                }
                Err(_) => {
                    // The job finds no ticket, and is cancelled with the other unclaimed ones.
                    self.requeued.push((Instant::now(), member));
                    rest.push(start);
                }
            }
        }
        rest
    }

    /// Cancels requeued jobs that nobody has claimed in time.
    fn cancel_unwanted(&mut self) {
        let now = Instant::now();
        let (mut unwanted, has_tasks) = (Vec::<Task>::new(), self.system.has_tasks());
        for (_, member) in self.requeued.iter().filter(|(until, _)| *until <= now) {
            let same = |other: &Member| other.job == member.job;
            let others = self.members.values().any(same)
                || self.requeued.iter().any(|(until, other)| *until > now && same(other));
            let job = member.job.clone();
            match others {
                // A job without tasks is shared: this agent ends for want of a ticket.
                true if !has_tasks => {}
                true => unwanted.push(Task { job, number: member.task }),
                false if unwanted.iter().any(|task| task.job == job) => {}
                false => unwanted.push(Task { job, number: None }),
            }
        }
        if unwanted.is_empty() || self.system.cancel(&self.commands, &unwanted).is_ok() {
            self.requeued.retain(|(until, _)| *until > now);
        }
    }

    fn count_down(&mut self, agent: u32) {
        if let Some(member) = self.members.get_mut(&agent) {
            member.looks = member.looks.saturating_sub(1);
        }
    }

    fn report_state(&mut self, agent: u32, state: String) {
        let Some(member) = self.members.get_mut(&agent) else { return };
        if member.state != state && !member.stopped {
            member.state.clone_from(&state);
            self.report.notify(agent, Event::State(state));
        }
    }

    /// Reports the end of an agent.
    fn end(&mut self, agent: u32, event: Event) {
        if let Some(member) = self.members.remove(&agent)
            && !self.members.values().any(|other| other.folder == member.folder)
            && !self.requeued.iter().any(|(_, other)| other.folder == member.folder)
        {
            // The tickets are no longer needed.
            let _ = std::fs::remove_dir_all(&member.folder);
        }
        // Before the report: a new agent may reuse the number right after it.
        lock(&self.known).remove(&agent);
        self.report.notify(agent, event);
    }

    /// Stops agents: cancels their tasks, or whole jobs if no other agent uses them.
    fn stop(&mut self, agents: &[u32]) {
        let mut tasks: Vec<Task> = Vec::new();
        for agent in agents {
            let Some(member) = self.members.get_mut(agent) else { continue };
            member.stopped = true;
            let (job, number) = (member.job.clone(), member.number);
            let all = self.members.values().all(|other| other.job != job || other.stopped);
            if all {
                tasks.retain(|task| task.job != job);
                tasks.push(Task { job, number: None });
            } else if self.system.has_tasks() {
                tasks.push(Task { job, number: Some(number) });
            } else {
                // It shares its job. Without its ticket it ends as soon as it starts.
                self.end(*agent, never_started());
            }
        }
        // Whatever is not cancelled now is cancelled on close.
        let cancelled = tasks.is_empty() || self.system.cancel(&self.commands, &tasks).is_ok();
        for agent in agents {
            if let Some(member) = self.members.get(agent) {
                let how = match (member.runs, cancelled) {
                    (false, true) => never_started(),
                    (true, true) => Event::Ended(format!("its job {} was ended", member.job)),
                    (_, false) => continue,
                };
                self.end(*agent, how);
            }
        }
    }

    /// Stops all agents. Running ones have already been asked to exit and get some time.
    fn close(mut self) {
        let until = Instant::now() + self.stop_timeout;
        let now = Instant::now();
        self.requeued.iter_mut().for_each(|(until, _)| *until = now);
        // Refresh states first: a job that runs by now must not be cancelled as queued.
        self.look();
        let queued = self.members.iter().filter(|(_, member)| !member.runs);
        let queued: Vec<u32> = queued.map(|(agent, _)| *agent).collect();
        if !queued.is_empty() {
            // Jobs that have started since are cancelled too.
            self.stop(&queued);
        }
        let mut pause = SOON / 4;
        while !self.members.is_empty() && Instant::now() + pause < until - self.stop_timeout / 3 {
            std::thread::sleep(pause);
            self.look();
            pause = (pause * 2).min(SOON * 4);
        }
        let rest: Vec<u32> = self.members.keys().copied().collect();
        if !rest.is_empty() {
            self.stop(&rest);
        }
        self.cancel_unwanted();
        let all_ended = self.members.is_empty() && self.requeued.is_empty();
        let agents: Vec<u32> = self.members.keys().copied().collect();
        for agent in agents {
            self.end(agent, Event::Ended("its job could not be ended".to_owned()));
        }
        if !all_ended || self.has_unknown_jobs {
            // The watcher cancels the rest. It also finds jobs by name.
            return;
        }
        if let Some(watcher) = self.watcher.take() {
            watcher.done();
        }
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder.path());
        }
    }
}

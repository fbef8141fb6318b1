//! Agents started by `srun`, one per request: in the current job, or in a job that this `srun` waits for and
//! that ends with it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_config::{BatchSystem, HostGroup, RequestForm};
use gridrpc_sys::lock;
use gridrpc_sys::process::end_with_parent;

use super::error_hints::{is_refusal, refusal};
use super::jobs::{Slurm, start};
use super::state_names::{allocating, exited, labelled};
use crate::batch::{
    Commands, Failure, FilePlacement, Folder, JobRequest, JobState, System as _, Watcher,
    check_skip, processors_of_agent, quoted, text,
};
use crate::child::{Child, how};
use crate::launcher::{COPIES, Event, Launcher, QUEUED, Report, SUBMITTED, Start};
use crate::lines::{self, Lines};

/// How many of `srun`'s last lines are kept for messages.
const KEPT: usize = 5;
/// How long killed processes may take to exit.
const DYING: Duration = Duration::from_secs(1);
/// First and longest pause before a query why a job waits; pauses grow by half.
const SOON: Duration = Duration::from_millis(100);
const LATE: Duration = Duration::from_secs(5);

/// Launcher that starts agents as steps of a job.
#[derive(Debug)]
pub(super) struct Step {
    shared: Arc<Shared>,
    /// Nodes of the current job, in Slurm's order.
    nodes: Vec<String>,
    stop_timeout: Duration,
}

#[derive(Debug)]
struct Shared {
    report: Report,
    placing: FilePlacement,
    slurm: Slurm,
    /// Whether `srun` waits for nodes of its own.
    direct: bool,
    /// Options before the command of a task.
    options: Vec<String>,
    /// Commands for status queries.
    commands: Commands,
    table: Mutex<Table>,
    fewer: Condvar,
}

#[derive(Debug, Default)]
struct Table {
    /// Agents whose end has not been reported, with their runs.
    agents: HashMap<u32, u32>,
    /// Runs with a live process.
    runs: HashMap<u32, Arc<Child>>,
    /// Runs whose thread has not ended.
    threads: usize,
    /// Runs that wait for nodes.
    waiting: HashSet<u32>,
    count: u32,
    closed: bool,
    folder: Option<Folder>,
    watcher: Option<Watcher>,
}

/// Output of a run of `srun`.
#[derive(Debug, Default)]
struct StepOutput {
    /// Its last lines.
    last: VecDeque<String>,
    /// Whether Slurm has accepted its request.
    is_taken: bool,
}

impl Step {
    pub(super) fn new(
        group: &HostGroup,
        slurm: Slurm,
        placing: FilePlacement,
        report: Report,
    ) -> Step {
        let direct = slurm.batch.request == RequestForm::Direct;
        let options = options(group, &slurm);
        let nodes = if direct {
            group.hosts.iter().map(|host| host.name.clone()).collect()
        } else {
            BatchSystem::Slurm.allocation().into_iter().map(|node| node.name).collect()
        };
        let (commands, table, fewer) = (Commands::default(), Mutex::default(), Condvar::new());
        let shared = Shared { report, placing, slurm, direct, options, commands, table, fewer };
        Step { shared: Arc::new(shared), nodes, stop_timeout: group.stop_timeout }
    }

    /// Index of a host among the job's nodes.
    fn place(&self, host: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node == host)
    }
}

/// Options before the command of a task, except the number of tasks.
fn options(group: &HostGroup, slurm: &Slurm) -> Vec<String> {
    let mut options: Vec<String> = [
        "--ntasks-per-node=1",
        "--label",
        "--no-kill",
        "--kill-on-bad-exit=0",
        "--wait=0",
        "--input=none",
    ]
    .map(str::to_owned)
    .into();
    if let Some(cores) = processors_of_agent(&slurm.batch, group.workers) {
        options.push(format!("--cpus-per-task={cores}"));
    }
    if slurm.batch.request == RequestForm::Direct {
        options.extend(slurm.direct_options());
    } else {
        // The client may itself be a step that shares its processors.
        options.push("--overlap".to_owned());
    }
    options
}

/// The options for this many agents, one per node.
fn counts(agents: usize) -> [String; 2] {
    [format!("--nodes={agents}"), format!("--ntasks={agents}")]
}

/// The line that a task passes to a shell.
fn started(program: &str, folder: &str) -> String {
    start(&quoted(program), &quoted(folder), "$SLURM_PROCID", "")
}

/// The command for all agents of a group, as a shell line.
pub(super) fn line(group: &HostGroup, slurm: &Slurm, wanted: &JobRequest<'_>) -> String {
    let words = counts(wanted.agents).into_iter().chain(options(group, slurm));
    let words: Vec<String> = words.map(|word| quoted(&word)).collect();
    let start = quoted(&started(wanted.program, wanted.folder));
    format!("srun {} \\\n    sh -c {start}", words.join(" "))
}

impl Launcher for Step {
    fn start(&mut self, starts: Vec<Start>) {
        let (mut here, elsewhere): (Vec<Start>, Vec<Start>) =
            starts.into_iter().partition(|start| self.place(&start.host).is_some());
        for start in elsewhere {
            let why = match self.nodes.len() {
                0 => {
                    "this program is not part of a Slurm job, in which it could start steps: write \
                      another `request`"
                        .to_owned()
                }
                count => format!(
                    "the job that this program is part of has {count} nodes and no more: ask for fewer \
                     `nodes`"
                ),
            };
            self.shared.report.notify(start.agent, Event::Failed(why));
        }
        if here.is_empty() {
            return;
        }
        // Tasks are numbered in the order of the nodes.
        here.sort_by_key(|start| self.place(&start.host));
        let run = {
            let mut table = lock(&self.shared.table);
            table.count += 1;
            table.threads += 1;
            let run = table.count;
            table.agents.extend(here.iter().map(|start| (start.agent, run)));
            run
        };
        let shared = Arc::clone(&self.shared);
        let agents: Vec<u32> = here.iter().map(|start| start.agent).collect();
        let thread = std::thread::Builder::new().name("gridrpc-step".into());
        let started = thread.spawn(move || {
            let agents = here.iter().map(|start| start.agent).collect();
            let end = shared.run(run, &here);
            shared.over(run, agents, &end);
        });
        if let Err(error) = started {
            let end = Event::Failed(format!("no thread could be started for it: {error}"));
            self.shared.over(run, agents, &end);
        }
    }

    fn stop(&mut self, agent: u32) {
        let child = {
            let mut table = lock(&self.shared.table);
            let Some(run) = table.agents.remove(&agent) else { return };
            // It shares its step with others: it ends because its client is gone.
            let others = table.agents.values().any(|other| *other == run);
            table.runs.get(&run).filter(|_| !others).cloned()
        };
        self.shared.report.notify(agent, Event::Ended("it was ended".to_owned()));
        if let Some(child) = child {
            child.end_soon(Duration::ZERO, self.stop_timeout);
        }
    }

    fn lost(&mut self, agent: u32) -> bool {
        lock(&self.shared.table).agents.contains_key(&agent)
    }

    fn close(&mut self) {
        let begin = Instant::now();
        lock(&self.shared.table).closed = true;
        // Waiting runs have no agents to end.
        for child in self.shared.waiting() {
            child.ask();
        }
        let runs =
            || -> Vec<Arc<Child>> { lock(&self.shared.table).runs.values().cloned().collect() };
        // Running agents have been asked to exit.
        if !self.shared.are_over_before(begin + self.stop_timeout * 2 / 3) {
            runs().iter().for_each(|child| child.ask());
        }
        if !self.shared.are_over_before(begin + self.stop_timeout) {
            runs().iter().for_each(|child| child.kill());
            self.shared.are_over_before(Instant::now() + DYING);
        }
        self.shared.commands.end();
        let mut table = lock(&self.shared.table);
        if let Some(folder) = table.folder.take() {
            let _ = std::fs::remove_dir_all(folder.path());
        }
        if let Some(watcher) = table.watcher.take() {
            drop(table);
            watcher.done();
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// Runs one `srun` to its end. Returns the event for agents that have not ended before.
    fn run(self: &Arc<Shared>, run: u32, starts: &[Start]) -> Event {
        let mut command = match self.command(starts) {
            Ok(command) => command,
            Err(why) => return Event::Failed(why),
        };
        let spawned = {
            let mut table = lock(&self.table);
            if table.closed {
                return Event::Ended("it was stopped before it had started".to_owned());
            }
            let spawned = Child::spawn(&mut command);
            if let Ok((child, _)) = &spawned {
                table.runs.insert(run, Arc::clone(child));
            }
            spawned
        };
        let (child, pipes) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                return Event::Failed(format!(
                    "`srun` could not be started: {error}; see that Slurm's commands are in PATH here"
                ));
            }
        };
        for start in starts {
            let state = match self.direct {
                true => format!("{SUBMITTED} by srun"),
                false => format!("is starting on {}", start.host),
            };
            self.notify(start.agent, Event::State(state));
        }
        let mut heard = StepOutput::default();
        if let Some(mut stderr) = pipes.stderr {
            let (mut whole, mut piece) = (Lines::default(), vec![0; 8 << 10]);
            while let Ok(read @ 1..) = stderr.read(&mut piece) {
                whole.push(&piece[..read], |line| self.handle_line(run, starts, line, &mut heard));
            }
            whole.end(|line| self.handle_line(run, starts, line, &mut heard));
        }
        let status = child.wait();
        let last: Vec<String> = heard.last.into_iter().collect();
        match &last[..] {
            [] => Event::Ended(format!("srun has ended: {}", how(status))),
            lines if lines.iter().any(|line| is_refusal(line)) => {
                Event::Failed(refusal(Failure::Refused(lines.join("\n"))).to_string())
            }
            lines => {
                Event::Ended(format!("srun has ended ({}): {}", how(status), lines.join(" | ")))
            }
        }
    }

    /// Handles a line of `srun`'s standard error, which includes that of its tasks.
    fn handle_line(
        self: &Arc<Shared>,
        run: u32,
        starts: &[Start],
        line: &[u8],
        heard: &mut StepOutput,
    ) {
        let words = lines::text(line);
        if let Some((job, waits)) = allocating(&words).filter(|_| self.direct) {
            heard.is_taken = true;
            let state = match waits {
                true => format!("{QUEUED} as job {job}"),
                false => format!("is starting (job {job})"),
            };
            self.report_run(run, &state);
            if waits {
                self.ask_after(run, job.to_owned());
            } else {
                lock(&self.table).waiting.remove(&run);
            }
            return;
        }
        if let Some((task, rest)) = labelled(&words) {
            if let Some(start) = starts.get(task) {
                self.notify(start.agent, Event::Said(format!("{rest}\n").into_bytes()));
            }
            return;
        }
        if let Some((tasks, how)) = exited(&words) {
            for task in tasks {
                if let Some(start) = starts.get(task) {
                    self.end(start.agent, Event::Ended(format!("its step {how}")));
                }
            }
        }
        if self.direct && !heard.is_taken {
            self.report_run(run, &format!("{SUBMITTED} by srun ({words})"));
        }
        if heard.last.len() == KEPT {
            heard.last.pop_front();
        }
        heard.last.push_back(words);
    }

    /// The command for these agents, with their tickets where the nodes can read them.
    fn command(&self, starts: &[Start]) -> Result<Command, String> {
        let copies = || {
            for start in starts {
                self.notify(start.agent, Event::State(COPIES.to_owned()));
            }
        };
        check_skip(&self.slurm.batch.skip, &super::OPTIONS)?;
        let program = self.placing.program(copies)?;
        let tickets = self.put(starts)?;
        let nodes: Vec<&str> = starts.iter().map(|start| &*start.host).collect();
        let mut command =
            if self.direct { self.slurm.command("srun") } else { Command::new("srun") };
        command.args(counts(nodes.len())).args(&self.options);
        if !self.direct {
            command.arg(format!("--nodelist={}", nodes.join(",")));
            command.env("LC_ALL", "C");
            // Variables of an enclosing step must not affect the new one.
            for variable in ["SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND"] {
                command.env_remove(variable);
            }
        }
        command.args(["sh", "-c", &started(&program, &text(&tickets)?)]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        end_with_parent(&mut command);
        Ok(command)
    }

    fn put(&self, starts: &[Start]) -> Result<PathBuf, String> {
        let mut table = lock(&self.table);
        let Table { folder, watcher, .. } = &mut *table;
        let folder = match folder {
            Some(folder) => folder,
            none => none.insert(self.placing.open()?),
        };
        if watcher.is_none() {
            // Steps end with the client; the watcher only removes the folder.
            let started = Watcher::start(":", "", folder.path(), &[]);
            let failed = |error: io::Error| {
                format!("the process that removes the tickets could not be started: {error}")
            };
            *watcher = Some(started.map_err(failed)?);
        }
        let numbered = starts.iter().enumerate();
        folder.put(numbered.map(|(number, start)| (number.to_string(), &start.ticket)))
    }

    /// Processes that wait for nodes.
    fn waiting(&self) -> Vec<Arc<Child>> {
        let table = lock(&self.table);
        table.waiting.iter().filter_map(|run| table.runs.get(run).cloned()).collect()
    }

    /// Reports why a job waits, for as long as it does, in a thread.
    fn ask_after(self: &Arc<Shared>, run: u32, job: String) {
        lock(&self.table).waiting.insert(run);
        let shared = Arc::clone(self);
        let asks = move || {
            let mut pause = SOON;
            loop {
                std::thread::sleep(pause);
                pause = (pause * 3 / 2).min(LATE);
                if !lock(&shared.table).waiting.contains(&run) {
                    return;
                }
                let seen = shared.slurm.look(&shared.commands, &[&job]).unwrap_or_default();
                let job_state = seen.into_iter().next().map(|seen| seen.job_state);
                let Some(JobState::Queued(why)) = job_state else { continue };
                // It may have got its nodes meanwhile.
                if !why.is_empty() && lock(&shared.table).waiting.contains(&run) {
                    shared.report_run(run, &format!("{QUEUED} as job {job} ({why})"));
                }
            }
        };
        // Without a thread the reason is not reported.
        let _ = std::thread::Builder::new().name("gridrpc-asks".into()).spawn(asks);
    }

    /// Reports the state of all agents of a run.
    fn report_run(&self, run: u32, state: &str) {
        let table = lock(&self.table);
        for agent in table.agents.iter().filter(|(_, its)| **its == run).map(|(agent, _)| *agent) {
            self.report.notify(agent, Event::State(state.to_owned()));
        }
    }

    /// Reports an event of an agent whose end has not been reported.
    fn notify(&self, agent: u32, event: Event) {
        let table = lock(&self.table);
        if table.agents.contains_key(&agent) {
            self.report.notify(agent, event);
        }
    }

    fn end(&self, agent: u32, event: Event) {
        let known = lock(&self.table).agents.remove(&agent).is_some();
        if known {
            self.report.notify(agent, event);
        }
    }

    /// Ends a run: reports the event for the agents that are left.
    fn over(&self, run: u32, agents: Vec<u32>, event: &Event) {
        {
            let mut table = lock(&self.table);
            table.runs.remove(&run);
            table.waiting.remove(&run);
        }
        for agent in agents {
            self.end(agent, event.clone());
        }
        lock(&self.table).threads -= 1;
        self.fewer.notify_all();
    }

    fn are_over_before(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let some = |table: &mut Table| table.threads > 0;
        let waited = self.fewer.wait_timeout_while(lock(&self.table), left, some);
        waited.unwrap_or_else(PoisonError::into_inner).0.threads == 0
    }
}

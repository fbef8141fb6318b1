//! Examination of one host, from name lookup to starting workers.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_agent::inspect::HostFindings;
use gridrpc_client::{ServerAccess, dial_session, loss_from_the_wire};
use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_launch::Event;
use gridrpc_link::LinkError;
use gridrpc_transport::Transport;
use gridrpc_transport::listener::Admitted;
use gridrpc_wire::{Examine, HostLoss, Message, Serve, VERSION};

use super::checks;
use super::connection::{AgentConnection, LineError};
use super::measure::measure;
use super::names;
use super::report::{Finding, HostReport, Point, Start, Workers};
use super::routes::{AgentEvent, Routes};

/// How long a session may take to accept a connection.
const DIALLING: Duration = Duration::from_secs(2);
/// How long an agent may take to identify itself.
const JOINING: Duration = Duration::from_secs(15);
/// How long the inspection may take; Python alone may take 20 s.
const LOOKING: Duration = Duration::from_secs(60);
/// Lines kept of the output of an agent and its launcher.
const KEPT: usize = 12;
/// Arguments of an interpreter that starts workers, the same as a Python client's.
const PYTHON: [&str; 3] = ["-P", "-c", "from gridrpc._worker import main; main()"];

/// The examination of a host.
pub(super) struct HostExamination<'a> {
    pub(super) server: &'a HostGroup,
    pub(super) host: &'a str,
    /// Number of workers; 0: one per processor.
    pub(super) workers: u32,
    /// The Python to check; none: no Python workers are requested.
    pub(super) python: Option<&'a str>,
    pub(super) agent: u32,
    pub(super) news: Receiver<AgentEvent>,
    pub(super) routes: &'a Routes,
    /// Held while measuring: two measurements at once would share the bandwidth.
    pub(super) turn: &'a Mutex<()>,
    pub(super) state: &'a (dyn Fn(&str) + Sync),
}

impl HostExamination<'_> {
    /// Examines the host, as many steps as succeed.
    pub(super) fn run(self) -> HostReport {
        let mut report = HostReport {
            server: self.server.name.clone(),
            host: self.host.to_owned(),
            ..HostReport::default()
        };
        if let Err(complaint) = self.look(&mut report) {
            report.complaints.push(complaint);
        }
        self.routes.stop(self.agent, &self.server.name);
        report.complaints.splice(0..0, checks::check(&report, self.workers, self.python.is_some()));
        report
    }

    fn look(&self, report: &mut HostReport) -> Result<(), Finding> {
        match &self.server.launcher {
            LauncherKind::Session { name } => {
                (self.state)("dials its socket");
                report.complaints.push(look_at_session(name)?);
                return Ok(());
            }
            LauncherKind::Server { .. } => {
                (self.state)("looks up its name");
                report.name = names::look_up(&self.server.launcher, self.host)?;
                (self.state)("dials it");
                if let Some(server) = ServerAccess::of(self.server) {
                    report.complaints.push(look_at_server(&server)?);
                }
                return Ok(());
            }
            LauncherKind::Local { .. }
            | LauncherKind::Ssh { .. }
            | LauncherKind::Program { .. }
            | LauncherKind::Batch(_) => {}
        }
        (self.state)("looks up its name");
        report.name = names::look_up(&self.server.launcher, self.host)?;
        let (admitted, start) = self.start()?;
        report.start = Some(start);
        let mut line = AgentConnection::new(admitted.transport);
        let lost = |point| {
            move |error: LineError| {
                let advice =
                    "try again; if it stays, what runs there may end processes of this user";
                Finding::fault(point, error.to_string(), advice)
            }
        };
        self.join(&mut line)?;
        (self.state)("looks around there");
        let there = self.examine(&mut line).map_err(lost(Point::Agent))?;
        let clocks = there.clocks;
        if let Some(start) = &mut report.start {
            let is_ssh = matches!(self.server.launcher, LauncherKind::Ssh { .. });
            start.through_ssh = is_ssh && !self.routes.is_own(self.agent, &there.way.name);
        }
        report.there = Some(there);
        (self.state)("waits until others are measured");
        {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            (self.state)("is measured");
            report.way = Some(measure(&mut line, clocks).map_err(lost(Point::Route))?);
        }
        // The reason that they cannot run there has been reported.
        if report.there.as_ref().is_some_and(|there| there.directory_fault.is_none()) {
            (self.state)("starts workers");
            report.workers = Some(self.serve(&mut line, report)?);
        }
        // If this fails, the agent ends with its connection.
        let _ = line.send(&Message::Goodbye, VecDeque::new());
        Ok(())
    }

    /// Starts an agent and waits for its connection.
    fn start(&self) -> Result<(Admitted, Start), Finding> {
        let fault = |what: String, advice: &str| Finding::fault(Point::Agent, what, advice);
        let begin = Instant::now();
        self.routes.start(self.agent, self.server, self.host).map_err(|error| {
            let advice = "see `ports` in grid.toml, and how many files this process may have open";
            fault(format!("this machine has no port for its agents: {error}"), advice)
        })?;
        let until = begin + self.server.start_timeout;
        let mut start = Start { encrypted: self.server.encryption, ..Start::default() };
        let mut said: VecDeque<String> = VecDeque::new();
        let mut last = "is requested".to_owned();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(news) = self.news.recv_timeout(left) else {
                return Err(fault(
                    format!(
                        "its agent has not come within {} s; what was known last: it {last}{}",
                        self.server.start_timeout.as_secs_f64(),
                        lines(&said)
                    ),
                    "see what holds it up there, or give it longer by `start_timeout` in grid.toml",
                ));
            };
            match news {
                AgentEvent::Admitted(admitted) => {
                    start.seconds = begin.elapsed().as_secs_f64();
                    start.from = admitted.from.to_string();
                    return Ok((admitted, start));
                }
                AgentEvent::Launcher(Event::State(state)) => {
                    start.copied |= state == gridrpc_launch::COPIES;
                    (self.state)(&state);
                    last = state;
                }
                AgentEvent::Launcher(Event::EndsIn(_)) => {}
                AgentEvent::Launcher(Event::Said(line)) => {
                    if said.len() == KEPT {
                        said.pop_front();
                    }
                    said.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
                }
                AgentEvent::Launcher(Event::Failed(why)) => {
                    // gridrpc's own launchers include the remedy.
                    let advice = match self.server.launcher {
                        LauncherKind::Program { .. } => {
                            "see what the launcher has written; `command` in grid.toml names it, and \
                             docs/launchers.md is what it has to do"
                        }
                        _ => "",
                    };
                    return Err(fault(format!("{why}{}", lines(&said)), advice));
                }
                AgentEvent::Launcher(Event::Ended(how)) => {
                    // The output of an agent that cannot reach its client includes the remedy.
                    let advice = match said.is_empty() {
                        true => "see by hand that the program can run there: `gridrpc --version`",
                        false => "",
                    };
                    let what = "its agent ended before it had reached this machine";
                    return Err(fault(format!("{what}: {how}{}", lines(&said)), advice));
                }
            }
        }
    }

    fn join(&self, line: &mut AgentConnection) -> Result<(), Finding> {
        let (understood, program) = read_join(line).map_err(|error| {
            let advice =
                "see that `program` in grid.toml is this version of gridrpc, or leave it out";
            Finding::fault(Point::Agent, error.to_string(), advice)
        })?;
        if understood {
            return Ok(());
        }
        Err(Finding::fault(
            Point::Version,
            format!("gridrpc {program} there does not understand {}", env!("CARGO_PKG_VERSION")),
            "leave `program` in grid.toml out to have this machine's copied there, or install the same",
        ))
    }

    fn examine(&self, line: &mut AgentConnection) -> Result<HostFindings, LineError> {
        let environment = self.environment();
        let examine = Examine {
            python: self.python.unwrap_or_default(),
            directory: self.server.directory.as_deref().unwrap_or_default(),
            staging: self.server.staging.as_deref().unwrap_or_default(),
            environment: environment.iter().map(String::as_str).collect(),
        };
        line.send(&Message::Examine(examine), VecDeque::new())?;
        line.wait(LOOKING, |message| match message {
            Message::Findings { text } => Some(serde_json::from_str(text)),
            _ => None,
        })?
        .map_err(|error| {
            LinkError::Unexpected(format!("findings that cannot be read: {error}")).into()
        })
    }

    fn environment(&self) -> Vec<String> {
        let all = self.server.environment.iter();
        all.map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Starts workers as a grid would: Python workers if they are requested and Python works.
    fn serve(&self, line: &mut AgentConnection, report: &HostReport) -> Result<Workers, Finding> {
        let python = report.there.as_ref().and_then(|there| there.python.as_ref());
        let python = python.filter(|python| python.gridrpc.is_some() && python.fault.is_none());
        let environment = self.environment();
        let mut serve = Serve {
            version: VERSION,
            workers: self.workers,
            shared_threshold: 64 << 10,
            calls_per_process: u64::MAX,
            heartbeat: u64::try_from(self.server.heartbeat.as_nanos()).unwrap_or(u64::MAX),
            environment: environment.iter().map(String::as_str).collect(),
            staging: self.server.staging.as_deref().unwrap_or_default(),
            directory: self.server.directory.as_deref().unwrap_or_default(),
            ..Serve::default()
        };
        if let Some(python) = python {
            (serve.program, serve.arguments) = (&python.command, PYTHON.to_vec());
        }
        let begin = Instant::now();
        let mut workers = Workers { python: python.is_some(), ..Workers::default() };
        let timeout = self.server.start_timeout;
        let ended = line.send(&Message::Serve(serve), VecDeque::new()).and_then(|()| {
            line.wait(timeout, |message| match message {
                Message::Workers { ready, wanted } => {
                    (workers.ready, workers.wanted) = (*ready, *wanted);
                    (self.state)(&format!("has {ready} of {wanted} workers"));
                    (ready == wanted).then_some(Ok(()))
                }
                Message::NoWorkers(loss) => Some(Err(why(loss))),
                _ => None,
            })
        });
        workers.seconds = begin.elapsed().as_secs_f64();
        let Workers { ready, wanted, .. } = workers;
        let advice = "see what the worker has written, and the limits of that host";
        match ended {
            Ok(Ok(())) => Ok(workers),
            Ok(Err(why)) => Err(Finding::fault(
                Point::Workers,
                format!("workers cannot be started there: {why}"),
                advice,
            )),
            Err(LineError::Silent(_)) => Err(Finding::fault(
                Point::Workers,
                format!("{ready} of {wanted} workers have answered in {:.0?}", timeout),
                "give them longer by `start_timeout` in grid.toml, or ask for fewer by `workers`",
            )),
            Err(error) => Err(Finding::fault(Point::Workers, error.to_string(), advice)),
        }
    }
}

/// The output, one line below the other.
fn lines(said: &VecDeque<String>) -> String {
    said.iter().map(|line| format!("\n{line}")).collect()
}

fn why(loss: &HostLoss<'_>) -> String {
    let loss = loss_from_the_wire(loss);
    let stderr: Vec<&str> = loss.stderr.lines().collect();
    let last = stderr[stderr.len().saturating_sub(KEPT)..].iter();
    let last: String = last.map(|line| format!("\n{line}")).collect();
    format!("{loss}{last}")
}

/// Waits until an agent identifies itself. Returns whether it has this message format, and its version.
fn read_join(line: &mut AgentConnection) -> Result<(bool, String), LineError> {
    line.wait(JOINING, |message| match message {
        Message::Join(join) => {
            let understood = (join.min_version..=join.max_version).contains(&VERSION);
            Some((understood, join.program.to_owned()))
        }
        _ => None,
    })
}

/// Dials a session, and says where its workers are examined.
fn look_at_session(name: &str) -> Result<Finding, Finding> {
    let transport = dial_session(name, DIALLING)
        .map_err(|why| Finding::fault(Point::Agent, why, String::new()))?;
    let show = format!("`gridrpc session show {name}`");
    let restart =
        format!("end it by `gridrpc session stop {name}`, and start it with this version");
    look_at_daemon(transport, &format!("session `{name}`"), &show, restart)
}

/// Dials a server, and says where its workers are examined.
fn look_at_server(server: &ServerAccess) -> Result<Finding, Finding> {
    let dialled = ServerAccess { timeout: server.timeout.min(JOINING), ..server.clone() }.dial();
    let transport =
        dialled.map_err(|error| Finding::fault(Point::Agent, error.to_string(), String::new()))?;
    let update = "install the server's version, or ask its operators for an update".to_owned();
    let name = format!("server `{}`", server.address);
    look_at_daemon(transport, &name, "`gridrpc server status` there", update)
}

/// `name`: of the daemon. `show`: what examines it. `update`: what to do about another version.
fn look_at_daemon(
    transport: Arc<dyn Transport>,
    name: &str,
    show: &str,
    update: String,
) -> Result<Finding, Finding> {
    let mut line = AgentConnection::new(transport);
    let (understood, program) = read_join(&mut line).map_err(|error| {
        let what = match error {
            LineError::Silent(time) => {
                format!("{name} has not answered in {time:.0?}")
            }
            LineError::Gone => format!("{name} closes connections"),
            LineError::Link(error) => format!("{name}: {error}"),
        };
        Finding::fault(Point::Agent, what, format!("see {show}"))
    })?;
    // If this fails, the daemon sees the end of the connection.
    let _ = line.send(&Message::Goodbye, VecDeque::new());
    if !understood {
        return Err(Finding::fault(
            Point::Version,
            format!(
                "{name} runs gridrpc {program}, which does not understand {}",
                env!("CARGO_PKG_VERSION")
            ),
            update,
        ));
    }
    Ok(Finding::note(
        Point::Agent,
        format!("{name} is reached, and answers"),
        format!("{show} examines its process and workers"),
    ))
}

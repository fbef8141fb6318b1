//! Examination of hosts before a grid uses them: checks that agents start and connect, inspects each host,
//! measures the connection, and starts workers. Reports problems with remedies.

mod checks;
pub(crate) mod command;
mod connection;
mod host;
mod measure;
mod names;
mod progress;
mod report;
mod routes;
mod text;

use std::path::PathBuf;
use std::sync::{Mutex, mpsc};
use std::thread;

use gridrpc_agent::inspect::probe;
use gridrpc_config::HostGroup;

use host::HostExamination;
use routes::Routes;

pub use report::{Finding, FindingLevel, HostReport, Measured, Point, Workers};

/// The hosts to examine.
#[derive(Clone, Debug)]
pub struct ExaminedHosts {
    /// The host groups; their names are unique.
    pub servers: Vec<HostGroup>,
    /// This machine's `gridrpc`, which is copied to hosts.
    pub program: PathBuf,
    /// Whether to check Python workers.
    pub python: bool,
}

/// Receives progress. Several threads call it.
pub trait Watch: Sync {
    /// Reports the current step of a host, given by its number in the order of groups and hosts.
    fn state(&self, host: usize, label: &str, state: &str);
    /// Reports that a host is finished.
    fn done(&self, host: usize, report: &HostReport);
}

/// Number of hosts.
#[must_use]
pub fn count(wanted: &ExaminedHosts) -> usize {
    wanted.servers.iter().map(|server| server.hosts.len()).sum()
}

/// Stack size of a host's thread.
const STACK: usize = 512 << 10;

/// Examines all hosts in parallel. Reports follow the order of groups and hosts.
#[must_use]
pub fn examine(wanted: &ExaminedHosts, watch: &dyn Watch) -> Vec<HostReport> {
    let routes = Routes::new(wanted.program.clone());
    let turn = Mutex::new(());
    let hosts = wanted.servers.iter().flat_map(|server| {
        let all = server.hosts.iter();
        all.map(move |host| (server, host))
    });
    let here = python_here(&wanted.program);
    let own = wanted.python.then(|| probe(&here, "", &[]));
    let mut reports: Vec<HostReport> = thread::scope(|scope| {
        let started = hosts.enumerate().map(|(number, (server, host))| {
            let agent = number as u32 + 1;
            let (listener, news) = mpsc::channel();
            routes.listen(agent, listener);
            let (routes, turn, here) = (&routes, &turn, here.as_str());
            let look = move || {
                let named = HostReport {
                    server: server.name.clone(),
                    host: host.name.clone(),
                    ..HostReport::default()
                };
                let label = named.label();
                let is_here = server.launcher.shares_files();
                let python =
                    server.python.as_deref().unwrap_or(if is_here { here } else { "python3" });
                let course = HostExamination {
                    server,
                    host: &host.name,
                    workers: host.workers.unwrap_or(server.workers),
                    python: (wanted.python && server.trusted).then_some(python),
                    agent,
                    news,
                    routes,
                    turn,
                    state: &|state| watch.state(number, &label, state),
                };
                let report = course.run();
                watch.done(number, &report);
                report
            };
            let thread = thread::Builder::new().name("gridrpc-doctor".into()).stack_size(STACK);
            let failed = |error| {
                Box::new(HostReport {
                    server: server.name.clone(),
                    host: host.name.clone(),
                    complaints: vec![Finding::fault(
                        Point::Agent,
                        format!("this machine has no thread for it: {error}"),
                        "look at fewer hosts at once, by `--server`",
                    )],
                    ..HostReport::default()
                })
            };
            thread.spawn_scoped(scope, look).map_err(failed)
        });
        let started: Vec<_> = started.collect();
        let ended = started.into_iter().map(|one| match one {
            Ok(handle) => handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(report) => *report,
        });
        ended.collect()
    });
    routes.close();
    checks::compare(&mut reports, own.as_ref().and_then(|own| own.version.as_deref()));
    reports
}

/// The Python of agents on this machine: the one installed next to this program.
fn python_here(program: &std::path::Path) -> String {
    let beside = program.parent().map(|folder| folder.join("python3"));
    let beside = beside.filter(|python| python.exists());
    beside.map_or_else(|| "python3".to_owned(), |python| python.display().to_string())
}

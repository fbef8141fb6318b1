//! Looks at the hosts of servers before a grid uses them: whether agents can be started there and come
//! back, what is there, how fast the way is, and how long workers take. What is wrong is told with what to
//! do about it.

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

use host::Course;
use routes::Routes;

pub use report::{Complaint, HostReport, Measured, Point, Weight, Workers};

/// What is to be looked at.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The servers; their names differ.
    pub servers: Vec<HostGroup>,
    /// This machine's `gridrpc`, which hosts get a copy of.
    pub program: PathBuf,
    /// Whether Python workers are wanted.
    pub python: bool,
}

/// Hears how far it has come. Called by several threads.
pub trait Watch: Sync {
    /// What is done now about a host: its number, in the order of servers and hosts.
    fn state(&self, host: usize, label: &str, state: &str);
    /// A host is done.
    fn done(&self, host: usize, report: &HostReport);
}

/// How many hosts there are.
#[must_use]
pub fn count(wanted: &Wanted) -> usize {
    wanted.servers.iter().map(|server| server.hosts.len()).sum()
}

/// What the thread of a host needs.
const STACK: usize = 512 << 10;

/// Looks at all hosts, all at once. The reports are in the order of servers and hosts.
#[must_use]
pub fn examine(wanted: &Wanted, watch: &dyn Watch) -> Vec<HostReport> {
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
                let course = Course {
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
                    complaints: vec![Complaint::fault(
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

/// The Python of agents on this machine: the one that this program is installed beside.
fn python_here(program: &std::path::Path) -> String {
    let beside = program.parent().map(|folder| folder.join("python3"));
    let beside = beside.filter(|python| python.exists());
    beside.map_or_else(|| "python3".to_owned(), |python| python.display().to_string())
}

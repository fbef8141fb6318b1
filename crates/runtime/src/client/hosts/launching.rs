//! Getting agents: the door that they dial, the launchers that start them, and what those tell.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::agent::{SECRET, Ticket};
use crate::client::grid::Common;
use crate::client::seat::Wake as _;
use crate::launcher::{self, Event, Launcher, Report, Start};
use crate::servers::{LauncherKind, Server};
use crate::sys;
use crate::transport::door::{Admitted, Door};
use crate::transport::{Keys, addresses};

/// Something that other threads have to tell the reactor of an agent.
#[derive(Debug)]
pub(crate) enum News {
    Launcher(u32, Event),
    Admitted(Admitted),
}

/// What has been told and not been heard.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Vec<News>>);

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<News>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Vec<News> {
        std::mem::take(&mut *self.lock())
    }
}

/// A host, as it is to be started.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Which of the servers it belongs to.
    pub(super) server: usize,
    pub(super) name: String,
    /// How many workers; 0: as many as it has processors.
    pub(super) workers: u32,
}

/// The hosts of these servers, in their order.
pub(crate) fn plans(servers: &[Server]) -> Vec<Plan> {
    let plan = |(server, one): (usize, &Server)| {
        let workers = one.workers;
        let plan = move |host: &crate::servers::Host| Plan {
            server,
            name: host.name.clone(),
            workers: host.workers.unwrap_or(workers),
        };
        one.hosts.iter().map(plan).collect::<Vec<_>>()
    };
    servers.iter().enumerate().flat_map(plan).collect()
}

/// How many workers each host is to have, 0 where only it knows.
pub(crate) fn expected(servers: &[Server]) -> Vec<u32> {
    plans(servers).into_iter().map(|plan| plan.workers).collect()
}

/// What a door is for: whether connections are encrypted, the ports it may have, and whether agents come from
/// this machine only.
type Port = (bool, Option<(u16, u16)>, bool);

/// Asks for agents.
#[derive(Debug)]
pub(super) struct Launching {
    servers: Vec<Server>,
    program: PathBuf,
    inbox: Arc<Inbox>,
    tell: Report,
    wake: Arc<Common>,
    /// Doors by whether connections are encrypted, opened when the first agent is asked for.
    doors: HashMap<Port, (Door, Option<Arc<Keys>>)>,
    launchers: Vec<Option<Box<dyn Launcher>>>,
}

impl Launching {
    pub(super) fn new(
        servers: Vec<Server>,
        program: PathBuf,
        inbox: Arc<Inbox>,
        wake: Arc<Common>,
    ) -> Launching {
        let (told, waker) = (Arc::clone(&inbox), Arc::clone(&wake));
        let tell = Report(Arc::new(move |agent, event| {
            told.lock().push(News::Launcher(agent, event));
            waker.wake();
        }));
        let launchers = servers.iter().map(|_| None).collect();
        let doors = HashMap::new();
        Launching { servers, program, inbox, tell, wake, doors, launchers }
    }

    pub(super) fn server(&self, plan: &Plan) -> &Server {
        &self.servers[plan.server]
    }

    /// Asks for these agents, all of a server in one request. Returns those that cannot even be asked for.
    pub(super) fn start(&mut self, wanted: &[(u32, Plan)]) -> Vec<(u32, io::Error)> {
        let mut failed = Vec::new();
        let mut starts: HashMap<usize, Vec<Start>> = HashMap::new();
        for (agent, plan) in wanted {
            match self.ticket(*agent, plan.server) {
                Ok(ticket) => {
                    let start = Start { agent: *agent, host: plan.name.clone(), ticket };
                    starts.entry(plan.server).or_default().push(start);
                }
                Err(error) => failed.push((*agent, error)),
            }
        }
        for (server, starts) in starts {
            let launcher = &mut self.launchers[server];
            launcher
                .get_or_insert_with(|| {
                    launcher::open(&self.servers[server], &self.program, self.tell.clone())
                })
                .start(starts);
        }
        failed
    }

    fn ticket(&mut self, agent: u32, server: usize) -> io::Result<Ticket> {
        let server = &self.servers[server];
        let here = is_here(server);
        let key = (server.encryption, server.ports, here);
        if !self.doors.contains_key(&key) {
            let keys = match server.encryption {
                true => Some(Arc::new(Keys::generate().map_err(io::Error::other)?)),
                false => None,
            };
            let (inbox, wake) = (Arc::clone(&self.inbox), Arc::clone(&self.wake));
            let admit = move |admitted| {
                inbox.lock().push(News::Admitted(admitted));
                wake.wake();
            };
            let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
            let at: &[IpAddr] = if here { &loopback } else { &[] };
            let door = Door::open(at, server.ports, keys.clone(), admit)?;
            self.doors.insert(key, (door, keys));
        }
        let Some((door, keys)) = self.doors.get(&key) else {
            return Err(io::ErrorKind::Other.into());
        };
        let secret = sys::random::<SECRET>()?;
        door.invite(agent, &secret);
        let port = door.port();
        let addresses = names(server).into_iter();
        let addresses = addresses.map(|host| addresses::with_port(&host, port));
        let addresses = addresses.collect();
        Ok(Ticket { addresses, secret, keys: keys.as_ref().map(|keys| keys.ticket()) })
    }

    /// Ends an agent, wherever it is, and lets it in no more.
    pub(super) fn stop(&mut self, agent: u32, plan: &Plan) {
        self.doors.values().for_each(|(door, _)| door.revoke(agent));
        if let Some(launcher) = &mut self.launchers[plan.server] {
            launcher.stop(agent);
        }
    }

    /// Ends all agents, and waits until they are gone.
    pub(super) fn close(&mut self) {
        self.doors.clear();
        let launchers = self.launchers.iter_mut().filter_map(Option::take);
        std::thread::scope(|scope| {
            for mut launcher in launchers {
                scope.spawn(move || launcher.close());
            }
        });
    }

    pub(super) fn start_timeout(&self, plan: &Plan) -> Duration {
        self.server(plan).start_timeout
    }
}

/// Whether agents dial from where this process is.
fn is_here(server: &Server) -> bool {
    server.addresses.is_empty()
        && matches!(&server.launcher, LauncherKind::Local { prefix } if prefix.is_empty())
}

/// Names and addresses by which agents may reach this machine, the most likely first.
fn names(server: &Server) -> Vec<String> {
    if !server.addresses.is_empty() {
        return server.addresses.clone();
    }
    if is_here(server) {
        return vec!["127.0.0.1".to_owned()];
    }
    addresses::of_this_host()
}

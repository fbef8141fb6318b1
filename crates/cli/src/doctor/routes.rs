//! Launchers and listeners, and the dispatch of agents' events to the threads that examine their hosts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

use gridrpc_client::Listeners;
use gridrpc_config::HostGroup;
use gridrpc_launch::{Event, Launcher, Report, Start};
use gridrpc_sys::lock;
use gridrpc_transport::listener::Admitted;

/// An event of an agent.
pub(super) enum AgentEvent {
    /// From its launcher.
    Launcher(Event),
    /// It has connected.
    Admitted(Admitted),
}

/// Receivers of each agent's events.
type EventReceivers = Mutex<HashMap<u32, Sender<AgentEvent>>>;

/// The listeners and the launchers.
pub(super) struct Routes {
    readers: Arc<EventReceivers>,
    listeners: Mutex<Listeners>,
    launchers: Mutex<HashMap<String, Box<dyn Launcher>>>,
    /// The addresses in each agent's ticket.
    addresses: Mutex<HashMap<u32, Vec<String>>>,
    program: PathBuf,
}

fn forward(readers: &EventReceivers, agent: u32, news: AgentEvent) {
    if let Some(listener) = lock(readers).get(&agent) {
        // A receiver that has finished is ignored.
        let _ = listener.send(news);
    }
}

impl Routes {
    /// `program`: this machine's `gridrpc`, which is copied to hosts.
    pub(super) fn new(program: PathBuf) -> Routes {
        let readers = Arc::<EventReceivers>::default();
        let admits = Arc::clone(&readers);
        let listeners = Listeners::new(move |admitted: Admitted| {
            forward(&admits, admitted.agent, AgentEvent::Admitted(admitted));
        });
        Routes {
            readers,
            listeners: Mutex::new(listeners),
            launchers: Mutex::default(),
            addresses: Mutex::default(),
            program,
        }
    }

    /// Registers the receiver of an agent's events.
    pub(super) fn listen(&self, agent: u32, listener: Sender<AgentEvent>) {
        lock(&self.readers).insert(agent, listener);
    }

    /// Starts an agent of this group.
    pub(super) fn start(&self, agent: u32, server: &HostGroup, host: &str) -> io::Result<()> {
        let ticket = lock(&self.listeners).ticket(agent, server)?;
        lock(&self.addresses).insert(agent, ticket.addresses.clone());
        let mut launchers = lock(&self.launchers);
        let launcher = match launchers.entry(server.name.clone()) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(place) => {
                let readers = Arc::clone(&self.readers);
                let report = Report(Arc::new(move |agent, event| {
                    forward(&readers, agent, AgentEvent::Launcher(event));
                }));
                let launcher = gridrpc_launch::open(server, &self.program, report);
                place.insert(launcher.ok_or(io::ErrorKind::Unsupported)?)
            }
        };
        launcher.start(vec![Start { agent, host: host.to_owned(), ticket }]);
        Ok(())
    }

    /// Whether this process put the address into the agent's ticket; otherwise its launcher added it.
    pub(super) fn is_own(&self, agent: u32, address: &str) -> bool {
        // A launcher that knows how its host sees this machine adds that address with the listener's port.
        let port = |address: &str| address.rsplit_once(':').map(|(_, port)| port.to_owned());
        let addresses = lock(&self.addresses);
        let own = addresses.get(&agent).and_then(|all| all.first()).and_then(|one| port(one));
        own.is_some() && own == port(address)
    }

    /// Stops an agent in any state.
    pub(super) fn stop(&self, agent: u32, server: &str) {
        lock(&self.listeners).revoke(agent);
        if let Some(launcher) = lock(&self.launchers).get_mut(server) {
            launcher.stop(agent);
        }
    }

    /// Stops all agents and waits for them.
    pub(super) fn close(&self) {
        lock(&self.listeners).close();
        let launchers = std::mem::take(&mut *lock(&self.launchers));
        gridrpc_launch::close_all(launchers.into_values().collect());
    }
}

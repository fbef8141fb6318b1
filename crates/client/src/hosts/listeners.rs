//! The listeners of a client, and the tickets that admit agents.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_transport::listener::{Admission, Admitted, Listener};
use gridrpc_transport::{Keys, SECRET, Ticket, addresses};

/// Key of a listener: whether connections are encrypted, its port range, and whether agents come from this machine
/// only.
type Port = (bool, Option<(u16, u16)>, bool);

/// All listeners. Each one opens when the first agent that needs it is requested.
pub struct Listeners {
    admit: Arc<dyn Fn(Admitted) + Send + Sync>,
    open: HashMap<Port, (Listener, Option<Arc<Keys>>)>,
}

impl Listeners {
    /// `admit` receives the agents that have connected. A listener's thread calls it, so it must not block.
    pub fn new(admit: impl Fn(Admitted) + Send + Sync + 'static) -> Listeners {
        Listeners { admit: Arc::new(admit), open: HashMap::new() }
    }

    /// Makes a ticket for an agent of this group, and opens a listener if there is none for it.
    pub fn ticket(&mut self, agent: u32, group: &HostGroup) -> io::Result<Ticket> {
        let here = is_here(group);
        let port = (group.encryption, group.ports, here);
        if !self.open.contains_key(&port) {
            let keys = match group.encryption {
                true => Some(Arc::new(Keys::generate().map_err(io::Error::other)?)),
                false => None,
            };
            let admit = Arc::clone(&self.admit);
            let admit = move |admitted| admit(admitted);
            let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
            let at: &[IpAddr] = if here { &loopback } else { &[] };
            let admission = Admission::Secret { keys: keys.clone(), early: 0 };
            let listener = Listener::open(at, group.ports, admission, admit)?;
            self.open.insert(port, (listener, keys));
        }
        let Some((listener, keys)) = self.open.get(&port) else {
            return Err(io::ErrorKind::Other.into());
        };
        let secret = gridrpc_sys::random::<SECRET>()?;
        listener.invite(agent, &secret);
        let port = listener.port();
        let names = names(group).into_iter();
        let addresses = names.map(|host| addresses::with_port(&host, port)).collect();
        Ok(Ticket { addresses, secret, keys: keys.as_ref().map(|keys| keys.ticket()) })
    }

    /// Revokes the ticket of an agent that has not connected.
    pub fn revoke(&self, agent: u32) {
        self.open.values().for_each(|(listener, _)| listener.revoke(agent));
    }

    /// Closes all listeners.
    pub fn close(&mut self) {
        self.open.clear();
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doors").field("open", &self.open).finish_non_exhaustive()
    }
}

/// Whether agents dial from this machine.
fn is_here(group: &HostGroup) -> bool {
    group.addresses.is_empty()
        && matches!(&group.launcher, LauncherKind::Local { prefix } if prefix.is_empty())
}

/// Names and addresses of this machine for agents, the most likely first.
fn names(group: &HostGroup) -> Vec<String> {
    if !group.addresses.is_empty() {
        return group.addresses.clone();
    }
    if is_here(group) {
        return vec!["127.0.0.1".to_owned()];
    }
    addresses::of_this_host()
}

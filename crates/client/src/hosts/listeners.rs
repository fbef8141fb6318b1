//! The listeners of a client, and the tickets with which agents come in by them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use gridrpc_config::{HostGroup, LauncherKind};
use gridrpc_transport::listener::{Admitted, Listener};
use gridrpc_transport::{Keys, SECRET, Ticket, addresses};

/// What a listener is for: whether connections are encrypted, the ports it may have, and whether agents come from
/// this machine only.
type Port = (bool, Option<(u16, u16)>, bool);

/// All listeners. Each is opened when the first agent is asked for that needs it.
pub struct Listeners {
    admit: Arc<dyn Fn(Admitted) + Send + Sync>,
    open: HashMap<Port, (Listener, Option<Arc<Keys>>)>,
}

impl Listeners {
    /// `admit` hears of agents that have come in. It is called by a listener's thread and must not wait.
    pub fn new(admit: impl Fn(Admitted) + Send + Sync + 'static) -> Listeners {
        Listeners { admit: Arc::new(admit), open: HashMap::new() }
    }

    /// Makes a ticket for an agent of this group, and opens a listener for it if there is none.
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
            let listener = Listener::open(at, group.ports, keys.clone(), 0, admit)?;
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

    /// Lets an agent in no more that has not come in.
    pub fn revoke(&self, agent: u32) {
        self.open.values().for_each(|(listener, _)| listener.revoke(agent));
    }

    /// Closes all.
    pub fn close(&mut self) {
        self.open.clear();
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Doors").field("open", &self.open).finish_non_exhaustive()
    }
}

/// Whether agents dial from where this process is.
fn is_here(group: &HostGroup) -> bool {
    group.addresses.is_empty()
        && matches!(&group.launcher, LauncherKind::Local { prefix } if prefix.is_empty())
}

/// Names and addresses by which agents may reach this machine, the most likely first.
fn names(group: &HostGroup) -> Vec<String> {
    if !group.addresses.is_empty() {
        return group.addresses.clone();
    }
    if is_here(group) {
        return vec!["127.0.0.1".to_owned()];
    }
    addresses::of_this_host()
}

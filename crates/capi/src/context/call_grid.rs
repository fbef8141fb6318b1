//! A grid that calls are made on, and what waits for them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_client::{Config, Grid, GridError, HostGroups, Launch, RemoteWorkers, Waiter};
use gridrpc_config::{HostGroup, LauncherKind, ServerAddress};
use gridrpc_core::{GroupId, Settings as Bounds};

/// A grid: the one of the configuration, or one of a server that a program names at run time.
#[derive(Debug)]
pub struct CallGrid {
    /// The grid.
    pub grid: Arc<Grid>,
    /// Waits for its calls.
    pub waiter: Waiter,
    /// Servers with a worker that has answered; `None`: any server.
    ready: Mutex<HashSet<Option<GroupId>>>,
}

impl CallGrid {
    /// Opens a grid.
    pub fn open(config: Config) -> Result<CallGrid, GridError> {
        let grid = Grid::open(config)?;
        Ok(CallGrid { waiter: grid.waiter(), grid: Arc::new(grid), ready: Mutex::default() })
    }

    /// Opens a grid on a server.
    pub fn of_server(group: HostGroup) -> Result<CallGrid, GridError> {
        let workers = RemoteWorkers::default();
        let groups = HostGroups { list: vec![group], program: "gridrpc".into(), workers };
        let bounds = Bounds { workers: 0, ..Bounds::default() };
        CallGrid::open(Config { groups: Some(groups), ..Config::here(Launch::default(), bounds) })
    }

    /// Whether a worker of a server, or of any, has answered.
    pub fn is_ready(&self, server: Option<GroupId>) -> bool {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).contains(&server)
    }

    /// Whether the connection to a server that has answered is gone.
    pub fn is_lost(&self) -> bool {
        self.is_ready(None) && self.grid.hosts().iter().any(|host| host.state != "ready")
    }

    /// Records that a worker has answered.
    pub fn has_answered(&self, server: Option<GroupId>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(server);
    }
}

/// The server that a program names by URL, by path, or by host and port.
pub fn server_named(name: &str) -> Option<HostGroup> {
    let has_port = || !name.ends_with(']') && name.contains(':');
    let is_url = name.starts_with("gridrpc://") || name.starts_with("gridrpc+unix://");
    if !is_url && !name.starts_with('/') && !has_port() {
        return None;
    }
    let url = if is_url { name.to_owned() } else { ServerAddress::parse(name)?.url() };
    let group = gridrpc_config::from_url(&url).ok()?;
    matches!(group.launcher, LauncherKind::Server { .. }).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_url_path_or_port() {
        let name = |text| server_named(text).map(|group| group.name);
        assert_eq!(name("gridrpc://lab").as_deref(), Some("lab"));
        assert_eq!(name("gridrpc://lab:80").as_deref(), Some("lab:80"));
        assert_eq!(name("lab:7711").as_deref(), Some("lab"));
        assert_eq!(name("/run/server.sock").as_deref(), Some("/run/server.sock"));
        assert_eq!(name("gridrpc+unix:///run/server.sock").as_deref(), Some("/run/server.sock"));
        for other in ["lab", "lab:80/jobmanager-pbs", "ssh://lab", "gridrpc://", "lab:x", ""] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}

//! The grids of a program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gridrpc_lookup::Directories;

use super::call_grid::{CallGrid, server_named};
use crate::call::outcome;
use crate::failure::Failure;

/// The grid of the configuration, and those of servers that the program names at run time.
#[derive(Debug)]
pub struct Grids {
    /// The grid of the configuration.
    pub main: Arc<CallGrid>,
    /// By name of the server.
    servers: Mutex<HashMap<String, Arc<CallGrid>>>,
    /// By their URLs.
    directories: Mutex<HashMap<String, Arc<Directories>>>,
}

impl Grids {
    /// The grid of the configuration alone.
    pub fn new(main: CallGrid) -> Grids {
        Grids { main: Arc::new(main), servers: Mutex::default(), directories: Mutex::default() }
    }

    /// The grid of a server that is not part of the main one; none: `name` is no address of a server. The grid is opened
    /// when the server is named for the first time.
    pub fn of_server(&self, name: &str) -> Result<Option<Arc<CallGrid>>, Failure> {
        let Some(group) = server_named(name) else { return Ok(None) };
        let key = group.name.clone();
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = servers.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let opened = CallGrid::of_server(group).map_err(|error| outcome::refused(name, &error))?;
        let opened = Arc::new(opened);
        servers.insert(key, Arc::clone(&opened));
        Ok(Some(opened))
    }

    /// Forgets a connection, so that the next call at this server makes a new one.
    pub fn forget(&self, name: &str) {
        if let Some(group) = server_named(name) {
            let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
            let forgotten = servers.remove(&group.name);
            drop(servers);
            // It is closed with the last call that uses it.
            drop(forgotten);
        }
    }

    /// The directories at these URLs.
    pub fn directories(&self, urls: &str) -> Result<Arc<Directories>, Failure> {
        let mut known = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(urls) {
            return Ok(Arc::clone(known));
        }
        let opened = Directories::open(urls)?;
        known.insert(urls.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    /// Ends all workers of this program.
    pub fn close(&self) {
        let servers =
            std::mem::take(&mut *self.servers.lock().unwrap_or_else(PoisonError::into_inner));
        for server in servers.values() {
            server.grid.close();
        }
        self.main.grid.close();
    }
}

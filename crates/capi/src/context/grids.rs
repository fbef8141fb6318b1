//! The grids of a program.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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
}

impl Grids {
    /// The grid of the configuration alone.
    pub fn new(main: CallGrid) -> Grids {
        Grids { main: Arc::new(main), servers: Mutex::default() }
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

//! Catalogue of a server: the functions that it offers and their interfaces, which clients request at run time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridrpc_config::{HostGroup, ServerAddress};
use gridrpc_typed::{ModuleError, parse_interface};
use gridrpc_wire::RemoteError;
use serde::Deserialize;
use thiserror::Error;

use crate::daemon_connection::{DaemonConnection, DaemonRequestError};
use crate::server_access::{ServerAccess, ServerUnreachable};
use crate::server_module::{CallLimits, ServerModule};

/// Longest answer of a server, bytes.
const MAX_ANSWER: u64 = 64 << 20;
/// How long a server may take to accept a connection and to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a list of functions is used before it is requested again.
const LIST_VALID: Duration = Duration::from_secs(10);

/// Reason why a server's offer is unknown.
#[derive(Debug, Error)]
pub enum ServerCatalogueError {
    /// It cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] ServerUnreachable),
    /// It has not answered.
    #[error("server `{server}` has not said what it offers: {error}")]
    Unanswered {
        /// Its name.
        server: String,
        /// Why not.
        error: DaemonRequestError,
    },
    /// Its answer is not an interface.
    #[error("server `{server}` has sent an interface that cannot be used: {error}")]
    Interface {
        /// Its name.
        server: String,
        /// The problem.
        error: ModuleError,
    },
    /// Its answer does not match the request.
    #[error("server `{server}` has sent an answer that makes no sense: {why}")]
    Malformed {
        /// Its name.
        server: String,
        /// The problem.
        why: String,
    },
}

/// A function in the catalogue of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerFunction {
    /// `module/function`, or `module/Class.method`.
    pub name: String,
    /// Its parameters, for people; none: it has no interface, as functions in Python.
    #[serde(default)]
    pub signature: Option<String>,
    /// What it does.
    #[serde(default)]
    pub description: Option<String>,
}

/// The catalogue of a server.
#[derive(Debug)]
pub struct ServerCatalogue {
    /// The name of the server in its grid.
    pub name: String,
    pub(crate) access: ServerAccess,
    /// By name of the module.
    modules: Mutex<HashMap<String, Arc<ServerModule>>>,
    list: Mutex<Option<(Instant, Arc<[ServerFunction]>)>>,
}

impl ServerCatalogue {
    /// The catalogue of a server with this name.
    #[must_use]
    pub fn new(name: &str, access: ServerAccess) -> ServerCatalogue {
        let (modules, list) = (Mutex::default(), Mutex::default());
        ServerCatalogue { name: name.to_owned(), access, modules, list }
    }

    /// The catalogues of the servers among these groups.
    pub(crate) fn among(groups: &[HostGroup]) -> Vec<Arc<ServerCatalogue>> {
        let server = |group: &HostGroup| {
            let access = ServerAccess::of(group)?;
            Some(Arc::new(ServerCatalogue::new(&group.name, access)))
        };
        groups.iter().filter_map(server).collect()
    }

    /// Whether a program may mean this server by `name`: the name in the grid, the address or the URL.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let address = &self.access.address;
        self.name == name
            || address.url() == name
            || ServerAddress::parse(name).is_some_and(|named| named == *address)
    }

    /// The module of `name`, which is `module`, `module/function` or `module/Class.method`, if the server offers that.
    /// It is requested once, and again when the server has changed it.
    ///
    /// # Errors
    /// When the server cannot be reached, or answers nothing of use.
    pub fn module(&self, name: &str) -> Result<Option<Arc<ServerModule>>, ServerCatalogueError> {
        let (module, member) = name.split_once('/').unwrap_or((name, ""));
        if let Some(known) = self.known(module, member) {
            return Ok(Some(known));
        }
        let ask = |name: &str| self.request("interface", vec![name.as_bytes().to_vec()]);
        if let Some(sections) = ask(name)? {
            return self.keep(module, &sections).map(Some);
        }
        // Servers know functions and methods, and this may be a class.
        if member.is_empty() || member.contains('.') {
            return Ok(None);
        }
        let Some(sections) = ask(module)? else { return Ok(None) };
        self.keep(module, &sections)?;
        Ok(self.known(module, member))
    }

    /// The limits of calls of a module, as the server has them now; none: it does not offer the module any more.
    ///
    /// # Errors
    /// When the server cannot be reached, or answers nothing of use.
    pub fn limits_now(
        &self,
        module: &str,
    ) -> Result<Option<Arc<CallLimits>>, ServerCatalogueError> {
        let sections = self.request("interface", vec![module.as_bytes().to_vec()])?;
        let cached = sections.map(|sections| self.keep(module, &sections)).transpose()?;
        Ok(cached.map(|module| module.limits()))
    }

    /// Keeps the interface of a module. If it is that from before, calls continue to refer to it.
    fn keep(
        &self,
        module: &str,
        sections: &[Vec<u8>],
    ) -> Result<Arc<ServerModule>, ServerCatalogueError> {
        let offered = Arc::new(self.offered(module, sections)?);
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = modules.get(module).filter(|old| !old.has_changed()) {
            if old.hash == offered.hash {
                old.set_limits(offered.limits());
                return Ok(Arc::clone(old));
            }
            old.change();
        }
        modules.insert(module.to_owned(), Arc::clone(&offered));
        Ok(offered)
    }

    /// A module that has been requested before, and has this member.
    fn known(&self, module: &str, member: &str) -> Option<Arc<ServerModule>> {
        let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let known = modules.get(module).filter(|known| !known.has_changed())?;
        let interface = &known.interface;
        let has_member = match member.split_once('.') {
            None => {
                member.is_empty()
                    || interface.function(member).is_some()
                    || interface.class(member).is_some()
            }
            Some((class, method)) => interface
                .class(class)
                .is_some_and(|class| class.methods.iter().any(|known| known.name == method)),
        };
        has_member.then(|| Arc::clone(known))
    }

    fn offered(
        &self,
        module: &str,
        sections: &[Vec<u8>],
    ) -> Result<ServerModule, ServerCatalogueError> {
        let [text, hash, limits] = sections else {
            return Err(self.malformed(format!("it has {} sections", sections.len())));
        };
        let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| self.malformed("no UTF-8"));
        let (text, hash) = (utf8(text)?, utf8(hash)?);
        let is_hash =
            (1..=128).contains(&hash.len()) && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_hash {
            return Err(self.malformed("its hash is not hexadecimal"));
        }
        let source = format!("{}/{module}", self.access.address.url());
        let interface = parse_interface(text, Path::new(&source)).map_err(|error| {
            ServerCatalogueError::Interface { server: self.name.clone(), error }
        })?;
        if interface.name != module {
            let why = format!("module `{}` instead of `{module}`", interface.name);
            return Err(self.malformed(why));
        }
        let limits = serde_json::from_slice(limits)
            .map_err(|error| self.malformed(format!("its limits: {error}")))?;
        Ok(ServerModule::new(self.name.clone(), interface, hash.to_owned(), limits))
    }

    /// All functions that the server offers to this client.
    ///
    /// # Errors
    /// When the server cannot be reached, or answers nothing of use.
    pub fn list(&self) -> Result<Arc<[ServerFunction]>, ServerCatalogueError> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, known)) = &*list
            && at.elapsed() < LIST_VALID
        {
            return Ok(Arc::clone(known));
        }
        let sections = self.request("list", Vec::new())?.unwrap_or_default();
        let [text] = &sections[..] else {
            return Err(self.malformed(format!("it has {} sections", sections.len())));
        };
        let functions: Vec<ServerFunction> =
            serde_json::from_slice(text).map_err(|error| self.malformed(error.to_string()))?;
        let functions: Arc<[ServerFunction]> = functions.into();
        *list = Some((Instant::now(), Arc::clone(&functions)));
        Ok(functions)
    }

    /// The state of the server, as JSON. Only some users see all of it.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn status(&self) -> Result<serde_json::Value, ServerCatalogueError> {
        let sections = self.request("status", Vec::new())?.unwrap_or_default();
        let text = sections.first().map_or(&[][..], Vec::as_slice);
        serde_json::from_slice(text).map_err(|error| self.malformed(error.to_string()))
    }

    /// Makes a request. `None`: the server has no such function.
    fn request(
        &self,
        name: &str,
        sections: Vec<Vec<u8>>,
    ) -> Result<Option<Vec<Vec<u8>>>, ServerCatalogueError> {
        let timeout = self.access.timeout.min(PATIENCE);
        let socket = ServerAccess { timeout, ..self.access.clone() }.dial()?;
        let until = Some(Instant::now() + PATIENCE);
        let never = &mut || false;
        let answered = DaemonConnection::open(socket, MAX_ANSWER, until, never)
            .and_then(|mut connection| connection.request(name, sections, until, never));
        match answered {
            Ok(answer) => Ok(Some(answer.sections)),
            Err(DaemonRequestError::Failed(failed))
                if RemoteError::from_name(&failed.error) == Some(RemoteError::FunctionNotFound) =>
            {
                Ok(None)
            }
            Err(error) => {
                Err(ServerCatalogueError::Unanswered { server: self.name.clone(), error })
            }
        }
    }

    fn malformed(&self, why: impl Into<String>) -> ServerCatalogueError {
        ServerCatalogueError::Malformed { server: self.name.clone(), why: why.into() }
    }
}

//! Client configuration: options of the program, servers, functions and modules.

use std::path::PathBuf;
use std::time::Duration;

use super::error::Warning;
use super::location::{Location, Machine, host_of, locate};
use super::server::{Server, ServerSettings};
use super::signals;

/// Default number of ended sessions to keep.
const SAVED_SESSIONS: usize = 256;

/// The location of a function's module, and the time limit of the function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    /// The server's name in the section.
    pub hostname: String,
    /// The function or class, `module/name`.
    pub funcname: String,
    /// The module, or one of the names that `ng_gen` gives it.
    pub path: PathBuf,
    /// Time limit of a session; `None`: unlimited.
    pub session_timeout: Option<Duration>,
}

/// Files that list modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InformationSource {
    /// Its name on servers.
    pub tag: Option<String>,
    /// The files; at least one.
    pub files: Vec<PathBuf>,
}

/// A configuration, with defaults for values that are not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Log level, from 0 (nothing) to 5 (everything).
    pub log_level: u8,
    /// The log file; `%t`, `%h` and `%p` expand to time, host and process; `None`: standard error.
    pub log_file: Option<PathBuf>,
    /// The folder for argument files.
    pub tmp_dir: PathBuf,
    /// Whether numbers are passed by address.
    pub fortran_compatible: bool,
    /// How many ended sessions are kept; `None`: all.
    pub save_session_info: Option<usize>,
    /// Signals that cancel all sessions and end the program.
    pub handling_signals: Vec<i32>,
    /// The client's name for servers on other machines.
    pub hostname: Option<String>,
    /// The client's port for them; `None`: any.
    pub listen_port: Option<u16>,
    /// Function sections, in the order of the file.
    pub function_infos: Vec<FunctionInfo>,
    /// Server sections, in the order of the file.
    pub servers: Vec<Server>,
    /// Settings of servers that are not listed.
    pub server_default: ServerSettings,
    /// Sources of information about modules, in the order of the file.
    pub information_sources: Vec<InformationSource>,
    /// Settings without effect.
    pub warnings: Vec<Warning>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        ClientConfig {
            log_level: 2,
            log_file: None,
            tmp_dir: "/tmp".into(),
            fortran_compatible: false,
            save_session_info: Some(SAVED_SESSIONS),
            handling_signals: signals::BY_DEFAULT.into(),
            hostname: None,
            listen_port: None,
            function_infos: Vec::new(),
            servers: Vec::new(),
            server_default: ServerSettings::default(),
            information_sources: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

impl ClientConfig {
    /// Looks up a server: the one with this tag, or else the first with this host name. `None`: it is not
    /// listed, and [`ClientConfig::server_default`] applies.
    #[must_use]
    pub fn server(&self, name: &str) -> Option<&Server> {
        let host = host_of(name);
        let tagged =
            |name: &str| self.servers.iter().find(|server| server.tag.as_deref() == Some(name));
        tagged(name).or_else(|| tagged(host)).or_else(|| {
            self.servers.iter().find(|server| {
                server.hostnames.iter().any(|known| host_of(known).eq_ignore_ascii_case(host))
            })
        })
    }

    /// The host name for a server's tag, or the name itself without port and job manager.
    #[must_use]
    pub fn hostname<'a>(&'a self, name: &'a str) -> &'a str {
        let host = host_of(name);
        let tagged = self
            .servers
            .iter()
            .find(|server| server.tag.as_deref().is_some_and(|tag| tag == name || tag == host));
        tagged.and_then(|server| server.hostnames.first()).map_or(host, |name| host_of(name))
    }

    /// Whether the named server is this machine.
    pub fn location(&self, name: &str, machine: &dyn Machine) -> Location {
        locate(self.hostname(name), machine)
    }

    /// The first server that is this machine.
    #[must_use]
    pub fn here(&self, machine: &dyn Machine) -> Option<&Server> {
        let is_here = |name: &String| locate(host_of(name), machine) == Location::Here;
        self.servers.iter().find(|server| server.hostnames.iter().any(is_here))
    }

    /// The server for programs that name none: the first.
    #[must_use]
    pub fn default_server(&self) -> Option<&Server> {
        self.servers.first()
    }

    /// The section about a function on a server, by the server's tag or host name.
    #[must_use]
    pub fn function_info(&self, server: &str, function: &str) -> Option<&FunctionInfo> {
        let hostname = self.hostname(server);
        self.function_infos.iter().find(|info| {
            info.funcname == function
                && (info.hostname == server
                    || self.hostname(&info.hostname).eq_ignore_ascii_case(hostname))
        })
    }

    /// The log file with time, host and process expanded.
    #[must_use]
    pub fn log_path(&self, time: &str, host: &str, process: u32) -> Option<PathBuf> {
        let pattern = self.log_file.as_ref()?.to_str()?;
        let mut path = String::with_capacity(pattern.len());
        let mut parts = pattern.split('%');
        path.push_str(parts.next().unwrap_or_default());
        while let Some(part) = parts.next() {
            let mut rest = part.chars();
            match rest.next() {
                Some('t') => path.push_str(time),
                Some('h') => path.push_str(host),
                Some('p') => path.push_str(&process.to_string()),
                // `%%`
                None => {
                    path.push('%');
                    path.push_str(parts.next().unwrap_or_default());
                    continue;
                }
                Some(other) => path.extend(['%', other]),
            }
            path.push_str(rest.as_str());
        }
        Some(path.into())
    }
}

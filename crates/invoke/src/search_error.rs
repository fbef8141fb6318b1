//! Why a function or module was not found.

use std::path::PathBuf;

use gridrpc_client::{GridError, ServerCatalogueError};
use gridrpc_typed::ModuleError;
use thiserror::Error;

/// Reason why a function or module was not found.
#[derive(Debug, Error)]
pub enum SearchError {
    /// The name is not valid.
    #[error("`{0}` is not a function's name: write `module/function`")]
    Name(String),
    /// There is no such module.
    #[error("there is no module `{module}`{}", places(looked))]
    NoModule {
        /// The module.
        module: String,
        /// Places that were searched.
        looked: Vec<PathBuf>,
    },
    /// The module has no such function.
    #[error("module `{module}` has no function `{function}`; it has {}", known.join(", "))]
    NoFunction {
        /// The module.
        module: String,
        /// The function.
        function: String,
        /// Its functions.
        known: Vec<String>,
    },
    /// The file is not a module.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// Neither this machine nor a server has such a function.
    #[error("there is no function `{name}` {}{}", places_and_servers(looked, servers), meant(near.as_deref()))]
    NotFound {
        /// The name as given.
        name: String,
        /// Places that were searched.
        looked: Vec<PathBuf>,
        /// Servers that were asked.
        servers: Vec<String>,
        /// A function with a similar name.
        near: Option<String>,
    },
    /// A server offers it in Python, without an interface.
    #[error(
        "`{name}` is in Python and has no interface: only a grid that trusts the server calls it, as with \
         `trusted = true` in grid.toml or `?trusted=true` in the URL of the server"
    )]
    WithoutInterface {
        /// The name as given.
        name: String,
    },
    /// A server has not said whether it offers the function, and no other source has it.
    #[error("`{name}` cannot be looked up: {}", joined(failures))]
    Unanswered {
        /// The name as given.
        name: String,
        /// Why not, for each of these servers.
        failures: Vec<ServerCatalogueError>,
    },
    /// The offer of a server is unknown.
    #[error(transparent)]
    Server(#[from] ServerCatalogueError),
    /// The parameters of a server's function have changed since it was looked up.
    #[error(
        "the interface of `{name}` at server `{server}` has changed: it was `{was}` and is {}; look the \
         function up again", now.as_ref().map_or("gone".to_owned(), |now| format!("`{now}`"))
    )]
    Changed {
        /// The function.
        name: String,
        /// The server.
        server: String,
        /// Its former parameters.
        was: String,
        /// Its parameters now; none: the server no longer offers it.
        now: Option<String>,
    },
    /// The grid does not take the function.
    #[error(transparent)]
    Grid(#[from] GridError),
}

fn meant(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

fn joined(failures: &[ServerCatalogueError]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn places(looked: &[PathBuf]) -> String {
    if looked.is_empty() {
        return ", and no place to look for one: name its folder in `modules=` or in \
                GRIDRPC_MODULE_PATH, or register it with `gridrpc register`"
            .into();
    }
    let places: Vec<String> = looked.iter().map(|path| format!("`{}`", path.display())).collect();
    format!(" in {}", places.join(", "))
}

/// Places and servers, for messages.
fn places_and_servers(looked: &[PathBuf], servers: &[String]) -> String {
    let quoted = |names: Vec<String>| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let folders = quoted(looked.iter().map(|path| path.display().to_string()).collect());
    let (word, names) = (if servers.len() == 1 { "server" } else { "servers" }, servers.to_vec());
    match (looked.is_empty(), servers.is_empty()) {
        (true, _) => format!("at {word} {}", quoted(names)),
        (false, true) => format!("in {folders}"),
        (false, false) => format!("in {folders}, and none at {word} {}", quoted(names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_folders_and_servers() {
        let folders = [PathBuf::from("/a"), PathBuf::from("b")];
        let servers = ["lab".to_owned(), "other".to_owned()];
        assert_eq!(places_and_servers(&folders, &[]), "in `/a`, `b`");
        assert_eq!(places_and_servers(&[], &servers[..1]), "at server `lab`");
        assert_eq!(
            places_and_servers(&folders[..1], &servers),
            "in `/a`, and none at servers `lab`, `other`"
        );
    }
}

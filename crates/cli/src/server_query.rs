//! What servers offer, for `gridrpc list` and `gridrpc describe`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use gridrpc_client::{DetachedError, ServerAccess, ServerCatalogue, ServerCatalogueError};
use gridrpc_config::{HostGroup, Problems, ServerAddress};
use gridrpc_idl::Module;
use serde_json::{Value, json};
use thiserror::Error;

/// Why a server has not been asked, or has not answered.
#[derive(Debug, Error)]
pub enum ServerQueryError {
    /// There is no such server.
    #[error(transparent)]
    Config(#[from] Problems),
    /// The name is that of hosts with agents.
    #[error("`{0}` is no server that offers functions: write gridrpc://HOST, or HOST:PORT")]
    NoServer(String),
    /// It does not answer.
    #[error(transparent)]
    Catalogue(#[from] ServerCatalogueError),
    /// It does not say which data it keeps.
    #[error(transparent)]
    Request(#[from] DetachedError),
    /// It has no such module.
    #[error(
        "server `{server}` offers no `{name}`; `gridrpc list --server {server}` shows what it offers"
    )]
    NotOffered {
        /// The server.
        server: String,
        /// The module or function.
        name: String,
    },
}

/// The catalogue of a server: a URL, an address, or the name of a server in the file that GRIDRPC_CONFIG names.
fn catalogue(server: &str) -> Result<ServerCatalogue, ServerQueryError> {
    let file = std::env::var_os("GRIDRPC_CONFIG").filter(|file| !file.is_empty());
    let chosen = gridrpc_config::chosen(&[server.to_owned()], file.as_deref().map(Path::new));
    let group: Option<HostGroup> = match (chosen, ServerAddress::parse(server)) {
        (Ok(groups), _) => groups.into_iter().next(),
        // An address alone.
        (Err(_), Some(address)) => {
            Some(gridrpc_config::from_url(&address.url()).map_err(Problems::from)?)
        }
        (Err(problems), None) => return Err(problems.into()),
    };
    let access = group.as_ref().and_then(ServerAccess::of);
    let access = access.ok_or_else(|| ServerQueryError::NoServer(server.to_owned()))?;
    Ok(ServerCatalogue::new(server, access))
}

/// The state of a server.
///
/// # Errors
/// When it does not answer.
pub fn status(server: &str) -> Result<Value, ServerQueryError> {
    Ok(catalogue(server)?.status()?)
}

/// The functions of a server.
///
/// # Errors
/// When it does not answer.
pub fn list(server: &str, as_json: bool) -> Result<String, ServerQueryError> {
    let functions = catalogue(server)?.list()?;
    if as_json {
        let one = |function: &gridrpc_client::ServerFunction| {
            json!({
                "name": function.name,
                "signature": function.signature,
                "description": function.description,
            })
        };
        let all: Value = functions.iter().map(one).collect();
        return Ok(format!("{all:#}\n"));
    }
    if functions.is_empty() {
        return Ok(format!("server `{server}` offers you no functions\n"));
    }
    let mut text = String::new();
    let width = functions.iter().map(|function| function.name.len()).max().unwrap_or(0);
    for function in functions.iter() {
        let first = function.description.as_deref().and_then(|text| text.trim().lines().next());
        let first = first.map(|line| format!("  {line}")).unwrap_or_default();
        // Writing to a string cannot fail.
        let line = format!("{:width$}{first}", function.name);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    Ok(text)
}

/// The shared data with names that the user may use.
///
/// # Errors
/// When the server does not answer.
pub fn shared_names(server: &str, as_json: bool) -> Result<String, ServerQueryError> {
    let all = catalogue(server)?.shared_names(&mut || false)?;
    if as_json {
        let one = |data: &gridrpc_client::SharedName| {
            json!({
                "name": format!("{}/{}", data.owner, data.name),
                "bytes": data.bytes,
                "dtype": data.dtype,
                "shape": data.dims,
                "readers": data.readers,
                "until": data.until as f64 / 1000.0,
            })
        };
        let all: Value = all.iter().map(one).collect();
        return Ok(format!("{all:#}\n"));
    }
    if all.is_empty() {
        return Ok(format!("server `{server}` keeps no shared data that you may use\n"));
    }
    let names: Vec<String> =
        all.iter().map(|data| format!("{}/{}", data.owner, data.name)).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::new();
    for (name, data) in names.iter().zip(&all) {
        let kind = data
            .dtype
            .as_ref()
            .map_or_else(|| "bytes".to_owned(), |dtype| format!("{dtype}{:?}", data.dims));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:width$}  {:>14}  {kind}", data.bytes);
    }
    Ok(text)
}

/// The module of a function, or a module, of a server.
///
/// # Errors
/// When it does not answer, or has none.
pub fn module(server: &str, name: &str) -> Result<Arc<Module>, ServerQueryError> {
    let module = catalogue(server)?.module(name)?;
    module.map(|module| Arc::clone(&module.interface)).ok_or_else(|| ServerQueryError::NotOffered {
        server: server.to_owned(),
        name: name.to_owned(),
    })
}

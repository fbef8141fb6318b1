//! Errors in a `server.toml`.

use std::net::IpAddr;
use std::path::PathBuf;

use gridrpc_config::{Fault, Problems, Report};
use thiserror::Error;

/// Kinds of errors in a `server.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum ServerFault {
    /// An error that other configuration files have as well.
    #[error(transparent)]
    Common(#[from] Fault),
    /// An unknown table.
    #[error("there is no table [{name}]: {}", meant(.near, "[", "]", "tables", .known))]
    UnknownTable { name: String, near: Option<&'static str>, known: Vec<&'static str> },
    /// An unknown key.
    #[error("there is no key `{key}`: {}", meant(.near, "`", "`", "keys", .known))]
    UnknownKey { key: String, near: Option<&'static str>, known: Vec<&'static str> },
    /// A key that its table needs.
    #[error("there is no `{key}`: write it, as in {example}")]
    Missing { key: &'static str, example: &'static str },
    /// An address or a port without certificates.
    #[error(
        "`{key}` needs a table [tls]: make certificates with `gridrpc ca` and name them there, or \
         take `{key}` out"
    )]
    WithoutTls { key: &'static str },
    /// HTTP without certificates at an address that other machines reach.
    #[error(
        "`addresses` has {address}, which other machines reach: add a table [tls], or listen at \
         127.0.0.1"
    )]
    HttpWithoutTls { address: IpAddr },
    /// Neither the file nor the environment names a folder for the state.
    #[error(
        "there is no home folder for the state: write state = \"/var/lib/gridrpc\" in [server]"
    )]
    NoState,
    /// A path that is too long for a Unix socket.
    #[error(
        "the path of the socket is {}, which has more than {most} bytes: write a shorter `socket`",
        .path.display()
    )]
    SocketPath { path: PathBuf, most: usize },
    /// Neither workers on this machine nor host groups.
    #[error(
        "`count` is 0, and there are no host groups, so nothing could run calls: write a number from 1 on, or name host \
         groups by `config` or `servers`"
    )]
    NoWorkers,
    /// Python functions without an interpreter.
    #[error(
        "there is no `python` in [workers]: name the interpreter, as in python = \"/usr/bin/python3\""
    )]
    NoPython,
    /// A name in a list that has it already.
    #[error("`{key}` has {name:?} twice: take one of the two out")]
    Duplicate { key: String, name: String },
    /// A Python module and a compiled one with the same name.
    #[error("[modules.{name}] and [python.{name}] have the same name: rename one of the two")]
    SameName { name: String },
    /// A Python module without functions and classes.
    #[error("it offers nothing: write `functions` or `classes`")]
    OffersNothing,
    /// A file that other users can change.
    #[error(
        "{reason}: the server believes only files that nobody else can change: correct the owner and \
         the permissions"
    )]
    Unsafe { reason: String },
    /// Host groups with errors.
    #[error("the host groups cannot be used:\n{}", indented(.problems))]
    Hosts { problems: Box<Problems> },
}

/// All problems of a `server.toml`.
pub type ServerProblems = Problems<ServerFault>;

/// Problems found so far.
pub(super) type ServerReport<'t> = Report<'t, ServerFault>;

/// Says which table or key is meant, or lists those that exist.
fn meant(
    near: &Option<&str>,
    open: &str,
    close: &str,
    kind: &str,
    known: &[&'static str],
) -> String {
    let quoted = |name: &str| format!("{open}{name}{close}");
    match near {
        Some(near) => format!("did you mean {}?", quoted(near)),
        None => {
            let names: Vec<String> = known.iter().map(|name| quoted(name)).collect();
            format!("the {kind} are {}", names.join(", "))
        }
    }
}

fn indented(problems: &Problems) -> String {
    let lines: Vec<String> = problems.to_string().lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

//! `gridrpc directory`: runs a directory of servers, and shows what one knows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use gridrpc_directory::{
    Arguments, DIRECTORY_PORT, Directory, DirectoryError, EtcdMember, EtcdOptions, explain,
};
use gridrpc_lookup::{DirectoryClient, LookupError};
use gridrpc_placement::Policy;
use gridrpc_server::log;
use gridrpc_sys::safe_path;
use nix::sys::signal::{SigSet, Signal};
use serde_json::Value;
use thiserror::Error;

use crate::server::notify_manager;

/// Options of `gridrpc directory`.
#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a directory until it is stopped by SIGTERM or Ctrl-C
    ///
    /// Servers announce themselves to it: see the table `[directory]` of server.toml. Without --credentials it listens
    /// only at this machine, and connections are not encrypted.
    Start {
        /// Folder of the directory's file [default: gridrpc/directory in the user's state folder]
        #[arg(long, value_name = "DIR")]
        state: Option<PathBuf>,
        /// Address to listen at; may be repeated
        #[arg(long = "address", value_name = "ADDRESS", default_values_t = [IpAddr::V4(Ipv4Addr::LOCALHOST)])]
        addresses: Vec<IpAddr>,
        /// Port to listen on; 0: any free port
        #[arg(long, default_value_t = DIRECTORY_PORT)]
        port: u16,
        /// Folder with the directory's certificate, of `gridrpc ca server`
        #[arg(long, value_name = "DIR")]
        credentials: Option<PathBuf>,
        /// List of revoked certificates
        #[arg(long, value_name = "FILE", requires = "credentials")]
        revoked: Option<PathBuf>,
        /// Group of the users who may announce servers [default: all users]
        #[arg(long, value_name = "GROUP", requires = "credentials")]
        announcers: Option<String>,
        /// Let everyone read, even without a certificate
        #[arg(long)]
        public: bool,
        #[command(flatten)]
        etcd: Etcd,
    },
    /// Print the state of a directory and of its servers
    Status {
        #[command(flatten)]
        place: DirectoryOption,
        /// Print all values as JSON
        #[arg(long)]
        json: bool,
    },
    /// List all functions
    List {
        #[command(flatten)]
        place: DirectoryOption,
        /// Print all values as JSON
        #[arg(long)]
        json: bool,
    },
    /// Search names and descriptions of functions
    Search {
        /// Words that a function's name or description must have
        text: String,
        #[command(flatten)]
        place: DirectoryOption,
        /// Print all values as JSON
        #[arg(long)]
        json: bool,
    },
    /// Explain which server a client chooses for a function, and why
    ///
    /// Shows the predicted time of a call on each server. A client has measured speeds and bandwidths; this command
    /// takes those that servers announce.
    Why {
        /// The function: `module/function`
        function: String,
        /// Values of its scalars, as in n=1000
        #[arg(value_name = "NAME=VALUE", value_parser = argument)]
        arguments: Vec<(String, f64)>,
        /// How the server is chosen
        #[arg(long, default_value = Policy::NAMES[0], value_parser = clap::builder::PossibleValuesParser::new(Policy::NAMES))]
        policy: String,
        #[command(flatten)]
        place: DirectoryOption,
        /// Print the answer of the directory as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The etcd that directories share.
#[derive(Debug, Args)]
struct Etcd {
    /// URLs of the members of an etcd that directories share announcements through [default: none]
    #[arg(long = "etcd", value_name = "URL,...", value_delimiter = ',')]
    members: Vec<EtcdMember>,
    /// Prefix of the keys in etcd
    #[arg(
        long = "etcd-prefix",
        value_name = "KEY",
        default_value = "/gridrpc/directory",
        requires = "members"
    )]
    prefix: String,
    /// Certificates of the authorities that sign the certificates of etcd [default: those of the system]
    #[arg(long = "etcd-cacert", value_name = "FILE", requires = "members")]
    authority: Option<PathBuf>,
    /// Certificate for etcd
    #[arg(long = "etcd-cert", value_name = "FILE", requires_all = ["authority", "key"])]
    certificate: Option<PathBuf>,
    /// Private key of that certificate
    #[arg(long = "etcd-key", value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
}

/// The directory that a command asks.
#[derive(Debug, Args)]
struct DirectoryOption {
    /// URL of the directory
    #[arg(
        long,
        value_name = "URL",
        env = "GRIDRPC_DIRECTORY",
        default_value = "http://localhost:7713"
    )]
    directory: String,
    /// Folder with a user's certificate [default: the usual one]
    #[arg(long, value_name = "DIR")]
    credentials: Option<PathBuf>,
}

/// Why a command fails.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The directory cannot start.
    #[error(transparent)]
    Start(#[from] DirectoryError),
    /// The directory does not answer, or knows no such function.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// There is no folder for the state.
    #[error("there is no home folder for the state: name a folder by --state")]
    NoState,
    /// The system refuses an operation.
    #[error("{what}: {error}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
}

fn argument(text: &str) -> Result<(String, f64), String> {
    let parsed = text.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
    let (name, value): (&str, f64) = parsed.ok_or("write NAME=VALUE, as in n=1000")?;
    Ok((name.to_owned(), value))
}

impl Etcd {
    fn options(self) -> Option<EtcdOptions> {
        let Etcd { members, prefix, authority, certificate, key } = self;
        let certificate = certificate.zip(key);
        let options = EtcdOptions { members, prefix, authority, certificate };
        (!options.members.is_empty()).then_some(options)
    }
}

impl DirectoryOption {
    fn client(&self) -> Result<DirectoryClient, LookupError> {
        DirectoryClient::new(&self.directory, self.credentials.clone())
    }
}

/// Runs the command. Returns its output.
///
/// # Errors
/// When the directory cannot start, does not answer, or knows no such function.
pub fn run(options: Options) -> Result<String, CommandError> {
    match options.command {
        Command::Start {
            state,
            addresses,
            port,
            credentials,
            revoked,
            announcers,
            public,
            etcd,
        } => {
            let folder = state.or_else(|| Some(safe_path::states()?.join("gridrpc/directory")));
            start(gridrpc_directory::Options {
                state: folder.ok_or(CommandError::NoState)?,
                addresses,
                port,
                credentials,
                revoked,
                announcers,
                is_public: public,
                etcd: etcd.options(),
            })
        }
        Command::Status { place, json } => {
            let status = place.client()?.status()?;
            Ok(if json { format!("{status:#}\n") } else { status_text(&status) })
        }
        Command::List { place, json } => functions(&place, "", json),
        Command::Search { text, place, json } => functions(&place, &text, json),
        Command::Why { function, arguments, policy, place, json } => {
            let lookup = place.client()?.lookup(&function)?;
            if json {
                return Ok(format!("{lookup:#}\n"));
            }
            let arguments = Arguments(arguments.into_iter().collect::<BTreeMap<_, _>>());
            // The names of policies have been checked.
            Ok(explain(&lookup, &arguments, policy.parse().unwrap_or_default()))
        }
    }
}

fn start(options: gridrpc_directory::Options) -> Result<String, CommandError> {
    let system = |what| move |error: std::io::Error| CommandError::System { what, error };
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    // Before any thread starts: all inherit the mask.
    signals.thread_block().map_err(|errno| system("blocking signals")(errno.into()))?;
    let scheme = if options.credentials.is_some() { "https" } else { "http" };
    let addresses = options.addresses.clone();
    let directory = Directory::start(options)?;
    let url =
        |address: &IpAddr| format!("{scheme}://{}", SocketAddr::new(*address, directory.port()));
    let places: Vec<String> = addresses.iter().map(url).collect();
    log::info(
        &format!(
            "the directory (process {}) listens at {}",
            std::process::id(),
            places.join(" and ")
        ),
        &[],
    );
    notify_manager("READY=1").map_err(system("notifying the service manager"))?;
    let signal = signals.wait().map_err(|errno| system("waiting for a signal")(errno.into()))?;
    log::info("the directory stops", &[("signal", &signal)]);
    drop(directory);
    Ok(String::new())
}

fn functions(place: &DirectoryOption, text: &str, as_json: bool) -> Result<String, CommandError> {
    let functions = place.client()?.search(text)?;
    if as_json {
        return Ok(format!("{functions:#}\n"));
    }
    let functions = functions.as_array().map_or(&[][..], Vec::as_slice);
    if functions.is_empty() {
        let of = if text.is_empty() { String::new() } else { format!(" with `{text}`") };
        return Ok(format!("no server offers a function{of}\n"));
    }
    let name = |function: &Value| function["name"].as_str().unwrap_or_default().to_owned();
    let width = functions.iter().map(|function| name(function).len()).max().unwrap_or(0);
    let mut lines = String::new();
    for function in functions {
        let description =
            function["description"].as_str().and_then(|text| text.trim().lines().next());
        let servers: Vec<&str> = function["servers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let servers =
            if servers.is_empty() { "no server now".to_owned() } else { servers.join(", ") };
        let differs = function["signatures"].as_array().is_some_and(|all| all.len() > 1);
        let warning = if differs { "; servers have different interfaces" } else { "" };
        let described = description.map(|text| format!("  {text}")).unwrap_or_default();
        let _ = writeln!(lines, "{:width$}{described}  ({servers}{warning})", name(function));
    }
    Ok(lines)
}

fn status_text(status: &Value) -> String {
    let etcd = etcd_text(&status["etcd"]);
    let mut text = format!(
        "directory (process {}, version {}), {} functions\n{etcd}\n{:16} {:24} {:>6} {:>6} {:>7} {:>8} {:>12}  state\n",
        status["pid"],
        status["version"].as_str().unwrap_or_default(),
        status["functions"],
        "server",
        "address",
        "cores",
        "load",
        "queued",
        "modules",
        "last heard",
    );
    for server in status["servers"].as_array().into_iter().flatten() {
        let is = |key: &str| server[key].as_bool() == Some(true);
        let state = if is("is_silent") {
            "silent"
        } else if is("is_full") {
            "full"
        } else {
            "ready"
        };
        let _ = writeln!(
            text,
            "{:16} {:24} {:>6} {:>6.2} {:>7} {:>8} {:>10.1} s  {state}",
            server["name"].as_str().unwrap_or_default(),
            server["address"].as_str().unwrap_or_default(),
            server["cores"].as_u64().unwrap_or(0),
            server["load"].as_f64().unwrap_or(0.0),
            server["queued"].as_u64().unwrap_or(0),
            server["modules"].as_u64().unwrap_or(0),
            server["age"].as_f64().unwrap_or(0.0),
        );
    }
    text
}

/// A line about etcd, if the directory has one.
fn etcd_text(etcd: &Value) -> String {
    if etcd.is_null() {
        return String::new();
    }
    let seconds = etcd["seconds"].as_f64().unwrap_or(0.0);
    let texts = |key: &str| -> Vec<&str> {
        etcd[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    };
    if etcd["is_connected"].as_bool() == Some(true) {
        let others = texts("directories");
        let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
        let member = etcd["member"].as_str().unwrap_or_default();
        return format!(
            "etcd: connected to {member} for {seconds:.0} s; other directories: {others}\n"
        );
    }
    format!(
        "etcd: no member answers for {seconds:.0} s ({}); announcements to other directories are unknown here\n  \
         last failure: {}\n",
        texts("members").join(", "),
        etcd["reason"].as_str().unwrap_or_default(),
    )
}

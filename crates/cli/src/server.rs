//! `gridrpc server`: runs a server that many clients share, and controls one that runs.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};
use gridrpc_client::{DaemonConnection, DaemonRequestError, MAX_ANSWER};
use gridrpc_server::config::{ServerConfig, ServerProblems, read_file};
use gridrpc_server::{Server, ServerError, check, log};
use gridrpc_transport::dial_local;
use nix::sys::signal::{SigSet, Signal};
use serde_json::{Value, json};
use thiserror::Error;

/// How long a server may take to answer a request.
const ANSWER: Duration = Duration::from_secs(30);
/// How long `stop` waits for the end of the server.
const END: Duration = Duration::from_secs(60);
/// How often `drain --wait` and `stop` look.
const LOOK: Duration = Duration::from_millis(100);

/// The usual configuration.
pub const CONFIG: &str = "/etc/gridrpc/server.toml";

/// Options of `gridrpc server`.
#[derive(Debug, Args)]
pub struct Options {
    /// The server's configuration
    #[arg(
        short,
        long,
        global = true,
        value_name = "FILE",
        env = "GRIDRPC_SERVER_CONFIG",
        default_value = CONFIG
    )]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a server until it is stopped
    ///
    /// The server runs in the foreground and ends with SIGTERM, Ctrl-C or `gridrpc server stop`. Calls that run then
    /// are cancelled; `gridrpc server drain --wait` lets them finish first.
    Start,
    /// Check the configuration, the certificates and the modules, and print all problems
    Check,
    /// Print the state of a server: modules, pools of workers, users
    Status {
        /// Print all values as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the functions of a server
    List {
        /// Print all values as JSON
        #[arg(long)]
        json: bool,
    },
    /// Offer a module: keep a copy of its file, and replace an older version
    ///
    /// Calls that have begun finish with the version that they began with.
    Add {
        /// The module's file
        file: PathBuf,
    },
    /// Remove a module that was added
    Remove {
        /// The module's name
        module: String,
    },
    /// Make an API token for a user of the Open Inference Protocol, and print it
    ///
    /// The server stores only its hash, so it cannot be printed again. It is valid at once.
    Token {
        /// The user's name
        user: String,
        /// A group of the user; may be repeated
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// Days until it expires [default: never]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        days: Option<u32>,
    },
    /// List the API tokens, or revoke one
    Tokens {
        /// Revoke the token with this id, at once
        #[arg(long, value_name = "ID")]
        revoke: Option<String>,
        /// Print all values as JSON
        #[arg(long, conflicts_with = "revoke")]
        json: bool,
    },
    /// Cancel calls that wait or run: those with these ids, of a user, of a function, or all
    ///
    /// Callers get the error CallCancelled. A call that still runs after a grace period loses its worker. Root and the
    /// user of the server cancel calls of all users, and other users of this machine their own.
    #[command(group = clap::ArgGroup::new("calls").required(true).multiple(true))]
    Cancel {
        /// Ids of detached calls
        #[arg(value_name = "ID", group = "calls", conflicts_with_all = ["user", "function", "all"])]
        ids: Vec<String>,
        /// All calls of this user
        #[arg(long, group = "calls")]
        user: Option<String>,
        /// All calls of this function, such as module/function
        #[arg(long, group = "calls")]
        function: Option<String>,
        /// All calls
        #[arg(long, group = "calls", conflicts_with_all = ["user", "function"])]
        all: bool,
    },
    /// Take no new calls, and let those that have begun finish
    Drain {
        /// Wait until no call is left
        #[arg(long)]
        wait: bool,
        /// With --wait: the longest time to wait. The command fails if calls are left then
        #[arg(long, value_name = "SECONDS", requires = "wait")]
        timeout: Option<u64>,
    },
    /// Stop a server
    Stop,
}

/// Why a command fails.
#[derive(Debug, Error)]
pub enum CommandError {
    /// The configuration has problems.
    #[error(transparent)]
    Config(#[from] ServerProblems),
    /// The server cannot start.
    #[error(transparent)]
    Start(#[from] ServerError),
    /// No server answers.
    #[error(
        "no server listens at `{}`: {error}; start one with `gridrpc server start --config {}`",
        socket.display(), config.display()
    )]
    Absent {
        /// The socket.
        socket: PathBuf,
        /// The configuration.
        config: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The server refuses a request.
    #[error("{0}")]
    Refused(String),
    /// The connection failed.
    #[error("the server: {0}")]
    Ask(DaemonRequestError),
    /// The server still runs.
    #[error("the server still runs after {} s", .0.as_secs())]
    Lives(Duration),
    /// Calls still run.
    #[error("{alive} calls have not ended after {} s", limit.as_secs())]
    Busy {
        /// Number of calls.
        alive: u64,
        /// How long the command waited.
        limit: Duration,
    },
    /// A path cannot be made absolute.
    #[error("could not find `{}`: {error}", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The system refuses an operation.
    #[error("{what}: {error}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
}

impl From<DaemonRequestError> for CommandError {
    fn from(error: DaemonRequestError) -> CommandError {
        match error {
            DaemonRequestError::Failed(error) => CommandError::Refused(error.message),
            other => CommandError::Ask(other),
        }
    }
}

/// Runs the command. Returns its output.
///
/// # Errors
/// When the configuration has problems, or the server cannot start or does not answer.
pub fn run(options: &Options) -> Result<String, CommandError> {
    let config = read_file(&options.config)?;
    let control = Control { config: &config, file: &options.config };
    match &options.command {
        Command::Start => start(config),
        Command::Check => Ok(check(&config, &program()?)?),
        Command::Status { json } => {
            let status = control.ask("status", "")?;
            Ok(if *json { format!("{status:#}\n") } else { status_text(&status) })
        }
        Command::List { json } => {
            let list = control.ask("list", "")?;
            Ok(if *json { format!("{list:#}\n") } else { list_text(&list) })
        }
        Command::Add { file } => {
            let file = std::fs::canonicalize(file)
                .map_err(|error| CommandError::Path { path: file.clone(), error })?;
            let added = control.ask("add", &file.display().to_string())?;
            let module = text(&added, "module");
            let is_new = added["new"].as_bool() == Some(true);
            let what = if is_new { "is published" } else { "has not changed" };
            Ok(format!("module {module} {what}\n"))
        }
        Command::Remove { module } => {
            control.ask("remove", module)?;
            Ok(format!("module {module} is removed\n"))
        }
        Command::Token { user, groups, days } => {
            let requested = json!({ "user": user, "groups": groups, "days": days });
            let answer = control.ask("token", &requested.to_string())?;
            Ok(format!("{}\n", text(&answer, "token")))
        }
        Command::Tokens { revoke: Some(id), .. } => {
            let revoked = control.ask("revoke-token", id)?;
            Ok(format!("the token {id} of user {} is revoked\n", text(&revoked, "user")))
        }
        Command::Tokens { json, .. } => {
            let tokens = control.ask("tokens", "")?;
            Ok(if *json { format!("{tokens:#}\n") } else { tokens_text(&tokens) })
        }
        Command::Cancel { ids, user, function, .. } => {
            // The ids that programs have are URLs with the address of the server.
            let ids: Vec<&str> = ids.iter().filter_map(|id| id.rsplit('/').next()).collect();
            let requested = json!({ "ids": ids, "user": user, "function": function });
            cancelled_text(&control.ask("cancel-calls", &requested.to_string())?)
        }
        Command::Drain { wait, timeout } => {
            let limit = timeout.map(Duration::from_secs);
            let started = Instant::now();
            let mut alive = control.ask("drain", "")?["alive"].as_u64().unwrap_or(0);
            while *wait && alive > 0 {
                if let Some(limit) = limit.filter(|limit| started.elapsed() >= *limit) {
                    return Err(CommandError::Busy { alive, limit });
                }
                thread::sleep(LOOK);
                alive = control.ask("drain", "")?["alive"].as_u64().unwrap_or(0);
            }
            Ok(format!("no new calls; {alive} have begun and not ended\n"))
        }
        Command::Stop => control.stop(),
    }
}

/// The file of this program.
fn program() -> Result<PathBuf, CommandError> {
    let what = "finding this program";
    std::env::current_exe().map_err(|error| CommandError::System { what, error })
}

/// Runs a server until a signal or a request stops it.
fn start(config: ServerConfig) -> Result<String, CommandError> {
    let system = |what| move |error: std::io::Error| CommandError::System { what, error };
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    // Before any thread starts: all inherit the mask.
    signals.thread_block().map_err(|errno| system("blocking signals")(errno.into()))?;
    let program = program()?;
    let scheme = if config.network.is_some() { "https" } else { "http" };
    let (name, socket) = (config.name.clone(), config.socket.clone());
    let addresses: Vec<String> = config
        .network
        .iter()
        .flat_map(|network| &network.addresses)
        .map(ToString::to_string)
        .collect();
    let http = config.http.clone();
    let server = Server::start(config, program)?;
    let stop = Arc::clone(server.stop());
    thread::Builder::new()
        .name("gridrpc-signals".to_owned())
        .spawn(move || {
            if let Ok(signal) = signals.wait() {
                log::info("the server stops", &[("signal", &signal)]);
            }
            stop.request();
        })
        .map_err(system("starting a thread"))?;
    let modules = server.modules();
    let mut places = vec![socket.display().to_string()];
    if let Some(port) = server.port() {
        let with_port = |address: &String| gridrpc_transport::addresses::with_port(address, port);
        places.extend(addresses.iter().map(with_port));
    }
    if let Some((http, port)) = http.zip(server.http_port()) {
        let url = |address: &IpAddr| format!("{scheme}://{}", SocketAddr::new(*address, port));
        places.extend(http.addresses.iter().map(url));
    }
    let listed = if modules.is_empty() { "no modules".to_owned() } else { modules.join(", ") };
    log::info(&format!("server `{name}` (process {}) offers {listed}", std::process::id()), &[]);
    log::info(&format!("it listens at {}", places.join(" and ")), &[]);
    notify_manager("READY=1").map_err(system("notifying the service manager"))?;
    server.run();
    Ok(String::new())
}

/// Reports a state to the service manager that has started this process, if there is one: see sd_notify(3).
///
/// # Errors
/// When the manager cannot be reached.
pub fn notify_manager(state: &str) -> std::io::Result<()> {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = match socket.as_encoded_bytes() {
        [b'@', name @ ..] => UnixAddress::from_abstract_name(name)?,
        _ => UnixAddress::from_pathname(&socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

/// The state of the server with this configuration, on this machine.
///
/// # Errors
/// When the configuration has problems, or the server does not answer.
pub fn status(file: &Path) -> Result<Value, CommandError> {
    let config = read_file(file)?;
    Control { config: &config, file }.ask("status", "")
}

/// A server that runs.
struct Control<'c> {
    config: &'c ServerConfig,
    file: &'c Path,
}

impl Control<'_> {
    fn connect(&self) -> Result<DaemonConnection, CommandError> {
        let socket = &self.config.socket;
        let dialled = dial_local(socket, Duration::from_secs(5)).map_err(|error| {
            let (socket, config) = (socket.clone(), self.file.to_owned());
            CommandError::Absent { socket, config, error }
        })?;
        let until = Some(Instant::now() + ANSWER);
        Ok(DaemonConnection::open(Arc::new(dialled), MAX_ANSWER, until, &mut || false)?)
    }

    /// Makes a request with one text, and reads the answer as JSON.
    fn ask(&self, name: &str, argument: &str) -> Result<Value, CommandError> {
        let until = Some(Instant::now() + ANSWER);
        let sections = vec![argument.as_bytes().to_vec()];
        let answer = self.connect()?.request(name, sections, until, &mut || false)?;
        let text = answer.sections.first().map_or(&[][..], Vec::as_slice);
        serde_json::from_slice(text).map_err(|error| {
            CommandError::Refused(format!("the server's answer is not JSON: {error}"))
        })
    }

    fn stop(&self) -> Result<String, CommandError> {
        let pid = self.ask("status", "")?["pid"].as_u64().unwrap_or(0);
        match self.ask("stop", "") {
            Ok(_) => {}
            // It may have stopped before its answer was sent.
            Err(CommandError::Ask(DaemonRequestError::Gone | DaemonRequestError::Link(_))) => {}
            Err(error) => return Err(error),
        }
        let until = Instant::now() + END;
        while self.config.socket.exists() {
            if Instant::now() >= until {
                return Err(CommandError::Lives(END));
            }
            thread::sleep(LOOK);
        }
        Ok(format!("server {} (process {pid}) has stopped\n", self.config.name))
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or("")
}

fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

fn list_text(list: &Value) -> String {
    let functions = list.as_array().map_or(&[][..], Vec::as_slice);
    if functions.is_empty() {
        return "the server offers no functions\n".to_owned();
    }
    let width = functions.iter().map(|function| text(function, "name").len()).max().unwrap_or(0);
    functions.iter().fold(String::new(), |mut lines, function| {
        let name = text(function, "name");
        let line = format!("{name:width$}  {}", text(function, "signature"));
        let _ = writeln!(lines, "{}", line.trim_end());
        lines
    })
}

/// The cancelled calls. Calls that have not been found are an error.
fn cancelled_text(answer: &Value) -> Result<String, CommandError> {
    let cancelled = count(answer, "cancelled");
    let calls = |number: u64| format!("{number} call{}", if number == 1 { "" } else { "s" });
    let unknown = answer["unknown"].as_array().map_or(&[][..], Vec::as_slice);
    let unknown: Vec<&str> = unknown.iter().filter_map(Value::as_str).collect();
    if !unknown.is_empty() {
        return Err(CommandError::Refused(format!(
            "{} cancelled; no detached call that waits or runs has the id {}",
            calls(cancelled),
            unknown.join(", "),
        )));
    }
    let left = count(answer, "left");
    let left = match left {
        0 => String::new(),
        _ => format!(
            "; {} left: a queue with the policy fifo or priority does not tell users apart, so root or the user of the server cancels by --function",
            calls(left)
        ),
    };
    Ok(format!("{} cancelled{left}\n", calls(cancelled)))
}

fn tokens_text(tokens: &Value) -> String {
    let empty = Vec::new();
    let tokens = tokens.as_array().unwrap_or(&empty);
    if tokens.is_empty() {
        return "there are no API tokens\n".to_owned();
    }
    let head = format!("{:12} {:20} {:27} groups\n", "id", "user", "until");
    tokens.iter().fold(head, |mut lines, token| {
        let groups = token["groups"].as_array().unwrap_or(&empty).iter();
        let groups: Vec<&str> = groups.filter_map(Value::as_str).collect();
        let until = token["until"].as_str().unwrap_or("(no end)");
        let (id, user) = (text(token, "id"), text(token, "user"));
        let line = format!("{id:12} {user:20} {until:27} {}", groups.join(", "));
        let _ = writeln!(lines, "{}", line.trim_end());
        lines
    })
}

fn status_text(status: &Value) -> String {
    let mut lines = String::new();
    let uptime = status["uptime"].as_f64().unwrap_or(0.0);
    let draining =
        if status["draining"].as_bool() == Some(true) { ", takes no new calls" } else { "" };
    let _ = writeln!(
        lines,
        "server {} (process {}, version {}), up {}{draining}",
        text(status, "name"),
        status["pid"],
        text(status, "version"),
        shown(uptime),
    );
    let empty = Vec::new();
    let _ = writeln!(lines, "\n{:20} {:>10} {:>8}  source", "module", "functions", "calls");
    for module in status["modules"].as_array().unwrap_or(&empty) {
        let _ = writeln!(
            lines,
            "{:20} {:>10} {:>8}  {}",
            text(module, "name"),
            count(module, "functions"),
            count(module, "alive"),
            text(module, "source"),
        );
    }
    let _ = writeln!(
        lines,
        "\n{:20} {:16} {:>8} {:>8} {:>8}",
        "pool", "user", "workers", "waiting", "calls"
    );
    for pool in status["pools"].as_array().unwrap_or(&empty) {
        let _ = writeln!(
            lines,
            "{:20} {:16} {:>8} {:>8} {:>8}",
            pool["module"].as_str().unwrap_or("(common)"),
            pool["user"].as_str().unwrap_or("(all)"),
            count(pool, "ready"),
            count(pool, "queued"),
            count(pool, "alive"),
        );
    }
    let shared = &status["shared"];
    if shared["names"].as_u64().is_some_and(|names| names > 0) {
        let (names, bytes) = (&shared["names"], &shared["bytes"]);
        let _ = writeln!(lines, "\nshared data: {names} names, {bytes} bytes");
    }
    if let Some(users) = status["users"].as_object().filter(|users| !users.is_empty()) {
        let _ = writeln!(
            lines,
            "\n{:20} {:>10} {:>8} {:>8} {:>8} {:>10}",
            "user", "returned", "failed", "running", "waiting", "run time"
        );
        for (name, user) in users {
            let seconds = user["seconds"].as_f64().unwrap_or(0.0);
            let _ = writeln!(
                lines,
                "{name:20} {:>10} {:>8} {:>8} {:>8} {:>10}",
                count(user, "returned"),
                count(user, "failed"),
                count(user, "running"),
                count(user, "waiting"),
                shown(seconds),
            );
        }
    }
    lines
}

/// A time as people write it.
fn shown(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.1} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

//! The `gridrpc` program.

mod ca;
mod compile;
mod completion;
mod config;
mod directory;
mod doctor;
mod duration;
mod enrolment;
mod makefile;
mod script;
mod server;
mod server_query;
mod session;
mod top;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{CommandFactory as _, Parser, Subcommand};
use gridrpc_idl::Dialect;
use gridrpc_invoke::{ModuleSearch, SearchError};
use gridrpc_typed::{catalogue, describe, read_interface};
use gridrpc_wire::Prepare;
use gridrpc_worker::{Role, Spawner, run_rank, serve_native};
use nix::sys::signal::{SigHandler, Signal, signal};
use serde_json::json;

use compile::CompilerOptions;

/// Columns that a help has at most, also where it goes to no terminal.
const WIDTH: usize = 80;

/// Call numerical code on other cores and machines as if it were local.
///
/// Compiles modules from interface descriptions (IDL), keeps this machine's catalogue of them, and
/// is what native workers run. Programs make calls through the C, Fortran and Python APIs.
#[derive(Debug, Parser)]
#[command(name = "gridrpc", version, about, max_term_width = WIDTH)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile an IDL file into a module, MODULE.so
    Compile {
        /// The IDL file
        file: PathBuf,
        /// The folder for the module
        #[arg(short, long, default_value = ".")]
        output: PathBuf,
        /// Keep the source of the stub beside the module
        #[arg(long)]
        keep_source: bool,
        /// Only check for errors
        #[arg(long, conflicts_with_all = ["list", "makefile"])]
        check: bool,
        /// Print the names of the functions and classes, and compile nothing
        #[arg(long, conflicts_with = "makefile")]
        list: bool,
        /// Print a makefile for the module and its stubs, and compile nothing
        #[arg(long)]
        makefile: bool,
        /// The dialect of a file that names none: `gridrpc`, or `ninf-g` as with Ninf-G
        #[arg(long, default_value = "gridrpc", value_parser = dialect)]
        dialect: Dialect,
        /// The compiler to use instead of the file's or the usual one
        #[arg(long)]
        compiler: Option<String>,
        /// The linker to use instead of the file's or the usual one
        #[arg(long)]
        linker: Option<String>,
        /// Options, objects and libraries come from the arguments instead of the file
        #[arg(long, hide = true)]
        flags_given: bool,
        /// The file is generated; the makefile removes it at the end
        #[arg(long, hide = true, requires = "makefile")]
        made: bool,
        /// Further arguments for the compiler and the linker, behind `--`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Put a module into this machine's catalogue
    Register {
        /// The module's file
        file: PathBuf,
        /// Print nothing but errors
        #[arg(short, long)]
        quiet: bool,
    },
    /// Take a module out of the catalogue
    Unregister {
        /// The module's name
        module: String,
        /// Print nothing but errors
        #[arg(short, long)]
        quiet: bool,
    },
    /// List the modules of the catalogue, or the functions of a server
    List {
        /// The server: a URL such as gridrpc://HOST, an address, or a name in the file of GRIDRPC_CONFIG
        #[arg(long)]
        server: Option<String>,
        /// List the shared data with names that you may use on the server
        #[arg(long, requires = "server")]
        shared: bool,
        /// Print all values as JSON
        #[arg(long)]
        json: bool,
    },
    /// Describe a module or a function
    Describe {
        /// `module`, `module/function`, `module/Class.method`, or a module's file
        name: String,
        /// The server that offers it: a URL such as gridrpc://HOST, an address, or a name in the file of GRIDRPC_CONFIG
        #[arg(long)]
        server: Option<String>,
        /// Print all values as JSON
        #[arg(long, conflicts_with = "idl")]
        json: bool,
        /// Print the module's interface as IDL
        #[arg(long)]
        idl: bool,
    },
    /// Print the options that compilers need for programs with the C library
    ///
    /// For example: cc -o client client.c $(gridrpc config --cflags --libs)
    Config(config::PrintedFlags),
    /// Check whether grids will work on other machines, and what is wrong if not
    ///
    /// Starts an agent on each host as a grid would, all at once, examines the host, measures the connection, and
    /// starts workers. Problems are printed with what to do about them; the exit status is 0 if there are none.
    Doctor(doctor::command::Options),
    /// Start native workers for a client (internal)
    #[command(hide = true)]
    Spawner,
    /// Run functions as one of several MPI ranks (internal)
    #[command(hide = true)]
    Rank {
        /// Socket or addresses of the worker that started it
        place: OsString,
    },
    /// Run workers on this host for a client elsewhere; launchers start it
    ///
    /// The agent reads one line from standard input, the ticket that the client has made for it. It then connects
    /// to the client, runs workers, and ends when the client no longer needs them or is gone.
    Agent {
        /// Read the ticket from FILE instead, and remove FILE
        #[arg(long, value_name = "FILE")]
        ticket: Option<PathBuf>,
        /// How long to wait for a missing FILE
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        patience: u64,
        /// Number of processors to use [default: all of the host]
        #[arg(long, value_name = "N")]
        processors: Option<usize>,
    },
    /// Keep a grid and results on this machine under a name, for Python programs that come and go
    ///
    /// `gridrpc session start NAME --config grid.toml --limit 8h` starts a process that holds the grid; programs
    /// attach to it by name, and their maps continue while they are away. `list`, `show NAME` and `stop NAME` look
    /// after it.
    Session(session::Options),
    /// Offer functions to many users, on this machine or on a cluster behind it
    ///
    /// A server runs functions of modules for users of this machine and, with certificates, of others. Programs call
    /// them by name and learn their interfaces at run time.
    Server(server::Options),
    /// Run a directory of servers, which helps clients to choose among them, or show what one knows
    ///
    /// Servers announce their functions and their load to a directory. Clients ask it which servers offer a function,
    /// and call the servers directly.
    Directory(directory::Options),
    /// Show what a running grid does: workers, calls, queue, functions and hosts
    ///
    /// Shows a grid that one of your programs has open on this machine, once per second, until the grid ends or you
    /// press q. In a pipe, prints a line per second.
    Top(top::Options),
    /// Manage certificates of servers and their users
    ///
    /// `init` creates an authority. Users run `request` on their machines, and the authority runs `sign`; or the
    /// authority makes a one-time `token`. `revoke` takes effect on running servers at once.
    Ca(ca::Options),
    /// Print the job script that a server's batch system would get, and submit nothing
    ///
    /// A dry run: no job is submitted, no file is written, and the batch system is not asked. Of a server with
    /// request = "direct" or "step" it prints the srun command that would be run.
    Script(script::Options),
    /// Print what a shell needs to complete commands and options
    ///
    /// For example, in ~/.bashrc: source <(gridrpc completion bash)
    Completion(completion::Options),
}

fn dialect(name: &str) -> Result<Dialect, String> {
    Dialect::named(name).ok_or_else(|| "there are `gridrpc` and `ninf-g`".to_owned())
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            // If this fails too, there is nowhere to report it.
            let _ = writeln!(std::io::stderr(), "gridrpc: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Spawner => return serve().map(|()| ExitCode::SUCCESS),
        Command::Rank { place } => {
            default_signals()?;
            return Ok(run_rank(&place).map(|()| ExitCode::SUCCESS)?);
        }
        Command::Agent { ticket, patience, processors } => {
            let patience = Duration::from_secs(patience);
            let options = gridrpc_agent::Options { ticket, patience, processors };
            return Ok(gridrpc_agent::run(&options).map(|()| ExitCode::SUCCESS)?);
        }
        // It has agents to stop, so a signal must not end it.
        Command::Doctor(options) => return Ok(doctor::command::run(&options)?),
        Command::Top(options) => return Ok(top::run(&options).map(|()| ExitCode::SUCCESS)?),
        Command::Server(options) => {
            let text = server::run(&options)?;
            let mut output = std::io::stdout().lock();
            output.write_all(text.as_bytes()).and_then(|()| output.flush())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Directory(options) => {
            let text = directory::run(options)?;
            let mut output = std::io::stdout().lock();
            output.write_all(text.as_bytes()).and_then(|()| output.flush())?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Session(options) => return Err(session::become_program(&options).into()),
        _ => {}
    }
    // If the reader of the output closes it, end this program by SIGPIPE as usual.
    // SAFETY: no handler is set.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl)? };
    let text = text_of(command)?;
    let mut output = std::io::stdout().lock();
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.map_err(|error| format!("could not write to standard output: {error}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The output of a command after it has finished.
fn text_of(command: Command) -> Result<String, Failure> {
    match command {
        Command::Compile {
            file,
            output,
            keep_source,
            check,
            list,
            makefile,
            dialect,
            compiler,
            linker,
            flags_given,
            made,
            arguments,
        } => {
            if check {
                return compile::read(&file, dialect, true)
                    .map(|_| String::new())
                    .map_err(Into::into);
            }
            if list {
                return names_in(&file);
            }
            if makefile {
                // Warnings appear when the makefile runs.
                let module = compile::read(&file, dialect, false)?;
                let options = &arguments;
                let source = makefile::Source { file: &file, is_made: made, dialect, options };
                return Ok(makefile::makefile(&module, source)?);
            }
            let given = CompilerOptions { compiler, linker, arguments, flags_given };
            let options = compile::Options { folder: output, keep_source, dialect, given };
            let module = compile::compile(&file, &options)?;
            Ok(format!("{}\n", module.display()))
        }
        Command::Register { file, quiet } => register(&file).map(|text| unless(quiet, text)),
        Command::Unregister { module, quiet } => {
            unregister(&module).map(|text| unless(quiet, text))
        }
        Command::List { server: None, json, .. } => list(json),
        Command::List { server: Some(server), shared: true, json } => {
            Ok(server_query::shared_names(&server, json)?)
        }
        Command::List { server: Some(server), json, .. } => Ok(server_query::list(&server, json)?),
        Command::Describe { name, server, json, idl } => {
            describe_one(&name, server.as_deref(), json, idl)
        }
        Command::Config(wanted) => Ok(config::describe(wanted)?),
        Command::Ca(options) => Ok(ca::run(options)?),
        Command::Script(options) => Ok(script::print(&options)?),
        Command::Completion(options) => Ok(completion::script(options, &Arguments::command())),
        Command::Spawner
        | Command::Rank { .. }
        | Command::Agent { .. }
        | Command::Directory(_)
        | Command::Doctor(_)
        | Command::Session(_)
        | Command::Server(_)
        | Command::Top(_) => Ok(String::new()),
    }
}

/// The text, or nothing with `quiet`.
fn unless(quiet: bool, text: String) -> String {
    if quiet { String::new() } else { text }
}

fn names_in(file: &std::path::Path) -> Result<String, Failure> {
    let module = compile::read(file, Dialect::default(), true)?;
    let functions = module.functions.iter().map(|function| &function.name);
    let names = functions.chain(module.classes.iter().map(|class| &class.name));
    Ok(names.map(|name| format!("{name}\n")).collect())
}

fn register(file: &std::path::Path) -> Result<String, Failure> {
    let (name, before) = catalogue::register(file)?;
    let mut text = format!("registered module {name}\n");
    if let Some(before) = before {
        let _ = writeln!(text, "in place of {}", before.display());
    }
    Ok(text)
}

fn unregister(module: &str) -> Result<String, Failure> {
    let file = catalogue::unregister(module)?;
    let file = file.display();
    Ok(format!("module {module} is no longer registered; its file is still {file}\n"))
}

fn list(as_json: bool) -> Result<String, Failure> {
    let registered = catalogue::list()?;
    if as_json {
        let one = |entry: &catalogue::Registered| match &entry.module {
            Ok(module) => {
                describe::json_of_module(&module.interface, &module.path.display().to_string())
            }
            Err(error) => json!({
                "module": entry.name,
                "file": entry.file.display().to_string(),
                "error": error.to_string(),
            }),
        };
        let all: Vec<_> = registered.iter().map(one).collect();
        return Ok(serde_json::to_string_pretty(&all)? + "\n");
    }
    if registered.is_empty() {
        return Ok("no modules are registered; `gridrpc register FILE` registers one\n".to_owned());
    }
    let line = |entry: catalogue::Registered| match &entry.module {
        Ok(module) => {
            let interface = &module.interface;
            let (functions, classes) = (interface.functions.len(), interface.classes.len());
            let file = entry.file.display();
            format!("{}  {functions} functions, {classes} classes  {file}\n", entry.name)
        }
        Err(error) => format!("{}  cannot be used: {error}\n", entry.name),
    };
    Ok(registered.into_iter().map(line).collect())
}

/// Describes a module or function. `server`: the server that offers it; none: this machine has it.
fn describe_one(
    name: &str,
    server: Option<&str>,
    as_json: bool,
    as_idl: bool,
) -> Result<String, Failure> {
    let is_file = server.is_none() && name.ends_with(".so") && std::path::Path::new(name).is_file();
    let (module_name, function) = match name.split_once('/') {
        Some((module, function)) if !is_file => (module, Some(function)),
        _ => (name, None),
    };
    let (interface, place) = if let Some(server) = server {
        (server_query::module(server, name)?, server.to_owned())
    } else {
        let module = if is_file {
            Arc::new(read_interface(name.as_ref())?)
        } else {
            let mut places = catalogue::default_places();
            places.push(".".into());
            ModuleSearch::new(places).find(module_name)?
        };
        (Arc::clone(&module.interface), module.path.display().to_string())
    };
    let function = match function {
        None => None,
        Some(function) => {
            Some(interface.function(function).ok_or_else(|| SearchError::NoFunction {
                module: interface.name.clone(),
                function: function.to_owned(),
                known: interface.functions.iter().map(|f| f.name.clone()).collect(),
            })?)
        }
    };
    if as_idl {
        return Ok(interface.to_string());
    }
    if as_json {
        let value = match function {
            Some(function) => describe::json_of_function(function),
            None => describe::json_of_module(&interface, &place),
        };
        return Ok(serde_json::to_string_pretty(&value)? + "\n");
    }
    let named = name.split_once('/').map(|(_, name)| name).zip(function);
    Ok(describe::text(&interface, &place, named))
}

/// Enters the workers' directory. Native workers need no other preparation, as they find their modules
/// themselves.
fn enter_directory(preparation: &Prepare<'_>) -> Result<(), Failure> {
    let directory = preparation.directory;
    if directory.is_empty() {
        return Ok(());
    }
    std::env::set_current_dir(directory)
        .map_err(|error| format!("cannot run in `{directory}`: {error}").into())
}

/// Restores default actions of signals. When a function corrupts its stack or memory, the worker should end
/// by the signal itself; Rust's handler would turn a stack overflow that hits the guard page, and only that,
/// into SIGABRT.
fn default_signals() -> Result<(), Failure> {
    for number in [Signal::SIGSEGV, Signal::SIGBUS] {
        // SAFETY: no handler is set.
        unsafe { signal(number, SigHandler::SigDfl)? };
    }
    Ok(())
}

fn serve() -> Result<(), Failure> {
    default_signals()?;
    // SAFETY: this process has one thread, so its child may do anything.
    let fork = || match unsafe { libc::fork() } {
        0 => Ok(None),
        pid if pid > 0 => Ok(Some(pid)),
        _ => Err(std::io::Error::last_os_error().into()),
    };
    match Spawner::new()?.run(enter_directory, fork)? {
        Role::Worker(connection) => Ok(serve_native(connection)?),
        Role::Done => Ok(()),
    }
}

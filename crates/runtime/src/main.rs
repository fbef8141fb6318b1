//! The `gridrpc` program.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use gridrpc_runtime::client::invoke::{ModuleSearch, SearchError};
use gridrpc_runtime::tool::{catalogue, compile, describe, makefile};
use gridrpc_runtime::typed::read_interface;
use gridrpc_runtime::worker::{Role, Spawner, builtin_names, serve_native};
use gridrpc_wire::Prepare;
use nix::sys::signal::{SigHandler, Signal, signal};
use serde_json::json;

/// Call numerical code on other cores and machines as if it were local.
///
/// Compiles modules from interface descriptions (IDL), keeps this machine's catalogue of them, and
/// is what native workers run. Programs make calls through the C, Fortran and Python APIs.
#[derive(Debug, Parser)]
#[command(version, about)]
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
        /// The folder that the module goes to
        #[arg(short, long, default_value = ".")]
        output: PathBuf,
        /// Keep the source of the stub beside the module
        #[arg(long)]
        keep_source: bool,
        /// Only look for errors
        #[arg(long, conflicts_with_all = ["list", "makefile"])]
        check: bool,
        /// Print the names of the functions and classes, and compile nothing
        #[arg(long, conflicts_with = "makefile")]
        list: bool,
        /// Print a makefile for the module and its stubs, and compile nothing
        #[arg(long)]
        makefile: bool,
        /// Further arguments for the compiler and the linker, behind `--`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Put a module into this machine's catalogue
    Register {
        /// The module's file
        file: PathBuf,
    },
    /// Take a module out of the catalogue
    Unregister {
        /// The module's name
        module: String,
    },
    /// List the modules of the catalogue
    List {
        /// For programs
        #[arg(long)]
        json: bool,
    },
    /// Describe a module or a function
    Describe {
        /// `module`, `module/function`, `module/Class.method`, or a module's file
        name: String,
        /// For programs
        #[arg(long, conflicts_with = "idl")]
        json: bool,
        /// The module's interface as IDL
        #[arg(long)]
        idl: bool,
    },
    /// List the functions that every native worker has
    Functions,
    /// Start native workers for a client; not for people
    #[command(hide = true)]
    Spawner,
}

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Compile { file, output, keep_source, check, list, makefile, arguments } => {
            if check {
                compile::read(&file).map(drop).map_err(Into::into)
            } else if list || makefile {
                print_of(&file, makefile)
            } else {
                compile_file(&file, compile::Options { folder: output, keep_source, arguments })
            }
        }
        Command::Register { file } => register(&file),
        Command::Unregister { module } => unregister(&module),
        Command::List { json } => list(json),
        Command::Describe { name, json, idl } => describe_one(&name, json, idl),
        Command::Functions => {
            builtin_names().iter().for_each(|name| println!("{name}"));
            Ok(())
        }
        Command::Spawner => serve(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gridrpc: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compile_file(file: &std::path::Path, options: compile::Options) -> Result<(), Failure> {
    let module = compile::compile(file, &options)?;
    println!("{}", module.display());
    Ok(())
}

fn print_of(file: &std::path::Path, as_makefile: bool) -> Result<(), Failure> {
    let module = compile::read(file)?;
    if as_makefile {
        print!("{}", makefile::makefile(&module, &file.display().to_string()));
    } else {
        module.functions.iter().for_each(|function| println!("{}", function.name));
        module.classes.iter().for_each(|class| println!("{}", class.name));
    }
    Ok(())
}

fn register(file: &std::path::Path) -> Result<(), Failure> {
    let (name, before) = catalogue::register(file)?;
    println!("registered module {name}");
    if let Some(before) = before {
        println!("in the place of {}", before.display());
    }
    Ok(())
}

fn unregister(module: &str) -> Result<(), Failure> {
    let file = catalogue::unregister(module)?;
    println!("module {module} is no longer registered; its file is still {}", file.display());
    Ok(())
}

fn list(as_json: bool) -> Result<(), Failure> {
    let registered = catalogue::list()?;
    if as_json {
        let one = |entry: &catalogue::Registered| match &entry.module {
            Ok(module) => describe::json_of_module(module),
            Err(error) => json!({
                "module": entry.name,
                "file": entry.file.display().to_string(),
                "error": error.to_string(),
            }),
        };
        let all: Vec<_> = registered.iter().map(one).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    if registered.is_empty() {
        println!("no modules are registered; `gridrpc register FILE` registers one");
    }
    for entry in registered {
        match &entry.module {
            Ok(module) => {
                let interface = &module.interface;
                let (functions, classes) = (interface.functions.len(), interface.classes.len());
                let file = entry.file.display();
                println!("{}  {functions} functions, {classes} classes  {file}", entry.name);
            }
            Err(error) => println!("{}  cannot be used: {error}", entry.name),
        }
    }
    Ok(())
}

fn describe_one(name: &str, as_json: bool, as_idl: bool) -> Result<(), Failure> {
    let is_file = name.ends_with(".so") && std::path::Path::new(name).is_file();
    let (module, function) = if is_file {
        (std::sync::Arc::new(read_interface(name.as_ref())?), None)
    } else {
        let mut places = catalogue::default_places();
        places.push(".".into());
        let (module, function) = match name.split_once('/') {
            Some((module, function)) => (module, Some(function)),
            None => (name, None),
        };
        (ModuleSearch::new(places).find(module)?, function)
    };
    let function = match function {
        None => None,
        Some(function) => {
            Some(module.interface.function(function).ok_or_else(|| SearchError::NoFunction {
                module: module.interface.name.clone(),
                function: function.to_owned(),
                known: module.interface.functions.iter().map(|f| f.name.clone()).collect(),
            })?)
        }
    };
    if as_idl {
        print!("{}", module.interface);
    } else if as_json {
        let value = match function {
            Some(function) => describe::json_of_function(function),
            None => describe::json_of_module(&module),
        };
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        let named = name.split_once('/').map(|(_, name)| name).zip(function);
        print!("{}", describe::text(&module, named));
    }
    Ok(())
}

/// Native workers find their modules by themselves; where they run is all that there is to prepare.
fn enter_directory(preparation: &Prepare<'_>) -> Result<(), Failure> {
    let directory = preparation.directory;
    if directory.is_empty() {
        return Ok(());
    }
    std::env::set_current_dir(directory)
        .map_err(|error| format!("cannot run in `{directory}`: {error}").into())
}

/// What a function does to its stack or memory ends its worker by the signal that it raised. Rust
/// would make SIGABRT of an overflow that hits the page below the stack, and only of that one.
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

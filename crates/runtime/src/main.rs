//! The `gridrpc` program.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use gridrpc_runtime::worker::{Role, Spawner, builtin_names, serve_native};
use gridrpc_wire::Prepare;

/// Call numerical code on other cores and machines as if it were local.
///
/// The Python package `gridrpc` opens grids and makes calls; this program is what its native
/// workers run, and tells what they offer.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the functions that every native worker has
    Functions,
    /// Start native workers for a client; not for people
    #[command(hide = true)]
    Spawner,
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Functions => {
            builtin_names().iter().for_each(|name| println!("{name}"));
            ExitCode::SUCCESS
        }
        Command::Spawner => spawner(),
    }
}

fn spawner() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gridrpc: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: this process has one thread, so its child may do anything.
    let fork = || match unsafe { libc::fork() } {
        0 => Ok(None),
        pid if pid > 0 => Ok(Some(pid)),
        _ => Err(std::io::Error::last_os_error().into()),
    };
    let nothing_to_prepare = |_: &Prepare<'_>| Ok::<(), Box<dyn std::error::Error>>(());
    match Spawner::new()?.run(nothing_to_prepare, fork)? {
        Role::Worker(connection) => Ok(serve_native(connection)?),
        Role::Done => Ok(()),
    }
}

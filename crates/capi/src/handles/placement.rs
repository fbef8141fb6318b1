//! Placement of calls by directories: each call goes to the server with the least predicted time, and to another one if
//! that has not begun it.

use std::sync::Arc;
use std::time::Duration;

use gridrpc_idl::Mode;
use gridrpc_invoke::size_of_call;
use gridrpc_lookup::{Directories, Work};

use super::function::CallDefaults;
use crate::call::arguments::{Arguments, take};
use crate::call::counted::CountedCall;
use crate::call::function::Function;
use crate::config::WaitTime;
use crate::context::Context;
use crate::context::call_grid::CallGrid;
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// How long a new connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Where a call runs.
#[derive(Debug)]
pub struct CallTarget {
    /// The grid.
    pub grid: Arc<CallGrid>,
    /// The function there.
    pub function: Arc<Function>,
    /// The choice; none: the program names the server.
    pub counted: Option<Box<CountedCall>>,
}

/// A call whose server is to be chosen.
struct ServerChoice<'p> {
    context: &'p Context,
    defaults: &'p CallDefaults,
    directories: &'p Arc<Directories>,
    signature: String,
    work: Work,
    /// By `CalcOrder`.
    operations: Option<f64>,
    tried: Vec<String>,
}

/// Runs a call at its server. `runs_again`: a call that a server has begun may run a second time.
///
/// # Safety
/// The arguments match the interface in type and length.
pub unsafe fn place<T>(
    context: &Context,
    defaults: &CallDefaults,
    function: &Arc<Function>,
    runs_again: bool,
    arguments: Arguments<'_>,
    run: impl Fn(CallTarget) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(directories) = &defaults.directory else {
        let (grid, function) = (Arc::clone(&defaults.grid), Arc::clone(function));
        return run(CallTarget { grid, function, counted: None });
    };
    let interface = function.target.interface();
    // SAFETY: guaranteed by the caller.
    let size = unsafe { size_of_call(interface, &take(function, arguments)?.given) };
    let operations = size.operations.filter(|operations| *operations > 0.0);
    let work = Work {
        bytes_in: size.bytes_in as f64,
        bytes_out: size.bytes_out as f64,
        operations: operations.unwrap_or(1.0),
    };
    let mut placing = ServerChoice {
        context,
        defaults,
        directories,
        signature: interface.signature(),
        work,
        operations,
        tried: Vec::new(),
    };
    // A second run would lack the original value of an argument that the function changes.
    let is_kept = interface.parameters.iter().all(|parameter| parameter.mode != Mode::InOut);
    let runs_again = is_kept && (runs_again || interface.idempotent);
    let mut failure = None;
    loop {
        let Some((address, place)) = placing.next(&mut failure)? else {
            return Err(failure.unwrap_or_else(|| placing.none_left()));
        };
        match run(place) {
            Err(error) if has_not_begun(&error) || runs_again && is_lost(&error) => {
                placing.leave(address, &error);
                failure = Some(error);
            }
            ended => return ended,
        }
    }
}

/// Whether the server has not begun a call that has failed.
fn has_not_begun(failure: &Failure) -> bool {
    matches!(failure.code, ErrorCode::ServerNotFound | ErrorCode::RpcRefused)
}

/// Whether the server was lost while it ran a call.
fn is_lost(failure: &Failure) -> bool {
    failure.code == ErrorCode::CommunicationFailed
}

impl ServerChoice<'_> {
    /// The best server that has not been tried; none: no server is left.
    fn next(
        &mut self,
        failure: &mut Option<Failure>,
    ) -> Result<Option<(String, CallTarget)>, Failure> {
        let name = &self.defaults.name;
        loop {
            let has_cost = self.operations.is_some();
            let chosen = self.directories.choose(
                name,
                &self.signature,
                &self.work,
                has_cost,
                &self.tried,
            )?;
            let Some(chosen) = chosen else { return Ok(None) };
            let address = chosen.address.clone();
            match self.at(&address) {
                Ok((grid, function)) => {
                    let counted =
                        CountedCall::begin(self.directories, chosen, name, self.operations);
                    let counted = Some(Box::new(counted));
                    return Ok(Some((address, CallTarget { grid, function, counted })));
                }
                Err(error) => {
                    self.leave(address, &error);
                    *failure = Some(error);
                }
            }
        }
    }

    /// The function at a server.
    fn at(&self, address: &str) -> Result<(Arc<CallGrid>, Arc<Function>), Failure> {
        let (name, context) = (&self.defaults.name, self.context);
        let url = self.directories.server_url(address);
        let resolved = context.settings().function_at(&context.grids, Some(&url), name)?;
        let grid = resolved.grid;
        if grid.is_lost() {
            let detail = format!("{name}: the connection to {address} is lost");
            return Err(Failure::new(ErrorCode::ServerNotFound, detail));
        }
        context.provide_workers(name, &grid, 0, None, WaitTime::For(CONNECT))?;
        if resolved.item.target.interface().signature() != self.signature {
            // The directory is behind, or lies.
            let detail = format!("{name}: {address} has another interface");
            return Err(Failure::new(ErrorCode::RpcRefused, detail));
        }
        Ok((grid, resolved.item))
    }

    /// Leaves a server out of this call, and for a while of all.
    fn leave(&mut self, address: String, failure: &Failure) {
        self.directories.refuse(&address);
        if failure.code != ErrorCode::RpcRefused {
            // The next call connects again.
            let url = self.directories.server_url(&address);
            self.context.settings().forget(&url);
            self.context.grids.forget(&url);
        }
        self.tried.push(address);
    }

    fn none_left(&self) -> Failure {
        let detail = format!(
            "{}: no server takes a call now: all are full, silent or lost; `gridrpc directory why {0}` shows them",
            self.defaults.name
        );
        Failure::new(ErrorCode::RpcRefused, detail)
    }
}

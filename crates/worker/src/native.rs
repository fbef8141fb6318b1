//! Worker without Python: runs only functions of modules.

use std::os::fd::OwnedFd;

use gridrpc_link::LinkError;
use gridrpc_link::payload::Payload;
use gridrpc_sys::monotonic_ns;
use gridrpc_wire::{FunctionForm, RemoteError, Stamps};

use crate::link::{Answer, Job, NextStep, WorkerLink};
use crate::module::Modules;

/// Serves a client over this connection until it is gone.
///
/// # Errors
/// When the client breaks the protocol.
pub fn serve(connection: OwnedFd) -> Result<(), LinkError> {
    let mut link = WorkerLink::open(connection, "native")?;
    let program = || std::env::current_exe().map_err(|error| error.to_string());
    let mut modules = Modules::new(Box::new(program));
    loop {
        match link.next_turn()? {
            NextStep::Run(job) if job.function.form == FunctionForm::Library => {
                if !modules.serve(&mut link, job)? {
                    return Ok(());
                }
            }
            NextStep::Run(job) => refuse(&mut link, job)?,
            // This worker makes no objects of shared data.
            NextStep::LetGo(_) => {}
            NextStep::End => return Ok(()),
        }
    }
}

/// Rejects a call of a function that is in no module.
fn refuse(link: &mut WorkerLink, job: Job) -> Result<(), LinkError> {
    let Job { call, function, sections, received, .. } = job;
    let now = monotonic_ns();
    let stamps = Stamps { received, calc_in: now, calc_out: now, ..Stamps::default() };
    let message =
        format!("`{}` is in no compiled module, and native workers run no others", function.name);
    let error = RemoteError::FunctionNotFound.name();
    let payload = Payload::default();
    link.answer(
        call,
        stamps,
        sections,
        Answer::Raised { error, message: &message, trace: "", payload },
    )
}

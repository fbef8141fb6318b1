//! Errors of calls and of lookups: the codes of `grpc.h`, with details.

use std::fmt::Write;

use gridrpc_client::{DetachedError, GridError};
use gridrpc_core::{Cause, End, Loss, Refusal};
use gridrpc_invoke::{DetachError, LandError, PrepareError, SearchError};
use gridrpc_lookup::LookupError;
use gridrpc_wire::RemoteError;
use nix::sys::signal::Signal;

use crate::errors::ErrorCode;
use crate::failure::Failure;

/// The failure of a call that ended without an answer.
pub fn ended(function: &str, end: &End) -> Failure {
    match end {
        End::Cancelled => {
            Failure::new(ErrorCode::Canceled, format!("{function}: it was cancelled"))
        }
        End::DeadlineExceeded(worker) => {
            let place = worker.map_or("while it waited for a worker".to_owned(), |worker| {
                format!("on worker {worker}, which was ended unless it had stopped by itself")
            });
            let detail = format!("{function}: its time limit was reached {place}");
            Failure::new(ErrorCode::Timeout, detail)
        }
        End::RunLimit(limit) => Failure::new(ErrorCode::Timeout, format!("{function}: {limit}")),
        End::WorkerLost(loss) => Failure::new(
            ErrorCode::CommunicationFailed,
            format!("{function}: {}", lost_in_call(loss)),
        ),
        End::NoWorkers(loss) => no_workers(function, loss),
        End::NoServer(server, loss) => no_server(function, server, loss),
        End::TooManyCores(why) => {
            Failure::new(ErrorCode::ServerNotFound, format!("{function}: {why}"))
        }
        End::NoFittingHost(why) => {
            Failure::new(ErrorCode::ServerNotFound, format!("{function}: {why}"))
        }
        // Calls from C do not take other calls as arguments.
        End::DependencyFailed(call) => Failure::new(
            ErrorCode::Other,
            format!("{function}: {call:?}, which it needs, has ended without a result"),
        ),
        End::NestedCallLimit(limit) => {
            Failure::new(ErrorCode::Other, format!("{function}: {limit}"))
        }
        End::NotGathered(why) => Failure::new(ErrorCode::Other, format!("{function}: {why}")),
        End::Closed => Failure::new(
            ErrorCode::NotInitialized,
            format!("{function}: the library was finalized meanwhile"),
        ),
    }
}

fn no_workers(what: &str, loss: &Loss) -> Failure {
    let detail = format!("{what}: no worker could be started: {}", lost(loss));
    Failure::new(ErrorCode::ServerNotFound, detail)
}

fn no_server(what: &str, server: &str, loss: &Loss) -> Failure {
    let lost = lost(loss);
    let detail = format!("{what}: no worker of server {server:?} could be started: {lost}");
    Failure::new(ErrorCode::ServerNotFound, detail)
}

/// How the worker of a running function was lost, and the possible consequences.
fn lost_in_call(loss: &Loss) -> String {
    lost_with(loss, hint(&loss.cause))
}

/// How a worker was lost, in full detail.
fn lost(loss: &Loss) -> String {
    lost_with(loss, None)
}

fn lost_with(loss: &Loss, hint: Option<&str>) -> String {
    let mut text = loss.to_string();
    if let Cause::Signal { signal, .. } = loss.cause
        && let Some(name) = signal_name(signal)
    {
        let _ = write!(text, " ({name})");
    }
    if let Some(hint) = hint {
        let _ = write!(text, "\n  hint: {hint}");
    }
    text + &last_lines(&loss.stderr)
}

/// The last lines of a worker's standard error.
fn last_lines(stderr: &str) -> String {
    let mut text = String::new();
    if !stderr.is_empty() {
        text += "\n  the end of its standard error, earlier calls included:";
        for line in stderr.lines() {
            let _ = write!(text, "\n    {line}");
        }
    }
    text
}

fn signal_name(number: u32) -> Option<&'static str> {
    Signal::try_from(i32::try_from(number).ok()?).ok().map(Signal::as_str)
}

fn hint(cause: &Cause) -> Option<&'static str> {
    let signal = match cause {
        Cause::Exit(_) => {
            return Some("the function ended its process, by exit perhaps; it has to return");
        }
        Cause::MemoryLimit(_) => {
            return Some("use smaller arguments, or raise the limit");
        }
        Cause::Signal { out_of_memory: true, .. } => {
            return Some("memory ran out: use fewer workers, or smaller arguments");
        }
        Cause::Signal { signal, .. } => Signal::try_from(i32::try_from(*signal).ok()?).ok()?,
        Cause::Failed(_) | Cause::Shortage(_) => return None,
    };
    match signal {
        Signal::SIGKILL => Some("somebody ended it, or memory ran out"),
        Signal::SIGXCPU => Some("its limit of processor time was reached"),
        Signal::SIGXFSZ => {
            Some("the function wrote more to a file than is allowed (see `ulimit -f`)")
        }
        _ => cause.crash(),
    }
}

/// The failure of a call that its worker could not complete. `trace`: if the function ended the process, the
/// end of its standard error.
pub fn raised(function: &str, error: &str, message: &str, trace: &str) -> Failure {
    use RemoteError::{
        CallbackFailed, FunctionExited, FunctionNotFound, ItemLost, ModuleError, OutOfMemory,
        ProtocolError, RanksLost,
    };
    let (code, kind) = match RemoteError::from_name(error) {
        Some(FunctionNotFound | ModuleError) => (ErrorCode::FunctionNotFound, ""),
        Some(ProtocolError | RanksLost | ItemLost) => (ErrorCode::CommunicationFailed, ""),
        Some(FunctionExited) => {
            let detail = format!("{function}: {message}{}", last_lines(trace));
            return Failure::new(ErrorCode::CommunicationFailed, detail);
        }
        Some(OutOfMemory) => (ErrorCode::Other, "the worker is out of memory: "),
        Some(CallbackFailed) => (ErrorCode::Other, "a callback failed: "),
        Some(RemoteError::ArgumentError) => (ErrorCode::Other, ""),
        Some(RemoteError::InterfaceChanged) => {
            (ErrorCode::FunctionNotFound, "its interface has changed: ")
        }
        Some(RemoteError::LimitReached | RemoteError::NotPermitted) => (ErrorCode::RpcRefused, ""),
        Some(RemoteError::DeadlineExceeded) => (ErrorCode::Timeout, ""),
        Some(RemoteError::CallNotFound) => (ErrorCode::InvalidSessionId, ""),
        Some(RemoteError::DataNotFound) => (ErrorCode::Other, ""),
        Some(RemoteError::CallLost) => (ErrorCode::CommunicationFailed, ""),
        Some(RemoteError::CallCancelled) => (ErrorCode::Canceled, ""),
        // The type of an exception.
        None => return Failure::other(format!("{function}: {error}: {message}")),
    };
    Failure::new(code, format!("{function}: {kind}{message}"))
}

/// The failure of an operation that the grid refused.
pub fn refused(what: &str, error: &GridError) -> Failure {
    let code = match error {
        GridError::Refused(Refusal::NoWorkers(loss)) => return no_workers(what, loss),
        GridError::Refused(Refusal::NoServer(server, loss)) => {
            return no_server(what, server, loss);
        }
        GridError::UnknownServer { .. }
        | GridError::NotTrusted { .. }
        | GridError::OnlyOffered { .. }
        | GridError::OfferedElsewhere { .. }
        | GridError::Refused(Refusal::TooManyCores(_) | Refusal::NoFittingHost(_)) => {
            ErrorCode::ServerNotFound
        }
        GridError::TooFewWorkers(loss) => {
            let detail = format!("{what}: too few workers could be started: {}", lost(loss));
            return Failure::new(ErrorCode::ServerNotFound, detail);
        }
        GridError::Refused(Refusal::ReservedLost(loss)) => {
            let detail =
                format!("{what}: the object is lost with its worker: {}", lost_in_call(loss));
            return Failure::new(ErrorCode::CommunicationFailed, detail);
        }
        GridError::Refused(Refusal::Released) => ErrorCode::InvalidObjectHandle,
        GridError::Refused(Refusal::Closed) | GridError::Forked => ErrorCode::NotInitialized,
        GridError::Refused(Refusal::UnknownBlob(_) | Refusal::Quota { .. })
        | GridError::System { .. }
        | GridError::Config(_)
        | GridError::Limits(_)
        | GridError::TooDeep(_) => ErrorCode::Other,
    };
    Failure::new(code, format!("{what}: {error}"))
}

/// The failure of an object whose worker is lost.
pub fn object_lost(class: &str, loss: &Loss) -> Failure {
    let detail = format!("{class}: the object is lost with its worker: {}", lost_in_call(loss));
    Failure::new(ErrorCode::CommunicationFailed, detail)
}

impl From<PrepareError> for Failure {
    fn from(error: PrepareError) -> Self {
        match error {
            PrepareError::Interface(error) => error.into(),
            PrepareError::Limit(_) => Failure::new(ErrorCode::RpcRefused, error.to_string()),
            PrepareError::Argument(_) | PrepareError::System { .. } => {
                Failure::other(error.to_string())
            }
        }
    }
}

impl From<LandError> for Failure {
    fn from(error: LandError) -> Self {
        Failure::other(error.to_string())
    }
}

impl From<DetachError> for Failure {
    fn from(error: DetachError) -> Self {
        let code = match &error {
            DetachError::Server(DetachedError::Failed(failed)) => {
                return raised("the server", &failed.error, &failed.message, &failed.trace);
            }
            DetachError::NoServer(_)
            | DetachError::Server(DetachedError::Unreachable(_))
            | DetachError::Grid(GridError::UnknownServer { .. }) => ErrorCode::ServerNotFound,
            DetachError::Server(
                DetachedError::Unanswered { .. } | DetachedError::Malformed { .. },
            ) => ErrorCode::CommunicationFailed,
            DetachError::Argument(_)
            | DetachError::Method(_)
            | DetachError::Dependent(_)
            | DetachError::Ended(_)
            | DetachError::System { .. }
            | DetachError::Grid(_)
            | DetachError::Server(DetachedError::NotAnId { .. } | DetachedError::TooLarge { .. }) => {
                ErrorCode::Other
            }
        };
        Failure::new(code, error.to_string())
    }
}

impl From<LookupError> for Failure {
    fn from(error: LookupError) -> Self {
        let code = match error {
            LookupError::NotOffered(_) => ErrorCode::FunctionNotFound,
            _ => ErrorCode::ServerNotFound,
        };
        Failure::new(code, error.to_string())
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        let code = match error {
            SearchError::Unanswered { .. } | SearchError::Server(_) => ErrorCode::ServerNotFound,
            SearchError::Name(_)
            | SearchError::NoModule { .. }
            | SearchError::NoFunction { .. }
            | SearchError::NotFound { .. }
            | SearchError::WithoutInterface { .. }
            | SearchError::Changed { .. }
            | SearchError::Module(_)
            | SearchError::Grid(_) => ErrorCode::FunctionNotFound,
        };
        Failure::new(code, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn loss(cause: Cause) -> Loss {
        Loss { worker: 3, pid: 42, host: "here".into(), cause, stderr: "one\ntwo".into() }
    }

    #[test]
    fn a_loss_is_reported_in_all_detail() {
        let cause = Cause::Signal { signal: 11, out_of_memory: false };
        let Failure { code, detail } = ended("m/f", &End::WorkerLost(Arc::new(loss(cause))));
        assert_eq!(code, ErrorCode::CommunicationFailed);
        for part in ["m/f", "worker 3", "42", "here", "SIGSEGV", "hint:", "\n    one\n    two"] {
            assert!(detail.contains(part), "{detail}");
        }
        let detail = lost_in_call(&loss(Cause::Exit(7)));
        assert!(detail.contains("status 7") && detail.contains("the function ended"), "{detail}");
        // A worker that never started has run no function.
        let none = ended("f", &End::NoWorkers(Arc::new(loss(Cause::Exit(7))))).detail;
        assert!(none.contains("status 7") && !none.contains("the function"), "{none}");
    }

    #[test]
    fn every_end_has_its_code() {
        let lost = || Arc::new(loss(Cause::Failed("why".into())));
        for (end, code) in [
            (End::Cancelled, ErrorCode::Canceled),
            (End::Closed, ErrorCode::NotInitialized),
            (End::DeadlineExceeded(None), ErrorCode::Timeout),
            (End::DeadlineExceeded(Some(1)), ErrorCode::Timeout),
            (End::NoWorkers(lost()), ErrorCode::ServerNotFound),
            (End::WorkerLost(lost()), ErrorCode::CommunicationFailed),
        ] {
            assert_eq!(ended("f", &end).code, code, "{end:?}");
        }
        assert_eq!(
            raised("f", "gridrpc.FunctionNotFound", "", "").code,
            ErrorCode::FunctionNotFound
        );
        for error in ["gridrpc.LimitReached", "gridrpc.NotPermitted"] {
            assert_eq!(raised("f", error, "", "").code, ErrorCode::RpcRefused, "{error}");
        }
        assert_eq!(raised("f", "ValueError", "bad", "line 3").detail, "f: ValueError: bad");
        let Failure { code, detail } = raised("f", "gridrpc.FunctionExited", "why", "one\ntwo");
        assert_eq!(code, ErrorCode::CommunicationFailed);
        assert!(
            detail.starts_with("f: why\n") && detail.ends_with("\n    one\n    two"),
            "{detail}"
        );
    }
}

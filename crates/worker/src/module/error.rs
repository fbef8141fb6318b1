//! Errors of module functions.

use std::fmt;

use gridrpc_idl::Function;
use gridrpc_link::LinkError;
use gridrpc_sys::host_name;
use gridrpc_wire::{Order, RemoteError, Value, WireError, encode_values};
use thiserror::Error;

use crate::module::raised::Raised;

/// Reason why a module function did not run or its result was not taken.
#[derive(Debug, Error)]
pub(super) enum CallError {
    /// The module cannot be loaded.
    #[error("{0}")]
    Module(String),
    /// The module has no such function.
    #[error("{0}")]
    NotFound(String),
    /// The arguments don't fit.
    #[error("{0}")]
    Arguments(String),
    /// There is no memory.
    #[error("no memory for {0}")]
    Memory(String),
    /// A callback has failed.
    #[error("a callback failed: {0}")]
    Callback(String),
    /// The function has thrown an exception.
    #[error("{0}")]
    Raised(Box<Raised>),
    /// The function has ended its process.
    #[error(
        "{words}{}the function ended its process with status {status} instead of returning",
        if words.is_empty() { "" } else { ": " }
    )]
    Exited { status: i32, words: String },
    /// The ranks for it are gone, or did not start.
    #[error("{0}")]
    Lost(Box<LostRanks>),
    /// The connection is no longer usable.
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl CallError {
    /// The error of a call whose number of values does not match the function's parameters.
    pub(super) fn misfit(function: &Function, came: usize) -> CallError {
        CallError::Arguments(format!(
            "`{}` has {} parameters, but {came} values came: the client has another version of the \
             module",
            function.name,
            function.parameters.len()
        ))
    }

    /// The type of the error, as clients see it.
    pub(super) fn kind(&self) -> &str {
        let error = match self {
            CallError::Raised(raised) => return &raised.kind,
            CallError::Exited { .. } => RemoteError::FunctionExited,
            CallError::Module(_) => RemoteError::ModuleError,
            CallError::NotFound(_) => RemoteError::FunctionNotFound,
            CallError::Arguments(_) => RemoteError::ArgumentError,
            CallError::Memory(_) => RemoteError::OutOfMemory,
            CallError::Callback(_) => RemoteError::CallbackFailed,
            CallError::Lost(_) => RemoteError::RanksLost,
            CallError::Link(_) => RemoteError::ProtocolError,
        };
        error.name()
    }
}

/// Ranks have ended, or could not be started.
#[derive(Debug)]
pub(crate) struct LostRanks {
    pub(super) what: String,
    pub(super) pid: Option<u32>,
    pub(super) status: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) stderr: String,
}

impl fmt::Display for LostRanks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        let said = self.stderr.trim_end();
        if said.is_empty() { Ok(()) } else { write!(f, "\n{said}") }
    }
}

impl LostRanks {
    /// A loss before there was a command.
    pub(super) fn at_start(what: String) -> CallError {
        let (pid, status, signal) = (None, None, None);
        CallError::Lost(Box::new(LostRanks { what, pid, status, signal, stderr: String::new() }))
    }

    /// Encodes the details of the failure: process, host, status, signal and standard error.
    pub(super) fn encode(&self) -> Result<Vec<u8>, WireError> {
        let number = |number: Option<i64>| number.map_or(Value::None, Value::Int);
        let values = [
            number(self.pid.map(i64::from)),
            Value::Text(host_name()),
            number(self.status.map(i64::from)),
            number(self.signal.map(i64::from)),
            Value::Text(self.stderr.clone()),
        ];
        let mut bytes = Vec::new();
        encode_values(&values, Order::NATIVE, &mut bytes)?;
        Ok(bytes)
    }
}

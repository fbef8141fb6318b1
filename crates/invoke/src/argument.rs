//! Arguments of a caller.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridrpc_client::{Hold, ResultArray};
use gridrpc_typed::Scalar;
use gridrpc_wire::{DType, Order};
use thiserror::Error;

use crate::limit_exceeded::LimitExceeded;
use crate::search_error::SearchError;

/// An array in the caller's memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its first element.
    pub start: *mut u8,
    /// Its length, bytes, if known; in C it is not.
    pub len: Option<usize>,
    /// Its dimensions, if known, in the order of the interface.
    pub shape: Option<Vec<u64>>,
    /// The byte order of its elements. Results are converted to it.
    pub order: Order,
}

/// An array in the shared data of a grid.
#[derive(Clone, Debug)]
pub struct SharedPart {
    /// The number of the shared data.
    pub blob: u64,
    /// The part that contains the elements.
    pub part: u32,
    /// Its length, bytes.
    pub len: usize,
    /// The type of its elements.
    pub dtype: DType,
    /// Its dimensions, in the order of the interface.
    pub shape: Vec<u64>,
}

/// An array that another call of the same grid returns.
#[derive(Clone, Debug)]
pub struct CallResult {
    /// The other call.
    pub call: Arc<Hold>,
    /// The binding's object for it.
    pub owner: Arc<dyn Any + Send + Sync>,
    /// The array.
    pub array: ResultArray,
    /// Its dimensions, in the order of the interface.
    pub shape: Vec<u64>,
    /// Whether its first index runs fastest.
    pub fortran: bool,
}

/// The caller's argument for one parameter.
#[derive(Clone, Debug)]
pub enum ArgumentValue {
    /// No argument: a work array, a size that follows from arrays, a result to be created.
    Absent,
    /// A number.
    Scalar(Scalar),
    /// An array of numbers.
    Array(Memory),
    /// An array of numbers in shared data.
    Shared(SharedPart),
    /// An array of numbers that another call returns.
    Result(CallResult),
    /// Strings, or names of files; one, or as many as the array has.
    Texts(Vec<Option<Vec<u8>>>),
    /// A callback.
    Callback,
}

/// An argument that does not match its parameter.
#[derive(Debug, Error)]
pub struct ArgumentError {
    /// The function.
    pub function: String,
    /// The parameter; empty if the error concerns all of them.
    pub parameter: String,
    /// The problem, and what to do.
    pub problem: String,
}

/// Reason why a call cannot be prepared.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// An argument does not match its parameter.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// Its server would refuse the call.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The interface of the function has changed at its server.
    #[error(transparent)]
    Interface(#[from] SearchError),
    /// The system refuses memory for an argument, or its file.
    #[error("{}", sentence(.function, .parameter, .path.as_deref(), .error))]
    System {
        /// The function.
        function: String,
        /// The parameter; empty if the error concerns all of them.
        parameter: String,
        /// The file, if the error concerns one.
        path: Option<PathBuf>,
        /// The system's error.
        error: io::Error,
    },
}

fn sentence(function: &str, parameter: &str, path: Option<&Path>, error: &io::Error) -> String {
    let argument = match parameter {
        "" => "its arguments".to_owned(),
        name => format!("argument `{name}`"),
    };
    match path {
        Some(path) => {
            format!(
                "{function}: {argument} names `{}`, which cannot be read: {error}",
                path.display()
            )
        }
        None => {
            let limit = gridrpc_sys::limit_of(error);
            format!("{function}: no memory to send {argument}: {error}{limit}")
        }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ArgumentError { function, parameter, problem } = self;
        if parameter.is_empty() {
            write!(f, "{function}: {problem}")
        } else {
            write!(f, "{function}: argument `{parameter}` {problem}")
        }
    }
}

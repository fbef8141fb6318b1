//! What a caller gives for each parameter.

use std::fmt;

use thiserror::Error;

use crate::typed::Scalar;

/// An array in the caller's memory.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its first element.
    pub start: *mut u8,
    /// Its length, bytes, if that is known; in C it is not.
    pub len: Option<usize>,
    /// Its dimensions, if they are known, in the order in which the interface lists them.
    pub shape: Option<Vec<u64>>,
}

/// What the caller gives for one parameter.
#[derive(Clone, Debug)]
pub enum Given {
    /// Nothing: a work array, a size that follows from arrays, a result to be made.
    Absent,
    /// A number.
    Scalar(Scalar),
    /// An array of numbers.
    Array(Memory),
    /// Strings, or names of files; one, or as many as the array has.
    Texts(Vec<Option<Vec<u8>>>),
    /// A callback.
    Callback,
}

/// An argument that does not fit its parameter.
#[derive(Debug, Error)]
pub struct ArgumentError {
    /// The function.
    pub function: String,
    /// The parameter; empty if it is about all of them.
    pub parameter: String,
    /// What is wrong, and what to do.
    pub problem: String,
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

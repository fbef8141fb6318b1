//! Calls: from arguments in C to results in the caller's memory, or an error.

pub mod arguments;
pub mod callback;
pub mod counted;
pub mod function;
pub mod info;
pub mod outcome;
pub mod pending;

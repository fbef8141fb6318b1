//! Calls: from the arguments that C gives to results in the caller's memory, or an error.

pub mod arguments;
pub mod callback;
pub mod function;
pub mod info;
pub mod outcome;
pub mod pending;

//! Function and object handles, and attributes of handles and sessions.

pub mod attributes;
pub mod function;
pub mod object;
pub mod placement;
mod resources;

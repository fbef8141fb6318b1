//! What handles stand for: functions, objects, what their calls ask for, and attributes of both and of sessions.

pub mod attributes;
pub mod function;
pub mod object;
mod resources;

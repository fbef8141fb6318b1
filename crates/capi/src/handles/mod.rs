//! What handles stand for: functions, objects, and attributes of both and of sessions.

pub mod attributes;
pub mod function;
pub mod object;

//! All tests of the wire format from outside are one program: how random messages are made is compiled once, and
//! that takes long.

mod allocation;
mod encoder;
mod properties;
mod vectors;

#[path = "support/arbitrary.rs"]
mod arbitrary;
#[path = "support/check.rs"]
mod check;
#[path = "support/json.rs"]
mod json;

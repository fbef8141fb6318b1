//! The gridrpc program.
fn main() {}

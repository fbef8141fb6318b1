//! What the program `gridrpc` does for people: compiling modules, and the machine's catalogue.

pub mod catalogue;
pub mod compile;
pub mod describe;
pub mod makefile;

//! What the program `gridrpc` does for people: compiling modules, the machine's catalogue, what compilers of
//! programs have to be told, and how hosts and running grids are getting on.

pub mod catalogue;
pub mod compile;
pub mod completion;
pub mod config;
pub mod describe;
pub mod doctor;
pub mod makefile;
pub mod recipe;
pub mod script;
pub mod session;
pub mod top;

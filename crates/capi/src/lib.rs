//! The library for C and Fortran programs: the GridRPC API, and that of the original Ninf.
//!
//! What it offers to them stands in `include/`; the functions are in `ffi`. Those that take any
//! number of arguments have to be in C: `variadic.c` takes the arguments by the types that the
//! interface has, and goes on in Rust. The rest here needs no C and has no unsafe code.

pub mod config;
pub mod errors;
mod ffi;

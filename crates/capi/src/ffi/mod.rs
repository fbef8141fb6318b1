//! Functions for C programs: one file per group of functions in `grpc.h` and `ninf.h`.
//!
//! No input from C is trusted: addresses may be NULL, handles may be garbage. No panic crosses into C: every
//! function runs in `boundary::guard`.

mod attributes;
mod boundary;
mod calls;
mod detached;
mod errors;
mod functions;
mod information;
mod invoke;
mod last_error;
mod library;
mod memory;
mod ninf;
mod objects;
mod sessions;
mod stack;
mod variadic;
mod worker;

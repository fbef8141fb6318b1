//! The library for C and Fortran programs: the GridRPC API, and that of the original Ninf.
//!
//! What it offers to them stands in `include/`; the functions are in `ffi`. Those that take any
//! number of arguments have to be in C: `variadic.c` takes the arguments by the types that the
//! interface has, and goes on in Rust.
//!
//! - `config` reads client configurations; no unsafe code, as in `errors` and `failure`.
//! - `environment` is all that lies between `grpc_initialize` and `grpc_finalize`.
//! - `handles` and `sessions` are what handles and session numbers of programs stand for.
//! - `call` takes one call from its arguments to its results.

mod c_types;
mod call;
pub mod config;
mod context;
mod entries;
mod environment;
pub mod errors;
pub mod failure;
mod ffi;
mod handles;
mod sessions;
mod signals;
mod slots;

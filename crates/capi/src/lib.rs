//! The C library: the GridRPC API and the original Ninf API, for C, C++ and Fortran programs.
//!
//! The headers are in `include/`. Variadic functions are in C: `variadic.c` takes the arguments by
//! the types of the interface and continues in Rust.
//!
//! Layers, from the top; each depends on those below it only:
//!
//! - `ffi`: the functions of the headers.
//! - `entries`: Ninf entries by name.
//! - `environment`: everything between `grpc_initialize` and `grpc_finalize`.
//! - `handles`: function and object handles, and their attributes. `signals`: signal handling.
//! - `sessions`: asynchronous calls by number.
//! - `context`: the grid, the log, and the configuration in effect.
//! - `call`: one call from its arguments to its results. `slots`: tables by handle.
//! - `failure` and `errors`: error codes and texts; `config`: configuration files, neither with
//!   unsafe code. `c_types`: the types of the headers.

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

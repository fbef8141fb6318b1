//! The library for C and Fortran programs: the GridRPC API.
//!
//! What it offers stands in `include/grpc.h`.

pub mod config;
pub mod errors;

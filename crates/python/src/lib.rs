//! The native module of the Python package: `gridrpc._native`.
use pyo3::prelude::*;

/// The native module behind the Python API.
#[pymodule]
mod _native {}

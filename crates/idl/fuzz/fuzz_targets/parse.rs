//! Parses any text as an IDL file. A file without errors must print as one that parses the same, and must
//! produce a stub.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)] // the other target needs the rest
#[path = "../../tests/support/check.rs"]
mod check;

fuzz_target!(|text: &str| check::source(text));

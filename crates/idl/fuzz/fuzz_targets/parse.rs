//! Takes any text for an IDL file; what can be read has to print as what reads the same, and its
//! stub has to be written.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)] // the other target needs the rest
#[path = "../../tests/support/check.rs"]
mod check;

fuzz_target!(|text: &str| check::source(text));

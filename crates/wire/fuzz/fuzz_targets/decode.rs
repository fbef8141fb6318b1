//! Feeds any bytes to the decoder; what decodes has to encode to the same bytes again.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/support/check.rs"]
mod check;

fuzz_target!(|bytes: &[u8]| check::bytes(bytes));

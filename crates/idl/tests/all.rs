//! Tests of the compiler from outside are one program, which is compiled and linked once. Those that hold
//! it to a time, in limits.rs, run by themselves.

mod diagnostics;
mod dialect;
mod docs;
mod extents;
mod interfaces;
mod properties;
mod stub_languages;
mod stubs;

#[path = "support/arbitrary.rs"]
mod arbitrary;
#[path = "support/check.rs"]
mod check;
#[path = "support/library.rs"]
mod library;
#[path = "support/values.rs"]
mod values;

//! Interface description language of gridrpc: declares C, C++ and Fortran functions for remote calls.
//!
//! The crate is pure: its input is text, its output text or numbers. `docs/idl.md` describes the language.
//! [`parse`] checks a file and reports its errors; a [`Module`] prints as an interface again; [`extents`]
//! computes the sizes of arrays in one call; [`stub_source`] writes the C code that turns the functions into
//! a module. No input causes a panic or unbounded use of stack or time.
//!
//! ```
//! let parsed = gridrpc_idl::parse(
//!     r#"
//!     Module linear;
//!     Define scale(IN int n, IN double factor, INOUT double x[n]) "x = factor x"
//!     { for (int i = 0; i < n; i++) x[i] *= factor; }
//!     "#,
//! );
//! let module = parsed.module.expect("no errors");
//! assert_eq!(
//!     module.functions[0].signature(),
//!     "scale(IN int n, IN double factor, INOUT double x[n])"
//! );
//! ```

mod block;
mod check;
mod diagnostic;
mod expression;
mod extent;
mod lexer;
mod module;
mod names;
mod parser;
mod print;
mod stub;
mod syntax;
mod types;

pub use diagnostic::{Diagnostic, Severity, Span};
pub use expression::{BinaryOperator, Expr, SizeError, Values};
pub use extent::{Extent, ExtentError, Part, callback_extents, extents};
pub use module::{
    Backend, Body, CallArgument, Class, Dialect, Dimension, Distribution, Function, Kind, Language,
    Mode, Module, Parameter, Range,
};
pub use names::nearest;
pub use stub::{FORTRAN_ENDS, stub_source};
pub use types::Type;

/// Header of the interface in a module's section `.gridrpc`.
pub const INTERFACE_HEADER: &str = "gridrpc module 1\n";

/// Largest file accepted, bytes.
pub const MAX_SOURCE: usize = 4 << 20;

/// Result of parsing a file.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The module, if there are no errors.
    pub module: Option<Module>,
    /// Errors and warnings in the order of the file, limited to about a hundred.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses and checks a file.
#[must_use]
pub fn parse(source: &str) -> Parsed {
    parse_as(source, Dialect::default())
}

/// Parses and checks a file, with the dialect for files that name none.
#[must_use]
pub fn parse_as(source: &str, dialect: Dialect) -> Parsed {
    let mut report = diagnostic::Report::default();
    if source.len() > MAX_SOURCE {
        report.error(Span::default(), format!("the file has more than {MAX_SOURCE} bytes"));
        return Parsed { module: None, diagnostics: report.finish() };
    }
    let file = parser::parse(source, &mut report);
    let module = check::check(source, file, dialect, &mut report);
    let module = (!report.has_errors()).then_some(module);
    Parsed { module, diagnostics: report.finish() }
}

//! Syntax tree: names are not resolved yet, and every item has its position.

use crate::diagnostic::Span;
use crate::expression::BinaryOperator;
use crate::module::{Distribution, Mode};

/// A text with its location.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub text: String,
    pub span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct File {
    pub modules: Vec<Text>,
    /// C code; spans cover only the code itself.
    pub globals: Vec<Text>,
    /// Options with a single string or word.
    pub settings: Vec<(Setting, Text)>,
    pub functions: Vec<Function>,
    pub classes: Vec<Class>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Setting {
    CompileOptions,
    Library,
    Compiler,
    Linker,
    FortranFormat,
    FortranStringConvention,
    Dialect,
}

impl Setting {
    pub const ALL: [Setting; 7] = [
        Setting::CompileOptions,
        Setting::Library,
        Setting::Compiler,
        Setting::Linker,
        Setting::FortranFormat,
        Setting::FortranStringConvention,
        Setting::Dialect,
    ];

    pub fn keyword(self) -> &'static str {
        match self {
            Setting::CompileOptions => "CompileOptions",
            Setting::Library => "Library",
            Setting::Compiler => "Compiler",
            Setting::Linker => "Linker",
            Setting::FortranFormat => "FortranFormat",
            Setting::FortranStringConvention => "FortranStringConvention",
            Setting::Dialect => "Dialect",
        }
    }
}

#[derive(Debug)]
pub(crate) struct Function {
    pub name: Text,
    pub parameters: Parameters,
    pub options: Options,
    pub body: Body,
}

#[derive(Debug)]
pub(crate) struct Class {
    pub name: Text,
    pub options: Options,
    pub states: Vec<Text>,
    pub methods: Vec<Function>,
}

#[derive(Debug)]
pub(crate) struct Parameters {
    pub list: Vec<Parameter>,
    /// Whether declarations are missing because of syntax errors.
    pub broken: bool,
}

/// Options between the parameters and the body.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub description: Option<Text>,
    pub required: Vec<Text>,
    pub backend: Option<Text>,
    pub shrink: Option<Text>,
    pub language: Option<Text>,
    pub cost: Option<Expr>,
    pub idempotent: bool,
}

#[derive(Debug)]
pub(crate) enum Body {
    None,
    Inline(Text),
    Calls {
        language: Option<Text>,
        /// Destination of the return value.
        result: Option<Text>,
        name: Text,
        arguments: Vec<CallArgument>,
    },
}

/// An argument of a call.
#[derive(Debug)]
pub(crate) enum CallArgument {
    Name(Text),
    /// Arguments in braces, with the span of the opening one.
    Structure(Vec<CallArgument>, Span),
}

#[derive(Debug)]
pub(crate) struct Parameter {
    pub name: Text,
    pub shape: Shape,
}

#[derive(Debug)]
pub(crate) enum Shape {
    Plain {
        mode: Option<Mode>,
        distribution: Option<(Distribution, Span)>,
        /// The type's words, such as `unsigned` and `long`, with locations.
        words: Vec<Text>,
        pointers: usize,
        dimensions: Vec<Dimension>,
    },
    Callback(Parameters),
}

#[derive(Debug)]
pub(crate) struct Dimension {
    pub size: Option<Expr>,
    /// Up to three expressions after the colon.
    pub range: Option<(Vec<Expr>, Span)>,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug)]
pub(crate) enum ExprKind {
    Whole(i64),
    Real(f64),
    Name(String),
    /// An element of the array with this name.
    Element(Text, Box<Expr>),
    Negate(Box<Expr>),
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    Conditional(Box<[Expr; 3]>),
}

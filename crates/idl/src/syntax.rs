//! A file as it is written: names are not looked up yet, and everything knows where it stands.

use crate::diagnostic::Span;
use crate::expression::BinaryOperator;
use crate::module::{Distribution, Mode};

/// A piece of text and where it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub text: String,
    pub span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct File {
    pub modules: Vec<Text>,
    /// C code; the spans are those of the code itself.
    pub globals: Vec<Text>,
    /// The options of which each takes one string or word.
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
    /// Some could not be understood, and so are missing.
    pub broken: bool,
}

/// What may stand between the parameters and the body.
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
        /// Where what it returns goes.
        result: Option<Text>,
        name: Text,
        arguments: Vec<Text>,
    },
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
        /// The words of the type, such as `unsigned` and `long`, and where they are.
        words: Vec<Text>,
        pointers: usize,
        dimensions: Vec<Dimension>,
    },
    Callback(Parameters),
}

#[derive(Debug)]
pub(crate) struct Dimension {
    pub size: Option<Expr>,
    /// Up to three expressions behind the colon.
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
    /// An element of the array of that name.
    Element(Text, Box<Expr>),
    Negate(Box<Expr>),
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    Conditional(Box<[Expr; 3]>),
}

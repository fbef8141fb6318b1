//! What a file declares, once it has been checked.

use std::sync::Arc;

use crate::expression::Expr;
use crate::types::Type;

/// A module: functions and classes that are compiled into one shared library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// Its name, a C identifier.
    pub name: String,
    /// Whose meaning holds where it has changed.
    pub dialect: Dialect,
    /// C code that stands before all functions, in pieces.
    pub globals: Vec<String>,
    /// Options for the compiler.
    pub compile_options: Vec<String>,
    /// Options for linking libraries, such as `-llapack`.
    pub libraries: Vec<String>,
    /// The compiler, if it is not the usual one.
    pub compiler: Option<String>,
    /// The linker, if it is not the compiler.
    pub linker: Option<String>,
    /// How Fortran names become symbols: `%s` is the name, `%l` the name in capitals.
    pub fortran_format: Option<String>,
    /// How Fortran is told the length of strings.
    pub fortran_string_convention: Option<String>,
    /// The functions, in the order of the file.
    pub functions: Vec<Function>,
    /// The classes, in the order of the file.
    pub classes: Vec<Class>,
    /// Where the pieces of `globals` start.
    pub(crate) globals_at: Vec<Origin>,
}

impl Module {
    /// The function or method of a name, such as `dgesv` or `Class.method`.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&Function> {
        match name.split_once('.') {
            Some((class, method)) => self.class(class)?.method(method),
            None => self.functions.iter().find(|function| function.name == name),
        }
    }

    /// The class of a name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// Has it to be compiled as C++? One function in C++ makes it so, for all of them are in one
    /// source file.
    #[must_use]
    pub fn is_cpp(&self) -> bool {
        self.all_functions()
            .any(|(_, function)| function.effective_language() == Some(Language::Cpp))
            || self.classes.iter().any(|class| class.language == Some(Language::Cpp))
    }

    /// Whether it has functions that run on several processes.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.all_functions().any(|(_, function)| function.is_parallel())
    }

    /// The C code of the file that declares what functions use.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = &str> {
        let states = self.classes.iter().filter_map(|class| class.state.as_ref());
        self.globals.iter().chain(states).map(String::as_str)
    }

    /// All functions, and all methods with their class, in the order in which a stub lists them.
    pub(crate) fn all_functions(&self) -> impl Iterator<Item = (Option<&Class>, &Function)> {
        self.functions.iter().map(|function| (None, function)).chain(
            self.classes
                .iter()
                .flat_map(|class| class.methods.iter().map(move |method| (Some(class), method))),
        )
    }
}

/// Whose meaning a file has where that of Ninf-G is not the best any more: what complex numbers are
/// in C, what stubs include, who frees texts, and whether ranges take effect by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Ours.
    #[default]
    Gridrpc,
    /// That of Ninf-G 2 to 5.
    NinfG,
}

impl Dialect {
    /// The dialect of a name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Dialect> {
        match name.to_ascii_lowercase().as_str() {
            "gridrpc" => Some(Dialect::Gridrpc),
            "ninf-g" => Some(Dialect::NinfG),
            _ => None,
        }
    }
}

/// Where a piece of C code starts in its source file, for those who compile it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Origin {
    /// From 1 on; 0 if it is not known.
    pub line: usize,
    /// If it is not the file that was parsed.
    pub file: Option<Arc<str>>,
}

/// A function, or a method of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name; that of a method without its class.
    pub name: String,
    /// The parameters in their order, callbacks among them.
    pub parameters: Vec<Parameter>,
    /// What it does, for people.
    pub description: Option<String>,
    /// Objects and libraries to link. Those of methods are at their class.
    pub required: Vec<String>,
    /// What starts it. That of a method is its class's.
    pub backend: Backend,
    /// Do ranges take effect? They do unless it is `Some(false)`. A method has its class's.
    pub shrink: Option<bool>,
    /// The language that was declared. A method has its class's.
    pub language: Option<Language>,
    /// What a call costs, in operations.
    pub cost: Option<Expr>,
    /// It may be run again if a worker is lost.
    pub idempotent: bool,
    /// What it runs.
    pub body: Body,
    /// Where an inline body starts.
    pub(crate) body_at: Origin,
}

impl Function {
    /// Whether it runs on several processes, which talk to each other by MPI.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.backend != Backend::Normal
    }

    /// Are the dimensions of its arrays in Fortran's order, the first index running fastest?
    #[must_use]
    pub fn fortran(&self) -> bool {
        self.effective_language() == Some(Language::Fortran)
    }

    /// The language given with `Calls`, or else the one that was declared.
    pub(crate) fn effective_language(&self) -> Option<Language> {
        match self.body {
            Body::Calls { language: Some(language), .. } => Some(language),
            _ => self.language,
        }
    }
}

/// Objects with methods and state.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub description: Option<String>,
    /// Objects and libraries to link.
    pub required: Vec<String>,
    /// What starts an object.
    pub backend: Backend,
    /// Do ranges take effect? They do unless it is `Some(false)`.
    pub shrink: Option<bool>,
    /// The language of its methods.
    pub language: Option<Language>,
    /// C code: the variables that make up an object's state.
    pub state: Option<String>,
    /// The methods, in the order of the file.
    pub methods: Vec<Function>,
    /// Where the state's code starts.
    pub(crate) state_at: Origin,
}

impl Class {
    /// The method of a name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Function> {
        self.methods.iter().find(|method| method.name == name)
    }
}

/// What starts a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// A process of its own.
    #[default]
    Normal,
    /// MPI, on several processes.
    Mpi,
    /// BLACS, on top of MPI.
    Blacs,
}

/// The language a function is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Language {
    C,
    Cpp,
    Fortran,
}

/// What a function runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Nothing is said: the declaration is an interface only.
    None,
    /// C code.
    Inline(String),
    /// A function elsewhere.
    Calls {
        /// What it is written in, if that is said here.
        language: Option<Language>,
        /// Where what it returns goes: the index of a parameter.
        result: Option<usize>,
        /// Its name.
        name: String,
        /// What it is given: indices of parameters.
        arguments: Vec<usize>,
    },
}

/// One parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, a C identifier.
    pub name: String,
    /// Which way it goes.
    pub mode: Mode,
    /// What becomes of it on several processes.
    pub distribution: Option<Distribution>,
    /// What it is.
    pub kind: Kind,
}

/// Which way a parameter goes, seen from the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In only. Callbacks have it too.
    In,
    /// Out only.
    Out,
    /// In and out.
    InOut,
    /// Neither: memory that the function works in.
    Work,
}

impl Mode {
    /// Does it bring something to the function?
    #[must_use]
    pub fn is_input(self) -> bool {
        matches!(self, Mode::In | Mode::InOut)
    }

    /// Does it bring something back?
    #[must_use]
    pub fn is_output(self) -> bool {
        matches!(self, Mode::Out | Mode::InOut)
    }

    pub(crate) fn keyword(self) -> &'static str {
        match self {
            Mode::In => "IN",
            Mode::Out => "OUT",
            Mode::InOut => "INOUT",
            Mode::Work => "WORK",
        }
    }
}

/// What becomes of an argument when a function runs as several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Each has memory for it.
    Allocate,
    /// Each has a copy.
    Broadcast,
}

/// What a parameter is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One value.
    Scalar(Type),
    /// Many, one behind the other.
    Array {
        /// What one is.
        element: Type,
        /// At least one.
        dimensions: Vec<Dimension>,
    },
    /// A function of the client, with its parameters.
    Callback(Vec<Parameter>),
}

/// One dimension of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// How many elements; always there in a module that has been checked.
    pub size: Option<Expr>,
    /// Which of them travel; all if it is `None`.
    pub range: Option<Range>,
}

/// Elements `start`, `start + step` and so on below `end`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The first; 0 if it is `None`.
    pub start: Option<Expr>,
    /// Behind the last; the size if it is `None` or 0.
    pub end: Option<Expr>,
    /// 1 if it is `None` or 0.
    pub step: Option<Expr>,
}

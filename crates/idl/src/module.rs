//! Checked declarations of a file.

use std::sync::Arc;

use crate::expression::Expr;
use crate::types::Type;

/// A module: functions and classes that are compiled into one shared library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// Its name, a C identifier.
    pub name: String,
    /// The dialect, for features whose meaning has changed.
    pub dialect: Dialect,
    /// C code that precedes all functions, in pieces.
    pub globals: Vec<String>,
    /// Options for the compiler.
    pub compile_options: Vec<String>,
    /// Options for linking libraries, such as `-llapack`.
    pub libraries: Vec<String>,
    /// The compiler, if it is not the default one.
    pub compiler: Option<String>,
    /// The linker, if it is not the compiler.
    pub linker: Option<String>,
    /// Symbol format of Fortran names: `%s` is the name, `%l` the name in capitals.
    pub fortran_format: Option<String>,
    /// How the lengths of strings are passed to Fortran.
    pub fortran_string_convention: Option<String>,
    /// The functions, in the order of the file.
    pub functions: Vec<Function>,
    /// The classes, in the order of the file.
    pub classes: Vec<Class>,
    /// Start positions of `globals`.
    pub(crate) globals_at: Vec<Origin>,
}

impl Module {
    /// The function or method with this name, such as `dgesv` or `Class.method`.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<&Function> {
        match name.split_once('.') {
            Some((class, method)) => self.class(class)?.method(method),
            None => self.functions.iter().find(|function| function.name == name),
        }
    }

    /// The class with this name.
    #[must_use]
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes.iter().find(|class| class.name == name)
    }

    /// Whether it must be compiled as C++. One C++ function is enough, since all functions share one source
    /// file.
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

    /// C code of the file that declares functions for use in bodies.
    pub(crate) fn declarations(&self) -> impl Iterator<Item = &str> {
        let states = self.classes.iter().filter_map(|class| class.state.as_ref());
        self.globals.iter().chain(states).map(String::as_str)
    }

    /// All functions, and all methods with their class, in the order of a stub's table.
    pub(crate) fn all_functions(&self) -> impl Iterator<Item = (Option<&Class>, &Function)> {
        self.functions.iter().map(|function| (None, function)).chain(
            self.classes
                .iter()
                .flat_map(|class| class.methods.iter().map(move |method| (Some(class), method))),
        )
    }
}

/// Dialect of a file, for features where Ninf-G's behaviour is outdated: complex numbers in C, the headers
/// that stubs include, ownership of strings, and whether ranges take effect by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// gridrpc's dialect.
    #[default]
    Gridrpc,
    /// The dialect of Ninf-G 2 to 5.
    NinfG,
}

impl Dialect {
    /// The dialect with this name, ignoring case.
    #[must_use]
    pub fn named(name: &str) -> Option<Dialect> {
        match name.to_ascii_lowercase().as_str() {
            "gridrpc" => Some(Dialect::Gridrpc),
            "ninf-g" => Some(Dialect::NinfG),
            _ => None,
        }
    }
}

/// Position of C code in its source file, for compiler messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Origin {
    /// From 1; 0 if unknown.
    pub line: usize,
    /// The file, if it is not the parsed one.
    pub file: Option<Arc<str>>,
}

/// A function, or a method of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name; a method's name excludes its class.
    pub name: String,
    /// The parameters in order, including callbacks.
    pub parameters: Vec<Parameter>,
    /// A description for users.
    pub description: Option<String>,
    /// Objects and libraries to link. Those of methods belong to the class.
    pub required: Vec<String>,
    /// How it is started. Methods have their class's backend.
    pub backend: Backend,
    /// Whether ranges take effect; only `Some(false)` disables them. Methods have their class's value.
    pub shrink: Option<bool>,
    /// The declared language. Methods have their class's language.
    pub language: Option<Language>,
    /// Cost of a call, in operations.
    pub cost: Option<Expr>,
    /// Whether it may be retried if a worker is lost.
    pub idempotent: bool,
    /// Its implementation.
    pub body: Body,
    /// Start of an inline body.
    pub(crate) body_at: Origin,
}

impl Function {
    /// Whether it runs on several processes that communicate by MPI.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        self.backend != Backend::Normal
    }

    /// Whether array dimensions are in Fortran's order, the first index varying fastest.
    #[must_use]
    pub fn fortran(&self) -> bool {
        self.effective_language() == Some(Language::Fortran)
    }

    /// The language in `Calls`, or else the declared one.
    pub(crate) fn effective_language(&self) -> Option<Language> {
        match self.body {
            Body::Calls { language: Some(language), .. } => Some(language),
            _ => self.language,
        }
    }
}

/// A class: objects with methods and state.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// A description for users.
    pub description: Option<String>,
    /// Objects and libraries to link.
    pub required: Vec<String>,
    /// How an object is started.
    pub backend: Backend,
    /// Whether ranges take effect; only `Some(false)` disables them.
    pub shrink: Option<bool>,
    /// The language of its methods.
    pub language: Option<Language>,
    /// C code: the variables of an object's state.
    pub state: Option<String>,
    /// The methods, in the order of the file.
    pub methods: Vec<Function>,
    /// Start of the state's code.
    pub(crate) state_at: Origin,
}

impl Class {
    /// The method with this name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Function> {
        self.methods.iter().find(|method| method.name == name)
    }
}

/// How a function is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// In a single process.
    #[default]
    Normal,
    /// By MPI, on several processes.
    Mpi,
    /// By BLACS, on top of MPI.
    Blacs,
}

/// Language of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum Language {
    C,
    Cpp,
    Fortran,
}

/// Implementation of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// None: the declaration is only an interface.
    None,
    /// C code.
    Inline(String),
    /// A call of a function defined elsewhere.
    Calls {
        /// Its language, if specified here.
        language: Option<Language>,
        /// Index of the parameter that receives the return value.
        result: Option<usize>,
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Vec<CallArgument>,
    },
}

/// What a called function gets as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallArgument {
    /// The parameter with this index.
    Parameter(usize),
    /// A structure of C++, made of these in braces.
    Structure(Vec<CallArgument>),
}

impl CallArgument {
    /// The parameters in it, in order.
    pub(crate) fn parameters(list: &[CallArgument]) -> Vec<usize> {
        let mut found = Vec::new();
        for passed in list {
            match passed {
                CallArgument::Parameter(index) => found.push(*index),
                CallArgument::Structure(fields) => found.extend(CallArgument::parameters(fields)),
            }
        }
        found
    }
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, a C identifier.
    pub name: String,
    /// Its direction.
    pub mode: Mode,
    /// Its distribution over several processes.
    pub distribution: Option<Distribution>,
    /// Its kind.
    pub kind: Kind,
}

/// Direction of a parameter, from the function's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Input only; also used for callbacks.
    In,
    /// Output only.
    Out,
    /// Input and output.
    InOut,
    /// Neither: scratch memory for the function.
    Work,
}

impl Mode {
    /// Whether it carries input to the function.
    #[must_use]
    pub fn is_input(self) -> bool {
        matches!(self, Mode::In | Mode::InOut)
    }

    /// Whether it carries output back.
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

/// Distribution of an argument over the processes of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Each process allocates memory for it.
    Allocate,
    /// Each process gets a copy.
    Broadcast,
}

/// Kind of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A single value.
    Scalar(Type),
    /// Several values, contiguous in memory.
    Array {
        /// Type of an element.
        element: Type,
        /// The dimensions; at least one.
        dimensions: Vec<Dimension>,
    },
    /// A function of the client, with its parameters.
    Callback(Vec<Parameter>),
}

/// One dimension of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Number of elements; always present in a checked module.
    pub size: Option<Expr>,
    /// The transferred elements; `None`: all.
    pub range: Option<Range>,
}

/// Elements `start`, `start + step` and so on, below `end`.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The first element; `None`: 0.
    pub start: Option<Expr>,
    /// The end, exclusive; `None` or 0: the size.
    pub end: Option<Expr>,
    /// The step; `None` or 0: 1.
    pub step: Option<Expr>,
}

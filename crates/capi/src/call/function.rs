//! A function of a module from the point of view of C: how to read each argument.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use gridrpc_idl::{Kind, Mode, Parameter, Type};
use gridrpc_invoke::Target;

/// How to read an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAs {
    /// It is not passed.
    Nothing,
    /// A number.
    Number(Type),
    /// A string or a file name.
    Text,
    /// Strings or file names, one per element of the array.
    Texts,
    /// The address of an array's first element.
    Array,
    /// A function.
    Callback,
}

/// A function that can be called.
#[derive(Debug)]
pub struct Function {
    /// The runtime's data about the function.
    pub target: Arc<Target>,
    /// How to read its arguments.
    pub takes: Vec<ReadAs>,
    /// One code per argument for the C part; valid for the life of the process.
    pub codes: &'static [u8],
    /// Whether numbers are passed by address, as in Fortran.
    pub by_address: bool,
}

impl Function {
    /// Creates a function from the runtime's data.
    #[must_use]
    pub fn new(target: Target, by_address: bool) -> Function {
        let parameters = &target.interface().parameters;
        let takes: Vec<ReadAs> = parameters.iter().map(take).collect();
        let codes: Vec<u8> =
            takes.iter().map(|take| if by_address { b'p' } else { code(*take) }).collect();
        Function { takes, codes: intern(&CODES, codes), by_address, target: Arc::new(target) }
    }

    /// Its parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.target.interface().parameters
    }

    /// Whether the call changes a parameter's argument.
    #[must_use]
    pub fn goes_out(&self, parameter: usize) -> bool {
        matches!(self.parameters()[parameter].mode, Mode::Out | Mode::InOut)
    }
}

fn take(parameter: &Parameter) -> ReadAs {
    match &parameter.kind {
        _ if parameter.mode == Mode::Work => ReadAs::Nothing,
        Kind::Callback(_) => ReadAs::Callback,
        Kind::Scalar(Type::String | Type::Filename) => ReadAs::Text,
        Kind::Scalar(of) => ReadAs::Number(*of),
        Kind::Array { element: Type::String | Type::Filename, .. } => ReadAs::Texts,
        Kind::Array { .. } => ReadAs::Array,
    }
}

/// See variadic.h.
fn code(take: ReadAs) -> u8 {
    match take {
        ReadAs::Number(Type::Float | Type::Double) => b'd',
        ReadAs::Number(Type::SComplex) => b'c',
        ReadAs::Number(Type::DComplex) => b'z',
        ReadAs::Number(of) if of.size().is_some_and(|size| size <= size_of::<i32>()) => b'i',
        ReadAs::Number(_) => b'l',
        _ => b'p',
    }
}

/// Values whose addresses C programs may keep. At most one per distinct function.
type Interned<T> = LazyLock<Mutex<HashSet<&'static T>>>;

static CODES: Interned<[u8]> = LazyLock::new(Mutex::default);
static NAMES: Interned<CStr> = LazyLock::new(Mutex::default);

/// Interns a value for the life of the process.
fn intern<T, O>(interned: &'static Interned<T>, text: O) -> &'static T
where
    T: ?Sized + std::hash::Hash + Eq + 'static,
    O: Into<Box<T>> + AsRef<T>,
{
    let mut interned = interned.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = interned.get(text.as_ref()) {
        return known;
    }
    let text: &'static T = Box::leak(text.into());
    interned.insert(text);
    text
}

/// A name for C programs, interned.
pub fn intern_name(name: &str) -> &'static CStr {
    intern(&NAMES, CString::new(name).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_argument_has_its_code() {
        let source = "Module m; Define f(IN char a, IN long b, IN float c, IN dcomplex d, \
                      IN string e, INOUT double f[a], OUT string g[a], WORK int h[a], \
                      cb(IN int x[1])) { }";
        let parsed = gridrpc_idl::parse(source);
        let module = parsed.module.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
        let takes: Vec<ReadAs> = module.functions[0].parameters.iter().map(take).collect();
        let codes: Vec<u8> = takes.iter().map(|take| code(*take)).collect();
        assert_eq!(codes, b"ildzppppp");
        assert_eq!(
            takes[4..],
            [ReadAs::Text, ReadAs::Array, ReadAs::Texts, ReadAs::Nothing, ReadAs::Callback]
        );
    }

    #[test]
    fn equal_texts_are_kept_once() {
        assert!(std::ptr::eq(intern_name("some name"), intern_name("some name")));
        assert_eq!(intern_name("some name"), c"some name");
    }
}

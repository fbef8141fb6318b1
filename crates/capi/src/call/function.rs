//! A function of a module from the point of view of C: how to read each argument.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use gridrpc_idl::{Kind, Mode, Parameter, Type};
use gridrpc_invoke::Target;

/// How to read an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
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
    pub takes: Vec<Take>,
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
        let takes: Vec<Take> = parameters.iter().map(take).collect();
        let codes: Vec<u8> =
            takes.iter().map(|take| if by_address { b'p' } else { code(*take) }).collect();
        Function { takes, codes: keep(&CODES, codes), by_address, target: Arc::new(target) }
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

fn take(parameter: &Parameter) -> Take {
    match &parameter.kind {
        _ if parameter.mode == Mode::Work => Take::Nothing,
        Kind::Callback(_) => Take::Callback,
        Kind::Scalar(Type::String | Type::Filename) => Take::Text,
        Kind::Scalar(of) => Take::Number(*of),
        Kind::Array { element: Type::String | Type::Filename, .. } => Take::Texts,
        Kind::Array { .. } => Take::Array,
    }
}

/// See variadic.h.
fn code(take: Take) -> u8 {
    match take {
        Take::Number(Type::Float | Type::Double) => b'd',
        Take::Number(Type::SComplex) => b'c',
        Take::Number(Type::DComplex) => b'z',
        Take::Number(of) if of.size().is_some_and(|size| size <= size_of::<i32>()) => b'i',
        Take::Number(_) => b'l',
        _ => b'p',
    }
}

/// Values whose addresses C programs may keep. At most one per distinct function.
type Kept<T> = LazyLock<Mutex<HashSet<&'static T>>>;

static CODES: Kept<[u8]> = LazyLock::new(Mutex::default);
static NAMES: Kept<CStr> = LazyLock::new(Mutex::default);

/// Interns a value for the life of the process.
fn keep<T, O>(kept: &'static Kept<T>, text: O) -> &'static T
where
    T: ?Sized + std::hash::Hash + Eq + 'static,
    O: Into<Box<T>> + AsRef<T>,
{
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(text.as_ref()) {
        return known;
    }
    let text: &'static T = Box::leak(text.into());
    kept.insert(text);
    text
}

/// A name for C programs, interned.
pub fn kept_name(name: &str) -> &'static CStr {
    keep(&NAMES, CString::new(name).unwrap_or_default())
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
        let takes: Vec<Take> = module.functions[0].parameters.iter().map(take).collect();
        let codes: Vec<u8> = takes.iter().map(|take| code(*take)).collect();
        assert_eq!(codes, b"ildzppppp");
        assert_eq!(
            takes[4..],
            [Take::Text, Take::Array, Take::Texts, Take::Nothing, Take::Callback]
        );
    }

    #[test]
    fn equal_texts_are_kept_once() {
        assert!(std::ptr::eq(kept_name("some name"), kept_name("some name")));
        assert_eq!(kept_name("some name"), c"some name");
    }
}

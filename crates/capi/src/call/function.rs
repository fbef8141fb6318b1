//! A function of a module as C calls it: how each argument is taken.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use gridrpc_idl::{Kind, Mode, Parameter, Type};
use gridrpc_invoke::Target;

/// How an argument is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Not at all.
    Nothing,
    /// A number.
    Number(Type),
    /// A string or the name of a file.
    Text,
    /// Strings or names of files, as many as the array has elements.
    Texts,
    /// The address of the first element.
    Array,
    /// A function.
    Callback,
}

/// A function that can be called.
#[derive(Debug)]
pub struct Function {
    /// What the runtime knows.
    pub target: Arc<Target>,
    /// How its arguments are taken.
    pub takes: Vec<Take>,
    /// One code per argument, for the C part; stays as long as the process.
    pub codes: &'static [u8],
    /// Whether numbers are passed by address, as Fortran does.
    pub by_address: bool,
}

impl Function {
    /// Of what the runtime knows.
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

    /// Whether a parameter's argument is changed by the call.
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

/// What C programs may keep the address of. There are not more of them than different functions.
type Kept<T> = LazyLock<Mutex<HashSet<&'static T>>>;

static CODES: Kept<[u8]> = LazyLock::new(Mutex::default);
static NAMES: Kept<CStr> = LazyLock::new(Mutex::default);

/// The same text for ever; equal texts are kept once.
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

/// A name for C programs.
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

//! Names of functions as models.

use std::fmt;
use std::str::FromStr;

use crate::error::MalformedRequest;

/// Name of a function: its module, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionName {
    module: String,
    function: String,
}

impl FunctionName {
    /// The name of a module's function.
    ///
    /// # Errors
    /// When they are not identifiers.
    pub fn new(module: &str, function: &str) -> Result<FunctionName, MalformedRequest> {
        if is_identifier(module) && is_identifier(function) {
            return Ok(FunctionName { module: module.to_owned(), function: function.to_owned() });
        }
        Err(MalformedRequest::FunctionName(shortened(&format!("{module}/{function}"))))
    }

    /// The module.
    #[must_use]
    pub fn module(&self) -> &str {
        &self.module
    }

    /// The function in the module.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.function
    }
}

fn is_identifier(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// A name for a message.
fn shortened(name: &str) -> String {
    const MOST: usize = 200;
    name.chars().take(MOST).collect()
}

impl FromStr for FunctionName {
    type Err = MalformedRequest;

    /// `module/function`, or `module.function` for clients whose model names have no slash.
    fn from_str(name: &str) -> Result<FunctionName, MalformedRequest> {
        let parts = name.split_once('/').or_else(|| name.split_once('.'));
        let (module, function) =
            parts.ok_or_else(|| MalformedRequest::FunctionName(shortened(name)))?;
        FunctionName::new(module, function)
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.module, self.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_and_dot_separate_module_and_function() {
        for name in ["lapack/dgesv", "lapack.dgesv"] {
            let name: FunctionName = name.parse().unwrap();
            assert_eq!((name.module(), name.function()), ("lapack", "dgesv"));
            assert_eq!(name.to_string(), "lapack/dgesv");
        }
    }

    #[test]
    fn paths_and_incomplete_names_are_refused() {
        let names = [
            "", "dgesv", "/", "a/", "/b", "a/b/c", "../x", "a/..", "a/b\0", "a/1b", "a.b.c", "ä/b",
        ];
        for name in names {
            assert!(name.parse::<FunctionName>().is_err(), "{name:?}");
        }
    }
}

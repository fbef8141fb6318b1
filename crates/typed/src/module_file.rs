//! Module files: shared libraries that carry their interface.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridrpc_idl::{INTERFACE_HEADER, Module};
use object::{Object, ObjectSection, ReadCache};
use thiserror::Error;

/// The section of the file that contains the interface.
const SECTION: &str = ".gridrpc";
/// Maximum length of an interface, bytes.
const LONGEST: u64 = 16 << 20;

/// Reason why a file is not a module.
#[derive(Debug, Error)]
pub enum ModuleError {
    /// It cannot be read.
    #[error("could not read `{}`: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// It is not a module.
    #[error("`{}` is not a module: {why}", file.display())]
    NotAModule {
        /// The file.
        file: PathBuf,
        /// The problem.
        why: String,
    },
    /// It was compiled by another version.
    #[error(
        "`{}` was built for another version of gridrpc (its interface starts with `{found}`, not \
         `{}`): compile it again",
        file.display(), INTERFACE_HEADER.trim_end()
    )]
    Version {
        /// The file.
        file: PathBuf,
        /// Start of its interface.
        found: String,
    },
}

/// A module file and its interface.
#[derive(Debug)]
pub struct ModuleFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Its interface.
    pub interface: Arc<Module>,
    text: Arc<str>,
}

/// The text of a module's interface, as it is in the module's file.
#[must_use]
pub fn interface_text(module: &ModuleFile) -> &str {
    &module.text
}

/// The hash of an interface's text, in hexadecimal digits.
#[must_use]
pub fn interface_hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Opens a regular file. Anything else is rejected without blocking: FIFOs and devices have no end.
fn open(path: &Path) -> Result<File, ModuleError> {
    let failed = |error| ModuleError::Read { file: path.to_owned(), error };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = file.map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        let why = "it is not a regular file".to_owned();
        return Err(ModuleError::NotAModule { file: path.to_owned(), why });
    }
    Ok(file)
}

/// Reads a module's interface without running any of its code. Reads only those parts of the file that locate the
/// interface.
///
/// # Errors
/// When the file cannot be read or is not a module of this version.
pub fn read_interface(file: &Path) -> Result<ModuleFile, ModuleError> {
    let parts = ReadCache::new(open(file)?);
    let not = |why: String| ModuleError::NotAModule { file: file.to_owned(), why };
    let library = object::File::parse(&parts)
        .map_err(|error| not(format!("it is not a shared library ({error})")))?;
    let section = library.section_by_name(SECTION).ok_or_else(|| {
        not("it is a shared library without an interface; modules are made by `gridrpc compile`"
            .to_owned())
    })?;
    if section.size() > LONGEST {
        return Err(not(format!("its interface has {} bytes", section.size())));
    }
    let text = section.data().map_err(|error| not(error.to_string()))?;
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| not("its interface is not UTF-8".into()))?;
    let interface = Arc::new(parse_interface(text, file)?);
    Ok(ModuleFile { path: file.to_owned(), interface, text: text.into() })
}

/// Parses the text of a module's interface. `source`: where it comes from, for messages.
///
/// # Errors
/// When it is longer than an interface may be, of another version, or broken.
pub fn parse_interface(text: &str, source: &Path) -> Result<Module, ModuleError> {
    let not = |why: String| ModuleError::NotAModule { file: source.to_owned(), why };
    if text.len() as u64 > LONGEST {
        return Err(not(format!("its interface has {} bytes", text.len())));
    }
    let Some(declarations) = text.strip_prefix(INTERFACE_HEADER) else {
        let found = text.lines().next().unwrap_or_default().chars().take(40).collect();
        return Err(ModuleError::Version { file: source.to_owned(), found });
    };
    let parsed = gridrpc_idl::parse(declarations);
    parsed.module.ok_or_else(|| {
        let first = parsed.diagnostics.first().map(|diagnostic| diagnostic.message.clone());
        not(format!("its interface is broken: {}", first.unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Module m;\nDefine f(IN int n, OUT double x[n]);\n";

    #[test]
    fn interfaces_are_parsed_as_in_module_files() {
        let text = format!("{INTERFACE_HEADER}{TEXT}");
        let module = parse_interface(&text, Path::new("gridrpc://lab/m")).expect("a module");
        assert_eq!((module.name.as_str(), module.functions[0].name.as_str()), ("m", "f"));
        let error_of = |text: &str| {
            parse_interface(text, Path::new("gridrpc://lab/m")).expect_err(text).to_string()
        };
        let expected = "`gridrpc://lab/m` was built for another version of gridrpc";
        assert!(error_of(TEXT).starts_with(expected), "{}", error_of(TEXT));
        let expected = "`gridrpc://lab/m` is not a module: its interface is broken: ";
        let broken = error_of(&format!("{text}Define"));
        assert!(broken.starts_with(expected), "{broken}");
        let long = format!("{text}{}", " ".repeat(LONGEST as usize));
        assert!(error_of(&long).contains("its interface has 16777"), "{}", error_of(&long));
    }

    #[test]
    fn hashes_differ_with_the_text() {
        let hash = interface_hash(TEXT);
        assert_eq!(hash.len(), 64);
        assert_eq!(hash, interface_hash(TEXT));
        assert_ne!(hash, interface_hash(&format!("{TEXT} ")));
    }
}

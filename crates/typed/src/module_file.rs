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
    let Some(declarations) = text.strip_prefix(INTERFACE_HEADER) else {
        let found = text.lines().next().unwrap_or_default().chars().take(40).collect();
        return Err(ModuleError::Version { file: file.to_owned(), found });
    };
    let parsed = gridrpc_idl::parse(declarations);
    let module = parsed.module.ok_or_else(|| {
        let first = parsed.diagnostics.first().map(|diagnostic| diagnostic.message.clone());
        not(format!("its interface is broken: {}", first.unwrap_or_default()))
    })?;
    Ok(ModuleFile { path: file.to_owned(), interface: Arc::new(module) })
}

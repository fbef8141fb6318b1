//! Why a module was not made, and what is said about that.

use std::io::{self, Write as _};
use std::path::PathBuf;

use thiserror::Error;

/// Why no module was made.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The file cannot be read.
    #[error("could not read `{}`: {why}", file.display())]
    Read {
        /// Which.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// It has errors, which have been reported.
    #[error("{errors} error{} in `{}`", if *errors == 1 { "" } else { "s" }, file.display())]
    Broken {
        /// Which.
        file: PathBuf,
        /// How many.
        errors: usize,
    },
    /// The module cannot be written.
    #[error("could not write `{}`: {error}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no such compiler.
    #[error(
        "could not run the compiler `{program}`: {error}\nhint: install it, or name another one in \
         the environment: CC for C, CXX for C++, FC for Fortran"
    )]
    NoCompiler {
        /// Which.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// There is no such compiler of MPI.
    #[error(
        "could not run `{program}`, the compiler for functions with Backend \"MPI\": {error}\nhint: install \
         Open MPI with its headers (Debian: libopenmpi-dev and openmpi-bin), load its module, or name another \
         compiler in the environment: CC for C, CXX for C++, FC for Fortran"
    )]
    NoMpi {
        /// Which.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// A compiler of MPI has failed; it has said why.
    #[error(
        "`{program}` could not compile the module; its messages stand above\nhint: if it has not found `mpi.h`, \
         install the headers of Open MPI (Debian: libopenmpi-dev)"
    )]
    MpiCompiler {
        /// Which.
        program: String,
    },
    /// The compiler or the linker has failed; it has said why.
    #[error("`{program}` could not compile the module; its messages stand above")]
    Compiler {
        /// Which.
        program: String,
    },
}

/// To standard error; if that cannot be written to, there is nobody to tell.
pub(super) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

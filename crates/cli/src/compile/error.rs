//! Errors of `gridrpc compile`, and their messages.

use std::io::{self, Write as _};
use std::path::PathBuf;

use thiserror::Error;

/// Why no module was built.
#[derive(Debug, Error)]
pub enum CompileError {
    /// The IDL file cannot be read.
    #[error("could not read `{}`: {why}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// The file is a source file, an object or a module.
    #[error(
        "`{}` is no interface description\nhint: write an IDL file that declares the functions of your code and names \
         its object file in `Required`, and compile that",
        file.display()
    )]
    Source {
        /// The file.
        file: PathBuf,
    },
    /// The IDL file has errors, which have been printed.
    #[error("{errors} error{} in `{}`", if *errors == 1 { "" } else { "s" }, file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// The number of errors.
        errors: usize,
    },
    /// The module cannot be written.
    #[error("could not write `{}`: {error}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The compiler cannot be started.
    #[error(
        "could not run the compiler `{program}`: {error}\nhint: install it, or name another one in \
         the environment: CC for C, CXX for C++, FC for Fortran"
    )]
    NoCompiler {
        /// The compiler.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// The MPI compiler cannot be started.
    #[error(
        "could not run `{program}`, the compiler for functions with Backend \"MPI\": {error}\nhint: install \
         Open MPI with its headers (Debian: libopenmpi-dev and openmpi-bin), load its module, or name another \
         compiler in the environment: CC for C, CXX for C++, FC for Fortran"
    )]
    NoMpi {
        /// The compiler.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// The MPI compiler failed and has printed the reason.
    #[error(
        "`{program}` could not compile the module; its messages stand above\nhint: if it has not found `mpi.h`, \
         install the headers of Open MPI (Debian: libopenmpi-dev)"
    )]
    MpiCompiler {
        /// The compiler.
        program: String,
    },
    /// The compiler or linker failed and has printed the reason.
    #[error("`{program}` could not compile the module; its messages stand above")]
    Compiler {
        /// The program.
        program: String,
    },
}

/// Prints to standard error. Ignores failures, which nobody could see.
pub(super) fn print_error(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

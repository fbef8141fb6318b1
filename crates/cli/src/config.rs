//! `gridrpc config`: compiler and linker options for the installed C library.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use thiserror::Error;

/// Flags to print on one line, in the order that compilers expect.
#[derive(Args, Clone, Copy, Debug)]
#[command(override_usage = "gridrpc config OPTION...")]
#[group(required = true, multiple = true)]
#[allow(clippy::struct_excessive_bools)] // each is an option of the program
pub struct PrintedFlags {
    /// Options for the C or C++ compiler
    #[arg(long)]
    cflags: bool,
    /// The sources of the Fortran module `grpc`: compile them with your program
    #[arg(long)]
    fortran_source: bool,
    /// Options for the linker
    #[arg(long)]
    libs: bool,
    /// With --libs: link the library itself into the program
    #[arg(long, requires = "libs")]
    r#static: bool,
    /// The folder of the headers
    #[arg(long)]
    includedir: bool,
    /// The folder of the libraries
    #[arg(long)]
    libdir: bool,
    /// The folder of the files for pkg-config, to be put into PKG_CONFIG_PATH
    #[arg(long)]
    pkgconfigdir: bool,
    /// The folder below which everything is installed
    #[arg(long)]
    prefix: bool,
    /// The version of the library
    #[arg(long = "lib-version")]
    version: bool,
}

/// Errors of `gridrpc config`.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The program cannot determine its own location.
    #[error("could not find out where this program lies: {0}")]
    Program(#[from] io::Error),
    /// The C library is not installed.
    #[error(
        "the C library is not installed with this program: there is no `{}`. \
         `pip install gridrpc` installs both, and so does `make install-c PREFIX=...`; \
         Debian's package of it is libgridrpc-dev", .0.display()
    )]
    Missing(PathBuf),
    /// The static library is missing.
    #[error(
        "the static library is not installed with this program: there is no `{}`. It is in the wheel \
         gridrpc-static, which `make wheel` builds; `make install-c PREFIX=...` installs it, and so does \
         Debian's libgridrpc-dev", .0.display()
    )]
    MissingStatic(PathBuf),
    /// The file for pkg-config cannot be read.
    #[error("could not read `{}`: {error}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// The line to print.
///
/// # Errors
/// When the C library is not in the installation of this program.
pub fn describe(wanted: PrintedFlags) -> Result<String, ConfigError> {
    // Resolve links: /usr/local/bin may have one to the installation.
    let program = std::env::current_exe()?.canonicalize()?;
    let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    words(prefix, wanted).map(|words| words.join(" ") + "\n")
}

fn words(prefix: &Path, wanted: PrintedFlags) -> Result<Vec<String>, ConfigError> {
    let (include, lib) = (prefix.join("include"), library_folder(prefix));
    let pkgconfig = lib.join("pkgconfig");
    let fortran = include.join("gridrpc/fortran");
    let header = include.join("grpc.h");
    if !header.is_file() {
        return Err(ConfigError::Missing(header));
    }
    let text = |path: &Path| path.display().to_string();
    // Compilers search these by default, in an order of their own.
    let is_known = prefix == Path::new("/usr");
    let mut words = Vec::new();
    let folders = [
        (wanted.prefix, prefix),
        (wanted.includedir, &include),
        (wanted.libdir, &lib),
        (wanted.pkgconfigdir, &pkgconfig),
    ];
    words.extend(folders.iter().filter(|(wanted, _)| *wanted).map(|(_, folder)| text(folder)));
    if wanted.version {
        words.push(env!("CARGO_PKG_VERSION").to_owned());
    }
    if wanted.cflags && !is_known {
        words.push(format!("-I{}", include.display()));
    }
    if wanted.fortran_source {
        words.push(text(&fortran.join("grpc.f90")));
        words.push(text(&fortran.join("grpc_arguments.c")));
    }
    if wanted.libs && wanted.r#static {
        let library = lib.join("libgridrpc.a");
        if !library.is_file() {
            return Err(ConfigError::MissingStatic(library));
        }
        words.push(text(&library));
        words.extend(private_libraries(&pkgconfig.join("gridrpc.pc"))?);
    } else if wanted.libs {
        if !is_known {
            // Programs find the library at its current location from anywhere.
            words.push(format!("-L{}", lib.display()));
            words.push(format!("-Wl,-rpath,{}", lib.display()));
        }
        words.push("-lgridrpc".to_owned());
    }
    Ok(words)
}

/// The library folder. Debian has one per architecture below `lib`.
fn library_folder(prefix: &Path) -> PathBuf {
    let lib = prefix.join("lib");
    let own = lib.join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let is_there = |folder: &Path| folder.join("pkgconfig/gridrpc.pc").is_file();
    if !is_there(&lib) && is_there(&own) { own } else { lib }
}

/// The system libraries that the static library needs.
fn private_libraries(file: &Path) -> Result<Vec<String>, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigError::Unreadable { file: file.to_owned(), error })?;
    let line = text.lines().find_map(|line| line.strip_prefix("Libs.private:"));
    Ok(line.unwrap_or_default().split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(arguments: &[&str]) -> PrintedFlags {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            wanted: PrintedFlags,
        }
        let all = std::iter::once("config").chain(arguments.iter().copied());
        <Program as clap::Parser>::parse_from(all).wanted
    }

    /// A folder that is removed after the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let name = format!("gridrpc-config-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir(&folder).expect("a folder");
            Folder(folder)
        }

        fn write(&self, name: &str, text: &str) {
            let file = self.0.join(name);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn flags_come_in_the_order_that_compilers_want() {
        let prefix = Folder::new("flags");
        prefix.write("include/grpc.h", "");
        prefix.write("lib/pkgconfig/gridrpc.pc", "Libs: -lgridrpc\nLibs.private: -lpthread  -lm\n");
        prefix.write("lib/libgridrpc.a", "");
        let at = prefix.0.display();
        let printed =
            |arguments: &[&str]| words(&prefix.0, wanted(arguments)).expect("words").join(" ");
        assert_eq!(
            printed(&["--libs", "--cflags"]),
            format!("-I{at}/include -L{at}/lib -Wl,-rpath,{at}/lib -lgridrpc")
        );
        assert_eq!(
            printed(&["--libs", "--static"]),
            format!("{at}/lib/libgridrpc.a -lpthread -lm")
        );
        assert_eq!(
            printed(&["--fortran-source"]),
            format!(
                "{at}/include/gridrpc/fortran/grpc.f90 {at}/include/gridrpc/fortran/grpc_arguments.c"
            )
        );
    }

    #[test]
    fn a_library_may_lie_in_the_folder_of_its_architecture() {
        let prefix = Folder::new("architecture");
        let lib = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
        prefix.write("include/grpc.h", "");
        prefix.write(&format!("{lib}/pkgconfig/gridrpc.pc"), "Libs.private: -lm\n");
        prefix.write(&format!("{lib}/libgridrpc.a"), "");
        let at = prefix.0.join(lib);
        let printed =
            |arguments: &[&str]| words(&prefix.0, wanted(arguments)).expect("words").join(" ");
        let at = at.display();
        assert_eq!(printed(&["--libs"]), format!("-L{at} -Wl,-rpath,{at} -lgridrpc"));
        assert_eq!(printed(&["--libs", "--static"]), format!("{at}/libgridrpc.a -lm"));
        assert_eq!(printed(&["--libdir", "--pkgconfigdir"]), format!("{at} {at}/pkgconfig"));
    }

    #[test]
    fn what_is_not_installed_is_reported() {
        let prefix = Folder::new("nothing");
        let error = words(&prefix.0, wanted(&["--libs"])).expect_err("nothing is there");
        assert!(error.to_string().contains("include/grpc.h"), "{error}");
        prefix.write("include/grpc.h", "");
        let error = words(&prefix.0, wanted(&["--libs", "--static"])).expect_err("only the other");
        assert!(error.to_string().contains("lib/libgridrpc.a"), "{error}");
    }
}

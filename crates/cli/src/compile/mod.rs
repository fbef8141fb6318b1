//! Builds a module from an IDL file: stub source, compiler, linker.

mod error;
mod recipe;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gridrpc_idl::{
    Body, Diagnostic, Dialect, Function, Kind, MAX_SOURCE, Module, Parsed, Severity,
};
use nix::unistd::mkdtemp;

use error::print_error;
use recipe::Recipe;

pub use error::CompileError;
pub use recipe::{CompilerOptions, all_functions, definition, headers, required, usual_compilers};

/// Most errors, and most warnings, that are printed for a file; text that is not IDL has hundreds.
const SHOWN: usize = 20;

/// Endings of source files and objects, which are no interface descriptions.
const SOURCES: [&str; 11] = ["c", "C", "cc", "cpp", "cxx", "h", "hpp", "f", "f90", "o", "so"];

/// Options of a build.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder for the module; empty: the current folder.
    pub folder: PathBuf,
    /// Whether to keep the stub's source next to the module.
    pub keep_source: bool,
    /// The dialect of a file that names none.
    pub dialect: Dialect,
    /// Compiler, linker, and their arguments.
    pub given: CompilerOptions,
}

/// Reads an IDL file and prints its errors, and with `warns` its warnings, to standard error.
///
/// # Errors
/// When it cannot be read, has errors, or has only functions that cannot run here.
pub fn read(file: &Path, dialect: Dialect, warns: bool) -> Result<Module, CompileError> {
    let unreadable = |why: String| CompileError::Read { file: file.to_owned(), why };
    let mut source = Vec::new();
    // Do not use the file's length: a pipe has none, and some files report a wrong one.
    File::open(file)
        .and_then(|file| file.take(MAX_SOURCE as u64 + 1).read_to_end(&mut source))
        .map_err(|error| unreadable(error.to_string()))?;
    if source.len() > MAX_SOURCE {
        return Err(unreadable(format!("it has more than {MAX_SOURCE} bytes")));
    }
    if file.extension().is_some_and(|ending| SOURCES.iter().any(|known| ending == *known)) {
        return Err(CompileError::Source { file: file.to_owned() });
    }
    let source = String::from_utf8(source).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        unreadable(format!("line {line} is not UTF-8"))
    })?;
    let name = file.display().to_string();
    let Parsed { module, mut diagnostics } = gridrpc_idl::parse_as(&source, dialect);
    diagnostics.retain(|found| warns || found.severity == Severity::Error);
    let errors = report(&diagnostics, &name, &source);
    let module = module.ok_or_else(|| CompileError::Broken { file: file.to_owned(), errors })?;
    match refuse_parallel(&module, file) {
        0 => Ok(module),
        errors => Err(CompileError::Broken { file: file.to_owned(), errors }),
    }
}

/// Prints which functions cannot run on several processes and returns their number.
fn refuse_parallel(module: &Module, file: &Path) -> usize {
    let methods = module.classes.iter().flat_map(|class| {
        let name = |method: &Function| format!("{}.{}", class.name, method.name);
        class.methods.iter().filter(|method| method.is_parallel()).map(name)
    });
    let methods: Vec<_> = methods.map(|name| (name, "is a method of a class")).collect();
    let functions = module.functions.iter().filter(|function| function.is_parallel());
    let with_callbacks = functions.filter(|function| {
        function.parameters.iter().any(|parameter| matches!(parameter.kind, Kind::Callback(_)))
    });
    let with_callbacks = with_callbacks.map(|function| (function.name.clone(), "has callbacks"));
    let refused: Vec<_> = methods.into_iter().chain(with_callbacks).collect();
    for (name, what) in &refused {
        print_error(&format!(
            "{}: error: `{name}` {what}, which Backend \"MPI\" does not allow: leave out `Backend`, or write a \
             function without",
            file.display()
        ));
    }
    refused.len()
}

/// Prints diagnostics, up to a limit, and returns the number of errors.
fn report(diagnostics: &[Diagnostic], name: &str, source: &str) -> usize {
    let of = |severity| diagnostics.iter().filter(move |found| found.severity == severity);
    let (errors, warnings) = (of(Severity::Error).count(), of(Severity::Warning).count());
    let (mut of_errors, mut of_warnings) = (0, 0);
    for found in diagnostics {
        let so_far = match found.severity {
            Severity::Error => &mut of_errors,
            Severity::Warning => &mut of_warnings,
        };
        *so_far += 1;
        if *so_far <= SHOWN {
            print_error(found.render(name, source).trim_end());
        }
    }
    for (all, what) in [(errors, "errors"), (warnings, "warnings")] {
        if all > SHOWN {
            print_error(&format!("{name}: and {} more {what}", all - SHOWN));
        }
    }
    errors
}

/// Compiles an IDL file into a module and returns its path.
///
/// # Errors
/// When the file has errors, or the compiler or the linker fails.
pub fn compile(file: &Path, options: &Options) -> Result<PathBuf, CompileError> {
    let module = read(file, options.dialect, true)?;
    let without_body = all_functions(&module).filter(|function| function.body == Body::None);
    let without_body: Vec<&str> = without_body.map(|function| function.name.as_str()).collect();
    if !without_body.is_empty() {
        let names = without_body.join("`, `");
        print_error(&format!(
            "{}: error: nothing says what `{names}` calls: add `Calls ...` or a body",
            file.display()
        ));
        return Err(CompileError::Broken { file: file.to_owned(), errors: without_body.len() });
    }
    let folder =
        if options.folder.as_os_str().is_empty() { Path::new(".") } else { &options.folder };
    let writing = |path: &Path| {
        let path = path.to_owned();
        move |error| CompileError::Write { path, error }
    };
    fs::create_dir_all(folder).map_err(writing(folder))?;
    let work = Scratch::new(folder).map_err(writing(folder))?;

    let cpp = module.is_cpp();
    let source = work.0.join(if cpp { "stub.cpp" } else { "stub.c" });
    let text = gridrpc_idl::stub_source(&module, &file.display().to_string());
    fs::write(&source, &text).map_err(writing(&source))?;
    if options.keep_source {
        let extension = if cpp { "stub.cpp" } else { "stub.c" };
        let destination = folder.join(format!("{}.{extension}", module.name));
        let copy = work.0.join("copy");
        // Replace an existing file; if it is a link, do not follow it.
        let placed = fs::copy(&source, &copy).and_then(|_| fs::rename(&copy, &destination));
        placed.map_err(writing(&destination))?;
    }

    let recipe = Recipe::new(&module, file, &options.given);
    let object = work.0.join("stub.o");
    recipe.compile(&source, &object)?;
    let built = work.0.join("module.so");
    recipe.link(&object, &built)?;
    // Atomically, so that nobody loads a partial module.
    let target = folder.join(format!("{}.so", module.name));
    fs::rename(&built, &target).map_err(writing(&target))?;
    Ok(target)
}

/// Folder for intermediate files, removed on drop. It is new and private to this user, so that in a shared
/// folder nobody can redirect writes with a link.
struct Scratch(PathBuf);

impl Scratch {
    fn new(beside: &Path) -> io::Result<Scratch> {
        Ok(Scratch(mkdtemp(&beside.join(".gridrpc-compile-XXXXXX"))?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

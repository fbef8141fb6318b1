//! From an IDL file to a module: stub source, compiler, linker.

mod error;
mod recipe;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gridrpc_idl::{
    Body, Diagnostic, Dialect, Function, Kind, MAX_SOURCE, Module, Parsed, Severity,
};
use nix::unistd::mkdtemp;

use error::say;
use recipe::Recipe;

pub use error::CompileError;
pub use recipe::{Given, all_functions, definition, headers, required, usual_compilers};

/// So many errors of a file are shown, and so many warnings. What is no IDL at all has hundreds.
const SHOWN: usize = 20;

/// What to make.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the module goes; empty: the current folder.
    pub folder: PathBuf,
    /// Whether the stub's source is kept beside the module.
    pub keep_source: bool,
    /// What the file means if it names no dialect.
    pub dialect: Dialect,
    /// Compiler, linker, and their arguments.
    pub given: Given,
}

/// Reads an IDL file, and reports what is wrong with it on standard error. `warns`: with warnings.
///
/// # Errors
/// When it cannot be read, has errors, or has only functions that cannot run here.
pub fn read(file: &Path, dialect: Dialect, warns: bool) -> Result<Module, CompileError> {
    let unreadable = |why: String| CompileError::Read { file: file.to_owned(), why };
    let mut source = Vec::new();
    // Not asked for its length before: a pipe has none, and some files tell a wrong one.
    File::open(file)
        .and_then(|file| file.take(MAX_SOURCE as u64 + 1).read_to_end(&mut source))
        .map_err(|error| unreadable(error.to_string()))?;
    if source.len() > MAX_SOURCE {
        return Err(unreadable(format!("it has more than {MAX_SOURCE} bytes")));
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

/// Says which functions cannot run on several processes; how many those are.
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
        say(&format!(
            "{}: error: `{name}` {what}, which Backend \"MPI\" does not allow: leave out `Backend`, or write a \
             function without",
            file.display()
        ));
    }
    refused.len()
}

/// Says what is wrong, up to a bound; how many errors there are.
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
            say(found.render(name, source).trim_end());
        }
    }
    for (all, what) in [(errors, "errors"), (warnings, "warnings")] {
        if all > SHOWN {
            say(&format!("{name}: and {} more {what}", all - SHOWN));
        }
    }
    errors
}

/// Compiles an IDL file into a module; returns where it is.
///
/// # Errors
/// When the file has errors, or the compiler or the linker fails.
pub fn compile(file: &Path, options: &Options) -> Result<PathBuf, CompileError> {
    let module = read(file, options.dialect, true)?;
    let without_body = all_functions(&module).filter(|function| function.body == Body::None);
    let without_body: Vec<&str> = without_body.map(|function| function.name.as_str()).collect();
    if !without_body.is_empty() {
        let names = without_body.join("`, `");
        say(&format!(
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
        let kept = folder.join(format!("{}.{extension}", module.name));
        let copy = work.0.join("copy");
        // In the place of what is there, and not through it if it is a link.
        let placed = fs::copy(&source, &copy).and_then(|_| fs::rename(&copy, &kept));
        placed.map_err(writing(&kept))?;
    }

    let recipe = Recipe::new(&module, file, &options.given);
    let object = work.0.join("stub.o");
    recipe.compile(&source, &object)?;
    let built = work.0.join("module.so");
    recipe.link(&object, &built)?;
    // In one step, so that nobody loads half a module.
    let target = folder.join(format!("{}.so", module.name));
    fs::rename(&built, &target).map_err(writing(&target))?;
    Ok(target)
}

/// A folder for what is made on the way, gone at the end. It is new and this user's alone: where
/// others may write, nobody can put a link of theirs in the way of what is written.
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

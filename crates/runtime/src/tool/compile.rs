//! From an IDL file to a module: stub source, compiler, linker.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridrpc_idl::{Body, Function, Module, Parsed};
use thiserror::Error;

/// The longest IDL file, bytes.
const LONGEST: u64 = 4 << 20;

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
    /// The compiler or the linker has failed; it has said why.
    #[error("`{program}` could not compile the module; what it says stands above")]
    Compiler {
        /// Which.
        program: String,
    },
}

/// What to make.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the module goes; empty: the current folder.
    pub folder: PathBuf,
    /// Whether the stub's source is kept beside the module.
    pub keep_source: bool,
    /// Further arguments for the compiler and the linker.
    pub arguments: Vec<String>,
}

/// Reads an IDL file, and reports what is wrong with it on standard error.
///
/// # Errors
/// When it cannot be read or has errors.
pub fn read(file: &Path) -> Result<Module, CompileError> {
    let unreadable = |why: String| CompileError::Read { file: file.to_owned(), why };
    let length = fs::metadata(file).map_err(|error| unreadable(error.to_string()))?.len();
    if length > LONGEST {
        return Err(unreadable(format!("it has {length} bytes, more than {LONGEST}")));
    }
    let source = fs::read(file).map_err(|error| unreadable(error.to_string()))?;
    let source = String::from_utf8(source).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        unreadable(format!("line {line} is not UTF-8"))
    })?;
    let name = file.display().to_string();
    let Parsed { module, diagnostics } = gridrpc_idl::parse(&source);
    for diagnostic in &diagnostics {
        eprintln!("{}", diagnostic.render(&name, &source).trim_end());
    }
    module.ok_or_else(|| {
        let is_error = |d: &&gridrpc_idl::Diagnostic| d.severity == gridrpc_idl::Severity::Error;
        let errors = diagnostics.iter().filter(is_error).count();
        CompileError::Broken { file: file.to_owned(), errors }
    })
}

/// Compiles an IDL file into a module; returns where it is.
///
/// # Errors
/// When the file has errors, or the compiler or the linker fails.
pub fn compile(file: &Path, options: &Options) -> Result<PathBuf, CompileError> {
    let module = read(file)?;
    let without_body = all_functions(&module).filter(|function| function.body == Body::None);
    let without_body: Vec<&str> = without_body.map(|function| function.name.as_str()).collect();
    if !without_body.is_empty() {
        let names = without_body.join("`, `");
        eprintln!(
            "{}: error: nothing says what `{names}` calls: add `Calls ...` or a body",
            file.display()
        );
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
        fs::write(&kept, &text).map_err(writing(&kept))?;
    }

    let recipe = Recipe::new(&module, file, cpp, &options.arguments);
    let object = work.0.join("stub.o");
    recipe.compile(&source, &object)?;
    let built = work.0.join("module.so");
    recipe.link(&object, &built)?;
    // In one step, so that nobody loads half a module.
    let target = folder.join(format!("{}.so", module.name));
    fs::rename(&built, &target).map_err(writing(&target))?;
    Ok(target)
}

fn all_functions(module: &Module) -> impl Iterator<Item = &Function> {
    module.functions.iter().chain(module.classes.iter().flat_map(|class| &class.methods))
}

/// A folder for what is made on the way, gone at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(beside: &Path) -> io::Result<Scratch> {
        let path = beside.join(format!(".gridrpc-compile-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a module is compiled and linked.
#[derive(Debug, PartialEq, Eq)]
struct Recipe {
    compiler: Vec<String>,
    compile_options: Vec<String>,
    linker: Vec<String>,
    link_options: Vec<String>,
    /// Where `Required` files and headers are looked for.
    folder: PathBuf,
}

impl Recipe {
    fn new(module: &Module, file: &Path, cpp: bool, more: &[String]) -> Recipe {
        let variable = |name: &str, otherwise: &str| {
            words(&std::env::var(name).ok().filter(|v| !v.is_empty()).unwrap_or(otherwise.into()))
        };
        let fortran = all_functions(module).any(Function::fortran);
        let compiler = if cpp { variable("CXX", "c++") } else { variable("CC", "cc") };
        // Fortran's run-time library is the Fortran compiler's to add.
        let linker = if fortran { variable("FC", "gfortran") } else { compiler.clone() };
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut recipe = Recipe {
            compiler,
            compile_options: Vec::new(),
            linker,
            link_options: Vec::new(),
            folder: parent.unwrap_or(Path::new(".")).to_owned(),
        };
        if let Some(compiler) = &module.compiler {
            recipe.compiler = words(compiler);
        }
        if let Some(linker) = &module.linker {
            recipe.linker = words(linker);
        }
        module.compile_options.iter().for_each(|options| recipe.add_options(options));
        let classes = module.classes.iter().flat_map(|class| &class.required);
        let required = all_functions(module).flat_map(|function| &function.required).chain(classes);
        for required in required.flat_map(|required| words(required)) {
            let file = recipe.beside(&required);
            if !recipe.link_options.contains(&file) {
                recipe.link_options.push(file);
            }
        }
        for library in module.libraries.iter().flat_map(|library| words(library)) {
            let library = recipe.beside(&library);
            recipe.link_options.push(library);
        }
        recipe.compile_options.extend(more.iter().filter(|word| !is_for_linker(word)).cloned());
        recipe.link_options.extend(more.iter().filter(|word| is_for_linker(word)).cloned());
        recipe
    }

    /// `CompileOptions`: options, or a definition as in a makefile (`CC = gcc`).
    fn add_options(&mut self, options: &str) {
        let definition = options.split_once('=').filter(|(name, _)| {
            let name = name.trim();
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        });
        let Some((name, value)) = definition else {
            return self.compile_options.extend(words(options));
        };
        let value = words(value);
        match name.trim() {
            "CC" | "CXX" if !value.is_empty() => self.compiler = value,
            "LD" | "LINKER" | "FC" | "F77" if !value.is_empty() => self.linker = value,
            "LDFLAGS" | "LIBS" | "LDLIBS" => self.link_options.extend(value),
            "CFLAGS" | "CPPFLAGS" | "CXXFLAGS" | "INCLUDES" => self.compile_options.extend(value),
            other => eprintln!("warning: `CompileOptions \"{other} = ...\"` means nothing here"),
        }
    }

    /// Files are named as seen from the IDL file.
    fn beside(&self, word: &str) -> String {
        let path = self.folder.join(word);
        if !word.starts_with('-') && path.exists() {
            path.display().to_string()
        } else {
            word.into()
        }
    }

    fn compile(&self, source: &Path, object: &Path) -> Result<(), CompileError> {
        let mut command = start(&self.compiler);
        command
            .args(["-O2", "-g", "-fPIC", "-fvisibility=hidden", "-c"])
            .arg(source)
            .arg("-o")
            .arg(object);
        command.arg("-I").arg(&self.folder).args(&self.compile_options);
        run(command, &self.compiler)
    }

    fn link(&self, object: &Path, library: &Path) -> Result<(), CompileError> {
        let mut command = start(&self.linker);
        // A function that is nowhere is an error here, not in the worker.
        command.args(["-shared", "-Wl,-z,defs", "-o"]).arg(library).arg(object);
        command.args(&self.link_options).arg("-lm");
        run(command, &self.linker)
    }
}

fn is_for_linker(word: &str) -> bool {
    ["-l", "-L", "-Wl,"].iter().any(|start| word.starts_with(start))
        || [".o", ".a", ".so"].iter().any(|end| word.ends_with(end))
}

fn start(program: &[String]) -> Command {
    let mut command = Command::new(program.first().map_or("cc", String::as_str));
    command.args(program.iter().skip(1));
    command
}

fn run(mut command: Command, program: &[String]) -> Result<(), CompileError> {
    let program = program.join(" ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(CompileError::Compiler { program }),
        Err(error) => Err(CompileError::NoCompiler { program, error }),
    }
}

/// Splits at spaces, with quotes as in a shell.
fn words(text: &str) -> Vec<String> {
    shlex::split(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(idl: &str) -> Recipe {
        let module = gridrpc_idl::parse(idl).module.expect("valid IDL");
        Recipe::new(&module, Path::new("here/m.idl"), false, &["-DX".into(), "-lz".into()])
    }

    #[test]
    fn options_definitions_and_libraries_go_where_they_belong() {
        let recipe = recipe(
            r#"Module m; CompileOptions "-O3 -DNAME='a b'"; CompileOptions "CC = clang -m64";
               CompileOptions "LDFLAGS = -L/opt"; Library "-lfoo";
               Define f() Required "part.o" Calls "C" f();"#,
        );
        assert_eq!(recipe.compiler, ["clang", "-m64"]);
        assert_eq!(recipe.compile_options, ["-O3", "-DNAME=a b", "-DX"]);
        assert_eq!(recipe.link_options, ["-L/opt", "part.o", "-lfoo", "-lz"]);
    }
}

//! Compile and link commands of a module, from the IDL file and the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridrpc_idl::{Dialect, FORTRAN_ENDS, Function, Module};

use super::error::{CompileError, print_error};

/// Settings from the command line.
#[derive(Clone, Debug, Default)]
pub struct CompilerOptions {
    /// The compiler with its arguments, instead of the file's or the default one.
    pub compiler: Option<String>,
    /// The linker with its arguments.
    pub linker: Option<String>,
    /// Additional arguments for both.
    pub arguments: Vec<String>,
    /// Whether these are complete: a makefile has already merged the file's compilers, options, objects and
    /// libraries into them.
    pub flags_given: bool,
}

/// Compile and link commands of a module.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    compiler: Vec<String>,
    compile_options: Vec<String>,
    linker: Vec<String>,
    link_options: Vec<String>,
    /// Whether it has Fortran functions.
    fortran: bool,
    /// The folder that `Required` files and headers are relative to.
    folder: PathBuf,
}

impl Recipe {
    pub(super) fn new(module: &Module, file: &Path, given: &CompilerOptions) -> Recipe {
        let cpp = module.is_cpp();
        let fortran = all_functions(module).any(Function::fortran);
        let variable = |name: &str, otherwise: &str| {
            words(&std::env::var(name).ok().filter(|v| !v.is_empty()).unwrap_or(otherwise.into()))
        };
        let (cc, cxx, fc) = usual_compilers(module);
        let compiler = if cpp { variable("CXX", cxx) } else { variable("CC", cc) };
        // The Fortran compiler adds its run-time library.
        let linker = if fortran { variable("FC", fc) } else { compiler.clone() };
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let mut recipe = Recipe {
            compiler,
            compile_options: Vec::new(),
            linker,
            link_options: Vec::new(),
            fortran,
            folder: parent.unwrap_or(Path::new(".")).to_owned(),
        };
        if module.dialect == Dialect::NinfG && !cpp {
            // Old C code calls functions before it declares them; newer compilers reject that.
            let lenient = ["implicit-function-declaration", "implicit-int", "int-conversion"];
            let lenient = lenient.iter().map(|what| format!("-Wno-error={what}"));
            recipe.compile_options.extend(lenient);
        }
        if !given.flags_given {
            recipe.take_from(module);
        }
        for (given, taken) in
            [(&given.compiler, &mut recipe.compiler), (&given.linker, &mut recipe.linker)]
        {
            let given = given.as_deref().map(words).unwrap_or_default();
            if !given.is_empty() {
                *taken = given;
            }
        }
        if given.compiler.is_some() && given.linker.is_none() && !fortran {
            recipe.linker.clone_from(&recipe.compiler);
        }
        let (for_linker, for_compiler): (Vec<&String>, Vec<&String>) =
            given.arguments.iter().partition(|word| is_for_linker(word));
        recipe.compile_options.extend(for_compiler.into_iter().cloned());
        if given.flags_given {
            // Options such as -fopenmp and -m32 apply to both; linkers ignore those of compilers.
            recipe.link_options.extend(given.arguments.iter().cloned());
        } else {
            recipe.link_options.extend(for_linker.into_iter().cloned());
        }
        recipe
    }

    /// Adds the file's own settings.
    fn take_from(&mut self, module: &Module) {
        if let Some(compiler) = &module.compiler {
            self.compiler = words(compiler);
        }
        if let Some(linker) = &module.linker {
            self.linker = words(linker);
        }
        module.compile_options.iter().for_each(|options| self.add_options(options));
        for required in required(module).flat_map(words) {
            let file = self.beside(&required);
            if !self.link_options.contains(&file) {
                self.link_options.push(file);
            }
        }
        for library in module.libraries.iter().flat_map(|library| words(library)) {
            let library = self.beside(&library);
            self.link_options.push(library);
        }
    }

    /// `CompileOptions`: options, or a makefile definition (`CC = gcc`).
    fn add_options(&mut self, options: &str) {
        let Some((name, value)) = definition(options) else {
            return self.compile_options.extend(words(options));
        };
        let value = words(value);
        match name {
            "CC" | "CXX" if !value.is_empty() => self.compiler = value,
            "LD" | "LINKER" | "FC" | "F77" if !value.is_empty() => self.linker = value,
            "LDFLAGS" | "LIBS" | "LDLIBS" => self.link_options.extend(value),
            "CFLAGS" | "CPPFLAGS" | "CXXFLAGS" | "INCLUDES" => self.compile_options.extend(value),
            other => print_error(&format!(
                "warning: `CompileOptions \"{other} = ...\"` means nothing here"
            )),
        }
    }

    /// Resolves a file name relative to the IDL file.
    fn beside(&self, word: &str) -> String {
        let path = self.folder.join(word);
        if !word.starts_with('-') && path.exists() {
            path.display().to_string()
        } else {
            word.into()
        }
    }

    pub(super) fn compile(&self, source: &Path, object: &Path) -> Result<(), CompileError> {
        let mut command = start(&self.compiler);
        command
            .args(["-O2", "-g", "-fPIC", "-fvisibility=hidden", "-c"])
            .arg(source)
            .arg("-o")
            .arg(object);
        if let Some(folder) = source.parent().filter(|_| is_gnu_like(&self.compiler)) {
            // The same source gives the same module, whatever the name of the temporary folder.
            command.arg(format!("-fdebug-prefix-map={}=.", folder.display()));
        }
        command.arg("-I").arg(&self.folder).args(&self.compile_options);
        if let Some(headers) = headers() {
            command.arg("-I").arg(headers);
        }
        run(command, &self.compiler)
    }

    pub(super) fn link(&self, object: &Path, library: &Path) -> Result<(), CompileError> {
        let mut command = start(&self.linker);
        // Report undefined functions here rather than in the worker.
        command.args(["-shared", "-Wl,-z,defs", "-o"]).arg(library).arg(object);
        command.args(&self.link_options).arg("-lm");
        if self.fortran {
            command.args(FORTRAN_ENDS.map(|name| format!("-Wl,--wrap={name}")));
        }
        run(command, &self.linker)
    }
}

/// Default compilers for C, C++ and Fortran. MPI's know the location of its headers and libraries.
pub fn usual_compilers(module: &Module) -> (&'static str, &'static str, &'static str) {
    match module.is_parallel() {
        true => ("mpicc", "mpicxx", "mpifort"),
        false => ("cc", "c++", "gfortran"),
    }
}

/// Files and libraries that the functions and classes require, as written.
pub fn required(module: &Module) -> impl Iterator<Item = &str> {
    let classes = module.classes.iter().flat_map(|class| &class.required);
    let functions = module.functions.iter().flat_map(|function| &function.required);
    functions.chain(classes).map(String::as_str)
}

/// Name and value if the options are a makefile definition.
pub fn definition(options: &str) -> Option<(&str, &str)> {
    let (name, value) = options.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some((name, value))
}

/// The folder of `grpc.h`, if it is installed with this program and is not on the compilers' default path.
pub fn headers() -> Option<PathBuf> {
    let program = fs::canonicalize(std::env::current_exe().ok()?).ok()?;
    let folder = program.parent()?.parent()?.join("include");
    // Compilers search /usr/include by default, in an order of their own.
    (folder != Path::new("/usr/include") && folder.join("grpc.h").is_file()).then_some(folder)
}

fn is_for_linker(word: &str) -> bool {
    ["-l", "-L", "-Wl,"].iter().any(|start| word.starts_with(start))
        || [".o", ".a", ".so"].iter().any(|end| word.ends_with(end))
}

/// Whether the compiler is one of GNU's or Clang, by its name. Others, also behind MPI's wrappers, may refuse options that
/// only these are known to have.
fn is_gnu_like(compiler: &[String]) -> bool {
    let name = compiler.first().map_or("cc", String::as_str);
    let name = name.rsplit('/').next().unwrap_or(name);
    matches!(name, "cc" | "c++")
        || ["gcc", "g++", "clang"].iter().any(|known| {
            name.starts_with(known)
                || name.rsplit_once(known).is_some_and(|(start, _)| start.ends_with('-'))
        })
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
        Ok(_) if program.starts_with("mpi") => Err(CompileError::MpiCompiler { program }),
        Ok(_) => Err(CompileError::Compiler { program }),
        Err(error) if program.starts_with("mpi") => Err(CompileError::NoMpi { program, error }),
        Err(error) => Err(CompileError::NoCompiler { program, error }),
    }
}

/// Splits at spaces, with shell quoting.
fn words(text: &str) -> Vec<String> {
    shlex::split(text).unwrap_or_else(|| text.split_whitespace().map(str::to_owned).collect())
}

pub fn all_functions(module: &Module) -> impl Iterator<Item = &Function> {
    module.functions.iter().chain(module.classes.iter().flat_map(|class| &class.methods))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(idl: &str) -> Recipe {
        let module = gridrpc_idl::parse(idl).module.expect("valid IDL");
        let given = CompilerOptions {
            arguments: vec!["-DX".into(), "-lz".into()],
            ..CompilerOptions::default()
        };
        Recipe::new(&module, Path::new("here/m.idl"), &given)
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

    #[test]
    fn compilers_of_gnu_and_clang_are_known_by_their_names() {
        let is = |name: &str| is_gnu_like(&[name.to_owned()]);
        for known in ["cc", "c++", "/usr/bin/g++-13", "gcc", "clang++", "x86_64-linux-gnu-gcc-12"] {
            assert!(is(known), "{known}");
        }
        for other in ["nvc++", "mpicc", "icc", "/opt/gcc/bin/nvc", "pgc++"] {
            assert!(!is(other), "{other}");
        }
    }

    #[test]
    fn of_a_makefile_all_flags_come_as_arguments() {
        let idl = r#"Module m; Compiler "mpicc"; Library "-lfoo"; CompileOptions "-O3";
               Define f() Required "part.o" Calls "C" f();"#;
        let module = gridrpc_idl::parse(idl).module.expect("valid IDL");
        let arguments = ["-fopenmp", "other.o", "-lz"].map(str::to_owned).to_vec();
        let (compiler, linker) = (Some("gcc -m64".to_owned()), Some(String::new()));
        let given = CompilerOptions { compiler, linker, arguments, flags_given: true };
        let recipe = Recipe::new(&module, Path::new("m.idl"), &given);
        assert_eq!(recipe.compiler, ["gcc", "-m64"]);
        assert_eq!(recipe.compile_options, ["-fopenmp"]);
        assert_eq!(recipe.link_options, ["-fopenmp", "other.o", "-lz"]);
        assert_ne!(recipe.linker, ["mpicc"]);
    }
}

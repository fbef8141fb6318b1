//! How a module is compiled and linked: what the file says, and what is given beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridrpc_idl::{Dialect, FORTRAN_ENDS, Function, Module};

use super::error::{CompileError, say};

/// What whoever compiles gives beside the file.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The compiler with its arguments, instead of the file's or the usual one.
    pub compiler: Option<String>,
    /// The linker with its arguments.
    pub linker: Option<String>,
    /// Further arguments for both.
    pub arguments: Vec<String>,
    /// Whether those are all: what the file says of compilers, options, objects and libraries is
    /// among them already, since a makefile has taken it over.
    pub flags_given: bool,
}

/// How a module is compiled and linked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    compiler: Vec<String>,
    compile_options: Vec<String>,
    linker: Vec<String>,
    link_options: Vec<String>,
    /// Whether it has functions in Fortran.
    fortran: bool,
    /// Where `Required` files and headers are looked for.
    folder: PathBuf,
}

impl Recipe {
    pub(super) fn new(module: &Module, file: &Path, given: &Given) -> Recipe {
        let cpp = module.is_cpp();
        let fortran = all_functions(module).any(Function::fortran);
        let variable = |name: &str, otherwise: &str| {
            words(&std::env::var(name).ok().filter(|v| !v.is_empty()).unwrap_or(otherwise.into()))
        };
        let (cc, cxx, fc) = usual_compilers(module);
        let compiler = if cpp { variable("CXX", cxx) } else { variable("CC", cc) };
        // Fortran's run-time library is the Fortran compiler's to add.
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
            // C of the time declares no functions before it calls them; newer compilers refuse it.
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
            // Such as -fopenmp and -m32 are for both; what does not matter to a linker does no harm.
            recipe.link_options.extend(given.arguments.iter().cloned());
        } else {
            recipe.link_options.extend(for_linker.into_iter().cloned());
        }
        recipe
    }

    /// What the file says itself.
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

    /// `CompileOptions`: options, or a definition as in a makefile (`CC = gcc`).
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
            other => {
                say(&format!("warning: `CompileOptions \"{other} = ...\"` means nothing here"))
            }
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

    pub(super) fn compile(&self, source: &Path, object: &Path) -> Result<(), CompileError> {
        let mut command = start(&self.compiler);
        command
            .args(["-O2", "-g", "-fPIC", "-fvisibility=hidden", "-c"])
            .arg(source)
            .arg("-o")
            .arg(object);
        command.arg("-I").arg(&self.folder).args(&self.compile_options);
        if let Some(headers) = headers() {
            command.arg("-I").arg(headers);
        }
        run(command, &self.compiler)
    }

    pub(super) fn link(&self, object: &Path, library: &Path) -> Result<(), CompileError> {
        let mut command = start(&self.linker);
        // A function that is nowhere is an error here, not in the worker.
        command.args(["-shared", "-Wl,-z,defs", "-o"]).arg(library).arg(object);
        command.args(&self.link_options).arg("-lm");
        if self.fortran {
            command.args(FORTRAN_ENDS.map(|name| format!("-Wl,--wrap={name}")));
        }
        run(command, &self.linker)
    }
}

/// The compilers of C, C++ and Fortran. Those of MPI know where its headers and libraries are.
pub fn usual_compilers(module: &Module) -> (&'static str, &'static str, &'static str) {
    match module.is_parallel() {
        true => ("mpicc", "mpicxx", "mpifort"),
        false => ("cc", "c++", "gfortran"),
    }
}

/// The files and libraries that the functions and classes need, as they are written.
pub fn required(module: &Module) -> impl Iterator<Item = &str> {
    let classes = module.classes.iter().flat_map(|class| &class.required);
    let functions = module.functions.iter().flat_map(|function| &function.required);
    functions.chain(classes).map(String::as_str)
}

/// The name and the value, if options are a definition as in a makefile.
pub fn definition(options: &str) -> Option<(&str, &str)> {
    let (name, value) = options.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some((name, value))
}

/// Where `grpc.h` lies, if it is installed with this program and compilers do not find it by themselves.
pub fn headers() -> Option<PathBuf> {
    let program = fs::canonicalize(std::env::current_exe().ok()?).ok()?;
    let folder = program.parent()?.parent()?.join("include");
    // Compilers look in /usr/include by themselves, and have an order of their own for what is there.
    (folder != Path::new("/usr/include") && folder.join("grpc.h").is_file()).then_some(folder)
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
        Ok(_) if program.starts_with("mpi") => Err(CompileError::MpiCompiler { program }),
        Ok(_) => Err(CompileError::Compiler { program }),
        Err(error) if program.starts_with("mpi") => Err(CompileError::NoMpi { program, error }),
        Err(error) => Err(CompileError::NoCompiler { program, error }),
    }
}

/// Splits at spaces, with quotes as in a shell.
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
        let given = Given { arguments: vec!["-DX".into(), "-lz".into()], ..Given::default() };
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
    fn of_a_makefile_all_flags_come_as_arguments() {
        let idl = r#"Module m; Compiler "mpicc"; Library "-lfoo"; CompileOptions "-O3";
               Define f() Required "part.o" Calls "C" f();"#;
        let module = gridrpc_idl::parse(idl).module.expect("valid IDL");
        let arguments = ["-fopenmp", "other.o", "-lz"].map(str::to_owned).to_vec();
        let (compiler, linker) = (Some("gcc -m64".to_owned()), Some(String::new()));
        let given = Given { compiler, linker, arguments, flags_given: true };
        let recipe = Recipe::new(&module, Path::new("m.idl"), &given);
        assert_eq!(recipe.compiler, ["gcc", "-m64"]);
        assert_eq!(recipe.compile_options, ["-fopenmp"]);
        assert_eq!(recipe.link_options, ["-fopenmp", "other.o", "-lz"]);
        assert_ne!(recipe.linker, ["mpicc"]);
    }
}

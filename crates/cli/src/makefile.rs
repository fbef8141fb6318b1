//! The makefile of `ng_gen`. Existing makefiles run it with their own flags and expect it to build the files
//! that functions require, and an executable per function.

use std::fmt::Write;
use std::path::Path;

use gridrpc_idl::{Dialect, Function, Module};
use thiserror::Error;

use crate::compile::{all_functions, definition, headers, required, usual_compilers};

/// A file name that a makefile cannot express.
#[derive(Debug, Error)]
#[error("a makefile cannot name the file `{}`: rename it, to letters and digits at best", .0.escape_debug())]
pub struct NameError(String);

/// Input of the makefile, besides the module.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The IDL file.
    pub file: &'a Path,
    /// Whether the file is generated; `make veryclean` then removes it.
    pub is_made: bool,
    /// The dialect of files that name none.
    pub dialect: Dialect,
    /// Options for the C preprocessor.
    pub options: &'a [String],
}

/// Build rules beyond make's own.
const RULES: &str = "\
@DEFAULTS@ifeq ($(origin NG_COMPILER),undefined)
NG_COMPILER = @COMPILER@
else
CC = $(NG_COMPILER)
endif
ifeq ($(origin NG_LINKER),undefined)
NG_LINKER = @LINKER@
endif
# Objects become a part of a shared library, whatever flags are given.
override CFLAGS += -fPIC
override CXXFLAGS += -fPIC
override FFLAGS += -fPIC
override CPPFLAGS += @CPPFLAGS@

%.o: %.f90
\t$(FC) $(FFLAGS) -c -o $@ $<

%.o: %.F90
\t$(FC) $(FFLAGS) $(CPPFLAGS) -c -o $@ $<

";

/// The text of `MODULE.mak`. Its targets are the module; `_stub_NAME` for each function and class, an alias
/// of the module; and information files under the names that configurations may use for them.
///
/// # Errors
/// When the file's name cannot be expressed in a makefile.
pub fn makefile(module: &Module, source: Source<'_>) -> Result<String, NameError> {
    let name = &module.name;
    let idl = source.file.to_str().ok_or_else(|| NameError(source.file.display().to_string()))?;
    let functions = module.functions.iter().map(|function| &function.name);
    let stubs = functions.chain(module.classes.iter().map(|class| &class.name));
    let stubs: Vec<String> = stubs.map(|name| format!("_stub_{name}")).collect();
    let (objects, flags) = split_required(module, source.file);
    let libraries: Vec<&str> =
        flags.iter().map(String::as_str).chain(module.libraries.iter().map(|l| l.trim())).collect();

    let mut text = format!(
        "# Made by gridrpc.\n\
         MODULE = {name}\n\
         GRIDRPC ?= {}\n\
         IDL := {}\n\
         MADE := {}\n\
         STUBS := {}\n\
         HOSTS := $(sort localhost $(shell uname -n) $(shell hostname -f 2>/dev/null))\n\
         INFORMATION := {name}.nrf $(HOSTS:%={name}.%.nrf)\n",
        program(),
        target(idl)?,
        if source.is_made { target(idl)? } else { String::new() },
        stubs.join(" "),
    );
    text.push_str("\n# What the interface description says.\n");
    let mut options = Vec::new();
    for given in &module.compile_options {
        match definition(given) {
            Some((name, value)) => line(&mut text, name, value),
            None => options.push(given.as_str()),
        }
    }
    line(&mut text, "OPTIONS", &options.join(" "));
    line(&mut text, "REQUIRED", &objects.join(" "));
    line(&mut text, "LIBRARY", &libraries.join(" "));
    for (variable, value) in [("NG_COMPILER", &module.compiler), ("NG_LINKER", &module.linker)] {
        if let Some(value) = value {
            line(&mut text, variable, value);
        }
    }
    text.push('\n');
    text.push_str(&rules(module, source.options));
    let dialect = match source.dialect {
        Dialect::Gridrpc => "gridrpc",
        Dialect::NinfG => "ninf-g",
    };
    let _ = write!(
        text,
        "all: {name}.so $(STUBS) $(INFORMATION)\n\n\
         {name}.so: $(IDL) $(REQUIRED)\n\
         \t{program} compile --dialect {dialect} --flags-given \\\n\
         \t\t--compiler {compiler} --linker {linker} {idl} -- \\\n\
         \t\t$(CPPFLAGS) $(OPTIONS) $(CFLAGS) $(LDFLAGS) $(REQUIRED) $(LIBRARY) $(LIBS)\n\n\
         $(STUBS): {name}.so\n\tln -sf {name}.so $@\n\n\
         $(INFORMATION): {name}.so\n\tprintf 'module %s/%s\\n' \"$$(pwd)\" {name}.so >$@\n\n\
         clean:\n\trm -f {name}.so $(STUBS) $(INFORMATION)\n\n\
         # Of the objects those that can be built again.\n\
         SOURCES = $(wildcard $(addprefix $(1:.o=),.c .cc .cpp .C .f .F .f90 .F90 .s .S))\n\n\
         veryclean: clean\n\
         \trm -f {name}.mak $(foreach object,$(filter %.o,$(REQUIRED)),$(if $(call \
         SOURCES,$(object)),$(object)))\n\
         \t$(if $(MADE),rm -f {idl})\n\n\
         .PHONY: all clean veryclean\n",
        program = in_shell("GRIDRPC"),
        compiler = in_shell("NG_COMPILER"),
        linker = in_shell("NG_LINKER"),
        idl = word(&from_here(idl)),
    );
    Ok(text)
}

/// One definition on one line. Variable references are kept.
fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name} = {}", value.split_whitespace().collect::<Vec<_>>().join(" "));
}

fn rules(module: &Module, options: &[String]) -> String {
    let compiler = if module.is_cpp() { "$(CXX)" } else { "$(CC)" };
    let linker = match module {
        _ if all_functions(module).any(Function::fortran) => "$(FC)",
        _ if module.is_cpp() => "$(CXX)",
        _ => "$(NG_COMPILER)",
    };
    let headers = headers().map(|folder| word(&format!("-I{}", folder.display())));
    let flags: Vec<String> = options.iter().map(|option| word(option)).chain(headers).collect();
    // make's own defaults do not support MPI, and its FC is no longer a Fortran compiler.
    let (cc, cxx, fc) = usual_compilers(module);
    let mut defaults = Vec::from([("FC", fc)]);
    if module.is_parallel() {
        defaults.extend([("CC", cc), ("CXX", cxx)]);
    }
    let defaults = defaults.iter().map(|(variable, compiler)| {
        format!("ifeq ($(origin {variable}),default)\n{variable} = {compiler}\nendif\n")
    });
    RULES
        .replace("@DEFAULTS@", &defaults.collect::<String>())
        .replace("@COMPILER@", compiler)
        .replace("@LINKER@", linker)
        .replace("@CPPFLAGS@", &flags.join(" ").replace('#', "\\#"))
}

/// Splits required items into files, which make tracks, and flags. File names are relative to the current
/// folder or, if missing there, to the IDL file's.
fn split_required(module: &Module, idl: &Path) -> (Vec<String>, Vec<String>) {
    let (mut files, mut flags) = (Vec::new(), Vec::new());
    for word in required(module).flat_map(str::split_whitespace) {
        if word.starts_with('-') {
            flags.push(word.to_owned());
            continue;
        }
        let beside = idl.parent().unwrap_or(Path::new("")).join(word);
        let file = match beside.to_str() {
            Some(beside) if !is_there(Path::new(word)) && is_there(Path::new(beside)) => beside,
            _ => word,
        };
        if !files.iter().any(|known| known == file) {
            files.push(file.to_owned());
        }
    }
    (files, flags)
}

/// Whether the file or a source of it exists.
fn is_there(file: &Path) -> bool {
    let endings = ["c", "cc", "cpp", "C", "f", "F", "f90", "F90", "s", "S"];
    file.exists() || endings.iter().any(|ending| file.with_extension(ending).exists())
}

/// This program, as the default of a variable.
fn program() -> String {
    let program = std::env::current_exe().ok().and_then(|path| Some(path.to_str()?.to_owned()));
    let program = program.filter(|path| !path.contains('\n')).unwrap_or("gridrpc".to_owned());
    program.replace('$', "$$").replace('#', "\\#")
}

/// A variable's value as one shell word.
fn in_shell(variable: &str) -> String {
    format!("'$(subst ','\\'',$({variable}))'")
}

/// A text as one shell word, in a recipe or in a variable used in one.
fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=+,:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('$', "$$").replace('\'', "'\\''"))
}

/// A name that no program parses as an option, and make not as a home folder.
fn from_here(name: &str) -> String {
    if name.starts_with(['-', '~']) { format!("./{name}") } else { name.to_owned() }
}

/// A file name as a make target.
fn target(name: &str) -> Result<String, NameError> {
    if name.contains(|c: char| c.is_control() || "\\;|".contains(c)) {
        return Err(NameError(name.to_owned()));
    }
    let mut target = String::new();
    for c in from_here(name).chars() {
        match c {
            '$' => target.push_str("$$"),
            ' ' | '#' | ':' | '*' | '?' | '[' => target.extend(['\\', c]),
            _ => target.push(c),
        }
    }
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(idl: &str, file: &str) -> Result<String, NameError> {
        let module = gridrpc_idl::parse(idl).module.expect("valid IDL");
        let file = Path::new(file);
        let dialect = Dialect::NinfG;
        makefile(&module, Source { file, is_made: false, dialect, options: &["-DX=a b".into()] })
    }

    #[test]
    fn what_the_description_says_stays_makefile_text() {
        let idl = r#"Module pi; CompileOptions "CFLAGS = -I$(ATLAS)/include"; CompileOptions "-O3";
                     Library "-L$(ATLAS)/lib -lblas"; Compiler "gcc -m64";
                     Define trial(IN int n) Required "trial.o -lm" { n++; }
                     DefClass acc Required "trial.o $(MORE)" { DefMethod add(IN int n) { n++; } }"#;
        let text = text(idl, "pi.idl").expect("a makefile");
        for line in [
            "STUBS := _stub_trial _stub_acc",
            "CFLAGS = -I$(ATLAS)/include",
            "OPTIONS = -O3",
            "REQUIRED = trial.o $(MORE)",
            "LIBRARY = -lm -L$(ATLAS)/lib -lblas",
            "NG_COMPILER = gcc -m64",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.contains("override CPPFLAGS += '-DX=a b'"), "{text}");
    }

    #[test]
    fn names_that_make_cannot_have_are_refused() {
        let idl = "Module m; Define f() { }";
        for name in ["a;b.idl", "a\nb.idl", "a\\b.idl", "a|b.idl"] {
            assert!(text(idl, name).is_err(), "{name}");
        }
    }
}

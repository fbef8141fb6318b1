//! Semantic analysis: turns syntax into a module, resolves names, and runs all checks.

mod declaration;
mod expression;
mod function;

use std::collections::HashSet;

use crate::block;
use crate::diagnostic::{Positions, Report};
use crate::module::{Backend, Class, Dialect, Language, Module, Origin};
use crate::names;
use crate::syntax::{self, File, Options, Setting, Text};

/// Builds the module. The result is valid only if the report has no errors.
pub(crate) fn check(source: &str, file: File, dialect: Dialect, report: &mut Report) -> Module {
    let mut module = Module { dialect, ..Module::default() };
    let [first, others @ ..] = &file.modules[..] else {
        report.error_with(
            crate::diagnostic::Span::new(0, 0),
            "the module has no name",
            "begin the file with `Module name;`",
        );
        return finish(source, file, module, report);
    };
    module.name.clone_from(&first.text);
    for other in others {
        report.error(other.span, "the module has a name already");
    }
    finish(source, file, module, report)
}

fn finish(source: &str, file: File, mut module: Module, report: &mut Report) -> Module {
    settings(&file.settings, &mut module, report);
    for (names, what) in [
        (file.functions.iter().map(|function| &function.name).collect::<Vec<_>>(), "function"),
        (file.classes.iter().map(|class| &class.name).collect(), "class"),
    ] {
        distinct(names, what, report);
    }
    if file.functions.is_empty() && file.classes.is_empty() && !report.has_errors() {
        let at = file.modules.first().map(|name| name.span).unwrap_or_default();
        report.warning(at, "the module defines no function and no class");
    }

    // In the order of the file, so that lines are counted once for each kind of code.
    let mut positions = Positions::new(source);
    for code in file.globals {
        module.globals_at.push(origin(&mut positions, &code));
        module.globals.push(code.text);
    }
    let mut positions = Positions::new(source);
    for function in &file.functions {
        let function = function::check(function, None, module.dialect, &mut positions, report);
        module.functions.push(function);
    }
    let (mut positions, mut state_positions) = (Positions::new(source), Positions::new(source));
    for class in &file.classes {
        let class =
            check_class(class, module.dialect, &mut positions, &mut state_positions, report);
        module.classes.push(class);
    }
    if module.is_cpp() {
        cpp_names(&file.functions, &file.classes, report);
        cpp_targets(&module, &file.functions, &file.classes, report);
    }
    module
}

/// Start of a piece of code.
fn origin(positions: &mut Positions<'_>, code: &Text) -> Origin {
    let position = positions.position(code.span.start);
    Origin { line: position.line, file: position.file }
}

fn settings(settings: &[(Setting, Text)], module: &mut Module, report: &mut Report) {
    let mut libraries = HashSet::new();
    let mut dialect = None;
    for (setting, value) in settings {
        let slot = match setting {
            Setting::CompileOptions => {
                module.compile_options.push(value.text.clone());
                continue;
            }
            Setting::Library => {
                if !libraries.insert(&value.text) {
                    let message = format!("`Library \"{}\"` is given twice", value.text);
                    report.warning(value.span, message);
                }
                module.libraries.push(value.text.clone());
                continue;
            }
            Setting::Compiler => &mut module.compiler,
            Setting::Linker => &mut module.linker,
            Setting::FortranFormat => {
                fortran_format(value, report);
                &mut module.fortran_format
            }
            Setting::FortranStringConvention => {
                if !matches!(value.text.as_str(), "gnu" | "gfortran") {
                    report.warning_with(
                        value.span,
                        format!("`{}` is not a known convention", value.text),
                        "lengths are passed behind all arguments, as gfortran has it",
                    );
                }
                &mut module.fortran_string_convention
            }
            Setting::Dialect => {
                match Dialect::named(&value.text) {
                    Some(named) => module.dialect = named,
                    None => {
                        let message = format!("`{}` is not a known dialect", value.text);
                        let hint = "there are \"Ninf-G\" and \"gridrpc\"";
                        report.error_with(value.span, message, hint);
                    }
                }
                &mut dialect
            }
        };
        if slot.replace(value.text.clone()).is_some() {
            let message = format!("`{}` is given twice", setting.keyword());
            report.error(value.span, message);
        }
    }
}

/// The symbol of a Fortran name; `None` if the format is invalid.
pub(crate) fn fortran_symbol(format: &str, name: &str) -> Option<String> {
    let (before, after) = format.split_once('%')?;
    let name = match after.as_bytes().first()? {
        b's' => name.to_owned(),
        b'l' => name.to_ascii_uppercase(),
        _ => return None,
    };
    let symbol = format!("{before}{name}{}", &after[1..]);
    symbol.chars().all(|c| c == '_' || c == '$' || c.is_ascii_alphanumeric()).then_some(symbol)
}

fn fortran_format(value: &Text, report: &mut Report) {
    if fortran_symbol(&value.text, "name").is_none() {
        report.error_with(
            value.span,
            "this does not make a symbol of a name",
            "the usual one is \"%s_\": `%s` is the name, `%l` the name in capitals",
        );
    }
}

/// Reports duplicate names.
fn distinct<'a>(names: impl IntoIterator<Item = &'a Text>, what: &str, report: &mut Report) {
    let mut known = HashSet::new();
    for name in names {
        if !known.insert(name.text.as_str()) {
            report.error(name.span, format!("there is a {what} `{}` already", name.text));
        }
    }
}

/// Reports a name that C code cannot use.
fn usable(name: &Text, report: &mut Report) {
    if names::is_c_keyword(&name.text) {
        report.error(name.span, format!("`{}` means something else in C", name.text));
    }
}

/// Reports names that are C++ keywords in a module compiled as C++.
fn cpp_names(functions: &[syntax::Function], classes: &[syntax::Class], report: &mut Report) {
    for function in functions.iter().chain(classes.iter().flat_map(|class| &class.methods)) {
        for parameter in &function.parameters.list {
            let name = &parameter.name;
            if names::is_cpp_keyword(&name.text) {
                report.error(name.span, format!("`{}` means something else in C++", name.text));
            }
        }
    }
}

/// Reports calls of undeclared functions, which C++ does not allow.
fn cpp_targets(
    module: &Module,
    functions: &[syntax::Function],
    classes: &[syntax::Class],
    report: &mut Report,
) {
    let words: HashSet<&str> = module.declarations().flat_map(block::words).collect();
    // Headers may declare functions that are not visible here.
    if words.contains("include") {
        return;
    }
    let written = functions.iter().chain(classes.iter().flat_map(|class| &class.methods));
    for ((_, function), written) in module.all_functions().zip(written) {
        if let syntax::Body::Calls { name, .. } = &written.body
            && function.effective_language() == Some(Language::Cpp)
            && !words.contains(name.text.as_str())
        {
            report.error_with(
                name.span,
                format!("nothing declares `{}`, which C++ needs", name.text),
                "put its declaration, or the `#include` of its header, into `Globals`; for a function \
                 with C linkage write `Calls \"C\"`",
            );
        }
    }
}

fn check_class(
    class: &syntax::Class,
    dialect: Dialect,
    positions: &mut Positions<'_>,
    state_positions: &mut Positions<'_>,
    report: &mut Report,
) -> Class {
    usable(&class.name, report);
    distinct(class.methods.iter().map(|method| &method.name), "method", report);
    for state in class.states.iter().skip(1) {
        report.error_with(
            state.span,
            "a class has one `DefState` at most",
            "put all variables into the first one",
        );
    }
    if class.methods.is_empty() && !report.has_errors() {
        report.warning(class.name.span, format!("`{}` has no methods", class.name.text));
    }
    let options = &class.options;
    let mut checked = Class {
        name: class.name.text.clone(),
        description: options.description.as_ref().map(|text| text.text.clone()),
        required: options.required.iter().map(|text| text.text.clone()).collect(),
        backend: backend(options, report),
        shrink: shrink(options, report),
        language: options.language.as_ref().and_then(|text| language(text, report)),
        state: class.states.first().map(|state| state.text.clone()),
        methods: Vec::new(),
        state_at: Origin::default(),
    };
    if let Some(state) = class.states.first() {
        checked.state_at = origin(state_positions, state);
    }
    for method in &class.methods {
        let life = matches!(method.name.text.as_str(), "_initialize" | "_finalize");
        if life && !method.parameters.list.is_empty() {
            let message = format!("`{}` takes no parameters", method.name.text);
            report.error_with(
                method.name.span,
                message,
                "it runs when an object begins or ends, and nobody calls it",
            );
        }
        let method = function::check(method, Some(&checked), dialect, positions, report);
        checked.methods.push(method);
    }
    checked
}

fn backend(options: &Options, report: &mut Report) -> Backend {
    let Some(text) = &options.backend else {
        return Backend::Normal;
    };
    match text.text.to_ascii_lowercase().as_str() {
        "normal" => Backend::Normal,
        "mpi" => Backend::Mpi,
        "blacs" => Backend::Blacs,
        _ => {
            let message = format!("`{}` is not a backend", text.text);
            report.error_with(text.span, message, "there are \"MPI\" and \"BLACS\"");
            Backend::Normal
        }
    }
}

fn shrink(options: &Options, report: &mut Report) -> Option<bool> {
    let text = options.shrink.as_ref()?;
    match text.text.to_ascii_lowercase().as_str() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => {
            let message = format!("`Shrink \"{}\"` is not known", text.text);
            report.error_with(text.span, message, "it is \"yes\" or \"no\"");
            None
        }
    }
}

fn language(text: &Text, report: &mut Report) -> Option<Language> {
    match text.text.to_ascii_lowercase().as_str() {
        "c" => Some(Language::C),
        "c++" => Some(Language::Cpp),
        "fortran" => Some(Language::Fortran),
        _ => {
            let message = format!("`{}` is not a known language", text.text);
            report.error_with(text.span, message, "there are \"C\", \"C++\" and \"FORTRAN\"");
            None
        }
    }
}

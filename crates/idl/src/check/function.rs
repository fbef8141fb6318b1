//! Checks of a single function or method.

use std::collections::HashSet;

use super::declaration::{complete, declare};
use super::expression::{Declared, Lowering, Purpose, Scope};
use crate::diagnostic::{Positions, Report, Span};
use crate::expression::Expr;
use crate::module::{
    Backend, Body, CallArgument, Class, Dialect, Function, Kind, Language, Mode, Parameter,
};
use crate::syntax::{self, Shape, Text};
use crate::types::Type;

pub(super) fn check(
    function: &syntax::Function,
    class: Option<&Class>,
    dialect: Dialect,
    positions: &mut Positions<'_>,
    report: &mut Report,
) -> Function {
    super::usable(&function.name, report);
    let options = &function.options;
    let written = &function.parameters.list;
    let declared: Vec<Declared> =
        written.iter().map(|parameter| declare(parameter, false, report)).collect();
    super::distinct(written.iter().map(|parameter| &parameter.name), "parameter", report);
    let scope = Scope::new(&declared, None, function.parameters.broken);
    let parameters = parameters(written, &declared, &scope, report);
    let cost = options.cost.as_ref().and_then(|cost| {
        let purpose = Purpose::Cost;
        Lowering { scope: &scope, purpose, report, arrays: Vec::new() }.lower(cost)
    });

    let shrink = super::shrink(options, report);
    let language = options.language.as_ref().and_then(|text| super::language(text, report));
    let language_here = language.or(class.and_then(|class| class.language));
    let (body, body_at) = match &function.body {
        syntax::Body::None => (Body::None, Default::default()),
        syntax::Body::Inline(code) => {
            (Body::Inline(code.text.clone()), super::origin(positions, code))
        }
        syntax::Body::Calls { language, result, name, arguments } => {
            super::usable(name, report);
            let own = language.as_ref().and_then(|text| super::language(text, report));
            let is_cpp = own.or(language_here) == Some(Language::Cpp);
            let arguments = arguments_of(arguments, &scope, is_cpp, report);
            let place = result.as_ref().and_then(|name| argument_of(name, &scope, report));
            if let (Some(written), Some(index)) = (result, place) {
                takes_result(&parameters[index], written, is_cpp, report);
            }
            let name = name.text.clone();
            (Body::Calls { language: own, result: place, name, arguments }, Default::default())
        }
    };
    let mut shrink = shrink.or(class.and_then(|class| class.shrink));
    // In Ninf-G, whole arrays are transferred unless the file requests less.
    if dialect == Dialect::NinfG && parameters.iter().any(has_range) {
        if shrink.is_none() {
            report.warning_with(
                function.name.span,
                "the ranges of its arrays have no effect, as in Ninf-G: whole arrays travel",
                "in Ninf 1 they had one: for that, write `Shrink \"yes\"`; else `Shrink \"no\"`",
            );
        }
        shrink = shrink.or(Some(false));
    }
    let checked = Function {
        name: function.name.text.clone(),
        parameters,
        description: options.description.as_ref().map(|text| text.text.clone()),
        required: options.required.iter().map(|text| text.text.clone()).collect(),
        backend: class.map_or_else(|| super::backend(options, report), |class| class.backend),
        shrink,
        language: language_here,
        cost,
        idempotent: options.idempotent,
        body,
        body_at,
    };
    if let Body::Calls { arguments, result, .. } = &checked.body {
        let mut passed = CallArgument::parameters(arguments);
        // A misspelt argument is not reported as missing as well.
        let named = match &function.body {
            syntax::Body::Calls { arguments, .. } => names(arguments),
            _ => 0,
        };
        let all_known = named == passed.len();
        passed.extend(result);
        if all_known && !function.parameters.broken {
            unused(&checked, passed.iter().copied().collect(), dialect, written, report);
        }
        if checked.effective_language() == Some(Language::Fortran) {
            fortran(&checked, &passed, written, report);
        }
    }
    if checked.backend == Backend::Normal {
        distributions(written, report);
    }
    checked
}

fn parameters(
    written: &[syntax::Parameter],
    declared: &[Declared],
    scope: &Scope<'_>,
    report: &mut Report,
) -> Vec<Parameter> {
    let mut arrays = Vec::new();
    let list: Vec<Parameter> = written
        .iter()
        .zip(declared)
        .map(|(parameter, declared)| match &parameter.shape {
            Shape::Callback(own) => callback(parameter, own, scope, report),
            Shape::Plain { .. } => complete(parameter, declared, scope, &mut arrays, report),
        })
        .collect();
    sized_by_arrays(&list, &arrays, report);
    list
}

/// Checks arrays whose elements determine sizes: each must be available before any size is known.
fn sized_by_arrays(list: &[Parameter], arrays: &[(usize, Span)], report: &mut Report) {
    let mut seen = HashSet::new();
    for (index, span) in arrays {
        if !seen.insert(*index) {
            continue;
        }
        let Kind::Array { dimensions, .. } = &list[*index].kind else { continue };
        let simple = dimensions.iter().all(|dimension| {
            let mut elements = false;
            if let Some(size) = &dimension.size {
                size.visit(&mut |part| elements |= matches!(part, Expr::Element(..)));
            }
            dimension.range.is_none() && !elements
        });
        if !simple {
            report.error_with(
                *span,
                format!("`{}` gives a size here, but has itself no plain one", list[*index].name),
                "give it a size of scalars and numbers, and no range",
            );
        }
    }
}

fn has_range(parameter: &Parameter) -> bool {
    match &parameter.kind {
        Kind::Scalar(_) => false,
        Kind::Array { dimensions, .. } => dimensions.iter().any(|one| one.range.is_some()),
        Kind::Callback(own) => own.iter().any(has_range),
    }
}

fn callback(
    parameter: &syntax::Parameter,
    own: &syntax::Parameters,
    outer: &Scope<'_>,
    report: &mut Report,
) -> Parameter {
    let declared: Vec<Declared> =
        own.list.iter().map(|parameter| declare(parameter, true, report)).collect();
    super::distinct(own.list.iter().map(|parameter| &parameter.name), "parameter", report);
    let scope = Scope::new(&declared, Some(outer), own.broken);
    let list = parameters(&own.list, &declared, &scope, report);
    Parameter {
        name: parameter.name.text.clone(),
        mode: Mode::In,
        distribution: None,
        kind: Kind::Callback(list),
    }
}

/// The arguments of a call, without unknown ones.
fn arguments_of(
    arguments: &[syntax::CallArgument],
    scope: &Scope<'_>,
    is_cpp: bool,
    report: &mut Report,
) -> Vec<CallArgument> {
    let mut list = Vec::new();
    for argument in arguments {
        match argument {
            syntax::CallArgument::Name(name) => {
                list.extend(argument_of(name, scope, report).map(CallArgument::Parameter));
            }
            syntax::CallArgument::Structure(fields, open) => {
                if !is_cpp {
                    report.error_with(
                        *open,
                        "only a function in C++ takes a structure",
                        "write `Calls \"C++\"`, or code that fills the structure",
                    );
                }
                list.push(CallArgument::Structure(arguments_of(fields, scope, is_cpp, report)));
            }
        }
    }
    list
}

/// The index of the parameter with this name.
fn argument_of(name: &Text, scope: &Scope<'_>, report: &mut Report) -> Option<usize> {
    let found = scope.find(&name.text);
    if found.is_none() && !scope.is_broken() {
        // Suggestions take time, so they are not computed for errors that are not shown.
        let near = (!report.is_full()).then(|| scope.nearest(&name.text, |_| true));
        let hint = match near.flatten() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "a call is given parameters of the function".to_owned(),
        };
        let message = format!("there is no parameter `{}`", name.text);
        report.error_with(name.span, message, hint);
    }
    found
}

/// Number of names in the arguments of a call.
fn names(arguments: &[syntax::CallArgument]) -> usize {
    let count = |argument: &syntax::CallArgument| match argument {
        syntax::CallArgument::Name(_) => 1,
        syntax::CallArgument::Structure(fields, _) => names(fields),
    };
    arguments.iter().map(count).sum()
}

/// Whether a parameter can hold a function's result: one number or one string; from C++ also several.
fn takes_result(parameter: &Parameter, written: &Text, is_cpp: bool, report: &mut Report) {
    let is_one = |size: &Option<Expr>| matches!(size, None | Some(Expr::Number(1)));
    let takes = match &parameter.kind {
        Kind::Scalar(of) => *of == Type::String,
        Kind::Array { .. } if is_cpp => true,
        Kind::Array { element, dimensions } => {
            !element.is_text() && dimensions.iter().all(|dimension| is_one(&dimension.size))
        }
        Kind::Callback(_) => false,
    };
    if !takes || parameter.mode != Mode::Out {
        report.error_with(
            written.span,
            format!("`{}` cannot take the value that the function returns", parameter.name),
            "declare one number or string, as in `OUT double r[1]` or `OUT string s`; for several, write \
             `Calls \"C++\"` and a function that returns a vector",
        );
    }
}

/// Reports parameters that are neither passed to the called function nor used in a size or cost.
fn unused(
    function: &Function,
    mut used: HashSet<usize>,
    dialect: Dialect,
    written: &[syntax::Parameter],
    report: &mut Report,
) {
    let mut sizes: Vec<(&Expr, usize)> = function.cost.iter().map(|cost| (cost, 0)).collect();
    for parameter in &function.parameters {
        expressions(parameter, 0, &mut sizes);
        if let Kind::Callback(own) = &parameter.kind {
            own.iter().for_each(|inner| expressions(inner, own.len(), &mut sizes));
        }
    }
    for (expression, own) in sizes {
        used.extend(expression.scalars().into_iter().filter_map(|index| index.checked_sub(own)));
    }
    for (index, parameter) in written.iter().enumerate() {
        if !used.contains(&index) {
            let name = &parameter.name;
            let message = format!("`{}` is not passed on to the call", name.text);
            let Body::Calls { name: target, .. } = &function.body else { continue };
            if function.parameters[index].mode != Mode::Out {
                report.warning(name.span, message);
                continue;
            }
            let hint = format!(
                "nothing would be stored there; if `{target}` returns it, write `Calls {} = {target}(...)`",
                name.text
            );
            match dialect {
                Dialect::Gridrpc => report.error_with(name.span, message, hint),
                Dialect::NinfG => report.warning_with(name.span, message, hint),
            }
        }
    }
}

/// Expressions of a parameter; `own` is the number of parameters of its callback.
fn expressions<'a>(parameter: &'a Parameter, own: usize, found: &mut Vec<(&'a Expr, usize)>) {
    let Kind::Array { dimensions, .. } = &parameter.kind else { return };
    for dimension in dimensions {
        found.extend(dimension.size.as_ref().map(|size| (size, own)));
        if let Some(range) = &dimension.range {
            let parts = [&range.start, &range.end, &range.step];
            found.extend(parts.into_iter().flatten().map(|part| (part, own)));
        }
    }
}

/// Reports parameters that cannot be passed to a Fortran function.
fn fortran(
    function: &Function,
    arguments: &[usize],
    written: &[syntax::Parameter],
    report: &mut Report,
) {
    for (index, (parameter, written)) in function.parameters.iter().zip(written).enumerate() {
        if !arguments.contains(&index) {
            continue;
        }
        let wrong = match &parameter.kind {
            Kind::Scalar(Type::String) if parameter.mode.is_output() => {
                Some("a Fortran function cannot give back a string of any length")
            }
            Kind::Array { element, .. } if element.is_text() => {
                Some("a Fortran function cannot take an array of strings")
            }
            Kind::Callback(own) if own.iter().any(takes_text) => {
                Some("a callback of a Fortran function cannot take strings")
            }
            _ => None,
        };
        if let Some(message) = wrong {
            let name = &written.name;
            report.error_with(name.span, message, "use an array of `char`, as in `char s[80]`");
        }
    }
}

fn takes_text(parameter: &Parameter) -> bool {
    match &parameter.kind {
        Kind::Scalar(kind) | Kind::Array { element: kind, .. } => kind.is_text(),
        Kind::Callback(_) => false,
    }
}

fn distributions(written: &[syntax::Parameter], report: &mut Report) {
    for parameter in written {
        if let Shape::Plain { distribution: Some((_, span)), .. } = &parameter.shape {
            report.warning_with(
                *span,
                "this has no effect in one process",
                "it is meant for functions with `Backend \"MPI\"` or \"BLACS\"",
            );
        }
    }
}

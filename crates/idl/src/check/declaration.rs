//! Checks of a single parameter's declaration.

use super::expression::{Declared, Form, Lowering, Purpose, Scope};
use crate::diagnostic::{Report, Span};
use crate::expression::Expr;
use crate::module::{Dimension, Kind, Mode, Parameter, Range};
use crate::syntax::{self, Shape, Text};
use crate::types::Type;

/// Properties of a parameter that do not depend on sizes.
pub(super) fn declare(
    parameter: &syntax::Parameter,
    nested: bool,
    report: &mut Report,
) -> Declared {
    let name = &parameter.name;
    super::usable(name, report);
    let declared = |mode, form| Declared { name: name.text.clone(), mode, form };
    let Shape::Plain { mode, words, pointers, dimensions, .. } = &parameter.shape else {
        return declared(Mode::In, Form::Callback);
    };
    let element = type_of(words, name, mode.is_some(), report);
    let mode = mode.unwrap_or_else(|| {
        if element.is_some() {
            let message = format!("`{}` has no mode: `IN` is assumed", name.text);
            report.warning_with(name.span, message, "write IN, OUT, INOUT or WORK before its type");
        }
        Mode::In
    });
    let Some(element) = element else {
        return declared(mode, Form::Unknown);
    };
    let count = dimensions.len() + pointers;
    if *pointers > 0 && count > 1 {
        report.error_with(
            name.span,
            "pointers to pointers and arrays of pointers are not supported",
            format!("elements lie one behind the other: write `{}[...]` without `*`", name.text),
        );
        return declared(mode, Form::Unknown);
    }
    if *pointers == 1 && element == Type::Char {
        report.warning_with(
            name.span,
            format!("`char *{}` is one character", name.text),
            format!("for a text write `string {}`, for characters `char {0}[size]`", name.text),
        );
    }
    mode_fits(name, mode, element, count > 0, nested, report);
    let form = match count {
        0 => Form::Scalar(element),
        dimensions => Form::Array { element, dimensions },
    };
    declared(mode, form)
}

fn type_of(words: &[Text], name: &Text, has_mode: bool, report: &mut Report) -> Option<Type> {
    for word in words {
        let hint = match word.text.as_str() {
            "filepointer" => "write `filename`: the function then opens the file itself",
            "void" => "write the type of its elements, or `char` for bytes",
            _ => continue,
        };
        report.error_with(word.span, format!("`{}` is not supported", word.text), hint);
        return None;
    }
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        let mode = if has_mode { "" } else { "IN " };
        report.error_with(
            name.span,
            format!("`{}` has no type", name.text),
            format!("write it before the name, as in `{mode}int {}`", name.text),
        );
        return None;
    };
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let found = Type::of_words(&texts);
    if found.is_none() {
        let message = format!("`{}` is not a type", texts.join(" "));
        report.error(first.span.to(last.span), message);
    }
    found
}

fn mode_fits(
    name: &Text,
    mode: Mode,
    element: Type,
    array: bool,
    nested: bool,
    report: &mut Report,
) {
    let text = &name.text;
    let kind = element.idl_name();
    if nested && element == Type::Filename {
        report.error_with(
            name.span,
            "a callback cannot take files",
            "give it the content as an array of `char`",
        );
    } else if nested && mode == Mode::Work {
        report.error(name.span, "a callback has no use for `WORK`");
    } else if nested && element == Type::String && mode.is_output() {
        report.error_with(
            name.span,
            "a callback cannot give back strings",
            format!("give it an array: `{} char {text}[size]`", mode.keyword()),
        );
    } else if element.is_text() && mode == Mode::Work {
        report.error(name.span, format!("`WORK` is for arrays of numbers, not for a {kind}"));
    } else if !array && !element.is_text() && mode == Mode::Work {
        report.error_with(
            name.span,
            "`WORK` is for arrays",
            "a variable inside the function does the same",
        );
    } else if !array && !element.is_text() && mode.is_output() {
        report.error_with(
            name.span,
            format!("the scalar `{text}` is {}: its value could not come back", mode.keyword()),
            format!("write `{} {kind} {text}[1]`", mode.keyword()),
        );
    }
}

/// The parameter with its sizes. Adds arrays whose elements are used to `arrays`.
pub(super) fn complete(
    parameter: &syntax::Parameter,
    declared: &Declared,
    scope: &Scope<'_>,
    arrays: &mut Vec<(usize, Span)>,
    report: &mut Report,
) -> Parameter {
    let (distribution, pointers, dimensions) = match &parameter.shape {
        Shape::Plain { distribution, pointers, dimensions, .. } => {
            (*distribution, *pointers, &dimensions[..])
        }
        Shape::Callback(_) => (None, 0, &[][..]),
    };
    let kind = match declared.form {
        Form::Array { element, .. } => {
            let mut list: Vec<Dimension> = dimensions
                .iter()
                .map(|dimension| {
                    let mut sizes = Sizes { declared, element, scope, arrays, report };
                    sizes.dimension(dimension)
                })
                .collect();
            // `double *r` is `double r[1]`.
            list.extend(
                (0..pointers).map(|_| Dimension { size: Some(Expr::Number(1)), range: None }),
            );
            Kind::Array { element, dimensions: list }
        }
        Form::Scalar(kind) => Kind::Scalar(kind),
        Form::Callback | Form::Unknown => Kind::Scalar(Type::Int),
    };
    Parameter {
        name: declared.name.clone(),
        mode: declared.mode,
        distribution: distribution.map(|(distribution, _)| distribution),
        kind,
    }
}

struct Sizes<'a, 'r> {
    declared: &'a Declared,
    element: Type,
    scope: &'a Scope<'a>,
    arrays: &'r mut Vec<(usize, Span)>,
    report: &'r mut Report,
}

impl Sizes<'_, '_> {
    fn dimension(&mut self, dimension: &syntax::Dimension) -> Dimension {
        let size = match &dimension.size {
            Some(size) => self.lower(size),
            None => {
                let name = &self.declared.name;
                self.report.warning_with(
                    dimension.span,
                    format!("`{name}[]` is one element"),
                    format!("write `{name}[1]`, or the size that it has"),
                );
                Some(Expr::Number(1))
            }
        };
        if let (Some(written), Some(size)) = (&dimension.size, &size) {
            self.constant_size(size, written.span);
        }
        let range =
            dimension.range.as_ref().and_then(|(parts, span)| self.range(parts, *span, &size));
        Dimension { size, range }
    }

    fn lower(&mut self, expression: &syntax::Expr) -> Option<Expr> {
        let mut lowering = Lowering {
            scope: self.scope,
            purpose: Purpose::Size,
            report: self.report,
            arrays: std::mem::take(self.arrays),
        };
        let lowered = lowering.lower(expression);
        *self.arrays = lowering.arrays;
        lowered
    }

    /// The value of an expression that must be constant. Reports errors.
    fn constant(&mut self, expression: &Expr, span: Span, what: &str) -> Option<i64> {
        match expression.constant()? {
            Err(reason) => {
                self.report.error(span, format!("this {what} cannot be computed: {reason}"));
                None
            }
            Ok(value) if value < 0 => {
                self.report.error(span, format!("this {what} is {value}, below 0"));
                None
            }
            Ok(value) => Some(value),
        }
    }

    fn constant_size(&mut self, size: &Expr, span: Span) {
        match self.constant(size, span, "size") {
            Some(0) => {
                let message = format!("`{}` has no elements", self.declared.name);
                self.report.warning(span, message);
            }
            Some(size)
                if size > 1 && self.element == Type::String && self.declared.mode == Mode::Out =>
            {
                let name = &self.declared.name;
                self.report.warning_with(
                    span,
                    format!("`{name}` is an array of {size} strings, each of any length"),
                    format!("for one string write `OUT string {name}`"),
                );
            }
            _ => {}
        }
    }

    fn range(&mut self, parts: &[syntax::Expr], span: Span, size: &Option<Expr>) -> Option<Range> {
        if self.element.is_text() {
            self.report.error_with(
                span,
                format!("a range of a {} array", self.element.idl_name()),
                "these travel as a whole: leave the range out",
            );
            return None;
        }
        let lowered: Vec<Option<Expr>> = parts.iter().map(|part| self.lower(part)).collect();
        if let [end] = &lowered[..] {
            self.report.warning_with(
                span,
                "a range of one value is taken for its end",
                "write `[size : 0, end]` if that is meant, and `[size : start, 0]` for a start",
            );
            let end = end.clone();
            self.ends_within(&end, parts[0].span, size);
            return Some(Range { start: Some(Expr::Number(0)), end, step: None });
        }
        let [start, end, step @ ..] = &lowered[..] else { return None };
        let value = |this: &mut Self, at: usize, part: &Option<Expr>, what| {
            this.constant(part.as_ref()?, parts[at].span, what)
        };
        let from = value(self, 0, start, "start");
        let to = self.ends_within(end, parts[1].span, size);
        let by = step.first().and_then(|step| value(self, 2, step, "step"));
        if by == Some(0) {
            self.report.warning(parts[2].span, "a step of 0 is taken as 1");
        }
        let all = constant_of(size);
        let to = if to == Some(0) { all } else { to };
        let both = parts[0].span.to(parts[1].span);
        match (from, to) {
            (Some(from), Some(to)) if from > to => {
                self.report
                    .error(both, format!("this range starts at {from}, behind its end {to}"));
            }
            (Some(from), Some(to)) if from == to => {
                self.report.warning(both, "this range has no elements");
            }
            _ => {}
        }
        let step = step.first().cloned().flatten();
        Some(Range { start: start.clone(), end: end.clone(), step })
    }

    /// Checks the end of a range, if it is constant, against the size.
    fn ends_within(&mut self, end: &Option<Expr>, span: Span, size: &Option<Expr>) -> Option<i64> {
        let to = self.constant(end.as_ref()?, span, "end")?;
        if let Some(all) = constant_of(size).filter(|all| to > *all) {
            self.report.error(span, format!("this range ends at {to}, above the size {all}"));
        }
        Some(to)
    }
}

fn constant_of(size: &Option<Expr>) -> Option<i64> {
    size.as_ref()?.constant()?.ok()
}

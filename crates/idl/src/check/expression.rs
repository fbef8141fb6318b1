//! Name resolution in expressions.

use std::collections::HashMap;

use crate::diagnostic::{Report, Severity, Span};
use crate::expression::Expr;
use crate::module::Mode;
use crate::names;
use crate::syntax::{self, ExprKind};
use crate::types::Type;

/// Properties of a parameter that expressions depend on.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    pub name: String,
    pub mode: Mode,
    pub form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Form {
    Scalar(Type),
    Array {
        element: Type,
        dimensions: usize,
    },
    Callback,
    /// Its declaration has an error, which has been reported.
    Unknown,
}

/// Names that an expression can use.
pub(super) struct Scope<'a> {
    own: Names<'a>,
    /// In a callback: the parameters of the enclosing function.
    outer: Option<&'a Scope<'a>>,
    /// Whether parameters are missing because of syntax errors.
    broken: bool,
}

struct Names<'a> {
    declared: &'a [Declared],
    by_name: HashMap<&'a str, usize>,
}

impl<'a> Scope<'a> {
    pub fn new(declared: &'a [Declared], outer: Option<&'a Scope<'a>>, broken: bool) -> Self {
        // Of two parameters with the same name, which is an error, the first one wins.
        let by_name = declared
            .iter()
            .enumerate()
            .rev()
            .map(|(at, other)| (other.name.as_str(), at))
            .collect();
        Scope { own: Names { declared, by_name }, outer, broken }
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.own.by_name.get(name).copied()
    }

    pub fn is_broken(&self) -> bool {
        self.broken || self.outer.is_some_and(|outer| outer.broken)
    }

    /// The most similar name that fits, for a suggestion.
    pub fn nearest(&self, name: &str, fits: impl Fn(&Declared) -> bool) -> Option<&'a str> {
        let fitting = self.own.declared.iter().filter(|other| fits(other));
        names::nearest(name, fitting.map(|other| other.name.as_str()))
    }
}

/// The purpose of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Size,
    /// A hint for the scheduler; its errors do not prevent calls.
    Cost,
}

/// Resolves the names in one expression and collects those that are used.
pub(super) struct Lowering<'a, 'r> {
    pub scope: &'a Scope<'a>,
    pub purpose: Purpose,
    pub report: &'r mut Report,
    /// Arrays whose elements are used, and where.
    pub arrays: Vec<(usize, Span)>,
}

impl Lowering<'_, '_> {
    /// The expression with indices in place of names; `None` after an error.
    pub fn lower(&mut self, expression: &syntax::Expr) -> Option<Expr> {
        Some(match &expression.kind {
            ExprKind::Whole(number) => Expr::Number(*number),
            ExprKind::Real(_) if self.purpose == Purpose::Size => {
                self.wrong(expression.span, "a size is a whole number", None);
                return None;
            }
            ExprKind::Real(number) => Expr::Real(*number),
            ExprKind::Name(name) => self.scalar(name, expression.span)?,
            ExprKind::Element(array, index) => {
                let array = self.array(&array.text, array.span);
                let index = self.lower(index);
                Expr::Element(array?, Box::new(index?))
            }
            ExprKind::Negate(operand) => Expr::Negate(Box::new(self.lower(operand)?)),
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.lower(left), self.lower(right));
                Expr::Binary(*operator, Box::new(left?), Box::new(right?))
            }
            ExprKind::Conditional(parts) => {
                let [condition, yes, no] = parts.each_ref().map(|part| self.lower(part));
                Expr::Conditional(Box::new(condition?), Box::new(yes?), Box::new(no?))
            }
        })
    }

    fn wrong(&mut self, span: Span, message: impl Into<String>, hint: Option<String>) {
        let severity = match self.purpose {
            Purpose::Size => Severity::Error,
            Purpose::Cost => Severity::Warning,
        };
        self.report.add(severity, span, message.into(), hint);
    }

    /// The parameter with this name, and whether it belongs to the function around the callback.
    fn find(&mut self, name: &str, span: Span) -> Option<(usize, bool, Declared)> {
        let own = &self.scope.own;
        if let Some(at) = self.scope.find(name) {
            return Some((at, false, own.declared[at].clone()));
        }
        if let Some(outer) = self.scope.outer
            && let Some(at) = outer.find(name)
        {
            return Some((own.declared.len() + at, true, outer.own.declared[at].clone()));
        }
        if self.scope.is_broken() {
            return None;
        }
        let message = format!("there is no parameter `{name}`");
        if self.report.is_full() {
            // Suggestions take time, so they are not computed for errors that are not shown.
            self.wrong(span, message, None);
        } else {
            let fits = |other: &Declared| match other.form {
                Form::Scalar(kind) => kind.is_integer(),
                _ => false,
            };
            let near = self
                .scope
                .nearest(name, fits)
                .or_else(|| self.scope.outer.and_then(|outer| outer.nearest(name, fits)));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => match self.purpose {
                    Purpose::Size => "a size can use parameters that are `IN` and whole numbers",
                    Purpose::Cost => "a cost can use parameters that are `IN` and numbers",
                }
                .to_owned(),
            };
            self.wrong(span, message, Some(hint));
        }
        None
    }

    fn scalar(&mut self, name: &str, span: Span) -> Option<Expr> {
        let (index, _, declared) = self.find(name, span)?;
        let sizes = match self.purpose {
            Purpose::Size => "a size",
            Purpose::Cost => "a cost",
        };
        match declared.form {
            Form::Unknown => return None,
            Form::Scalar(kind) if kind.is_integer() && declared.mode == Mode::In => {}
            Form::Scalar(Type::Float | Type::Double)
                if self.purpose == Purpose::Cost && declared.mode == Mode::In => {}
            Form::Scalar(kind) if kind.is_integer() => {
                // An OUT scalar, which has been reported.
                return None;
            }
            Form::Scalar(kind) => {
                let message = format!(
                    "`{name}` is of type {}: {sizes} needs a whole number",
                    kind.idl_name()
                );
                self.wrong(span, message, None);
                return None;
            }
            Form::Array { .. } => {
                let message = format!("`{name}` is an array: {sizes} needs one number");
                self.wrong(span, message, Some(format!("write `{name}[0]` for its first element")));
                return None;
            }
            Form::Callback => {
                self.wrong(span, format!("`{name}` is a callback: {sizes} needs a number"), None);
                return None;
            }
        }
        Some(Expr::Scalar(index))
    }

    fn array(&mut self, name: &str, span: Span) -> Option<usize> {
        let (index, outer, declared) = self.find(name, span)?;
        let wrong = match declared.form {
            Form::Unknown => return None,
            Form::Scalar(_) | Form::Callback => {
                (format!("`{name}` is not an array"), Some(format!("write `{name}` alone")))
            }
            Form::Array { .. } if outer => (
                format!("`{name}` belongs to the function around the callback"),
                Some("of that, sizes can use scalars only".to_owned()),
            ),
            Form::Array { .. } if declared.mode != Mode::In => (
                format!(
                    "`{name}` is {}: its elements are not known before the call",
                    declared.mode.keyword()
                ),
                Some("a size can use elements of arrays that are `IN`".to_owned()),
            ),
            Form::Array { element, .. } if !element.is_integer() => {
                (format!("the elements of `{name}` are not whole numbers"), None)
            }
            Form::Array { dimensions, .. } if dimensions != 1 => {
                (format!("`{name}` has more than one dimension"), None)
            }
            Form::Array { .. } => {
                self.arrays.push((index, span));
                return Some(index);
            }
        };
        self.wrong(span, wrong.0, wrong.1);
        None
    }
}

//! Printing of interfaces in the IDL itself, so that they can be parsed again.

use std::fmt::{self, Display, Formatter, Write as _};

use crate::expression::{BinaryOperator, Expr};
use crate::module::{
    Backend, Class, Dialect, Dimension, Distribution, Function, Kind, Language, Module, Parameter,
};

/// Longest line; longer parameter lists are printed with one parameter per line.
const MAX_LINE: usize = 90;

impl Display for Module {
    /// The interface, without C code and without settings that only compilation needs.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "Module {};", self.name)?;
        if self.dialect == Dialect::NinfG {
            writeln!(f, "Dialect \"Ninf-G\";")?;
        }
        for function in &self.functions {
            writeln!(f)?;
            write_function(f, "Define", "", function, None)?;
        }
        for class in &self.classes {
            writeln!(f)?;
            Display::fmt(class, f)?;
        }
        Ok(())
    }
}

impl Display for Class {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "DefClass {}", self.name)?;
        if let Some(description) = &self.description {
            write!(f, "\n    {}", Quoted(description))?;
        }
        write_backend(f, "\n    ", self.backend)?;
        write_shrink(f, "\n    ", self.shrink)?;
        if let Some(language) = self.language {
            write!(f, "\n    Language \"{}\"", language_name(language))?;
        }
        writeln!(f, "\n{{")?;
        for method in &self.methods {
            write_function(f, "    DefMethod", "    ", method, Some(self))?;
        }
        writeln!(f, "}}")
    }
}

impl Display for Function {
    /// The declaration of a function; that of a method includes what it inherits from its class.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_function(f, "Define", "", self, None)
    }
}

impl Function {
    /// The name and the parameters on one line, for display.
    #[must_use]
    pub fn signature(&self) -> String {
        let mut text = format!("{}(", self.name);
        for (at, parameter) in self.parameters.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let _ = write!(text, "{comma}{}", Declaration { parameter, list: &self.parameters });
        }
        text.push(')');
        text
    }
}

fn write_function(
    f: &mut Formatter<'_>,
    keyword: &str,
    indent: &str,
    function: &Function,
    class: Option<&Class>,
) -> fmt::Result {
    let signature = function.signature();
    if keyword.len() + 1 + signature.len() <= MAX_LINE || function.parameters.is_empty() {
        write!(f, "{keyword} {signature}")?;
    } else {
        write!(f, "{keyword} {}(", function.name)?;
        let list = &function.parameters;
        for (at, parameter) in list.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}\n{indent}    {}", Declaration { parameter, list })?;
        }
        write!(f, ")")?;
    }
    let line = format!("\n{indent}    ");
    if let Some(description) = &function.description {
        write!(f, "{line}{}", Quoted(description))?;
    }
    if class.is_none() {
        write_backend(f, &line, function.backend)?;
    }
    if function.shrink != class.and_then(|class| class.shrink) {
        write_shrink(f, &line, function.shrink)?;
    }
    let language = function.effective_language();
    if language != class.and_then(|class| class.language) {
        write!(f, "{line}Language \"{}\"", language_name(language.unwrap_or(Language::C)))?;
    }
    if let Some(cost) = &function.cost {
        write!(f, "{line}CalcOrder {}", cost.display(&function.parameters))?;
    }
    if function.idempotent {
        write!(f, "{line}Idempotent")?;
    }
    writeln!(f, ";")
}

fn write_backend(f: &mut Formatter<'_>, before: &str, backend: Backend) -> fmt::Result {
    match backend {
        Backend::Normal => Ok(()),
        Backend::Mpi => write!(f, "{before}Backend \"MPI\""),
        Backend::Blacs => write!(f, "{before}Backend \"BLACS\""),
    }
}

fn write_shrink(f: &mut Formatter<'_>, before: &str, shrink: Option<bool>) -> fmt::Result {
    match shrink {
        None => Ok(()),
        Some(shrink) => write!(f, "{before}Shrink \"{}\"", if shrink { "yes" } else { "no" }),
    }
}

fn language_name(language: Language) -> &'static str {
    match language {
        Language::C => "C",
        Language::Cpp => "C++",
        Language::Fortran => "FORTRAN",
    }
}

/// A string with its escapes.
struct Quoted<'a>(&'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                '\r' => f.write_str("\\r")?,
                c if c.is_ascii_control() => write!(f, "\\x{:02x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A parameter in the list of its function.
struct Declaration<'a> {
    parameter: &'a Parameter,
    list: &'a [Parameter],
}

impl Display for Declaration<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Kind::Callback(own) = &self.parameter.kind else {
            return write_plain(f, self.parameter, &Names { own: self.list, outer: &[] });
        };
        write!(f, "{}(", self.parameter.name)?;
        for (at, inner) in own.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            write_plain(f, inner, &Names { own, outer: self.list })?;
        }
        f.write_char(')')
    }
}

fn write_plain(f: &mut Formatter<'_>, parameter: &Parameter, names: &Names<'_>) -> fmt::Result {
    write!(f, "{} ", parameter.mode.keyword())?;
    match parameter.distribution {
        None => {}
        Some(Distribution::Allocate) => f.write_str("allocate ")?,
        Some(Distribution::Broadcast) => f.write_str("broadcast ")?,
    }
    match &parameter.kind {
        Kind::Scalar(kind) => write!(f, "{} {}", kind.idl_name(), parameter.name),
        Kind::Array { element, dimensions } => {
            write!(f, "{} {}", element.idl_name(), parameter.name)?;
            dimensions.iter().try_for_each(|dimension| write_dimension(f, dimension, names))
        }
        Kind::Callback(_) => Ok(()),
    }
}

fn write_dimension(f: &mut Formatter<'_>, dimension: &Dimension, names: &Names<'_>) -> fmt::Result {
    let nothing = Expr::Number(0);
    let expression = |f: &mut Formatter<'_>, expression: Option<&Expr>| {
        write_expression(f, expression.unwrap_or(&nothing), 0, names)
    };
    f.write_char('[')?;
    expression(f, dimension.size.as_ref())?;
    if let Some(range) = &dimension.range {
        f.write_str(" : ")?;
        expression(f, range.start.as_ref())?;
        f.write_str(", ")?;
        expression(f, range.end.as_ref())?;
        if range.step.is_some() {
            f.write_str(", ")?;
            expression(f, range.step.as_ref())?;
        }
    }
    f.write_char(']')
}

/// Names for the indices in an expression.
struct Names<'a> {
    own: &'a [Parameter],
    outer: &'a [Parameter],
}

impl Names<'_> {
    fn write(&self, f: &mut Formatter<'_>, index: usize) -> fmt::Result {
        match self.own.iter().chain(self.outer).nth(index) {
            Some(parameter) => f.write_str(&parameter.name),
            None => write!(f, "parameter_{index}"),
        }
    }
}

impl Expr {
    /// The expression as source text; `names` are the parameters that its indices refer to.
    pub fn display<'a>(&'a self, names: &'a [Parameter]) -> impl Display + 'a {
        Displayed { expression: self, names }
    }
}

struct Displayed<'a> {
    expression: &'a Expr,
    names: &'a [Parameter],
}

impl Display for Displayed<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_expression(f, self.expression, 0, &Names { own: self.names, outer: &[] })
    }
}

/// Precedence levels for placing parentheses: conditions, then those of [`BinaryOperator`] from 1, then signs
/// below powers.
const SIGN: usize = 5;
const POWER: usize = 6;
const OPERAND: usize = 7;

fn level(expression: &Expr) -> usize {
    match expression {
        Expr::Conditional(..) => 0,
        Expr::Binary(BinaryOperator::Power, ..) => POWER,
        Expr::Binary(operator, ..) => operator.level() + 1,
        Expr::Negate(_) => SIGN,
        Expr::Number(number) if *number < 0 => SIGN,
        Expr::Number(_) | Expr::Real(_) | Expr::Scalar(_) | Expr::Element(..) => OPERAND,
    }
}

fn write_expression(
    f: &mut Formatter<'_>,
    expression: &Expr,
    lowest: usize,
    names: &Names<'_>,
) -> fmt::Result {
    if level(expression) < lowest {
        f.write_char('(')?;
        write_expression(f, expression, 0, names)?;
        return f.write_char(')');
    }
    match expression {
        Expr::Number(number) => write!(f, "{number}"),
        // `{:?}` keeps the point or the exponent, so that it parses as a real number again.
        Expr::Real(number) => write!(f, "{number:?}"),
        Expr::Scalar(index) => names.write(f, *index),
        Expr::Element(array, index) => {
            names.write(f, *array)?;
            f.write_char('[')?;
            write_expression(f, index, 0, names)?;
            f.write_char(']')
        }
        Expr::Negate(operand) => {
            f.write_char('-')?;
            write_expression(f, operand, SIGN, names)
        }
        Expr::Binary(BinaryOperator::Power, base, exponent) => {
            write_expression(f, base, OPERAND, names)?;
            f.write_str(" ^ ")?;
            write_expression(f, exponent, SIGN, names)
        }
        Expr::Binary(operator, left, right) => {
            let own = operator.level() + 1;
            write_expression(f, left, own, names)?;
            write!(f, " {} ", operator.sign())?;
            write_expression(f, right, own + 1, names)
        }
        Expr::Conditional(condition, yes, no) => {
            write_expression(f, condition, 1, names)?;
            f.write_str(" ? ")?;
            write_expression(f, yes, 0, names)?;
            f.write_str(" : ")?;
            write_expression(f, no, 0, names)
        }
    }
}

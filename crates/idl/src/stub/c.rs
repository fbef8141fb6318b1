//! Utilities for C text.

use std::fmt::Write;

use crate::expression::{BinaryOperator, Expr};
use crate::types::Type;

/// A string literal.
pub(super) fn string(text: &str) -> String {
    bytes(text.as_bytes())
}

/// A string literal from any bytes. Escapes have three digits, so that the next character is not read as part
/// of them.
pub(super) fn bytes(bytes: &[u8]) -> String {
    let mut literal = String::from("\"");
    for &byte in bytes {
        match byte {
            b'\n' => literal.push_str("\\n"),
            // A question mark could be part of a trigraph.
            b'"' | b'\\' | b'?' => {
                literal.push('\\');
                literal.push(byte.into());
            }
            b' '..=b'~' => literal.push(byte.into()),
            _ => {
                let _ = write!(literal, "\\{byte:03o}");
            }
        }
    }
    literal.push('"');
    literal
}

/// The name of a type in the stub.
pub(super) fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::SComplex => "gridrpc_scomplex",
        Type::DComplex => "gridrpc_dcomplex",
        _ => kind.c_name(),
    }
}

/// Joins a type and a declarator: `int` and `x` become `int x`, `char *` becomes `char *x`.
pub(super) fn declare(kind: &str, declarator: &str) -> String {
    let space = if kind.ends_with('*') || declarator.is_empty() { "" } else { " " };
    format!("{kind}{space}{declarator}")
}

/// A pointer to values of a type.
pub(super) fn pointer_to(kind: Type) -> String {
    declare(type_name(kind), "*")
}

/// An expression in C, fully parenthesized. `parameter` returns the types of parameters. Sizes have been
/// checked before this code runs, so nothing overflows.
pub(super) fn expression(expression: &Expr, parameter: &dyn Fn(usize) -> Option<Type>) -> String {
    let part = |operand: &Expr| self::expression(operand, parameter);
    let pointer = |index| pointer_to(parameter(index).unwrap_or(Type::Int));
    match expression {
        Expr::Number(number) => format!("{number}LL"),
        Expr::Real(number) => format!("{number:?}"),
        Expr::Scalar(index) => {
            format!("(long long)*({})gridrpc_arguments[{index}]", pointer(*index))
        }
        Expr::Element(array, index) => {
            let index = part(index);
            format!("(long long)(({})gridrpc_arguments[{array}])[{index}]", pointer(*array))
        }
        Expr::Negate(operand) => format!("(-{})", part(operand)),
        Expr::Binary(BinaryOperator::Power, base, exponent) => {
            format!("gridrpc_power({}, {})", part(base), part(exponent))
        }
        Expr::Binary(operator, left, right) => {
            format!("({} {} {})", part(left), operator.sign(), part(right))
        }
        Expr::Conditional(condition, yes, no) => {
            format!("({} ? {} : {})", part(condition), part(yes), part(no))
        }
    }
}

//! Expressions as in C, except that `^` is a right-associative power with the highest precedence.

use super::{Parsed, Parser, SyntaxError};
use crate::diagnostic::Span;
use crate::expression::BinaryOperator;
use crate::lexer::TokenKind;
use crate::syntax::{Expr, ExprKind, Text};

/// Deepest nesting of parentheses, signs, powers and conditions.
const MAX_DEPTH: usize = 64;

/// Most operators of an expression. Together with `MAX_DEPTH`, limits the depth of its tree.
const MAX_OPERATORS: usize = 1000;

/// The `BinaryOperator` level of unary signs.
const UNARY_LEVEL: usize = 4;

impl Parser<'_, '_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.operators = 0;
        self.conditional(0)
    }

    fn conditional(&mut self, depth: usize) -> Parsed<Expr> {
        if depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        let condition = self.binary(0, depth)?;
        if !self.at("?") {
            return Ok(condition);
        }
        self.count_operator()?;
        self.advance();
        let yes = self.conditional(depth + 1)?;
        self.expect(":", "and the other value of the condition")?;
        let no = self.conditional(depth + 1)?;
        let span = condition.span.to(no.span);
        Ok(Expr { kind: ExprKind::Conditional(Box::new([condition, yes, no])), span })
    }

    /// Left-associative operators of a level and above.
    fn binary(&mut self, level: usize, depth: usize) -> Parsed<Expr> {
        if level == UNARY_LEVEL {
            return self.unary(depth);
        }
        let mut left = self.binary(level + 1, depth)?;
        while let TokenKind::Sign(sign) = self.token.kind
            && let Some(operator) = BinaryOperator::of_sign(sign, level)
        {
            self.count_operator()?;
            self.advance();
            let right = self.binary(level + 1, depth)?;
            left = join(operator, left, right);
        }
        Ok(left)
    }

    fn unary(&mut self, depth: usize) -> Parsed<Expr> {
        if depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        let start = self.token.span;
        if !self.at("-") {
            return self.power(depth);
        }
        self.count_operator()?;
        self.advance();
        let operand = self.unary(depth + 1)?;
        let span = start.to(operand.span);
        Ok(Expr { kind: ExprKind::Negate(Box::new(operand)), span })
    }

    fn power(&mut self, depth: usize) -> Parsed<Expr> {
        let base = self.operand(depth)?;
        if !self.at("^") {
            return Ok(base);
        }
        self.count_operator()?;
        self.advance();
        let exponent = self.unary(depth + 1)?;
        Ok(join(BinaryOperator::Power, base, exponent))
    }

    fn operand(&mut self, depth: usize) -> Parsed<Expr> {
        let span = self.token.span;
        let kind = match self.token.kind {
            TokenKind::Whole(number) => ExprKind::Whole(number),
            TokenKind::Real(number) => ExprKind::Real(number),
            TokenKind::Word(word) => {
                let name = Text { text: word.to_owned(), span };
                self.advance();
                return self.element(name, depth);
            }
            TokenKind::Sign("(") => {
                self.advance();
                let inner = self.conditional(depth + 1)?;
                self.expect(")", "in an expression")?;
                return Ok(inner);
            }
            TokenKind::Sign("*") => {
                return self.pointer(depth);
            }
            _ => return Err(self.unexpected("a number or the name of a parameter")),
        };
        self.advance();
        Ok(Expr { kind, span })
    }

    /// A name with an optional index.
    fn element(&mut self, name: Text, depth: usize) -> Parsed<Expr> {
        let span = name.span;
        if self.at("(") {
            let message = format!("an expression cannot call `{}`", name.text);
            let hint = "write a maximum as `(a > b ? a : b)`, and a minimum as `(a < b ? a : b)`";
            self.report.error_with(span, message, hint);
            return Err(SyntaxError);
        }
        if !self.accept("[") {
            return Ok(Expr { kind: ExprKind::Name(name.text), span });
        }
        self.count_operator()?;
        let index = self.conditional(depth + 1)?;
        self.expect("]", "after the index")?;
        let span = Span::new(span.start, self.last_end);
        Ok(Expr { kind: ExprKind::Element(name, Box::new(index)), span })
    }

    /// `*n` means `n[0]`, counts like it, and is printed like it.
    fn pointer(&mut self, depth: usize) -> Parsed<Expr> {
        if depth + 1 > MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.count_operator()?;
        let star = self.advance().span;
        let parentheses = self.accept("(");
        let name = self.name("the name of an array after `*`")?;
        if parentheses {
            self.expect(")", "after the name")?;
        }
        let span = Span::new(star.start, self.last_end);
        let index = Box::new(Expr { kind: ExprKind::Whole(0), span });
        Ok(Expr { kind: ExprKind::Element(name, index), span })
    }

    fn too_deep(&mut self) -> SyntaxError {
        self.report.error(self.token.span, "an expression that is nested too deeply");
        SyntaxError
    }

    fn count_operator(&mut self) -> Parsed<()> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            let message = format!("an expression with more than {MAX_OPERATORS} operators");
            self.report.error(self.token.span, message);
            return Err(SyntaxError);
        }
        Ok(())
    }
}

fn join(operator: BinaryOperator, left: Expr, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span }
}

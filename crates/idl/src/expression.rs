//! Expressions for sizes and costs, with checked arithmetic.

use thiserror::Error;

/// An expression over parameters.
///
/// Inside a callback with `own` parameters, an index below `own` refers to one of those, and `own + i` to
/// parameter `i` of the enclosing function.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A non-negative integer.
    Number(i64),
    /// A real number; only in costs.
    Real(f64),
    /// The value of the scalar parameter with this index.
    Scalar(usize),
    /// An element of the array parameter with this index.
    Element(usize, Box<Expr>),
    /// Negation.
    Negate(Box<Expr>),
    /// A binary operation.
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    /// The second operand if the first is not 0, otherwise the third.
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
}

/// A binary operator. Comparisons yield 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub enum BinaryOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    /// Rounds towards zero, as in C.
    Divide,
    /// Takes the sign of the dividend, as in C.
    Remainder,
    Power,
}

impl BinaryOperator {
    /// The operator's symbol.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            BinaryOperator::Equal => "==",
            BinaryOperator::NotEqual => "!=",
            BinaryOperator::Less => "<",
            BinaryOperator::LessOrEqual => "<=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterOrEqual => ">=",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Remainder => "%",
            BinaryOperator::Power => "^",
        }
    }

    /// Precedence; higher levels bind tighter.
    pub(crate) fn level(self) -> usize {
        match self {
            BinaryOperator::Equal | BinaryOperator::NotEqual => 0,
            BinaryOperator::Less
            | BinaryOperator::LessOrEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterOrEqual => 1,
            BinaryOperator::Add | BinaryOperator::Subtract => 2,
            BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Remainder => 3,
            BinaryOperator::Power => 4,
        }
    }

    /// The operator with this symbol at a level, except `Power`, which the parser handles separately.
    pub(crate) fn of_sign(sign: &str, level: usize) -> Option<BinaryOperator> {
        use BinaryOperator::*;
        const ALL: [BinaryOperator; 11] = [
            Equal,
            NotEqual,
            Less,
            LessOrEqual,
            Greater,
            GreaterOrEqual,
            Add,
            Subtract,
            Multiply,
            Divide,
            Remainder,
        ];
        ALL.into_iter().find(|operator| operator.level() == level && operator.sign() == sign)
    }
}

/// Source of parameter values. `None` means that a value is not available.
pub trait Values {
    /// The value of a scalar.
    fn scalar(&self, parameter: usize) -> Option<i64>;

    /// An element of an array, indexed from 0 in memory order.
    fn element(&self, parameter: usize, index: u64) -> Option<i64>;

    /// The value of a scalar that may be real; used for costs only.
    fn real(&self, parameter: usize) -> Option<f64> {
        self.scalar(parameter).map(|value| value as f64)
    }
}

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SizeError {
    /// A number does not fit into a signed 64-bit integer, or a cost is not finite.
    #[error("a number is too large")]
    Overflow,
    /// A division or remainder by zero.
    #[error("a division by zero")]
    DivisionByZero,
    /// A negative exponent: the result would be a fraction.
    #[error("a power with a negative exponent")]
    NegativeExponent,
    /// A negative index of an array element.
    #[error("a negative index")]
    NegativeIndex,
    /// A real number in place of an integer.
    #[error("a number that is not whole")]
    NotWhole,
    /// The parameter with this index has no value here.
    #[error("a value that is not there")]
    NotAvailable(usize),
}

impl Expr {
    /// Evaluates a size.
    ///
    /// # Errors
    /// When a value is not available, or the arithmetic has no result.
    pub fn evaluate(&self, values: &dyn Values) -> Result<i64, SizeError> {
        match self {
            Expr::Number(number) => Ok(*number),
            Expr::Real(_) => Err(SizeError::NotWhole),
            Expr::Scalar(index) => values.scalar(*index).ok_or(SizeError::NotAvailable(*index)),
            Expr::Element(array, index) => element(*array, index, values),
            Expr::Negate(operand) => {
                operand.evaluate(values)?.checked_neg().ok_or(SizeError::Overflow)
            }
            Expr::Binary(operator, left, right) => {
                whole(*operator, left.evaluate(values)?, right.evaluate(values)?)
            }
            Expr::Conditional(condition, yes, no) => {
                if condition.evaluate(values)? != 0 { yes } else { no }.evaluate(values)
            }
        }
    }

    /// Evaluates a cost with real numbers. Indices of elements remain integers.
    ///
    /// # Errors
    /// When a value is not available, or the arithmetic has no finite result.
    pub fn cost(&self, values: &dyn Values) -> Result<f64, SizeError> {
        let number = match self {
            Expr::Number(number) => *number as f64,
            Expr::Real(number) => *number,
            Expr::Scalar(index) => values.real(*index).ok_or(SizeError::NotAvailable(*index))?,
            Expr::Element(array, index) => element(*array, index, values)? as f64,
            Expr::Negate(operand) => -operand.cost(values)?,
            Expr::Binary(operator, left, right) => {
                real(*operator, left.cost(values)?, right.cost(values)?)?
            }
            Expr::Conditional(condition, yes, no) => {
                if condition.cost(values)? != 0.0 { yes } else { no }.cost(values)?
            }
        };
        if number.is_finite() { Ok(number) } else { Err(SizeError::Overflow) }
    }

    /// Indices of all parameters whose values the expression needs, ascending and without duplicates.
    #[must_use]
    pub fn scalars(&self) -> Vec<usize> {
        let mut found = Vec::new();
        self.visit(&mut |expression| {
            if let Expr::Scalar(index) | Expr::Element(index, _) = expression {
                found.push(*index);
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Calls `visitor` for the expression and all its parts, outermost first.
    pub(crate) fn visit<'a>(&'a self, visitor: &mut dyn FnMut(&'a Expr)) {
        visitor(self);
        match self {
            Expr::Number(_) | Expr::Real(_) | Expr::Scalar(_) => {}
            Expr::Element(_, operand) | Expr::Negate(operand) => operand.visit(visitor),
            Expr::Binary(_, left, right) => {
                left.visit(visitor);
                right.visit(visitor);
            }
            Expr::Conditional(condition, yes, no) => {
                [condition, yes, no].into_iter().for_each(|part| part.visit(visitor));
            }
        }
    }

    /// The value, if it does not depend on parameters.
    pub(crate) fn constant(&self) -> Option<Result<i64, SizeError>> {
        struct Nothing;
        impl Values for Nothing {
            fn scalar(&self, _: usize) -> Option<i64> {
                None
            }
            fn element(&self, _: usize, _: u64) -> Option<i64> {
                None
            }
        }
        match self.evaluate(&Nothing) {
            Err(SizeError::NotAvailable(_)) => None,
            value => Some(value),
        }
    }
}

fn element(array: usize, index: &Expr, values: &dyn Values) -> Result<i64, SizeError> {
    let index = u64::try_from(index.evaluate(values)?).map_err(|_| SizeError::NegativeIndex)?;
    values.element(array, index).ok_or(SizeError::NotAvailable(array))
}

fn whole(operator: BinaryOperator, left: i64, right: i64) -> Result<i64, SizeError> {
    let value = match operator {
        BinaryOperator::Equal => Some((left == right).into()),
        BinaryOperator::NotEqual => Some((left != right).into()),
        BinaryOperator::Less => Some((left < right).into()),
        BinaryOperator::LessOrEqual => Some((left <= right).into()),
        BinaryOperator::Greater => Some((left > right).into()),
        BinaryOperator::GreaterOrEqual => Some((left >= right).into()),
        BinaryOperator::Add => left.checked_add(right),
        BinaryOperator::Subtract => left.checked_sub(right),
        BinaryOperator::Multiply => left.checked_mul(right),
        BinaryOperator::Divide | BinaryOperator::Remainder if right == 0 => {
            return Err(SizeError::DivisionByZero);
        }
        BinaryOperator::Divide => left.checked_div(right),
        // The remainder of a division by -1 is 0, even where the quotient overflows.
        BinaryOperator::Remainder => Some(left.wrapping_rem(right)),
        BinaryOperator::Power => power(left, right)?,
    };
    value.ok_or(SizeError::Overflow)
}

fn power(base: i64, exponent: i64) -> Result<Option<i64>, SizeError> {
    if exponent < 0 {
        return Err(SizeError::NegativeExponent);
    }
    Ok(match base {
        0 | 1 => Some(if exponent == 0 { 1 } else { base }),
        -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => u32::try_from(exponent).ok().and_then(|exponent| base.checked_pow(exponent)),
    })
}

fn real(operator: BinaryOperator, left: f64, right: f64) -> Result<f64, SizeError> {
    let truth = |condition: bool| f64::from(u8::from(condition));
    Ok(match operator {
        BinaryOperator::Equal => truth(left == right),
        BinaryOperator::NotEqual => truth(left != right),
        BinaryOperator::Less => truth(left < right),
        BinaryOperator::LessOrEqual => truth(left <= right),
        BinaryOperator::Greater => truth(left > right),
        BinaryOperator::GreaterOrEqual => truth(left >= right),
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left * right,
        BinaryOperator::Divide | BinaryOperator::Remainder if right == 0.0 => {
            return Err(SizeError::DivisionByZero);
        }
        BinaryOperator::Divide => left / right,
        BinaryOperator::Remainder => left % right,
        BinaryOperator::Power => left.powf(right),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scalar `i` is `scalars[i]`; element `j` of array `i` is `100 * i + j`, below 10.
    struct TestValues(Vec<i64>);

    impl Values for TestValues {
        fn scalar(&self, parameter: usize) -> Option<i64> {
            self.0.get(parameter).copied()
        }
        fn element(&self, parameter: usize, index: u64) -> Option<i64> {
            (index < 10).then(|| 100 * parameter as i64 + index as i64)
        }
    }

    fn binary(operator: BinaryOperator, left: i64, right: i64) -> Result<i64, SizeError> {
        Expr::Binary(operator, Expr::Scalar(0).into(), Expr::Scalar(1).into())
            .evaluate(&TestValues(vec![left, right]))
    }

    use BinaryOperator::{Add, Divide, Multiply, Power, Remainder, Subtract};

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert_eq!(binary(Add, i64::MAX, 1), Err(SizeError::Overflow));
        assert_eq!(binary(Subtract, i64::MIN, 1), Err(SizeError::Overflow));
        assert_eq!(binary(Multiply, 1 << 32, 1 << 31), Err(SizeError::Overflow));
        assert_eq!(binary(Divide, i64::MIN, -1), Err(SizeError::Overflow));
        assert_eq!(binary(Divide, 1, 0), Err(SizeError::DivisionByZero));
        assert_eq!(binary(Remainder, 1, 0), Err(SizeError::DivisionByZero));
        assert_eq!(binary(Remainder, i64::MIN, -1), Ok(0));
        let negated = Expr::Negate(Expr::Scalar(0).into()).evaluate(&TestValues(vec![i64::MIN]));
        assert_eq!(negated, Err(SizeError::Overflow));
    }

    #[test]
    fn division_is_that_of_c() {
        assert_eq!(binary(Divide, -7, 2), Ok(-3));
        assert_eq!(binary(Remainder, -7, 2), Ok(-1));
    }

    #[test]
    fn powers() {
        assert_eq!(binary(Power, 2, 62), Ok(1 << 62));
        assert_eq!(binary(Power, -2, 63), Ok(i64::MIN));
        assert_eq!(binary(Power, 2, 63), Err(SizeError::Overflow));
        assert_eq!(binary(Power, 2, i64::MAX), Err(SizeError::Overflow));
        assert_eq!(binary(Power, 0, 0), Ok(1));
        assert_eq!(binary(Power, 0, i64::MAX), Ok(0));
        assert_eq!(binary(Power, 1, i64::MAX), Ok(1));
        assert_eq!(binary(Power, -1, i64::MAX), Ok(-1));
        assert_eq!(binary(Power, 3, -1), Err(SizeError::NegativeExponent));
    }

    #[test]
    fn values_that_are_not_there() {
        let given = TestValues(vec![5]);
        assert_eq!(Expr::Scalar(3).evaluate(&given), Err(SizeError::NotAvailable(3)));
        let element = |index| Expr::Element(2, Box::new(index));
        assert_eq!(element(Expr::Scalar(0)).evaluate(&given), Ok(205));
        assert_eq!(element(Expr::Number(10)).evaluate(&given), Err(SizeError::NotAvailable(2)));
        let negative = element(Expr::Negate(Expr::Number(1).into()));
        assert_eq!(negative.evaluate(&given), Err(SizeError::NegativeIndex));
    }

    #[test]
    fn only_the_chosen_branch_is_evaluated() {
        let choice = |condition| {
            Expr::Conditional(
                Expr::Number(condition).into(),
                Expr::Number(7).into(),
                Expr::Scalar(9).into(),
            )
        };
        assert_eq!(choice(1).evaluate(&TestValues(vec![])), Ok(7));
        assert_eq!(choice(0).evaluate(&TestValues(vec![])), Err(SizeError::NotAvailable(9)));
        assert_eq!(choice(1).constant(), Some(Ok(7)));
        assert_eq!(choice(0).constant(), None);
    }

    #[test]
    fn costs_are_real() {
        let given = TestValues(vec![i64::MAX, 3]);
        let expression =
            |operator| Expr::Binary(operator, Expr::Scalar(0).into(), Expr::Scalar(1).into());
        assert_eq!(expression(Power).cost(&given), Ok((i64::MAX as f64).powi(3)));
        let two_thirds = Expr::Binary(Divide, Expr::Real(2.0).into(), Expr::Number(3).into());
        assert_eq!(two_thirds.cost(&given), Ok(2.0 / 3.0));
        assert_eq!(two_thirds.evaluate(&given), Err(SizeError::NotWhole));
        let none = Expr::Binary(Divide, Expr::Number(1).into(), Expr::Number(0).into());
        assert_eq!(none.cost(&given), Err(SizeError::DivisionByZero));
        let huge = Expr::Binary(Power, Expr::Real(1e300).into(), Expr::Number(2).into());
        assert_eq!(huge.cost(&given), Err(SizeError::Overflow));
    }

    #[test]
    fn the_parameters_it_needs() {
        let expression = Expr::Binary(
            Add,
            Expr::Element(4, Expr::Scalar(2).into()).into(),
            Expr::Binary(Multiply, Expr::Scalar(2).into(), Expr::Scalar(0).into()).into(),
        );
        assert_eq!(expression.scalars(), [0, 2, 4]);
    }
}

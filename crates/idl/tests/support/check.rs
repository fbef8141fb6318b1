//! Properties of any text, shared by the property tests and the fuzz targets.

use gridrpc_idl::{
    BinaryOperator, Expr, Extent, Function, Kind, Module, Severity, SizeError, Values,
    callback_extents, extents, parse, stub_source,
};

/// Takes a text through all stages as an IDL file: parses it, formats its diagnostics, prints it, parses it
/// again, and writes a stub.
pub fn source(text: &str) {
    let parsed = parse(text);
    for found in &parsed.diagnostics {
        assert!(found.span.start <= found.span.end && found.span.end <= text.len(), "{found:?}");
        let rendered = found.render("file.idl", text);
        assert!(rendered.contains(&found.message), "{rendered}");
    }
    let errors = parsed.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(parsed.module.is_none(), errors, "{:?}", parsed.diagnostics);
    if let Some(module) = parsed.module {
        self::module(&module);
    }
}

/// Checks that a printed module parses as the same module and prints the same again.
pub fn module(module: &Module) {
    let printed = module.to_string();
    let parsed = parse(&printed);
    let again = parsed.module.unwrap_or_else(|| {
        let found = parsed.diagnostics.iter().map(|found| found.render("printed", &printed));
        panic!("{printed}\n{}", found.collect::<String>());
    });
    assert_eq!(again.to_string(), printed);
    for name in names(module) {
        let (one, other) = (module.function(&name), again.function(&name));
        let (Some(one), Some(other)) = (one, other) else { panic!("{name} is lost") };
        assert_eq!(one.parameters, other.parameters);
        assert_eq!(one.description, other.description);
        assert_eq!(one.cost, other.cost);
        assert_eq!(
            (one.shrink, one.backend, one.idempotent, one.fortran()),
            (other.shrink, other.backend, other.idempotent, other.fortran())
        );
    }
    let stub = stub_source(module, "any \"file\" \\ name\n");
    assert!(stub.contains("gridrpc_module_v1"));
}

/// The names of all functions and methods.
fn names(module: &Module) -> Vec<String> {
    let functions = module.functions.iter().map(|function| function.name.clone());
    let methods = module.classes.iter().flat_map(|class| {
        class.methods.iter().map(|method| format!("{}.{}", class.name, method.name))
    });
    functions.chain(methods).collect()
}

/// Values from a list, repeated endlessly.
pub struct Cycle(pub Vec<i64>);

impl Values for Cycle {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        self.0.get(parameter % self.0.len().max(1)).copied()
    }

    fn element(&self, parameter: usize, index: u64) -> Option<i64> {
        if index > 1000 { None } else { self.scalar(parameter.wrapping_add(index as usize)) }
    }
}

/// Evaluates all sizes and costs of a text's functions with these values.
pub fn sizes(text: &str, values: Vec<i64>) {
    let Some(module) = parse(text).module else { return };
    let values = Cycle(values);
    for function in names(&module).iter().filter_map(|name| module.function(name)) {
        function_sizes(function, &values);
    }
}

fn function_sizes(function: &Function, values: &Cycle) {
    for (index, parameter) in function.parameters.iter().enumerate() {
        match &parameter.kind {
            Kind::Callback(own) => {
                for inner in 0..own.len() {
                    consistent(callback_extents(function, index, inner, values).ok(), 1);
                }
            }
            Kind::Scalar(_) => assert_eq!(extents(function, index, values), Ok(Vec::new())),
            Kind::Array { element, dimensions } => {
                let width = element.size().unwrap_or(8) as u128;
                consistent(extents(function, index, values).ok(), width);
                for size in dimensions.iter().filter_map(|dimension| dimension.size.as_ref()) {
                    assert_eq!(size.evaluate(values), reference(size, values), "{size:?}");
                }
            }
        }
    }
    if let Some(cost) = &function.cost {
        assert!(cost.cost(values).unwrap_or(0.0).is_finite());
    }
}

fn consistent(extents: Option<Vec<Extent>>, width: u128) {
    let mut bytes = width;
    for Extent { size, start, end, step } in extents.iter().flatten().copied() {
        assert!(start <= end && end <= size && step >= 1);
        let extent = Extent { size, start, end, step };
        assert!(extent.selected() <= size);
        assert_eq!(extent.is_whole(), extent.selected() == size);
        bytes = bytes.saturating_mul(size.into());
    }
    let empty = extents.iter().flatten().any(|extent| extent.size == 0);
    assert!(empty || bytes <= i64::MAX as u128);
}

/// Evaluates an expression with 128 bits and checks the limits at each step.
pub fn reference(expression: &Expr, values: &dyn Values) -> Result<i64, SizeError> {
    let value: i128 = match expression {
        Expr::Number(number) => (*number).into(),
        Expr::Real(_) => return Err(SizeError::NotWhole),
        Expr::Scalar(index) => values.scalar(*index).ok_or(SizeError::NotAvailable(*index))?.into(),
        Expr::Element(array, index) => {
            let index = reference(index, values)?;
            let index = u64::try_from(index).map_err(|_| SizeError::NegativeIndex)?;
            values.element(*array, index).ok_or(SizeError::NotAvailable(*array))?.into()
        }
        Expr::Negate(operand) => -i128::from(reference(operand, values)?),
        Expr::Conditional(condition, yes, no) => {
            let chosen = if reference(condition, values)? != 0 { yes } else { no };
            reference(chosen, values)?.into()
        }
        Expr::Binary(operator, left, right) => {
            let left = i128::from(reference(left, values)?);
            let right = i128::from(reference(right, values)?);
            wrapping(*operator, left, right)?
        }
    };
    i64::try_from(value).map_err(|_| SizeError::Overflow)
}

fn wrapping(operator: BinaryOperator, left: i128, right: i128) -> Result<i128, SizeError> {
    Ok(match operator {
        BinaryOperator::Equal => (left == right).into(),
        BinaryOperator::NotEqual => (left != right).into(),
        BinaryOperator::Less => (left < right).into(),
        BinaryOperator::LessOrEqual => (left <= right).into(),
        BinaryOperator::Greater => (left > right).into(),
        BinaryOperator::GreaterOrEqual => (left >= right).into(),
        BinaryOperator::Add => left + right,
        BinaryOperator::Subtract => left - right,
        BinaryOperator::Multiply => left * right,
        BinaryOperator::Divide | BinaryOperator::Remainder if right == 0 => {
            return Err(SizeError::DivisionByZero);
        }
        BinaryOperator::Divide => left / right,
        BinaryOperator::Remainder => left % right,
        BinaryOperator::Power if right < 0 => return Err(SizeError::NegativeExponent),
        BinaryOperator::Power => {
            let mut result = 1i128;
            // Values still in range after 64 doublings stay in {-1, 0, 1}.
            let times = if right > 64 { 64 + right % 2 } else { right };
            for _ in 0..times {
                result *= left;
                if i64::try_from(result).is_err() {
                    return Err(SizeError::Overflow);
                }
            }
            result
        }
    })
}

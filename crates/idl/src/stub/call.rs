//! Argument passing from a worker to a function.
//!
//! A worker passes an array of pointers. C functions receive scalars by value; Fortran functions receive
//! everything by address, and the lengths of strings after all arguments.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::c;
use crate::module::{CallArgument, Dimension, Function, Kind, Mode, Parameter};
use crate::types::Type;

/// The function of the stub.
pub(super) struct Call<'a> {
    /// The unique part of the names that belong to it.
    pub name: &'a str,
    pub function: &'a Function,
    /// Whether it calls a Fortran function.
    pub fortran: bool,
    pub cpp: bool,
}

impl Call<'_> {
    fn parameters(&self) -> &[Parameter] {
        &self.function.parameters
    }

    /// A function for each callback that passes its arguments to the worker.
    pub fn trampolines(&self) -> String {
        let mut out = String::new();
        for (number, own) in self.callbacks().enumerate() {
            let declarations: Vec<String> = own
                .iter()
                .enumerate()
                .map(|(at, parameter)| self.passed(parameter, &format!("p{at}")))
                .collect();
            let pointers: Vec<String> = own
                .iter()
                .enumerate()
                .map(|(at, parameter)| match parameter.kind {
                    Kind::Scalar(kind) if !self.fortran && !kind.is_text() => format!("&p{at}"),
                    _ => format!("p{at}"),
                })
                .collect();
            let pointers = if own.is_empty() { "0".to_owned() } else { pointers.join(", ") };
            let _ = write!(
                out,
                "static void gridrpc_callback_{}_{number}({})\n{{\n    \
                 void *gridrpc_arguments[] = {{ {pointers} }};\n    \
                 gridrpc_call_back({number}, gridrpc_arguments);\n}}\n\n",
                self.name,
                list(&declarations),
            );
        }
        out
    }

    fn callbacks(&self) -> impl Iterator<Item = &[Parameter]> {
        self.parameters().iter().filter_map(|parameter| match &parameter.kind {
            Kind::Callback(own) => Some(&own[..]),
            _ => None,
        })
    }

    /// A parameter as declared for the function; without a name, its type.
    fn passed(&self, parameter: &Parameter, name: &str) -> String {
        match &parameter.kind {
            Kind::Scalar(kind) if is_returned_string(parameter) => {
                c::declare(c::type_name(*kind), &format!("*{name}"))
            }
            Kind::Scalar(kind) if self.fortran && !kind.is_text() => {
                c::declare(c::type_name(*kind), &format!("*{name}"))
            }
            Kind::Scalar(kind) => c::declare(c::type_name(*kind), name),
            Kind::Array { element, .. } => c::declare(c::type_name(*element), &format!("*{name}")),
            Kind::Callback(own) => {
                let types: Vec<String> = own.iter().map(|inner| self.passed(inner, "")).collect();
                format!("void (*{name})({})", list(&types))
            }
        }
    }

    /// The argument for a parameter.
    fn argument(&self, index: usize) -> String {
        let parameter = &self.parameters()[index];
        let pointer = format!("gridrpc_arguments[{index}]");
        match &parameter.kind {
            Kind::Scalar(kind) if kind.is_text() && !is_returned_string(parameter) => {
                format!("(char *){pointer}")
            }
            Kind::Scalar(kind) if !self.fortran && !is_returned_string(parameter) => {
                format!("*({}){pointer}", c::pointer_to(*kind))
            }
            Kind::Scalar(kind) | Kind::Array { element: kind, .. } => {
                format!("({}){pointer}", c::pointer_to(*kind))
            }
            Kind::Callback(_) => {
                let before = &self.parameters()[..index];
                let number =
                    before.iter().filter(|other| matches!(other.kind, Kind::Callback(_))).count();
                format!("gridrpc_callback_{}_{number}", self.name)
            }
        }
    }

    /// Head of the function with an inline body.
    pub fn body_declaration(&self) -> String {
        let declarations: Vec<String> = self
            .parameters()
            .iter()
            .map(|parameter| {
                format!("{} __attribute__((unused))", self.passed(parameter, &parameter.name))
            })
            .collect();
        format!("static void gridrpc_body_{}({})", self.name, list(&declarations))
    }

    pub fn body_call(&self) -> String {
        let all: Vec<usize> = (0..self.parameters().len()).collect();
        self.call(&format!("gridrpc_body_{}", self.name), &all, None)
    }

    /// Declares an external function under an alias, so that other declarations do not conflict and floats
    /// are passed unpromoted.
    pub fn alias(&self, symbol: &str, arguments: &[usize], result: Option<usize>) -> String {
        let mut types: Vec<String> =
            arguments.iter().map(|index| self.passed(&self.parameters()[*index], "")).collect();
        types.extend(self.lengths(arguments).iter().map(|_| "__SIZE_TYPE__".to_owned()));
        let (name, types) = (self.name, list(&types));
        let returns = result.and_then(|index| self.returned(index)).map_or("void", c::type_name);
        format!(
            "GRIDRPC_EXTERN {} gridrpc_target_{name}({types}) __asm__({});\n\n",
            returns,
            c::string(symbol)
        )
    }

    pub fn alias_call(&self, arguments: &[usize], result: Option<usize>) -> String {
        self.call(&format!("gridrpc_target_{}", self.name), arguments, result)
    }

    /// The return type of a function whose result goes to this parameter.
    fn returned(&self, result: usize) -> Option<Type> {
        match self.parameters()[result].kind {
            Kind::Scalar(of) | Kind::Array { element: of, .. } => Some(of),
            Kind::Callback(_) => None,
        }
    }

    /// A call of `target`, with its value assigned to a parameter.
    fn statement(&self, target: &str, values: &[String], result: Option<usize>) -> String {
        let mut text = String::from("    ");
        if let Some((index, of)) = result.and_then(|index| Some((index, self.returned(index)?))) {
            let _ = write!(text, "*({})gridrpc_arguments[{index}] = ", c::pointer_to(of));
            if of.is_text() {
                // The original may be const.
                text.push_str("(char *)");
            }
        }
        let _ = write!(text, "{target}(");
        for (at, value) in values.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(text, "{comma}\n        {value}");
        }
        text.push_str(");\n");
        text
    }

    /// A call of a function that the file itself declares. It may use its own complex type; C accepts any
    /// pointer there.
    pub fn direct_call(
        &self,
        target: &str,
        arguments: &[CallArgument],
        result: Option<usize>,
    ) -> String {
        let values = values(arguments, &|index| match self.parameters()[index].kind {
            Kind::Array { element: Type::SComplex | Type::DComplex, .. } if !self.cpp => {
                format!("gridrpc_arguments[{index}]")
            }
            _ => self.argument(index),
        });
        self.statement(target, &values, result)
    }

    /// A call of a function in C++, which may take and return vectors, strings and structures: see arguments.hpp.
    pub fn cpp_call(
        &self,
        target: &str,
        arguments: &[CallArgument],
        result: Option<usize>,
    ) -> String {
        let plain = self.direct_call(target, arguments, result);
        let mut adapted = CallArgument::parameters(arguments);
        adapted.retain(|index| self.adapter(*index).is_some());
        adapted.sort_unstable();
        adapted.dedup();
        let name = |index: &usize| format!("gridrpc_array_{index}");
        let mut text = String::from("#if __cplusplus >= 201703L\n");
        for index in adapted.iter().chain(&result) {
            text.extend(self.adapter(*index));
        }
        let values = values(arguments, &|index| match adapted.contains(&index) {
            true => format!("gridrpc_{index}"),
            false => self.argument(index),
        });
        let mut call = format!("{target}({})", values.join(", "));
        if !adapted.is_empty() {
            let parameters: Vec<String> =
                adapted.iter().map(|index| format!("auto &&gridrpc_{index}")).collect();
            let parameters = parameters.join(", ");
            let arrays: Vec<String> = adapted.iter().map(name).collect();
            call = format!(
                "gridrpc_call(0,\n        [&]({parameters}) -> decltype({call}) {{ return {call}; }},\n        \
                 [&]({parameters}) -> decltype(auto) {{ return {call}; }},\n        {})",
                arrays.join(", ")
            );
        }
        let _ = match &result {
            Some(index) => writeln!(text, "    {}.store({call});", name(index)),
            None if adapted.is_empty() => return plain,
            None => writeln!(text, "    {call};"),
        };
        for index in &adapted {
            let _ = writeln!(text, "    {}.finish();", name(index));
        }
        format!("{text}#else\n{plain}#endif\n")
    }

    /// The declaration of what stands for an array or a string that comes back; `None` for others.
    fn adapter(&self, index: usize) -> Option<String> {
        let parameter = &self.parameters()[index];
        let (element, size) = match &parameter.kind {
            Kind::Array { element, dimensions } => (*element, self.count(dimensions)),
            Kind::Scalar(element) if is_returned_string(parameter) => (*element, "1".to_owned()),
            _ => return None,
        };
        // The path of a file is there in each mode, and stays.
        let is_path = element == Type::Filename;
        Some(format!(
            "    gridrpc_array<{}, {}, {}> gridrpc_array_{index}(gridrpc_arguments[{index}], {size}, {});\n",
            c::type_name(element),
            is_path || parameter.mode.is_input(),
            !is_path && parameter.mode.is_output(),
            c::string(&parameter.name),
        ))
    }

    fn call(&self, target: &str, arguments: &[usize], result: Option<usize>) -> String {
        let mut values: Vec<String> = arguments.iter().map(|index| self.argument(*index)).collect();
        let lengths = self.lengths(arguments);
        values.extend(lengths.iter().map(|index| format!("gridrpc_length_{index}")));
        let distinct: BTreeSet<usize> = lengths.into_iter().collect();
        let mut text = String::new();
        for index in distinct {
            let length = self.length(index);
            let _ = writeln!(text, "    __SIZE_TYPE__ gridrpc_length_{index} = {length};");
        }
        text + &self.statement(target, &values, result)
    }

    /// Text arguments of a Fortran function, whose lengths are passed as well.
    fn lengths(&self, arguments: &[usize]) -> Vec<usize> {
        let is_text = |index: &&usize| match self.parameters()[**index].kind {
            Kind::Scalar(kind) => kind.is_text() || kind == Type::Char,
            Kind::Array { element, .. } => element == Type::Char,
            Kind::Callback(_) => false,
        };
        arguments.iter().filter(is_text).copied().filter(|_| self.fortran).collect()
    }

    /// The length of one of them. A character array is an array of strings with the length of its first
    /// dimension.
    fn length(&self, index: usize) -> String {
        match &self.parameters()[index].kind {
            Kind::Array { dimensions, .. } => self.first_size(dimensions),
            Kind::Scalar(kind) if kind.is_text() => {
                // Ranks that a file is not sent to have none.
                let text = self.argument(index);
                format!("{text} ? __builtin_strlen({text}) : 0")
            }
            _ => "1".to_owned(),
        }
    }

    fn first_size(&self, dimensions: &[Dimension]) -> String {
        dimensions.first().map_or_else(|| "0".to_owned(), |dimension| self.size(dimension))
    }

    /// Number of elements of an array.
    fn count(&self, dimensions: &[Dimension]) -> String {
        let sizes: Vec<String> = dimensions.iter().map(|dimension| self.size(dimension)).collect();
        sizes.join(" * ")
    }

    fn size(&self, dimension: &Dimension) -> String {
        let kind = |index: usize| match self.parameters().get(index)?.kind {
            Kind::Scalar(kind) | Kind::Array { element: kind, .. } => Some(kind),
            Kind::Callback(_) => None,
        };
        match &dimension.size {
            Some(size) => format!("(__SIZE_TYPE__)({})", c::expression(size, &kind)),
            None => "0".to_owned(),
        }
    }
}

/// Arguments of a call in C++ or C; `argument` has the one for a parameter.
fn values(arguments: &[CallArgument], argument: &dyn Fn(usize) -> String) -> Vec<String> {
    let value = |passed: &CallArgument| match passed {
        CallArgument::Parameter(index) => argument(*index),
        CallArgument::Structure(fields) => format!("{{{}}}", values(fields, argument).join(", ")),
    };
    arguments.iter().map(value).collect()
}

/// Whether the parameter is a string that the function allocates and returns by pointer.
fn is_returned_string(parameter: &Parameter) -> bool {
    parameter.kind == Kind::Scalar(Type::String)
        && matches!(parameter.mode, Mode::Out | Mode::InOut)
}

/// Parameters or types in parentheses; C requires `void` for none.
fn list(items: &[String]) -> String {
    if items.is_empty() { "void".to_owned() } else { items.join(", ") }
}

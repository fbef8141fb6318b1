//! Descriptions of modules, for people and programs.

use std::fmt::Write;

use gridrpc_idl::{Class, Dimension, Function, Kind, Mode, Module, Parameter};
use serde_json::{Value, json};

/// A readable description of one function, under its call name, or of a whole module. `place`: the module's file, or the
/// server that offers it.
#[must_use]
pub fn text(interface: &Module, place: &str, function: Option<(&str, &Function)>) -> String {
    match function {
        Some((name, function)) => one_function(interface, name, function),
        None => {
            let mut text = format!("module {}\n  {place}\n", interface.name);
            for (name, function) in all(interface) {
                let _ = write!(text, "\n{}", one_function(interface, &name, &function));
            }
            text
        }
    }
}

/// Functions and methods, by call name.
fn all(module: &Module) -> Vec<(String, Function)> {
    let functions = module.functions.iter().map(|f| (f.name.clone(), f.clone()));
    let methods = module.classes.iter().flat_map(|class| {
        class
            .methods
            .iter()
            .map(move |method| (format!("{}.{}", class.name, method.name), method.clone()))
    });
    functions.chain(methods).collect()
}

fn one_function(module: &Module, name: &str, function: &Function) -> String {
    let mut text = format!("{}/{name}: {}\n", module.name, function.signature());
    if let Some(description) = &function.description {
        let _ = writeln!(text, "    {}", description.trim());
    }
    let width = function.parameters.iter().map(|p| p.name.len()).max().unwrap_or(0);
    for parameter in &function.parameters {
        let name = &parameter.name;
        let what = kind(parameter, &function.parameters);
        let _ = writeln!(text, "    {name:width$}  {:5}  {what}", mode(parameter));
    }
    if function.idempotent {
        text.push_str("    idempotent: runs again if its worker is lost\n");
    }
    if let Some(cost) = &function.cost {
        let _ = writeln!(text, "    cost: {}", cost.display(&function.parameters));
    }
    text
}

fn mode(parameter: &Parameter) -> &'static str {
    match (&parameter.kind, parameter.mode) {
        (Kind::Callback(_), _) => "calls",
        (_, Mode::In) => "in",
        (_, Mode::Out) => "out",
        (_, Mode::InOut) => "inout",
        (_, Mode::Work) => "work",
    }
}

fn size(dimension: &Dimension, names: &[Parameter]) -> String {
    dimension.size.as_ref().map_or_else(String::new, |size| size.display(names).to_string())
}

fn kind(parameter: &Parameter, names: &[Parameter]) -> String {
    match &parameter.kind {
        Kind::Scalar(of) => of.idl_name().to_owned(),
        Kind::Array { element, dimensions } => {
            let sizes = dimensions.iter().map(|d| format!("[{}]", size(d, names)));
            format!("{}{}", element.idl_name(), sizes.collect::<String>())
        }
        Kind::Callback(own) => {
            let names: Vec<&str> = own.iter().map(|parameter| parameter.name.as_str()).collect();
            format!("callback({})", names.join(", "))
        }
    }
}

/// A description of a module for programs. `place`: the module's file, or the server that offers it.
#[must_use]
pub fn json_of_module(interface: &Module, place: &str) -> Value {
    json!({
        "module": interface.name,
        "file": place,
        "functions": interface.functions.iter().map(json_of_function).collect::<Vec<_>>(),
        "classes": interface.classes.iter().map(json_of_class).collect::<Vec<_>>(),
    })
}

fn json_of_class(class: &Class) -> Value {
    json!({
        "name": class.name,
        "description": class.description,
        "methods": class.methods.iter().map(json_of_function).collect::<Vec<_>>(),
    })
}

/// A description of a function for programs.
#[must_use]
pub fn json_of_function(function: &Function) -> Value {
    json!({
        "name": function.name,
        "description": function.description,
        "signature": function.signature(),
        "idempotent": function.idempotent,
        "fortran": function.fortran(),
        "cost": function.cost.as_ref().map(|cost| cost.display(&function.parameters).to_string()),
        "parameters": json_of_parameters(&function.parameters, &function.parameters),
    })
}

fn json_of_parameters(parameters: &[Parameter], names: &[Parameter]) -> Vec<Value> {
    let one = |parameter: &Parameter| {
        let mut value = json!({ "name": parameter.name, "mode": mode(parameter) });
        match &parameter.kind {
            Kind::Scalar(of) => value["type"] = json!(of.idl_name()),
            Kind::Array { element, dimensions } => {
                value["type"] = json!(element.idl_name());
                let sizes: Vec<String> = dimensions.iter().map(|d| size(d, names)).collect();
                value["dimensions"] = json!(sizes);
            }
            Kind::Callback(own) => {
                // Their sizes may refer to their own parameters first, then to the function's.
                let visible: Vec<Parameter> = own.iter().chain(names).cloned().collect();
                value["callback"] = json!(json_of_parameters(own, &visible));
            }
        }
        value
    };
    parameters.iter().map(one).collect()
}

//! The makefile that `ng_gen` leaves: old makefiles run it, and expect an executable for each
//! function.

use std::fmt::Write;

use gridrpc_idl::Module;

/// The text of `MODULE.mak` for a module from this IDL file. Its targets are the module, and for
/// each function and class `_stub_NAME`, which is another name for the module.
#[must_use]
pub fn makefile(module: &Module, idl: &str) -> String {
    let name = &module.name;
    let functions = module.functions.iter().map(|function| &function.name);
    let stubs = functions.chain(module.classes.iter().map(|class| &class.name));
    let stubs: Vec<String> = stubs.map(|name| format!("_stub_{name}")).collect();
    let all = stubs.join(" ");
    let mut text = String::new();
    let _ = write!(
        text,
        "# Made from {idl}.\n\
         MODULE = {name}\n\
         GRIDRPC ?= gridrpc\n\n\
         all: {name}.so {all} {name}.nrf\n\n\
         {name}.so: {idl}\n\t$(GRIDRPC) compile {idl}\n\n"
    );
    for stub in &stubs {
        let _ = write!(text, "{stub}: {name}.so\n\tln -sf {name}.so {stub}\n\n");
    }
    let _ = write!(
        text,
        "{name}.nrf: {name}.so\n\techo \"module $(CURDIR)/{name}.so\" > {name}.nrf\n\n\
         clean:\n\trm -f {name}.so {name}.nrf {all}\n\n\
         veryclean: clean\n\trm -f {name}.mak\n\n\
         .PHONY: all clean veryclean\n"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_and_class_has_its_stub() {
        let idl = r#"Module pi; Define trial(IN int n) { n++; } DefClass acc { DefMethod add(IN int n) { n++; } }"#;
        let module = gridrpc_idl::parse(idl).module.expect("valid IDL");
        let text = makefile(&module, "pi.idl");
        assert!(text.contains("all: pi.so _stub_trial _stub_acc pi.nrf\n"), "{text}");
        assert!(text.contains("_stub_acc: pi.so\n\tln -sf pi.so _stub_acc\n"), "{text}");
    }
}

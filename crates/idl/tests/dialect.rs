//! Differences between Ninf-G's dialect and gridrpc's.

use gridrpc_idl::{Dialect, Kind, Module, Parsed, parse, parse_as, stub_source};

const RANGES: &str = "Module m;
Define whole(IN int n, IN int k, IN double x[n : 0, k]) { }
Define part(IN int n, IN int k, IN double x[n : 0, k]) Shrink \"yes\" { }
Define plain(IN int n, IN double x[n]) { }
";

fn module(parsed: Parsed) -> Module {
    parsed.module.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics))
}

#[test]
fn ranges_need_shrink_in_ninf_g() {
    let shrink = |module: &Module| {
        ["whole", "part", "plain"].map(|name| module.function(name).expect("a function").shrink)
    };
    assert_eq!(shrink(&module(parse(RANGES))), [None, Some(true), None]);
    let old = module(parse_as(RANGES, Dialect::NinfG));
    assert_eq!(shrink(&old), [Some(false), Some(true), None]);
    // The interface read from the module is the same.
    let again = module(parse(&old.to_string()));
    assert_eq!((again.dialect, shrink(&again)), (Dialect::NinfG, shrink(&old)));
}

#[test]
fn a_file_names_its_dialect_itself() {
    let named = |name: &str| {
        module(parse_as(&format!("Module m; Dialect \"{name}\"; Define f() {{ }}"), Dialect::NinfG))
    };
    assert_eq!(named("gridrpc").dialect, Dialect::Gridrpc);
    assert_eq!(named("NINF-G").dialect, Dialect::NinfG);
    let unknown = parse("Module m; Dialect \"OmniRPC\"; Define f() { }").diagnostics;
    assert_eq!(unknown[0].message, "`OmniRPC` is not a known dialect");
    assert_eq!(unknown[0].hint.as_deref(), Some("there are \"Ninf-G\" and \"gridrpc\""));
}

#[test]
fn one_element_and_one_value_of_a_range_are_what_ninf_g_made_of_them() {
    let idl = "Module m; Define f(IN int n, IN double x[n : 3], OUT double r[]) { }";
    let parsed = parse(idl);
    assert_eq!(parsed.diagnostics.len(), 2, "one warning each");
    let module = module(parsed);
    let function = module.function("f").expect("a function");
    assert_eq!(function.signature(), "f(IN int n, IN double x[n : 0, 3], OUT double r[1])");
    assert!(
        matches!(&function.parameters[2].kind, Kind::Array { dimensions, .. } if dimensions.len() == 1)
    );
}

#[test]
fn the_variable_error_is_there_only_for_bodies_that_use_it() {
    let stub = |idl: &str, dialect| stub_source(&module(parse_as(idl, dialect)), "m.idl");
    let uses = "Module m; Define f(OUT int r[1]) { r[0] = error; }";
    let has = |stub: &str| stub.contains("grpc_error_t error");
    assert!(has(&stub(uses, Dialect::NinfG)));
    assert!(!has(&stub(uses, Dialect::Gridrpc)));
    for own in [
        "Module m; Define f(OUT int error[1]) { error[0] = 1; }",
        "Module m; Define f() { /* error */ }",
    ] {
        assert!(!has(&stub(own, Dialect::NinfG)), "{own}");
    }
}

//! The meaning of files, and their printed form.

use gridrpc_idl::{
    Backend, Body, CallArgument, Distribution, Kind, Language, Mode, Module, Severity, Type, parse,
};

fn module(source: &str) -> Module {
    let parsed = parse(source);
    let found: String =
        parsed.diagnostics.iter().map(|found| found.render("file.idl", source)).collect();
    parsed.module.unwrap_or_else(|| panic!("{found}"))
}

const EVERYTHING: &str = include_str!("modules/everything.idl");

#[test]
fn every_word_of_the_language_is_understood() {
    let parsed = parse(EVERYTHING);
    let errors: Vec<_> =
        parsed.diagnostics.iter().filter(|found| found.severity == Severity::Error).collect();
    assert!(errors.is_empty(), "{errors:?}");

    let module = module(EVERYTHING);
    assert_eq!(module.name, "everything");
    assert_eq!(module.globals.len(), 1);
    assert!(module.globals[0].contains("// }"));
    assert_eq!(module.compile_options, ["-O2", "-DN=3"]);
    assert_eq!(module.libraries, ["-lm", "-lblas"]);
    assert_eq!(module.compiler.as_deref(), Some("gcc"));
    assert_eq!(module.linker.as_deref(), Some("gcc -shared"));
    assert_eq!(module.fortran_format.as_deref(), Some("%l_"));
    assert_eq!(module.fortran_string_convention.as_deref(), Some("gnu"));

    let scalars = module.function("scalars").expect("a function");
    let types: Vec<Type> = scalars
        .parameters
        .iter()
        .map(|parameter| match parameter.kind {
            Kind::Scalar(kind) => kind,
            _ => panic!("{} is no scalar", parameter.name),
        })
        .collect();
    for kind in Type::ALL {
        assert!(types.contains(&kind), "{kind:?}");
    }

    let shapes = module.function("shapes").expect("a function");
    assert_eq!(shapes.description.as_deref(), Some("says \"hi\" \\ \t \u{7}"));
    assert_eq!(shapes.required, ["a.o", "b.o"]);
    assert_eq!((shapes.shrink, shapes.language), (Some(true), Some(Language::C)));
    assert!(shapes.idempotent && !shapes.fortran());
    let expected = Body::Calls {
        language: Some(Language::C),
        result: None,
        name: "shapes_".to_owned(),
        arguments: (0..9).map(CallArgument::Parameter).collect(),
    };
    assert_eq!(shapes.body, expected);

    let parallel = module.function("parallel").expect("a function");
    assert_eq!(parallel.backend, Backend::Mpi);
    let distributions = parallel.parameters.iter().map(|parameter| parameter.distribution);
    let (all, one) = (Some(Distribution::Broadcast), Some(Distribution::Allocate));
    assert_eq!(distributions.collect::<Vec<_>>(), [all, one, all]);
    assert!(module.function("blacs").expect("a function").fortran());
    assert_eq!(module.function("declared").expect("a function").body, Body::None);

    let class = module.class("Counter").expect("a class");
    assert_eq!(class.state.as_deref(), Some(" static int count; "));
    assert_eq!(class.required, ["counter.o"]);
    let add = module.function("Counter.add").expect("a method");
    assert_eq!((add.shrink, add.language), (Some(false), Some(Language::Fortran)));
    assert!(!module.function("Counter.get").expect("a method").fortran());
    for missing in ["add", "Counter", "Counter.", ".add", "Counter.add.x", "Empty.add", ""] {
        assert!(module.function(missing).is_none(), "{missing}");
    }
}

#[test]
fn the_interface_of_everything() {
    let printed = module(EVERYTHING).to_string();
    assert_eq!(
        between(&printed, "Define order", "\nDefine shapes"),
        r#"Define order(IN int n, IN int m, INOUT double x[n], OUT long y[m], WORK float w[2 * n])
    "modes before and behind types";

Define pointers(
    OUT double r[1],
    OUT int s[1],
    INOUT double t[2],
    IN int n[1],
    IN int list[3],
    OUT double u[n[0]][list[1] + 1]);
"#
    );
    assert_eq!(
        between(&printed, "Define shapes", "\nDefine blacs"),
        r#"Define shapes(
    IN int n,
    IN long m,
    IN double a[n][m],
    INOUT double b[n : 1, n][m : 0, m, 2],
    OUT double c[n * (n + 1) / 2],
    OUT double d[n > 3 ? n % 3 : 2 ^ n - 1],
    WORK int w[16],
    OUT string s[n],
    IN filename f[m])
    "says \"hi\" \\ \t \x07"
    Shrink "yes"
    Language "C"
    CalcOrder 0.25 * n ^ 3 + m
    Idempotent;

Define parallel(IN broadcast int n, INOUT allocate double x[n], OUT broadcast double y[1])
    Backend "MPI";
"#
    );
    assert_eq!(
        between(&printed, "DefClass Counter", "\nDefClass Empty"),
        r#"DefClass Counter
    "counts"
    Shrink "no"
    Language "FORTRAN"
{
    DefMethod _initialize();
    DefMethod add(IN int n)
        "adds n"
        CalcOrder 1
        Idempotent;
    DefMethod get(OUT int n[1])
        Language "C";
    DefMethod fortran(IN int n, IN char c[3][n]);
    DefMethod _finalize();
}
"#
    );
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).expect("it is there");
    let end = text[start..].find(to).expect("it is behind it");
    &text[start..start + end]
}

#[test]
fn modes_may_stand_anywhere_before_the_name() {
    let module = module(
        "Module m; Define f(int IN a, unsigned mode_in long b, mode_out double c[a], \
         double allocate OUT d[a], broadcast IN int e) Backend \"MPI\";",
    );
    assert_eq!(
        module.functions[0].signature(),
        "f(IN int a, IN unsigned long b, OUT double c[a], OUT allocate double d[a], \
         IN broadcast int e)"
    );
}

#[test]
fn a_parameter_without_a_mode_is_in_and_one_is_reported() {
    let source = "Module m; Define f(int n, double x[n]);";
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics.len(), 2);
    assert!(parsed.diagnostics.iter().all(|found| found.severity == Severity::Warning));
    let function = &parsed.module.expect("no errors").functions[0];
    assert!(function.parameters.iter().all(|parameter| parameter.mode == Mode::In));
}

#[test]
fn callbacks_with_only_out_or_no_parameters() {
    let module = module("Module m; Define f(a(OUT double x[3]), b()) { a(0); b(); }");
    assert_eq!(module.functions[0].signature(), "f(a(OUT double x[3]), b())");
}

#[test]
fn sizes_in_callbacks_use_their_own_parameters_first() {
    let source = "Module m; Define f(IN int n, IN int m, cb(IN int n, OUT double x[n + m]));";
    let module = module(source);
    let Kind::Callback(own) = &module.functions[0].parameters[2].kind else {
        panic!("no callback");
    };
    let Kind::Array { dimensions, .. } = &own[1].kind else { panic!("no array") };
    // 0 is the callback's `n`; `m` is parameter 1, after the callback's two.
    assert_eq!(dimensions[0].size.as_ref().expect("a size").scalars(), [0, 3]);
    assert_eq!(
        module.functions[0].signature(),
        "f(IN int n, IN int m, cb(IN int n, OUT double x[n + m]))"
    );
}

#[test]
fn parentheses_are_printed_where_they_are_needed() {
    for (written, printed) in [
        ("n+n*n", "n + n * n"),
        ("(n+n)*n", "(n + n) * n"),
        ("n-(n-n)", "n - (n - n)"),
        ("(n-n)-n", "n - n - n"),
        ("n^n^2", "n ^ n ^ 2"),
        ("(n^n)^2", "(n ^ n) ^ 2"),
        ("-n^2", "-n ^ 2"),
        ("(-n)^2", "(-n) ^ 2"),
        ("2^-n", "2 ^ -n"),
        ("-(n+1)", "-(n + 1)"),
        ("n*-n", "n * -n"),
        ("n<2==1", "n < 2 == 1"),
        ("n<(2==1)", "n < (2 == 1)"),
        ("n?1:n?2:3", "n ? 1 : n ? 2 : 3"),
        ("(n?1:n)?2:3", "(n ? 1 : n) ? 2 : 3"),
        ("(n?1:2)+3", "(n ? 1 : 2) + 3"),
        ("*v+v[*v]*2", "v[0] + v[v[0]] * 2"),
        ("*(v)^2", "v[0] ^ 2"),
        ("0x10", "16"),
    ] {
        let source = format!("Module m; Define f(IN int n, IN int v[9], OUT int x[{written}]);");
        let signature = module(&source).functions[0].signature();
        assert_eq!(signature, format!("f(IN int n, IN int v[9], OUT int x[{printed}])"));
    }
}

#[test]
fn what_calls_says_of_the_language_is_in_the_interface() {
    let module = module(
        "Module m; Define f() Calls \"fortran\" f(); Define g() Language \"FORTRAN\" Calls \"C\" g();",
    );
    assert_eq!(
        module.to_string(),
        "Module m;\n\nDefine f()\n    Language \"FORTRAN\";\n\nDefine g()\n    Language \"C\";\n"
    );
}

#[test]
fn a_class_prints_what_its_methods_have_in_common_once() {
    let module = module(
        "Module m; DefClass C \"text\" Language \"C\" Shrink \"no\" Backend \"MPI\" Required \"a.o\"
         { DefState { int x; } DefMethod a() \"first\" { } DefMethod b() Language \"FORTRAN\"; }",
    );
    let expected = "Module m;

DefClass C
    \"text\"
    Backend \"MPI\"
    Shrink \"no\"
    Language \"C\"
{
    DefMethod a()
        \"first\";
    DefMethod b()
        Language \"FORTRAN\";
}
";
    assert_eq!(module.to_string(), expected);
    assert_eq!(module.function("C.a").expect("a method").backend, Backend::Mpi);
}

#[test]
fn cpp_makes_the_whole_module_cpp() {
    assert!(!module("Module m; Define f() { }").is_cpp());
    assert!(module("Module m; Define g() { } Define f() Language \"c++\" { }").is_cpp());
    assert!(module("Module m; Globals { void f(); } Define f() Calls \"C++\" f();").is_cpp());
    assert!(module("Module m; DefClass C Language \"C++\" { DefMethod f() { } }").is_cpp());
}

#[test]
fn files_that_older_compilers_choked_on() {
    // More than 4 KB, with expressions of more than 30 terms, and much C code.
    let terms = vec!["n * 2 - n"; 300].join(" + ");
    let mut source = String::from("Module large;\n");
    for number in 0..200 {
        source += &format!("Define f{number}(IN int n, OUT double x[{terms}]) {{ x[0] = n; }}\n");
    }
    assert!(source.len() > 500_000);
    let module = module(&source);
    assert_eq!(module.functions.len(), 200);
    let printed = module.to_string();
    assert_eq!(parse(&printed).module.expect("no errors").to_string(), printed);

    let long_code = format!("Module m; Define f() {{ {} }}", "g(\"}\"); ".repeat(10_000));
    assert!(parse(&long_code).module.is_some());
}

#[test]
fn line_ends_of_other_systems_and_a_byte_order_mark() {
    let source = "\u{feff}Module m;\r\nDefine f(IN int n)\r\n\"text\"\r\n{\r\n}\r\n";
    assert_eq!(module(source).functions[0].description.as_deref(), Some("text"));
}

//! Pathological files, which are rejected in bounded time and stack.

use std::fs;
use std::time::Duration;

use gridrpc_idl::{MAX_SOURCE, Severity, parse, stub_source};

/// Processor time of this thread: how long work takes whatever else the machine does.
fn processor_time() -> Duration {
    let statistics = fs::read_to_string("/proc/thread-self/schedstat").expect("statistics");
    let nanoseconds = statistics.split_whitespace().next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanoseconds.expect("a number"))
}

/// Errors of a file, which must be parsed within seconds on a small stack.
fn errors(source: String) -> Vec<String> {
    let work = move || {
        let start = processor_time();
        let parsed = parse(&source);
        for found in &parsed.diagnostics {
            assert!(found.render("file", &source).len() < 4096);
        }
        if let Some(module) = &parsed.module {
            let printed = module.to_string();
            assert_eq!(parse(&printed).module.map(|module| module.to_string()), Some(printed));
            assert!(!stub_source(module, "file").is_empty());
        }
        let taken = processor_time() - start;
        assert!(taken < Duration::from_secs(30), "{taken:?}");
        let errors = parsed.diagnostics.into_iter();
        errors
            .filter(|found| found.severity == Severity::Error)
            .map(|found| found.message)
            .collect()
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(work);
    thread.expect("a thread").join().expect("no panic")
}

/// A function with an array of this size.
fn sized(size: &str) -> String {
    format!("Module m; Define f(IN int n, IN int v[9], OUT int x[{size}]) {{ }}")
}

/// A piece repeated so often that quadratic work is noticeable.
fn filled(before: &str, piece: &str) -> String {
    let count = (1 << 19) / piece.len();
    format!("{before}{}", piece.repeat(count))
}

#[test]
fn a_file_that_is_too_long() {
    let found = errors(" ".repeat(MAX_SOURCE + 1));
    assert_eq!(found, ["the file has more than 4194304 bytes"]);
}

#[test]
fn expressions_that_are_nested_too_deeply() {
    let deep = "an expression that is nested too deeply";
    for (open, close) in
        [("(", ")"), ("-", ""), ("v[", "]"), ("n ? n : ", ""), ("n ^ ", ""), ("n ? ", " : n")]
    {
        let nested = |depth| sized(&format!("{}n{}", open.repeat(depth), close.repeat(depth)));
        assert_eq!(errors(nested(60)), [""; 0], "{open}");
        assert_eq!(errors(nested(66))[..1], [deep], "{open}");
        assert_eq!(errors(nested(100_000)).first().map(String::as_str), Some(deep), "{open}");
    }
    let stars = sized(&format!("{}*v", "-".repeat(64)));
    assert_eq!(errors(stars), [deep]);
}

#[test]
fn expressions_that_are_too_long() {
    let long = "an expression with more than 1000 operators";
    assert_eq!(errors(sized(&format!("n{}", " + n".repeat(1000)))), [""; 0]);
    assert_eq!(errors(sized(&format!("n{}", " + n".repeat(1001)))), [long]);
    assert_eq!(errors(sized(&format!("n{}", " + n".repeat(1_000_000))))[..1], [long]);
    assert_eq!(errors(sized(&format!("*v{}", " * *v".repeat(499)))), [""; 0]);
}

#[test]
fn lists_that_are_too_long() {
    let parameters = |count: usize| {
        let list: Vec<String> = (0..count).map(|number| format!("IN int p{number}")).collect();
        format!("Module m; Define f({}) {{ }}", list.join(", "))
    };
    assert_eq!(errors(parameters(1000)), [""; 0]);
    assert_eq!(errors(parameters(1001)), ["more than 1000 parameters"]);
    let dimensions = |count| format!("Module m; Define f(IN int x{}) {{ }}", "[2]".repeat(count));
    assert_eq!(errors(dimensions(32)), [""; 0]);
    assert_eq!(errors(dimensions(33)), ["more than 32 dimensions"]);
    let arguments = |count| {
        format!("Module m; Define f(IN char n[3]) Calls \"Fortran\" f({}n);", "n, ".repeat(count))
    };
    let structures = |count| {
        let fields = "{n}, ".repeat(count);
        format!(
            "Module m; Globals {{ void f(); }} Define f(IN int n) Calls \"C++\" f({fields}{{n}});"
        )
    };
    assert_eq!(errors(structures(999)), [""; 0]);
    assert_eq!(errors(structures(1000)), ["more than 1000 arguments"]);
    assert_eq!(errors(arguments(999)), [""; 0]);
    assert_eq!(errors(arguments(1000)), ["more than 1000 arguments"]);
    let name = format!("Module m; Define {}() {{ }}", "f".repeat(256));
    assert_eq!(errors(name), ["a name of more than 255 characters"]);
}

#[test]
fn files_full_of_one_thing() {
    let function = "Module m; Define f(";
    for piece in [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ";",
        ",",
        "\"",
        "'",
        "/*",
        "//",
        "#",
        "# 1 \"x\"\n",
        "\n",
        "*",
        "-",
        "Define ",
        "DefClass C { ",
        "DefClass C { DefMethod ",
        "Module m;",
        "R\"(",
        "\\",
        "IN int x, ",
        "x",
        "é",
        "9",
        "\"\\q\"",
        "Define f() { } ",
        "Define f(IN int n[m",
        "@ ",
        "DefClass C { DefState { } DefMethod m() { } } ",
        "Globals { x } ",
        "/",
        "0x",
        "1e",
    ] {
        errors(filled("", piece));
        errors(filled(function, piece));
        errors(filled("Module m; Define f(IN int n, OUT int x[", piece));
    }
}

#[test]
fn many_names_that_are_unknown() {
    let names: Vec<String> =
        (0..999).map(|number| format!("IN int {}{number:03}", "a".repeat(60))).collect();
    let unknown = format!("{}b", "a".repeat(62));
    let wrong = vec![unknown.as_str(); 900].join("+");
    let mut source = format!("Module m; Define f({}, OUT int x", names.join(", "));
    source += &format!("[{wrong}]").repeat(32);
    source += ") { }";
    assert_eq!(errors(source).len(), 100);
}

#[test]
fn many_functions() {
    let mut source = String::from("Module m;\n");
    for number in 0.. {
        if source.len() > MAX_SOURCE - 100 {
            break;
        }
        source += &format!("Define f{number}(IN int n, OUT int x[n])\n{{ x[0] = n; }}\n");
    }
    assert_eq!(errors(source), [""; 0]);
}

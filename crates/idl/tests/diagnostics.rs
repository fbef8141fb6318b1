//! Messages for users.

use gridrpc_idl::parse;

/// The messages for a file whose first line begins with `Module m;`.
fn said(rest: &str) -> String {
    let source = format!("Module m;\n{rest}");
    let parsed = parse(&source);
    parsed.diagnostics.iter().map(|found| found.render("m.idl", &source)).collect()
}

/// The messages for a function with one or more parameters, without positions.
fn about(parameters: &str) -> Vec<String> {
    messages(&format!("Define f({parameters}) {{ }}"))
}

fn messages(rest: &str) -> Vec<String> {
    let parsed = parse(&format!("Module m;\n{rest}"));
    parsed
        .diagnostics
        .into_iter()
        .map(|found| match found.hint {
            Some(hint) => format!("{} ({hint})", found.message),
            None => found.message,
        })
        .collect()
}

#[test]
fn an_unknown_name_in_a_size() {
    assert_eq!(
        said("Define f(IN int count,\n         OUT double x[cuont])\n{ }\n"),
        "m.idl:3:23: error: there is no parameter `cuont`
             OUT double x[cuont])
                          ^^^^^
hint: did you mean `count`?
"
    );
}

#[test]
fn a_range_of_one_value() {
    assert_eq!(
        said("Define f(IN int n, IN double x[n : 3]) { }"),
        "m.idl:2:36: warning: a range of one value is taken for its end
    Define f(IN int n, IN double x[n : 3]) { }
                                       ^
hint: write `[size : 0, end]` if that is meant, and `[size : start, 0]` for a start
"
    );
}

#[test]
fn a_scalar_that_is_out() {
    assert_eq!(
        said("Define f(OUT double r) { }"),
        "m.idl:2:21: error: the scalar `r` is OUT: its value could not come back
    Define f(OUT double r) { }
                        ^
hint: write `OUT double r[1]`
"
    );
}

#[test]
fn a_missing_semicolon_is_shown_where_it_is_missing() {
    let source = "Module m\nDefine f() { }\n";
    let found = parse(source).diagnostics;
    assert_eq!(
        found[0].render("m.idl", source),
        "m.idl:1:9: error: expected `;` after the name of the module, found `Define`
    Module m
            ^
"
    );
    assert_eq!(found.len(), 1);
}

#[test]
fn one_run_finds_several_errors() {
    assert_eq!(
        said(
            "define f() { }
Define g(IN int n, OUT int x[n) Calls \"C\" g(n, x);
Define h(IN int double, OUT string s) Backend \"PVM\" { if (1) { } }
Define i(IN int n) Calls i(m)
Define i() { }
"
        ),
        "m.idl:2:1: error: expected `Define`, `DefClass`, `Module` or another item, found `define`
    define f() { }
    ^^^^^^
hint: did you mean `Define`?
m.idl:3:31: error: expected `]` after the size, found `)`
    Define g(IN int n, OUT int x[n) Calls \"C\" g(n, x);
                                  ^
m.idl:4:23: error: expected the name of a parameter, found `,`
    Define h(IN int double, OUT string s) Backend \"PVM\" { if (1) { } }
                          ^
hint: `double` is the name of a type
m.idl:4:47: error: `PVM` is not a backend
    Define h(IN int double, OUT string s) Backend \"PVM\" { if (1) { } }
                                                  ^^^^^
hint: there are \"MPI\" and \"BLACS\"
m.idl:5:30: error: expected `;` after the call, found `Define`
    Define i(IN int n) Calls i(m)
                                 ^
"
    );
}

#[test]
fn names_that_are_taken() {
    assert_eq!(about("IN int n, IN int n"), ["there is a parameter `n` already"]);
    assert_eq!(about("IN int n, n()"), ["there is a parameter `n` already"]);
    assert_eq!(about("c(IN int n, IN int n)"), ["there is a parameter `n` already"]);
    assert_eq!(messages("Define f() { } Define f() { }"), ["there is a function `f` already"]);
    assert_eq!(
        messages(
            "DefClass C { DefMethod a() {} DefMethod a() {} } DefClass C { DefMethod a() {} }"
        ),
        ["there is a method `a` already", "there is a class `C` already"]
    );
    assert_eq!(about("IN int for"), ["`for` means something else in C"]);
    assert_eq!(messages("Define while() { }"), ["`while` means something else in C"]);
    assert_eq!(messages("Define f() Calls return();"), ["`return` means something else in C"]);
    assert_eq!(
        messages("Define f(IN int new) Language \"C++\" { }"),
        ["`new` means something else in C++"]
    );
    assert_eq!(about("IN int new"), [""; 0]);
}

#[test]
fn what_sizes_cannot_use() {
    let whole = "a size can use parameters that are `IN` and whole numbers";
    assert_eq!(about("OUT int x[n]"), [format!("there is no parameter `n` ({whole})")]);
    assert_eq!(
        about("IN double n, OUT int x[n]"),
        ["`n` is of type double: a size needs a whole number"]
    );
    assert_eq!(
        about("IN string n, OUT int x[n]"),
        ["`n` is of type string: a size needs a whole number"]
    );
    assert_eq!(
        about("IN int n[3], OUT int x[n]"),
        ["`n` is an array: a size needs one number (write `n[0]` for its first element)"]
    );
    assert_eq!(
        about("OUT int n[3], OUT int x[n[0]]"),
        ["`n` is OUT: its elements are not known before the call \
          (a size can use elements of arrays that are `IN`)"]
    );
    assert_eq!(
        about("INOUT int n[3], OUT int x[*n]"),
        ["`n` is INOUT: its elements are not known before the call \
          (a size can use elements of arrays that are `IN`)"]
    );
    assert_eq!(about("IN int n, OUT int x[n[0]]"), ["`n` is not an array (write `n` alone)"]);
    assert_eq!(
        about("IN float v[3], OUT int x[v[0]]"),
        ["the elements of `v` are not whole numbers"]
    );
    assert_eq!(about("IN int v[3][3], OUT int x[v[0]]"), ["`v` has more than one dimension"]);
    assert_eq!(about("n(), OUT int x[n]"), ["`n` is a callback: a size needs a number"]);
    assert_eq!(about("IN int n, OUT int x[n * 1.5]"), ["a size is a whole number"]);
    assert_eq!(
        about("IN int v[3], c(IN double x[v[0]])"),
        ["`v` belongs to the function around the callback \
          (of that, sizes can use scalars only)"]
    );
}

#[test]
fn sizes_that_need_each_other() {
    let plain = "give it a size of scalars and numbers, and no range";
    assert_eq!(
        about("IN int a[a[0]]"),
        [format!("`a` gives a size here, but has itself no plain one ({plain})")]
    );
    assert_eq!(about("IN int a[b[0]], IN int b[a[0]]").len(), 2);
    assert_eq!(
        about("IN int n, IN int a[n : 0, 2], IN int b[a[1]]"),
        [format!("`a` gives a size here, but has itself no plain one ({plain})")]
    );
}

#[test]
fn constants_that_cannot_be_meant() {
    assert_eq!(about("IN int x[-3]"), ["this size is -3, below 0"]);
    assert_eq!(about("IN int x[1 / 0]"), ["this size cannot be computed: a division by zero"]);
    assert_eq!(about("IN int x[2 ^ 64]"), ["this size cannot be computed: a number is too large"]);
    assert_eq!(about("IN int x[0]"), ["`x` has no elements"]);
    assert_eq!(about("IN int x[9 : 5, 3]"), ["this range starts at 5, behind its end 3"]);
    assert_eq!(about("IN int x[9 : 3, 3]"), ["this range has no elements"]);
    assert_eq!(about("IN int x[9 : 9, 0]"), ["this range has no elements"]);
    assert_eq!(about("IN int x[9 : 0, 10]"), ["this range ends at 10, above the size 9"]);
    assert_eq!(about("IN int x[9 : 0, 9, 0]"), ["a step of 0 is taken as 1"]);
    assert_eq!(about("IN int x[9 : 0, 9, -1]"), ["this step is -1, below 0"]);
    assert_eq!(
        about("IN int x[9 : 1, 2, 3, 4]"),
        ["a range of more than three values (write `[size : start, end, step]`)"]
    );
    assert_eq!(
        about("OUT string s[80]"),
        ["`s` is an array of 80 strings, each of any length (for one string write `OUT string s`)"]
    );
}

#[test]
fn modes_that_do_not_fit() {
    assert_eq!(
        about("INOUT int n"),
        ["the scalar `n` is INOUT: its value could not come back (write `INOUT int n[1]`)"]
    );
    assert_eq!(
        about("WORK int n"),
        ["`WORK` is for arrays (a variable inside the function does the same)"]
    );
    assert_eq!(about("WORK string s[3]"), ["`WORK` is for arrays of numbers, not for a string"]);
    assert_eq!(about("IN OUT int n[1]"), ["a second mode for the same parameter"]);
    assert_eq!(
        about("IN int n, IN string s[n : 0, 1]"),
        ["a range of a string array (these travel as a whole: leave the range out)"]
    );
    assert_eq!(
        about("IN allocate double x[3]"),
        ["this has no effect in one process \
          (it is meant for functions with `Backend \"MPI\"` or \"BLACS\")"]
    );
}

#[test]
fn what_is_not_supported_is_said() {
    assert_eq!(
        about("IN filepointer f"),
        ["`filepointer` is not supported \
          (write `filename`: the function then opens the file itself)"]
    );
    assert_eq!(
        about("IN void *p"),
        ["`void` is not supported (write the type of its elements, or `char` for bytes)"]
    );
    assert_eq!(
        about("void"),
        ["`void` is not supported (a function without parameters is written with `()`)"]
    );
    assert_eq!(
        about("OUT double x[]"),
        ["`x[]` is one element (write `x[1]`, or the size that it has)"]
    );
    let levels = "pointers to pointers and arrays of pointers are not supported \
        (elements lie one behind the other: write `x[...]` without `*`)";
    assert_eq!(about("IN double **x"), [levels]);
    assert_eq!(about("IN double *x[3]"), [levels]);
    assert_eq!(
        about("IN char *s"),
        ["`char *s` is one character \
          (for a text write `string s`, for characters `char s[size]`)"]
    );
}

#[test]
fn types_that_are_none() {
    assert_eq!(about("IN n"), ["`n` has no type (write it before the name, as in `int n`)"]);
    assert_eq!(about("n"), ["`n` has no type (write it before the name, as in `IN int n`)"]);
    assert_eq!(about("IN long double x"), ["`long double` is not a type"]);
    assert_eq!(about("IN doubel x"), ["`doubel` is not a type (did you mean `double`?)"]);
    assert_eq!(about("IN int64_t x"), ["`int64_t` is not a type (did you mean `int64`?)"]);
    assert_eq!(
        about("IN size_t x"),
        ["`size_t` is not a type (write `uint64` or `unsigned long`)"]
    );
    assert_eq!(about("IN bool x"), ["`bool` is not a type (write `int`)"]);
    for cpp in ["std::vector<double> x", "std::string x", "const std::vector<double> &x"] {
        let told = about(&format!("IN {cpp}, IN int n"));
        let first = told.first().map_or("", String::as_str);
        let expected = if cpp.starts_with("const") { "`const`" } else { "`std` is a name of C++" };
        assert!(first.starts_with(expected), "{cpp}: {told:?}");
    }
    let told = about("IN std::vector<double> x");
    assert!(told.len() == 1 && told[0].contains("IN int n, IN double x[n]"), "{told:?}");
    assert_eq!(
        about("const double *x"),
        ["`const` is not known here (leave it out: `IN` says that nothing is changed)"]
    );
    assert_eq!(
        about("IN real x"),
        ["`real` is not a type (write `float`, and `double` for real(8))"]
    );
    assert_eq!(
        about("IN LOGICAL x"),
        ["`LOGICAL` is not a type (write `int`: 1 is true, 0 is false)"]
    );
    assert_eq!(about("INN int x"), ["`INN` is not a type (did you mean `IN`?)"]);
    assert_eq!(about("In int x"), ["`In` is not a type (did you mean `IN`?)"]);
}

#[test]
fn calls() {
    assert_eq!(
        messages("Define f(IN int n, OUT int x[n]) Calls f(n, y, x);"),
        ["there is no parameter `y` (a call is given parameters of the function)"]
    );
    assert_eq!(
        messages("Define f(IN int count) Calls f(Count);"),
        ["there is no parameter `Count` (did you mean `count`?)"]
    );
    assert_eq!(
        messages("Define f(IN int n, IN int m, OUT int x[m]) CalcOrder n Calls f(x);"),
        [""; 0],
        "sizes and costs use parameters too"
    );
    assert_eq!(
        messages("Define f(IN int n, c(IN int n), OUT int x[1]) Calls f(c, x);"),
        ["`n` is not passed on to the call"]
    );
    assert_eq!(
        messages("Define f(IN int n, OUT double r[1]) Calls g(n);"),
        [
            "`r` is not passed on to the call (nothing would be stored there; if `g` returns it, write \
          `Calls r = g(...)`)"
        ]
    );
    assert_eq!(messages("Define f(IN int n, OUT double r[1]) Calls r = g(n);"), [""; 0]);
    assert_eq!(messages("Define f(IN int n, OUT string s) Calls \"C\" s = g(n);"), [""; 0]);
    for (parameter, result) in
        [("OUT double r[n]", "r"), ("INOUT double r[1]", "r"), ("IN double r", "r")]
    {
        assert_eq!(
            messages(&format!("Define f(IN int n, {parameter}) Calls {result} = g(n);")),
            [
                "`r` cannot take the value that the function returns (declare one number or string, as \
              in `OUT double r[1]` or `OUT string s`; for several, write `Calls \"C++\"` and a function \
              that returns a vector)"
            ],
            "{parameter}"
        );
    }
    let cpp = "Globals { #include \"g.hpp\"\n } Define f(IN int n, OUT double r[n]) Calls \"C++\"";
    assert_eq!(messages(&format!("{cpp} r = g({{{{n}}, n}});")), [""; 0]);
    assert_eq!(
        messages("Define f(IN int n, OUT double r[1]) Calls g({n}, r);"),
        [
            "only a function in C++ takes a structure (write `Calls \"C++\"`, or code that fills the structure)"
        ]
    );
    assert_eq!(
        messages(&format!("{cpp} r = g({{n, m}});")),
        ["there is no parameter `m` (a call is given parameters of the function)"]
    );
    assert_eq!(
        messages(&format!("{cpp} r = g({{}});")),
        ["expected the name of a parameter, found `}`"]
    );
    assert_eq!(
        messages(&format!("{cpp} r = g({{n);")),
        ["expected `,` or `}` after an argument, found `)`"]
    );
    let nested = |depth| format!("{cpp} r = g({}n{});", "{".repeat(depth), "}".repeat(depth));
    assert_eq!(messages(&nested(8)), [""; 0]);
    assert_eq!(messages(&nested(9)), ["more than 8 structures inside each other"]);
    assert_eq!(
        messages("Define f(IN int n) Calls \"C++\" g(n);"),
        ["nothing declares `g`, which C++ needs (put its declaration, or the `#include` of its \
          header, into `Globals`; for a function with C linkage write `Calls \"C\"`)"]
    );
    assert_eq!(
        messages("Globals { #include \"g.hpp\"\n } Define f(IN int n) Calls \"C++\" g(n);"),
        [""; 0]
    );
    assert_eq!(
        messages("Define f(IN int a, IN int b, OUT double r[max(a, b)]) { }"),
        [
            "an expression cannot call `max` (write a maximum as `(a > b ? a : b)`, and a minimum as \
          `(a < b ? a : b)`)"
        ]
    );
    assert_eq!(
        messages("Define f(IN int n) Calls \"Pascal\" f(n);"),
        ["`Pascal` is not a known language (there are \"C\", \"C++\" and \"FORTRAN\")"]
    );
    let text = "use an array of `char`, as in `char s[80]`";
    assert_eq!(
        messages("Define f(OUT string s) Calls \"Fortran\" f(s);"),
        [format!("a Fortran function cannot give back a string of any length ({text})")]
    );
    assert_eq!(
        messages("Define f(IN string s[2]) Calls \"Fortran\" f(s);"),
        [format!("a Fortran function cannot take an array of strings ({text})")]
    );
    assert_eq!(
        messages("Define f(c(IN string s)) Calls \"Fortran\" f(c);"),
        [format!("a callback of a Fortran function cannot take strings ({text})")]
    );
}

#[test]
fn callbacks() {
    assert_eq!(
        about("c(OUT int n)"),
        ["the scalar `n` is OUT: its value could not come back (write `OUT int n[1]`)"]
    );
    assert_eq!(
        about("c(IN filename f)"),
        ["a callback cannot take files (give it the content as an array of `char`)"]
    );
    assert_eq!(about("c(WORK int w[3])"), ["a callback has no use for `WORK`"]);
    assert_eq!(
        about("c(OUT string s)"),
        ["a callback cannot give back strings (give it an array: `OUT char s[size]`)"]
    );
    assert_eq!(about("c(d())"), ["a callback cannot have a callback as its parameter"]);
    assert_eq!(
        about("IN int c(IN int n)"),
        ["a callback has no mode and no type \
          (write `c(...)` alone: it takes and gives through its parameters)"]
    );
}

#[test]
fn options() {
    assert_eq!(
        messages("Define f() Shrink \"maybe\" { }"),
        ["`Shrink \"maybe\"` is not known (it is \"yes\" or \"no\")"]
    );
    assert_eq!(
        messages("Define f() Shrink \"no\" Shrink \"yes\" { }"),
        ["`Shrink` is given twice"]
    );
    assert_eq!(
        messages("Define f() Backend MPI { }"),
        ["expected a string after `Backend`, found `MPI` (write \"MPI\")"]
    );
    assert_eq!(
        messages("Define f() Idempotant { }"),
        ["expected `{`, `Calls` or an option, found `Idempotant` (did you mean `Idempotent`?)"]
    );
    assert_eq!(
        messages("Define f(IN int n) CalcOrder m { }"),
        ["there is no parameter `m` (a cost can use parameters that are `IN` and numbers)"]
    );
    assert!(parse("Module m; Define f() CalcOrder m { }").module.is_some(), "only a warning");
}

#[test]
fn modules() {
    let source = "Define f() { }";
    assert_eq!(
        parse(source).diagnostics[0].render("m.idl", source),
        "m.idl:1:1: error: the module has no name
    Define f() { }
    ^
hint: begin the file with `Module name;`
"
    );
    assert_eq!(parse("").diagnostics.len(), 1);
    assert_eq!(messages("Module n; Define f() { }"), ["the module has a name already"]);
    assert_eq!(messages(""), ["the module defines no function and no class"]);
    assert_eq!(
        messages("Library \"-lm\"; Library \"-lm\"; Define f() { }"),
        ["`Library \"-lm\"` is given twice"]
    );
    assert_eq!(
        messages("Compiler \"cc\"; Compiler \"cc\"; Define f() { }"),
        ["`Compiler` is given twice"]
    );
    for format in ["x", "%", "%d", "%s %s", "%s%s"] {
        let found = messages(&format!("FortranFormat \"{format}\"; Define f() {{ }}"));
        assert_eq!(
            found,
            ["this does not make a symbol of a name \
              (the usual one is \"%s_\": `%s` is the name, `%l` the name in capitals)"]
        );
    }
    assert_eq!(messages("FortranFormat \"_%l__\"; Define f() { }"), [""; 0]);
    assert_eq!(
        messages("FortranStringConvention cray; Define f() { }"),
        ["`cray` is not a known convention \
          (lengths are passed behind all arguments, as gfortran has it)"]
    );
}

#[test]
fn classes() {
    assert_eq!(
        messages("DefClass C { DefState { } DefState { } DefMethod m() { } }"),
        ["a class has one `DefState` at most (put all variables into the first one)"]
    );
    assert_eq!(
        messages("DefClass C { DefMethod _finalize(IN int n) { } }"),
        ["`_finalize` takes no parameters \
          (it runs when an object begins or ends, and nobody calls it)"]
    );
    assert_eq!(
        messages("DefClass C { DefMethod m() Required \"a.o\" { } }"),
        ["a method cannot have `Required` (write it behind the name of the class)"]
    );
    assert_eq!(messages("DefClass C { }"), ["`C` has no methods"]);
    assert_eq!(
        messages("DefClass C { defmethod a() { } DefMethod b( { } Defmethod c() { } }"),
        [
            "expected `DefMethod`, `DefState` or `}`, found `defmethod` \
             (did you mean `DefMethod`?)",
            "expected the name of a parameter, found `{`",
            "expected `DefMethod`, `DefState` or `}`, found `Defmethod` \
             (did you mean `DefMethod`?)",
        ]
    );
    assert_eq!(
        messages("DefClass C { DefMethod a() { }\nDefine f() { }"),
        ["this `{` is never closed"]
    );
}

#[test]
fn what_is_missing_at_the_end() {
    assert_eq!(messages("Define f() { if (1) {"), ["this `{` is never closed"]);
    assert_eq!(
        messages("Define f("),
        ["expected the name of a parameter, found the end of the file"]
    );
    assert_eq!(
        messages("Define f()"),
        ["expected `{`, `Calls` or an option, found the end of the file"]
    );
    assert_eq!(
        messages("Define f() \"text"),
        [
            "this string does not end in its line",
            "expected `{`, `Calls` or an option, found the end of the file"
        ][..1]
    );
    assert_eq!(
        messages("Globals"),
        ["expected `{` and C code after `Globals`, found the end of the file"]
    );
}

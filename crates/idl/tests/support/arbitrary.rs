//! Strategies for valid IDL files.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Scalars of every generated function, for use in sizes.
const SCALARS: [&str; 3] = ["n", "m", "k"];
/// Its arrays, with 16 elements each.
const ARRAYS: [&str; 2] = ["list", "rows"];

/// An expression over the names above; any part may be parenthesized.
pub fn expression(real: bool) -> impl Strategy<Value = String> {
    let number = prop_oneof![
        6 => (0i64..20).prop_map(|number| number.to_string()),
        1 => any::<u32>().prop_map(|number| format!("{number:#x}")),
        1 => Just(i64::MAX.to_string()),
        2 => (0.0..1e6f64).prop_map(move |number| if real { format!("{number:?}") } else { "7".to_owned() }),
    ];
    let leaf = prop_oneof![
        2 => number,
        3 => select(&SCALARS[..]).prop_map(str::to_owned),
        1 => select(&ARRAYS[..]).prop_map(|name| format!("*{name}")),
    ];
    leaf.prop_recursive(6, 40, 3, |inner| {
        let operator = select(vec!["+", "-", "*", "/", "%", "^", "<", "<=", ">", ">=", "==", "!="]);
        prop_oneof![
            6 => (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            3 => inner.clone().prop_map(|inner| format!("({inner})")),
            1 => inner.clone().prop_map(|inner| format!("- {inner}")),
            1 => (select(&ARRAYS[..]), inner.clone())
                .prop_map(|(name, index)| format!("{name}[{index}]")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(condition, yes, no)| format!("({condition} ? {yes} : {no})")),
        ]
    })
    // Without a name it could be a constant that is not a valid size.
    .prop_map(move |text| if real { text } else { format!("n + ({text})") })
}

fn dimension() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => expression(false).prop_map(|size| format!("[{size}]")),
        1 => (1..100u32).prop_map(|size| format!("[{size}]")),
        1 => (expression(false), expression(false), expression(false))
            .prop_map(|(size, start, end)| format!("[{size} : {start}, {end}]")),
        1 => (expression(false), expression(false))
            .prop_map(|(size, step)| format!("[{size}:0,0,{step}]")),
    ]
}

fn number_type() -> impl Strategy<Value = &'static str> {
    select(vec![
        "char",
        "unsigned char",
        "short int",
        "int",
        "unsigned",
        "unsigned long int",
        "longlong",
        "long long",
        "float",
        "double",
        "scomplex",
        "dcomplex",
        "int8",
        "uint16",
        "int64",
        "uint64",
    ])
}

/// The parameter with this number.
fn parameter(number: usize) -> impl Strategy<Value = String> {
    let text = select(vec!["string", "filename"]);
    prop_oneof![
        2 => number_type().prop_map(move |kind| format!("{kind} IN p{number}")),
        1 => (select(vec!["IN", "mode_out", "INOUT"]), text.clone())
            .prop_map(move |(mode, kind)| format!("{mode} {kind} p{number}")),
        1 => (select(vec!["IN", "INOUT"]), text, expression(false))
            .prop_map(move |(mode, kind, size)| format!("{mode} {kind} p{number}[{size}]")),
        1 => number_type().prop_map(move |kind| format!("OUT {kind} *p{number}")),
        4 => (select(vec!["IN", "OUT", "INOUT", "WORK", "IN broadcast"]), number_type(), vec(dimension(), 1..4))
            .prop_map(move |(mode, kind, sizes)| format!("{mode} {kind} p{number}{}", sizes.concat())),
        1 => (number_type(), expression(false)).prop_map(move |(kind, size)| {
            // Callbacks cannot use elements of the function's arrays.
            let size = size.replace("*list", "n").replace("*rows", "m");
            let size = if size.contains('[') { "n + m".to_owned() } else { size };
            format!("p{number}(IN int n, IN {kind} x, OUT {kind} y[{size}])")
        }),
    ]
}

fn parameters() -> impl Strategy<Value = String> {
    (0..6usize).prop_flat_map(|count| (0..count).map(parameter).collect::<Vec<_>>()).prop_map(
        |mut list| {
            list.extend(SCALARS.map(|name| format!("IN int {name}")));
            list.extend(ARRAYS.map(|name| format!("IN long {name}[16]")));
            list.join(", ")
        },
    )
}

fn options(method: bool) -> impl Strategy<Value = String> {
    let maybe = |choices: Vec<&'static str>| select(choices);
    (
        proptest::option::of("[ -~é\n\t]{0,30}"),
        maybe(vec!["", "Shrink \"no\"", "Shrink \"YES\""]),
        maybe(vec!["", "Language \"C\"", "Language \"Fortran\""]),
        maybe(vec!["", "Backend \"MPI\"", "Required \"x.o\" Backend \"blacs\""]),
        proptest::option::of(expression(true)),
        maybe(vec!["", "Idempotent"]),
    )
        .prop_map(move |(description, shrink, language, backend, cost, idempotent)| {
            let backend = if method { "" } else { backend };
            let description = description.map_or(String::new(), |text| {
                let text = text.replace('\\', "\\\\").replace('"', "\\\"");
                format!("\"{}\"", text.replace('\n', "\\n").replace('\t', "\\t"))
            });
            let cost = cost.map_or(String::new(), |cost| format!("CalcOrder {cost}"));
            format!("{description} {backend} {shrink} {language} {cost} {idempotent}")
        })
}

fn body() -> impl Strategy<Value = &'static str> {
    select(vec![
        ";",
        "{ }",
        "{ if (1) { \"}\"; } /* } */ }",
        "Calls f(n, list);",
        "Calls \"Fortran\" g(m);",
    ])
}

/// A whole file.
pub fn source() -> impl Strategy<Value = String> {
    let function = || (parameters(), body());
    let functions = vec((function(), options(false)), 0..4);
    let methods = vec((function(), options(true)), 0..3);
    let class_option =
        select(vec!["", "Shrink \"no\" Language \"FORTRAN\"", "\"text\" Backend \"MPI\""]);
    (functions, methods, class_option).prop_map(|(functions, methods, class_option)| {
        let mut text = "Module generated; // a comment\nGlobals { int f(); }\n".to_owned();
        for (number, ((parameters, body), options)) in functions.iter().enumerate() {
            // Output parameters must be passed on.
            let body = match body.starts_with("Calls") && parameters.to_lowercase().contains("out")
            {
                true => ";",
                false => body,
            };
            text += &format!("Define f{number}({parameters}) {options} {body}\n");
        }
        text += &format!("DefClass C {class_option} {{ DefState {{ int x; }}\n");
        for (number, ((parameters, body), options)) in methods.iter().enumerate() {
            // The class may be in Fortran.
            let body = if body.starts_with("Calls") { ";" } else { body };
            text += &format!("DefMethod m{number}({parameters}) {options} {body}\n");
        }
        text + "}\n"
    })
}

//! Array dimensions in calls.

use gridrpc_idl::{Extent, ExtentError, Part, SizeError, Values, callback_extents, extents, parse};

/// Scalars by index; element `j` of any array is `10 + j`, below 3.
struct TestValues(&'static [i64]);

impl Values for TestValues {
    fn scalar(&self, parameter: usize) -> Option<i64> {
        self.0.get(parameter).copied()
    }
    fn element(&self, _: usize, index: u64) -> Option<i64> {
        (index < 3).then_some(10 + index as i64)
    }
}

/// The extents of the last parameter of a function with the scalars `n` and `m`.
fn of(
    declaration: &str,
    options: &str,
    values: &'static [i64],
) -> Result<Vec<Extent>, ExtentError> {
    let source =
        format!("Module m; Define f(IN long n, IN long m, IN long v[3], {declaration}) {options};");
    let module = parse(&source).module.expect("no errors");
    extents(&module.functions[0], 3, &TestValues(values))
}

fn extent(size: u64, start: u64, end: u64, step: u64) -> Extent {
    Extent { size, start, end, step }
}

#[test]
fn sizes_come_from_scalars_and_from_elements() {
    assert_eq!(
        of("OUT int x[n * m][v[1]]", "", &[3, 4]).unwrap(),
        [extent(12, 0, 12, 1), extent(11, 0, 11, 1)]
    );
    assert_eq!(of("OUT int *x", "", &[3, 4]).unwrap(), [extent(1, 0, 1, 1)]);
    assert_eq!(of("IN int x", "", &[3, 4]).unwrap(), []);
    assert_eq!(of("OUT int x[n]", "", &[0]).unwrap(), [extent(0, 0, 0, 1)]);
}

#[test]
fn ranges_and_their_defaults() {
    let range = |range| of(&format!("IN int x[n : {range}]"), "", &[10, 4]).unwrap()[0];
    assert_eq!(range("2, 8"), extent(10, 2, 8, 1));
    assert_eq!(range("0, 0"), extent(10, 0, 10, 1));
    assert_eq!(range("1, 0, 0"), extent(10, 1, 10, 1));
    assert_eq!(range("0, n, m"), extent(10, 0, 10, 4));
    assert_eq!(range("0, n, m").selected(), 3);
    assert_eq!(range("1, 9, m").selected(), 2);
    assert_eq!(range("m, m").selected(), 0);
    assert_eq!(range("0, n, 100").selected(), 1);
    assert!(range("0, 0").is_whole() && !range("0, 0, 2").is_whole() && !range("1, 0").is_whole());
}

#[test]
fn ranges_select_all_where_shrink_says_no() {
    let values = &[10, 4];
    assert_eq!(of("IN int x[n : 2, 8]", "Shrink \"no\"", values).unwrap(), [extent(10, 0, 10, 1)]);
    assert_eq!(of("IN int x[n : 2, 8]", "Shrink \"yes\"", values).unwrap(), [extent(10, 2, 8, 1)]);
}

#[test]
fn errors_name_the_parameter_and_what_is_wrong() {
    let message = |declaration, values| of(declaration, "", values).unwrap_err().to_string();
    assert_eq!(
        message("OUT int x[3][n - m]", &[3, 5]),
        "the size of dimension 2 of `x` is -2, below 0"
    );
    assert_eq!(
        message("OUT int x[n / m]", &[3, 0]),
        "the size of dimension 1 of `x` cannot be computed: a division by zero"
    );
    assert_eq!(
        message("OUT int x[n + m]", &[3]),
        "the size of dimension 1 of `x` cannot be computed: a value that is not there (`m`)"
    );
    assert_eq!(
        message("OUT int x[v[n]]", &[3]),
        "the size of dimension 1 of `x` cannot be computed: a value that is not there (`v`)"
    );
    assert_eq!(
        message("IN int x[n : 0, m]", &[3, 4]),
        "the end of dimension 1 of `x` is 4, above its size 3"
    );
    assert_eq!(
        message("IN int x[n : m, 2]", &[3, 4]),
        "the start of dimension 1 of `x` is 4, above its end 2"
    );
    assert_eq!(
        message("IN int x[n : 0, 0, m]", &[3, -1]),
        "the step of dimension 1 of `x` is -1, below 0"
    );
    let error = of("OUT int x[n ^ m]", "", &[2, 64]).unwrap_err();
    let expected = ExtentError::NoValue {
        parameter: "x".to_owned(),
        dimension: 1,
        part: Part::Size,
        reason: SizeError::Overflow,
        of: None,
    };
    assert_eq!(error, expected);
}

#[test]
fn arrays_beyond_any_memory_are_an_error() {
    let too_large = ExtentError::TooLarge { parameter: "x".to_owned() };
    assert_eq!(of("OUT double x[n]", "", &[1 << 60]), Err(too_large.clone()));
    assert!(of("OUT double x[n]", "", &[(1 << 60) - 1]).is_ok());
    assert!(of("OUT char x[n]", "", &[i64::MAX]).is_ok());
    assert_eq!(of("OUT char x[n][n]", "", &[1 << 32]), Err(too_large.clone()));
    assert_eq!(of("IN string x[n]", "", &[1 << 60]), Err(too_large));
    assert!(of("OUT double x[n][n][m]", "", &[1 << 60, 0]).is_ok(), "of nothing there is little");
}

#[test]
fn callbacks_use_their_own_parameters_and_those_around_them() {
    let source = "Module m; Define f(IN int n, cb(IN int k, OUT double x[k + 2 * n : 0, k]));";
    let module = parse(source).module.expect("no errors");
    // 0 and 1 are the callback's, 2 is `n`.
    let values = TestValues(&[5, -1, 10]);
    let found = callback_extents(&module.functions[0], 1, 1, &values);
    assert_eq!(found, Ok(vec![extent(25, 0, 5, 1)]));
    assert_eq!(callback_extents(&module.functions[0], 1, 0, &values), Ok(vec![]));
}

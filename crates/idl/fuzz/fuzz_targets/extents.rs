//! Evaluates the sizes in any text, as a file and as a single size, with any values. The results must match
//! 128-bit arithmetic.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code)] // the other target needs the rest
#[path = "../../tests/support/check.rs"]
mod check;

fuzz_target!(|input: (Vec<i64>, &str)| {
    let (values, text) = input;
    let sized = format!(
        "Module m; Define f(IN long n, IN long m, IN long v[9], OUT char x[{text}], \
         c(IN int n, IN char x[n * m + {text}])) CalcOrder {text};"
    );
    check::sizes(&sized, values.clone());
    check::sizes(text, values);
});

//! Stubs of functions in Fortran and C++ are compiled, loaded and called.

#[path = "support/library.rs"]
mod library;
#[path = "support/values.rs"]
mod values;

use std::ptr::null_mut;

use library::{Extra, exists, load};
use values::{SCALAR_BODY, SCALARS, at, check_scalars, pointer, text};

/// The conventions of gfortran, written in C: all by address, lengths of texts at the end.
const LIKE_FORTRAN: &str = "#include <stddef.h>\n#include <string.h>\n\
    void fill_(int *n, double *value, double *x, char *name, int *total, char *letter,\n\
        char *buffer, float *z, size_t name_len, size_t letter_len, size_t buffer_len);\n\
    void fill_(int *n, double *value, double *x, char *name, int *total, char *letter,\n\
        char *buffer, float *z, size_t name_len, size_t letter_len, size_t buffer_len)\n\
    {\n\
        for (int i = 0; i < *n; i++) x[i] = *value;\n\
        total[0] = (int)name_len; total[1] = name[0]; total[2] = (int)letter_len;\n\
        total[3] = *letter; total[4] = (int)buffer_len;\n\
        memset(buffer, 'x', buffer_len); z[0] = -z[0];\n\
    }\n\
    void CALL_BACK(int *n, void (*f)(int *, double *), double *x);\n\
    void CALL_BACK(int *n, void (*f)(int *, double *), double *x) { f(n, x); }\n";

#[test]
fn fortran_functions_get_addresses_and_lengths() {
    let loaded = load(
        "Module fortran_like;
         Define fill(IN int n, IN double value, OUT double x[n], IN string name, OUT int total[5],
             IN char letter, OUT char buffer[n * 2 ^ 2 + (n > 1 ? 1 : 0)], INOUT scomplex z[1])
             Calls \"Fortran\" fill(n, value, x, name, total, letter, buffer, z);",
        &[Extra { name: "callee.c", text: LIKE_FORTRAN }],
    );
    assert!(loaded.module.functions[0].fortran());
    let (mut x, mut total, mut buffer) = ([0f64; 2], [0i32; 5], [0u8; 10]);
    let name = text("Ada");
    let mut z = [1f32, 2.0];
    loaded.run(
        "fill",
        &mut [
            at(&mut 2i32),
            at(&mut 1.5f64),
            at(&mut x),
            pointer(&name),
            at(&mut total),
            at(&mut b'?'),
            at(&mut buffer),
            at(&mut z),
        ],
    );
    assert_eq!(x, [1.5, 1.5]);
    assert_eq!(total, [3, i32::from(b'A'), 1, i32::from(b'?'), 9]);
    assert_eq!(&buffer, b"xxxxxxxxx\0");
    assert_eq!(z, [-1.0, 2.0]);
}

#[test]
fn fortran_names_follow_the_format_and_callbacks_get_addresses() {
    let loaded = load(
        "Module fortran_names; FortranFormat \"%l\";
         Define f(IN int n, back(IN int n, OUT double x[n]), OUT double x[n])
             Language \"FORTRAN\" Calls call_back(n, back, x);",
        &[Extra { name: "callee.c", text: LIKE_FORTRAN }],
    );
    let mut x = [0f64; 2];
    loaded.run_answering("f", &mut [at(&mut 2i32), null_mut(), at(&mut x)], |_, arguments| {
        // SAFETY: the arguments are those of `back`.
        unsafe {
            assert_eq!(*(*arguments).cast::<i32>(), 2);
            *(*arguments.add(1)).cast::<[f64; 2]>() = [3.0, 4.0];
        }
    });
    assert_eq!(x, [3.0, 4.0]);
}

#[test]
fn real_fortran() {
    if !exists("gfortran") {
        eprintln!("no gfortran here: left out");
        return;
    }
    let loaded = load(
        "Module fortran;
         Define scale(IN int n, IN double factor, INOUT double x[n], IN string name,
                      OUT char upper[8], OUT int length[1])
             Calls \"Fortran\" scale(n, factor, x, name, upper, length);",
        &[Extra {
            name: "callee.f90",
            text: "subroutine scale(n, factor, x, name, upper, length)\n\
                integer :: n, length\n double precision :: factor, x(n)\n\
                character(len=*) :: name, upper\n\
                x = x * factor\n upper = name // '!'\n length = len(name) + 100 * len(upper)\n\
                end subroutine\n",
        }],
    );
    let (mut x, mut upper, mut length) = ([1f64, 2.0], [0u8; 8], 0i32);
    let name = text("abc");
    loaded.run(
        "scale",
        &mut [
            at(&mut 2i32),
            at(&mut 3f64),
            at(&mut x),
            pointer(&name),
            at(&mut upper),
            at(&mut length),
        ],
    );
    assert_eq!((x, &upper, length), ([3.0, 6.0], b"abc!    ", 803));
}

#[test]
fn cpp_modules() {
    if !exists("g++") {
        eprintln!("no g++ here: left out");
        return;
    }
    let idl = format!(
        "Module cpp;
         Globals {{
             #include <algorithm>
             #include <complex>
             #include <cstring>
             #include <vector>
             static void descend(int n, double *x) {{ std::sort(x, x + n, std::greater<>()); }} }}
         Define sort(IN int n, INOUT double x[n]) Language \"C++\" {{ std::sort(x, x + n); }}
         Define reverse(IN int n, INOUT double x[n]) Calls \"C++\" descend(n, x);
         Define inline_one({SCALARS}) {{ {SCALAR_BODY} }}
         Define multiply(IN scomplex a, IN dcomplex b, IN float c, OUT dcomplex product[1])
             Calls \"C\" multiply(a, b, c, product);
         Define conjugate(IN dcomplex a, OUT dcomplex r[1]) {{ *r = std::conj(a); }}
         Define ask(back(IN int n, OUT int answer[1]), OUT int r[1]) {{ back(6, r); }}
         Define name(OUT string s, IN string t) {{ *s = strdup(t); }}
         DefClass Stack {{
             DefState {{ std::vector<int> stack; }}
             DefMethod push(IN int n) {{ stack.push_back(n); }}
             DefMethod size(OUT long *n) {{ *n = stack.size(); }}
         }}"
    );
    let loaded = load(
        &idl,
        &[Extra {
            name: "callee.cpp",
            text: "#include <complex>\n\
                extern \"C\" void multiply(float __complex__ a, double __complex__ b, float c,\n\
                    double __complex__ *p)\n\
                { *p = (double __complex__)a * b * (double)c; }\n",
        }],
    );
    let mut x = [3f64, 1.0, 2.0];
    loaded.run("sort", arguments![3i32, x]);
    assert_eq!(x, [1.0, 2.0, 3.0]);
    loaded.run("reverse", arguments![3i32, x]);
    assert_eq!(x, [3.0, 2.0, 1.0]);
    check_scalars(&loaded, "inline_one");
    let mut product = [0f64; 2];
    loaded.run("multiply", arguments![[1f32, 2f32], [3f64, 4f64], 10f32, product]);
    assert_eq!(product, [-50.0, 100.0]);
    loaded.run("conjugate", arguments![[1f64, 2f64], product]);
    assert_eq!(product, [1.0, -2.0]);
    let mut answer = 0i32;
    loaded.run_answering("ask", &mut [null_mut(), at(&mut answer)], |_, arguments| {
        // SAFETY: the arguments are those of `back`.
        unsafe { *(*arguments.add(1)).cast::<i32>() = 7 * *(*arguments).cast::<i32>() };
    });
    assert_eq!(answer, 42);
    loaded.run("Stack.push", arguments![5i32]);
    let mut size = 0i64;
    loaded.run("Stack.size", arguments![size]);
    assert_eq!(size, 1);
}

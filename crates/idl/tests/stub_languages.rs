//! Stubs of functions in Fortran and C++ are compiled, loaded and called.

use std::ptr::null_mut;

use crate::arguments;
use crate::library::{Extra, exists, load};
use crate::values::{SCALAR_BODY, SCALARS, at, check_scalars, pointer, text};

/// gfortran's calling convention, written in C: everything by address, lengths of strings at the end.
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

#[test]
fn exceptions_of_cpp_are_reported_and_the_module_continues() {
    if !exists("g++") {
        eprintln!("no g++ here: left out");
        return;
    }
    let loaded = load(
        r#"Module raising;
           Globals {
               #include <stdexcept>
               #include <string>
               namespace app { struct Odd {}; }
           }
           Define raise(IN int what, OUT int r[1]) Language "C++" {
               *r = what;
               std::string kept(1000, 'x');
               if (what == 1) throw std::runtime_error("no root in [0, 1]");
               if (what == 2) throw std::string("a text");
               if (what == 3) throw "a literal";
               if (what == 4) throw 17;
               if (what == 5) throw app::Odd();
           }"#,
        &[],
    );
    let said = |text: &str| Some(text.to_owned());
    for (mut what, kind, message) in [
        (1, "std::runtime_error", said("no root in [0, 1]")),
        (
            2,
            "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
            said("a text"),
        ),
        (3, "char const*", said("a literal")),
        (4, "int", None),
        (5, "app::Odd", None),
    ] {
        let mut r = 0i32;
        let raised = loaded.attempt("raise", arguments![what, r]);
        assert_eq!(raised, Some((kind.to_owned(), message)));
        assert_eq!(r, what);
        loaded.run("raise", arguments![0i32, r]);
    }
}

#[test]
fn headers_declare_functions_of_cpp_and_results_have_their_place() {
    if !exists("g++") {
        eprintln!("no g++ here: left out");
        return;
    }
    let loaded = load(
        r#"Module results;
           Globals {
               #include "results.hpp"
           }
           Define price(IN double spot, IN int n, OUT double r[1]) Calls "C++" r = price(spot, n);
           Define price_into(IN double spot, OUT double *r) Calls "C++" price_into(spot, r);
           Define turned(IN dcomplex z, OUT dcomplex r[1]) Calls "C++" r = turned(z);
           Define title(IN int n, OUT string s) Calls "C++" s = title(n);
           Define c_half(IN float x, OUT float r[1]) Calls "C" r = c_half(x);"#,
        &[
            Extra {
                name: "results.hpp",
                text: "#include <complex>\n\
                       double price(double spot, long n);\n\
                       void price_into(double spot, double *r);\n\
                       std::complex<double> turned(const std::complex<double> &z);\n\
                       const char *title(int n);\n\
                       namespace other { int price(const char *); }\n",
            },
            Extra {
                name: "callee.cpp",
                text: "#include \"results.hpp\"\n\
                       double price(double spot, long n) { return spot * n; }\n\
                       void price_into(double spot, double *r) { *r = -spot; }\n\
                       std::complex<double> turned(const std::complex<double> &z)\n\
                       { return z * std::complex<double>(0, 1); }\n\
                       const char *title(int n) { return n ? \"call\" : \"put\"; }\n\
                       extern \"C\" float c_half(float x) { return x / 2; }\n",
            },
        ],
    );
    let (mut r, mut z, mut half) = (0f64, [0f64; 2], 0f32);
    loaded.run("price", arguments![2.5f64, 3i32, r]);
    assert_eq!(r, 7.5);
    loaded.run("price_into", arguments![2.5f64, r]);
    assert_eq!(r, -2.5);
    loaded.run("turned", arguments![[1f64, 2f64], z]);
    assert_eq!(z, [-2.0, 1.0]);
    loaded.run("c_half", arguments![5f32, half]);
    assert_eq!(half, 2.5);
    let mut title: *const std::ffi::c_char = std::ptr::null();
    loaded.run("title", arguments![1i32, title]);
    // SAFETY: a literal of the module.
    assert_eq!(unsafe { std::ffi::CStr::from_ptr(title) }.to_str(), Ok("call"));
}

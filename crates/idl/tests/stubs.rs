//! Stubs are compiled, loaded and called, as a worker does it.

use std::ffi::{CStr, c_char, c_void};
use std::process::Command;
use std::ptr::null_mut;

use gridrpc_idl::INTERFACE_HEADER;

use crate::arguments;
use crate::library::{Extra, checked, compile_only, load};
use crate::values::{SCALAR_BODY, SCALARS, at, check_scalars, duplicate, pointer, taken, text};

const SCALAR_NAMES: &str = "a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, sum";

#[test]
fn scalars_of_every_type_reach_c_functions_and_inline_bodies() {
    let idl = format!(
        "Module scalars;\n\
         Define inline_one({SCALARS}) {{ {SCALAR_BODY} }}\n\
         Define called({SCALARS}) Calls \"C\" all_scalars({SCALAR_NAMES});\n"
    );
    let callee = Extra {
        name: "callee.c",
        text: "#include <stdint.h>\n\
            void all_scalars(char a, unsigned char b, short c, unsigned short d, int e,\n\
            unsigned f, long g, unsigned long h, long long i, unsigned long long j, float k,\n\
            double l, int8_t m, int16_t n, int32_t o, int64_t p, uint8_t q, uint16_t r,\n\
            uint32_t s, uint64_t t, double *sum);\n\
            void all_scalars(char a, unsigned char b, short c, unsigned short d, int e,\n\
            unsigned f, long g, unsigned long h, long long i, unsigned long long j, float k,\n\
            double l, int8_t m, int16_t n, int32_t o, int64_t p, uint8_t q, uint16_t r,\n\
            uint32_t s, uint64_t t, double *sum)\n\
            { sum[0] = a; sum[1] = b; sum[2] = c; sum[3] = d; sum[4] = e; sum[5] = f;\n\
            sum[6] = g; sum[7] = h; sum[8] = i; sum[9] = j; sum[10] = k; sum[11] = l;\n\
            sum[12] = m; sum[13] = n; sum[14] = o; sum[15] = p; sum[16] = q; sum[17] = r;\n\
            sum[18] = s; sum[19] = t; }\n",
    };
    let loaded = load(&idl, &[callee]);
    assert_eq!(loaded.names(), ["inline_one", "called"]);
    check_scalars(&loaded, "inline_one");
    check_scalars(&loaded, "called");
}

#[test]
fn complex_numbers_are_passed_by_value() {
    let loaded = load(
        "Module complexes;
         Globals { #include <complex.h>
             typedef struct { double r, i; } dcomplex;
             void declared(int n, dcomplex *z);
             void declared(int n, dcomplex *z) { while (n--) z[n].i = -z[n].i; } }
         Define called(IN scomplex a, IN dcomplex b, IN float c, OUT dcomplex product[1])
             Calls \"C\" multiply(a, b, c, product);
         Define inline_one(IN scomplex a, IN dcomplex b, OUT double parts[4])
             { parts[0] = crealf(a); parts[1] = cimagf(a); parts[2] = creal(b); parts[3] = cimag(b); }
         Define conjugate(IN int n, INOUT dcomplex z[n]) Calls declared(n, z);",
        &[Extra {
            name: "callee.c",
            text: "void multiply(float _Complex a, double _Complex b, float c, double _Complex *p);\n\
                void multiply(float _Complex a, double _Complex b, float c, double _Complex *p)\n\
                { *p = a * b * c; }\n",
        }],
    );
    let mut product = [0f64; 2];
    loaded.run("called", arguments![[1f32, 2f32], [3f64, 4f64], 10f32, product]);
    assert_eq!(product, [-50.0, 100.0]);
    let mut parts = [0f64; 4];
    loaded.run("inline_one", arguments![[1f32, 2f32], [3f64, 4f64], parts]);
    assert_eq!(parts, [1.0, 2.0, 3.0, 4.0]);
    let mut numbers = [1f64, 2.0, 3.0, 4.0];
    loaded.run("conjugate", arguments![2i32, numbers]);
    assert_eq!(numbers, [1.0, -2.0, 3.0, -4.0]);
}

#[test]
fn arrays_pointers_and_functions_without_arguments() {
    let loaded = load(
        "Module arrays;
         Globals { static int calls; extern int counter; }
         Define nothing() { calls++; }
         Define also_nothing() Calls \"C\" count();
         Define counted(OUT int *n, OUT int (b)[1]) { *n = calls; b[0] = counter; }
         Define transpose(IN int n, IN double a[n][n], OUT double b[n][n], WORK long w[n])
         {
             for (int i = 0; i < n; i++)
                 for (w[i] = 0; w[i] < n; w[i]++)
                     b[w[i] * n + i] = a[i * n + w[i]];
         }
         Define sum(IN int8 n, IN int size[1], IN float x[size[0] + n], OUT float *total)
             Calls \"C\" sum_floats(size, x, total);",
        &[Extra {
            name: "callee.c",
            text: "extern int counter; void count(void);\n\
                int counter; void count(void) { counter += 10; }\n\
                void sum_floats(int *n, float *x, float *total);\n\
                void sum_floats(int *n, float *x, float *total)\n\
                { *total = 0; for (int i = 0; i < *n; i++) *total += x[i]; }\n",
        }],
    );
    loaded.run("nothing", arguments![]);
    loaded.run("nothing", arguments![]);
    loaded.run("also_nothing", arguments![]);
    let (mut calls, mut counter) = (0i32, 0i32);
    loaded.run("counted", arguments![calls, counter]);
    assert_eq!((calls, counter), (2, 10));

    let mut turned = [0f64; 9];
    let matrix = &mut [1f64, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    loaded.run("transpose", arguments![3i32, *matrix, turned, [0i64; 3]]);
    assert_eq!(turned, [1.0, 4.0, 7.0, 2.0, 5.0, 8.0, 3.0, 6.0, 9.0]);

    let mut total = 0f32;
    loaded.run("sum", arguments![0i8, [3i32], [1f32, 2.0, 4.0], total]);
    assert_eq!(total, 7.0);
}

#[test]
fn strings_and_files() {
    let loaded = load(
        "Module texts;
         Globals { #define _GNU_SOURCE
             #include <stdio.h>
             #include <stdlib.h>
             #include <string.h> }
         Define greet(IN string who, OUT string greeting, INOUT string log)
         {
             char *more;
             if (asprintf(greeting, \"hello, %s\", who) < 0 || asprintf(&more, \"%s+\", *log) < 0)
                 abort();
             free(*log);
             *log = more;
         }
         Define longest(IN int n, IN string words[n], OUT int at[1], INOUT string kept[n])
         {
             at[0] = 0;
             for (int i = 1; i < n; i++)
                 if (strlen(words[i]) > strlen(words[at[0]]))
                     at[0] = i;
             free(kept[0]);
             kept[0] = strdup(words[at[0]]);
         }
         Define paths(IN filename a, OUT filename b, INOUT filename c, IN int n,
                      IN filename more[n], OUT string all) Calls join_paths(a, b, c, n, more, all);",
        &[Extra {
            name: "callee.c",
            text: "#define _GNU_SOURCE\n#include <stdio.h>\n#include <stdlib.h>\n\
                void join_paths(const char *a, const char *b, const char *c, int n, char **more,\n\
                    char **all);\n\
                void join_paths(const char *a, const char *b, const char *c, int n, char **more,\n\
                    char **all)\n\
                { if (asprintf(all, \"%s %s %s %s\", a, b, c, more[n - 1]) < 0) abort(); }\n",
        }],
    );
    let who = text("you");
    let (mut greeting, mut log) = (null_mut::<c_char>(), duplicate("log"));
    loaded.run("greet", &mut [pointer(&who), at(&mut greeting), at(&mut log)]);
    assert_eq!((taken(greeting).as_str(), taken(log).as_str()), ("hello, you", "log+"));

    let words = ["one", "three", "two"].map(text);
    let mut words = words.each_ref().map(|word| word.as_ptr());
    let (mut longest, mut kept) = (-1i32, [duplicate("x"), null_mut(), null_mut()]);
    loaded.run("longest", arguments![3i32, words, longest, kept]);
    assert_eq!((longest, taken(kept[0]).as_str()), (1, "three"));

    let [a, b, c, more] = ["/a", "/b", "/c", "/d"].map(text);
    let mut list = [more.as_ptr()];
    let mut all = null_mut::<c_char>();
    loaded.run(
        "paths",
        &mut [pointer(&a), pointer(&b), pointer(&c), at(&mut 1i32), at(&mut list), at(&mut all)],
    );
    assert_eq!(taken(all), "/a /b /c /d");
}

#[test]
fn callbacks_reach_the_worker_and_come_back() {
    let loaded = load(
        "Module callbacks;
         Define iterate(IN int n, INOUT double x[n], step(IN int i, IN float f, IN double old[n],
                        OUT double new[n]), done(), say(IN string what, IN dcomplex z))
         {
             double next[100];
             for (int i = 0; i < 3; i++) {
                 step(i, 0.5f, x, next);
                 for (int j = 0; j < n; j++)
                     x[j] = next[j];
             }
             done();
             say(\"end\", 2.0);
         }
         Define elsewhere(IN int n, only_out(OUT int value[1]), OUT int sum[1])
             Calls \"C\" add_up(n, only_out, sum);
         Define wait(OUT int canceled[1]) { int error = 5; *canceled = grpc_is_canceled_np(&error)
             + 10 * error + 100 * grpc_is_canceled_np(0); }",
        &[Extra {
            name: "callee.c",
            text: "void add_up(int n, void (*next)(int *), int *sum);\n\
                void add_up(int n, void (*next)(int *), int *sum)\n\
                { int x; for (*sum = 0; n > 0; n--) { next(&x); *sum += x; } }\n",
        }],
    );
    let mut x = [1f64, 2.0];
    let order = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let seen = order.clone();
    let unused = null_mut::<c_void>();
    loaded.run_answering(
        "iterate",
        &mut [at(&mut 2i32), at(&mut x), unused, unused, unused],
        move |index, arguments| {
            seen.borrow_mut().push(index);
            // SAFETY: the arguments are those of the callback in the IDL above.
            unsafe {
                match index {
                    0 => {
                        let i = *(*arguments).cast::<i32>();
                        assert_eq!(*(*arguments.add(1)).cast::<f32>(), 0.5);
                        let old = *(*arguments.add(2)).cast::<[f64; 2]>();
                        let new = (*arguments.add(3)).cast::<[f64; 2]>();
                        *new = old.map(|value| value * 10.0 + f64::from(i));
                    }
                    1 => {}
                    _ => {
                        let what = CStr::from_ptr((*arguments).cast::<c_char>());
                        assert_eq!(what, c"end");
                        assert_eq!(*(*arguments.add(1)).cast::<[f64; 2]>(), [2.0, 0.0]);
                    }
                }
            }
        },
    );
    assert_eq!(x, [1012.0, 2012.0]);
    assert_eq!(*order.borrow(), [0, 0, 0, 1, 2]);

    let mut sum = 0i32;
    let mut value = 0;
    loaded.run_answering(
        "elsewhere",
        &mut [at(&mut 3i32), unused, at(&mut sum)],
        move |index, arguments| {
            assert_eq!(index, 0);
            value += 1;
            // SAFETY: its only argument is an array of one int.
            unsafe { *(*arguments).cast::<i32>() = value };
        },
    );
    assert_eq!(sum, 6);

    let mut canceled = 0i32;
    loaded.run("wait", arguments![canceled]);
    assert_eq!(canceled, 101);
}

#[test]
fn classes_have_state() {
    let loaded = load(
        "Module classes;
         DefClass Counter \"counts\" Required \"nothing.o\"
         {
             DefMethod _initialize() { count = 100; }
             DefState { static int count; static double last; }
             DefMethod add(IN int n, IN double x) \"adds\" { count += n; last = x; }
             DefMethod get(OUT int n[1], OUT double x[1]) { n[0] = count; x[0] = last; }
             DefMethod _finalize() { count = -1; }
         }
         DefClass Other { DefState { int other = 7; } DefMethod get(OUT int n[1]) { *n = other; } }
         Define get(OUT int n[1]) { *n = 1; }",
        &[],
    );
    let names = [
        "get",
        "Counter._initialize",
        "Counter.add",
        "Counter.get",
        "Counter._finalize",
        "Other.get",
    ];
    assert_eq!(loaded.names(), names);
    let (mut n, mut x) = (0i32, 0f64);
    loaded.run("Counter._initialize", arguments![]);
    loaded.run("Counter.add", arguments![5i32, 1.5f64]);
    loaded.run("Counter.get", arguments![n, x]);
    assert_eq!((n, x), (105, 1.5));
    loaded.run("Counter._finalize", arguments![]);
    loaded.run("Counter.get", arguments![n, x]);
    assert_eq!(n, -1);
    loaded.run("Other.get", arguments![n]);
    assert_eq!(n, 7);
    loaded.run("get", arguments![n]);
    assert_eq!(n, 1);
}

#[test]
fn functions_that_no_header_declares_get_floats_and_may_have_any_name() {
    // The names of functions that compilers know with other types.
    let loaded = load(
        "Module names;
         Define a(IN float x, IN char c, OUT float r[1]) Calls \"C\" grpc_test_abs(x, c, r);
         Define printf(IN int arguments, IN int gridrpc_arguments, OUT int index[1])
             { *index = arguments - gridrpc_arguments; }
         Define same(IN int same, OUT int r[1]) { *r = same; }
         Define again(IN float x, OUT float r[1]) Calls \"C\" half(x, r);
         Define once_more(IN float x, OUT float r[1]) Calls \"C\" half(x, r);",
        &[Extra {
            name: "callee.c",
            text: "void grpc_test_abs(float x, char c, float *r);\n\
                void grpc_test_abs(float x, char c, float *r) { *r = x < 0 ? -x * c : x * c; }\n\
                void half(float x, float *r); void half(float x, float *r) { *r = x / 2; }\n",
        }],
    );
    let mut r = 0f32;
    loaded.run("a", arguments![-1.5f32, 2i8, r]);
    assert_eq!(r, 3.0);
    loaded.run("again", arguments![3f32, r]);
    assert_eq!(r, 1.5);
    loaded.run("once_more", arguments![5f32, r]);
    assert_eq!(r, 2.5);
    let mut n = 0i32;
    loaded.run("printf", arguments![5i32, 3i32, n]);
    assert_eq!(n, 2);
}

#[test]
fn the_interface_is_in_a_section_of_its_own() {
    let loaded = load(
        "Module section;
         Define f(IN int n, OUT double x[n ^ 2 > 4 ? n : 4]) \"says \\\"hi\\\" ??/ \\\\ \\x01é\\n9\"
             CalcOrder n ^ 3 Idempotent { x[0] = n; }",
        &[],
    );
    let output = loaded.path.with_extension("text");
    let status = Command::new("objcopy")
        .args(["-O", "binary", "--only-section=.gridrpc"])
        .args([&loaded.path, &output])
        .status()
        .expect("objcopy runs");
    assert!(status.success());
    let text = std::fs::read(output).expect("the section");
    let expected = format!("{INTERFACE_HEADER}{}\0", loaded.module);
    assert_eq!(String::from_utf8(text).expect("a text"), expected);
    let again = checked(expected.trim_end_matches('\0').trim_start_matches(INTERFACE_HEADER));
    assert_eq!(again.to_string(), loaded.module.to_string());
}

#[test]
fn only_one_symbol_is_visible() {
    let loaded = load(
        "Module symbols;
         Define f(cb(IN int n), OUT int x[1]) { cb(1); *x = 1; }
         DefClass C { DefState { int state; } DefMethod m() { state++; } }",
        &[],
    );
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&loaded.path).output();
    let text = String::from_utf8(output.expect("nm runs").stdout).expect("a text");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(names, ["gridrpc_module_v1"]);
}

#[test]
fn a_large_module_with_long_lines() {
    let mut idl = String::from("Module large;\n");
    let terms = vec!["n"; 900].join(" + ");
    for number in 0..300 {
        idl += &format!(
            "Define f{number}(IN int n, INOUT double x[{terms}]) \"{}\" {{ x[0] = {number}; }}\n",
            "description ".repeat(40)
        );
    }
    assert!(idl.len() > 1 << 20);
    let loaded = load(&idl, &[]);
    let mut x = 0f64;
    loaded.run("f299", arguments![1i32, x]);
    assert_eq!(x, 299.0);
}

#[test]
fn the_compiler_names_the_line_of_the_file() {
    let said = compile_only("Module lines;\n\nDefine f()\n{\n    first();\n    second(;\n}\n");
    let said = said.expect_err("an error");
    assert!(said.contains("test.idl:6:"), "{said}");
    let said = compile_only("Module lines_globals;\nGlobals\n{\n  int x = ;\n}\nDefine f() { }\n");
    assert!(said.expect_err("an error").contains("test.idl:4:"));
    let said = compile_only(
        "Module lines_marked;\n# 70 \"other.h\"\nDefine f()\n{\n  oops(;\n}\nDefine g() { }\n",
    );
    assert!(said.expect_err("an error").contains("other.h:72:"));
}

//! C programs in `tests/capi` that use the headers and the C part.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source(name: &str) -> String {
    repository().join("tests/capi").join(name).display().to_string()
}

/// Runs a compiler and fails with its output.
fn compile(compiler: &str, standard: &str, arguments: &[&str]) {
    let include = format!("-I{}", repository().join("crates/capi/include").display());
    let output = Command::new(compiler)
        .args([&format!("-std={standard}"), &include])
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("cannot run `{compiler}`: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{compiler} -std={standard} {arguments:?}\n{said}");
}

/// Compiles a one-file program and runs it.
fn run(compiler: &str, standard: &str, name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("{name}.{}", standard.replace('+', "p")));
    let path = program.display().to_string();
    compile(
        compiler,
        standard,
        &["-Wall", "-Wextra", "-Werror", "-o", &path, &source(name), "-lm"],
    );
    let output = Command::new(&program).output().expect("cannot run what was compiled");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let _ = fs::remove_file(program);
}

#[test]
fn c_headers_compile_in_all_languages() {
    for name in ["header_grpc.c", "header_ninf.c"] {
        let file = source(name);
        let check = [&STRICT[..], &["-fsyntax-only", &file]].concat();
        compile("cc", "c99", &check);
        compile("cc", "c11", &check);
        let check = [&STRICT[..], &["-fsyntax-only", "-x", "c++", &file]].concat();
        compile("c++", "c++17", &check);
    }
}

#[test]
fn the_cpp_header_compiles() {
    let file = source("header_hpp.cpp");
    let check = [&STRICT[..], &["-fsyntax-only", &file]].concat();
    compile("c++", "c++17", &check);
    compile("c++", "c++20", &check);
}

#[test]
fn the_c_part_takes_arguments_as_they_were_given() {
    run("cc", "c11", "variadic.c");
}

#[test]
fn the_cpp_header_converts_and_checks_arguments() {
    run("c++", "c++17", "wrapper.cpp");
    run("c++", "c++20", "wrapper.cpp");
}

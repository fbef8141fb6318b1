//! Compiles the C part: Rust cannot define variadic functions, and Fortran's arguments are read as in C.

fn main() {
    let sources = ["src/variadic.c", "src/trampoline.c", "src/fortran.c", "src/fortran_number.c"];
    let headers = [
        "src/variadic.h",
        "src/trampoline.h",
        "src/fortran.h",
        "src/fortran_number.h",
        "include/grpc.h",
        "include/ninf.h",
    ];
    for file in sources.iter().chain(&headers) {
        println!("cargo:rerun-if-changed={file}");
    }
    cc::Build::new()
        .files(sources)
        .include("include")
        .std("c11")
        .flag("-fvisibility=default")
        .warnings(true)
        .extra_warnings(true)
        .compile("gridrpc_variadic");
}

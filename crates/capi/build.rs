//! Compiles the C part: variadic functions cannot be written in Rust.

fn main() {
    let sources = ["src/variadic.c", "src/trampoline.c"];
    let headers = ["src/variadic.h", "src/trampoline.h", "include/grpc.h", "include/ninf.h"];
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

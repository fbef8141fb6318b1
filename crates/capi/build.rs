//! Compiles the C part: variadic functions cannot be written in Rust.

fn main() {
    let sources = ["src/variadic.c", "src/variadic.h", "include/grpc.h", "include/ninf.h"];
    for source in sources {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .file("src/variadic.c")
        .include("include")
        .std("c11")
        .flag("-fvisibility=default")
        .warnings(true)
        .extra_warnings(true)
        .compile("gridrpc_variadic");
}

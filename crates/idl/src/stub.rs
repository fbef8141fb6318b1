//! Stub generator: writes the C code that turns a file's declarations into a module.
//!
//! A module is a shared library. A worker reaches its functions through the single symbol
//! `gridrpc_module_v1`; clients read the interface from its section `.gridrpc` without loading it. This file
//! assembles the code; `call` holds the code for one function, `c` utilities for C text.

mod c;
mod call;

use std::collections::HashSet;
use std::fmt::Write;

use crate::block;
use crate::module::{Body, CallArgument, Class, Dialect, Function, Language, Module, Origin};

/// Start of every stub. It precedes the `Globals`, so that their macros cannot change it, and includes
/// nothing, so that they can define `_GNU_SOURCE` and the like.
const PRELUDE: &str = r#"#ifdef __cplusplus
#define GRIDRPC_EXTERN extern "C"
#else
#define GRIDRPC_EXTERN extern
#endif

/* The worker is written in another language, which no exception may enter. */
#if defined(__cplusplus) && defined(__EXCEPTIONS)
#define GRIDRPC_TRY try {
#define GRIDRPC_CATCH } catch (...) { return gridrpc_caught(); }
#else
#define GRIDRPC_TRY
#define GRIDRPC_CATCH
#endif

struct gridrpc_services {
    void (*callback)(unsigned index, void **arguments);
    int (*is_canceled)(void);
    /* An exception that has come out of a function. */
    void (*raised)(const char *type, const char *message);
    /* What a function says when it is about to end its process. */
    void (*ends)(const char *message);
};

struct gridrpc_entry {
    const char *name;
    /* 0, unless it has told of an exception. */
    int (*run)(void **arguments);
};

struct gridrpc_module {
    unsigned version, count;
    const struct gridrpc_entry *entries;
    void (*bind)(const struct gridrpc_services *);
};

static const struct gridrpc_services *gridrpc_worker;

static void gridrpc_bind(const struct gridrpc_services *services)
{
    gridrpc_worker = services;
}

__attribute__((unused)) static void gridrpc_call_back(unsigned index, void **arguments)
{
    gridrpc_worker->callback(index, arguments);
}

__attribute__((unused)) static long long gridrpc_power(long long base, long long exponent)
{
    unsigned long long result = 1, factor = (unsigned long long)base;
    for (; exponent > 0; exponent /= 2, factor *= factor)
        if (exponent % 2)
            result *= factor;
    return (long long)result;
}

GRIDRPC_EXTERN __attribute__((visibility("hidden"))) int grpc_is_canceled_np(int *error);

int grpc_is_canceled_np(int *error)
{
    if (error)
        *error = 0;
    return gridrpc_worker ? gridrpc_worker->is_canceled() : 0;
}
"#;

/// Headers that Ninf-G's stubs included, for `Globals` and bodies that rely on them.
const NINF_G_INCLUDES: &str = "\n#include <grpc_executable.h>\n";

/// Types of Ninf-G's stubs.
const NINF_G_TYPES: &str = "
#include <stdint.h>
typedef scomplex gridrpc_scomplex;
typedef dcomplex gridrpc_dcomplex;
";

/// Types, placed after the `Globals` and before their first use.
const TYPES: &str = r"
#include <stdint.h>
#ifdef __cplusplus
#include <complex>
typedef std::complex<float> gridrpc_scomplex;
typedef std::complex<double> gridrpc_dcomplex;
#else
typedef float _Complex gridrpc_scomplex;
typedef double _Complex gridrpc_dcomplex;
#endif
";

/// Reports the current exception to the worker. Placed after the `Globals`, since it needs headers.
const CAUGHT: &str = r#"
#ifdef __EXCEPTIONS
#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <string>
#include <typeinfo>

__attribute__((noinline, cold)) static int gridrpc_caught()
{
    const std::type_info *type = abi::__cxa_current_exception_type();
    int status;
    char *readable = type ? abi::__cxa_demangle(type->name(), 0, 0, &status) : 0;
    const char *name = readable ? readable : type ? type->name() : "";
    try {
        throw;
    } catch (const std::exception &error) {
        gridrpc_worker->raised(name, error.what());
    } catch (const std::string &text) {
        gridrpc_worker->raised(name, text.c_str());
    } catch (const char *text) {
        gridrpc_worker->raised(name, text);
    } catch (...) {
        gridrpc_worker->raised(name, 0);
    }
    std::free(readable);
    return 1;
}
#endif
"#;

/// What functions in C++ take and return beside numbers and pointers. Placed after the `Globals`, since it needs
/// headers.
const CPP_ARGUMENTS: &str = include_str!("stub/arguments.hpp");

/// Reports to the worker why Fortran ends the process. The linker redirects the functions in [`FORTRAN_ENDS`]
/// here.
const FORTRAN: &str = r#"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void gridrpc_ends(const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (gridrpc_worker)
        gridrpc_worker->ends(text);
}

/* A weak symbol does not have the library linked by itself. */
#define GRIDRPC_WRAP(name, status, parameters, arguments, before) \
    GRIDRPC_EXTERN __attribute__((weak)) void __real__gfortran_##name parameters; \
    GRIDRPC_EXTERN void __wrap__gfortran_##name parameters; \
    void __wrap__gfortran_##name parameters \
    { \
        before \
        if (__real__gfortran_##name) \
            __real__gfortran_##name arguments; \
        exit(status); \
    }
#define GRIDRPC_STOP(name, title, otherwise) \
    GRIDRPC_WRAP(name##_numeric, code, (int code, int quiet), (code, quiet), \
                 gridrpc_ends(title " %d", code);) \
    GRIDRPC_WRAP(name##_string, otherwise, (const char *text, __SIZE_TYPE__ length, int quiet), \
                 (text, length, quiet), \
                 gridrpc_ends(title " %.*s", (int)length, length ? text : "");)
#define GRIDRPC_FORMAT(ends) \
    char text[1024]; \
    va_list values; \
    va_start(values, message); \
    vsnprintf(text, sizeof text, message, values); \
    va_end(values); \
    ends;
GRIDRPC_STOP(stop, "STOP", 0)
GRIDRPC_STOP(error_stop, "ERROR STOP", 1)
GRIDRPC_WRAP(runtime_error, 2, (const char *message, ...), ("%s", text),
             GRIDRPC_FORMAT(gridrpc_ends("%s", text)))
GRIDRPC_WRAP(runtime_error_at, 2, (const char *where, const char *message, ...), (where, "%s", text),
             GRIDRPC_FORMAT(gridrpc_ends("%s: %s", where, text)))
GRIDRPC_WRAP(os_error_at, 1, (const char *where, const char *message, ...), (where, "%s", text),
             GRIDRPC_FORMAT(gridrpc_ends("%s: %s", where, text)))
"#;

/// Functions of gfortran's library that end the process. A module with Fortran functions is linked with
/// `--wrap` for each of them.
pub const FORTRAN_ENDS: [&str; 7] = [
    "_gfortran_stop_numeric",
    "_gfortran_stop_string",
    "_gfortran_error_stop_numeric",
    "_gfortran_error_stop_string",
    "_gfortran_runtime_error",
    "_gfortran_runtime_error_at",
    "_gfortran_os_error_at",
];

/// Additional code for MPI processes. The worker does not use MPI itself, as each MPI library has its own
/// types. Placed after the `Globals`, which may include `mpi.h` in their own way.
const MPI: &str = r#"
#include <mpi.h>

struct gridrpc_mpi {
    int (*init)(int *rank, int *ranks);
};

static int gridrpc_mpi_init(int *rank, int *ranks)
{
    int is_initialized = 0, provided;
    MPI_Initialized(&is_initialized);
    if (!is_initialized && MPI_Init_thread(0, 0, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return 0;
    return MPI_Comm_rank(MPI_COMM_WORLD, rank) == MPI_SUCCESS
        && MPI_Comm_size(MPI_COMM_WORLD, ranks) == MPI_SUCCESS;
}

GRIDRPC_EXTERN __attribute__((visibility("default")))
const struct gridrpc_mpi gridrpc_mpi_v1;

const struct gridrpc_mpi gridrpc_mpi_v1 = { gridrpc_mpi_init };
"#;

/// The C source of a module, valid in C++ as well. `file_name` is the IDL file's name for compiler messages.
#[must_use]
pub fn stub_source(module: &Module, file_name: &str) -> String {
    let mut stub = Stub::new(module, file_name);
    let _ = writeln!(stub.out, "/* The stub of the module {}, made by gridrpc. */\n", module.name);
    stub.out.push_str(PRELUDE);
    let is_old = module.dialect == Dialect::NinfG;
    if is_old {
        stub.out.push_str(NINF_G_INCLUDES);
    }
    stub.interface();
    for (text, origin) in module.globals.iter().zip(&module.globals_at) {
        stub.code("", text, origin, "");
    }
    stub.out.push_str(if is_old { NINF_G_TYPES } else { TYPES });
    if stub.cpp {
        stub.out.push_str(CAUGHT);
    }
    if module.all_functions().any(|(_, function)| calls_cpp(function)) {
        stub.out.push_str(CPP_ARGUMENTS);
    }
    if module.all_functions().any(|(_, function)| function.fortran()) {
        stub.out.push_str(FORTRAN);
    }
    if module.is_parallel() {
        stub.out.push_str(MPI);
    }
    for class in &module.classes {
        stub.state(class);
    }
    let mut entries = String::new();
    let mut count = 0;
    for (class, function) in module.all_functions() {
        let run = stub.function(count, class, function);
        let name = match class {
            Some(class) => format!("{}.{}", class.name, function.name),
            None => function.name.clone(),
        };
        let _ = writeln!(entries, "    {{ {}, {run} }},", c::string(&name));
        count += 1;
    }
    if count == 0 {
        // C does not allow empty arrays.
        entries.push_str("    { 0, 0 },\n");
    }
    let _ = write!(
        stub.out,
        "\nstatic const struct gridrpc_entry gridrpc_entries[] = {{\n{entries}}};\n\n\
         GRIDRPC_EXTERN __attribute__((visibility(\"default\")))\n\
         const struct gridrpc_module gridrpc_module_v1;\n\n\
         const struct gridrpc_module gridrpc_module_v1 = {{ {STUB_VERSION}, {count}, gridrpc_entries, gridrpc_bind }};\n",
    );
    stub.out
}

fn calls_cpp(function: &Function) -> bool {
    matches!(function.body, Body::Calls { .. })
        && function.effective_language() == Some(Language::Cpp)
}

/// The source written so far.
struct Stub<'m> {
    module: &'m Module,
    file_name: &'m str,
    cpp: bool,
    /// Names in the C code at the top of the file: functions declared there are called as declared.
    mentioned: HashSet<&'m str>,
    out: String,
    /// The number of bytes of `out` whose lines have been counted, and that number of lines.
    counted: (usize, usize),
}

impl<'m> Stub<'m> {
    fn new(module: &'m Module, file_name: &'m str) -> Self {
        let mentioned = module.declarations().flat_map(block::words);
        Stub {
            module,
            file_name,
            cpp: module.is_cpp(),
            mentioned: mentioned.collect(),
            out: String::new(),
            counted: (0, 0),
        }
    }

    fn interface(&mut self) {
        let text = format!("{}{}", crate::INTERFACE_HEADER, self.module);
        self.out.push_str(
            "\nstatic const char gridrpc_interface[]\n    \
             __attribute__((section(\".gridrpc\"), used)) =",
        );
        for line in text.split_inclusive('\n') {
            for piece in line.as_bytes().chunks(MAX_LITERAL) {
                let _ = write!(self.out, "\n    {}", c::bytes(piece));
            }
        }
        self.out.push_str(";\n");
    }

    /// Adds code of the file, with its line numbers.
    fn code(&mut self, before: &str, text: &str, origin: &Origin, after: &str) {
        let file = origin.file.as_deref().unwrap_or(self.file_name);
        if origin.line > 0 {
            let _ = writeln!(self.out, "#line {} {}", origin.line, c::string(file));
        }
        let _ = writeln!(self.out, "{before}{text}{after}");
        if origin.line > 0 {
            let here = format!("<stub of {}>", self.module.name);
            let next = self.lines() + 2;
            let _ = writeln!(self.out, "#line {next} {}", c::string(&here));
        }
    }

    /// Number of lines so far.
    fn lines(&mut self) -> usize {
        let (bytes, lines) = self.counted;
        let more = self.out.as_bytes()[bytes..].iter().filter(|byte| **byte == b'\n').count();
        self.counted = (self.out.len(), lines + more);
        lines + more
    }

    /// Text around a body. Bodies of Ninf-G use a variable `error`, which its stubs declared.
    fn braces(&self, function: &Function, body: &str) -> (&'static str, &'static str) {
        let wanted = self.module.dialect == Dialect::NinfG
            && block::words(body).any(|word| word == "error")
            && !function.parameters.iter().any(|parameter| parameter.name == "error");
        match wanted {
            true => ("{ grpc_error_t error = GRPC_NO_ERROR; (void)error; {", "}}"),
            false => ("{", "}"),
        }
    }

    /// Variables of a class. An object has its own process, so there is one set of them.
    fn state(&mut self, class: &Class) {
        if let Some(state) = &class.state {
            let _ = writeln!(self.out, "\n/* The state of {}. */", class.name);
            self.code("", state, &class.state_at, "");
        }
    }

    /// All code for a function. Returns the name of the entry that the worker runs.
    fn function(&mut self, number: usize, class: Option<&Class>, function: &Function) -> String {
        let name = match class {
            Some(class) => format!("{number}_{}_{}", class.name, function.name),
            None => format!("{number}_{}", function.name),
        };
        let _ = writeln!(self.out, "\n/* {}. */", function.name);
        let fortran = matches!(function.body, Body::Calls { .. }) && function.fortran();
        let call = call::Call { name: &name, function, fortran, cpp: self.cpp };
        self.out.push_str(&call.trampolines());
        let statement = match &function.body {
            Body::None => String::new(),
            Body::Inline(text) => {
                let _ = writeln!(self.out, "{}", call.body_declaration());
                let (before, after) = self.braces(function, text);
                self.code(before, text, &function.body_at, after);
                self.out.push('\n');
                call.body_call()
            }
            Body::Calls { name: target, arguments, result, .. } => {
                let language = function.effective_language();
                let passed = CallArgument::parameters(arguments);
                if language == Some(Language::Fortran) {
                    let format = self.module.fortran_format.as_deref().unwrap_or("%s_");
                    let symbol = crate::check::fortran_symbol(format, target);
                    let symbol = symbol.unwrap_or_else(|| target.clone());
                    self.out.push_str(&call.alias(&symbol, &passed, *result));
                    call.alias_call(&passed, *result)
                } else if language == Some(Language::Cpp) {
                    call.cpp_call(target, arguments, *result)
                } else if self.mentioned.contains(target.as_str()) {
                    call.direct_call(target, arguments, *result)
                } else {
                    self.out.push_str(&call.alias(target, &passed, *result));
                    call.alias_call(&passed, *result)
                }
            }
        };
        let run = format!("gridrpc_run_{name}");
        let _ = write!(
            self.out,
            "static int {run}(void **gridrpc_arguments)\n\
             {{\n    (void)gridrpc_arguments;\n    GRIDRPC_TRY\n{statement}    GRIDRPC_CATCH\n    return 0;\n}}\n"
        );
        run
    }
}

/// Version of the interface between stub and worker.
const STUB_VERSION: u32 = 2;

/// Longest string literal, bytes.
const MAX_LITERAL: usize = 200;

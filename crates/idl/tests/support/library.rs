//! Compiles a module and loads it like a worker.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridrpc_idl::{Module, parse, stub_source};
use libloading::Library;

#[repr(C)]
struct Services {
    callback: extern "C" fn(c_uint, *mut *mut c_void),
    is_canceled: extern "C" fn() -> c_int,
    raised: extern "C" fn(*const c_char, *const c_char),
    ends: extern "C" fn(*const c_char),
}

#[repr(C)]
struct Entry {
    name: *const c_char,
    run: extern "C" fn(*mut *mut c_void) -> c_int,
}

#[repr(C)]
struct RawModule {
    version: c_uint,
    count: c_uint,
    entries: *const Entry,
    bind: extern "C" fn(*const Services),
}

static SERVICES: Services = Services { callback, is_canceled, raised, ends };

/// An exception's type and message.
pub type Exception = (String, Option<String>);

/// Handler for callbacks; receives the callback's index and its arguments.
type Answer = Box<dyn FnMut(u32, *mut *mut c_void)>;

thread_local! {
    static RAISED: RefCell<Option<Exception>> = const { RefCell::new(None) };
    static ANSWER: RefCell<Option<Answer>> = const { RefCell::new(None) };
}

extern "C" fn callback(index: c_uint, arguments: *mut *mut c_void) {
    ANSWER.with_borrow_mut(|answer| match answer {
        Some(answer) => answer(index, arguments),
        None => panic!("nobody waits for a callback"),
    });
}

extern "C" fn is_canceled() -> c_int {
    1
}

extern "C" fn raised(kind: *const c_char, message: *const c_char) {
    let text = |text: *const c_char| {
        // SAFETY: null, or a string of the stub.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    RAISED.set(Some((text(kind).unwrap_or_default(), text(message))));
}

extern "C" fn ends(_: *const c_char) {}

/// A loaded module.
pub struct Loaded {
    pub module: Module,
    pub path: PathBuf,
    raw: &'static RawModule,
    _library: Library,
}

/// An additional file of a module.
pub struct Extra {
    pub name: &'static str,
    pub text: &'static str,
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}");
    text
}

/// Whether there is a program with this name.
pub fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

/// The module of a valid IDL file.
pub fn checked(idl: &str) -> Module {
    let parsed = parse(idl);
    let found: Vec<String> =
        parsed.diagnostics.iter().map(|found| found.render("test.idl", idl)).collect();
    parsed.module.unwrap_or_else(|| panic!("{}", found.concat()))
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stubs").join(name);
    fs::create_dir_all(&folder).expect("a folder for the module");
    folder
}

/// Compiles without loading; the error is the compiler's output.
pub fn compile_only(idl: &str) -> Result<(), String> {
    let module = checked(idl);
    let folder = folder(&module.name);
    let stub = folder.join("stub.c");
    fs::write(&stub, stub_source(&module, "test.idl")).expect("the stub");
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-fPIC", "-fsyntax-only"])
        .arg(stub)
        .output()
        .expect("cc runs");
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into())
    }
}

/// Compiles a module with additional files and loads it. Treats warnings as errors.
pub fn load(idl: &str, extras: &[Extra]) -> Loaded {
    let module = checked(idl);
    let folder = folder(&module.name);
    let (compiler, ending, standard) =
        if module.is_cpp() { ("g++", "cpp", "-std=gnu++17") } else { ("cc", "c", "-std=gnu11") };
    let stub = folder.join(format!("stub.{ending}"));
    fs::write(&stub, stub_source(&module, "test.idl")).expect("the stub");

    let mut objects = Vec::new();
    let mut sources = vec![(stub, compiler)];
    for extra in extras {
        let path = folder.join(extra.name);
        fs::write(&path, extra.text).expect("another file");
        if path.extension().is_some_and(|ending| ending == "hpp") {
            continue;
        }
        let compiler = match path.extension().and_then(|ending| ending.to_str()) {
            Some("f90") => "gfortran",
            Some("cpp") => "g++",
            _ => "cc",
        };
        sources.push((path, compiler));
    }
    for (source, compiler) in sources {
        let object = source.with_extension("o");
        let mut command = Command::new(compiler);
        if compiler != "gfortran" {
            command.args([standard, "-Wall", "-Wextra", "-Werror"]);
        }
        run(command
            .args(["-O1", "-fPIC", "-fvisibility=hidden", "-c", "-o"])
            .args([&object, &source]));
        objects.push(object);
    }
    let path = folder.join(format!("{}.so", module.name));
    let linker = match extras.iter().any(|extra| extra.name.ends_with(".f90")) {
        true => "gfortran",
        false => compiler,
    };
    run(Command::new(linker).args(["-shared", "-Wl,-z,defs", "-o"]).arg(&path).args(objects));

    // SAFETY: the module was built here, and loading it runs only its own initialization.
    let library = unsafe { Library::new(&path) }.expect("the module loads");
    // SAFETY: the symbol has this type and lives as long as the library, which stays open as long as
    // `Loaded`.
    let raw: &'static RawModule = unsafe {
        &**library.get::<*const RawModule>(b"gridrpc_module_v1").expect("the module's symbol")
    };
    assert_eq!(raw.version, 2);
    (raw.bind)(&SERVICES);
    Loaded { module, path, raw, _library: library }
}

impl Loaded {
    fn entries(&self) -> &[Entry] {
        // SAFETY: the stub supplies the count.
        unsafe { std::slice::from_raw_parts(self.raw.entries, self.raw.count as usize) }
    }

    /// The names of all entries.
    pub fn names(&self) -> Vec<&str> {
        self.entries()
            .iter()
            // SAFETY: names are string literals of the stub.
            .map(|entry| unsafe { CStr::from_ptr(entry.name) }.to_str().expect("a name"))
            .collect()
    }

    /// Runs an entry with pointers to its arguments.
    pub fn run(&self, name: &str, arguments: &mut [*mut c_void]) {
        assert_eq!(self.attempt(name, arguments), None);
    }

    /// Runs an entry that may raise an exception.
    pub fn attempt(&self, name: &str, arguments: &mut [*mut c_void]) -> Option<Exception> {
        let at = self.names().iter().position(|other| *other == name);
        let at = at.unwrap_or_else(|| panic!("no entry `{name}`"));
        let function = self.module.function(name).expect("it is declared");
        assert_eq!(arguments.len(), function.parameters.len(), "arguments of {name}");
        let status = (self.entries()[at].run)(arguments.as_mut_ptr());
        let raised = RAISED.take();
        assert_eq!(status != 0, raised.is_some());
        raised
    }

    /// Runs an entry; `answer` handles its callbacks.
    pub fn run_answering(
        &self,
        name: &str,
        arguments: &mut [*mut c_void],
        answer: impl FnMut(u32, *mut *mut c_void) + 'static,
    ) {
        ANSWER.set(Some(Box::new(answer)));
        self.run(name, arguments);
        ANSWER.set(None);
    }
}

/// Pointers to values, as a worker passes them.
#[macro_export]
macro_rules! arguments {
    ($($value:expr),* $(,)?) => { &mut [$(std::ptr::from_mut(&mut $value).cast::<std::ffi::c_void>()),*] };
}

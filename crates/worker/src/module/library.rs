//! Loaded shared library of a module.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use gridrpc_idl::Module;
use gridrpc_sys::forks;
use gridrpc_typed::read_interface;
use libloading::os::unix;

use crate::module::entry::Entry;
use crate::module::{abnormal_exit, callback, raised};

/// Services that the worker offers to the stub, as the stub declares them.
#[repr(C)]
struct Services {
    callback: extern "C" fn(index: c_uint, arguments: *mut *mut c_void),
    is_canceled: extern "C" fn() -> c_int,
    raised: extern "C" fn(kind: *const c_char, message: *const c_char),
    ends: extern "C" fn(message: *const c_char),
}

/// One function of the stub.
#[repr(C)]
struct RawEntry {
    name: *const c_char,
    run: extern "C" fn(arguments: *mut *mut c_void) -> c_int,
}

/// Exports of the stub.
#[repr(C)]
struct RawModule {
    version: c_uint,
    count: c_uint,
    entries: *const RawEntry,
    bind: extern "C" fn(services: *const Services),
}

const SYMBOL: &CStr = c"gridrpc_module_v1";
const VERSION: c_uint = 2;

static SERVICES: Services = Services {
    callback: callback::from_module,
    is_canceled: callback::is_canceled,
    raised: raised::raised,
    ends: abnormal_exit::ends,
};

/// A loaded module. Never unloaded, because its functions may have left threads behind.
#[derive(Debug)]
pub(super) struct Library {
    interface: Arc<Module>,
    raw: *const RawModule,
}

// SAFETY: what it points to is constant, and stays as long as the process.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// Makes standard output line-buffered. It goes to a pipe, which C would otherwise fully buffer.
fn print_lines() {
    unsafe extern "C" {
        static stdout: *mut libc::FILE;
    }
    // SAFETY: C's own stream, which nothing has been written to yet or in lines already.
    unsafe { libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0) };
}

/// The system's text for a library error.
fn reason(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

fn open(path: &Path, flags: c_int) -> Result<unix::Library, String> {
    // SAFETY: loading runs the library's constructors. Whoever compiled it and named it to the
    // client wants its code to be run here.
    let library = unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | flags) };
    library.map_err(|error| format!("could not load `{}`: {}", path.display(), reason(&error)))
}

impl Library {
    /// Loads the library and reads its interface.
    pub(super) fn load(path: &Path) -> Result<Library, String> {
        Library::load_with(path, unix::RTLD_LOCAL)
    }

    /// Loads the library so that its symbols, and those of its dependencies, are visible to libraries loaded later.
    /// Also returns the address of one of its symbols.
    pub(super) fn load_for_all(
        path: &Path,
        symbol: &CStr,
    ) -> Result<(Library, NonNull<c_void>), String> {
        let library = Library::load_with(path, unix::RTLD_GLOBAL)?;
        let opened = open(path, unix::RTLD_GLOBAL)?;
        // SAFETY: whoever asks for the symbol knows its type.
        let found = unsafe { opened.get::<*mut c_void>(symbol.to_bytes_with_nul()) };
        let found = found.ok().and_then(|symbol| NonNull::new(symbol.into_raw()));
        std::mem::forget(opened);
        let found = found.ok_or_else(|| {
            let path = path.display();
            format!("`{path}` was built for another version of gridrpc: compile it again")
        })?;
        Ok((library, found))
    }

    fn load_with(path: &Path, flags: c_int) -> Result<Library, String> {
        let file = read_interface(path).map_err(|error| error.to_string())?;
        abnormal_exit::notice_exits();
        let library = open(path, flags)?;
        // SAFETY: the stub declares the symbol with this type; its version is checked below.
        let raw = unsafe { library.get::<*const RawModule>(SYMBOL.to_bytes_with_nul()) };
        let raw = raw
            .map_err(|error| format!("`{}` is not a module: {}", path.display(), reason(&error)))?;
        let raw = raw.into_raw().cast::<RawModule>().cast_const();
        std::mem::forget(library);
        // SAFETY: the symbol lives as long as the library, which stays.
        let module = unsafe { &*raw };
        if module.version != VERSION {
            return Err(format!(
                "`{}` was built for another version of gridrpc ({}, not {VERSION}): compile it again",
                path.display(),
                module.version
            ));
        }
        forks::notice();
        print_lines();
        (module.bind)(&raw const SERVICES);
        Ok(Library { interface: file.interface, raw })
    }

    fn entries(&self) -> &[RawEntry] {
        // SAFETY: the stub declares that many entries; they live as long as the library.
        unsafe { std::slice::from_raw_parts((*self.raw).entries, (*self.raw).count as usize) }
    }

    /// The function with this name: `function`, or `Class.method`.
    pub(super) fn entry(&self, name: &str) -> Result<Entry, String> {
        // SAFETY: the names are C strings in the library.
        let is_named =
            |entry: &&RawEntry| unsafe { CStr::from_ptr(entry.name) }.to_str() == Ok(name);
        let raw = self.entries().iter().find(is_named);
        let place = match name.split_once('.') {
            None => {
                self.interface.functions.iter().position(|f| f.name == name).map(|at| (None, at))
            }
            Some((class, method)) => {
                self.interface.classes.iter().enumerate().find(|(_, c)| c.name == class).and_then(
                    |(at, class)| {
                        let method = class.methods.iter().position(|m| m.name == method)?;
                        Some((Some(method), at))
                    },
                )
            }
        };
        let (Some(raw), Some((method, index))) = (raw, place) else {
            return Err(format!("module `{}` has no function `{name}`", self.interface.name));
        };
        Ok(Entry { module: Arc::clone(&self.interface), method, index, run: raw.run })
    }
}

//! One function of a loaded module.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use gridrpc_idl::{Dialect, Function, Module};
use gridrpc_sys::forks;

use crate::module::error::CallError;
use crate::module::raised::take_raised;

/// A function to call.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) module: Arc<Module>,
    /// Index of its interface in the module's.
    pub(super) method: Option<usize>,
    pub(super) index: usize,
    pub(super) run: extern "C" fn(arguments: *mut *mut c_void) -> c_int,
}

impl Entry {
    /// Its interface.
    pub(super) fn interface(&self) -> &Function {
        let module = &self.module;
        match self.method {
            None => &module.functions[self.index],
            Some(method) => &module.classes[self.index].methods[method],
        }
    }

    /// The dialect of its module.
    pub(super) fn dialect(&self) -> Dialect {
        self.module.dialect
    }

    /// Calls it. The pointers are those that the stub expects.
    pub(super) fn run(&self, arguments: &mut [*mut c_void]) -> Result<(), CallError> {
        let process = forks::generation();
        let status = (self.run)(arguments.as_mut_ptr());
        if forks::generation() != process {
            // The function has forked, and this is the child: the call belongs to the parent.
            // SAFETY: ends this process without the parent's exit handlers.
            unsafe { libc::_exit(0) };
        }
        if status == 0 { Ok(()) } else { Err(CallError::Raised(Box::new(take_raised()))) }
    }
}

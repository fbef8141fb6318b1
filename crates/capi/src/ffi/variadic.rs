//! The Rust side of variadic.h: parameter codes, and calls with arguments in slots.

use std::ffi::{c_char, c_int};

use super::attributes;
use super::boundary::{address, enter, null, read, store, text};
use super::invoke::Callee;
use crate::c_types::{Arguments as Slots, Handle};
use crate::call::arguments::Arguments;
use crate::call::function::Function;
use crate::environment::current;
use crate::failure::Failure;
use crate::handles::{function, object};

/// Stores the codes that tell the C part how to read a function's arguments.
///
/// # Safety
/// There is room for both.
pub unsafe fn store_codes(
    function: &Function,
    codes: *mut *const u8,
    count: *mut usize,
) -> Result<(), Failure> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        store(codes, "the place for the codes", function.codes.as_ptr())?;
        store(count, "the place for the count", function.codes.len())
    }
}

impl Slots {
    /// The arguments, with their codes.
    ///
    /// # Safety
    /// `arguments` is valid and has as many slots as it states.
    pub unsafe fn taken<'a>(arguments: *const Slots) -> (Arguments<'a>, *const u8) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let Slots { codes, slots, count } = arguments.read();
            let slots = if count == 0 { &[] } else { std::slice::from_raw_parts(slots, count) };
            (Arguments::Slots(slots), codes)
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_parameter_codes(
    handle: *const Handle,
    codes: *mut *const u8,
    count: *mut usize,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL, and the C part the rest.
        unsafe {
            let handle = read(handle).ok_or_else(function::invalid)?;
            store_codes(&environment.functions.get(&handle)?.function, codes, count)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_method_codes(
    handle: *const Handle,
    method_name: *const c_char,
    codes: *mut *const u8,
    count: *mut usize,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle and a string or NULL, and the C part the rest.
        unsafe {
            let handle = read(handle).ok_or_else(object::invalid)?;
            let object = environment.objects.get(&handle)?;
            let name = text(method_name).ok_or_else(|| null("the method's name"))?;
            store_codes(object.method(&name)?, codes, count)
        }
    })
}

const VOID: c_int = -1;

/// Checks the destination of an asynchronous call's session and stores "none" there. A synchronous call needs
/// no destination.
///
/// # Safety
/// `session_id` is NULL or the address of room for one.
pub unsafe fn check_place(wait: bool, session_id: *mut c_int) -> Result<(), Failure> {
    // SAFETY: guaranteed by the caller.
    if wait { Ok(()) } else { unsafe { store(session_id, "the place for the session", VOID) } }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_call(
    handle: *mut Handle,
    has_attr: c_int,
    attr: *mut Handle,
    wait: c_int,
    session_id: *mut c_int,
    arguments: *const Slots,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes handles or NULL, and arguments that match the interface.
        unsafe {
            check_place(wait != 0, session_id)?;
            let place = address(handle);
            let handle = read(handle).ok_or_else(function::invalid)?;
            let found = environment.functions.get(&handle)?;
            let callee = Callee::function(&found, handle, place);
            let (arguments, codes) = Slots::taken(arguments);
            callee.check_codes(codes)?;
            let attr = (has_attr != 0).then(|| attributes::of_session(&environment, attr));
            let attr = attr.transpose()?;
            if wait != 0 {
                return callee.call(&environment, attr, arguments);
            }
            session_id.write(callee.begin(&environment, attr, arguments)?);
            Ok(())
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_invoke(
    handle: *mut Handle,
    method_name: *const c_char,
    has_attr: c_int,
    attr: *mut Handle,
    wait: c_int,
    session_id: *mut c_int,
    arguments: *const Slots,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes handles and a string or NULL, and arguments that match the interface.
        unsafe {
            check_place(wait != 0, session_id)?;
            let place = address(handle);
            let handle = read(handle).ok_or_else(object::invalid)?;
            let found = environment.objects.get(&handle)?;
            let name = text(method_name).ok_or_else(|| null("the method's name"))?;
            let callee = Callee::method(&found, &name, handle, place)?;
            let (arguments, codes) = Slots::taken(arguments);
            callee.check_codes(codes)?;
            let attr = (has_attr != 0).then(|| attributes::of_session(&environment, attr));
            let attr = attr.transpose()?;
            if wait != 0 {
                return callee.call(&environment, attr, arguments);
            }
            session_id.write(callee.begin(&environment, attr, arguments)?);
            Ok(())
        }
    })
}

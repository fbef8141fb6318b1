//! Calls with argument stacks.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::attributes;
use super::boundary::{address, enter, enter_for, null, read, text};
use super::invoke::Callee;
use super::stack;
use super::variadic::check_place;
use crate::c_types::Handle;
use crate::call::arguments::Arguments;
use crate::environment::{Environment, current};
use crate::failure::Failure;
use crate::handles::attributes::SessionAttributes;
use crate::handles::{function, object};

const VOID: c_int = -1;

/// Attributes of a session.
#[derive(Clone, Copy)]
enum Attributes {
    /// The handle's defaults.
    Usual,
    /// These, which must be valid.
    Given(*mut Handle),
}

/// Calls a function, or an object's method if a name is given.
///
/// # Safety
/// Handles are valid addresses or NULL, and the stack's arguments match the interface.
unsafe fn with<T>(
    handle: *mut Handle,
    method: Option<*const c_char>,
    attributes: Attributes,
    stack: *const c_void,
    call: impl FnOnce(
        &Environment,
        &Callee<'_>,
        Option<SessionAttributes>,
        Arguments<'_>,
    ) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let environment = current()?;
    let attributes = match attributes {
        Attributes::Usual => None,
        // SAFETY: guaranteed by the caller.
        Attributes::Given(given) => Some(unsafe { attributes::of_session(&environment, given) }?),
    };
    let arguments = stack::arguments(stack)?;
    let arguments = Arguments::Stack(&arguments);
    let place = address(handle);
    // SAFETY: guaranteed by the caller.
    let handle = unsafe { read(handle) };
    let Some(method) = method else {
        let handle = handle.ok_or_else(function::invalid)?;
        let found = environment.functions.get(&handle)?;
        let callee = Callee::function(&found, handle, place);
        return call(&environment, &callee, attributes, arguments);
    };
    let handle = handle.ok_or_else(object::invalid)?;
    let found = environment.objects.get(&handle)?;
    // SAFETY: The caller guarantees a string or NULL.
    let name = unsafe { text(method) }.ok_or_else(|| null("the method's name"))?;
    let callee = Callee::method(&found, &name, handle, place)?;
    call(&environment, &callee, attributes, arguments)
}

/// # Safety
/// As for `with`.
unsafe fn call(
    handle: *mut Handle,
    method: Option<*const c_char>,
    attributes: Attributes,
    stack: *const c_void,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    enter(|| unsafe {
        with(handle, method, attributes, stack, |environment, callee, attributes, arguments| {
            callee.call(environment, attributes, arguments)
        })
    })
}

/// # Safety
/// As for `with`; the arguments stay valid until a wait for the session has returned.
unsafe fn begin(
    handle: *mut Handle,
    method: Option<*const c_char>,
    attributes: Attributes,
    stack: *const c_void,
) -> Result<c_int, Failure> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(handle, method, attributes, stack, |environment, callee, attributes, arguments| {
            callee.begin(environment, attributes, arguments)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_call_arg_stack(handle: *mut Handle, stack: *mut c_void) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    unsafe { call(handle, None, Attributes::Usual, stack) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_call_arg_stack_async(handle: *mut Handle, stack: *mut c_void) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    enter_for(VOID, || unsafe { begin(handle, None, Attributes::Usual, stack) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_call_arg_stack_with_attr_np(
    handle: *mut Handle,
    attr: *mut Handle,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    unsafe { call(handle, None, Attributes::Given(attr), stack) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_call_arg_stack_async_with_attr_np(
    handle: *mut Handle,
    attr: *mut Handle,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    enter_for(VOID, || unsafe { begin(handle, None, Attributes::Given(attr), stack) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_invoke_arg_stack_np(
    handle: *mut Handle,
    method_name: *const c_char,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    unsafe { call(handle, Some(method_name), Attributes::Usual, stack) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_invoke_arg_stack_async_np(
    handle: *mut Handle,
    method_name: *const c_char,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    enter_for(VOID, || unsafe { begin(handle, Some(method_name), Attributes::Usual, stack) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_invoke_arg_stack_with_attr_np(
    handle: *mut Handle,
    method_name: *const c_char,
    attr: *mut Handle,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    unsafe { call(handle, Some(method_name), Attributes::Given(attr), stack) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_invoke_arg_stack_async_with_attr_np(
    handle: *mut Handle,
    method_name: *const c_char,
    attr: *mut Handle,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    enter_for(VOID, || unsafe { begin(handle, Some(method_name), Attributes::Given(attr), stack) })
}

/// # Safety
/// As for `begin`; `session_id` is NULL or the address of an int.
unsafe fn begin_and_store(
    handle: *mut Handle,
    method: Option<*const c_char>,
    session_id: *mut c_int,
    stack: *mut c_void,
) -> c_int {
    enter(|| {
        current()?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            check_place(false, session_id)?;
            ptr::write(session_id, begin(handle, method, Attributes::Usual, stack)?);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_call_argstack_async(
    handle: *mut Handle,
    session_id: *mut c_int,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    unsafe { begin_and_store(handle, None, session_id, stack) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_invoke_argstack_async_np(
    handle: *mut Handle,
    method_name: *const c_char,
    session_id: *mut c_int,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    unsafe { begin_and_store(handle, Some(method_name), session_id, stack) }
}

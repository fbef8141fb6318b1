//! Attributes of handles and of sessions.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use gridrpc_sys::lock;

use super::boundary::{enter, null, read, store};
use crate::c_types::Handle;
use crate::environment::{Environment, current};
use crate::failure::Failure;
use crate::handles::attributes::{HandleAttributes, SessionAttributes};
use crate::handles::{function, object};
use crate::slots::Slots;

fn no_attributes() -> Failure {
    Failure::other("these are not attributes: NULL, never initialized, or destructed")
}

/// # Safety
/// `handle` is NULL or the address of one.
unsafe fn find<T>(slots: &Slots<T>, handle: *const Handle) -> Result<Arc<T>, Failure> {
    // SAFETY: guaranteed by the caller.
    let handle = unsafe { read(handle) };
    handle.and_then(|handle| slots.get(&handle)).ok_or_else(no_attributes)
}

/// Attributes of handles.
///
/// # Safety
/// `attributes` is NULL or the address of such a handle.
pub unsafe fn of_handles(
    environment: &Environment,
    attributes: *const Handle,
) -> Result<Arc<Mutex<HandleAttributes>>, Failure> {
    // SAFETY: guaranteed by the caller.
    unsafe { find(&environment.handle_attributes, attributes) }
}

/// Attributes of a session.
///
/// # Safety
/// `attributes` is NULL or the address of such a handle.
pub unsafe fn of_session(
    environment: &Environment,
    attributes: *const Handle,
) -> Result<SessionAttributes, Failure> {
    // SAFETY: guaranteed by the caller.
    Ok(*lock(&*unsafe { find(&environment.session_attributes, attributes)? }))
}

/// Creates attributes at the caller's address.
///
/// # Safety
/// `place` is NULL or the address of room for a handle.
pub unsafe fn make(
    environment: &Environment,
    place: *mut Handle,
    values: HandleAttributes,
) -> Result<(), Failure> {
    if place.is_null() {
        return Err(no_attributes());
    }
    let handle = environment.handle_attributes.insert(Arc::new(Mutex::new(values)));
    // SAFETY: guaranteed by the caller.
    unsafe { store(place, "the place for the attributes", handle) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_handle_attr_initialize_np(attributes: *mut Handle) -> c_int {
    // SAFETY: The caller provides room for a handle, or NULL.
    enter(|| unsafe { make(&*current()?, attributes, HandleAttributes::default()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_handle_attr_destruct_np(attributes: *mut Handle) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(attributes) };
        let gone = handle.and_then(|handle| environment.handle_attributes.remove(&handle));
        gone.map(drop).ok_or_else(no_attributes)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_handle_attr_get_np(
    attributes: *mut Handle,
    name: c_int,
    value: *mut *mut c_void,
) -> c_int {
    enter(|| {
        // SAFETY: The caller provides a handle and room for an address, or NULL.
        unsafe {
            let attributes = of_handles(&*current()?, attributes)?;
            if value.is_null() {
                return Err(null("the place for the value"));
            }
            let copy = lock(&*attributes).get(name)?;
            store(value, "the place for the value", copy)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_handle_attr_set_np(
    attributes: *mut Handle,
    name: c_int,
    value: *const c_void,
) -> c_int {
    enter(|| {
        // SAFETY: The caller passes a handle, and a value of the attribute's type, or NULL.
        unsafe { lock(&*of_handles(&*current()?, attributes)?).set(name, value) }
    })
}

/// Frees a copy.
fn release(value: *mut c_void) -> c_int {
    enter(|| {
        current()?;
        // SAFETY: it was allocated for the caller, or is NULL.
        unsafe { libc::free(value) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_handle_attr_release_np(value: *mut c_void) -> c_int {
    release(value)
}

/// # Safety
/// `place` is NULL or the address of room for a handle.
unsafe fn make_for_session(
    environment: &Environment,
    place: *mut Handle,
    values: SessionAttributes,
) -> Result<(), Failure> {
    if place.is_null() {
        return Err(no_attributes());
    }
    let handle = environment.session_attributes.insert(Arc::new(Mutex::new(values)));
    // SAFETY: guaranteed by the caller.
    unsafe { store(place, "the place for the attributes", handle) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_session_attr_initialize_np(
    handle: *mut Handle,
    attributes: *mut Handle,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller provides a handle and room for one, or NULL.
        unsafe {
            let handle = read(handle).ok_or_else(function::invalid)?;
            let values = environment.functions.get(&handle)?.defaults.session_attributes();
            make_for_session(&environment, attributes, values)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_session_attr_initialize_with_object_handle_np(
    handle: *mut Handle,
    attributes: *mut Handle,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller provides a handle and room for one, or NULL.
        unsafe {
            let handle = read(handle).ok_or_else(object::invalid)?;
            let values = environment.objects.get(&handle)?.defaults.session_attributes();
            make_for_session(&environment, attributes, values)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_session_attr_destruct_np(attributes: *mut Handle) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(attributes) };
        let gone = handle.and_then(|handle| environment.session_attributes.remove(&handle));
        gone.map(drop).ok_or_else(no_attributes)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_session_attr_get_np(
    attributes: *mut Handle,
    name: c_int,
    value: *mut *mut c_void,
) -> c_int {
    enter(|| {
        // SAFETY: The caller provides a handle and room for an address, or NULL.
        unsafe {
            let attributes = of_session(&*current()?, attributes)?;
            if value.is_null() {
                return Err(null("the place for the value"));
            }
            store(value, "the place for the value", attributes.get(name)?)
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_session_attr_set_np(
    attributes: *mut Handle,
    name: c_int,
    value: *const c_void,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle, and a value of the attribute's type, or NULL.
        unsafe { lock(&*find(&environment.session_attributes, attributes)?).set(name, value) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_session_attr_release_np(value: *mut c_void) -> c_int {
    release(value)
}

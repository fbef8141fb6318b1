//! Object handles.

use std::ffi::{c_char, c_int};

use gridrpc_core::ReservationState;

use super::boundary::{enter, null, read, store, text};
use super::functions::{describe, make, request_by_attributes, request_by_names};
use super::{attributes, last_error};
use crate::c_types::{Handle, Parameter};
use crate::call::outcome::object_lost;
use crate::environment::current;
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::handles::function::check_count;
use crate::handles::object::invalid;

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_default_np(
    handle: *mut Handle,
    name: *const c_char,
) -> c_int {
    // SAFETY: same contract as this function.
    unsafe { grpc_object_handle_array_default_np(handle, 1, name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_init_np(
    handle: *mut Handle,
    server: *const c_char,
    name: *const c_char,
) -> c_int {
    // SAFETY: same contract as this function.
    unsafe { grpc_object_handle_array_init_np(handle, 1, server, name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_init_with_attr_np(
    handle: *mut Handle,
    attributes: *mut Handle,
) -> c_int {
    // SAFETY: same contract as this function.
    unsafe { grpc_object_handle_array_init_with_attr_np(handle, 1, attributes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_array_default_np(
    handles: *mut Handle,
    count: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: The caller provides room for the handles, and strings or NULL.
    unsafe {
        make(handles, count, invalid(), |environment| {
            environment.objects.make(count, &request_by_names(std::ptr::null(), name))
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_array_init_np(
    handles: *mut Handle,
    count: usize,
    server: *const c_char,
    name: *const c_char,
) -> c_int {
    // SAFETY: The caller provides room for the handles, and strings or NULL.
    unsafe {
        make(handles, count, invalid(), |environment| {
            environment.objects.make(count, &request_by_names(server, name))
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_array_init_with_attr_np(
    handles: *mut Handle,
    count: usize,
    attributes: *mut Handle,
) -> c_int {
    // SAFETY: The caller provides room for the handles, and attributes or NULL.
    unsafe {
        make(handles, count, invalid(), |environment| {
            environment.objects.make(count, &request_by_attributes(environment, attributes)?)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_destruct_np(handle: *mut Handle) -> c_int {
    // SAFETY: same contract as this function.
    unsafe { grpc_object_handle_array_destruct_np(handle, 1) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_array_destruct_np(
    handles: *mut Handle,
    count: usize,
) -> c_int {
    enter(|| {
        let environment = current()?;
        check_count(count)?;
        if handles.is_null() && count > 0 {
            return Err(invalid());
        }
        // SAFETY: The caller passes this many handles.
        let handles = (0..count).map(|at| unsafe { handles.add(at).read_unaligned() });
        environment.objects.destruct(&handles.collect::<Vec<_>>())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_get_from_session_np(
    handle: *mut *mut Handle,
    session_id: c_int,
) -> c_int {
    enter(|| {
        let environment = current()?;
        let session = environment.sessions.get(session_id)?;
        let origin = &session.origin;
        if !origin.is_object || origin.address == 0 {
            let detail = format!("session {session_id} is none of an object");
            return Err(Failure::new(ErrorCode::InvalidSessionId, detail));
        }
        environment.objects.get(&origin.handle)?;
        let address = std::ptr::with_exposed_provenance_mut(origin.address);
        // SAFETY: The caller provides room for an address, or NULL.
        unsafe { store(handle, "the place for the handle", address) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_get_attr_np(
    handle: *mut Handle,
    attributes: *mut Handle,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(handle) }.ok_or_else(invalid)?;
        let values = environment.objects.get(&handle)?.defaults.handle_attributes();
        // SAFETY: The caller provides room for attributes, or NULL.
        unsafe { attributes::make(&environment, attributes, values) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_get_error_np(handle: *mut Handle) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(handle) }.ok_or_else(invalid)?;
        environment.objects.get(&handle)?.record.last().map_or(Ok(()), Err)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_perror_np(
    handle: *mut Handle,
    prefix: *const c_char,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL, and a string or NULL.
        let (handle, prefix) = unsafe { (read(handle).ok_or_else(invalid)?, text(prefix)) };
        let last = environment.objects.get(&handle)?.record.last();
        let last = last.unwrap_or_else(|| Failure::new(ErrorCode::NoError, ""));
        last_error::print(&prefix.unwrap_or_default(), last.code, &last.detail);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_object_handle_is_ready_np(handle: *mut Handle) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(handle) }.ok_or_else(invalid)?;
        let object = environment.objects.get(&handle)?;
        match object.defaults.grid.grid.standing(object.worker) {
            ReservationState::Ready => Ok(()),
            ReservationState::Starting => {
                Err(Failure::new(ErrorCode::NotCompleted, "its worker has not started yet"))
            }
            ReservationState::Lost(loss) => Err(object_lost(&object.class.name, &loss)),
            ReservationState::Released => Err(invalid()),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_method_parameters_np(
    handle: *mut Handle,
    method_name: *const c_char,
    parameters: *mut Parameter,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle, a string, and room for this many parameters, or NULL.
        unsafe {
            let handle = read(handle).ok_or_else(invalid)?;
            let object = environment.objects.get(&handle)?;
            let method = text(method_name).ok_or_else(|| null("the method's name"))?;
            describe(object.method(&method)?, parameters, capacity, count)
        }
    })
}

//! Function handles.

use std::ffi::{c_char, c_int};
use std::sync::Arc;
use std::time::Duration;

use gridrpc_idl::{Kind, Mode, Type};

use super::boundary::{enter, null, read, store, text};
use super::{attributes, last_error};
use crate::c_types::{Handle, Parameter};
use crate::call::function::{Function, intern_name};
use crate::call::outcome::refused;
use crate::environment::{Environment, current};
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::handles::attributes::HandleAttributes;
use crate::handles::function::{HandleRequest, check_count, invalid};

/// Creates function or object handles at the caller's address.
///
/// # Safety
/// `handles` is NULL or the address of room for this many.
pub unsafe fn make(
    handles: *mut Handle,
    count: usize,
    invalid: Failure,
    make: impl FnOnce(&Arc<Environment>) -> Result<Vec<Handle>, Failure>,
) -> c_int {
    enter(|| {
        let environment = current()?;
        check_count(count)?;
        if count == 0 {
            return Ok(());
        }
        if handles.is_null() {
            return Err(invalid);
        }
        for (at, handle) in make(&environment)?.into_iter().enumerate() {
            // SAFETY: The caller guarantees the room.
            unsafe { handles.add(at).write_unaligned(handle) };
        }
        Ok(())
    })
}

/// Request for a handle by server and name.
///
/// # Safety
/// Both are strings or NULL.
pub unsafe fn request_by_names(server: *const c_char, name: *const c_char) -> HandleRequest {
    // SAFETY: guaranteed by the caller.
    let (server, name) = unsafe { (text(server), text(name)) };
    HandleRequest {
        server: server.filter(|server| !server.is_empty()).map(Into::into),
        name: name.map(Into::into),
        attributes: HandleAttributes::default(),
    }
}

/// Request for a handle by attributes.
///
/// # Safety
/// `attributes` is NULL or the address of such a handle.
pub unsafe fn request_by_attributes(
    environment: &Environment,
    attributes: *const Handle,
) -> Result<HandleRequest, Failure> {
    // SAFETY: guaranteed by the caller.
    let attributes = unsafe { attributes::of_handles(environment, attributes)? };
    let attributes = attributes.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Ok(HandleRequest::of(attributes.clone()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_default(
    handle: *mut Handle,
    name: *const c_char,
) -> c_int {
    // SAFETY: same contract as this function.
    unsafe { grpc_function_handle_array_default_np(handle, 1, name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_init(
    handle: *mut Handle,
    server: *const c_char,
    name: *const c_char,
) -> c_int {
    // SAFETY: same contract as this function.
    unsafe { grpc_function_handle_array_init_np(handle, 1, server, name) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_init_with_attr_np(
    handle: *mut Handle,
    attributes: *mut Handle,
) -> c_int {
    // SAFETY: same contract as this function.
    unsafe { grpc_function_handle_array_init_with_attr_np(handle, 1, attributes) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_array_default_np(
    handles: *mut Handle,
    count: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: The caller provides room for the handles, and strings or NULL.
    unsafe {
        make(handles, count, invalid(), |environment| {
            environment.functions.make(count, &request_by_names(std::ptr::null(), name))
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_array_init_np(
    handles: *mut Handle,
    count: usize,
    server: *const c_char,
    name: *const c_char,
) -> c_int {
    // SAFETY: The caller provides room for the handles, and strings or NULL.
    unsafe {
        make(handles, count, invalid(), |environment| {
            environment.functions.make(count, &request_by_names(server, name))
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_array_init_with_attr_np(
    handles: *mut Handle,
    count: usize,
    attributes: *mut Handle,
) -> c_int {
    // SAFETY: The caller provides room for the handles, and attributes or NULL.
    unsafe {
        make(handles, count, invalid(), |environment| {
            environment.functions.make(count, &request_by_attributes(environment, attributes)?)
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_destruct(handle: *mut Handle) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(handle) }.ok_or_else(invalid)?;
        environment.functions.destruct(&handle)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_array_destruct_np(
    handles: *mut Handle,
    count: usize,
) -> c_int {
    enter(|| {
        let environment = current()?;
        check_count(count)?;
        if handles.is_null() && count > 0 {
            return Err(invalid());
        }
        // Removes all valid handles, whatever the others are.
        let mut result = Ok(());
        for at in 0..count {
            // SAFETY: The caller passes this many handles.
            let handle = unsafe { handles.add(at).read_unaligned() };
            result = result.and(environment.functions.destruct(&handle));
        }
        result
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_get_handle(handle: *mut *mut Handle, session_id: c_int) -> c_int {
    enter(|| {
        let environment = current()?;
        let session = environment.sessions.get(session_id)?;
        let origin = &session.origin;
        if origin.is_object || origin.address == 0 {
            let detail = format!("session {session_id} is none of a function handle");
            return Err(Failure::new(ErrorCode::InvalidSessionId, detail));
        }
        environment.functions.get(&origin.handle)?;
        let address = std::ptr::with_exposed_provenance_mut(origin.address);
        // SAFETY: The caller provides room for an address, or NULL.
        unsafe { store(handle, "the place for the handle", address) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_get_from_session_np(
    handle: *mut *mut Handle,
    session_id: c_int,
) -> c_int {
    // SAFETY: same contract as this function.
    unsafe { grpc_get_handle(handle, session_id) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_get_attr_np(
    handle: *mut Handle,
    attributes: *mut Handle,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(handle) }.ok_or_else(invalid)?;
        let values = environment.functions.get(&handle)?.defaults.handle_attributes();
        // SAFETY: The caller provides room for attributes, or NULL.
        unsafe { attributes::make(&environment, attributes, values) }
    })
}

/// Returns the last error of a function handle.
#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_get_error_np(handle: *mut Handle) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(handle) }.ok_or_else(invalid)?;
        environment.functions.get(&handle)?.record.last().map_or(Ok(()), Err)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_perror_np(
    handle: *mut Handle,
    prefix: *const c_char,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL, and a string or NULL.
        let (handle, prefix) = unsafe { (read(handle).ok_or_else(invalid)?, text(prefix)) };
        let last = environment.functions.get(&handle)?.record.last();
        let last = last.unwrap_or_else(|| Failure::new(ErrorCode::NoError, ""));
        last_error::print(&prefix.unwrap_or_default(), last.code, &last.detail);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_handle_is_ready_np(handle: *mut Handle) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL.
        let handle = unsafe { read(handle) }.ok_or_else(invalid)?;
        let found = environment.functions.get(&handle)?;
        match found.defaults.grid.grid.wait_for_workers(1, Duration::ZERO) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::new(ErrorCode::NotCompleted, "no worker has started yet")),
            Err(error) => Err(refused(&found.function.target.name, &error)),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_function_parameters_np(
    handle: *mut Handle,
    parameters: *mut Parameter,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes a handle or NULL, and room for this many parameters.
        unsafe {
            let handle = read(handle).ok_or_else(invalid)?;
            describe(&environment.functions.get(&handle)?.function, parameters, capacity, count)
        }
    })
}

/// Stores a function's parameters.
///
/// # Safety
/// There is room for `capacity` of them.
pub unsafe fn describe(
    function: &Function,
    parameters: *mut Parameter,
    capacity: usize,
    count: *mut usize,
) -> Result<(), Failure> {
    if parameters.is_null() && capacity > 0 {
        return Err(null("the place for the parameters"));
    }
    for (at, parameter) in function.parameters().iter().take(capacity).enumerate() {
        let (is_array, of) = match &parameter.kind {
            Kind::Callback(_) => (false, None),
            Kind::Scalar(of) => (false, Some(*of)),
            Kind::Array { element, .. } => (true, Some(*element)),
        };
        let described = Parameter {
            name: intern_name(&parameter.name).as_ptr(),
            mode: match parameter.mode {
                Mode::In => 1,
                Mode::Out => 2,
                Mode::InOut => 3,
                Mode::Work => 4,
            },
            of: of.map_or(0, number_of),
            is_array: c_int::from(is_array),
            is_callback: c_int::from(of.is_none()),
        };
        // SAFETY: The caller guarantees the room.
        unsafe { parameters.add(at).write(described) };
    }
    // SAFETY: The caller provides room for a number, or NULL.
    unsafe { store(count, "the place for the count", function.parameters().len()) }
}

/// `grpc_type_t_np`.
fn number_of(of: Type) -> c_int {
    match of {
        Type::Char => 1,
        Type::UChar => 2,
        Type::Short => 3,
        Type::UShort => 4,
        Type::Int => 5,
        Type::UInt => 6,
        Type::Long => 7,
        Type::ULong => 8,
        Type::LongLong => 9,
        Type::ULongLong => 10,
        Type::Float => 11,
        Type::Double => 12,
        Type::SComplex => 13,
        Type::DComplex => 14,
        Type::Int8 => 15,
        Type::UInt8 => 16,
        Type::Int16 => 17,
        Type::UInt16 => 18,
        Type::Int32 => 19,
        Type::UInt32 => 20,
        Type::Int64 => 21,
        Type::UInt64 => 22,
        Type::String => 23,
        Type::Filename => 24,
    }
}

//! Detached calls, which a server keeps when this program ends.

use std::ffi::{c_char, c_int, c_void};

use super::boundary::{address, enter, null, read, store, text};
use super::invoke::Callee;
use super::stack;
use crate::c_types::{Arguments as Slots, Handle};
use crate::call::arguments::Arguments;
use crate::environment::{Environment, current};
use crate::failure::Failure;
use crate::handles::function;

const VOID: c_int = -1;

/// Where the id of a call goes, or comes from.
#[derive(Clone, Copy)]
enum Id {
    /// There is room for so many bytes.
    New(*mut c_char, usize),
    /// A string; and the place for the session.
    Known(*const c_char, *mut c_int),
}

impl Id {
    /// Detaches a call, or attaches to one.
    ///
    /// # Safety
    /// The addresses are valid or NULL, and the arguments match the interface.
    unsafe fn serve(
        self,
        environment: &Environment,
        callee: &Callee<'_>,
        arguments: Arguments<'_>,
    ) -> Result<(), Failure> {
        match self {
            Id::New(place, size) => {
                check_room(place, size)?;
                // SAFETY: guaranteed by the caller.
                unsafe { write(&callee.detach(arguments)?, place, size) }
            }
            // SAFETY: guaranteed by the caller.
            Id::Known(id, session) => unsafe {
                store(session, "the place for the session", VOID)?;
                let id = text(id).ok_or_else(|| null("the id"))?;
                session.write(callee.attach(environment, &id, arguments)?);
                Ok(())
            },
        }
    }

    /// # Safety
    /// As for `serve`; the handle is valid or NULL.
    unsafe fn serve_slots(self, handle: *mut Handle, arguments: *const Slots) -> c_int {
        enter(|| {
            let environment = current()?;
            // SAFETY: guaranteed by the caller.
            unsafe {
                let place = address(handle);
                let handle = read(handle).ok_or_else(function::invalid)?;
                let found = environment.functions.get(&handle)?;
                let callee = Callee::function(&found, handle, place);
                let (arguments, codes) = Slots::taken(arguments);
                callee.check_codes(codes)?;
                self.serve(&environment, &callee, arguments)
            }
        })
    }

    /// # Safety
    /// As for `serve`; the handle is valid or NULL.
    unsafe fn serve_stack(self, handle: *mut Handle, stack: *const c_void) -> c_int {
        enter(|| {
            let environment = current()?;
            let arguments = stack::arguments(stack)?;
            // SAFETY: guaranteed by the caller.
            unsafe {
                let place = address(handle);
                let handle = read(handle).ok_or_else(function::invalid)?;
                let found = environment.functions.get(&handle)?;
                let callee = Callee::function(&found, handle, place);
                self.serve(&environment, &callee, Arguments::Stack(&arguments))
            }
        })
    }
}

/// `GRPC_DETACHED_ID_SIZE_NP`.
const SIZE: usize = 512;

/// Checks the place for an id before the server has the call: an id that is lost is of no use.
fn check_room(place: *mut c_char, size: usize) -> Result<(), Failure> {
    if place.is_null() {
        return Err(null("the place for the id"));
    }
    if size < SIZE {
        let detail = format!("the id needs a place of GRPC_DETACHED_ID_SIZE_NP = {SIZE} bytes");
        return Err(Failure::other(detail));
    }
    Ok(())
}

/// # Safety
/// There are `size` bytes at `place`.
unsafe fn write(id: &str, place: *mut c_char, size: usize) -> Result<(), Failure> {
    let bytes = id.as_bytes();
    if bytes.len() >= size {
        return Err(Failure::other(format!("the id `{id}` is too long")));
    }
    // SAFETY: there is room for the text and its terminator.
    unsafe {
        place.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        place.add(bytes.len()).write(0);
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_detach_session_np(
    session_id: c_int,
    id: *mut c_char,
    size: usize,
) -> c_int {
    enter(|| {
        let environment = current()?;
        let session = environment.sessions.get(session_id)?;
        check_room(id, size)?;
        // SAFETY: the caller has so many bytes there.
        unsafe { write(&session.detach()?, id, size) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_detach(
    handle: *mut Handle,
    id: *mut c_char,
    size: usize,
    arguments: *const Slots,
) -> c_int {
    // SAFETY: The C part passes the caller's arguments, which match the interface.
    unsafe { Id::New(id, size).serve_slots(handle, arguments) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_attach(
    handle: *mut Handle,
    id: *const c_char,
    session_id: *mut c_int,
    arguments: *const Slots,
) -> c_int {
    // SAFETY: The C part passes the caller's arguments, which match the interface.
    unsafe { Id::Known(id, session_id).serve_slots(handle, arguments) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_detach_arg_stack_np(
    handle: *mut Handle,
    id: *mut c_char,
    size: usize,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    unsafe { Id::New(id, size).serve_stack(handle, stack) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_attach_arg_stack_np(
    handle: *mut Handle,
    id: *const c_char,
    session_id: *mut c_int,
    stack: *mut c_void,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    unsafe { Id::Known(id, session_id).serve_stack(handle, stack) }
}

//! Detached calls, which a server keeps when this program ends.

use std::ffi::{c_char, c_int, c_void};

use super::boundary::{address, enter, null, read, store, text};
use super::invoke::Callee;
use super::stack::{self, Address};
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
                if place.is_null() {
                    return Err(null("the place for the id"));
                }
                // Before the server has the call: an id that is lost is of no use.
                if size < SIZE {
                    let detail =
                        format!("the id needs a place of GRPC_DETACHED_ID_SIZE_NP = {SIZE} bytes");
                    return Err(Failure::other(detail));
                }
                // SAFETY: guaranteed by the caller.
                let id = unsafe { callee.detach(arguments) }?;
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
            let arguments = stack::arguments(stack).ok_or_else(|| {
                Failure::other("this is not an argument stack: NULL, never made, or destructed")
            })?;
            let arguments: Vec<*mut c_void> =
                arguments.into_iter().map(|Address(address)| address).collect();
            // SAFETY: guaranteed by the caller.
            unsafe {
                let place = address(handle);
                let handle = read(handle).ok_or_else(function::invalid)?;
                let found = environment.functions.get(&handle)?;
                let callee = Callee::function(&found, handle, place);
                self.serve(&environment, &callee, Arguments::Addresses(&arguments))
            }
        })
    }
}

/// `GRPC_DETACHED_ID_SIZE_NP`.
const SIZE: usize = 512;

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

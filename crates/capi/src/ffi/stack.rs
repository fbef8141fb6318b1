//! Argument stacks.
//!
//! The address that a program receives is an opaque number with nothing behind it. A destructed or invalid
//! stack is therefore detected instead of dereferenced.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::boundary::guard;
use super::last_error;
use crate::call::arguments::StackArgument;
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// Most arguments of a call.
const MAX_ARGUMENTS: usize = 1000;

#[derive(Debug)]
struct Stack {
    arguments: Vec<StackArgument>,
    room: usize,
}

#[derive(Debug, Default)]
struct Stacks {
    stacks: HashMap<usize, Stack>,
    last: usize,
}

/// Distance between addresses of stacks, since programs may expect alignment.
const STRIDE: usize = 16;

static STACKS: LazyLock<Mutex<Stacks>> = LazyLock::new(Mutex::default);

fn stacks() -> MutexGuard<'static, Stacks> {
    STACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

const NO_STACK: &str = "this is not an argument stack: NULL, never made, or destructed";

/// The arguments of a stack.
///
/// # Errors
/// There is no such stack.
pub fn arguments(stack: *const c_void) -> Result<Vec<StackArgument>, Failure> {
    let stacks = stacks();
    let found = stacks.stacks.get(&stack.addr()).ok_or_else(|| Failure::other(NO_STACK))?;
    Ok(found.arguments.clone())
}

fn no_stack() -> c_int {
    last_error::note(ErrorCode::Other, NO_STACK);
    -1
}

fn push(stack: *mut c_void, argument: StackArgument) -> c_int {
    guard(-1, || match stacks().stacks.get_mut(&stack.addr()) {
        None => no_stack(),
        Some(Stack { arguments, room }) if arguments.len() >= *room => {
            last_error::note(
                ErrorCode::Other,
                format!("the argument stack is full: it holds {room}"),
            );
            -1
        }
        Some(Stack { arguments, .. }) => {
            arguments.push(argument);
            0
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_arg_stack_new(max_args: c_int) -> *mut c_void {
    guard(ptr::null_mut(), || {
        let Some(room) = usize::try_from(max_args).ok().filter(|room| *room <= MAX_ARGUMENTS)
        else {
            let detail =
                format!("an argument stack of {max_args}: 0 to {MAX_ARGUMENTS} is allowed");
            last_error::note(ErrorCode::Other, detail);
            return ptr::null_mut();
        };
        let mut stacks = stacks();
        stacks.last += STRIDE;
        let address = stacks.last;
        stacks.stacks.insert(address, Stack { arguments: Vec::new(), room });
        ptr::without_provenance_mut(address)
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_arg_stack_push_arg(stack: *mut c_void, argument: *mut c_void) -> c_int {
    push(stack, StackArgument { address: argument, bytes: None })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_arg_stack_push_array_np(
    stack: *mut c_void,
    array: *mut c_void,
    nbytes: usize,
) -> c_int {
    push(stack, StackArgument { address: array, bytes: Some(nbytes) })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_arg_stack_pop_arg(stack: *mut c_void) -> *mut c_void {
    guard(ptr::null_mut(), || match stacks().stacks.get_mut(&stack.addr()) {
        None => {
            no_stack();
            ptr::null_mut()
        }
        Some(stack) => stack.arguments.pop().map_or(ptr::null_mut(), |argument| argument.address),
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_arg_stack_destruct(stack: *mut c_void) -> c_int {
    guard(-1, || if stacks().stacks.remove(&stack.addr()).is_some() { 0 } else { no_stack() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_back_in_reverse() {
        let (mut a, mut b) = (1, 2);
        let (a, b) = (ptr::from_mut(&mut a).cast(), ptr::from_mut(&mut b).cast());
        let stack = grpc_arg_stack_new(2);
        assert_eq!(grpc_arg_stack_push_arg(stack, a), 0);
        assert_eq!(grpc_arg_stack_push_arg(stack, b), 0);
        let addresses =
            |stack| arguments(stack).map(|all| all.iter().map(|one| one.address).collect());
        assert_eq!(addresses(stack).ok(), Some(vec![a, b]));
        assert_eq!(grpc_arg_stack_push_arg(stack, a), -1);
        assert_eq!(grpc_arg_stack_pop_arg(stack), b);
        assert_eq!(grpc_arg_stack_pop_arg(stack), a);
        assert!(grpc_arg_stack_pop_arg(stack).is_null());
        assert_eq!(grpc_arg_stack_destruct(stack), 0);
    }

    #[test]
    fn what_is_no_stack_is_found_out() {
        let gone = grpc_arg_stack_new(1);
        assert_eq!(grpc_arg_stack_destruct(gone), 0);
        assert_ne!(grpc_arg_stack_new(1), gone);
        for stack in [gone, ptr::null_mut(), ptr::without_provenance_mut(usize::MAX)] {
            assert_eq!(grpc_arg_stack_push_arg(stack, ptr::null_mut()), -1);
            assert!(grpc_arg_stack_pop_arg(stack).is_null());
            assert_eq!(grpc_arg_stack_destruct(stack), -1);
            assert!(arguments(stack).is_err());
        }
        assert_eq!(last_error::last().0, ErrorCode::Other);
    }

    #[test]
    fn sizes_are_checked() {
        for size in [-1, 1001, c_int::MIN, c_int::MAX] {
            assert!(grpc_arg_stack_new(size).is_null());
        }
        assert!(!grpc_arg_stack_new(0).is_null());
    }
}

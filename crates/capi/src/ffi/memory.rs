//! Memory shared with the workers on this host.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gridrpc_shm::SharedArray;

use super::boundary::{enter, enter_for};
use crate::failure::Failure;

/// Arrays by address. They outlive the grid: programs may free memory at any time.
static ARRAYS: LazyLock<Mutex<HashMap<usize, SharedArray>>> = LazyLock::new(Mutex::default);

fn arrays() -> MutexGuard<'static, HashMap<usize, SharedArray>> {
    ARRAYS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An address as a `Clone` result of `enter_for`.
#[derive(Clone, Copy)]
struct Memory(*mut c_void);

#[unsafe(no_mangle)]
extern "C" fn grpc_malloc_np(nbytes: usize) -> *mut c_void {
    let made = enter_for(Memory(ptr::null_mut()), || {
        let array = SharedArray::new(nbytes)
            .map_err(|error| Failure::other(format!("{nbytes} bytes of shared memory: {error}")))?;
        let start = array.start().as_ptr();
        // SAFETY: it has this many bytes. Clear them, since an earlier array's content may remain.
        unsafe { start.write_bytes(0, nbytes) };
        arrays().insert(start.addr(), array);
        Ok(Memory(start.cast()))
    });
    made.0
}

#[unsafe(no_mangle)]
extern "C" fn grpc_free_np(memory: *mut c_void) -> c_int {
    enter(|| {
        if memory.is_null() {
            return Ok(());
        }
        let array = arrays().remove(&memory.addr());
        array.map(drop).ok_or_else(|| {
            Failure::other("this memory was not made by grpc_malloc_np, or is freed already")
        })
    })
}

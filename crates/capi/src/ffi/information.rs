//! Session information.

use std::collections::HashSet;
use std::ffi::c_int;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::boundary::{enter, null};
use crate::call::info::SessionInfo;
use crate::environment::{Environment, current};
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// `enum grpc_session_status_np`.
const DONE: c_int = 1;
const NOT_TRANSMITTED: c_int = 2;
const EXECUTING: c_int = 3;
const DOWN: c_int = 4;
const UNKNOWN: c_int = 5;

/// Information that has been given out and not released.
static ISSUED: LazyLock<Mutex<HashSet<usize>>> = LazyLock::new(Mutex::default);

fn issued() -> MutexGuard<'static, HashSet<usize>> {
    ISSUED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn status_of(code: ErrorCode) -> c_int {
    if code == ErrorCode::CommunicationFailed { DOWN } else { DONE }
}

fn look(environment: &Environment, id: c_int) -> Result<(SessionInfo, c_int), Failure> {
    let session = environment.sessions.get(id)?;
    let (info, ended) = session.info(&environment.context);
    let status = match ended {
        Some(ended) => status_of(ended.code()),
        None if info.profile.sent == 0 => NOT_TRANSMITTED,
        None => EXECUTING,
    };
    Ok((SessionInfo::new(&info, &environment.context.host), status))
}

/// Resets a status to unknown.
///
/// # Safety
/// `status` is NULL or the address of room.
unsafe fn forget(status: *mut c_int) {
    if !status.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe { status.write(UNKNOWN) };
    }
}

/// # Safety
/// `info` and `status` are NULL or the addresses of room.
unsafe fn give(found: (SessionInfo, c_int), info: *mut SessionInfo, status: *mut c_int) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !info.is_null() {
            info.write(found.0);
        }
        if !status.is_null() {
            status.write(found.1);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_session_info_get_np(
    session_id: c_int,
    info: *mut *mut SessionInfo,
    status: *mut c_int,
) -> c_int {
    enter(|| {
        // SAFETY: The caller provides room or NULL.
        unsafe { forget(status) };
        let environment = current()?;
        let found = look(&environment, session_id)?;
        // SAFETY: The caller provides room or NULL; the copy is written if its allocation succeeds.
        unsafe {
            let mut copy = std::ptr::null_mut::<SessionInfo>();
            if !info.is_null() {
                copy = libc::malloc(size_of::<SessionInfo>()).cast::<SessionInfo>();
                if copy.is_null() {
                    return Err(Failure::other("out of memory for the information"));
                }
                info.write(copy);
                issued().insert(copy.addr());
            }
            give(found, copy, status);
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_session_info_release_np(info: *mut SessionInfo) -> c_int {
    enter(|| {
        current()?;
        if !info.is_null() && !issued().remove(&info.addr()) {
            return Err(Failure::other(
                "this is not session information, or it is released already",
            ));
        }
        // SAFETY: it was allocated above, or is NULL.
        unsafe { libc::free(info.cast()) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn grpc_session_info_remove_np(session_id: c_int) -> c_int {
    enter(|| {
        let environment = current()?;
        if environment.sessions.forget(session_id)? {
            return Ok(());
        }
        Err(Failure::new(ErrorCode::NotCompleted, "a session that runs cannot be forgotten"))
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_session_info_set_threshold_np(threshold: c_int) -> c_int {
    enter(|| {
        current()?.sessions.keep(usize::try_from(threshold).ok());
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_get_info_np(
    session_id: c_int,
    info: *mut SessionInfo,
    status: *mut c_int,
) -> c_int {
    enter(|| {
        // SAFETY: The caller provides room or NULL.
        unsafe { forget(status) };
        let environment = current()?;
        let found = look(&environment, session_id)?;
        // SAFETY: The caller provides room or NULL.
        unsafe { give(found, info, status) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_get_last_info_np(info: *mut SessionInfo, status: *mut c_int) -> c_int {
    enter(|| {
        let environment = current()?;
        if info.is_null() && status.is_null() {
            return Err(null("the place for the information"));
        }
        let last = environment.context.last_call();
        let last =
            last.ok_or_else(|| Failure::new(ErrorCode::InvalidSessionId, "no call has ended yet"))?;
        let session_info = SessionInfo::new(&last.info, &environment.context.host);
        let found = (session_info, status_of(last.code));
        // SAFETY: The caller provides room or NULL.
        unsafe { give(found, info, status) };
        Ok(())
    })
}

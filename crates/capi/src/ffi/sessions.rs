//! Sessions: cancelling, probing, waiting, and how they ended.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::c_int;

use super::boundary::{enter, null, store};
use crate::environment::current;
use crate::errors::ErrorCode;
use crate::failure::Failure;
use crate::sessions::WaitResult;

const VOID: c_int = -1;

thread_local! {
    /// Failed sessions of this thread's last wait.
    static FAILED: RefCell<VecDeque<i32>> = const { RefCell::new(VecDeque::new()) };
}

/// The sessions in the caller's array.
///
/// # Safety
/// `ids` is NULL or the address of `count` numbers.
unsafe fn listed<'a>(ids: *const c_int, count: usize) -> Result<&'a [c_int], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if ids.is_null() {
        return Err(null("the list of sessions"));
    }
    if count > isize::MAX as usize / size_of::<c_int>() {
        return Err(Failure::other(format!("{count} sessions are more than there can be")));
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { std::slice::from_raw_parts(ids, count) })
}

/// Result of a wait for several sessions. Keeps the failed ones for `grpc_get_failed_sessionid`.
pub fn finish_wait(waited: WaitResult) -> Result<(), Failure> {
    let result = result_of(&waited);
    // A thread that is ending has no reader left.
    let _ = FAILED.try_with(|list| list.replace(waited.failed));
    result
}

fn result_of(waited: &WaitResult) -> Result<(), Failure> {
    // The library may have been finalized meanwhile.
    let environment = current()?;
    let Some(first) = waited.failed.front() else { return Ok(()) };
    let session = environment.sessions.get(*first);
    let ended = session.ok().and_then(|session| session.settle(&environment.context));
    let reason = ended.and_then(|ended| ended.result.clone().err());
    let reason = reason.map_or(String::new(), |failure| format!(": {}", failure.detail));
    let others = match waited.failed.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} others"),
    };
    let detail = format!("session {first}{others} failed{reason}");
    Err(Failure::new(ErrorCode::SessionFailed, detail))
}

#[unsafe(no_mangle)]
pub extern "C" fn grpc_cancel(session_id: c_int) -> c_int {
    enter(|| {
        let environment = current()?;
        environment.sessions.cancel(session_id)
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_cancel_all() -> c_int {
    enter(|| {
        let environment = current()?;
        environment.sessions.cancel_all();
        environment.sessions.cancel_calls(None);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_probe(session_id: c_int) -> c_int {
    enter(|| {
        let environment = current()?;
        let session = environment.sessions.get(session_id)?;
        match session.settle(&environment.context) {
            Some(_) => Ok(()),
            None => Err(Failure::new(ErrorCode::NotCompleted, "")),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_probe_or(
    session_ids: *const c_int,
    n: usize,
    done_id: *mut c_int,
) -> c_int {
    enter(|| {
        let environment = current()?;
        if done_id.is_null() {
            return Err(null("the place for the session"));
        }
        // SAFETY: The caller passes this many sessions, or NULL.
        let ids = unsafe { listed(session_ids, n)? };
        let found = environment.sessions.probe_one(ids)?;
        // SAFETY: The caller provides room for a session.
        unsafe { store(done_id, "the place for the session", found.unwrap_or(VOID))? };
        found.map(drop).ok_or_else(|| Failure::new(ErrorCode::NoneCompleted, ""))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn grpc_wait(session_id: c_int) -> c_int {
    enter(|| {
        let environment = current()?;
        result_of(&environment.sessions.wait_for(&[session_id])?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn grpc_wait_and(session_ids: *const c_int, n: usize) -> c_int {
    enter(|| {
        let environment = current()?;
        // SAFETY: The caller passes this many sessions, or NULL.
        let ids = unsafe { listed(session_ids, n)? };
        finish_wait(environment.sessions.wait_for(ids)?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn grpc_wait_or(
    session_ids: *const c_int,
    n: usize,
    done_id: *mut c_int,
) -> c_int {
    enter(|| {
        let environment = current()?;
        if done_id.is_null() {
            return Err(null("the place for the session"));
        }
        // SAFETY: The caller passes this many sessions, or NULL.
        let ids = unsafe { listed(session_ids, n)? };
        let waited = environment.sessions.wait_for_one(ids)?;
        // SAFETY: The caller provides room for a session.
        unsafe { store(done_id, "the place for the session", waited.done.unwrap_or(VOID))? };
        finish_wait(waited)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn grpc_wait_all() -> c_int {
    enter(|| {
        let environment = current()?;
        finish_wait(environment.sessions.wait_for_all()?)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn grpc_wait_any(done_id: *mut c_int) -> c_int {
    enter(|| {
        let environment = current()?;
        if done_id.is_null() {
            return Err(null("the place for the session"));
        }
        let waited = environment.sessions.wait_for_any()?;
        // SAFETY: The caller provides room for a session.
        unsafe { store(done_id, "the place for the session", waited.done.unwrap_or(VOID))? };
        finish_wait(waited)
    })
}

#[unsafe(no_mangle)]
extern "C" fn grpc_get_error(session_id: c_int) -> c_int {
    enter(|| {
        let environment = current()?;
        let session = environment.sessions.get(session_id)?;
        match session.settle(&environment.context) {
            Some(ended) => ended.result.clone(),
            // There is no error yet; `grpc_probe` shows whether the session has ended.
            None => Ok(()),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn grpc_get_failed_sessionid(session_id: *mut c_int) -> c_int {
    enter(|| {
        current()?;
        if session_id.is_null() {
            return Err(null("the place for the session"));
        }
        let next = FAILED.try_with(|list| list.borrow_mut().pop_front()).ok().flatten();
        // SAFETY: The caller provides room for a session.
        unsafe { store(session_id, "the place for the session", next.unwrap_or(VOID)) }
    })
}

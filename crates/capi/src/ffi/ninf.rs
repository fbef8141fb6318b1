//! Functions of the original Ninf API, implemented with the GridRPC API.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_ulonglong, c_void};
use std::ptr;
use std::sync::Arc;

use super::boundary::{enter_for, guard, null, text};
use super::invoke::Callee;
use super::sessions::finish_wait;
use super::variadic::store_codes;
use crate::c_types::{Arguments as Slots, Handle};
use crate::call::arguments::Arguments;
use crate::call::info::{CallInfo, host_name};
use crate::context::LastCall;
use crate::entries::{self, Entry};
use crate::environment::{Environment, current_or_initialize};
use crate::errors::ErrorCode;
use crate::failure::Failure;

const FAILED: c_int = -1;

/// Runs a function's body. Successful results are 0 or more.
fn ninf(body: impl FnOnce(&Arc<Environment>) -> Result<c_int, Failure>) -> c_int {
    enter_for(FAILED, || body(&current_or_initialize()?))
}

/// Converts a code into 0 or -1.
fn result(code: c_int) -> c_int {
    if code == ErrorCode::NoError as c_int { 0 } else { FAILED }
}

/// Resolves an entry's name.
///
/// # Safety
/// `name` is NULL or the address of a string.
unsafe fn entry(environment: &Arc<Environment>, name: *const c_char) -> Result<Entry, Failure> {
    // SAFETY: guaranteed by the caller.
    let name = unsafe { text(name) }.ok_or_else(|| null("the entry"))?;
    entries::find(environment, &name)
}

/// Calls an entry.
///
/// # Safety
/// The arguments match the interface.
unsafe fn call(
    environment: &Environment,
    entry: &Entry,
    wait: c_int,
    arguments: Arguments<'_>,
) -> Result<c_int, Failure> {
    let callee = Callee::function(&entry.handle, Handle::default(), 0);
    let callee = if entry.is_group { callee.again() } else { callee };
    // SAFETY: guaranteed by the caller.
    let called = unsafe {
        if wait != 0 {
            callee.call(environment, None, arguments).map(|()| None)
        } else {
            callee.begin(environment, None, arguments).map(Some)
        }
    };
    entries::called(called.as_ref().map(|session| *session).map_err(|_| ()));
    called.map(|session| session.unwrap_or(0))
}

/// Calls an entry with arguments from the C part.
///
/// # Safety
/// As for `call`.
unsafe fn call_taken(
    environment: &Environment,
    entry: &Entry,
    wait: c_int,
    arguments: *const Slots,
) -> Result<c_int, Failure> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (arguments, codes) = Slots::taken(arguments);
        Callee::function(&entry.handle, Handle::default(), 0).check_codes(codes)?;
        call(environment, entry, wait, arguments)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_entry_codes(
    name: *const c_char,
    codes: *mut *const u8,
    count: *mut usize,
) -> c_int {
    // SAFETY: The caller passes a string or NULL, and the C part the rest.
    ninf(|environment| unsafe {
        store_codes(&entry(environment, name)?.handle.function, codes, count).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_executable_codes(
    executable: *const c_void,
    codes: *mut *const u8,
    count: *mut usize,
) -> c_int {
    // SAFETY: The C part provides room.
    ninf(|_| unsafe {
        store_codes(&entries::executable(executable.addr())?.handle.function, codes, count)
            .map(|()| 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_group_codes(
    group: *const c_void,
    codes: *mut *const u8,
    count: *mut usize,
) -> c_int {
    // SAFETY: The C part provides room.
    ninf(|_| unsafe {
        store_codes(&entries::group(group.addr())?.handle.function, codes, count).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_entry_call(
    name: *const c_char,
    wait: c_int,
    arguments: *const Slots,
) -> c_int {
    // SAFETY: The caller passes a string, and arguments that match the interface.
    ninf(|environment| unsafe {
        call_taken(environment, &entry(environment, name)?, wait, arguments)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_executable_call(
    executable: *mut c_void,
    wait: c_int,
    arguments: *const Slots,
) -> c_int {
    // SAFETY: The caller passes arguments that match the interface.
    ninf(|environment| unsafe {
        call_taken(environment, &entries::executable(executable.addr())?, wait, arguments)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn gridrpc_group_call(group: *mut c_void, arguments: *const Slots) -> c_int {
    ninf(|environment| {
        let entry = entries::group(group.addr())?;
        // SAFETY: The caller passes arguments that match the interface.
        let id = unsafe { call_taken(environment, &entry, 0, arguments)? };
        entries::joined(group.addr(), id);
        Ok(id)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_set_server(host: *const c_char, _port: *const c_char) -> c_int {
    enter_for(FAILED, || {
        // SAFETY: The caller passes a string or NULL.
        entries::set_server(&unsafe { text(host) }.unwrap_or_default());
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_parse_arg(argc: c_int, argv: *mut *mut c_char) -> c_int {
    guard(FAILED, || {
        let count = usize::try_from(argc).unwrap_or(0);
        if argv.is_null() {
            return argc.max(0);
        }
        let mut left = 0;
        let mut at = 0;
        while at < count {
            // SAFETY: the caller passes this many strings.
            let (argument, word) = unsafe {
                let argument = argv.add(at).read();
                (argument, if argument.is_null() { c"" } else { CStr::from_ptr(argument) })
            };
            let takes_value = at > 0 && (word == c"-server" || word == c"-port");
            if takes_value && at + 1 < count {
                if word == c"-server" {
                    // SAFETY: As above.
                    let host = unsafe { text(argv.add(at + 1).read()) };
                    entries::set_server(&host.unwrap_or_default());
                }
                at += 2;
                continue;
            }
            // SAFETY: `left` is not beyond `at`.
            unsafe { argv.add(left).write(argument) };
            left += 1;
            at += 1;
        }
        if left < count {
            // SAFETY: there were more arguments.
            unsafe { argv.add(left).write(ptr::null_mut()) };
        }
        c_int::try_from(left).unwrap_or(argc)
    })
}

/// The arguments of a call in an array.
///
/// # Safety
/// `list` has `count` entries.
unsafe fn listed<'a>(count: usize, list: *mut *mut c_void) -> Result<Arguments<'a>, Failure> {
    if count == 0 {
        return Ok(Arguments::Addresses(&[]));
    }
    if list.is_null() {
        return Err(null("the list of arguments"));
    }
    // SAFETY: guaranteed by the caller.
    Ok(Arguments::Addresses(unsafe { std::slice::from_raw_parts(list, count) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_call_v(
    name: *const c_char,
    count: usize,
    list: *mut *mut c_void,
) -> c_int {
    // SAFETY: The caller passes a string, and arguments that match the interface.
    ninf(|environment| unsafe {
        call(environment, &entry(environment, name)?, 1, listed(count, list)?)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_call_v_async(
    name: *const c_char,
    count: usize,
    list: *mut *mut c_void,
) -> c_int {
    // SAFETY: The caller passes a string, and arguments that match the interface.
    ninf(|environment| unsafe {
        call(environment, &entry(environment, name)?, 0, listed(count, list)?)
    })
}

/// Creates something for an entry, and returns its address, or NULL.
///
/// # Safety
/// `name` is NULL or the address of a string.
unsafe fn made(name: *const c_char, make: impl FnOnce(&Entry) -> usize) -> *mut c_void {
    let made = enter_for(0, || {
        let environment = current_or_initialize()?;
        // SAFETY: guaranteed by the caller.
        Ok(make(&unsafe { entry(&environment, name)? }))
    });
    ptr::without_provenance_mut(made)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_get_executable(name: *const c_char) -> *mut c_void {
    // SAFETY: The caller passes a string or NULL.
    unsafe { made(name, entries::new_executable) }
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_executable_finalize(executable: *mut c_void) -> c_int {
    ninf(|environment| {
        let gone = entries::remove_executable(executable.addr())?;
        environment.sessions.abandon_handle(&gone.handle.record);
        Ok(0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_group_init(name: *const c_char) -> *mut c_void {
    // SAFETY: The caller passes a string or NULL.
    unsafe { made(name, entries::new_group) }
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_group_wait_all(group: *mut c_void) -> c_int {
    ninf(|environment| {
        let sessions = entries::take_sessions(group.addr())?;
        finish_wait(environment.sessions.wait_for_untaken(&sessions)?).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_group_finalize(group: *mut c_void) -> c_int {
    ninf(|environment| {
        let gone = entries::remove_group(group.addr())?;
        environment.sessions.abandon_handle(&gone.handle.record);
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_transaction_begin() -> c_int {
    ninf(|_| entries::begin_transaction().map(|()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_transaction_end() -> c_int {
    ninf(|environment| {
        let transaction = entries::end_transaction()?;
        let sessions = transaction.sessions;
        finish_wait(environment.sessions.wait_for_untaken(&sessions)?)?;
        if transaction.has_failed {
            return Err(Failure::other("a call of the transaction failed"));
        }
        Ok(0)
    })
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_wait(session: c_int) -> c_int {
    result(super::sessions::grpc_wait(session))
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_wait_all() -> c_int {
    result(super::sessions::grpc_wait_all())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_wait_any(session: *mut c_int) -> c_int {
    // SAFETY: same contract as this function.
    result(unsafe { super::sessions::grpc_wait_any(session) })
}

/// The numbers that are sessions.
///
/// # Safety
/// There are `n` numbers.
unsafe fn sessions_of(
    environment: &Environment,
    sessions: *const c_int,
    n: c_int,
) -> Result<Vec<i32>, Failure> {
    let n = usize::try_from(n).unwrap_or(0);
    if n == 0 {
        return Ok(Vec::new());
    }
    if sessions.is_null() {
        return Err(null("the list of sessions"));
    }
    // SAFETY: guaranteed by the caller.
    let numbers = unsafe { std::slice::from_raw_parts(sessions, n) };
    Ok(numbers.iter().copied().filter(|id| environment.sessions.get(*id).is_ok()).collect())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_wait_and(sessions: *const c_int, n: c_int) -> c_int {
    ninf(|environment| {
        // SAFETY: The caller passes this many numbers.
        let sessions = unsafe { sessions_of(environment, sessions, n)? };
        finish_wait(environment.sessions.wait_for(&sessions)?).map(|()| 0)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn Ninf_wait_or(sessions: *const c_int, n: c_int) -> c_int {
    ninf(|environment| {
        // SAFETY: The caller passes this many numbers.
        let sessions = unsafe { sessions_of(environment, sessions, n)? };
        let waited = environment.sessions.wait_for_one(&sessions)?;
        let done = waited.done;
        // A later check of the session reports its failure.
        done.ok_or_else(|| Failure::other("no session has ended"))
    })
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_session_probe(session: c_int) -> c_int {
    ninf(|environment| {
        let found = environment.sessions.get(session)?;
        Ok(c_int::from(found.settle(&environment.context).is_none()))
    })
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_session_cancel(session: c_int) -> c_int {
    result(super::sessions::grpc_cancel(session))
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_session_remove(session: c_int) -> c_int {
    result(super::information::grpc_session_info_remove_np(session))
}

/// `Ninf_info`.
#[repr(C)]
#[derive(Clone, Copy)]
struct NinfInfo {
    session: c_int,
    ended: c_int,
    error: c_int,
    wait_time: f64,
    argument_time: f64,
    run_time: f64,
    result_time: f64,
    total_time: f64,
    bytes_sent: c_ulonglong,
    bytes_received: c_ulonglong,
    host: [c_char; 256],
}

thread_local! {
    static INFO: RefCell<Option<Box<NinfInfo>>> = const { RefCell::new(None) };
}

/// Keeps information for the caller, until the next call in this thread.
fn keep(
    environment: &Environment,
    info: &CallInfo,
    session: c_int,
    ended: Option<ErrorCode>,
) -> *const NinfInfo {
    let phases = info.phases();
    let seconds = |ns: u64| ns as f64 * 1e-9;
    let profile = &info.profile;
    let info = NinfInfo {
        session,
        ended: c_int::from(ended.is_some()),
        error: ended.map_or(0, |code| code as c_int),
        wait_time: seconds(phases.wait),
        argument_time: seconds(phases.argument + phases.taking),
        run_time: seconds(phases.run),
        result_time: seconds(phases.result),
        total_time: seconds(phases.total),
        bytes_sent: profile.bytes_in,
        bytes_received: profile.bytes_out,
        host: host_name(if profile.sent == 0 { "" } else { &environment.context.host }),
    };
    let stored =
        INFO.try_with(|stored| ptr::from_ref(&**stored.borrow_mut().insert(Box::new(info))));
    stored.unwrap_or(ptr::null())
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_get_info(session: c_int) -> *const c_void {
    enter_for(ptr::null::<NinfInfo>(), || {
        let environment = current_or_initialize()?;
        let found = environment.sessions.get(session)?;
        let (info, ended) = found.info(&environment.context);
        Ok(keep(&environment, &info, session, ended.map(|ended| ended.code())))
    })
    .cast()
}

#[unsafe(no_mangle)]
extern "C" fn Ninf_get_last_info() -> *const c_void {
    enter_for(ptr::null::<NinfInfo>(), || {
        let environment = current_or_initialize()?;
        let last = environment.context.last_call();
        Ok(last.map_or(ptr::null(), |LastCall { info, session, code }| {
            keep(&environment, &info, session, Some(code))
        }))
    })
    .cast()
}

//! Times and places of a call, as `grpc_session_info_t_np` and `Ninf_info` have them.

use std::ffi::{c_char, c_int, c_long, c_ulonglong};
use std::ptr;

use gridrpc_client::Profile;
use libc::timeval;

/// What the callbacks of a call took.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallbackInfo {
    /// How many there were.
    pub count: u64,
    /// In the functions themselves, ns.
    pub run: u64,
    /// For their arguments and results on this side, ns.
    pub transfer: u64,
    /// Bytes of their arguments.
    pub bytes_in: u64,
    /// Bytes of their results.
    pub bytes_out: u64,
}

/// Times and places of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallInfo {
    /// What the runtime measured.
    pub profile: Profile,
    /// For bringing the results to their places, ns.
    pub landing: u64,
    /// Of its callbacks.
    pub callbacks: CallbackInfo,
}

/// Durations out of moments, ns; 0 where one of them was not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// From the call until a worker was chosen.
    pub wait: u64,
    /// Handing the arguments over.
    pub argument: u64,
    /// Taking them in, at the worker.
    pub taking: u64,
    /// Running the function.
    pub run: u64,
    /// From the results at the worker to the results here.
    pub result: u64,
    /// From the call until its end.
    pub total: u64,
}

impl CallInfo {
    /// Of a call that has not ended.
    #[must_use]
    pub fn so_far(profile: Profile) -> CallInfo {
        CallInfo { profile, landing: 0, callbacks: CallbackInfo::default() }
    }

    /// How long each phase took.
    #[must_use]
    pub fn phases(&self) -> Phases {
        let Profile { submit, sent, stamps, retrieve, .. } = self.profile;
        let between = |from: u64, to: u64| {
            if from == 0 || to == 0 { 0 } else { to.saturating_sub(from) }
        };
        Phases {
            wait: between(submit, sent),
            argument: between(sent, stamps.received),
            taking: between(stamps.received, stamps.calc_in),
            run: between(stamps.calc_in, stamps.calc_out),
            result: between(stamps.calc_out, retrieve) + self.landing,
            total: between(submit, retrieve) + self.landing,
        }
    }
}

/// `grpc_exec_info_executable_t_np`. Members are pairs of real and processor time.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExecutableInfo {
    callbacks: c_int,
    transfer_argument: [timeval; 2],
    transfer_file_to_remote: [timeval; 2],
    calculation: [timeval; 2],
    transfer_result: [timeval; 2],
    transfer_file_to_client: [timeval; 2],
    callback_argument: [timeval; 2],
    callback_calculation: [timeval; 2],
    callback_result: [timeval; 2],
}

/// `grpc_exec_info_client_t_np`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ClientInfo {
    callbacks: c_int,
    machine_info: [timeval; 2],
    class_info: [timeval; 2],
    invoke: [timeval; 2],
    transfer_argument: [timeval; 2],
    calculation: [timeval; 2],
    transfer_result: [timeval; 2],
    callback_argument: [timeval; 2],
    callback_calculation: [timeval; 2],
    callback_result: [timeval; 2],
    wait_for_worker: timeval,
}

/// `gei_compressionInformation`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CompressionInfo {
    elements: c_int,
    to_remote: *mut u8,
    to_client: *mut u8,
}

/// `grpc_session_place_t_np`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionPlace {
    argument_bytes: c_ulonglong,
    result_bytes: c_ulonglong,
    callback_argument_bytes: c_ulonglong,
    callback_result_bytes: c_ulonglong,
    worker: c_int,
    attempts: c_int,
    process: c_long,
    host: [c_char; 256],
}

/// `grpc_session_info_t_np`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionInfo {
    executable: ExecutableInfo,
    client: ClientInfo,
    compression: CompressionInfo,
    place: SessionPlace,
}

const NONE: timeval = timeval { tv_sec: 0, tv_usec: 0 };
const NEITHER: [timeval; 2] = [NONE; 2];

fn time(ns: u64) -> timeval {
    let us = ns / 1000;
    timeval { tv_sec: (us / 1_000_000) as _, tv_usec: (us % 1_000_000) as _ }
}

fn real(ns: u64) -> [timeval; 2] {
    [time(ns), NONE]
}

impl SessionInfo {
    /// Of a call that runs on this host.
    #[must_use]
    pub fn new(info: &CallInfo, host: &str) -> SessionInfo {
        let Phases { wait, argument, taking, run, result, .. } = info.phases();
        let CallInfo { profile, callbacks, .. } = info;
        let stamps = &profile.stamps;
        let away = stamps.callback_time.saturating_sub(callbacks.run);
        SessionInfo {
            executable: ExecutableInfo {
                callbacks: c_int::try_from(stamps.callbacks).unwrap_or(c_int::MAX),
                transfer_argument: real(taking),
                transfer_file_to_remote: NEITHER,
                calculation: [time(run), time(stamps.cpu)],
                transfer_result: NEITHER,
                transfer_file_to_client: NEITHER,
                callback_argument: real(away / 2),
                callback_calculation: real(stamps.callback_time - away),
                callback_result: real(away - away / 2),
            },
            client: ClientInfo {
                callbacks: c_int::try_from(callbacks.count).unwrap_or(c_int::MAX),
                machine_info: NEITHER,
                class_info: NEITHER,
                invoke: NEITHER,
                transfer_argument: real(argument),
                calculation: real(taking + run),
                transfer_result: real(result),
                callback_argument: real(callbacks.transfer / 2),
                callback_calculation: real(callbacks.run),
                callback_result: real(callbacks.transfer - callbacks.transfer / 2),
                wait_for_worker: time(wait),
            },
            compression: CompressionInfo {
                elements: 0,
                to_remote: ptr::null_mut(),
                to_client: ptr::null_mut(),
            },
            place: SessionPlace {
                argument_bytes: profile.bytes_in,
                result_bytes: profile.bytes_out,
                callback_argument_bytes: callbacks.bytes_in,
                callback_result_bytes: callbacks.bytes_out,
                worker: c_int::try_from(profile.worker).unwrap_or(-1),
                attempts: c_int::from(profile.sent != 0),
                process: c_long::from(profile.pid),
                host: host_name(if profile.sent == 0 { "" } else { host }),
            },
        }
    }
}

/// A host's name in a member of a struct, ended by a 0.
pub fn host_name(name: &str) -> [c_char; 256] {
    let mut place = [0; 256];
    for (to, from) in place[..255].iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// The sizes that a C compiler has for the structs of `grpc.h`, checked again in C.
    #[test]
    fn structs_are_laid_out_as_in_c() {
        assert_eq!(size_of::<ExecutableInfo>(), 8 + 8 * 32);
        assert_eq!(size_of::<ClientInfo>(), 8 + 9 * 32 + 16);
        assert_eq!(size_of::<SessionPlace>(), 4 * 8 + 2 * 4 + 8 + 256);
        assert_eq!(offset_of!(SessionInfo, place), 264 + 312 + 24);
    }

    #[test]
    fn moments_that_were_not_reached_make_no_durations() {
        let profile = Profile { submit: 1000, sent: 3000, ..Profile::default() };
        let phases = CallInfo::so_far(profile).phases();
        assert_eq!(phases, Phases { wait: 2000, ..Phases::default() });
    }

    #[test]
    fn long_host_names_are_cut() {
        let name = host_name(&"x".repeat(300));
        assert_eq!((name[254], name[255]), (b'x' as c_char, 0));
    }
}

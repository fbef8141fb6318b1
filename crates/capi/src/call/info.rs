//! Times and places of a call, for `grpc_session_info_t_np` and `Ninf_info`.

use std::ffi::{c_char, c_int, c_long, c_ulonglong};
use std::ptr;

use gridrpc_client::Profile;
use libc::timeval;

/// Totals of a call's callbacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallbackInfo {
    /// Number of callbacks.
    pub count: u64,
    /// Time in the functions themselves, ns.
    pub run: u64,
    /// Time for arguments and results at the client, ns.
    pub transfer: u64,
    /// Bytes of their arguments.
    pub bytes_in: u64,
    /// Bytes of their results.
    pub bytes_out: u64,
}

/// Times and places of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallInfo {
    /// The runtime's measurements.
    pub profile: Profile,
    /// Time to store the results, ns.
    pub landing: u64,
    /// Its callbacks.
    pub callbacks: CallbackInfo,
}

/// Durations of the phases, ns; 0 if one end was not reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// From the call until a worker was selected.
    pub wait: u64,
    /// Sending the arguments.
    pub argument: u64,
    /// Receiving them at the worker.
    pub taking: u64,
    /// Running the function.
    pub run: u64,
    /// From the results at the worker to the results at the client.
    pub result: u64,
    /// From the call until its end.
    pub total: u64,
}

impl CallInfo {
    /// Information about a call that has not ended.
    #[must_use]
    pub fn so_far(profile: Profile) -> CallInfo {
        CallInfo { profile, landing: 0, callbacks: CallbackInfo::default() }
    }

    /// The duration of each phase.
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
    /// Information about a call that runs on this host.
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

/// A host name as a NUL-terminated member of a struct.
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

    /// The sizes of the structs of `grpc.h` in C; a C program checks them as well.
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

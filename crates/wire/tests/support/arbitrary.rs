//! Random messages and values for the property tests.
//!
//! What messages borrow is leaked: the cases are few and small, and the process is short-lived.

use gridrpc_wire::{
    Array, DType, Examine, FunctionForm, Hello, HostCall, HostEnd, HostLoss, Join, Lease,
    MAX_DIMENSIONS, MAX_SECTION_LEN, Message, Order, Place, Prepare, Section, Sections, Serve,
    Stamps, TraceContext, Value, Welcome,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Either byte order.
pub fn order() -> impl Strategy<Value = Order> {
    select(vec![Order::Little, Order::Big])
}

/// Any message.
pub fn message() -> impl Strategy<Value = Message<'static>> {
    prop_oneof![handshake(), calls(), callbacks(), shared_memory(), spawner(), hosts()]
}

/// Any list of values.
pub fn values() -> impl Strategy<Value = Vec<Value>> {
    vec(value(), 0..20)
}

fn handshake() -> impl Strategy<Value = Message<'static>> {
    let hello = (any::<[u8; 2]>(), any::<bool>(), any::<u32>(), any::<[u64; 2]>()).prop_map(
        |([min_version, max_version], shared_memory, worker, [shared_threshold, clock])| {
            Message::Hello(Hello {
                min_version,
                max_version,
                shared_memory,
                worker,
                shared_threshold,
                clock,
            })
        },
    );
    let welcome = (any::<u8>(), any::<u32>(), any::<u64>(), text(), text(), text()).prop_map(
        |(version, pid, clock, language, host, boot)| {
            Message::Welcome(Welcome { version, pid, clock, language, host, boot })
        },
    );
    let hold = any::<u64>().prop_map(|bytes| Message::Hold { bytes });
    prop_oneof![hello, welcome, hold, Just(Message::Fetch), Just(Message::Goodbye)]
}

fn calls() -> impl Strategy<Value = Message<'static>> {
    let form = select(vec![FunctionForm::Named, FunctionForm::Pickled, FunctionForm::Library]);
    let function =
        (any::<u32>(), form, text(), sections()).prop_map(|(function, form, name, sections)| {
            Message::Function { function, form, name, sections }
        });
    let call = (any::<u64>(), any::<u32>(), any::<bool>(), sections()).prop_map(
        |(call, function, batch, sections)| Message::Call { call, function, batch, sections },
    );
    let data =
        (any::<u32>(), payload()).prop_map(|(stream, bytes)| Message::Data { stream, bytes });
    let reply = (any::<u64>(), stamps(), leases(), sections()).prop_map(
        |(call, stamps, retained, sections)| Message::Reply { call, stamps, retained, sections },
    );
    let failure = (any::<u64>(), stamps(), leases(), text(), text(), text(), sections()).prop_map(
        |(call, stamps, retained, error, message, trace, sections)| Message::Failure {
            call,
            stamps,
            retained,
            error,
            message,
            trace,
            sections,
        },
    );
    let cancel = any::<u64>().prop_map(|call| Message::Cancel { call });
    let packed =
        (any::<u32>(), payload()).prop_map(|(stream, bytes)| Message::Packed { stream, bytes });
    let multicore = (any::<u64>(), any::<[u32; 2]>())
        .prop_map(|(call, [slots, threads])| Message::Wide { call, slots, threads });
    let ids = (any::<[u8; 16]>(), any::<[u8; 8]>());
    let trace = (any::<u64>(), ids, any::<u8>()).prop_filter_map(
        "an id is all zero",
        |(call, (trace_id, span_id), flags)| {
            let context = TraceContext::new(trace_id, span_id, flags)?;
            Some(Message::Trace { call, context })
        },
    );
    prop_oneof![function, call, data, packed, reply, failure, cancel, multicore, trace]
}

fn callbacks() -> impl Strategy<Value = Message<'static>> {
    let callback = (any::<u64>(), any::<u16>(), sections())
        .prop_map(|(call, index, sections)| Message::Callback { call, index, sections });
    let reply = (any::<u64>(), sections())
        .prop_map(|(call, sections)| Message::CallbackReply { call, sections });
    let failure = (any::<u64>(), text())
        .prop_map(|(call, message)| Message::CallbackFailure { call, message });
    prop_oneof![callback, reply, failure]
}

fn shared_memory() -> impl Strategy<Value = Message<'static>> {
    let segment =
        (any::<u32>(), any::<u64>()).prop_map(|(segment, len)| Message::Segment { segment, len });
    let release = leases().prop_map(|leases| Message::Release { leases });
    let blob =
        (any::<u64>(), sections()).prop_map(|(blob, sections)| Message::Blob { blob, sections });
    let drop_blob = any::<u64>().prop_map(|blob| Message::DropBlob { blob });
    let dropped = (any::<u64>(), any::<bool>())
        .prop_map(|(blob, unread)| Message::BlobDropped { blob, unread });
    prop_oneof![segment, release, blob, drop_blob, dropped]
}

fn spawner() -> impl Strategy<Value = Message<'static>> {
    let texts = || vec(text(), 0..6);
    let prepare =
        (text(), texts(), texts(), texts()).prop_map(|(directory, path, modules, libraries)| {
            Message::Prepare(Prepare { directory, path, modules, libraries })
        });
    let spawn = vec(any::<u32>(), 0..200).prop_map(|workers| Message::Spawn { workers });
    let started = (any::<u32>(), any::<u32>(), any::<bool>(), text())
        .prop_map(|(worker, pid, passes, error)| Message::Started { worker, pid, passes, error });
    let exited = any::<[u32; 4]>().prop_map(|[worker, pid, status, signal]| Message::Exited {
        worker,
        pid,
        status,
        signal,
    });
    let kill = any::<u32>().prop_map(|worker| Message::Kill { worker });
    let drop_segment = any::<u32>().prop_map(|segment| Message::DropSegment { segment });
    prop_oneof![prepare, spawn, started, exited, kill, drop_segment]
}

fn hosts() -> impl Strategy<Value = Message<'static>> {
    let texts = || vec(text(), 0..6);
    let words = (text(), text(), text(), texts());
    let join = (any::<[u8; 2]>(), any::<[u32; 2]>(), any::<[u64; 2]>(), any::<u16>(), words)
        .prop_map(
            |([min_version, max_version], [pid, processors], [clock, memory], port, words)| {
                let (host, boot, program, addresses) = words;
                Message::Join(Join {
                    min_version,
                    max_version,
                    pid,
                    processors,
                    clock,
                    memory,
                    host,
                    boot,
                    program,
                    port,
                    addresses,
                })
            },
        );
    let pass = (any::<u64>(), any::<u32>(), any::<[u8; 32]>(), texts())
        .prop_map(|(blob, to, secret, addresses)| Message::Pass { blob, to, secret, addresses });
    let pass_result = (any::<[u64; 2]>(), any::<u32>(), any::<[u8; 32]>(), texts()).prop_map(
        |([call, blob], to, secret, addresses)| Message::PassResult {
            call,
            blob,
            to,
            secret,
            addresses,
        },
    );
    let lists = (texts(), texts(), texts(), texts(), texts());
    let serve = (
        (any::<u8>(), 0..=2_u8),
        any::<[u32; 2]>(),
        any::<[u64; 5]>(),
        [text(), text(), text()],
        lists,
    )
        .prop_map(
            |((version, compression), small, large, [program, directory, staging], lists)| {
                let (arguments, environment, path, modules, preload) = lists;
                let [shared_threshold, keep_free, grace, calls_per_process, heartbeat] = large;
                Message::Serve(Serve {
                    version,
                    workers: small[0],
                    shared_threshold,
                    keep_free,
                    grace,
                    retries: small[1],
                    calls_per_process,
                    heartbeat,
                    compression,
                    program,
                    arguments,
                    environment,
                    directory,
                    path,
                    modules,
                    staging,
                    preload,
                })
            },
        );
    let numbers = || vec(any::<u64>(), 0..50);
    let call = (any::<u64>(), any::<[u32; 2]>(), any::<bool>(), numbers(), sections()).prop_map(
        |(call, [function, on], idempotent, blobs, sections)| {
            Message::HostCall(HostCall { call, function, on, idempotent, blobs, sections })
        },
    );
    let end = select(vec![HostEnd::Lost, HostEnd::Cancelled, HostEnd::NoWorkers, HostEnd::Refused]);
    let ended = (any::<u64>(), end, loss()).prop_map(|(call, end, loss)| Message::Ended {
        call,
        end,
        loss,
    });
    let reserved = (any::<u32>(), proptest::option::of(loss()))
        .prop_map(|(number, lost)| Message::Reserved { number, lost });
    let module = (text(), text(), sections()).prop_map(|(hash, name, sections)| Message::Module {
        hash,
        name,
        sections,
    });
    let output = (any::<u32>(), any::<bool>(), sections())
        .prop_map(|(worker, stderr, sections)| Message::Output { worker, stderr, sections });
    let examine =
        (text(), text(), text(), texts()).prop_map(|(python, directory, staging, environment)| {
            Message::Examine(Examine { python, directory, staging, environment })
        });
    let echo = (any::<u64>(), any::<u32>(), sections())
        .prop_map(|(number, back, sections)| Message::Echo { number, back, sections });
    let echoed = (any::<u64>(), sections())
        .prop_map(|(number, sections)| Message::Echoed { number, sections });
    let kept = (any::<u64>(), sections())
        .prop_map(|(call, sections)| Message::KeptResult { call, sections });
    let small = prop_oneof![
        text().prop_map(|text| Message::Findings { text }),
        any::<[u32; 2]>().prop_map(|[ready, wanted]| Message::Workers { ready, wanted }),
        any::<u32>().prop_map(|number| Message::Reserve { number }),
        any::<u32>().prop_map(|number| Message::Dismiss { number }),
        any::<u64>().prop_map(|number| Message::Ping { number }),
        any::<[u64; 2]>().prop_map(|[number, clock]| Message::Pong { number, clock }),
        numbers().prop_map(|calls| Message::Retract { calls }),
        numbers().prop_map(|calls| Message::Retracted { calls }),
        loss().prop_map(Message::NoWorkers),
        (any::<u64>(), any::<[u8; 32]>())
            .prop_map(|(blob, secret)| Message::Expect { blob, secret }),
        any::<u64>().prop_map(|blob| Message::Missing { blob }),
        any::<u64>().prop_map(|call| Message::KeepResult { call }),
        any::<u64>().prop_map(|call| Message::FetchResult { call }),
        any::<u64>().prop_map(|call| Message::DropResult { call }),
        any::<u64>().prop_map(|call| Message::Detach { call }),
        (any::<u64>(), any::<u32>()).prop_map(|(blob, to)| Message::NotPassed { blob, to }),
        pass,
        pass_result,
    ];
    let requests = prop_oneof![examine, echo, echoed, kept];
    prop_oneof![join, serve, call, ended, reserved, module, output, requests, small]
}

fn loss() -> impl Strategy<Value = HostLoss<'static>> {
    (any::<[u32; 3]>(), 0..=HostLoss::SHORTAGE, text(), text(), text()).prop_map(
        |([worker, pid, number], cause, why, host, stderr)| HostLoss {
            worker,
            pid,
            cause,
            number,
            why,
            host,
            stderr,
        },
    )
}

fn value() -> impl Strategy<Value = Value> {
    let shape = vec(any::<u64>(), 0..=MAX_DIMENSIONS);
    let array = (select(DType::ALL.to_vec()), any::<bool>(), shape, any::<u16>()).prop_map(
        |(dtype, fortran, shape, section)| Value::Array(Array { dtype, fortran, shape, section }),
    );
    prop_oneof![
        Just(Value::None),
        any::<i64>().prop_map(Value::Int),
        // Not a NaN, which would not be equal to itself; the vectors have some.
        any::<f64>().prop_filter("NaN", |float| !float.is_nan()).prop_map(Value::Float),
        any::<String>().prop_map(Value::Text),
        any::<u16>().prop_map(Value::Bytes),
        array,
    ]
}

fn sections() -> impl Strategy<Value = Sections<'static>> {
    let len = || 0..=MAX_SECTION_LEN;
    let section = prop_oneof![
        payload().prop_map(Section::inline),
        len().prop_map(|len| Section { len, place: Place::Stream }),
        (len(), lease()).prop_map(|(len, lease)| Section { len, place: Place::Shared(lease) }),
        (len(), any::<u64>(), any::<u32>())
            .prop_map(|(len, blob, part)| Section { len, place: Place::Blob { blob, part } }),
        (len(), any::<u16>())
            .prop_map(|(len, index)| Section { len, place: Place::Argument(index) }),
        (len(), any::<u64>(), any::<u16>())
            .prop_map(|(len, call, section)| Section { len, place: Place::Kept { call, section } }),
    ];
    vec(section, 0..12)
}

fn leases() -> impl Strategy<Value = Vec<Lease>> {
    vec(lease(), 0..12)
}

fn lease() -> impl Strategy<Value = Lease> {
    any::<(u32, u64)>().prop_map(|(segment, offset)| Lease { segment, offset })
}

fn stamps() -> impl Strategy<Value = Stamps> {
    any::<([u64; 5], [u32; 3])>().prop_map(
        |([received, calc_in, calc_out, cpu, callback_time], [callbacks, worker, pid])| Stamps {
            received,
            calc_in,
            calc_out,
            cpu,
            callback_time,
            callbacks,
            worker,
            pid,
        },
    )
}

fn text() -> impl Strategy<Value = &'static str> {
    any::<String>().prop_map(|text| &*text.leak())
}

fn payload() -> impl Strategy<Value = &'static [u8]> {
    vec(any::<u8>(), 0..300).prop_map(|bytes| &*bytes.leak())
}

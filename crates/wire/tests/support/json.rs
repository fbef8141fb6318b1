//! Messages and values from the JSON of the test vectors; described in docs/developers/wire-format.md.
//!
//! Panics with the field's name when something is not as described. What messages borrow is
//! leaked: the vectors are few and small, and the process is short-lived.

use gridrpc_wire::{
    Array, DType, Examine, FunctionForm, Hello, HostCall, HostEnd, HostLoss, Join, Lease, Message,
    Place, Prepare, Section, Sections, Serve, Stamps, Value, Welcome,
};
use serde_json::Value as Json;

/// The message that a vector describes.
pub fn message(json: &Json) -> Message<'static> {
    let object = Object(json);
    match object.text("kind") {
        "Hello" => Message::Hello(Hello {
            min_version: object.int("min_version"),
            max_version: object.int("max_version"),
            shared_memory: object.bool("shared_memory"),
            worker: object.int("worker"),
            shared_threshold: object.int("shared_threshold"),
            clock: object.int("clock"),
        }),
        "Welcome" => Message::Welcome(Welcome {
            version: object.int("version"),
            pid: object.int("pid"),
            clock: object.int("clock"),
            language: object.text("language"),
            host: object.text("host"),
            boot: object.text("boot"),
        }),
        "Function" => Message::Function {
            function: object.int("function"),
            form: match object.text("form") {
                "Named" => FunctionForm::Named,
                "Pickled" => FunctionForm::Pickled,
                "Library" => FunctionForm::Library,
                other => panic!("form {other}"),
            },
            name: object.text("name"),
            sections: object.sections(),
        },
        "Call" => Message::Call {
            call: object.int("call"),
            function: object.int("function"),
            batch: object.bool("batch"),
            sections: object.sections(),
        },
        "Data" => Message::Data {
            stream: json.get("stream").map_or(0, as_int),
            bytes: object.bytes("bytes"),
        },
        "Packed" => Message::Packed { stream: object.int("stream"), bytes: object.bytes("bytes") },
        "Reply" => Message::Reply {
            call: object.int("call"),
            stamps: object.stamps(),
            retained: object.leases("retained"),
            sections: object.sections(),
        },
        "Failure" => Message::Failure {
            call: object.int("call"),
            stamps: object.stamps(),
            retained: object.leases("retained"),
            error: object.text("error"),
            message: object.text("message"),
            trace: object.text("trace"),
            sections: object.sections(),
        },
        "Segment" => Message::Segment { segment: object.int("segment"), len: object.int("len") },
        "Release" => Message::Release { leases: object.leases("leases") },
        "Blob" => Message::Blob { blob: object.int("blob"), sections: object.sections() },
        "DropBlob" => Message::DropBlob { blob: object.int("blob") },
        "BlobDropped" => {
            Message::BlobDropped { blob: object.int("blob"), unread: object.bool("unread") }
        }
        "Hold" => Message::Hold { bytes: object.int("bytes") },
        "Fetch" => Message::Fetch,
        "Goodbye" => Message::Goodbye,
        "DropSegment" => Message::DropSegment { segment: object.int("segment") },
        "Cancel" => Message::Cancel { call: object.int("call") },
        "Wide" => Message::Wide {
            call: object.int("call"),
            slots: object.int("slots"),
            threads: object.int("threads"),
        },
        "Trace" => Message::Trace {
            call: object.int("call"),
            context: object.text("context").parse().expect("a traceparent"),
        },
        "Callback" => Message::Callback {
            call: object.int("call"),
            index: object.int("index"),
            sections: object.sections(),
        },
        "CallbackReply" => {
            Message::CallbackReply { call: object.int("call"), sections: object.sections() }
        }
        "CallbackFailure" => {
            Message::CallbackFailure { call: object.int("call"), message: object.text("message") }
        }
        "Prepare" => Message::Prepare(Prepare {
            directory: object.text("directory"),
            path: object.texts("path"),
            modules: object.texts("modules"),
            libraries: object.texts("libraries"),
        }),
        "Spawn" => Message::Spawn { workers: object.list("workers").iter().map(as_int).collect() },
        "Started" => Message::Started {
            worker: object.int("worker"),
            pid: object.int("pid"),
            passes: object.bool("passes"),
            error: object.text("error"),
        },
        "Exited" => Message::Exited {
            worker: object.int("worker"),
            pid: object.int("pid"),
            status: object.int("status"),
            signal: object.int("signal"),
        },
        "Kill" => Message::Kill { worker: object.int("worker") },
        "Join" => Message::Join(Join {
            min_version: object.int("min_version"),
            max_version: object.int("max_version"),
            pid: object.int("pid"),
            processors: object.int("processors"),
            clock: object.int("clock"),
            memory: object.int("memory"),
            host: object.text("host"),
            boot: object.text("boot"),
            program: object.text("program"),
            port: object.int("port"),
            addresses: object.texts("addresses"),
        }),
        "Pass" => Message::Pass {
            blob: object.int("blob"),
            to: object.int("to"),
            secret: object.bytes("secret").try_into().expect("32 bytes"),
            addresses: object.texts("addresses"),
        },
        "PassResult" => Message::PassResult {
            call: object.int("call"),
            blob: object.int("blob"),
            to: object.int("to"),
            secret: object.bytes("secret").try_into().expect("32 bytes"),
            addresses: object.texts("addresses"),
        },
        "Expect" => Message::Expect {
            blob: object.int("blob"),
            secret: object.bytes("secret").try_into().expect("32 bytes"),
        },
        "Missing" => Message::Missing { blob: object.int("blob") },
        "NotPassed" => Message::NotPassed { blob: object.int("blob"), to: object.int("to") },
        "Serve" => Message::Serve(Serve {
            version: object.int("version"),
            workers: object.int("workers"),
            shared_threshold: object.int("shared_threshold"),
            keep_free: object.int("keep_free"),
            grace: object.int("grace"),
            retries: object.int("retries"),
            calls_per_process: object.int("calls_per_process"),
            heartbeat: object.int("heartbeat"),
            compression: object.int("compression"),
            program: object.text("program"),
            arguments: object.texts("arguments"),
            environment: object.texts("environment"),
            directory: object.text("directory"),
            path: object.texts("path"),
            modules: object.texts("modules"),
            staging: object.text("staging"),
            preload: object.texts("preload"),
        }),
        "Workers" => Message::Workers { ready: object.int("ready"), wanted: object.int("wanted") },
        "NoWorkers" => Message::NoWorkers(object.loss("loss")),
        "HostCall" => Message::HostCall(HostCall {
            call: object.int("call"),
            function: object.int("function"),
            on: object.int("on"),
            idempotent: object.bool("idempotent"),
            blobs: object.ints("blobs"),
            sections: object.sections(),
        }),
        "Ended" => Message::Ended {
            call: object.int("call"),
            end: match object.text("end") {
                "Lost" => HostEnd::Lost,
                "Cancelled" => HostEnd::Cancelled,
                "NoWorkers" => HostEnd::NoWorkers,
                "Refused" => HostEnd::Refused,
                other => panic!("end {other}"),
            },
            loss: object.loss("loss"),
        },
        "Reserve" => Message::Reserve { number: object.int("number") },
        "Reserved" => Message::Reserved {
            number: object.int("number"),
            lost: json.get("lost").map(|_| object.loss("lost")),
        },
        "Dismiss" => Message::Dismiss { number: object.int("number") },
        "Ping" => Message::Ping { number: object.int("number") },
        "Pong" => Message::Pong { number: object.int("number"), clock: object.int("clock") },
        "Output" => Message::Output {
            worker: object.int("worker"),
            stderr: object.bool("stderr"),
            sections: object.sections(),
        },
        "Examine" => Message::Examine(Examine {
            python: object.text("python"),
            directory: object.text("directory"),
            staging: object.text("staging"),
            environment: object.texts("environment"),
        }),
        "Findings" => Message::Findings { text: object.text("text") },
        "Echo" => Message::Echo {
            number: object.int("number"),
            back: object.int("back"),
            sections: object.sections(),
        },
        "Echoed" => Message::Echoed { number: object.int("number"), sections: object.sections() },
        "KeepResult" => Message::KeepResult { call: object.int("call") },
        "FetchResult" => Message::FetchResult { call: object.int("call") },
        "KeptResult" => {
            Message::KeptResult { call: object.int("call"), sections: object.sections() }
        }
        "DropResult" => Message::DropResult { call: object.int("call") },
        "Detach" => Message::Detach { call: object.int("call") },
        "Detached" => Message::Detached { call: object.int("call"), id: object.text("id") },
        "NotDetached" => Message::NotDetached {
            call: object.int("call"),
            error: object.text("error"),
            message: object.text("message"),
        },
        "Retract" => Message::Retract { calls: object.ints("calls") },
        "Retracted" => Message::Retracted { calls: object.ints("calls") },
        "Module" => Message::Module {
            hash: object.text("hash"),
            name: object.text("name"),
            sections: object.sections(),
        },
        other => panic!("kind {other}"),
    }
}

/// How many descriptors the header of a vector's frame counts.
pub fn descriptors(json: &Json) -> u16 {
    json.get("descriptors").map_or(0, as_int)
}

/// The values that a vector describes.
pub fn values(json: &Json) -> Vec<Value> {
    json.as_array().expect("a list of values").iter().map(value).collect()
}

/// The bytes of hexadecimal digits, which may be split by spaces.
pub fn bytes_of_hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter(|c| *c != ' ')
        .map(|c| c.to_digit(16).unwrap_or_else(|| panic!("`{c}` in `{digits}`")) as u8)
        .collect();
    assert!(digits.len().is_multiple_of(2), "odd number of hexadecimal digits");
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn value(json: &Json) -> Value {
    let (kind, content) = json.as_object().and_then(|object| object.iter().next()).expect("value");
    match kind.as_str() {
        "none" => Value::None,
        "int" => Value::Int(content.as_i64().expect("int")),
        "float" => Value::Float(content.as_f64().expect("float")),
        "float_bits" => {
            let bits = u64::from_str_radix(as_text(content), 16).expect("float_bits");
            Value::Float(f64::from_bits(bits))
        }
        "text" => Value::Text(as_text(content).to_owned()),
        "bytes" => Value::Bytes(as_int(content)),
        "array" => {
            let object = Object(content);
            Value::Array(Array {
                dtype: DType::from_name(object.text("dtype")).expect("dtype"),
                fortran: object.bool("fortran"),
                shape: object.list("shape").iter().map(as_int).collect(),
                section: object.int("section"),
            })
        }
        other => panic!("value {other}"),
    }
}

fn section(json: &Json) -> Section<'static> {
    let object = Object(json);
    if json.get("inline").is_some() {
        return Section::inline(object.bytes("inline"));
    }
    let place = if json.get("stream").is_some() {
        Place::Stream
    } else if let Some(shared) = json.get("shared") {
        Place::Shared(lease(shared))
    } else if let Some(argument) = json.get("argument") {
        Place::Argument(as_int(argument))
    } else if json.get("kept").is_some() {
        let kept = object.list("kept");
        Place::Kept { call: as_int(&kept[0]), section: as_int(&kept[1]) }
    } else {
        let blob = object.list("blob");
        Place::Blob { blob: as_int(&blob[0]), part: as_int(&blob[1]) }
    };
    Section { len: object.int("len"), place }
}

fn lease(json: &Json) -> Lease {
    Lease { segment: as_int(&json[0]), offset: as_int(&json[1]) }
}

fn as_text(json: &Json) -> &'static str {
    json.as_str().expect("a text").to_owned().leak()
}

fn as_int<T: TryFrom<u64>>(json: &Json) -> T {
    let int = json.as_u64().and_then(|int| int.try_into().ok());
    int.unwrap_or_else(|| panic!("{json} as an integer"))
}

struct Object<'a>(&'a Json);

impl<'a> Object<'a> {
    fn field(&self, name: &str) -> &'a Json {
        self.0.get(name).unwrap_or_else(|| panic!("no field `{name}` in {}", self.0))
    }

    fn int<T: TryFrom<u64>>(&self, name: &str) -> T {
        as_int(self.field(name))
    }

    fn bool(&self, name: &str) -> bool {
        self.field(name).as_bool().expect(name)
    }

    fn text(&self, name: &str) -> &'static str {
        as_text(self.field(name))
    }

    fn bytes(&self, name: &str) -> &'static [u8] {
        bytes_of_hex(self.text(name)).leak()
    }

    fn list(&self, name: &str) -> &'a [Json] {
        self.field(name).as_array().expect(name)
    }

    fn texts(&self, name: &str) -> Vec<&'static str> {
        self.list(name).iter().map(as_text).collect()
    }

    fn ints(&self, name: &str) -> Vec<u64> {
        self.list(name).iter().map(as_int).collect()
    }

    fn loss(&self, name: &str) -> HostLoss<'static> {
        let loss = Object(self.field(name));
        HostLoss {
            worker: loss.int("worker"),
            pid: loss.int("pid"),
            cause: loss.int("cause"),
            number: loss.int("number"),
            why: loss.text("why"),
            host: loss.text("host"),
            stderr: loss.text("stderr"),
        }
    }

    fn leases(&self, name: &str) -> Vec<Lease> {
        self.list(name).iter().map(lease).collect()
    }

    fn sections(&self) -> Sections<'static> {
        self.list("sections").iter().map(section).collect()
    }

    fn stamps(&self) -> Stamps {
        Stamps {
            received: self.int("received"),
            calc_in: self.int("calc_in"),
            calc_out: self.int("calc_out"),
            cpu: self.int("cpu"),
            callback_time: self.int("callback_time"),
            callbacks: self.int("callbacks"),
            worker: self.0.get("worker").map_or(0, as_int),
            pid: self.0.get("pid").map_or(0, as_int),
        }
    }
}

//! Wire format of gridrpc, version 3: frames, messages and typed values.
//!
//! This crate is pure: it turns messages into bytes and bytes into messages, and never
//! touches a socket. The written specification is `docs/developers/wire-format.md`; the vectors in
//! `crates/wire/vectors/` hold examples of every message in both byte orders.
//!
//! The sender writes in its own byte order and marks each frame with it; the receiver
//! converts. External input can never make the decoder panic or allocate more than a
//! small multiple of the input: 4 times for a message, 32 times for values (on 64-bit
//! machines), each list in one piece. A message has only one encoding in each byte order,
//! so that a decoded message encodes to the same bytes again.
//!
//! ```
//! use gridrpc_wire::{Frame, Message, Order};
//!
//! let mut bytes = Vec::new();
//! Message::DropBlob { blob: 7 }.encode(Order::NATIVE, &mut bytes).unwrap();
//! let (frame, used) = Frame::parse(&bytes).unwrap().expect("a whole frame");
//! assert_eq!(used, bytes.len());
//! assert_eq!(Message::decode(&frame).unwrap(), Message::DropBlob { blob: 7 });
//! ```

mod bytes;
mod chunk;
mod compression;
pub mod dependency_table;
mod frame;
mod host;
mod kind;
mod message;
pub mod nested_call;
mod ranks;
mod remote_error;
mod section;
mod trace_context;
mod value;

pub use bytes::{MAX_BODY, MAX_TEXT, Order, VERSION, WireError};
pub use chunk::Chunk;
pub use compression::Compression;
pub use frame::{Frame, HEADER_LEN, Header, MAX_DESCRIPTORS, data_header};
pub use host::{Examine, HostCall, HostEnd, HostLoss, Join, MAX_ECHO, SECRET, Serve};
pub use kind::Kind;
pub use message::{FunctionForm, Hello, Message, PARTING, Prepare, Stamps, Welcome};
pub use ranks::{NODES, Ranks};
pub use remote_error::RemoteError;
pub use section::{
    Lease, MAX_DAEMON_SEGMENTS, MAX_SECTION_LEN, MAX_SECTIONS, Place, Section, Sections,
};
pub use trace_context::{TraceContext, TraceContextError};
pub use value::{Array, DType, MAX_DIMENSIONS, Value, decode_values, encode_values};

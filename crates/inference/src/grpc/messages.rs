//! Messages of the gRPC service.

use std::collections::HashMap;

use bytes::Bytes;
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerLiveRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerLiveResponse {
    #[prost(bool, tag = "1")]
    pub live: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerReadyRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerReadyResponse {
    #[prost(bool, tag = "1")]
    pub ready: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelReadyRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelReadyResponse {
    #[prost(bool, tag = "1")]
    pub ready: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerMetadataRequest {}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ServerMetadataResponse {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, repeated, tag = "3")]
    pub extensions: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelMetadataRequest {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelMetadataResponse {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, repeated, tag = "2")]
    pub versions: Vec<String>,
    #[prost(string, tag = "3")]
    pub platform: String,
    #[prost(message, repeated, tag = "4")]
    pub inputs: Vec<TensorDescription>,
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<TensorDescription>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorDescription {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct InferParameter {
    #[prost(oneof = "ParameterValue", tags = "1, 2, 3, 4, 5")]
    pub value: Option<ParameterValue>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum ParameterValue {
    #[prost(bool, tag = "1")]
    Bool(bool),
    #[prost(int64, tag = "2")]
    Int64(i64),
    #[prost(string, tag = "3")]
    String(String),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(uint64, tag = "5")]
    Uint64(u64),
}

pub(super) type Parameters = HashMap<String, InferParameter>;

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorContents {
    #[prost(bool, repeated, tag = "1")]
    pub bools: Vec<bool>,
    /// For INT8, INT16 and INT32.
    #[prost(int32, repeated, tag = "2")]
    pub ints: Vec<i32>,
    #[prost(int64, repeated, tag = "3")]
    pub int64s: Vec<i64>,
    /// For UINT8, UINT16 and UINT32.
    #[prost(uint32, repeated, tag = "4")]
    pub uints: Vec<u32>,
    #[prost(uint64, repeated, tag = "5")]
    pub uint64s: Vec<u64>,
    #[prost(float, repeated, tag = "6")]
    pub fp32s: Vec<f32>,
    #[prost(double, repeated, tag = "7")]
    pub fp64s: Vec<f64>,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    pub strings: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelInferRequest {
    #[prost(string, tag = "1")]
    pub model_name: String,
    #[prost(string, tag = "2")]
    pub model_version: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(map = "string, message", tag = "4")]
    pub parameters: Parameters,
    #[prost(message, repeated, tag = "5")]
    pub inputs: Vec<GrpcInput>,
    #[prost(message, repeated, tag = "6")]
    pub outputs: Vec<GrpcRequestedOutput>,
    /// The elements of all inputs, one entry each. Slices of the received message.
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub raw_input_contents: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GrpcInput {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
    #[prost(map = "string, message", tag = "4")]
    pub parameters: Parameters,
    #[prost(message, optional, tag = "5")]
    pub contents: Option<TensorContents>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GrpcRequestedOutput {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(map = "string, message", tag = "2")]
    pub parameters: Parameters,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelInferResponse {
    #[prost(string, tag = "1")]
    pub model_name: String,
    #[prost(string, tag = "2")]
    pub model_version: String,
    #[prost(string, tag = "3")]
    pub id: String,
    #[prost(message, repeated, tag = "5")]
    pub outputs: Vec<TensorOutput>,
    #[prost(bytes = "bytes", repeated, tag = "6")]
    pub raw_output_contents: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TensorOutput {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub datatype: String,
    #[prost(int64, repeated, tag = "3")]
    pub shape: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RepositoryIndexRequest {
    #[prost(string, tag = "1")]
    pub repository_name: String,
    #[prost(bool, tag = "2")]
    pub ready: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RepositoryIndexResponse {
    #[prost(message, repeated, tag = "1")]
    pub models: Vec<ModelIndex>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ModelIndex {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(string, tag = "3")]
    pub state: String,
    #[prost(string, tag = "4")]
    pub reason: String,
}

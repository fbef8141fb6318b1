//! The Open Inference Protocol over REST and gRPC: calls of module functions by clients of others.
//!
//! [`serve`] answers the requests of connections. What it offers, and to whom, is a [`Functions`];
//! [`infer_on_grid`] runs a call of one on a grid.

mod arguments;
mod blocking;
mod body;
mod call;
mod datatype;
mod dispatch;
mod error;
mod functions;
mod grpc;
mod metadata;
mod name;
mod options;
mod pending;
mod rest;
mod server;
mod service;
mod tensor;
mod transpose;

pub use call::{GridCall, infer_on_grid};
pub use datatype::DataType;
pub use error::{AuthError, DataError, InferenceError, MalformedRequest};
pub use functions::{Functions, InferFuture, Page, Principal, RequestCredentials};
pub use metadata::{
    FunctionProperties, ModelMetadata, TensorMetadata, TensorProperties, VERSION, is_callable,
};
pub use name::FunctionName;
pub use options::Options;
pub use server::serve;
pub use tensor::{
    ElementOrder, InferRequest, InferResponse, InputTensor, OutputTensor, RequestedOutput,
};

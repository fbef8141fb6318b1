//! HTTP client for services that gridrpc uses: collectors of traces, directories, etcd.

#![forbid(unsafe_code)]

mod client;

pub use client::{HttpClient, HttpError, Trust};

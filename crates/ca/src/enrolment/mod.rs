//! Enrolment over the network: a user gets a certificate for a one-time token, and the private key stays at home.
//!
//! The token contains the address of the service and the fingerprint of the authority, so that already the first
//! connection is verified.

mod attempts;
mod client;
mod error;
mod message;
mod service;
mod token;

pub use client::{Enrolled, enrol};
pub use error::EnrolmentError;
pub use message::Refusal;
pub use service::{EnrolmentEvent, EnrolmentService};
pub use token::EnrolmentToken;
pub(crate) use token::fingerprint;

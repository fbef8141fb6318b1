//! Certificate authority for the users and servers of `gridrpc server`: one folder, no database, no network.
//!
//! Private keys of users never leave their machines: the authority signs requests.

#![forbid(unsafe_code)]

mod authority;
mod error;
mod files;
mod index;
mod leaf;
mod names;
mod request;
mod signing;
mod tokens;
mod user;

pub use authority::{Authority, ServerFiles, SignOptions, Signed, default_folder};
pub use error::AuthorityError;
pub use index::{CertificateRole, Issued, date};
pub use user::{create_request, credentials_folder, install};

//! Certificate authority for the users and servers of `gridrpc server`: one folder, no database.
//!
//! Private keys of users never leave their machines: the authority signs requests.

#![forbid(unsafe_code)]

mod authority;
mod enrolment;
mod error;
mod files;
mod index;
mod leaf;
mod names;
mod redeem;
mod request;
mod signing;
mod tokens;
mod user;

pub use authority::{Authority, ServerFiles, SignOptions, Signed, default_folder};
pub use enrolment::{
    Enrolled, EnrolmentError, EnrolmentEvent, EnrolmentService, EnrolmentToken, Refusal, enrol,
};
pub use error::{AuthorityError, TokenError};
pub use index::{CertificateRole, Issued, date};
pub use user::{create_request, install};

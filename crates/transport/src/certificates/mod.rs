//! Certificates of a server and its users: both sides of a TLS connection prove who they are to each other.
//!
//! Certificates are signed by an authority that both sides trust. The keys of a grid (keys.rs) need none: its client
//! starts its agents itself.

mod credentials;
mod error;
mod identity;
mod keys;
mod pem;
mod revocations;

pub use credentials::{CredentialFiles, Credentials};
pub(crate) use error::system;
pub use error::{CredentialsError, RevocationsError, Utc};
pub use identity::{Identity, IdentityError};
pub use keys::{ClientCertificates, CredentialKeysError, ServerKeys, UserKeys, server_config};
pub use revocations::Revocations;

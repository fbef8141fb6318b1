//! The functions that a server offers.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use rustls::pki_types::CertificateDer;

use crate::error::{AuthError, InferenceError};
use crate::metadata::ModelMetadata;
use crate::name::FunctionName;
use crate::tensor::{InferRequest, InferResponse};

/// Credentials that a request came with.
#[derive(Clone, Debug, Default)]
pub struct RequestCredentials {
    /// Certificates of the connection, the caller's own first; TLS has verified them. Empty: none.
    pub certificates: Arc<[CertificateDer<'static>]>,
    /// The token behind `Authorization: Bearer`.
    pub token: Option<String>,
    /// Address of the other end.
    pub peer: Option<SocketAddr>,
}

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Name of the user.
    pub user: Arc<str>,
    /// Groups of the user.
    pub groups: Arc<[String]>,
    /// Address of the other end.
    pub address: Option<SocketAddr>,
}

/// A page beside the protocol, such as metrics.
#[derive(Clone, Debug)]
pub struct Page {
    /// Type of the content.
    pub content_type: &'static str,
    /// The content.
    pub content: Bytes,
}

/// A response, when it is there. Dropping it cancels the call.
pub type InferFuture<'a> =
    Pin<Box<dyn Future<Output = Result<InferResponse, InferenceError>> + Send + 'a>>;

/// The functions that a server offers, and who may call them. Methods are called in the threads of the runtime and
/// must not block.
pub trait Functions: Send + Sync + 'static {
    /// Identifies the caller. Health endpoints need no caller.
    ///
    /// # Errors
    /// When the credentials are missing, invalid or not sufficient.
    fn authenticate(&self, credentials: &RequestCredentials) -> Result<Principal, AuthError>;

    /// Whether calls can be accepted now.
    fn is_ready(&self) -> bool;

    /// The functions that the caller may call, in the order of a list.
    fn list(&self, caller: &Principal) -> Vec<FunctionName>;

    /// Describes a function.
    ///
    /// # Errors
    /// [`InferenceError::NotFound`] when there is none that the caller may call.
    fn metadata(
        &self,
        caller: &Principal,
        name: &FunctionName,
    ) -> Result<Arc<ModelMetadata>, InferenceError>;

    /// Calls a function, usually by [`infer_on_grid`](crate::infer_on_grid). If the future is dropped because the
    /// caller is gone, the call has to be cancelled.
    fn infer<'a>(&'a self, caller: &'a Principal, request: InferRequest) -> InferFuture<'a>;

    /// A page beside the protocol. `query` is the part of the URL behind `?`. None: there is no such page.
    ///
    /// # Errors
    /// When the credentials do not admit to it.
    fn page(
        &self,
        path: &str,
        query: Option<&str>,
        credentials: &RequestCredentials,
    ) -> Result<Option<Page>, AuthError> {
        let _ = (path, query, credentials);
        Ok(None)
    }

    /// A TLS handshake has failed.
    fn refused(&self, peer: SocketAddr, error: &io::Error) {
        let _ = (peer, error);
    }
}

//! What all connections of a server share.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::InferenceError;
use crate::functions::{Functions, Principal};
use crate::metadata::{ModelMetadata, VERSION};
use crate::name::FunctionName;
use crate::options::Options;

/// The permit to run a call. It goes with the response, as an extension, until that is sent.
#[derive(Clone)]
pub(crate) struct RequestPermit(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl RequestPermit {
    fn new(permit: OwnedSemaphorePermit) -> RequestPermit {
        RequestPermit(Arc::new(Mutex::new(Some(permit))))
    }

    pub(crate) fn take(&self) -> Option<OwnedSemaphorePermit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What all connections of a server share.
pub(crate) struct Service {
    pub(crate) functions: Arc<dyn Functions>,
    pub(crate) options: Options,
    permits: Arc<Semaphore>,
}

impl Service {
    pub(crate) fn new(functions: Arc<dyn Functions>, options: Options) -> Service {
        let permits = Arc::new(Semaphore::new(options.max_running.min(Semaphore::MAX_PERMITS)));
        Service { functions, options, permits }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.functions.is_ready()
    }

    /// State of all functions in the index of the repository.
    pub(crate) fn state(&self) -> &'static str {
        if self.is_ready() { "READY" } else { "UNAVAILABLE" }
    }

    pub(crate) fn extensions(&self) -> &'static [&'static str] {
        &["binary_tensor_data"]
    }

    /// Describes a function of the requested version.
    pub(crate) fn metadata(
        &self,
        caller: &Principal,
        name: &FunctionName,
        version: &str,
    ) -> Result<Arc<ModelMetadata>, InferenceError> {
        if !version.is_empty() && version != VERSION {
            return Err(InferenceError::NotFound {
                name: name.to_string(),
                version: version.chars().take(40).collect(),
            });
        }
        self.functions.metadata(caller, name)
    }

    /// The permit to run a call.
    pub(crate) fn permit(&self) -> Result<RequestPermit, InferenceError> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        permit.map(RequestPermit::new).map_err(|_| InferenceError::Busy {
            reason: format!(
                "{} calls are running, the limit of this server",
                self.options.max_running
            ),
            retry_after: Some(self.options.retry_after),
        })
    }
}

//! Errors of requests, and their codes in HTTP and gRPC.

use std::time::Duration;

use gridrpc_client::{GridError, SubmitError};
use gridrpc_core::{End, Loss, Refusal};
use gridrpc_invoke::{ArgumentError, LandError, PrepareError};
use http::StatusCode;
use thiserror::Error;
use tonic::Code;

use crate::datatype::DataType;

/// Reason why a caller is not admitted.
#[derive(Debug, Error)]
pub enum AuthError {
    /// The request has no credentials that identify its caller.
    #[error("the request has no valid credentials: {0}")]
    Unauthenticated(String),
    /// The caller is known, but may not do this.
    #[error("{0}")]
    Forbidden(String),
}

/// Reason why a tensor's data cannot be read.
#[derive(Debug, Error, PartialEq)]
pub enum DataError {
    /// The protocol has no such datatype.
    #[error("has the datatype `{0}`, which the protocol does not define")]
    UnknownDatatype(String),
    /// Data of this datatype cannot be sent in this form.
    #[error("has the datatype {0}, which can only be sent as binary data")]
    BinaryOnly(DataType),
    /// A dimension is negative.
    #[error("has a negative dimension: {0}")]
    NegativeDimension(i64),
    /// The number of elements overflows.
    #[error("has the shape {0:?}, whose number of elements overflows")]
    TooManyElements(Vec<u64>),
    /// The data are too short or too long.
    #[error("has {found} bytes of data, but {datatype} of shape {shape:?} needs {expected}")]
    Length {
        /// The declared datatype.
        datatype: DataType,
        /// The declared shape.
        shape: Vec<u64>,
        /// Number of bytes of that shape.
        expected: u64,
        /// Number of bytes received.
        found: u64,
    },
    /// There are more or fewer elements than the shape says.
    #[error("has {found} elements, but shape {shape:?} needs {expected}")]
    Count {
        /// The declared shape.
        shape: Vec<u64>,
        /// Number of elements of that shape.
        expected: u64,
        /// Number of elements received.
        found: u64,
    },
    /// An element of a BYTES tensor ends behind the data.
    #[error("has a string at byte {at} that ends behind the data")]
    TruncatedString {
        /// Where the string's length is.
        at: usize,
    },
    /// An element is not a value of the datatype.
    #[error("has invalid data for {datatype}: {problem}")]
    Element {
        /// The declared datatype.
        datatype: DataType,
        /// The problem.
        problem: String,
    },
    /// The data are missing.
    #[error("has no data")]
    Missing,
    /// The data came in two forms.
    #[error("has both typed contents and raw contents")]
    Twice,
}

/// Reason why a request cannot be read.
#[derive(Debug, Error)]
pub enum MalformedRequest {
    /// The JSON text is not a request.
    #[error("the request is not valid JSON for this endpoint: {0}")]
    Json(#[from] serde_json::Error),
    /// A header has an invalid value.
    #[error("the header `{name}` has an invalid value: {value:?}")]
    Header {
        /// Name of the header.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// The length of the JSON header exceeds the body.
    #[error("`Inference-Header-Content-Length` is {header}, but the body has {body} bytes")]
    HeaderLength {
        /// The declared length.
        header: usize,
        /// Length of the body.
        body: usize,
    },
    /// Binary data of the inputs end behind the body, or before it.
    #[error("the inputs declare {declared} bytes of binary data, but the body has {found}")]
    BinaryLength {
        /// Sum of the declared lengths.
        declared: u64,
        /// Number of bytes behind the JSON header.
        found: u64,
    },
    /// The raw contents do not belong to the inputs.
    #[error("the request has {inputs} inputs, but {raw} raw contents")]
    RawCount {
        /// Number of inputs.
        inputs: usize,
        /// Number of raw contents.
        raw: usize,
    },
    /// A tensor cannot be read.
    #[error("input `{name}` {problem}")]
    Tensor {
        /// Name of the tensor.
        name: String,
        /// The problem.
        problem: DataError,
    },
    /// A parameter has an invalid value.
    #[error("the parameter `{name}` {expected}")]
    Parameter {
        /// Name of the parameter.
        name: String,
        /// The expected value.
        expected: &'static str,
    },
    /// The name is not a function's.
    #[error("`{0}` is not a function's name: write `module/function` or `module.function`")]
    FunctionName(String),
    /// The encoding of the body is unknown or its data are damaged.
    #[error("the body cannot be decompressed as `{encoding}`: {problem}")]
    Encoding {
        /// Name of the encoding.
        encoding: String,
        /// The problem.
        problem: String,
    },
    /// The body ended early.
    #[error("the body could not be received: {0}")]
    Body(String),
}

/// Reason why a request fails.
#[derive(Debug, Error)]
pub enum InferenceError {
    /// The request cannot be read.
    #[error(transparent)]
    Malformed(#[from] MalformedRequest),
    /// An input does not match its parameter.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// There is no such function, or the caller may not see it.
    #[error("there is no function `{name}`{}", version_hint(.version))]
    NotFound {
        /// The requested name.
        name: String,
        /// The requested version; empty: any.
        version: String,
    },
    /// There is no such page.
    #[error("there is no endpoint `{0}`")]
    NoEndpoint(String),
    /// The endpoint has other methods.
    #[error("this endpoint accepts {allowed}")]
    Method {
        /// The accepted method.
        allowed: &'static str,
    },
    /// The caller is not admitted.
    #[error(transparent)]
    Denied(#[from] AuthError),
    /// The function needs something that the protocol lacks.
    #[error("{function} cannot be called by this protocol: {reason}")]
    Unsupported {
        /// The function.
        function: String,
        /// The reason.
        reason: &'static str,
    },
    /// The request is larger than the server accepts.
    #[error("the request has more than {limit} bytes, the limit of this server")]
    RequestTooLarge {
        /// The limit, bytes.
        limit: usize,
    },
    /// The result would be larger than the server allows.
    #[error("{function}: results and work arrays have {size} bytes, above the limit of {limit}")]
    ResultTooLarge {
        /// The function.
        function: String,
        /// Size of the results and work arrays, bytes.
        size: u64,
        /// The limit, bytes.
        limit: u64,
    },
    /// The request did not arrive in time.
    #[error("the request did not arrive within {} s", .limit.as_secs_f64())]
    Slow {
        /// The limit.
        limit: Duration,
    },
    /// The server is busy.
    #[error("{reason}; try again later")]
    Busy {
        /// The exhausted resource.
        reason: String,
        /// When to try again, if that can be estimated.
        retry_after: Option<Duration>,
    },
    /// A limit of the caller is reached.
    #[error("{message}")]
    LimitReached {
        /// The limit, and the caller's use of it.
        message: String,
        /// When to try again, if that helps.
        retry_after: Option<Duration>,
    },
    /// The function has raised an error.
    #[error("{function}: {message}")]
    Raised {
        /// The function.
        function: String,
        /// Type of the error.
        error: String,
        /// Its message.
        message: String,
    },
    /// The call ended without an answer.
    #[error("{function}: {}", ended(.end))]
    Ended {
        /// The function.
        function: String,
        /// The reason.
        end: End,
    },
    /// The grid does not accept the call.
    #[error("{function}: {error}")]
    Grid {
        /// The function.
        function: String,
        /// The reason.
        error: GridError,
    },
    /// The system refused memory or a thread.
    #[error("{0}")]
    System(String),
}

fn version_hint(version: &str) -> String {
    if version.is_empty() { String::new() } else { format!(" of version `{version}`") }
}

fn ended(end: &End) -> String {
    match end {
        End::Cancelled => "the call was cancelled".into(),
        End::DeadlineExceeded(_) => "the time limit of the call was reached".into(),
        End::RunLimit(limit) => limit.to_string(),
        End::WorkerLost(loss) => lost(loss),
        End::NoWorkers(loss) => format!("no worker could be started: {}", lost(loss)),
        End::NoServer(server, loss) => {
            format!("no worker of server \"{server}\" could be started: {}", lost(loss))
        }
        End::TooManyCores(reason) => reason.to_string(),
        End::NoFittingHost(reason) => reason.to_string(),
        End::DependencyFailed(_) => "a call that it needs has failed".into(),
        End::NestedCallLimit(limit) => limit.to_string(),
        End::NotGathered(reason) => reason.to_string(),
        End::Closed => "the server is shutting down".into(),
    }
}

fn lost(loss: &Loss) -> String {
    match loss.stderr.trim() {
        "" => loss.to_string(),
        stderr => format!("{loss}\n{stderr}"),
    }
}

/// When to try again if nothing better is known.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl InferenceError {
    pub(crate) fn from_submit(function: &str, error: SubmitError) -> InferenceError {
        match error {
            SubmitError::Full(_) => InferenceError::Busy {
                reason: "too many calls wait for workers".into(),
                retry_after: Some(RETRY_AFTER),
            },
            SubmitError::Failed(error) => {
                InferenceError::Grid { function: function.to_owned(), error }
            }
        }
    }

    /// Status code of the answer in REST.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            InferenceError::Malformed(_) | InferenceError::Argument(_) => StatusCode::BAD_REQUEST,
            InferenceError::NotFound { .. } | InferenceError::NoEndpoint(_) => {
                StatusCode::NOT_FOUND
            }
            InferenceError::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            InferenceError::Denied(AuthError::Unauthenticated(_)) => StatusCode::UNAUTHORIZED,
            InferenceError::Denied(AuthError::Forbidden(_)) => StatusCode::FORBIDDEN,
            InferenceError::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
            InferenceError::RequestTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            InferenceError::ResultTooLarge { .. } => StatusCode::BAD_REQUEST,
            InferenceError::Slow { .. } => StatusCode::REQUEST_TIMEOUT,
            InferenceError::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
            InferenceError::LimitReached { .. } => StatusCode::TOO_MANY_REQUESTS,
            InferenceError::Ended { end, .. } => match end {
                End::DeadlineExceeded(_) | End::RunLimit { .. } => StatusCode::GATEWAY_TIMEOUT,
                End::Closed | End::NoWorkers(_) | End::NoServer(..) => {
                    StatusCode::SERVICE_UNAVAILABLE
                }
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            },
            InferenceError::Grid { error, .. } => match error {
                GridError::Refused(Refusal::Quota { .. }) => StatusCode::TOO_MANY_REQUESTS,
                GridError::Refused(_) => StatusCode::SERVICE_UNAVAILABLE,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            },
            InferenceError::Raised { .. } | InferenceError::System(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        }
    }

    /// Status code of the answer in gRPC.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            InferenceError::Malformed(_) | InferenceError::Argument(_) => Code::InvalidArgument,
            InferenceError::NotFound { .. } => Code::NotFound,
            InferenceError::NoEndpoint(_) | InferenceError::Method { .. } => Code::Unimplemented,
            InferenceError::Denied(AuthError::Unauthenticated(_)) => Code::Unauthenticated,
            InferenceError::Denied(AuthError::Forbidden(_)) => Code::PermissionDenied,
            InferenceError::Unsupported { .. } => Code::Unimplemented,
            InferenceError::RequestTooLarge { .. } => Code::ResourceExhausted,
            InferenceError::ResultTooLarge { .. } => Code::InvalidArgument,
            InferenceError::Slow { .. } => Code::DeadlineExceeded,
            InferenceError::Busy { .. } | InferenceError::LimitReached { .. } => {
                Code::ResourceExhausted
            }
            InferenceError::Ended { end, .. } => match end {
                End::Cancelled => Code::Cancelled,
                End::DeadlineExceeded(_) | End::RunLimit { .. } => Code::DeadlineExceeded,
                End::Closed | End::NoWorkers(_) | End::NoServer(..) => Code::Unavailable,
                _ => Code::Internal,
            },
            InferenceError::Grid { error, .. } => match error {
                GridError::Refused(Refusal::Quota { .. }) => Code::ResourceExhausted,
                GridError::Refused(_) => Code::Unavailable,
                _ => Code::Internal,
            },
            InferenceError::Raised { .. } | InferenceError::System(_) => Code::Internal,
        }
    }

    /// When to try again, if that helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            InferenceError::Busy { retry_after, .. }
            | InferenceError::LimitReached { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl From<PrepareError> for InferenceError {
    fn from(error: PrepareError) -> InferenceError {
        match error {
            PrepareError::Argument(error) => InferenceError::Argument(error),
            error @ (PrepareError::Limit(_)
            | PrepareError::Interface(_)
            | PrepareError::System { .. }) => InferenceError::System(error.to_string()),
        }
    }
}

impl From<LandError> for InferenceError {
    fn from(error: LandError) -> InferenceError {
        InferenceError::System(error.to_string())
    }
}

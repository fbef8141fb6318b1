//! The protocol over gRPC: the service `inference.GRPCInferenceService`.

mod convert;
mod messages;

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use prost::Message;
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use crate::body::{Body, BoxError, SlowBody};
use crate::error::InferenceError;
use crate::functions::RequestCredentials;
use crate::grpc::messages::{
    ModelIndex, ModelInferRequest, ModelInferResponse, ModelMetadataRequest, ModelMetadataResponse,
    ModelReadyRequest, ModelReadyResponse, RepositoryIndexRequest, RepositoryIndexResponse,
    ServerLiveRequest, ServerLiveResponse, ServerMetadataRequest, ServerMetadataResponse,
    ServerReadyRequest, ServerReadyResponse, TensorDescription,
};
use crate::metadata::{TensorMetadata, VERSION};
use crate::name::FunctionName;
use crate::service::Service;
use crate::tensor::{InferRequest, trace_context};

const SERVICE: &str = "/inference.GRPCInferenceService/";

/// Room for the names and shapes of a request beside its data, bytes.
const ENVELOPE: usize = 64 << 10;

/// Answers a request.
pub(crate) async fn handle<B>(
    service: &Arc<Service>,
    credentials: RequestCredentials,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let path = request.uri().path().to_owned();
    let service = Arc::clone(service);
    let limit = service.options.max_request_bytes;
    let response = match path.strip_prefix(SERVICE) {
        Some("ServerLive") => {
            unary(request, limit, |_: ServerLiveRequest| async {
                Ok(ServerLiveResponse { live: true })
            })
            .await
        }
        Some("ServerReady") => {
            unary(request, limit, move |_: ServerReadyRequest| async move {
                Ok(ServerReadyResponse { ready: service.is_ready() })
            })
            .await
        }
        Some("ServerMetadata") => {
            unary(request, limit, move |_: ServerMetadataRequest| async move {
                Ok(ServerMetadataResponse {
                    name: service.options.name.clone(),
                    version: service.options.version.clone(),
                    extensions: service.extensions().iter().map(ToString::to_string).collect(),
                })
            })
            .await
        }
        Some("ModelReady") => {
            unary(request, limit, move |message: ModelReadyRequest| async move {
                let caller = service.functions.authenticate(&credentials)?;
                let name: FunctionName = message.name.parse()?;
                let found = service.metadata(&caller, &name, &message.version);
                match found {
                    Ok(_) => Ok(ModelReadyResponse { ready: service.is_ready() }),
                    Err(InferenceError::NotFound { .. }) => Ok(ModelReadyResponse { ready: false }),
                    Err(error) => Err(error),
                }
            })
            .await
        }
        Some("ModelMetadata") => {
            unary(request, limit, move |message: ModelMetadataRequest| async move {
                let caller = service.functions.authenticate(&credentials)?;
                let name: FunctionName = message.name.parse()?;
                let metadata = service.metadata(&caller, &name, &message.version)?;
                Ok(ModelMetadataResponse {
                    name: metadata.name.clone(),
                    versions: metadata.versions.clone(),
                    platform: metadata.platform.clone(),
                    inputs: metadata.inputs.iter().map(description).collect(),
                    outputs: metadata.outputs.iter().map(description).collect(),
                })
            })
            .await
        }
        Some("RepositoryIndex") => {
            unary(request, limit, move |_: RepositoryIndexRequest| async move {
                let caller = service.functions.authenticate(&credentials)?;
                let state = service.state();
                let index = |name: &FunctionName| ModelIndex {
                    name: name.to_string(),
                    version: VERSION.to_owned(),
                    state: state.to_owned(),
                    reason: String::new(),
                };
                let models = service.functions.list(&caller).iter().map(index).collect();
                Ok(RepositoryIndexResponse { models })
            })
            .await
        }
        Some("ModelInfer") => infer(service, credentials, request).await,
        _ => Status::unimplemented("there is no such method").into_http(),
    };
    response.map(Body::grpc)
}

async fn infer<B>(
    service: Arc<Service>,
    credentials: RequestCredentials,
    request: Request<B>,
) -> Response<tonic::body::Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    // Both before the body is received.
    let admitted = service
        .functions
        .authenticate(&credentials)
        .map_err(InferenceError::from)
        .and_then(|caller| Ok((caller, service.permit()?)));
    let (caller, permit) = match admitted {
        Ok(admitted) => admitted,
        Err(error) => return status(&error).into_http(),
    };
    let limit = service.options.max_request_bytes.saturating_add(ENVELOPE);
    let trace = trace_context(request.headers());
    let mut response = unary(request, limit, move |mut message: ModelInferRequest| async move {
        let name: FunctionName = message.model_name.parse()?;
        service.metadata(&caller, &name, &message.model_version)?;
        let id = std::mem::take(&mut message.id);
        let request = convert::request(name.clone(), message)?;
        let request = InferRequest { trace, ..request };
        let response = service.functions.infer(&caller, request).await?;
        let message: ModelInferResponse = convert::response(&name, id, response)?;
        Ok(message)
    })
    .await;
    response.extensions_mut().insert(permit);
    response
}

fn description(tensor: &TensorMetadata) -> TensorDescription {
    TensorDescription {
        name: tensor.name.clone(),
        datatype: tensor.datatype.clone(),
        shape: tensor.shape.clone(),
    }
}

pub(crate) fn status(error: &InferenceError) -> Status {
    // Clients and proxies limit headers to 8 KB, and the text may grow three times as it is encoded.
    const MOST: usize = 2000;
    let message: String = error.to_string().chars().take(MOST).collect();
    Status::new(error.code(), message)
}

/// Receives a message of at most `limit` bytes, and sends the answer.
async fn unary<B, Q, A, F, R>(
    request: Request<B>,
    limit: usize,
    answer: F,
) -> Response<tonic::body::Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
    Q: Message + Default + Send + 'static,
    A: Message + Send + 'static,
    F: FnOnce(Q) -> R + Send,
    R: Future<Output = Result<A, InferenceError>> + Send,
{
    let request = request.map(|body| {
        body.map_err(|error| match error.into().downcast::<SlowBody>() {
            Ok(slow) => Status::new(Code::DeadlineExceeded, slow.to_string()),
            Err(error) => Status::from_error(error),
        })
    });
    Grpc::new(ProstCodec::<A, Q>::default())
        .max_decoding_message_size(limit)
        .max_encoding_message_size(usize::MAX)
        .unary(SingleRequest(Some(answer)), request)
        .await
}

/// A service for one request.
struct SingleRequest<F>(Option<F>);

impl<Q, A, F, R> UnaryService<Q> for SingleRequest<F>
where
    F: FnOnce(Q) -> R + Send,
    R: Future<Output = Result<A, InferenceError>> + Send,
{
    type Response = A;
    type Future = Answer<R>;

    fn call(&mut self, request: tonic::Request<Q>) -> Answer<R> {
        Answer(self.0.take().map(|answer| Box::pin(answer(request.into_inner()))))
    }
}

/// The answer of a service, with the errors of gRPC.
struct Answer<R>(Option<Pin<Box<R>>>);

impl<A, R: Future<Output = Result<A, InferenceError>>> Future for Answer<R> {
    type Output = Result<tonic::Response<A>, Status>;

    fn poll(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        let Some(answer) = &mut self.get_mut().0 else {
            return std::task::Poll::Ready(Err(Status::internal("the service was used twice")));
        };
        let answer = answer.as_mut().poll(context);
        answer.map(|answer| answer.map(tonic::Response::new).map_err(|error| status(&error)))
    }
}

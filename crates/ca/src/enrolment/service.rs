//! The service of the authority: HTTP over TLS, one request for each connection.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::version::TLS13;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::attempts::Attempts;
use super::message::{EnrolmentRequest, EnrolmentResponse, LIMIT, PATH};
use super::{EnrolmentError, Refusal};
use crate::{Authority, AuthorityError, Issued};

/// Time for a connection, from its start to its end.
const LONGEST: Duration = Duration::from_secs(15);
/// Size of the buffer for a request's headers, bytes.
const BUFFER: usize = 16 << 10;
/// Pause after the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// What happened at the service.
#[derive(Debug)]
pub enum EnrolmentEvent {
    /// A user has got a certificate.
    Enrolled {
        /// Where the user is.
        address: IpAddr,
        /// The certificate.
        issued: Issued,
    },
    /// A request was refused.
    Refused {
        /// Where it came from.
        address: IpAddr,
        /// Why.
        refusal: Refusal,
        /// What happened at the authority.
        error: Option<AuthorityError>,
    },
}

/// Gives certificates to whoever presents a token of the authority.
pub struct EnrolmentService {
    listener: std::net::TcpListener,
    authority: Authority,
    tls: ServerConfig,
}

impl EnrolmentService {
    /// Listens at an address.
    ///
    /// # Errors
    /// When the address cannot be used, or the authority cannot sign.
    pub fn bind(
        authority: Authority,
        address: SocketAddr,
    ) -> Result<EnrolmentService, EnrolmentError> {
        let listen = |error| EnrolmentError::Listen { address: address.to_string(), error };
        let (chain, key) = authority.service_certificate()?;
        let provider = Arc::new(ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        let listener = std::net::TcpListener::bind(address).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        Ok(EnrolmentService { listener, authority, tls })
    }

    /// The address, with the port that the system has chosen.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends. `report` gets each event, from any thread.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn run(
        self,
        report: impl Fn(EnrolmentEvent) + Send + Sync + 'static,
    ) -> Result<Infallible, EnrolmentError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(EnrolmentError::Start)?;
        let office = Arc::new(EnrolmentServer {
            authority: self.authority,
            attempts: Mutex::default(),
            report: Box::new(report),
        });
        let acceptor = TlsAcceptor::from(Arc::new(self.tls));
        runtime.block_on(accept(self.listener, office, acceptor))
    }
}

/// Accepts connections until the process ends.
async fn accept(
    listener: std::net::TcpListener,
    office: Arc<EnrolmentServer>,
    acceptor: TlsAcceptor,
) -> Result<Infallible, EnrolmentError> {
    let listener = TcpListener::from_std(listener).map_err(EnrolmentError::Start)?;
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // There are no descriptors, or the other end is gone already.
            sleep(PAUSE).await;
            continue;
        };
        let address = peer.ip();
        if !office.attempts().connected(address, Instant::now()) {
            continue;
        }
        let (office, acceptor) = (Arc::clone(&office), acceptor.clone());
        tokio::spawn(async move {
            let _ = timeout(LONGEST, connection(&office, acceptor, stream, address)).await;
            office.attempts().disconnected(address, Instant::now());
        });
    }
}

struct EnrolmentServer {
    authority: Authority,
    attempts: Mutex<Attempts>,
    report: Box<dyn Fn(EnrolmentEvent) + Send + Sync>,
}

impl EnrolmentServer {
    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signs the request in a body. It waits for other commands of the authority.
    fn enrol(&self, body: &[u8]) -> Result<(String, Issued), (Refusal, Option<AuthorityError>)> {
        let request: EnrolmentRequest = serde_json::from_slice(body)
            .map_err(|error| (Refusal::BadRequest { message: error.to_string() }, None))?;
        match self.authority.enrol(&request.token, &request.request) {
            Ok(signed) => Ok((signed.pem, signed.issued)),
            Err(error) => Err((Refusal::from(&error), Some(error))),
        }
    }

    fn refuse(
        &self,
        address: IpAddr,
        refusal: Refusal,
        error: Option<AuthorityError>,
    ) -> EnrolmentResponse {
        // Those who wait do not wait longer, and what the authority cannot do is not the user's fault.
        if !matches!(refusal, Refusal::TooMany { .. } | Refusal::Unavailable) {
            self.attempts().refused(address, Instant::now());
        }
        (self.report)(EnrolmentEvent::Refused { address, refusal: refusal.clone(), error });
        EnrolmentResponse::Refused(refusal)
    }
}

async fn connection(
    office: &Arc<EnrolmentServer>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    address: IpAddr,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TokioIo::new(acceptor.accept(stream).await?);
    let answer = service_fn(|request| answer(Arc::clone(office), address, request));
    http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .max_buf_size(BUFFER)
        .serve_connection(stream, answer)
        .await?;
    Ok(())
}

async fn answer(
    office: Arc<EnrolmentServer>,
    address: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path() != PATH {
        return Ok(empty(StatusCode::NOT_FOUND));
    }
    if request.method() != Method::POST {
        return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
    }
    let delay = office.attempts().delay(address, Instant::now());
    if let Some(delay) = delay {
        let seconds = delay.as_secs() + 1;
        let refused = office.refuse(address, Refusal::TooMany { seconds }, None);
        return Ok(response(StatusCode::TOO_MANY_REQUESTS, &refused));
    }
    let Ok(body) = Limited::new(request.into_body(), LIMIT).collect().await else {
        return Ok(empty(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let signing = Arc::clone(&office);
    let body = body.to_bytes();
    let signed = tokio::task::spawn_blocking(move || signing.enrol(&body)).await;
    Ok(match signed.unwrap_or(Err((Refusal::Unavailable, None))) {
        Ok((pem, issued)) => {
            (office.report)(EnrolmentEvent::Enrolled { address, issued });
            response(StatusCode::OK, &EnrolmentResponse::Certificate(pem))
        }
        Err((refusal, error)) => {
            let status = match refusal {
                Refusal::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
                Refusal::BadRequest { .. } => StatusCode::BAD_REQUEST,
                _ => StatusCode::FORBIDDEN,
            };
            response(status, &office.refuse(address, refusal, error))
        }
    })
}

fn response(status: StatusCode, contents: &EnrolmentResponse) -> Response<Full<Bytes>> {
    let mut response = empty(status);
    *response.body_mut() = serde_json::to_vec(contents).unwrap_or_default().into();
    response
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::default();
    *response.status_mut() = status;
    response
}

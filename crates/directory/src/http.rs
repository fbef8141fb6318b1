//! HTTP server of a directory: announcements and lookups as JSON, and pages for people.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gridrpc_server::directory::Announcement;
use gridrpc_server::{log, page};
use gridrpc_transport::certificates::Identity;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use percent_encoding::percent_decode_str;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::pages;
use crate::registry::{AnnouncementError, NotOffered};
use crate::replication::Replication;
use crate::shared::Shared;

/// Longest announcement, bytes.
const LONGEST: usize = 64 << 20;
/// Most connections at a time.
const MOST_CONNECTIONS: usize = 4096;
/// Time limit of a handshake and of the body of a request.
const LIMIT: Duration = Duration::from_secs(20);
/// Time limit of the head of a request. Idle connections end by it, too.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Pause after the system has refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";

/// Serves on each of these sockets, until it is dropped.
pub(crate) async fn serve(
    sockets: Vec<TcpListener>,
    tls: Option<ServerConfig>,
    shared: Arc<Shared>,
) {
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut listeners = JoinSet::new();
    for socket in sockets {
        let socket = match tokio::net::TcpListener::from_std(socket) {
            Ok(socket) => socket,
            Err(error) => {
                log::log(log::Level::Error, "cannot listen", &[("reason", &error)]);
                continue;
            }
        };
        let (acceptor, shared, slots) = (acceptor.clone(), Arc::clone(&shared), Arc::clone(&slots));
        listeners.spawn(async move {
            loop {
                let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
                let Ok((stream, peer)) = socket.accept().await else {
                    // There are no descriptors, or the other end is gone already.
                    sleep(PAUSE).await;
                    continue;
                };
                let (acceptor, shared) = (acceptor.clone(), Arc::clone(&shared));
                tokio::spawn(async move {
                    let _slot = slot;
                    let _ = stream.set_nodelay(true);
                    let Some(acceptor) = acceptor else {
                        return talk(stream, Peer { address: peer, user: User::Local }, shared)
                            .await;
                    };
                    let Ok(Ok(stream)) = timeout(LIMIT, acceptor.accept(stream)).await else {
                        return;
                    };
                    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
                    let user = User::of(certificates.first());
                    talk(stream, Peer { address: peer, user }, shared).await;
                });
            }
        });
    }
    while listeners.join_next().await.is_some() {}
}

/// Who makes requests.
#[derive(Clone, Debug)]
enum User {
    /// Some user of this machine: the connection has no certificates.
    Local,
    /// Someone without a certificate.
    Unknown,
    /// The user of a certificate.
    Known(Box<Identity>),
}

#[derive(Clone, Debug)]
struct Peer {
    address: SocketAddr,
    user: User,
}

impl User {
    fn of(certificate: Option<&CertificateDer<'_>>) -> User {
        let identity = certificate.and_then(|certificate| Identity::of(certificate).ok());
        identity.map_or(User::Unknown, |identity| User::Known(Box::new(identity)))
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    shared: Arc<Shared>,
) {
    let answer = service_fn(move |request| {
        let (peer, shared) = (peer.clone(), Arc::clone(&shared));
        async move { Ok::<_, Infallible>(answer(&shared, &peer, request).await) }
    });
    // A broken connection concerns nobody else.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

type Answer = Response<Full<Bytes>>;

async fn answer(shared: &Shared, peer: &Peer, request: Request<Incoming>) -> Answer {
    // Pages of other sites are not to reach a directory on this machine.
    if request.headers().contains_key(ORIGIN) {
        return failure(StatusCode::FORBIDDEN, "requests from web pages are not allowed");
    }
    if let User::Known(identity) = &peer.user
        && shared.revocations.is_revoked(identity)
    {
        return failure(StatusCode::FORBIDDEN, "the certificate has been revoked");
    }
    let path = request.uri().path().to_owned();
    match (request.method(), path.as_str()) {
        (&Method::POST, "/announce") => announce(shared, peer, request.into_body()).await,
        (&Method::GET, _) => match &peer.user {
            User::Unknown if !shared.options.is_public => {
                let why =
                    "present a certificate: this directory answers only users of its authority";
                failure(StatusCode::UNAUTHORIZED, why)
            }
            _ => get(shared, &path, request.uri().query().unwrap_or("")),
        },
        _ => failure(StatusCode::METHOD_NOT_ALLOWED, "use GET, or POST for /announce"),
    }
}

async fn announce(shared: &Shared, peer: &Peer, body: Incoming) -> Answer {
    let user = match &peer.user {
        User::Local => "(local)",
        User::Unknown => {
            return failure(StatusCode::UNAUTHORIZED, "servers present a certificate of a user");
        }
        User::Known(identity) => {
            if let Some(group) = &shared.options.announcers
                && !identity.groups.contains(group)
            {
                let why = format!("user `{}` is not in the group `{group}`", identity.user);
                return failure(StatusCode::FORBIDDEN, &why);
            }
            &identity.user
        }
    };
    let body = match timeout(LIMIT, Limited::new(body, LONGEST).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return failure(StatusCode::BAD_REQUEST, &error.to_string()),
        Err(_) => return failure(StatusCode::REQUEST_TIMEOUT, "the announcement took too long"),
    };
    let announcement: Announcement = match serde_json::from_slice(&body) {
        Ok(announcement) => announcement,
        Err(error) => {
            let why = format!("this is no announcement of a server: {error}");
            return failure(StatusCode::BAD_REQUEST, &why);
        }
    };
    match shared.announce(announcement, user) {
        Ok(announced) => json(StatusCode::OK, &announced),
        Err(error) => {
            log::warning(
                "an announcement is refused",
                &[("from", &peer.address), ("user", &user), ("reason", &error)],
            );
            let status = match error {
                AnnouncementError::Owner { .. } => StatusCode::FORBIDDEN,
                AnnouncementError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
                AnnouncementError::Address(_) | AnnouncementError::Interface { .. } => {
                    StatusCode::BAD_REQUEST
                }
            };
            failure(status, &error.to_string())
        }
    }
}

fn get(shared: &Shared, path: &str, query: &str) -> Answer {
    let parameter = |name: &str| {
        let values = query.split('&').filter_map(|pair| pair.split_once('='));
        let value = values.filter(|(key, _)| *key == name).map(|(_, value)| value).next();
        let spaced = value.unwrap_or_default().replace('+', " ");
        percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
    };
    match path {
        "/status" => {
            let (servers, functions) =
                shared.read(|registry, now| (registry.servers(now), registry.search("", now)));
            let status = json!({
                "version": env!("CARGO_PKG_VERSION"),
                "pid": std::process::id(),
                "uptime": shared.now().as_secs_f64(),
                "servers": servers,
                "functions": functions.len(),
                "etcd": shared.replication.as_ref().map(Replication::status),
            });
            json(StatusCode::OK, &status)
        }
        "/functions" => {
            let text = parameter("search");
            json(StatusCode::OK, &shared.read(|registry, now| registry.search(&text, now)))
        }
        "/lookup" => {
            let name = parameter("function");
            let found = shared.read(|registry, now| {
                let offers = registry.offers(&name, now)?;
                // Programs have it from the server that they call.
                let interface = (parameter("interface") != "no")
                    .then(|| registry.function(&name).map(|(one, _)| one.text.clone()));
                Ok(json!({ "function": name, "offers": offers, "interface": interface }))
            });
            match found {
                Ok(offers) => json(StatusCode::OK, &offers),
                Err(error @ NotOffered { .. }) => {
                    failure(StatusCode::NOT_FOUND, &error.to_string())
                }
            }
        }
        "/" => {
            let search = parameter("search");
            let (functions, servers) =
                shared.read(|registry, now| (registry.search(&search, now), registry.servers(now)));
            respond(StatusCode::OK, HTML, pages::index(&search, &functions, &servers))
        }
        "/page.css" => respond(StatusCode::OK, "text/css; charset=utf-8", page::STYLE),
        _ => {
            let name = path
                .strip_prefix("/function/")
                .map(|name| percent_decode_str(name).decode_utf8_lossy());
            let Some(name) = name else {
                return failure(StatusCode::NOT_FOUND, "there is no such page");
            };
            let found = shared.read(|registry, now| {
                let offers = registry.offers(&name, now)?;
                let http = offers.iter().find_map(|offer| {
                    registry.entry(&offer.server.address)?.announcement.http.clone()
                });
                let function = registry.function(&name).map(|(_, function)| function);
                Ok(pages::function(&name, function.as_ref(), &offers, http.as_deref()))
            });
            match found {
                Ok(html) => respond(StatusCode::OK, HTML, html),
                Err(error @ NotOffered { .. }) => {
                    failure(StatusCode::NOT_FOUND, &error.to_string())
                }
            }
        }
    }
}

fn respond(status: StatusCode, content_type: &'static str, content: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(content.into()));
    *response.status_mut() = status;
    let value = hyper::header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

fn json(status: StatusCode, value: &impl serde::Serialize) -> Answer {
    // It fails only for maps whose keys are not texts.
    respond(status, JSON, serde_json::to_vec(value).unwrap_or_default())
}

fn failure(status: StatusCode, why: &str) -> Answer {
    json(status, &json!({ "error": why }))
}

//! Dialling a server that admits users by certificate.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};
use thiserror::Error as ThisError;

use super::attempts::{DialFailure, DialledStream, Dialling, Encryption, Failure};
use crate::addresses::with_port;
use crate::certificates::{UserKeys, Utc, system};
use crate::listener::ADMITTED;
use crate::{Tls, Transport};

/// Reason why a server cannot be used.
#[derive(Debug)]
pub struct ServerDialError {
    /// Host of the server, as it was given.
    pub host: String,
    /// Port of the server.
    pub port: u16,
    /// What happened.
    pub failure: ServerFailure,
}

/// Outcome of dialling a server.
#[derive(Debug, ThisError)]
pub enum ServerFailure {
    /// The host has no address, or is not a name.
    #[error("the host is unknown: {reason}")]
    UnknownHost {
        /// Answer of the resolver.
        reason: String,
    },
    /// Nothing listens at the port.
    #[error("the connection was refused")]
    Refused,
    /// The network does not reach the host.
    #[error("the host cannot be reached: {error}")]
    Unreachable {
        /// The system's answer.
        error: io::Error,
    },
    /// The server has not answered in time.
    #[error("no answer within {} s, while {stage}", .after.as_secs_f64())]
    Timeout {
        /// The time limit.
        after: Duration,
        /// The unanswered request.
        stage: DialStage,
    },
    /// The port does not use TLS.
    #[error("the port does not use TLS")]
    NotTls,
    /// The server only supports versions of TLS before 1.3.
    #[error("the server does not support TLS 1.3")]
    OldTls,
    /// None of the trusted authorities has signed the server's certificate.
    #[error("the server's certificate was not signed by a trusted authority")]
    UnknownAuthority,
    /// The server's certificate is for other hosts.
    #[error("the server's certificate is for other names: {}", .names.join(", "))]
    WrongName {
        /// The names in the certificate.
        names: Vec<String>,
    },
    /// The server's certificate is no longer valid.
    #[error("the server's certificate expired on {}, and the clock of this host says {}", Utc(*.until), Utc(*.now))]
    ServerExpired {
        /// End of its validity.
        until: SystemTime,
        /// The time of this host.
        now: SystemTime,
    },
    /// The server's certificate is not valid yet.
    #[error("the server's certificate is valid from {}, and the clock of this host says {}", Utc(*.from), Utc(*.now))]
    ServerNotYetValid {
        /// Start of its validity.
        from: SystemTime,
        /// The time of this host.
        now: SystemTime,
    },
    /// The server's certificate is not valid for another reason.
    #[error("the server's certificate is not valid: {error}")]
    BadServerCertificate {
        /// The problem.
        error: CertificateError,
    },
    /// The server does not trust the authority of the user's certificate.
    #[error("the server does not trust the authority that signed your certificate")]
    UserAuthority,
    /// The user's certificate is not valid at the server's time.
    #[error(
        "the clock of the server says that your certificate has expired, or is not valid yet; it is valid from {} to \
         {}, and the clock of this host says {}", Utc(*.from), Utc(*.until), Utc(*.now)
    )]
    UserExpired {
        /// Start of its validity.
        from: SystemTime,
        /// End of its validity.
        until: SystemTime,
        /// The time of this host.
        now: SystemTime,
    },
    /// The user's certificate has been revoked.
    #[error("your certificate has been revoked")]
    UserRevoked,
    /// The server does not accept the user's certificate for another reason.
    #[error("the server does not accept your certificate ({alert:?})")]
    UserRefused {
        /// The alert of the server.
        alert: AlertDescription,
    },
    /// The server has closed the connection before it has admitted the user.
    #[error("the server closed the connection before it admitted you")]
    Closed,
    /// The server accepts the certificate, but does not speak the protocol of gridrpc.
    #[error("the port belongs to another program than a gridrpc server")]
    NotGridrpc,
    /// The TLS protocol was violated.
    #[error("the TLS handshake failed: {error}")]
    Tls {
        /// The problem.
        error: Error,
    },
    /// The system refuses something that is needed to connect.
    #[error("the connection failed: {error}")]
    Io {
        /// The system's answer.
        error: io::Error,
    },
}

/// Request without an answer in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DialStage {
    /// The name servers, about the address of the host.
    Resolving,
    /// A new connection.
    Connecting,
    /// The TLS handshake.
    Handshake,
    /// The user's certificate.
    Admission,
}

impl ServerDialError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match &self.failure {
            ServerFailure::UnknownHost { .. } => "check the spelling of the host name",
            ServerFailure::Refused => "check the port, and that the server runs",
            ServerFailure::Unreachable { .. } => "check the network of this host",
            ServerFailure::Timeout { stage: DialStage::Resolving, .. } => {
                "check the name servers of this host, or use an IP address"
            }
            ServerFailure::Timeout { stage: DialStage::Connecting, .. } => {
                "check that the server runs, and that its firewall lets this host in"
            }
            ServerFailure::Timeout { stage: DialStage::Handshake, .. } => {
                "check that the port is the one of a gridrpc server"
            }
            ServerFailure::Timeout { stage: DialStage::Admission, .. } | ServerFailure::Closed => {
                "the server may be overloaded: try again, and look into its log"
            }
            ServerFailure::NotTls | ServerFailure::OldTls | ServerFailure::NotGridrpc => {
                "check that the port is the one of a gridrpc server"
            }
            ServerFailure::UnknownAuthority => {
                "`authority.pem` has to come from the owner of this server; if it does, another program answers there"
            }
            ServerFailure::WrongName { .. } => {
                "use one of these names, or let the owner issue a certificate for this name"
            }
            ServerFailure::ServerExpired { .. } => {
                "let the owner of the server renew it, or correct the clock of this host"
            }
            ServerFailure::ServerNotYetValid { .. } => "correct the clock of this host",
            ServerFailure::BadServerCertificate { .. } => {
                "let the owner of the server replace its certificate"
            }
            ServerFailure::UserAuthority => {
                "let the authority of this server sign a certificate for you (`gridrpc ca request`)"
            }
            ServerFailure::UserExpired { until, now, .. } if now > until => {
                "renew the certificate (`gridrpc ca renew`)"
            }
            ServerFailure::UserExpired { .. } => {
                "if the clock of this host is right, let the owner of the server correct the server's"
            }
            ServerFailure::UserRevoked => "ask the authority for a new certificate",
            ServerFailure::UserRefused { .. } => "look into the log of the server for the reason",
            ServerFailure::Tls { .. } => "look into the log of the server for the reason",
            ServerFailure::Io { .. } => "try again",
        }
    }
}

impl fmt::Display for ServerDialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = with_port(&self.host, self.port);
        write!(f, "cannot connect to server `{address}`: {}\nhint: {}", self.failure, self.hint())
    }
}

impl std::error::Error for ServerDialError {}

impl fmt::Display for DialStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DialStage::Resolving => "resolving the host name",
            DialStage::Connecting => "connecting",
            DialStage::Handshake => "negotiating TLS",
            DialStage::Admission => "waiting for the server to check the certificate",
        })
    }
}

/// Connects to a server and proves who this user is. The name in the server's certificate has to be `host`. Returns
/// once the server has accepted the user's certificate; the connection does not block.
///
/// # Errors
/// When the server cannot be reached in time, or one side does not accept the other's certificate.
pub fn dial_server(
    host: &str,
    port: u16,
    keys: &UserKeys,
    timeout: Duration,
) -> Result<Arc<dyn Transport>, ServerDialError> {
    let error = |failure| ServerDialError { host: host.to_owned(), port, failure };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|reason| error(ServerFailure::UnknownHost { reason: reason.to_string() }))?;
    let until = Instant::now() + timeout;
    connect(host, port, Encryption { config: keys.config(), name }, until)
        .and_then(|tls| wait_for_admission(&tls, until, keys.validity()).map(|()| tls))
        .map(|tls| tls as Arc<dyn Transport>)
        .map_err(|failure| error(failure.with_limit(timeout)))
}

fn connect(
    host: &str,
    port: u16,
    encryption: Encryption,
    until: Instant,
) -> Result<Arc<Tls>, ServerFailure> {
    let names = [with_port(host, port)];
    let mut dialling = Dialling::begin(&names, Some(encryption), until)?;
    let Some(winner) = dialling.run()? else {
        // Of several addresses, the one that got furthest tells most.
        let failures = dialling.give_up().0.into_iter().map(|DialFailure { failure, .. }| failure);
        let furthest = failures.max_by_key(progress);
        return Err(furthest.map_or(timeout(DialStage::Resolving), ServerFailure::of));
    };
    match winner.line {
        DialledStream::Encrypted(tls) => Ok(tls),
        _ => Err(ServerFailure::NotTls),
    }
}

/// Reads the server's answer to the user's certificate.
fn wait_for_admission(
    tls: &Tls,
    until: Instant,
    validity: (SystemTime, SystemTime),
) -> Result<(), ServerFailure> {
    let mut answer = [0; ADMITTED.len()];
    let mut count = 0;
    while count < answer.len() {
        match tls.receive_into(&mut answer[count..]) {
            Ok(0) => return Err(ServerFailure::Closed),
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(tls, until)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ServerFailure::of_answer(error, validity)),
        }
    }
    if answer == ADMITTED { Ok(()) } else { Err(ServerFailure::NotGridrpc) }
}

fn wait(tls: &Tls, until: Instant) -> Result<(), ServerFailure> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(timeout(DialStage::Admission));
    }
    let limit = PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
    match poll(&mut [PollFd::new(tls.socket(), PollFlags::POLLIN)], limit) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(io::Error::from(errno).into()),
    }
}

/// How far an attempt got.
fn progress(failure: &Failure) -> u8 {
    match failure {
        Failure::Untried => 0,
        Failure::Unresolved | Failure::Unknown(_) => 1,
        Failure::Silent => 2,
        Failure::Unconnected(_) => 3,
        Failure::Mute => 4,
        Failure::Stranger(_) => 5,
    }
}

fn timeout(stage: DialStage) -> ServerFailure {
    ServerFailure::Timeout { after: Duration::ZERO, stage }
}

impl From<io::Error> for ServerFailure {
    fn from(error: io::Error) -> ServerFailure {
        ServerFailure::Io { error }
    }
}

impl ServerFailure {
    fn with_limit(self, after: Duration) -> ServerFailure {
        match self {
            ServerFailure::Timeout { stage, .. } => ServerFailure::Timeout { after, stage },
            failure => failure,
        }
    }

    fn of(failure: Failure) -> ServerFailure {
        match failure {
            Failure::Unknown(error) => ServerFailure::UnknownHost { reason: error.to_string() },
            Failure::Unresolved => timeout(DialStage::Resolving),
            Failure::Silent | Failure::Untried => timeout(DialStage::Connecting),
            Failure::Mute => timeout(DialStage::Handshake),
            Failure::Unconnected(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                ServerFailure::Refused
            }
            Failure::Unconnected(error) => ServerFailure::Unreachable { error },
            Failure::Stranger(error) => ServerFailure::of_connection(error),
        }
    }

    /// The reason why a server does not admit a user whose certificate has this validity.
    fn of_answer(error: io::Error, (from, until): (SystemTime, SystemTime)) -> ServerFailure {
        match crate::tls::reason(&error) {
            Some(Error::AlertReceived(AlertDescription::CertificateExpired)) => {
                ServerFailure::UserExpired { from, until, now: SystemTime::now() }
            }
            _ => ServerFailure::of_connection(error),
        }
    }

    fn of_connection(error: io::Error) -> ServerFailure {
        match crate::tls::reason(&error) {
            Some(reason) => ServerFailure::of_tls(reason.clone()),
            None => match error.kind() {
                io::ErrorKind::UnexpectedEof
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe => ServerFailure::Closed,
                _ => ServerFailure::Io { error },
            },
        }
    }

    fn of_tls(error: Error) -> ServerFailure {
        match error {
            Error::InvalidMessage(_) if crate::tls::is_not_tls(&error) => ServerFailure::NotTls,
            Error::InvalidCertificate(error) => ServerFailure::of_certificate(error),
            Error::AlertReceived(alert) => ServerFailure::of_alert(alert),
            Error::PeerIncompatible(
                PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                | PeerIncompatible::ServerDoesNotSupportTls12Or13,
            ) => ServerFailure::OldTls,
            error => ServerFailure::Tls { error },
        }
    }

    fn of_certificate(error: CertificateError) -> ServerFailure {
        match error {
            // A foreign authority may have the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                ServerFailure::UnknownAuthority
            }
            CertificateError::NotValidForNameContext { presented, .. } => {
                let names = presented.iter().map(|name| bare(name)).collect();
                ServerFailure::WrongName { names }
            }
            CertificateError::ExpiredContext { time, not_after } => {
                ServerFailure::ServerExpired { until: system(not_after), now: system(time) }
            }
            CertificateError::NotValidYetContext { time, not_before } => {
                ServerFailure::ServerNotYetValid { from: system(not_before), now: system(time) }
            }
            error => ServerFailure::BadServerCertificate { error },
        }
    }

    fn of_alert(alert: AlertDescription) -> ServerFailure {
        match alert {
            AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                ServerFailure::UserAuthority
            }
            AlertDescription::CertificateRevoked => ServerFailure::UserRevoked,
            AlertDescription::ProtocolVersion => ServerFailure::OldTls,
            alert => ServerFailure::UserRefused { alert },
        }
    }
}

/// A name without its kind: rustls gives `DnsName("a.example")`.
fn bare(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"').to_owned()
}

//! An authority for tests, and a server with its certificate.

use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use gridrpc_transport::Transport;
use gridrpc_transport::certificates::{
    CredentialFiles, Credentials, Revocations, ServerKeys, UserKeys,
};
use gridrpc_transport::dial::{ServerDialError, dial_server};
use gridrpc_transport::listener::{Admission, Admitted, HandshakeError, Listener};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber,
};
use time::OffsetDateTime;

pub const SOON: Duration = Duration::from_secs(3);
pub const LONG: Duration = Duration::from_secs(8);

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A folder that ends with its test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("gridrpc-certificates-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        Folder(path)
    }

    pub fn files(&self) -> CredentialFiles {
        CredentialFiles::in_folder(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Seconds of a day.
pub const DAY: i64 = 86_400;

/// A time, seconds from now.
fn after(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::now_utc() + time::Duration::seconds(seconds)
}

pub struct Authority {
    pub certificate: String,
    pub issuer: Issuer<'static, KeyPair>,
}

/// A certificate to be made.
pub struct CertificateRequest<'a> {
    pub user: &'a str,
    pub group: Option<&'a str>,
    pub hosts: &'a [&'a str],
    pub serial: u8,
    /// Start and end of the validity, seconds from now.
    pub valid: (i64, i64),
}

pub const USER: CertificateRequest<'static> =
    CertificateRequest { user: "ann", group: None, hosts: &[], serial: 1, valid: (-DAY, DAY) };
pub const SERVER: CertificateRequest<'static> =
    CertificateRequest { user: "server", group: None, hosts: &["localhost", "127.0.0.1"], ..USER };

impl Authority {
    pub fn new(name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let params = authority_params(name);
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// An authority that this one has signed.
    pub fn intermediate(&self, name: &str, serial: u8) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = authority_params(name);
        params.serial_number = Some(SerialNumber::from_slice(&[serial]));
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// Certificate and key, PEM.
    pub fn issue(&self, wanted: &CertificateRequest) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        (self.certify(wanted, &key), key.serialize_pem())
    }

    pub fn certify(&self, wanted: &CertificateRequest, key: &KeyPair) -> String {
        let hosts: Vec<String> = wanted.hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, wanted.user);
        if let Some(group) = wanted.group {
            params.distinguished_name.push(DnType::OrganizationalUnitName, group);
        }
        params.serial_number = Some(SerialNumber::from_slice(&[wanted.serial]));
        params.extended_key_usages = match wanted.hosts {
            [] => vec![ExtendedKeyUsagePurpose::ClientAuth],
            _ => vec![ExtendedKeyUsagePurpose::ServerAuth],
        };
        (params.not_before, params.not_after) = (after(wanted.valid.0), after(wanted.valid.1));
        params.signed_by(key, &self.issuer).unwrap().pem()
    }

    /// Writes the files of new credentials, which trust `trusted`.
    pub fn write(&self, wanted: &CertificateRequest, trusted: &Authority) -> Folder {
        let folder = Folder::new();
        let (certificate, key) = self.issue(wanted);
        write(&folder.files().certificate, &certificate, 0o644);
        write(&folder.files().key, &key, 0o600);
        write(&folder.files().authority, &trusted.certificate, 0o644);
        folder
    }

    pub fn credentials(&self, wanted: &CertificateRequest, trusted: &Authority) -> Credentials {
        Credentials::read(&self.write(wanted, trusted).files()).unwrap()
    }

    pub fn user(&self, wanted: &CertificateRequest) -> UserKeys {
        UserKeys::new(&self.credentials(wanted, self)).unwrap()
    }

    /// A revocation list, PEM.
    pub fn revoke(&self, serials: &[u8]) -> String {
        let revoked = |serial: &u8| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&[*serial]),
            revocation_time: after(0),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: after(-DAY),
            next_update: after(365 * DAY),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// A listener with certificates, and its reports.
pub struct Server {
    pub listener: Listener,
    pub admitted: Receiver<Admitted>,
    pub refused: Receiver<(SocketAddr, HandshakeError)>,
}

impl Server {
    pub fn new(authority: &Authority) -> Server {
        Server::with(&authority.credentials(&SERVER, authority), Revocations::none())
    }

    pub fn with(credentials: &Credentials, revoked: Revocations) -> Server {
        let (admit, admitted) = channel();
        let (refuse, refused) = channel();
        let admission = Admission::Certificate {
            keys: ServerKeys::new(credentials, revoked).unwrap(),
            // Tests may drop the receiver first.
            refused: Box::new(move |from, reason| drop(refuse.send((from, reason)))),
        };
        let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let admit = move |one| drop(admit.send(one));
        let listener = Listener::open(&addresses, None, admission, admit).unwrap();
        Server { listener, admitted, refused }
    }

    pub fn dial(&self, keys: &UserKeys) -> Result<std::sync::Arc<dyn Transport>, ServerDialError> {
        dial_server("localhost", self.listener.port(), keys, LONG)
    }

    pub fn stranger(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.listener.port())).unwrap()
    }

    pub fn refusal(&self) -> HandshakeError {
        self.refused.recv_timeout(LONG).unwrap().1
    }
}

/// A port where nothing listens.
pub fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

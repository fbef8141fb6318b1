//! Sends any bytes to a listener that admits users by certificate. Nobody is admitted, and the listener continues.

#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use gridrpc_ca::Authority;
use gridrpc_transport::certificates::{CredentialFiles, Credentials, Revocations, ServerKeys};
use gridrpc_transport::listener::{ADMITTED, Admission, Listener};
use libfuzzer_sys::fuzz_target;
use nix::sys::socket::{setsockopt, sockopt};

/// Number of connections that were sent so far.
static SENT: AtomicU64 = AtomicU64::new(0);

fn listener() -> &'static Listener {
    static LISTENER: OnceLock<Listener> = OnceLock::new();
    LISTENER.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("gridrpc-fuzz-{}", std::process::id()));
        let authority = Authority::create(&folder, "fuzz").expect("a new folder");
        let made = authority.issue_server("lab", &["localhost".into()], 1).expect("valid names");
        let files = CredentialFiles::in_folder(&folder);
        fs::write(&files.certificate, &made.certificate).expect("a new file");
        // The key of the authority is not needed any more.
        fs::write(&files.key, &made.key).expect("its owner");
        let credentials = Credentials::read(&files).expect("valid files");
        fs::remove_dir_all(&folder).expect("its owner");
        let keys = ServerKeys::new(&credentials, Revocations::none()).expect("valid credentials");
        let admission = Admission::Certificate { keys, refused: Box::new(|_, _| ()) };
        let admit = |admitted| panic!("admitted: {admitted:?}");
        Listener::open(&[IpAddr::V4(Ipv4Addr::LOCALHOST)], None, admission, admit).expect("a port")
    })
}

fuzz_target!(|bytes: &[u8]| {
    let listener = listener();
    let before = SENT.fetch_add(1, Ordering::Relaxed);
    let mut stream =
        TcpStream::connect(("127.0.0.1", listener.port())).expect("the listener accepts");
    // Otherwise the ports of this machine are used up soon.
    let linger = discard();
    setsockopt(&stream, sockopt::Linger, &linger).expect("a socket");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    // The listener may have closed the connection already.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.windows(ADMITTED.len()).any(|part| part == ADMITTED));
    drop(stream);
    let until = Instant::now() + Duration::from_secs(20);
    while listener.refused() < before + 1 {
        assert!(Instant::now() < until, "the listener has not refused the connection");
        thread::yield_now();
    }
});

/// Closing a socket discards what it has not sent.
fn discard() -> nix::libc::linger {
    nix::libc::linger { l_onoff: 1, l_linger: 0 }
}

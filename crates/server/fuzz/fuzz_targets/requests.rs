//! Sends any bytes to the HTTP port of a server, without credentials. No function is looked up or called.

#![no_main]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gridrpc_inference::{
    AuthError, FunctionName, Functions, InferFuture, InferRequest, InferenceError, ModelMetadata,
    Options, Principal, RequestCredentials, serve,
};
use libfuzzer_sys::fuzz_target;
use nix::sys::socket::{setsockopt, sockopt};
use tokio::net::TcpListener;
use tokio::runtime::Builder;

/// Functions that nobody may see.
struct Closed;

impl Functions for Closed {
    fn authenticate(&self, _: &RequestCredentials) -> Result<Principal, AuthError> {
        Err(AuthError::Unauthenticated("nobody is known".into()))
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn list(&self, _: &Principal) -> Vec<FunctionName> {
        unreachable!("nobody is authenticated")
    }

    fn metadata(
        &self,
        _: &Principal,
        _: &FunctionName,
    ) -> Result<Arc<ModelMetadata>, InferenceError> {
        unreachable!("nobody is authenticated")
    }

    fn infer<'a>(&'a self, _: &'a Principal, _: InferRequest) -> InferFuture<'a> {
        unreachable!("nobody is authenticated")
    }
}

fn address() -> SocketAddr {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    *ADDRESS.get_or_init(|| {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        // A beginning that may become HTTP/2 waits for the rest.
        let header_timeout = Duration::from_millis(50);
        let options = Options { max_request_bytes: 4096, header_timeout, ..Options::default() };
        runtime.spawn(serve(
            vec![listener],
            None,
            Arc::new(Closed),
            options,
            std::future::pending(),
        ));
        // It serves until the process ends.
        std::mem::forget(runtime);
        address
    })
}

fuzz_target!(|bytes: &[u8]| {
    let mut stream = TcpStream::connect(address()).expect("the server accepts");
    // Otherwise the ports of this machine are used up soon: closing the socket discards what it has not sent.
    let discard = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(&stream, sockopt::Linger, &discard).expect("a socket");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
    // The server may have closed the connection already.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("the server does not end the connection")
        }
        _ => {}
    }
});

//! Requests with damaged bytes, sent to a server without a grid.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gridrpc_inference::{
    AuthError, FunctionName, Functions, InferFuture, InferRequest, InferResponse, InferenceError,
    ModelMetadata, Options, OutputTensor, Principal, RequestCredentials, serve,
};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(20);

/// One function, whose outputs are its inputs.
struct Echo {
    name: FunctionName,
    metadata: Arc<ModelMetadata>,
    calls: AtomicUsize,
}

impl Echo {
    fn new() -> Echo {
        let parsed = gridrpc_idl::parse("Module m; Define f(INOUT double x[2]) { }");
        let name: FunctionName = "m/f".parse().unwrap();
        let metadata = ModelMetadata::new(&name, &parsed.module.unwrap().functions[0]).unwrap();
        Echo { name, metadata: Arc::new(metadata), calls: AtomicUsize::new(0) }
    }
}

impl Functions for Echo {
    fn authenticate(&self, _: &RequestCredentials) -> Result<Principal, AuthError> {
        Ok(Principal { user: "anybody".into(), groups: Arc::new([]), address: None })
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn list(&self, _: &Principal) -> Vec<FunctionName> {
        vec![self.name.clone()]
    }

    fn metadata(
        &self,
        _: &Principal,
        name: &FunctionName,
    ) -> Result<Arc<ModelMetadata>, InferenceError> {
        if *name == self.name {
            return Ok(Arc::clone(&self.metadata));
        }
        Err(InferenceError::NotFound { name: name.to_string(), version: String::new() })
    }

    fn infer<'a>(&'a self, _: &'a Principal, request: InferRequest) -> InferFuture<'a> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let outputs = request.inputs.into_iter().map(|input| OutputTensor {
            name: input.name,
            datatype: input.datatype,
            shape: input.shape,
            data: input.data,
        });
        let response = InferResponse { outputs: outputs.collect() };
        Box::pin(async move { Ok(response) })
    }
}

/// Sends bytes and returns the answer, up to the end of the connection. If none comes within `limit`, ends the request.
fn exchange(address: SocketAddr, request: &[u8], limit: Duration) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may have closed the connection already.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    // The end of a request cancels a call that runs, so it must not come at once.
    for limit in [limit, LONG] {
        stream.set_read_timeout(Some(limit)).unwrap();
        match stream.read_to_end(&mut answer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let _ = stream.shutdown(Shutdown::Write);
            }
            _ => break,
        }
    }
    answer
}

fn request() -> Vec<u8> {
    let json = br#"{"id":"1","inputs":[
        {"name":"x","shape":[2],"datatype":"FP64","parameters":{"binary_data_size":16}},
        {"name":"y","shape":[2,1],"datatype":"INT8","data":[[1],[-2]]}],
        "outputs":[{"name":"x","parameters":{"binary_data":true}}]}"#;
    let mut body = json.to_vec();
    body.extend_from_slice(&[0; 16]);
    let head = format!(
        "POST /v2/models/m/f/infer HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         Inference-Header-Content-Length: {}\r\nContent-Length: {}\r\n\r\n",
        json.len(),
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

#[test]
fn damaged_requests_are_answered_and_harm_nobody() {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        report(panic);
    }));
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let echo = Arc::new(Echo::new());
    let (stop, stopped) = oneshot::channel::<()>();
    let options = Options {
        header_timeout: Duration::from_secs(5),
        max_request_bytes: 4096,
        ..Options::default()
    };
    let functions: Arc<dyn Functions> = Arc::clone(&echo) as Arc<dyn Functions>;
    let server = runtime.spawn(serve(vec![listener], None, functions, options, async {
        let _ = stopped.await;
    }));

    let request = request();
    let is_success = |answer: &[u8]| answer.starts_with(b"HTTP/1.1 200 OK");
    assert!(is_success(&exchange(address, &request, LONG)));
    let (mut successes, mut errors) = (0, 0);
    for at in 0..request.len() {
        for value in [0, b'"', b'9', 0xff] {
            let mut damaged = request.clone();
            damaged[at] = value;
            match exchange(address, &damaged, SHORT) {
                answer if is_success(&answer) => successes += 1,
                answer if answer.starts_with(b"HTTP/1.1 ") => errors += 1,
                // Garbage in front of a request gets no answer.
                _ => {}
            }
        }
        if at % 8 == 0 {
            assert!(!is_success(&exchange(address, &request[..at], SHORT)), "{at} bytes");
        }
    }
    assert!(successes > 50 && errors > 500, "{successes} successes, {errors} errors");
    assert!(is_success(&exchange(address, &request, LONG)));
    assert!(echo.calls.load(Ordering::Relaxed) >= successes + 2);
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    drop(stop);
    runtime.block_on(server).unwrap();
    assert!(TcpStream::connect(address).is_err(), "the port is still open");
}

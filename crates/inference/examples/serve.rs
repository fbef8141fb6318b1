//! Serves compiled modules on a grid of this machine by the Open Inference Protocol.
//!
//! `serve --program gridrpc MODULE.so...` prints the address, and ends on SIGTERM or SIGINT.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use gridrpc_client::{Config, Grid, Launch};
use gridrpc_core::{CallOptions, Settings};
use gridrpc_inference::{
    Caller, Credentials, Denied, FunctionName, Functions, InferFuture, InferRequest,
    InferenceError, ModelMetadata, Options, TlsFiles, infer_on_grid, is_callable, serve,
    server_config,
};
use gridrpc_invoke::Target;
use gridrpc_typed::read_interface;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
struct Arguments {
    /// Files of compiled modules
    modules: Vec<PathBuf>,
    /// Program `gridrpc`, which starts the workers
    #[arg(long)]
    program: PathBuf,
    /// Address
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// Number of workers
    #[arg(long, default_value_t = 2)]
    workers: u32,
    /// Token of a caller, as USER:TOKEN; without any, everybody may call
    #[arg(long = "token")]
    tokens: Vec<String>,
    /// Certificate of the server
    #[arg(long, requires = "key")]
    certificate: Option<PathBuf>,
    /// Private key of the server
    #[arg(long)]
    key: Option<PathBuf>,
    /// Authority of the clients' certificates
    #[arg(long)]
    authority: Option<PathBuf>,
    /// Maximum number of running calls
    #[arg(long, default_value_t = 64)]
    max_running: usize,
    /// Maximum number of connections
    #[arg(long, default_value_t = 1024)]
    max_connections: usize,
    /// Maximum size of a request and of its results, bytes
    #[arg(long, default_value_t = 64 << 20)]
    max_bytes: usize,
    /// Time limit for receiving headers, and for receiving requests, seconds
    #[arg(long, default_value_t = 5.0)]
    patience: f64,
    /// Origin of web pages that may call
    #[arg(long = "origin")]
    origins: Vec<String>,
}

/// The functions of some modules, which run on one grid.
struct ModuleFunctions {
    grid: Arc<Grid>,
    functions: BTreeMap<FunctionName, (Arc<Target>, Arc<ModelMetadata>)>,
    /// Users by token; empty: everybody may call.
    users: HashMap<String, Arc<str>>,
    max_result_bytes: u64,
}

impl ModuleFunctions {
    fn new(
        grid: Grid,
        modules: &[PathBuf],
        users: HashMap<String, Arc<str>>,
        max_result_bytes: u64,
    ) -> Result<ModuleFunctions, Box<dyn Error>> {
        let mut functions = BTreeMap::new();
        for path in modules {
            let module = Arc::new(read_interface(path)?);
            for function in module.interface.functions.iter().filter(|known| is_callable(known)) {
                let name = FunctionName::new(&module.interface.name, &function.name)?;
                let target = Arc::new(Target::new(&grid, &module, &function.name)?);
                let metadata = Arc::new(ModelMetadata::new(&name, function)?);
                functions.insert(name, (target, metadata));
            }
        }
        Ok(ModuleFunctions { grid: Arc::new(grid), functions, users, max_result_bytes })
    }

    fn find(
        &self,
        name: &FunctionName,
    ) -> Result<&(Arc<Target>, Arc<ModelMetadata>), InferenceError> {
        let not_found =
            || InferenceError::NotFound { name: name.to_string(), version: String::new() };
        self.functions.get(name).ok_or_else(not_found)
    }
}

impl Functions for ModuleFunctions {
    fn authenticate(&self, credentials: &Credentials) -> Result<Caller, Denied> {
        if self.users.is_empty() || !credentials.certificates.is_empty() {
            return Ok(Caller { user: "anybody".into() });
        }
        let Some(token) = &credentials.token else {
            return Err(Denied::Unauthenticated("send a token or a certificate".into()));
        };
        match self.users.get(token) {
            Some(user) => Ok(Caller { user: Arc::clone(user) }),
            None => Err(Denied::Unauthenticated("the token is unknown".into())),
        }
    }

    fn is_ready(&self) -> bool {
        self.grid.counts().ready > 0
    }

    fn list(&self, _: &Caller) -> Vec<FunctionName> {
        self.functions.keys().cloned().collect()
    }

    fn metadata(
        &self,
        _: &Caller,
        name: &FunctionName,
    ) -> Result<Arc<ModelMetadata>, InferenceError> {
        Ok(Arc::clone(&self.find(name)?.1))
    }

    fn infer<'a>(&'a self, _: &'a Caller, request: InferRequest) -> InferFuture<'a> {
        Box::pin(async move {
            let (target, _) = self.find(&request.function)?;
            let options = CallOptions::DEFAULT;
            infer_on_grid(&self.grid, target, request, options, self.max_result_bytes).await
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let launch = Launch {
        program: arguments.program.clone(),
        arguments: vec!["spawner".into()],
        ..Launch::default()
    };
    let settings = Settings { workers: arguments.workers, ..Settings::default() };
    let grid = Grid::open(Config::here(launch, settings))?;
    grid.wait_until_ready(Duration::from_secs(20))?;
    let user = |entry: &String| {
        let (user, token) = entry.split_once(':')?;
        Some((token.to_owned(), user.into()))
    };
    let users = arguments.tokens.iter().filter_map(user).collect();
    let limit = arguments.max_bytes as u64;
    let functions = ModuleFunctions::new(grid, &arguments.modules, users, limit)?;
    let tls = match (&arguments.certificate, &arguments.key) {
        (Some(certificate), Some(key)) => Some(server_config(&TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
            client_authorities: arguments.authority.clone(),
            require_certificate: arguments.authority.is_some() && arguments.tokens.is_empty(),
        })?),
        _ => None,
    };
    let options = Options {
        max_running: arguments.max_running,
        max_connections: arguments.max_connections,
        max_request_bytes: arguments.max_bytes,
        header_timeout: Duration::from_secs_f64(arguments.patience),
        request_timeout: Duration::from_secs_f64(arguments.patience),
        allowed_origins: arguments.origins.clone(),
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(&arguments.listen).await?;
        let mut terminated = signal(SignalKind::terminate())?;
        let mut interrupted = signal(SignalKind::interrupt())?;
        println!("{}", listener.local_addr()?);
        let shutdown = async {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = interrupted.recv() => {}
            }
        };
        serve(listener, tls, Arc::new(functions), options, shutdown).await;
        Ok(())
    })
}

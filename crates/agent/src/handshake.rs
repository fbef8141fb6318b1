//! Handshake between an agent and its client: the agent's identity and the client's request.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gridrpc_client::{Config, Launch, Output, Preload, Preparation, WorkerLimits};
use gridrpc_core::Settings;
use gridrpc_link::{LinkError, Received};
use gridrpc_sys::{memory, monotonic_ns, processors, thread_limits};
use gridrpc_transport::addresses;
use gridrpc_wire::{Compression, Join, Message, Serve, VERSION};

use crate::answers::Answers;
use crate::connection::Connection;
use crate::error::AgentError;
use crate::incoming::whole;
use crate::modules::ModuleFiles;

/// How long the client may take to send its request.
const GREETING: Duration = Duration::from_secs(30);
/// Heartbeat interval while the client sends modules; nothing else shows yet that the agent is alive.
const SIGN: Duration = Duration::from_millis(200);

/// The client's request.
pub(super) struct ClientRequest {
    launch: Launch,
    settings: Settings,
    shared_threshold: usize,
    keep_free: u64,
    pub(super) heartbeat: Option<Duration>,
    pub(super) compression: Compression,
    pub(super) modules: ModuleFiles,
    /// Module files to load before workers start, or why one is missing.
    libraries: Result<Vec<String>, String>,
}

impl ClientRequest {
    /// `sent`: modules received before.
    fn new(serve: &Serve<'_>, sent: Vec<ReceivedModule>) -> io::Result<ClientRequest> {
        let mut modules = ModuleFiles::new(serve.staging);
        for ReceivedModule { hash, name, content } in sent {
            modules.keep(&hash, &name, &content);
        }
        let file = |hash: &&str| modules.find(hash).map(|file| file.display().to_string());
        let libraries = serve.preload.iter().map(file).collect();
        let processors = processors();
        let workers = if serve.workers == 0 { processors as u32 } else { serve.workers };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let native = serve.program.is_empty();
        let program: PathBuf =
            if native { std::env::current_exe()? } else { PathBuf::from(serve.program) };
        let mut environment = thread_limits::environment(processors, workers);
        let given = serve.environment.iter().filter_map(|text| text.split_once('='));
        environment.extend(given.map(|(name, value)| (name.into(), value.into())));
        let arguments: Vec<String> =
            if native { vec!["spawner".to_owned()] } else { texts(&serve.arguments) };
        Ok(ClientRequest {
            launch: Launch {
                limits: WorkerLimits::NONE,
                program,
                arguments: arguments.into_iter().map(Into::into).collect(),
                environment,
                advice: String::new(),
                preparation: Preparation {
                    directory: serve.directory.to_owned(),
                    path: texts(&serve.path),
                    preload: Preload { modules: texts(&serve.modules), libraries: Vec::new() },
                },
            },
            settings: Settings {
                workers,
                cores: processors,
                grace: serve.grace,
                retries: serve.retries,
                calls_per_process: serve.calls_per_process,
                ..Settings::default()
            },
            shared_threshold: usize::try_from(serve.shared_threshold).unwrap_or(usize::MAX),
            keep_free: serve.keep_free,
            heartbeat: (serve.heartbeat > 0).then(|| Duration::from_nanos(serve.heartbeat)),
            compression: match serve.compression {
                0 => Compression::Off,
                1 => Compression::Auto,
                _ => Compression::On,
            },
            modules,
            libraries,
        })
    }

    /// Configuration of this host's grid.
    ///
    /// # Errors
    /// When the request cannot be met, with the reason.
    pub(super) fn config(&self) -> Result<Config, String> {
        let mut launch = self.launch.clone();
        launch.preparation.preload.libraries = self.libraries.clone()?;
        Ok(Config {
            shared_threshold: self.shared_threshold,
            keep_free: self.keep_free,
            output: Output::Parent,
            is_of_agent: true,
            ..Config::here(launch, self.settings.clone())
        })
    }
}

/// A module received from the client.
struct ReceivedModule {
    hash: String,
    name: String,
    content: Vec<u8>,
}

/// The configured number of processors; 0: not set.
static PROCESSORS: AtomicUsize = AtomicUsize::new(0);

/// Sets the number of processors: a batch system knows better than the operating system how many belong to
/// this agent.
pub(super) fn set_processors(processors: usize) {
    PROCESSORS.store(processors, Ordering::Relaxed);
}

/// Number of processors of this agent.
pub(super) fn processors() -> usize {
    match PROCESSORS.load(Ordering::Relaxed) {
        0 => processors::available(),
        announced => announced,
    }
}

/// Memory of this host, or of its batch job: Slurm need not enforce the limit with control groups.
fn memory() -> u64 {
    let megabytes = std::env::var("SLURM_MEM_PER_NODE").ok().and_then(|text| text.parse().ok());
    let of_job = megabytes.filter(|size: &u64| *size > 0).map(|size| size.saturating_mul(1 << 20));
    memory::of_machine().min(of_job.unwrap_or(u64::MAX))
}

/// Requests that a client may make before it is served.
pub(super) trait BeforeServing {
    /// Handles a message other than the request to serve. Messages that do not belong here are errors.
    fn take(&mut self, received: Received<'_>, answers: &Arc<Answers>) -> Result<(), LinkError>;

    /// Whether the client may send modules with its request.
    fn takes_modules(&self) -> bool;

    /// How long the client may be silent after such a message; none: forever.
    fn timeout(&self) -> Option<Duration>;
}

/// The greeting of this process for a client that it offers `processors` workers. `port`: where other agents dial it.
pub(super) fn greet(answers: &Answers, processors: u32, port: u16) {
    let own = if port == 0 { Vec::new() } else { addresses::of_this_host() };
    answers.tell(&Message::Join(Join {
        min_version: VERSION,
        max_version: VERSION,
        pid: std::process::id(),
        processors,
        clock: monotonic_ns(),
        memory: memory(),
        host: &gridrpc_sys::host_name(),
        boot: &gridrpc_sys::boot_id(),
        program: env!("CARGO_PKG_VERSION"),
        port,
        addresses: own.iter().map(String::as_str).collect(),
    }));
    answers.send();
}

/// Waits for the client's request to serve. None if it has none.
pub(super) fn wait_for_request(
    connection: &mut Connection,
    before: &mut dyn BeforeServing,
) -> Result<Option<ClientRequest>, AgentError> {
    let answers = Arc::clone(&connection.answers);
    let mut until = Some(Instant::now() + GREETING);
    let mut has_asked = false;
    let mut sent = Vec::new();
    let mut announced = Instant::now();
    let mut answer: Option<Option<ClientRequest>> = None;
    while answer.is_none() {
        if until.is_some_and(|until| Instant::now() >= until) {
            return Err(AgentError::Silent(GREETING));
        }
        let modules_come = !has_asked && (connection.receiver.expects_more() || !sent.is_empty());
        if modules_come && announced.elapsed() >= SIGN {
            announced = Instant::now();
            // The client's reply follows its request to serve.
            answers.tell(&Message::Ping { number: 0 });
            answers.send();
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let sign = modules_come.then(|| SIGN.saturating_sub(announced.elapsed()));
        if !connection.wait(left.into_iter().chain(sign).min()) {
            continue;
        }
        match connection.receiver.fill() {
            // It only wanted to ask.
            Ok(0) if has_asked => return Ok(None),
            Ok(0) => return Err(LinkError::Io(io::ErrorKind::UnexpectedEof.into()).into()),
            // Modules may take a while.
            Ok(_) => until = Some(Instant::now() + GREETING),
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(LinkError::Io(error).into()),
        }
        // Leave anything after the request to serve for `serve`.
        let mut more = true;
        while more && answer.is_none() {
            more = connection.receiver.drain_one(&mut |received: Received<'_>| match received
                .message
            {
                Message::Serve(serve) => {
                    let sent = std::mem::take(&mut sent);
                    answer = Some(Some(ClientRequest::new(&serve, sent).map_err(LinkError::Io)?));
                    Ok(())
                }
                Message::Module { .. } if !before.takes_modules() => Ok(()),
                Message::Module { hash, name, sections } => {
                    let content = whole(&sections, received.streams);
                    sent.push(ReceivedModule {
                        hash: hash.to_owned(),
                        name: name.to_owned(),
                        content,
                    });
                    Ok(())
                }
                Message::Goodbye => {
                    answer = Some(None);
                    Ok(())
                }
                _ => {
                    has_asked = true;
                    before.take(received, &answers)
                }
            })?;
        }
        if has_asked {
            until = before.timeout().map(|timeout| Instant::now() + timeout);
        }
    }
    Ok(answer.flatten())
}

/// Whether the error only means that nothing can be read right now.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

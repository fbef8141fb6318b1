//! The first words between an agent and its client: who it is, and what is wanted of it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gridrpc_client::{Config, Launch, Output, Parent, Preload, Preparation};
use gridrpc_core::Settings;
use gridrpc_link::{LinkError, Received, Receiver, Socket};
use gridrpc_sys::{memory, monotonic_ns, processors, thread_limits};
use gridrpc_transport::addresses;
use gridrpc_wire::{Compression, Join, Message, Serve, VERSION};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::AgentError;
use crate::answers::Answers;
use crate::examination::{self, Examination};
use crate::incoming::whole;
use crate::modules::ModuleFiles;

/// How long the client may take to say what it wants.
const GREETING: Duration = Duration::from_secs(30);
/// How often the client hears of this agent while modules come to it: nothing else tells yet that it is alive.
const SIGN: Duration = Duration::from_millis(200);

/// What the client wants.
pub(super) struct Wanted {
    launch: Launch,
    settings: Settings,
    shared_threshold: usize,
    keep_free: u64,
    pub(super) heartbeat: Option<Duration>,
    pub(super) compression: Compression,
    pub(super) modules: ModuleFiles,
    /// Files of modules to load before workers are started, or why one is not there.
    libraries: Result<Vec<String>, String>,
}

impl Wanted {
    /// `sent`: modules that came before.
    fn new(serve: &Serve<'_>, sent: Vec<Sent>) -> io::Result<Wanted> {
        let mut modules = ModuleFiles::new(serve.staging);
        for Sent { hash, name, content } in sent {
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
        Ok(Wanted {
            launch: Launch {
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

    /// What the grid of this host is to be.
    ///
    /// # Errors
    /// Why it cannot have what the client wants.
    pub(super) fn config(&self) -> Result<Config, String> {
        let mut launch = self.launch.clone();
        launch.preparation.preload.libraries = self.libraries.clone()?;
        Ok(Config {
            shared_threshold: self.shared_threshold,
            keep_free: self.keep_free,
            output: Output::Parent,
            ..Config::here(launch, self.settings.clone())
        })
    }
}

/// A module that the client has sent.
struct Sent {
    hash: String,
    name: String,
    content: Vec<u8>,
}

/// How many processors this agent was told that it has; 0: nothing was said.
static PROCESSORS: AtomicUsize = AtomicUsize::new(0);

/// A batch system knows better than the operating system how many of them are for this agent.
pub(super) fn set_processors(processors: usize) {
    PROCESSORS.store(processors, Ordering::Relaxed);
}

fn processors() -> usize {
    match PROCESSORS.load(Ordering::Relaxed) {
        0 => processors::available(),
        told => told,
    }
}

/// Memory of this host, or what its batch job was given of it: Slurm need not enforce that by control groups.
fn memory() -> u64 {
    let megabytes = std::env::var("SLURM_MEM_PER_NODE").ok().and_then(|text| text.parse().ok());
    let of_job = megabytes.filter(|size: &u64| *size > 0).map(|size| size.saturating_mul(1 << 20));
    memory::of_machine().min(of_job.unwrap_or(u64::MAX))
}

/// Says who this is, and waits for what the client wants; meanwhile the client may examine this host. None:
/// it wants nothing more.
pub(super) fn greet(
    receiver: &mut Receiver,
    answers: &Answers,
    socket: &Socket,
    blocked: &AtomicBool,
    port: u16,
    mut examining: Examination,
) -> Result<Option<Wanted>, AgentError> {
    let own = addresses::of_this_host();
    answers.tell(&Message::Join(Join {
        min_version: VERSION,
        max_version: VERSION,
        pid: std::process::id(),
        processors: processors() as u32,
        clock: monotonic_ns(),
        memory: memory(),
        host: &gridrpc_sys::host_name(),
        boot: &gridrpc_sys::boot_id(),
        program: env!("CARGO_PKG_VERSION"),
        port,
        addresses: own.iter().map(String::as_str).collect(),
    }));
    answers.settle();
    let mut until = Instant::now() + GREETING;
    let mut examined = false;
    let mut sent = Vec::new();
    let mut told = Instant::now();
    let mut answer: Option<Option<Wanted>> = None;
    while answer.is_none() {
        if Instant::now() >= until {
            return Err(AgentError::Silent(GREETING));
        }
        let modules_come = !examined && (receiver.expects_more() || !sent.is_empty());
        if modules_come && told.elapsed() >= SIGN {
            told = Instant::now();
            // The answer comes behind the request to serve.
            answers.tell(&Message::Ping { number: 0 });
            answers.settle();
        }
        let mut flags = PollFlags::POLLIN;
        flags.set(PollFlags::POLLOUT, blocked.load(Ordering::Acquire));
        if !receiver.has_more() {
            let mut waited = [PollFd::new(socket.socket(), flags)];
            let _ = poll(&mut waited, PollTimeout::from(100_u8));
        }
        if flags.contains(PollFlags::POLLOUT) {
            answers.up.flush();
        }
        match receiver.fill() {
            // It has examined this host, and has no other use for it.
            Ok(0) if examined => return Ok(None),
            Ok(0) => return Err(LinkError::Io(io::ErrorKind::UnexpectedEof.into()).into()),
            // Modules may take their time.
            Ok(_) => until = Instant::now() + GREETING,
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(LinkError::Io(error).into()),
        }
        // What follows a request to serve is for the one who serves.
        let mut more = true;
        while more && answer.is_none() {
            more = receiver.drain_one(&mut |received: Received<'_>| match received.message {
                Message::Serve(serve) => {
                    let sent = std::mem::take(&mut sent);
                    answer = Some(Some(Wanted::new(&serve, sent).map_err(LinkError::Io)?));
                    Ok(())
                }
                Message::Module { hash, name, sections } => {
                    let content = whole(&sections, received.streams);
                    sent.push(Sent { hash: hash.to_owned(), name: name.to_owned(), content });
                    Ok(())
                }
                Message::Goodbye => {
                    answer = Some(None);
                    Ok(())
                }
                _ => {
                    examined = true;
                    examining.answer(received, answers)
                }
            })?;
        }
        if examined {
            until = Instant::now() + examination::NEXT;
        }
    }
    Ok(answer.flatten())
}

/// Whether it is no error, but that nothing can be read now.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

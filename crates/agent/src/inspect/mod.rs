//! Inspection: facts about the agent's host for a client that examines it.

mod limits;
pub mod load;
pub mod python;

use std::ffi::CStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use gridrpc_sys::{memory, monotonic_ns, processors, safe_path};
use gridrpc_transport::dial::{ClientConnection, Failure};
use gridrpc_wire::Examine;
use nix::sys::statvfs::statvfs;
use nix::sys::utsname::uname;
use serde::{Deserialize, Serialize};

pub use limits::Processes;
pub use load::Load;
pub use python::{Python, probe};

/// Facts about a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFindings {
    /// The version of the agent's program.
    pub gridrpc: String,
    /// The host name.
    pub name: String,
    /// Kernel and processor type, as printed by `uname -srm`.
    pub system: String,
    /// The C library and its version, if known.
    pub libc: Option<String>,
    /// Processors that workers may use.
    pub processors: u32,
    /// Memory and swap space, or the limit of the control group, bytes.
    pub memory: u64,
    /// Free memory, bytes.
    pub memory_free: u64,
    /// Whether a control group limits memory.
    pub memory_bounded: bool,
    /// Why memory cannot be shared by passing its descriptor; none if it can.
    pub shared_memory_fault: Option<String>,
    /// Limit on open files of a process.
    pub open_files: u64,
    /// Limit on processes.
    pub processes: Processes,
    /// The folder for programs and modules.
    pub staging: Staging,
    /// Why workers cannot run in their working directory; none if they can.
    pub directory_fault: Option<String>,
    /// The workers' Python, if requested.
    pub python: Option<Python>,
    /// The agent's route to its client.
    pub way: Route,
    /// Two clocks, read at the same time.
    pub clocks: Clocks,
}

/// A folder for programs and modules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Staging {
    /// Its path, even if it does not exist yet.
    pub folder: PathBuf,
    /// Free space, bytes.
    pub free: u64,
    /// Why it is not writable; none if it is.
    pub fault: Option<String>,
}

/// An agent's route to its client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    /// The ticket's entry, `host:port`.
    pub name: String,
    /// The address that it resolved to.
    pub address: String,
    /// Other addresses that were tried before or in parallel.
    pub tried: Vec<Attempt>,
}

/// An address that did not lead to the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// The ticket's entry.
    pub name: String,
    /// The outcome.
    pub outcome: String,
}

/// A host's clocks at one moment, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clocks {
    /// Time since an arbitrary moment.
    pub monotonic: u64,
    /// Time since 1970.
    pub real: u64,
}

impl Clocks {
    /// Reads this host's clocks.
    #[must_use]
    pub fn now() -> Clocks {
        let before = monotonic_ns();
        let real = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let after = monotonic_ns();
        Clocks {
            monotonic: before + (after - before) / 2,
            real: u64::try_from(real).unwrap_or(u64::MAX),
        }
    }
}

impl Route {
    pub(crate) fn of(dialled: &ClientConnection) -> Route {
        let tried = dialled.tried.iter();
        let tried = tried.filter(|one| !matches!(one.failure, Failure::Untried));
        let tried = tried
            .map(|one| Attempt { name: one.name.clone(), outcome: one.failure.to_string() })
            .collect();
        Route { name: dialled.name.clone(), address: dialled.address.to_string(), tried }
    }
}

impl HostFindings {
    /// Inspects this host. Takes as long as Python needs to start, if Python is requested. `staging` is the
    /// folder for programs and modules.
    pub(crate) fn look(examine: &Examine<'_>, staging: &Path, way: &Route) -> HostFindings {
        let directory = Path::new(examine.directory);
        let directory_fault = match fs::read_dir(directory) {
            _ if examine.directory.is_empty() => None,
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let runs_in = if directory_fault.is_none() { examine.directory } else { "" };
        let python = (!examine.python.is_empty())
            .then(|| python::probe(examine.python, runs_in, &examine.environment));
        HostFindings {
            gridrpc: env!("CARGO_PKG_VERSION").to_owned(),
            name: gridrpc_sys::host_name(),
            system: system(),
            libc: libc_version(),
            processors: processors::available() as u32,
            memory: memory::most(),
            memory_free: memory::left(),
            memory_bounded: memory::is_bounded(),
            shared_memory_fault: shared_memory_fault(),
            open_files: limits::open_files(),
            processes: Processes::here(),
            staging: Staging::look(staging),
            directory_fault,
            python,
            way: way.clone(),
            clocks: Clocks::now(),
        }
    }
}

fn system() -> String {
    let Ok(names) = uname() else { return String::new() };
    let parts = [names.sysname(), names.release(), names.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ")
}

fn libc_version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: it returns a constant string.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(format!("glibc {}", version.to_string_lossy()))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

/// Workers and their agent share anonymous memory; /dev/shm is not needed.
fn shared_memory_fault() -> Option<String> {
    const LEN: usize = 1 << 20;
    let try_it = || -> std::io::Result<()> {
        use std::os::fd::AsFd as _;
        let file = gridrpc_sys::memory_file(c"gridrpc-doctor", LEN as u64)?;
        let mapping = gridrpc_sys::Mapping::new(file.as_fd(), LEN, true)?;
        let Some(start) = mapping.at(0, LEN as u64) else {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        };
        // SAFETY: the mapping has this length, is writable, and belongs to nobody else.
        unsafe { start.as_ptr().write_bytes(1, LEN) };
        Ok(())
    };
    try_it().err().map(|error| error.to_string())
}

impl Staging {
    fn look(folder: &Path) -> Staging {
        // It is created on demand; until then check its nearest existing parent.
        let there = folder.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
        let free = statvfs(there).map_or(0, |system| {
            #[allow(clippy::useless_conversion)] // other types on other systems
            u64::from(system.blocks_available()).saturating_mul(system.fragment_size().into())
        });
        let unsafe_path =
            safe_path::check_place(&folder.join("modules")).err().map(|error| error.to_string());
        let fault =
            unsafe_path.or_else(|| write_a_little(there).err().map(|error| error.to_string()));
        Staging { folder: folder.to_owned(), free, fault }
    }
}

fn write_a_little(folder: &Path) -> std::io::Result<()> {
    let file = folder.join(format!(".gridrpc-doctor-{}", std::process::id()));
    let mut options = fs::File::options();
    let mut opened = options.write(true).create_new(true).mode(0o600).open(&file)?;
    let written = opened.write_all(&[1; 64 << 10]).and_then(|()| opened.sync_all());
    let removed = fs::remove_file(&file);
    written.and(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(examine: &Examine<'_>, staging: &Path) -> HostFindings {
        HostFindings::look(examine, staging, &Route::default())
    }

    #[test]
    fn this_host_can_share_memory_and_start_processes() {
        let there = look(&Examine::default(), &std::env::temp_dir());
        assert_eq!(there.shared_memory_fault, None);
        assert!(there.processors > 0 && there.memory > 0 && there.open_files > 2);
        assert!(there.system.starts_with("Linux "), "{there:?}");
        assert_eq!(there.staging.fault, None);
        assert!(there.python.is_none() && there.directory_fault.is_none());
    }

    #[test]
    fn folders_that_are_not_there_are_reported() {
        let examine = Examine { directory: "/no/such", ..Examine::default() };
        let there = look(&examine, Path::new("/proc/no/such"));
        assert!(there.directory_fault.is_some());
        assert!(there.staging.fault.is_some(), "{:?}", there.staging);
    }

    #[test]
    fn findings_are_the_same_when_they_are_read() {
        let there = look(&Examine::default(), &std::env::temp_dir());
        let text = serde_json::to_string(&there).unwrap();
        assert_eq!(serde_json::from_str::<HostFindings>(&text).unwrap(), there);
    }
}

//! Launch configuration of the grid and its workers.

use std::ffi::{CStr, OsString};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gridrpc_client::{
    Config, HostGroups, Launch, Output, Preparation, RemoteWorkers, WorkerLimits,
};
use gridrpc_config::HostGroup;
use gridrpc_core::{MEMORY, Resources, Settings as Bounds};
use gridrpc_invoke::ModuleSearch;
use gridrpc_sys::{memory, processors, thread_limits};

use crate::call::outcome;
use crate::config::{self, ClientConfig, Debug, ServerSettings, StartedServer, ThisMachine};
use crate::errors::ErrorCode;
use crate::failure::Failure;

/// Most workers that the library starts on its own.
pub const MOST_WORKERS: u32 = 1024;

/// Most calls that wait for workers; further calls block.
const MAX_QUEUED: usize = 1 << 20;

/// Configuration of the grid, and the configured servers that it starts on other machines. `search` finds
/// modules.
pub fn config(
    client: &ClientConfig,
    search: &ModuleSearch,
) -> Result<(Config, Vec<StartedServer>), Failure> {
    let processors = processors::available();
    let (mut servers, started) = servers(client)?;
    let here = if started.is_empty() { None } else { client.here(&ThisMachine) };
    let settings = match here {
        _ if started.is_empty() => client.default_server(),
        here => here,
    };
    let settings = settings.map_or(&client.server_default, |server| &server.settings);
    let workers = match std::env::var("GRIDRPC_WORKERS") {
        Err(_) if !servers.is_empty() && here.is_none() => 0,
        Err(_) => u32::try_from(processors).unwrap_or(1),
        Ok(text) => match text.trim().parse() {
            Ok(workers @ 1..=MOST_WORKERS) => workers,
            _ => {
                return Err(Failure::other(format!(
                    "GRIDRPC_WORKERS is `{text}`: choose from 1 to {MOST_WORKERS}"
                )));
            }
        },
    };
    let directory =
        settings.work_directory.as_ref().map(|directory| directory.display().to_string());
    let program = program()?;
    if started.is_empty() {
        let with_own = |server: &HostGroup| server.with_preload(&settings.preload);
        servers = servers.iter().map(with_own).collect();
    }
    let servers = (!servers.is_empty()).then(|| HostGroups {
        list: servers,
        program: program.clone(),
        workers: RemoteWorkers {
            directory: directory.clone().unwrap_or_default(),
            ..RemoteWorkers::default()
        },
    });
    let launch = Launch {
        limits: WorkerLimits::NONE,
        advice: String::new(),
        program,
        arguments: vec!["spawner".into()],
        environment: environment(client, settings, processors, workers),
        preparation: Preparation {
            directory: directory.unwrap_or_default(),
            ..Preparation::default()
        },
    };
    let bounds = Bounds {
        workers,
        resources: Resources::new([(MEMORY.into(), memory::of_machine())]),
        cores: processors,
        max_queued: MAX_QUEUED,
        ..Bounds::default()
    };
    let output = if settings.redirect_outerr { Output::Labelled } else { Output::Kept };
    let mut config = Config { output, groups: servers, ..Config::here(launch, bounds) };
    let preloaded = gridrpc_invoke::preload(&mut config, &settings.preload, false, search);
    preloaded.map_err(|error| outcome::refused("grpc_initialize", &error))?;
    Ok((config, started))
}

/// The host groups on other machines: those that the environment names, or else those of the configuration.
fn servers(client: &ClientConfig) -> Result<(Vec<HostGroup>, Vec<StartedServer>), Failure> {
    let named = servers_of_environment()?;
    if !named.is_empty() {
        return Ok((named, Vec::new()));
    }
    let started = config::servers(client, &ThisMachine);
    Ok((started.iter().map(|started| started.server.clone()).collect(), started))
}

/// Whether the environment names host groups, which override the program's choice of this machine.
pub fn is_sent_elsewhere() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("GRIDRPC_SERVERS") || is_set("GRIDRPC_CONFIG")
}

/// The host groups that the environment names: URLs and names in GRIDRPC_SERVERS, with the file that
/// describes them in GRIDRPC_CONFIG.
fn servers_of_environment() -> Result<Vec<HostGroup>, Failure> {
    let file = std::env::var_os("GRIDRPC_CONFIG").filter(|file| !file.is_empty());
    let words = std::env::var("GRIDRPC_SERVERS").unwrap_or_default();
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    gridrpc_config::chosen(&words, file.as_ref().map(Path::new)).map_err(|problems| {
        Failure::new(ErrorCode::ConfigfileError, format!("GRIDRPC_SERVERS: {problems}"))
    })
}

fn environment(
    client: &ClientConfig,
    settings: &ServerSettings,
    processors: usize,
    workers: u32,
) -> Vec<(OsString, OsString)> {
    let mut environment = thread_limits::environment(processors, workers);
    if let Some(debug) = debug(&settings.debug) {
        environment.push(("GRIDRPC_DEBUG".into(), debug.into()));
    }
    if client.tmp_dir != ClientConfig::default().tmp_dir {
        environment.push(("TMPDIR".into(), client.tmp_dir.clone().into()));
    }
    // The configuration's variables come last and take precedence.
    let own = settings.environment.iter().map(|(name, value)| (name.into(), value.into()));
    environment.extend(own);
    environment
}

/// The debugging step of a worker before it starts work: `wait`, or a command.
fn debug(debug: &Debug) -> Option<String> {
    if debug.busy_loop {
        return Some("wait".into());
    }
    if !debug.enabled {
        return None;
    }
    let terminal = debug.terminal.as_deref().unwrap_or("xterm");
    let debugger = debug.debugger.as_deref().unwrap_or("gdb");
    let display = debug.display.as_ref().map(|display| format!(" -display {display}"));
    Some(format!("{terminal}{} -e {debugger} -p {{pid}}", display.unwrap_or_default()))
}

/// The worker program: named by the environment, or else installed with this library, or else on the path.
fn program() -> Result<PathBuf, Failure> {
    if let Some(named) = std::env::var_os("GRIDRPC_PROGRAM").filter(|name| !name.is_empty()) {
        return Ok(named.into());
    }
    let folder = own_folder();
    // Debian installs the library one folder deeper, in that of its architecture.
    let installed = folder.iter().flat_map(|folder| {
        ["../bin/gridrpc", "gridrpc", "../../bin/gridrpc"].map(|place| folder.join(place))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("gridrpc"));
    installed.chain(on_path).find(|file| is_program(file)).ok_or_else(|| {
        let folder = folder.as_ref().map_or("...".into(), |folder| folder.display().to_string());
        Failure::new(
            ErrorCode::ServerNotFound,
            format!(
                "workers need the program `gridrpc`, which is neither at {folder}/../bin nor on \
                 the PATH: install it there, or name it in GRIDRPC_PROGRAM"
            ),
        )
    })
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The folder of this library, or of the program that it is linked into.
fn own_folder() -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    let here = own_folder as *const libc::c_void;
    // SAFETY: the address belongs to this library; the struct is filled in on success.
    let file = unsafe {
        if libc::dladdr(here, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        if name.is_null() {
            return None;
        }
        CStr::from_ptr(name).to_bytes()
    };
    let file = Path::new(std::ffi::OsStr::from_bytes(file));
    // A program name without a folder was found on the path.
    let file = if file.is_absolute() { file.to_owned() } else { file.canonicalize().ok()? };
    file.parent().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debuggers_are_started_in_terminals() {
        assert_eq!(debug(&Debug::default()), None);
        let mut wanted = Debug { enabled: true, ..Debug::default() };
        assert_eq!(debug(&wanted).unwrap(), "xterm -e gdb -p {pid}");
        wanted.display = Some(":1".into());
        wanted.debugger = Some("lldb".into());
        assert_eq!(debug(&wanted).unwrap(), "xterm -display :1 -e lldb -p {pid}");
        wanted.busy_loop = true;
        assert_eq!(debug(&wanted).unwrap(), "wait");
    }

    #[test]
    fn this_library_knows_where_it_is() {
        assert!(own_folder().is_some_and(|folder| folder.is_dir()));
    }

    #[test]
    fn what_the_configuration_says_of_variables_holds() {
        let settings = ServerSettings {
            environment: vec![("OMP_NUM_THREADS".into(), "7".into())],
            ..ServerSettings::default()
        };
        let environment = environment(&ClientConfig::default(), &settings, 8, 2);
        let last = environment.iter().rev().find(|(name, _)| name == "OMP_NUM_THREADS");
        assert_eq!(last.unwrap().1, "7");
        if std::env::var_os("MKL_NUM_THREADS").is_none() {
            assert!(environment.contains(&("MKL_NUM_THREADS".into(), "4".into())));
        }
    }
}

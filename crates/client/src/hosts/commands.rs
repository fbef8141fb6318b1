//! Commands to agents.

use gridrpc_config::{BatchSystem, HostGroup, LauncherKind};
use gridrpc_link::NOT_PRELOADED;
use gridrpc_wire::{Compression, NODES, Serve, VERSION};

use crate::common::Common;
use crate::config::{Config, Preload};
use crate::function::Staged;
use crate::hosts::peers::Hosts;
use crate::hosts::plans::Plan;

impl Hosts {
    /// `staged`: compiled modules to load before workers start.
    pub(crate) fn serve<'a>(
        &'a self,
        plan: &Plan,
        common: &'a HostSettings,
        staged: &'a [Staged],
    ) -> Serve<'a> {
        let group = self.connectors.group(plan);
        let here = group.launcher.shares_files();
        let workers = &self.workers;
        let mut serve = Serve {
            version: VERSION,
            workers: plan.workers,
            shared_threshold: common.shared_threshold,
            keep_free: common.keep_free,
            grace: common.grace,
            retries: common.retries,
            calls_per_process: common.calls_per_process,
            heartbeat: u64::try_from(group.heartbeat.as_nanos()).unwrap_or(u64::MAX),
            staging: group.staging.as_deref().unwrap_or_default(),
            compression: match group.compression {
                Compression::Off => 0,
                Compression::Auto => 1,
                Compression::On => 2,
            },
            preload: staged.iter().map(|module| module.hash.as_str()).collect(),
            ..Serve::default()
        };
        serve.directory = match &group.directory {
            Some(directory) => directory,
            None if here && group.trusted => &workers.directory,
            None => "",
        };
        if let Some(python) = workers.python.as_ref().filter(|_| group.trusted) {
            serve.program = self.python(group).unwrap_or_default();
            let same = here && serve.program == python.here;
            let arguments = if same { &python.arguments_here } else { &python.arguments };
            serve.arguments = arguments.iter().map(String::as_str).collect();
            let preload = self.preload(plan).map(|preload| &preload.modules);
            let modules = python.modules.iter().chain(preload.into_iter().flatten());
            serve.modules = modules.map(String::as_str).collect();
            if same {
                serve.path = python.path.iter().map(String::as_str).collect();
            }
        }
        serve.environment = common.environment[plan.group].iter().map(String::as_str).collect();
        serve
    }

    fn preload(&self, plan: &Plan) -> Option<&Preload> {
        self.workers.preload.get(plan.group)
    }

    /// Compiled modules to send to a host before its workers start.
    ///
    /// # Errors
    /// When one cannot be read.
    pub(crate) fn staged(&self, plan: &Plan, common: &Common) -> Result<Vec<Staged>, String> {
        let libraries = self.preload(plan).map_or(&[][..], |preload| &preload.libraries);
        let read = |path: &String| {
            let read = common.staged(path);
            read.map_err(|error| format!("{NOT_PRELOADED}could not read `{path}`: {error}"))
        };
        libraries.iter().map(read).collect()
    }

    /// The Python interpreter of a group's workers; `None`: they are native.
    pub(crate) fn python<'a>(&'a self, group: &'a HostGroup) -> Option<&'a str> {
        let python = self.workers.python.as_ref().filter(|_| group.trusted)?;
        let usual = if group.launcher.shares_files() { python.here.as_str() } else { "python3" };
        Some(group.python.as_deref().unwrap_or(usual))
    }
}

/// Whether a group's agents run on this machine as this user.
pub(crate) fn is_here(group: &HostGroup) -> bool {
    matches!(group.launcher, LauncherKind::Local { .. } | LauncherKind::Session { .. })
}

/// Settings that are the same for all hosts of a grid.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostSettings {
    pub(crate) shared_threshold: u64,
    pub(crate) keep_free: u64,
    pub(crate) grace: u64,
    pub(crate) retries: u32,
    pub(crate) calls_per_process: u64,
    /// `NAME=VALUE`, for each group.
    pub(crate) environment: Vec<Vec<String>>,
}

impl HostSettings {
    pub(crate) fn new(config: &Config) -> HostSettings {
        let settings = &config.settings;
        let environment = config.groups.iter().flat_map(|groups| {
            let python = groups.workers.python.iter().flat_map(|python| &python.environment);
            groups.list.iter().map(move |group| {
                let python = python.clone().filter(|_| group.trusted);
                let all = groups.workers.environment.iter().chain(python);
                all.chain(&group.environment)
                    .map(|(name, value)| format!("{name}={value}"))
                    .chain(of_nodes(&group.launcher))
                    .collect()
            })
        });
        HostSettings {
            shared_threshold: config.shared_threshold as u64,
            keep_free: config.keep_free,
            grace: settings.grace,
            retries: settings.retries,
            calls_per_process: settings.calls_per_process,
            environment: environment.collect(),
        }
    }
}

/// Variables for workers of a host that is a job of several nodes.
fn of_nodes(launcher: &LauncherKind) -> Vec<String> {
    let Some((count, cores)) = launcher.nodes() else { return Vec::new() };
    let mut variables = vec![format!("{NODES}={count}x{cores}")];
    if matches!(launcher, LauncherKind::Batch(batch) if batch.system == BatchSystem::Slurm) {
        // `mpirun` starts its daemons by `srun`, which would wait as long as those of another `mpirun` are there or end.
        variables.push("SLURM_OVERLAP=1".to_owned());
    }
    variables
}

//! Server settings, and their inheritance from SERVER_DEFAULT.

use std::path::PathBuf;
use std::time::Duration;

use super::lines::Fault;
use super::values;

/// How long to wait for something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitTime {
    /// Unlimited.
    Forever,
    /// This long; zero means not at all.
    For(Duration),
}

/// When an asynchronous call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArgumentTransfer {
    /// After its arguments have been sent.
    #[default]
    Wait,
    /// Immediately; the caller must not touch them until the call has ended.
    NoWait,
    /// After its arguments have been copied.
    Copy,
}

/// Debugging of workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Debug {
    /// Starts them under a debugger in a terminal.
    pub enabled: bool,
    /// The X display of the terminal.
    pub display: Option<String>,
    /// The terminal program.
    pub terminal: Option<String>,
    /// The debugger.
    pub debugger: Option<String>,
    /// Makes them wait until a debugger attaches.
    pub busy_loop: bool,
}

/// How to start and monitor workers on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// How long a worker may take to start.
    pub job_start_timeout: WaitTime,
    /// How long to wait for a worker to exit.
    pub job_stop_timeout: WaitTime,
    /// Whether workers' standard output and error go to the client's.
    pub redirect_outerr: bool,
    /// When asynchronous calls return.
    pub argument_transfer: ArgumentTransfer,
    /// Working directory of workers; `None`: the client's.
    pub work_directory: Option<PathBuf>,
    /// Environment variables of workers, in addition to the client's.
    pub environment: Vec<(String, String)>,
    /// Modules that workers load before their first call: by name or file.
    pub preload: Vec<String>,
    /// Number of MPI ranks of functions, by name.
    pub ranks: Vec<(String, u32)>,
    /// The information source for the server's modules.
    pub information_source: Option<String>,
    /// Debugging of workers.
    pub debug: Debug,
    /// Settings that only apply on other machines.
    pub elsewhere: RemoteSettings,
}

/// Server settings that only apply on other machines. `None`: not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteSettings {
    /// The mechanism that starts its workers, in Ninf-G's terms: `SSH`, `GT4py`.
    pub invoke_server: Option<String>,
    /// The client's name for this server.
    pub client_hostname: Option<String>,
    /// Heartbeat interval; zero: no heartbeats.
    pub heartbeat: Option<Duration>,
    /// Missed heartbeats until it is considered lost; 0: never.
    pub heartbeat_count: Option<u32>,
    /// Whether data is compressed.
    pub compress: Option<bool>,
}

impl RemoteSettings {
    fn set(&mut self, name: &str, words: &[String]) -> Result<(), Fault> {
        let text = |words| values::word(words).map(str::to_owned);
        match name {
            "invoke_server" => self.invoke_server = Some(text(words)?),
            "client_hostname" => self.client_hostname = Some(text(words)?),
            "heartbeat" => self.heartbeat = Some(values::seconds(words)?),
            "heartbeat_timeoutCount" => {
                let count = values::integer(words, 0, u32::MAX.into())?;
                self.heartbeat_count = u32::try_from(count).ok();
            }
            "compress" => {
                self.compress = Some(match values::word(words)? {
                    "raw" => false,
                    "zlib" => true,
                    other => {
                        return Err(Fault::new(format!("is `{other}`"), "write `raw` or `zlib`"));
                    }
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn over(&self, default: &RemoteSettings) -> RemoteSettings {
        let or = |own: &Option<String>, inherited: &Option<String>| {
            own.clone().or_else(|| inherited.clone())
        };
        RemoteSettings {
            invoke_server: or(&self.invoke_server, &default.invoke_server),
            client_hostname: or(&self.client_hostname, &default.client_hostname),
            heartbeat: self.heartbeat.or(default.heartbeat),
            heartbeat_count: self.heartbeat_count.or(default.heartbeat_count),
            compress: self.compress.or(default.compress),
        }
    }
}

impl ServerSettings {
    /// Number of ranks of a function, given as `module/function` or by name alone.
    #[must_use]
    pub fn ranks_of(&self, name: &str) -> Option<u32> {
        let bare = name.rsplit('/').next();
        let is_it = |known: &str| known == name || Some(known) == bare;
        self.ranks.iter().find(|(known, _)| is_it(known)).map(|(_, ranks)| *ranks)
    }
}

impl Default for ServerSettings {
    /// Built-in defaults. Ninf-G waited indefinitely and noticed a lost worker after 300 s.
    fn default() -> Self {
        ServerSettings {
            job_start_timeout: WaitTime::For(Duration::from_secs(60)),
            job_stop_timeout: WaitTime::For(Duration::from_secs(5)),
            redirect_outerr: true,
            argument_transfer: ArgumentTransfer::Wait,
            work_directory: None,
            environment: Vec::new(),
            preload: Vec::new(),
            ranks: Vec::new(),
            information_source: None,
            debug: Debug::default(),
            elsewhere: RemoteSettings::default(),
        }
    }
}

/// One server, or several with the same settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Their host names; at least one.
    pub hostnames: Vec<String>,
    /// An alternative name for programs.
    pub tag: Option<String>,
    /// Its settings, including inherited ones.
    pub settings: ServerSettings,
}

/// The contents of one section: only the settings that are present.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    job_start_timeout: Option<WaitTime>,
    job_stop_timeout: Option<WaitTime>,
    redirect_outerr: Option<bool>,
    argument_transfer: Option<ArgumentTransfer>,
    work_directory: Option<PathBuf>,
    environment: Vec<(String, String)>,
    preload: Vec<String>,
    ranks: Vec<(String, u32)>,
    information_source: Option<String>,
    debug: Option<bool>,
    debug_display: Option<String>,
    debug_terminal: Option<String>,
    debug_debugger: Option<String>,
    debug_busy_loop: Option<bool>,
    elsewhere: RemoteSettings,
}

impl Draft {
    /// Sets an attribute.
    pub(super) fn set(&mut self, name: &str, words: &[String]) -> Result<(), Fault> {
        match name {
            "job_startTimeout" => {
                let limit = values::limit(words)?;
                self.job_start_timeout = Some(limit.map_or(WaitTime::Forever, WaitTime::For));
            }
            "job_stopTimeout" => {
                self.job_stop_timeout = Some(if words == ["-1"] {
                    WaitTime::Forever
                } else {
                    WaitTime::For(values::seconds(words).map_err(|fault| {
                        Fault::new(
                            fault.message,
                            "write a time such as `30` or `5 min`; 0 means not to wait, \
                             -1 to wait as long as it takes",
                        )
                    })?)
                });
            }
            "redirect_outerr" => self.redirect_outerr = Some(values::boolean(words)?),
            "argument_transfer" => {
                self.argument_transfer = Some(match values::word(words)? {
                    "wait" => ArgumentTransfer::Wait,
                    "nowait" => ArgumentTransfer::NoWait,
                    "copy" => ArgumentTransfer::Copy,
                    other => {
                        let hint = "write `wait`, `nowait` or `copy`";
                        return Err(Fault::new(format!("is `{other}`"), hint));
                    }
                });
            }
            "workDirectory" => self.work_directory = Some(values::word(words)?.into()),
            "environment" => self.environment.push(variable(words)?),
            "mpi_runNoOfCPUs" => self.ranks.push(ranks(words)?),
            "preload" => self.preload.push(values::word(words)?.into()),
            "information_source_tag" => {
                self.information_source = Some(values::word(words)?.into());
            }
            "debug" => self.debug = Some(values::boolean(words)?),
            "debug_display" => self.debug_display = Some(values::word(words)?.into()),
            "debug_terminal" => self.debug_terminal = Some(values::word(words)?.into()),
            "debug_debugger" => self.debug_debugger = Some(values::word(words)?.into()),
            "debug_busyLoop" => self.debug_busy_loop = Some(values::boolean(words)?),
            _ => self.elsewhere.set(name, words)?,
        }
        Ok(())
    }

    /// Fills in missing settings from `default`. Variables override inherited ones of the same name; modules
    /// to preload accumulate.
    pub(super) fn over(&self, default: &ServerSettings) -> ServerSettings {
        let mut environment = default.environment.clone();
        for (name, value) in &self.environment {
            environment.retain(|(inherited, _)| inherited != name);
            environment.push((name.clone(), value.clone()));
        }
        let or = |own: &Option<String>, inherited: &Option<String>| {
            own.clone().or_else(|| inherited.clone())
        };
        ServerSettings {
            job_start_timeout: self.job_start_timeout.unwrap_or(default.job_start_timeout),
            job_stop_timeout: self.job_stop_timeout.unwrap_or(default.job_stop_timeout),
            redirect_outerr: self.redirect_outerr.unwrap_or(default.redirect_outerr),
            argument_transfer: self.argument_transfer.unwrap_or(default.argument_transfer),
            work_directory: self.work_directory.clone().or_else(|| default.work_directory.clone()),
            environment,
            preload: [&default.preload[..], &self.preload].concat(),
            // The first match wins.
            ranks: [&self.ranks[..], &default.ranks].concat(),
            information_source: or(&self.information_source, &default.information_source),
            debug: Debug {
                enabled: self.debug.unwrap_or(default.debug.enabled),
                display: or(&self.debug_display, &default.debug.display),
                terminal: or(&self.debug_terminal, &default.debug.terminal),
                debugger: or(&self.debug_debugger, &default.debug.debugger),
                busy_loop: self.debug_busy_loop.unwrap_or(default.debug.busy_loop),
            },
            elsewhere: self.elsewhere.over(&default.elsewhere),
        }
    }
}

/// `NAME=value`.
fn variable(words: &[String]) -> Result<(String, String), Fault> {
    let text = values::word(words)?;
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err(Fault::new(format!("is `{text}`"), "write `NAME=value`")),
    }
}

/// `FUNCTION=RANKS`.
fn ranks(words: &[String]) -> Result<(String, u32), Fault> {
    let text = values::word(words)?;
    let (name, count) = text.split_once('=').unwrap_or((text, ""));
    match count.trim().parse() {
        Ok(count @ 1..) if !name.trim().is_empty() => Ok((name.trim().into(), count)),
        _ => Err(Fault::new(format!("is `{text}`"), "write `FUNCTION=RANKS`, as `sample/pi=4`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(lines: &[(&str, &str)]) -> Draft {
        let mut draft = Draft::default();
        for (name, value) in lines {
            let words: Vec<String> = value.split_whitespace().map(Into::into).collect();
            draft.set(name, &words).unwrap();
        }
        draft
    }

    #[test]
    fn what_is_not_said_is_inherited() {
        let default = draft(&[("redirect_outerr", "false"), ("debug", "true")])
            .over(&ServerSettings::default());
        let settings =
            draft(&[("redirect_outerr", "true"), ("debug_display", ":1")]).over(&default);
        assert!(settings.redirect_outerr);
        assert_eq!((settings.debug.enabled, settings.debug.display), (true, Some(":1".into())));
    }

    #[test]
    fn variables_add_up_by_name() {
        let default = draft(&[("environment", "A=1"), ("environment", "B=2")])
            .over(&ServerSettings::default());
        let settings = draft(&[("environment", "A=x=y"), ("environment", "C=")]).over(&default);
        let expected = [("B", "2"), ("A", "x=y"), ("C", "")];
        assert_eq!(settings.environment, expected.map(|(n, v)| (n.to_string(), v.to_string())));
    }

    #[test]
    fn ranks_are_those_of_the_server_before_those_of_all() {
        let default = draft(&[("mpi_runNoOfCPUs", "m/f=2"), ("mpi_runNoOfCPUs", "g=3")])
            .over(&ServerSettings::default());
        let settings = draft(&[("mpi_runNoOfCPUs", "m/f=8")]).over(&default);
        let found = ["m/f", "m/g", "g", "m/h"].map(|name| settings.ranks_of(name));
        assert_eq!(found, [Some(8), Some(3), Some(3), None]);
        for wrong in ["f", "f=", "f=0", "f=-1", "=2", "f=2x"] {
            let words = [wrong.to_owned()];
            assert!(Draft::default().set("mpi_runNoOfCPUs", &words).is_err(), "{wrong}");
        }
    }

    #[test]
    fn modules_to_preload_add_up() {
        let default = draft(&[("preload", "lapack")]).over(&ServerSettings::default());
        let settings = draft(&[("preload", "./fft.so"), ("preload", "a")]).over(&default);
        assert_eq!(settings.preload, ["lapack", "./fft.so", "a"]);
    }

    #[test]
    fn limits_of_starting_and_stopping() {
        let forever = draft(&[("job_startTimeout", "0"), ("job_stopTimeout", "-1")]);
        let settings = forever.over(&ServerSettings::default());
        assert_eq!(settings.job_start_timeout, WaitTime::Forever);
        assert_eq!(settings.job_stop_timeout, WaitTime::Forever);
        let at_once = draft(&[("job_stopTimeout", "0")]).over(&ServerSettings::default());
        assert_eq!(at_once.job_stop_timeout, WaitTime::For(Duration::ZERO));
        let fault = Draft::default().set("job_stopTimeout", &["-2".to_string()]).unwrap_err();
        assert!(fault.hint.contains("-1 to wait as long as it takes"), "{fault:?}");
    }
}

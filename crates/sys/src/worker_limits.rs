//! Limits of worker processes, and the user that they run as.
//!
//! They are applied once, to the process that starts the workers, and inherited. Memory and processes are limited by
//! control groups where possible (worker_groups.rs), because those count the children of a worker too, and by rlimits
//! elsewhere. `RLIMIT_DATA` limits memory rather than `RLIMIT_AS`: address space contains shared memory, and what
//! runtimes reserve and never use.

use std::ffi::{CString, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use nix::unistd::{User, geteuid, getgrouplist};
use thiserror::Error;

/// Limits of each worker process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Memory of a worker and its children, bytes.
    pub memory: Option<u64>,
    /// Open files of each process.
    pub open_files: Option<u64>,
    /// Processes and threads of a worker: itself, its children and their threads.
    pub processes: Option<u64>,
    /// The user that workers run as; `None`: the user of this process.
    pub user: Option<RunAs>,
}

/// A user that workers run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// Name of the user.
    pub name: String,
    /// Number of the user.
    pub uid: u32,
    /// Number of the primary group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
    /// Home directory, which is also the working directory.
    pub home: PathBuf,
}

/// Limits that cannot be applied.
#[derive(Debug, Error)]
pub enum LimitError {
    /// This process may not become another user.
    #[error("the server may not switch to user `{user}`: it does not run as root")]
    NotRoot {
        /// The name of the user.
        user: String,
    },
    /// Workers would run as root although another user was requested.
    #[error("workers do not switch to user `{user}`, which is root: leave the user out")]
    Root {
        /// The name of the user.
        user: String,
    },
    /// A name or a path with a zero byte.
    #[error("the home directory of user `{user}` contains a zero byte")]
    Home {
        /// The name of the user.
        user: String,
    },
    /// A limit under which no worker can start.
    #[error("the limit `{limit}` of {value} is too low for a worker: the minimum is {least}")]
    TooLow {
        /// The limit.
        limit: &'static str,
        /// Its value.
        value: u64,
        /// The lowest possible value.
        least: u64,
    },
}

/// A worker that starts uses about this much memory, bytes.
const LEAST_MEMORY: u64 = 16 << 20;
/// The process that starts workers receives the descriptors of many at a time.
const LEAST_FILES: u64 = 128;

impl WorkerLimits {
    /// No limits.
    pub const NONE: WorkerLimits =
        WorkerLimits { memory: None, open_files: None, processes: None, user: None };

    /// Whether there is neither a limit nor a user.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == WorkerLimits::NONE
    }

    /// Checks that this process can apply them.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check(&self) -> Result<(), LimitError> {
        let least = [
            ("memory", self.memory, LEAST_MEMORY),
            ("open_files", self.open_files, LEAST_FILES),
            ("processes", self.processes, 1),
        ];
        for (limit, value, least) in least {
            if let Some(value) = value.filter(|value| *value < least) {
                return Err(LimitError::TooLow { limit, value, least });
            }
        }
        let Some(RunAs { name, uid, home, .. }) = &self.user else { return Ok(()) };
        let user = || name.clone();
        if *uid == 0 {
            return Err(LimitError::Root { user: user() });
        }
        if !geteuid().is_root() {
            return Err(LimitError::NotRoot { user: user() });
        }
        if home.as_os_str().as_bytes().contains(&0) {
            return Err(LimitError::Home { user: user() });
        }
        Ok(())
    }

    /// Makes a command run with these limits, except those in `grouped`, which control groups hold. `workers`: the
    /// number of workers that it may start.
    ///
    /// `RLIMIT_NPROC` counts all processes and threads of the user, so it is a bound for all workers together, above
    /// what the user runs now. It does not apply to root.
    pub fn apply(&self, command: &mut Command, grouped: Grouped, workers: u32) {
        if self.is_none() {
            return;
        }
        let uid = self.user.as_ref().map_or(geteuid().as_raw(), |user| user.uid);
        let memory = self.memory.filter(|_| !grouped.memory);
        let processes = self.processes.filter(|_| !grouped.processes).map(|processes| {
            // The process that starts workers counts too.
            tasks_of(uid) + processes.saturating_mul(u64::from(workers.max(1))) + 1
        });
        let limits = [
            (libc::RLIMIT_DATA, memory),
            (libc::RLIMIT_NOFILE, self.open_files),
            (libc::RLIMIT_NPROC, processes),
            // A dump would contain the arguments of a user's call.
            (libc::RLIMIT_CORE, Some(0)),
        ];
        let user = self.user.as_ref().map(Identity::new);
        if let Some(RunAs { name, home, .. }) = &self.user {
            command.env("HOME", home).env("USER", name).env("LOGNAME", name);
            command.env_remove("XDG_RUNTIME_DIR");
        }
        let confine = move || {
            for (resource, limit) in limits {
                limit.map_or(Ok(()), |limit| lower(resource, limit))?;
            }
            user.as_ref().map_or(Ok(()), Identity::take)?;
            // Programs with the set-user-ID bit would escape the limits.
            // SAFETY: plain system call.
            done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
        };
        // SAFETY: it makes system calls only, and its memory was allocated before the fork.
        unsafe { command.pre_exec(confine) };
    }
}

impl RunAs {
    /// The user with this name; `None`: there is none.
    ///
    /// # Errors
    /// When the user database cannot be read.
    pub fn named(name: &str) -> io::Result<Option<RunAs>> {
        let Some(user) = User::from_name(name)? else { return Ok(None) };
        let groups = getgrouplist(&CString::new(name)?, user.gid)?;
        Ok(Some(RunAs {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(nix::unistd::Gid::as_raw).collect(),
            home: user.dir,
        }))
    }
}

/// Limits that control groups hold, so that rlimits need not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grouped {
    /// Memory.
    pub memory: bool,
    /// Processes.
    pub processes: bool,
}

/// A user in a form that can be used between fork and exec.
struct Identity {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    home: CString,
}

impl Identity {
    fn new(user: &RunAs) -> Identity {
        let RunAs { uid, gid, groups, home, .. } = user;
        // `check` has refused zero bytes.
        let home = CString::new(OsString::from(home).into_encoded_bytes()).unwrap_or_default();
        Identity { uid: *uid, gid: *gid, groups: groups.clone(), home }
    }

    /// Makes this process belong to the user. Only makes system calls.
    fn take(&self) -> io::Result<()> {
        let Identity { uid, gid, groups, home } = self;
        // SAFETY: plain system calls; the list and the path are valid.
        unsafe {
            done(libc::setgroups(groups.len(), groups.as_ptr()))?;
            done(libc::setresgid(*gid, *gid, *gid))?;
            done(libc::setresuid(*uid, *uid, *uid))?;
            // The folder of the server may be closed to this user.
            if libc::chdir(home.as_ptr()) == 0 { Ok(()) } else { done(libc::chdir(c"/".as_ptr())) }
        }
    }
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lowers both limits of a resource. A limit that is already lower stays. Only makes system calls.
fn lower(resource: libc::__rlimit_resource_t, limit: u64) -> io::Result<()> {
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain system calls with a valid structure.
    unsafe {
        done(libc::getrlimit(resource, &raw mut limits))?;
        limits.rlim_max = limits.rlim_max.min(limit);
        limits.rlim_cur = limits.rlim_cur.min(limits.rlim_max);
        if resource == libc::RLIMIT_NOFILE {
            limits.rlim_cur = limits.rlim_max;
        }
        done(libc::setrlimit(resource, &raw const limits))
    }
}

/// Number of processes and threads of a user.
fn tasks_of(uid: u32) -> u64 {
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let own = entries.flatten().filter(|entry| {
        let is_process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        is_process && entry.metadata().is_ok_and(|data| data.uid() == uid)
    });
    let tasks = own.map(|entry| fs::read_dir(entry.path().join("task")).map_or(1, Iterator::count));
    tasks.sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a shell with these limits prints.
    fn shell(limits: &WorkerLimits, grouped: Grouped, script: &str) -> Vec<String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        limits.apply(&mut command, grouped, 2);
        let ran = command.output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_runs_with_its_limits() {
        let limits = WorkerLimits {
            memory: Some(64 << 20),
            open_files: Some(200),
            processes: Some(50),
            user: None,
        };
        let script = "grep -E 'data|open files' /proc/self/limits; ulimit -c; \
                      grep NoNewPrivs /proc/self/status";
        let printed = shell(&limits, Grouped::default(), script).join("\n");
        let words: Vec<&str> = printed.split_whitespace().collect();
        let expected = ["data", "size", "67108864", "67108864"];
        assert!(words.windows(4).any(|four| four == expected), "{printed}");
        assert!(words.windows(4).any(|four| four == ["open", "files", "200", "200"]), "{printed}");
        assert!(printed.ends_with("0\nNoNewPrivs:\t1"), "{printed}");
        let grouped = Grouped { memory: true, processes: true };
        let printed = shell(&limits, grouped, "ulimit -d").join("");
        assert_ne!(printed, "65536", "the group's limit was set twice");
    }

    #[test]
    fn processes_are_counted_for_the_user() {
        let limits = WorkerLimits { processes: Some(50), ..WorkerLimits::NONE };
        let now = tasks_of(geteuid().as_raw());
        let printed =
            shell(&limits, Grouped::default(), "grep processes /proc/self/limits").join("");
        let limit = printed.split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap();
        assert!(now > 0 && limit > 101, "{printed}");
    }

    #[test]
    fn a_command_runs_as_another_user() {
        let home = PathBuf::from("/nonexistent");
        let user = RunAs { name: "caller".into(), uid: 54321, gid: 54322, groups: vec![7], home };
        let limits = WorkerLimits { user: Some(user), ..WorkerLimits::NONE };
        if !geteuid().is_root() {
            let error = limits.check().unwrap_err().to_string();
            let expected = "may not switch to user `caller`: it does not run as root";
            assert!(error.contains(expected), "{error}");
            return;
        }
        limits.check().unwrap();
        let script =
            "grep -E '^(Uid|Gid|Groups)' /proc/self/status; echo $HOME $USER $LOGNAME; pwd";
        let printed = shell(&limits, Grouped::default(), script);
        assert_eq!(
            printed,
            [
                "Uid:\t54321\t54321\t54321\t54321",
                "Gid:\t54322\t54322\t54322\t54322",
                "Groups:\t7 ",
                "/nonexistent caller caller",
                "/",
            ]
        );
    }

    #[test]
    fn impossible_limits_are_refused() {
        let refused = |limits: WorkerLimits| limits.check().unwrap_err().to_string();
        let few = WorkerLimits { open_files: Some(10), ..WorkerLimits::NONE };
        assert!(refused(few).contains("`open_files` of 10 is too low"));
        let little = WorkerLimits { memory: Some(1000), ..WorkerLimits::NONE };
        assert!(refused(little).contains("the minimum is 16777216"));
        let root = RunAs::named("root").unwrap().unwrap();
        assert_eq!((root.uid, root.home.to_str()), (0, Some("/root")));
        assert!(refused(WorkerLimits { user: Some(root), ..WorkerLimits::NONE }).contains("root"));
        assert_eq!(RunAs::named("nobody-has-this-name").unwrap(), None);
        WorkerLimits::NONE.check().unwrap();
    }
}

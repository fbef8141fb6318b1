//! Folder that nodes share with this machine: the program, and one ticket file per agent that only its owner
//! can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gridrpc_config::HostGroup;
use gridrpc_sys::safe_path::{self, UnsafePath};
use gridrpc_transport::Ticket;

use crate::permits::Permits;
use crate::staging::Source;

/// How much of an agent's last output is reported when it ends, bytes.
const TOLD: u64 = 4096;

/// Where files for nodes are stored.
#[derive(Debug)]
pub(crate) struct FilePlacement {
    /// The program on the nodes; none: this one is copied into the folder.
    program: Option<String>,
    staging: Option<String>,
    source: Source,
}

/// The ticket folder of one client.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    requests: u32,
}

impl FilePlacement {
    pub(crate) fn new(group: &HostGroup, own_program: &Path) -> FilePlacement {
        FilePlacement {
            program: group.program.clone(),
            staging: group.staging.clone(),
            source: Source::new(own_program),
        }
    }

    /// The base folder.
    pub(crate) fn folder(&self) -> Result<PathBuf, String> {
        let folder = match self.staging.as_deref() {
            Some(path) => match path.strip_prefix("~/") {
                Some(rest) => safe_path::home().map(|home| home.join(rest)),
                None => Some(PathBuf::from(path)),
            },
            None => safe_path::caches().map(|caches| caches.join("gridrpc")),
        };
        folder.ok_or_else(|| {
            "there is no home folder to keep the program and tickets in (HOME is not set, and this user has none): \
             name a folder that the nodes share by `staging` in grid.toml"
                .to_owned()
        })
    }

    /// The program that nodes run. Copies this one if it is missing, and calls `copies` first.
    pub(crate) fn program(&self, copies: impl FnOnce()) -> Result<String, String> {
        if let Some(program) = &self.program {
            return Ok(program.clone());
        }
        let program = self.source.program()?;
        let folder = self.folder()?.join(&program.hash);
        let path = folder.join("gridrpc");
        // Another group's agents may run it already; replacing the file would take theirs away.
        static COPYING: LazyLock<Permits> = LazyLock::new(|| Permits::new(1));
        let _copying = COPYING.take(|| true);
        if !program.is_at(&path) {
            copies();
            make(&folder)?;
            let new = folder.join(format!("gridrpc.{}", word().map_err(|e| stuck(&folder, &e))?));
            let copy = || {
                let mut file =
                    OpenOptions::new().write(true).create_new(true).mode(0o700).open(&new)?;
                program.send(&mut file)?;
                drop(file);
                fs::rename(&new, &path)
            };
            copy().map_err(|error| {
                let _ = fs::remove_file(&new);
                stuck(&folder, &error)
            })?;
        }
        text(&path)
    }

    /// Creates a new folder for tickets.
    pub(crate) fn open(&self) -> Result<Folder, String> {
        let all = self.folder()?.join("jobs");
        let path = all.join(word().map_err(|error| stuck(&all, &error))?);
        make(&path)?;
        Ok(Folder { path, requests: 0 })
    }
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the tickets of a request under these names and returns their folder.
    pub(crate) fn put<'s>(
        &mut self,
        tickets: impl Iterator<Item = (String, &'s Ticket)>,
    ) -> Result<PathBuf, String> {
        self.requests += 1;
        let folder = self.path.join(self.requests.to_string());
        make(&folder)?;
        let put = || -> io::Result<()> {
            for (name, ticket) in tickets {
                let mut new = OpenOptions::new();
                let mut file =
                    new.write(true).create_new(true).mode(0o600).open(folder.join(name))?;
                writeln!(file, "{}", ticket.encode())?;
            }
            Ok(())
        };
        put().map_err(|error| stuck(&folder, &error))?;
        Ok(folder)
    }
}

/// Replaces a ticket that has been taken. `number`: the agent's number in its request.
pub(super) fn renew(folder: &Path, number: usize, ticket: &Ticket) -> io::Result<()> {
    // The old ticket may still be there.
    let path = folder.join(number.to_string());
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // The rename makes the write atomic.
    let new = folder.join(format!("{number}.new"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    writeln!(file, "{}", ticket.encode())?;
    drop(file);
    fs::rename(&new, &path)
}

/// The end of an agent's output. `number`: the agent's number in its request.
pub(super) fn said(folder: &Path, number: usize) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        // If the agent wrote nothing, its job script may have written the reason.
        let mut file = File::open(folder.join(format!("{number}.out")))
            .or_else(|_| File::open(folder.join("job.out")))?;
        let from = file.metadata()?.len().saturating_sub(TOLD);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TOLD).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // A node that does not share the folder writes its output elsewhere.
    read().unwrap_or_default()
}

/// The exit status of an agent, if its job script recorded one.
pub(super) fn status(folder: &Path, number: usize) -> Option<u32> {
    fs::read_to_string(folder.join(format!("{number}.end"))).ok()?.trim().parse().ok()
}

/// A path as text, for scripts and options.
pub(crate) fn text(path: &Path) -> Result<String, String> {
    let text = path.to_str().filter(|text| !text.contains(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        format!(
            "the name of the folder `{}` has characters that no job script can have: name another one by \
             `staging` in grid.toml",
            path.display()
        )
    })
}

fn make(folder: &Path) -> Result<(), String> {
    safe_path::make_folder(folder).map_err(|error| match error {
        UnsafePath::Io(error) => stuck(folder, &error),
        others => format!(
            "the program and tickets for the nodes are not put into `{}`: {others}; name another folder, which the \
             nodes share, by `staging` in grid.toml: it and all above it belong to you or root, and nobody else can \
             write to them",
            folder.display()
        ),
    })
}

/// A random word that does not collide.
fn word() -> io::Result<String> {
    let bytes = gridrpc_sys::random::<8>()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn stuck(folder: &Path, error: &io::Error) -> String {
    format!(
        "the program and tickets for the nodes cannot be kept in `{}`: {error}; name another folder, which \
         the nodes share, by `staging` in grid.toml",
        folder.display()
    )
}

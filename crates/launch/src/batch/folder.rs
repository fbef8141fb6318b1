//! What nodes read: a folder that they share with this machine has the program, and a file with each
//! agent's ticket, which nobody else can read.

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

/// How much of what an agent has written is told when it ends, bytes.
const TOLD: u64 = 4096;

/// Where things for nodes are kept.
#[derive(Debug)]
pub(crate) struct Placing {
    /// The program there; none: this one is copied into the folder.
    program: Option<String>,
    staging: Option<String>,
    source: Source,
}

/// A folder of one client's, for its tickets.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    requests: u32,
}

impl Placing {
    pub(crate) fn new(group: &HostGroup, own_program: &Path) -> Placing {
        Placing {
            program: group.program.clone(),
            staging: group.staging.clone(),
            source: Source::new(own_program),
        }
    }

    /// The folder that all is in.
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

    /// The program that nodes run. This one is copied if it is not there yet, and `copies` hears of it.
    pub(crate) fn program(&self, copies: impl FnOnce()) -> Result<String, String> {
        if let Some(program) = &self.program {
            return Ok(program.clone());
        }
        let program = self.source.program()?;
        let folder = self.folder()?.join(&program.hash);
        let path = folder.join("gridrpc");
        // Another group's agents may run it already, and would lose their file if it took the place of theirs.
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

    /// A new folder for tickets.
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

    /// Writes the tickets of a request, in files of these names; the folder that they are in.
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

/// Writes another ticket in the place of one that was taken. `number`: that of its agent in its request.
pub(super) fn renew(folder: &Path, number: usize, ticket: &Ticket) -> io::Result<()> {
    // The old one may not have been taken.
    let path = folder.join(number.to_string());
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // It is there as a whole or not at all.
    let new = folder.join(format!("{number}.new"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    writeln!(file, "{}", ticket.encode())?;
    drop(file);
    fs::rename(&new, &path)
}

/// What an agent has written, at most the end of it. `number`: its own in its request.
pub(super) fn said(folder: &Path, number: usize) -> Vec<u8> {
    let read = || -> io::Result<Vec<u8>> {
        // Where there is nothing of the agent's, the script of its job may say why.
        let mut file = File::open(folder.join(format!("{number}.out")))
            .or_else(|_| File::open(folder.join("job.out")))?;
        let from = file.metadata()?.len().saturating_sub(TOLD);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TOLD).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    // A node that does not share the folder has written it elsewhere.
    read().unwrap_or_default()
}

/// With what status an agent has ended, where the script of its job writes that down.
pub(super) fn status(folder: &Path, number: usize) -> Option<u32> {
    fs::read_to_string(folder.join(format!("{number}.end"))).ok()?.trim().parse().ok()
}

/// A path as text, which scripts and options are.
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

/// A word that nobody else comes upon.
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

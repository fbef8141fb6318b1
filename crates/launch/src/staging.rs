//! Seeing that the program is on a host: what runs there, what it tells, and what is sent.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gridrpc_sys::safe_path;

/// What runs on the host. It is not in the command line of ssh, which whatever login shell the user
/// has would have to take as it is, but comes by standard input.
const SCRIPT: &str = include_str!("staging.sh");
/// What lines of the script begin with; login files may have written others before.
const MARK: &str = "gridrpc: ";
/// Characters of the hash that name a program's folder.
const HASH: usize = 32;
/// How much is sent at once.
const PIECE: usize = 256 << 10;

/// The command for ssh: reads the script, when it has said that it is there. For any login shell: it has
/// single quotes only, and in them nothing that csh or fish would care for. The script is all that there is to
/// read by then, so that no reader can take what is for another.
pub(super) fn command(script: &str) -> String {
    let bytes = script.len();
    format!("exec sh -c 'echo; echo {MARK}hello; eval \"$(head -c {bytes})\"'")
}

/// The script for a host.
pub(super) fn script(staged: &Staged<'_>, attempt: &str) -> String {
    let (program, folder, hash, size) = match staged {
        Staged::There(program) => (*program, "", "", 0),
        Staged::Copied { folder, program } => {
            ("", folder.unwrap_or(""), &program.hash[..], program.size)
        }
    };
    let (program, folder) = (quoted(program), quoted(folder));
    format!(
        "program={program}\nfolder={folder}\nhash={hash}\nsize={size}\nattempt={attempt}\n{SCRIPT}"
    )
}

/// As one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Where the program of a host comes from.
#[derive(Debug)]
pub(super) enum Staged<'a> {
    /// It is there, under this name.
    There(&'a str),
    /// It is copied there.
    Copied {
        /// The folder for it; none: the user's cache.
        folder: Option<&'a str>,
        /// The program.
        program: &'a Program,
    },
}

/// What the script tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It can be sent.
    Hello,
    /// The client's address as it is seen there; empty if ssh does not tell.
    Client(String),
    /// The folder that the program is to be in.
    Folder(String),
    /// The program is not there, and the machine is of this kind (`uname -sm`).
    Absent(String),
    /// It cannot go on: what has failed, and why.
    Failed(String, String),
    /// It becomes the agent now, which reads the ticket.
    Starts,
}

/// What a line of the host's standard output tells, if it is one of the script's.
pub(super) fn told(line: &str) -> Option<Told> {
    let (word, rest) = split(line.strip_prefix(MARK)?);
    match word {
        "hello" => Some(Told::Hello),
        "client" => Some(Told::Client(rest.to_owned())),
        "folder" => Some(Told::Folder(rest.to_owned())),
        "absent" => Some(Told::Absent(rest.to_owned())),
        "failed" => {
            let (kind, why) = split(rest);
            Some(Told::Failed(kind.to_owned(), why.to_owned()))
        }
        "starts" => Some(Told::Starts),
        _ => None,
    }
}

fn split(text: &str) -> (&str, &str) {
    text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// What to tell the user when the script has failed.
pub(super) fn failure(host: &str, folder: &str, kind: &str, why: &str) -> String {
    let elsewhere = "name another folder there by `staging` in grid.toml";
    match kind {
        "home" => {
            let home = if why.is_empty() {
                "HOME is not set".to_owned()
            } else {
                format!("`{why}` is not there")
            };
            format!(
                "on {host} the program has no place to be kept in: there is no home folder ({home}); \
                 name a folder there by `staging` in grid.toml"
            )
        }
        "owner" | "writable" => {
            let mut words = why.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (uid, mode, path) = (word(), word(), word());
            let what = match kind {
                "owner" => format!(
                    "`{path}` belongs to user {uid} (mode {mode}), who can change what it holds"
                ),
                _ => format!("others can write to `{path}` (user {uid}, mode {mode})"),
            };
            format!(
                "on {host} the program is not run from `{folder}`: {what}; {elsewhere}: it and all above it belong to \
                 you or root, and nobody else can write to them"
            )
        }
        "folder" => format!(
            "on {host} the program cannot be kept in `{folder}`: {why}; make that folder writable, \
             or {elsewhere}"
        ),
        "store" => format!(
            "on {host} the program could not be written to `{folder}`: {why}; see that there is \
             room, or {elsewhere}"
        ),
        "run" => {
            let (status, why) = split(why);
            match (status, folder) {
                (_, "") => format!(
                    "on {host} the program cannot be run: {why} (status {status}); see what `program` in grid.toml \
                     names, or leave it out to have the program copied there"
                ),
                ("126", _) => format!(
                    "on {host} programs in `{folder}` cannot be run: {why}; its file system may be mounted \
                     `noexec`: {elsewhere}"
                ),
                _ => format!(
                    "on {host} this machine's program cannot be run: {why} (status {status}); install gridrpc \
                     there, and name its program by `program` in grid.toml"
                ),
            }
        }
        _ => format!("on {host} the agent could not be started: {kind} {why}"),
    }
}

/// The program that is copied to hosts. It stays the same while hosts are started, also if another
/// version is installed meanwhile.
#[derive(Debug)]
pub(super) struct Program {
    file: File,
    pub(super) size: u64,
    /// Names its contents.
    pub(super) hash: String,
    /// What it runs on, as `uname -sm` says it.
    pub(super) machine: String,
}

/// A program that is read when the first host needs it.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    read: OnceLock<Result<Program, String>>,
}

impl Source {
    pub(super) fn new(path: &Path) -> Source {
        Source { path: path.to_owned(), read: OnceLock::new() }
    }

    /// The program, or why there is none.
    pub(super) fn program(&self) -> Result<&Program, &str> {
        let read = || {
            Program::open(&self.path).map_err(|error| {
                format!(
                    "the program `{}`, which is to be copied, cannot be read: {error}",
                    self.path.display()
                )
            })
        };
        self.read.get_or_init(read).as_ref().map_err(|why| &why[..])
    }
}

impl Program {
    fn open(path: &Path) -> io::Result<Program> {
        let mut file = File::open(path)?;
        let (mut hasher, mut size, mut piece) = (blake3::Hasher::new(), 0, vec![0; PIECE]);
        loop {
            let read = file.read(&mut piece)?;
            if read == 0 {
                break;
            }
            size += read as u64;
            hasher.update(&piece[..read]);
        }
        let mut hash = hasher.finalize().to_hex().to_string();
        hash.truncate(HASH);
        let system = nix::sys::utsname::uname()?;
        let (name, machine) =
            (system.sysname().to_string_lossy(), system.machine().to_string_lossy());
        let machine = format!("{name} {machine}");
        Ok(Program { file, size, hash, machine })
    }

    /// Whether a file that others cannot change has all of it.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        safe_path::holds(path, &mut ReadAt { file: &self.file, at: 0 })
    }

    /// Writes all of it.
    pub(super) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let (mut sent, mut piece) = (0, vec![0; PIECE]);
        while sent < self.size {
            // Many are sent at once, from one open file.
            let read = self.file.read_at(&mut piece, sent)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let fits = usize::try_from(self.size - sent).map_or(read, |left| read.min(left));
            to.write_all(&piece[..fits])?;
            sent += fits as u64;
        }
        to.flush()
    }
}

/// Reads a file that others read as well.
struct ReadAt<'a> {
    file: &'a File,
    at: u64,
}

impl Read for ReadAt<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_script_are_told_from_others() {
        assert_eq!(told("gridrpc: hello"), Some(Told::Hello));
        assert_eq!(told("gridrpc: client"), Some(Told::Client(String::new())));
        assert_eq!(told("gridrpc: absent Linux x86_64"), Some(Told::Absent("Linux x86_64".into())));
        let failed = Told::Failed("store".into(), "no room".into());
        assert_eq!(told("gridrpc: failed store no room"), Some(failed));
        for other in ["", "hello", "gridrpc: good morning", " gridrpc: hello"] {
            assert_eq!(told(other), None);
        }
    }

    #[test]
    fn names_survive_the_shell() {
        let script = script(&Staged::There("it's $HOME/`x`"), "1");
        assert!(script.starts_with(r"program='it'\''s $HOME/`x`'"), "{script}");
    }
}

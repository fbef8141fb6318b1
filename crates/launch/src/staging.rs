//! Staging: checks for the program on a host and copies it there.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gridrpc_sys::safe_path;

/// Script that runs on the host. It is sent on standard input and not on the ssh command line, which the
/// user's login shell, whichever it is, would parse.
const SCRIPT: &str = include_str!("staging.sh");
/// Prefix of the script's lines; login files may have written others before.
const MARK: &str = "gridrpc: ";
/// Number of hash characters in the name of a program's folder.
const HASH: usize = 32;
/// Bytes per write.
const PIECE: usize = 256 << 10;

/// The remote command for ssh: it greets, then reads the script. Works in any login shell: it uses only
/// single quotes, around text that means nothing to csh or fish. Only the script has been sent at that point,
/// so no process can read input meant for another.
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

/// Quotes text as one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Source of a host's program.
#[derive(Debug)]
pub(super) enum Staged<'a> {
    /// The host has it, under this name.
    There(&'a str),
    /// It is copied to the host.
    Copied {
        /// Its folder; none: the user's cache.
        folder: Option<&'a str>,
        /// The program.
        program: &'a Program,
    },
}

/// A message from the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScriptMessage {
    /// Ready for the script.
    Hello,
    /// The client's address as seen from the host; empty if ssh does not report it.
    Client(String),
    /// The folder for the program.
    Folder(String),
    /// The program is missing, and the machine is of this kind (`uname -sm`).
    Absent(String),
    /// It failed: the step, and the reason.
    Failed(String, String),
    /// It becomes the agent, which reads the ticket next.
    Starts,
}

/// Parses a line of the host's standard output; none if it is not the script's.
pub(super) fn parse_message(line: &str) -> Option<ScriptMessage> {
    let (word, rest) = split(line.strip_prefix(MARK)?);
    match word {
        "hello" => Some(ScriptMessage::Hello),
        "client" => Some(ScriptMessage::Client(rest.to_owned())),
        "folder" => Some(ScriptMessage::Folder(rest.to_owned())),
        "absent" => Some(ScriptMessage::Absent(rest.to_owned())),
        "failed" => {
            let (kind, why) = split(rest);
            Some(ScriptMessage::Failed(kind.to_owned(), why.to_owned()))
        }
        "starts" => Some(ScriptMessage::Starts),
        _ => None,
    }
}

fn split(text: &str) -> (&str, &str) {
    text.split_once(' ').map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// Message for the user when the script has failed.
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

/// The program that is copied to hosts. It stays the same while hosts start, even if another version is
/// installed meanwhile.
#[derive(Debug)]
pub(super) struct Program {
    file: File,
    pub(super) size: u64,
    /// Hash of its contents.
    pub(super) hash: String,
    /// The machine it runs on, as printed by `uname -sm`.
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

    /// The program, or the reason there is none.
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

    /// Whether a file that others cannot change has the same contents.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        safe_path::holds(path, &mut ReadAt { file: &self.file, at: 0 })
    }

    /// Writes the whole program.
    pub(super) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let (mut sent, mut piece) = (0, vec![0; PIECE]);
        while sent < self.size {
            // Several copies are sent at once from one open file.
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

/// Reader with a position of its own on a shared file.
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
        assert_eq!(parse_message("gridrpc: hello"), Some(ScriptMessage::Hello));
        assert_eq!(parse_message("gridrpc: client"), Some(ScriptMessage::Client(String::new())));
        assert_eq!(
            parse_message("gridrpc: absent Linux x86_64"),
            Some(ScriptMessage::Absent("Linux x86_64".into()))
        );
        let failed = ScriptMessage::Failed("store".into(), "no room".into());
        assert_eq!(parse_message("gridrpc: failed store no room"), Some(failed));
        for other in ["", "hello", "gridrpc: good morning", " gridrpc: hello"] {
            assert_eq!(parse_message(other), None);
        }
    }

    #[test]
    fn names_survive_the_shell() {
        let script = script(&Staged::There("it's $HOME/`x`"), "1");
        assert!(script.starts_with(r"program='it'\''s $HOME/`x`'"), "{script}");
    }
}

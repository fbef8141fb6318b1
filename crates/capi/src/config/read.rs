//! Reads a configuration file and those that it includes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::str;

use super::client::{ClientConfig, FunctionInfo, InformationSource};
use super::error::{ConfigError, Position, Scope, Warning};
use super::files::{Disk, Files, MAX_FILE};
use super::lines::{self, Fault, Line};
use super::section::{Content, Entry, fault_at, malformed};
use super::server::{Draft, Server, ServerSettings};
use super::table::{Role, Section};
use super::{signals, values};

/// Deepest nesting of included files.
const MAX_DEPTH: usize = 16;
/// Most files.
const MAX_FILES: usize = 256;
/// Most sections in all files.
const MAX_SECTIONS: usize = 4096;
/// Most repetitions of an attribute in a section.
const MAX_REPEATED: usize = 1024;
/// Most warnings that are kept.
const MAX_WARNINGS: usize = 1000;

/// A section that has begun.
struct Open {
    section: Section,
    name: String,
    line: usize,
    entries: Vec<Entry>,
}

/// A SERVER section that waits for SERVER_DEFAULT, which may follow later.
struct PendingServer {
    hostnames: Vec<String>,
    tag: Option<String>,
    draft: Draft,
}

impl ClientConfig {
    /// Reads a file and the files that it includes.
    pub fn read(path: &Path) -> Result<ClientConfig, ConfigError> {
        ClientConfig::read_from(path, &Disk)
    }

    /// Reads a file from a source other than the disk.
    pub fn read_from(path: &Path, files: &dyn Files) -> Result<ClientConfig, ConfigError> {
        let mut reader = Reader::new(files);
        reader.file(path, None)?;
        Ok(reader.finish())
    }

    /// Parses the content of the file `file`.
    pub fn parse(
        file: &Path,
        content: &[u8],
        files: &dyn Files,
    ) -> Result<ClientConfig, ConfigError> {
        let mut reader = Reader::new(files);
        reader.text(file, content)?;
        Ok(reader.finish())
    }
}

/// State of the reader.
struct Reader<'f> {
    files: &'f dyn Files,
    /// The current file and those that include it.
    including: Vec<PathBuf>,
    files_read: usize,
    sections: usize,
    has_client: bool,
    default: Option<Draft>,
    servers: Vec<PendingServer>,
    tags: HashSet<String>,
    config: ClientConfig,
}

impl<'f> Reader<'f> {
    fn new(files: &'f dyn Files) -> Self {
        Reader {
            files,
            including: Vec::new(),
            files_read: 0,
            sections: 0,
            has_client: false,
            default: None,
            servers: Vec::new(),
            tags: HashSet::new(),
            config: ClientConfig::default(),
        }
    }

    /// Reads a file that is included at `at`.
    fn file(&mut self, path: &Path, at: Option<Position>) -> Result<(), ConfigError> {
        let identity = self.files.identity(path);
        if let Some(at) = &at {
            if self.including.contains(&identity) {
                return Err(malformed(
                    at.clone(),
                    Fault::new(
                        format!("`{}` includes itself", path.display()),
                        "take one of the INCLUDE sections on the way from it to itself out",
                    ),
                ));
            }
            if self.including.len() >= MAX_DEPTH || self.files_read >= MAX_FILES {
                return Err(malformed(
                    at.clone(),
                    Fault::new(
                        format!("`{}` is one file too many", path.display()),
                        format!("at most {MAX_FILES} files, {MAX_DEPTH} deep: include fewer"),
                    ),
                ));
            }
        }
        let content = self.files.load(path).map_err(|error| ConfigError::NotFound {
            file: path.to_path_buf(),
            at,
            reason: error.to_string(),
        })?;
        self.files_read += 1;
        self.including.push(identity);
        let result = self.text(path, &content);
        self.including.pop();
        result
    }

    /// Reads the content of a file.
    fn text(&mut self, file: &Path, content: &[u8]) -> Result<(), ConfigError> {
        if content.len() as u64 > MAX_FILE {
            return Err(fault_at(
                file,
                0,
                Fault::new(
                    format!("the file has more than {} MiB", MAX_FILE >> 20),
                    "give the name of a configuration file",
                ),
            ));
        }
        let text = str::from_utf8(content).map_err(|error| {
            let line = 1 + content[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count();
            let hint = "save the file as UTF-8";
            fault_at(file, line, Fault::new("the line is not UTF-8", hint))
        })?;
        let mut open: Option<Open> = None;
        for (index, text) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = index + 1;
            self.line(file, line, text, &mut open).map_err(|problem| match problem {
                Problem::Fault(fault) => fault_at(file, line, fault),
                Problem::Error(error) => error,
            })?;
        }
        match open {
            None => Ok(()),
            Some(Open { name, line, .. }) => Err(fault_at(
                file,
                line,
                Fault::new(
                    format!("the section <{name}> is not closed"),
                    format!("write `</{name}>` at its end"),
                ),
            )),
        }
    }

    fn line(
        &mut self,
        file: &Path,
        line: usize,
        text: &str,
        open: &mut Option<Open>,
    ) -> Result<(), Problem> {
        if text.contains('\0') {
            return Err(Fault::new("the line has a zero byte", "is it a text file?").into());
        }
        match lines::read(text)? {
            None => Ok(()),
            Some(Line::Begin(name)) => {
                if let Some(outer) = open {
                    return Err(Fault::new(
                        format!(
                            "<{name}> begins, but <{}> of line {} is not closed",
                            outer.name, outer.line
                        ),
                        format!("write `</{}>` before it", outer.name),
                    )
                    .into());
                }
                *open = Some(self.begin(file, line, name)?);
                Ok(())
            }
            Some(Line::End(name)) => match open.take() {
                Some(section) if section.name == name => Ok(self.end(file, &section)?),
                Some(section) => Err(Fault::new(
                    format!(
                        "</{name}> ends what was not begun: <{}> of line {} is open",
                        section.name, section.line
                    ),
                    format!("write `</{}>`", section.name),
                )
                .into()),
                None => Err(Fault::new(
                    format!("</{name}> ends what was not begun"),
                    format!("write `<{name}>` at the section's beginning"),
                )
                .into()),
            },
            Some(Line::Attribute { name, words }) => match open {
                Some(section) => self.attribute(file, section, Entry { name, words, line }),
                None => Err(Fault::new(
                    format!("`{name}` stands outside of any section"),
                    "attributes stand between `<SECTION>` and `</SECTION>`",
                )
                .into()),
            },
        }
    }

    fn begin(&mut self, file: &Path, line: usize, name: String) -> Result<Open, Fault> {
        let Some(section) = Section::named(&name) else {
            return Err(Fault::new(
                format!("there is no section <{name}>"),
                match Section::similar(&name) {
                    Some(known) => format!("is `<{known}>` meant?"),
                    None => "sections are INCLUDE, CLIENT, FUNCTION_INFO, SERVER, SERVER_DEFAULT \
                             and INFORMATION_SOURCE"
                        .into(),
                },
            ));
        };
        self.sections += 1;
        if self.sections > MAX_SECTIONS {
            let hint = "put servers that are alike into one section";
            return Err(Fault::new(format!("there are more than {MAX_SECTIONS} sections"), hint));
        }
        let again = match section {
            Section::Client => std::mem::replace(&mut self.has_client, true),
            Section::ServerDefault => self.default.is_some(),
            _ => false,
        };
        if again {
            let hint = "write everything into one section";
            return Err(Fault::new(format!("there is a <{name}> already"), hint));
        }
        if let Section::Foreign { reason, is_replaced } = section {
            let message = format!("<{name}> has no meaning here: {reason}");
            self.warn_in(file, line, message, Scope::Nowhere, is_replaced);
        }
        Ok(Open { section, name, line, entries: Vec::new() })
    }

    fn attribute(&mut self, file: &Path, open: &mut Open, entry: Entry) -> Result<(), Problem> {
        if matches!(open.section, Section::Foreign { .. }) {
            return Ok(());
        }
        let Entry { name, .. } = &entry;
        let before = || open.entries.iter().filter(|earlier| earlier.name == *name);
        match open.section.role(name) {
            None => {
                return Err(Fault::new(
                    format!("<{}> has no attribute `{name}`", open.name),
                    match open.section.similar_attribute(name) {
                        Some(known) => format!("is `{known}` meant?"),
                        None => "see the table of attributes in docs/coming-from-ninf-g.md".into(),
                    },
                )
                .into());
            }
            Some(Role::Ignored { reason, fitting }) => {
                self.warn_of(file, &entry, reason, fitting, Scope::Nowhere);
                return Ok(());
            }
            Some(role @ (Role::Used | Role::Kept { .. })) => {
                if let Role::Kept { reason, fitting } = role {
                    let scope = match open.section {
                        Section::Server => Scope::Server(self.servers.len()),
                        _ => Scope::Elsewhere,
                    };
                    self.warn_of(file, &entry, reason, fitting, scope);
                }
                if let Some(earlier) = before().next() {
                    return Err(Fault::new(
                        format!("`{name}` has a value already, from line {}", earlier.line),
                        "take one of the two out",
                    )
                    .into());
                }
            }
            Some(Role::Repeated) => {
                if before().count() >= MAX_REPEATED {
                    let message = format!("`{name}` is there more than {MAX_REPEATED} times");
                    return Err(Fault::new(message, "write several sections").into());
                }
            }
        }
        open.entries.push(entry);
        Ok(())
    }

    fn end(&mut self, file: &Path, open: &Open) -> Result<(), ConfigError> {
        let content = Content { file, name: &open.name, line: open.line, entries: &open.entries };
        match open.section {
            Section::Include => self.include(&content),
            Section::Client => self.client(&content),
            Section::FunctionInfo => self.function_info(&content),
            Section::Server => self.server(&content),
            Section::ServerDefault => {
                self.default = Some(content.draft()?);
                Ok(())
            }
            Section::InformationSource => self.information_source(&content),
            Section::Foreign { .. } => Ok(()),
        }
    }

    fn include(&mut self, content: &Content<'_>) -> Result<(), ConfigError> {
        content.words("filename")?;
        for entry in content.entries {
            let name = content.value(entry, values::word)?;
            let at = Position { file: content.file.to_path_buf(), line: entry.line };
            self.file(&beside(content.file, name), Some(at))?;
        }
        Ok(())
    }

    fn client(&mut self, content: &Content<'_>) -> Result<(), ConfigError> {
        let config = &mut self.config;
        if let Some(level) = content.get("loglevel", values::log_level)? {
            config.log_level = level;
        }
        if let Some(count) =
            content.get("save_sessionInfo", |words| values::integer(words, i64::MIN, i64::MAX))?
        {
            config.save_session_info = usize::try_from(count).ok();
        }
        if let Some(value) = content.get("fortran_compatible", values::boolean)? {
            config.fortran_compatible = value;
        }
        if let Some(value) = content.get("handling_signals", signals::list)? {
            config.handling_signals = value;
        }
        if let Some(value) = content.get("log_filePath", path)? {
            config.log_file = Some(value);
        }
        if let Some(value) = content.get("tmp_dir", path)? {
            config.tmp_dir = value;
        }
        config.hostname =
            content.get("hostname", |words| values::word(words).map(str::to_owned))?;
        let port = |words: &[String]| values::integer(words, 0, u16::MAX.into());
        let port = content.get("listen_port", port)?.and_then(|port| u16::try_from(port).ok());
        config.listen_port = port.filter(|port| *port > 0);
        Ok(())
    }

    fn function_info(&mut self, content: &Content<'_>) -> Result<(), ConfigError> {
        let info = FunctionInfo {
            hostname: content.required("hostname")?,
            funcname: content.required("funcname")?,
            path: content.required("path")?.into(),
            session_timeout: content.get("session_timeout", values::limit)?.flatten(),
        };
        self.config.function_infos.push(info);
        Ok(())
    }

    fn server(&mut self, content: &Content<'_>) -> Result<(), ConfigError> {
        let hostnames = content.words("hostname")?;
        let tag = content.get("tag", |words| values::word(words).map(str::to_string))?;
        if let Some(tag) = &tag
            && !self.tags.insert(tag.clone())
        {
            let hint = "tags tell servers apart: choose another";
            let message = format!("there is a server with the tag `{tag}` already");
            return Err(content.fault(content.line, Fault::new(message, hint)));
        }
        let draft = content.draft()?;
        self.servers.push(PendingServer { hostnames, tag, draft });
        Ok(())
    }

    fn information_source(&mut self, content: &Content<'_>) -> Result<(), ConfigError> {
        let text = |words: &[String]| values::word(words).map(str::to_string);
        let kind = content.get("type", text)?;
        if let Some(kind) = kind.as_deref().filter(|kind| *kind != "NRF") {
            self.warn(
                content.file,
                content.line,
                format!(
                    "an information source of type `{kind}` has no meaning here: sources are \
                     files, of type `NRF`"
                ),
            );
            return Ok(());
        }
        let files = content.words("source")?;
        let files: Vec<PathBuf> = files.iter().map(|name| beside(content.file, name)).collect();
        for file in &files {
            if let Err(error) = self.files.load(file) {
                let file = file.display();
                let message = format!("`source` names `{file}`, which cannot be read: {error}");
                self.warn(content.file, content.line, message);
            }
        }
        let source = InformationSource { tag: content.get("tag", text)?, files };
        self.config.information_sources.push(source);
        Ok(())
    }

    /// Warns about an attribute without effect, unless its value is the actual behaviour.
    fn warn_of(
        &mut self,
        file: &Path,
        entry: &Entry,
        reason: &str,
        fitting: Option<&str>,
        scope: Scope,
    ) {
        let Entry { name, words, line } = entry;
        if fitting.is_none_or(|value| words.as_slice() != [value]) {
            let message = format!("`{name}` has no meaning here: {reason}");
            self.warn_in(file, *line, message, scope, false);
        }
    }

    fn warn(&mut self, file: &Path, line: usize, message: String) {
        self.warn_in(file, line, message, Scope::Nowhere, false);
    }

    fn warn_in(
        &mut self,
        file: &Path,
        line: usize,
        message: String,
        scope: Scope,
        is_notice: bool,
    ) {
        let at = Position { file: file.to_path_buf(), line };
        match self.config.warnings.len() {
            0..MAX_WARNINGS => {
                self.config.warnings.push(Warning { at, message, scope, is_notice });
            }
            MAX_WARNINGS => {
                let message = "further lines without a meaning are not listed".into();
                let scope = Scope::Nowhere;
                self.config.warnings.push(Warning { at, message, scope, is_notice: false });
            }
            _ => {}
        }
    }

    /// Completes the configuration after all files have been read.
    fn finish(self) -> ClientConfig {
        let Reader { mut config, default, servers, .. } = self;
        config.server_default = default.unwrap_or_default().over(&ServerSettings::default());
        config.servers = servers
            .into_iter()
            .map(|PendingServer { hostnames, tag, draft }| Server {
                hostnames,
                tag,
                settings: draft.over(&config.server_default),
            })
            .collect();
        config
    }
}

/// A problem with a line: in the line itself, or in a file that it includes.
enum Problem {
    Fault(Fault),
    Error(ConfigError),
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Problem::Fault(fault)
    }
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Problem::Error(error)
    }
}

fn path(words: &[String]) -> Result<PathBuf, Fault> {
    values::word(words).map(PathBuf::from)
}

/// Resolves a file name in `file`: relative names start at its directory.
fn beside(file: &Path, name: &str) -> PathBuf {
    file.parent().map_or_else(|| PathBuf::from(name), |directory| directory.join(name))
}

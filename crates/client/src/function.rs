//! Functions that calls refer to.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use gridrpc_core::FunctionId;
use gridrpc_link::Outbound;
use gridrpc_link::buffers::Source;
use gridrpc_wire::{FunctionForm, Message, Place, Section, WireError};

use crate::server_module::Offer;

/// Definition of a function that workers receive.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Its name for executors, if they have another one for it.
    pub(crate) remote_name: Option<String>,
    pub(crate) form: FunctionForm,
    /// Its pickle, or the file of its module; empty if the name is enough.
    pub(crate) body: Arc<Source>,
    /// Its module's file, for hosts.
    pub(crate) staged: Option<Staged>,
}

impl Function {
    /// Its name on executors.
    pub(crate) fn name_there(&self) -> &str {
        self.remote_name.as_deref().unwrap_or(&self.name)
    }
}

/// The file of a module, as sent to hosts.
#[derive(Clone, Debug)]
pub(crate) struct Staged {
    /// Hash of the content.
    pub(crate) hash: String,
    /// The file's name without its folder.
    pub(crate) name: String,
    pub(crate) content: Arc<Source>,
}

/// Module files that have been read, by path and modification time.
pub(crate) type StagedFiles = Mutex<HashMap<Vec<u8>, (Option<SystemTime>, Staged)>>;

impl Staged {
    /// Reads a module's file unless it is cached.
    pub(crate) fn read(files: &StagedFiles, path: &[u8]) -> io::Result<Staged> {
        let file = Path::new(OsStr::from_bytes(path));
        let written = file.metadata()?.modified().ok();
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, staged)) = files.get(path)
            && *known == written
        {
            return Ok(staged.clone());
        }
        let content = std::fs::read(file)?;
        let hash = blake3::hash(&content).to_hex()[..HASH].to_owned();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let staged = Staged { hash, name, content: Arc::new(Source::owned(content)) };
        files.insert(path.to_vec(), (written, staged.clone()));
        Ok(staged)
    }
}

impl Staged {
    /// Sends the file to a host, before anything that is pushed later.
    ///
    /// # Errors
    /// When it exceeds a bound of the format.
    pub(crate) fn push(&self, up: &Outbound) -> Result<(), WireError> {
        let section = Section { len: self.content.len() as u64, place: Place::Stream };
        let sections = vec![section];
        let message = Message::Module { hash: &self.hash, name: &self.name, sections };
        up.push_in_line(&message, [Arc::clone(&self.content)].into())
    }
}

/// Number of hash characters in a file name.
const HASH: usize = 32;

/// Numbers of dropped functions, for reuse.
pub(crate) type Unused = Arc<Mutex<Vec<FunctionId>>>;

/// A registered function. Workers keep it while this reference or a call of it lives.
#[derive(Debug)]
pub struct FunctionRef {
    id: FunctionId,
    name: String,
    form: FunctionForm,
    /// The server that runs it; none: any executor that may.
    offer: Option<Offer>,
    unused: Unused,
}

impl FunctionRef {
    pub(crate) fn new(
        id: FunctionId,
        name: String,
        form: FunctionForm,
        offer: Option<Offer>,
        unused: Unused,
    ) -> Arc<FunctionRef> {
        Arc::new(FunctionRef { id, name, form, offer, unused })
    }

    pub(crate) fn offer(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    pub(crate) fn id(&self) -> FunctionId {
        self.id
    }

    /// Whether it is a function of a module, here or at a server.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.form == FunctionForm::Library || self.offer.is_some()
    }

    /// Its name: `module/function`, or its readable name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for FunctionRef {
    fn drop(&mut self) {
        self.unused.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
    }
}

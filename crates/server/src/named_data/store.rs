//! Files of named data: one for each name, in a folder for each user.
//!
//! A file is written under another name, synchronised and then renamed: it is complete, or it is not there.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use gridrpc_agent::NamedData;
use gridrpc_client::Grid;
use gridrpc_core::BlobId;
use gridrpc_sys::safe_path::{UnsafePath, make_folder};
use gridrpc_wire::Order;
use thiserror::Error;

use super::record::NamedRecord;
use crate::limits::Limit;
use crate::log;
use crate::roles::Role;

/// What incomplete files begin with.
const NEW: &str = ".new-";
/// In front of the hash of a user's name that cannot be the name of a folder.
const HASHED: char = '=';
/// How long an upload may pause.
const PAUSE: Duration = Duration::from_secs(60);
/// Least space that data counts with, bytes: that of a file.
const LEAST: u64 = 4096;

/// Why data cannot be shared.
#[derive(Debug, Error)]
pub(crate) enum ShareError {
    /// The user has too much.
    #[error(
        "the limit `shared_bytes` of user {user:?} is reached: {bytes} bytes with the new data, of at most {most}; \
         remove some by `grid.unshare`, or share it for a shorter time"
    )]
    Limit { user: String, bytes: u64, most: u64 },
    /// The system refused it.
    #[error("`{name}` cannot be shared: `{}` cannot be written: {error}", folder.display())]
    System { name: String, folder: PathBuf, error: io::Error },
    /// There is no such upload of the user.
    #[error(
        "the upload of shared data is not known here, or has paused for too long: share the data again"
    )]
    NoUpload,
    /// More bytes have come than were announced.
    #[error("more bytes have been sent than were announced")]
    TooLong,
    /// A piece ends within an element, and has another byte order than this machine.
    #[error("a piece of the data ends within an element: split it between elements")]
    Divided,
}

/// How far an upload is.
pub(crate) enum Progress {
    /// More bytes have to come.
    Upload(u64),
    Complete(NamedRecord),
}

/// Data that is being received.
#[derive(Debug)]
struct Upload {
    record: NamedRecord,
    /// Removed when this is dropped.
    file: NewFile,
    written: u64,
    touched: Instant,
}

/// A file that is not complete.
#[derive(Debug)]
struct NewFile {
    path: PathBuf,
    file: File,
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // It has another name when it is complete.
        let _ = fs::remove_file(&self.path);
    }
}

#[derive(Debug, Default)]
struct State {
    /// By owner and name.
    records: BTreeMap<(String, String), NamedRecord>,
    uploads: HashMap<u64, Upload>,
}

/// The folder of named data.
#[derive(Debug)]
pub(crate) struct NamedStore {
    folder: PathBuf,
    state: Mutex<State>,
    /// Data in memory, by number.
    loaded: Mutex<HashMap<u64, Arc<NamedData>>>,
}

impl NamedStore {
    /// Opens the folder with the data of earlier runs.
    pub(crate) fn open(folder: &Path) -> Result<NamedStore, UnsafePath> {
        make_folder(folder)?;
        let mut state = State::default();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if is_new(&path) {
                fs::remove_file(path)?;
                continue;
            }
            for file in fs::read_dir(&path)? {
                let file = file?.path();
                match File::open(&file).and_then(|mut opened| NamedRecord::read(&mut opened)) {
                    Ok(record) if path_of(folder, &record) == file => {
                        state.records.insert((record.owner.clone(), record.name.clone()), record);
                    }
                    Ok(_) => log::warning("not a file of the server", &[("file", &file.display())]),
                    Err(error) => {
                        let what = "shared data cannot be read";
                        log::warning(what, &[("file", &file.display()), ("reason", &error)]);
                        fs::remove_file(&file)?;
                    }
                }
            }
        }
        let (state, loaded) = (Mutex::new(state), Mutex::default());
        Ok(NamedStore { folder: folder.to_owned(), state, loaded })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<u64, Arc<NamedData>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to receive data. `record`: without a number.
    pub(crate) fn begin(
        &self,
        mut record: NamedRecord,
        most: Limit,
        piece: &[u8],
        order: Order,
    ) -> Result<Progress, ShareError> {
        let system = |error| self.system(&record.name, error);
        let draw = || -> io::Result<u64> { Ok(u64::from_ne_bytes(gridrpc_sys::random()?)) };
        let id = draw().map_err(system)?;
        let number = draw().map_err(system)? | BlobId::NAMED;
        let path = self.folder.join(format!("{NEW}{id:016x}"));
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let mut state = self.lock();
        let bytes = state.bytes_without(&record).saturating_add(space(&record));
        if let Limit::At(most) = most
            && bytes > most
        {
            return Err(ShareError::Limit { user: record.owner, bytes, most });
        }
        let file = options.open(&path).map_err(system)?;
        let file = NewFile { path, file };
        record.number = number;
        let (written, touched) = (0, Instant::now());
        state.uploads.insert(id, Upload { record, file, written, touched });
        drop(state);
        self.receive(id, piece, order, true)
    }

    /// Receives a piece of an upload of this user.
    pub(crate) fn proceed(
        &self,
        user: &str,
        id: u64,
        piece: &[u8],
        order: Order,
    ) -> Result<Progress, ShareError> {
        let is_own = self.lock().uploads.get(&id).is_some_and(|one| one.record.owner == user);
        if is_own { self.receive(id, piece, order, false) } else { Err(ShareError::NoUpload) }
    }

    fn receive(
        &self,
        id: u64,
        piece: &[u8],
        order: Order,
        is_first: bool,
    ) -> Result<Progress, ShareError> {
        let system = |name: &str, error| self.system(name, error);
        // Another request for it, or a check meanwhile, finds none.
        let mut upload = self.lock().uploads.remove(&id).ok_or(ShareError::NoUpload)?;
        let name = upload.record.name.clone();
        if is_first {
            upload.record.write(&mut upload.file.file).map_err(|error| system(&name, error))?;
        }
        upload.written += piece.len() as u64;
        if upload.written > upload.record.shape.bytes {
            return Err(ShareError::TooLong);
        }
        let piece = upload.record.shape.native(piece, order).ok_or(ShareError::Divided)?;
        upload.file.file.write_all(&piece).map_err(|error| system(&name, error))?;
        if upload.written == upload.record.shape.bytes {
            return self
                .complete(&upload)
                .map(Progress::Complete)
                .map_err(|error| system(&name, error));
        }
        upload.touched = Instant::now();
        self.lock().uploads.insert(id, upload);
        Ok(Progress::Upload(id))
    }

    /// Gives complete data its name, in place of older data. Calls that use that keep it.
    fn complete(&self, upload: &Upload) -> io::Result<NamedRecord> {
        let record = &upload.record;
        upload.file.file.sync_all()?;
        let path = path_of(&self.folder, record);
        let of_user = path.parent().unwrap_or(&self.folder);
        DirBuilder::new().recursive(true).mode(0o700).create(of_user)?;
        File::open(&self.folder)?.sync_all()?;
        let key = (record.owner.clone(), record.name.clone());
        let mut state = self.lock();
        fs::rename(&upload.file.path, &path)?;
        let old = if let Err(error) = File::open(of_user).and_then(|folder| folder.sync_all()) {
            // Without a promise there is no data.
            let _ = fs::remove_file(&path);
            let old = state.records.remove(&key);
            drop(state);
            self.unload(old.as_ref());
            return Err(error);
        } else {
            state.records.insert(key, record.clone())
        };
        drop(state);
        self.unload(old.as_ref());
        Ok(record.clone())
    }

    fn unload(&self, record: Option<&NamedRecord>) {
        let data = record.and_then(|record| self.loaded().remove(&record.number));
        // It leaves the grids without the lock.
        drop(data);
    }

    /// The data of a name, `name` or `owner/name`, if the user may read it.
    pub(crate) fn find(&self, role: &Role, name: &str) -> Option<NamedRecord> {
        let (owner, name) = name.rsplit_once('/').unwrap_or((role.user.as_str(), name));
        let state = self.lock();
        let record = state.records.get(&(owner.to_owned(), name.to_owned()))?;
        is_readable(record, role).then(|| record.clone())
    }

    /// All data that the user may read.
    pub(crate) fn readable(&self, role: &Role) -> Vec<NamedRecord> {
        let state = self.lock();
        state.records.values().filter(|record| is_readable(record, role)).cloned().collect()
    }

    /// Number of names, and bytes of their data.
    pub(crate) fn counts(&self) -> (usize, u64) {
        let state = self.lock();
        (state.records.len(), state.records.values().map(|record| record.shape.bytes).sum())
    }

    /// Data with this number in the memory of a grid, if the user may read it.
    pub(crate) fn load(
        &self,
        grid: &Arc<Grid>,
        role: &Role,
        number: u64,
    ) -> io::Result<Option<Arc<NamedData>>> {
        // Whoever removes data waits for this lock, and finds what is loaded here.
        let mut loaded = self.loaded();
        let state = self.lock();
        let record = state.records.values().find(|record| record.number == number);
        let Some(record) = record.filter(|record| is_readable(record, role)) else {
            return Ok(None);
        };
        let path = path_of(&self.folder, record);
        drop(state);
        if let Some(data) = loaded.get(&number) {
            return Ok(Some(Arc::clone(data)));
        }
        let (record, data) = NamedRecord::read_data(&mut File::open(path)?)?;
        if record.number != number {
            return Ok(None);
        }
        let head = record.shape.head();
        let data = Arc::new(NamedData::new(grid, BlobId(number), &[&head, &data])?);
        loaded.insert(number, Arc::clone(&data));
        Ok(Some(data))
    }

    /// Removes data of this user. Returns whether there was any.
    pub(crate) fn remove(&self, owner: &str, name: &str) -> io::Result<bool> {
        let key = (owner.to_owned(), name.to_owned());
        let mut state = self.lock();
        let Some(record) = state.records.get(&key) else { return Ok(false) };
        match fs::remove_file(path_of(&self.folder, record)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let record = state.records.remove(&key);
        drop(state);
        self.unload(record.as_ref());
        Ok(true)
    }

    /// Removes expired data, and stalled uploads. Returns the data that it has removed.
    pub(crate) fn expire(&self, now: SystemTime) -> Vec<NamedRecord> {
        let mut state = self.lock();
        state.uploads.retain(|_, upload| upload.touched.elapsed() < PAUSE);
        let old = state.records.values().filter(|record| record.has_expired(now));
        let old: Vec<NamedRecord> = old.cloned().collect();
        drop(state);
        let remove = |record: &NamedRecord| self.remove(&record.owner, &record.name);
        old.into_iter().filter(|record| remove(record).unwrap_or(false)).collect()
    }

    fn system(&self, name: &str, error: io::Error) -> ShareError {
        ShareError::System { name: name.to_owned(), folder: self.folder.clone(), error }
    }
}

impl State {
    /// Bytes of the owner's data, without that of the same name.
    fn bytes_without(&self, new: &NamedRecord) -> u64 {
        let others = self.records.values().filter(|record| record.name != new.name);
        let uploads = self.uploads.values().map(|upload| &upload.record);
        others.chain(uploads).filter(|record| record.owner == new.owner).map(space).sum()
    }
}

fn space(record: &NamedRecord) -> u64 {
    record.shape.bytes.max(LEAST)
}

fn is_readable(record: &NamedRecord, role: &Role) -> bool {
    record.admits(role) && !record.has_expired(SystemTime::now())
}

fn is_new(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NEW))
}

/// The file of data. The names of its owner and of itself make no other path.
fn path_of(folder: &Path, record: &NamedRecord) -> PathBuf {
    let owner = &record.owner;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let of_user = if (1..=64).contains(&owner.len()) && owner.bytes().all(is_plain) {
        owner.clone()
    } else {
        let hash = blake3::hash(owner.as_bytes()).to_hex();
        format!("{HASHED}{}", &hash[..32])
    };
    folder.join(of_user).join(&record.name)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

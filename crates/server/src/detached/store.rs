//! Files of detached calls. A call is one file, and the end of the file's name is the state of the call: a rename is
//! the step from one state to the next, and the folder is the journal.
//!
//! A file is written under another name, synchronised and then renamed: it is complete, or it is not there.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use gridrpc_sys::safe_path::{UnsafePath, make_folder};
use gridrpc_wire::RemoteError;
use thiserror::Error;

use crate::config::ResultsConfig;
use crate::detached::record::{DetachedId, Record, StoredFailure};

/// Most removed results whose ids are remembered.
const MOST_REMOVED: usize = 10_000;
/// Most bytes of results in memory because the disk takes no more.
const MOST_UNSAVED: u64 = 64 << 20;
/// What incomplete files begin with.
const NEW: &str = ".new-";

/// The state of a call, by the end of its file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Waits, or runs and may run again.
    Queued,
    /// Runs, and may not run again.
    Running,
    /// Has a result, or has failed.
    Ended,
    /// Its result has been removed.
    Removed,
}

impl Stage {
    /// The later ones come first: after a crash between two steps, a call has the latest one.
    const ALL: [Stage; 4] = [Stage::Removed, Stage::Ended, Stage::Running, Stage::Queued];

    fn ending(self) -> &'static str {
        match self {
            Stage::Queued => "queued",
            Stage::Running => "running",
            Stage::Ended => "ended",
            Stage::Removed => "removed",
        }
    }
}

/// Why a call cannot be kept.
#[derive(Debug, Error)]
pub(crate) enum StoreError {
    /// There is no room for it.
    #[error(
        "the call cannot be detached: it has {bytes} bytes, and `bytes = {most}` in [results] of server.toml leaves \
         {free}; try again when calls have ended"
    )]
    Full {
        /// Its size.
        bytes: u64,
        /// The room for it.
        free: u64,
        /// The limit.
        most: u64,
    },
    /// The system refused it.
    #[error("the call cannot be detached: `{}` cannot be written: {error}", folder.display())]
    System {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// Sizes of the files.
#[derive(Debug, Default)]
struct Sizes {
    /// Bytes of all calls.
    total: u64,
    /// Calls that have not ended.
    unfinished: HashMap<DetachedId, u64>,
    /// Results, the oldest first.
    ended: BTreeMap<(SystemTime, DetachedId), u64>,
    /// Removed results, the oldest first.
    removed: BTreeMap<(SystemTime, DetachedId), ()>,
}

/// An outcome that the disk has not taken.
#[derive(Debug)]
struct Unsaved {
    record: Record,
    sections: Vec<Vec<u8>>,
}

/// The folder of detached calls.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    limits: ResultsConfig,
    sizes: Mutex<Sizes>,
    unsaved: Mutex<HashMap<DetachedId, Unsaved>>,
}

impl Store {
    /// Opens the folder. Returns the calls that have not ended, too. Reads no files.
    pub(crate) fn open(
        folder: &Path,
        limits: &ResultsConfig,
    ) -> Result<(Store, Vec<(DetachedId, Stage)>), UnsafePath> {
        make_folder(folder)?;
        let mut found: BTreeMap<(DetachedId, usize), fs::Metadata> = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(NEW) {
                fs::remove_file(entry.path())?;
                continue;
            }
            let Some((id, ending)) = name.split_once('.') else { continue };
            let rank = Stage::ALL.iter().position(|stage| stage.ending() == ending);
            if let Some((id, rank)) = DetachedId::parse(id).zip(rank) {
                found.insert((id, rank), entry.metadata()?);
            }
        }
        let (mut sizes, mut unfinished, mut last) = (Sizes::default(), Vec::new(), None);
        for ((id, rank), metadata) in found {
            let stage = Stage::ALL[rank];
            if last.replace(id) == Some(id) {
                fs::remove_file(path(folder, id, stage))?;
                continue;
            }
            let written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match stage {
                Stage::Queued | Stage::Running => {
                    sizes.unfinished.insert(id, metadata.len());
                    sizes.total += metadata.len();
                    unfinished.push((written, id, stage));
                }
                Stage::Ended => {
                    sizes.ended.insert((written, id), metadata.len());
                    sizes.total += metadata.len();
                }
                Stage::Removed => {
                    sizes.removed.insert((written, id), ());
                }
            }
        }
        // In the order of detaching.
        unfinished.sort_unstable();
        let unfinished = unfinished.into_iter().map(|(_, id, stage)| (id, stage)).collect();
        let store = Store {
            folder: folder.to_owned(),
            limits: limits.clone(),
            sizes: Mutex::new(sizes),
            unsaved: Mutex::default(),
        };
        Ok((store, unfinished))
    }

    fn sizes(&self) -> MutexGuard<'_, Sizes> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsaved(&self) -> MutexGuard<'_, HashMap<DetachedId, Unsaved>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, id: DetachedId, stage: Stage) -> PathBuf {
        path(&self.folder, id, stage)
    }

    /// Keeps a call that waits or runs. It survives a crash from now on.
    pub(crate) fn add(
        &self,
        mut record: Record,
        sections: &[&[u8]],
        stage: Stage,
    ) -> Result<DetachedId, StoreError> {
        let bytes = sections.iter().map(|section| section.len() as u64).sum();
        self.make_room(bytes)?;
        let system = |error| StoreError::System { folder: self.folder.clone(), error };
        let id = DetachedId::random().map_err(system)?;
        let written = self.write(id, stage, &mut record, sections);
        let (_, bytes) = written.map_err(system)?;
        let mut sizes = self.sizes();
        sizes.unfinished.insert(id, bytes);
        sizes.total += bytes;
        Ok(id)
    }

    /// Records that a call begins which may not run again.
    pub(crate) fn begin(&self, id: DetachedId) -> io::Result<()> {
        fs::rename(self.path(id, Stage::Queued), self.path(id, Stage::Running))?;
        self.synchronise()
    }

    /// Keeps the outcome of a call. If the disk takes no more, it stays in memory until the disk does.
    pub(crate) fn end(&self, id: DetachedId, mut record: Record, sections: &[&[u8]]) {
        let bytes: u64 = sections.iter().map(|section| section.len() as u64).sum();
        let mut sections = sections;
        let values = sections.get(..1).unwrap_or_default();
        if record.failure.is_none() && bytes > self.limits.bytes {
            let most = self.limits.bytes;
            let message = format!(
                "the result has {bytes} bytes, more than `bytes = {most}` in [results] of server.toml allows"
            );
            record.failure = Some(StoredFailure::new(RemoteError::LimitReached, message));
            sections = values;
        }
        // A result has a place even if calls that wait take all of it: they have been accepted.
        let _ = self.make_room(bytes);
        let Err(error) = self.settle(id, &mut record, sections) else { return };
        let held: u64 = self.unsaved().values().map(Unsaved::bytes).sum();
        if held + bytes > MOST_UNSAVED {
            let message = format!("the server could not store the result: {error}");
            record.failure = Some(StoredFailure::new(RemoteError::CallLost, message));
            sections = values;
        }
        let sections = sections.iter().map(|section| section.to_vec()).collect();
        self.unsaved().insert(id, Unsaved { record, sections });
    }

    /// Tries again to store outcomes.
    pub(crate) fn save(&self) {
        let ids: Vec<DetachedId> = self.unsaved().keys().copied().collect();
        for id in ids {
            let Some(Unsaved { mut record, sections }) = self.unsaved().remove(&id) else {
                continue;
            };
            let parts: Vec<&[u8]> = sections.iter().map(Vec::as_slice).collect();
            if self.settle(id, &mut record, &parts).is_err() {
                self.unsaved().insert(id, Unsaved { record, sections });
            }
        }
    }

    /// Replaces the file of a call that has not ended by that of its outcome.
    fn settle(&self, id: DetachedId, record: &mut Record, sections: &[&[u8]]) -> io::Result<()> {
        let (written, bytes) = self.write(id, Stage::Ended, record, sections)?;
        for stage in [Stage::Queued, Stage::Running] {
            // One of the two is there.
            let _ = fs::remove_file(self.path(id, stage));
        }
        let mut sizes = self.sizes();
        let before = sizes.unfinished.remove(&id).unwrap_or(0);
        sizes.total = sizes.total.saturating_sub(before) + bytes;
        sizes.ended.insert((written, id), bytes);
        Ok(())
    }

    /// Reads the stored parts of an ended call: the header and its first sections. `None`: there is none.
    pub(crate) fn read(
        &self,
        id: DetachedId,
        most: usize,
    ) -> io::Result<Option<(Record, Vec<Vec<u8>>)>> {
        if let Some(Unsaved { record, sections }) = self.unsaved().get(&id) {
            return Ok(Some((record.clone(), sections.iter().take(most).cloned().collect())));
        }
        for stage in [Stage::Ended, Stage::Removed] {
            match File::open(self.path(id, stage)) {
                Ok(mut file) => return Record::read(&mut file, most).map(Some),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Reads a call that has not ended.
    pub(crate) fn read_unfinished(
        &self,
        id: DetachedId,
        stage: Stage,
        most: usize,
    ) -> io::Result<(Record, Vec<Vec<u8>>)> {
        Record::read(&mut File::open(self.path(id, stage))?, most)
    }

    /// Gives up a file that cannot be read.
    pub(crate) fn forget(&self, id: DetachedId, stage: Stage) {
        let _ = fs::remove_file(self.path(id, stage));
        let mut sizes = self.sizes();
        let bytes = sizes.unfinished.remove(&id).unwrap_or(0);
        sizes.total = sizes.total.saturating_sub(bytes);
    }

    /// The calls that have ended and have a result.
    pub(crate) fn ended(&self) -> Vec<DetachedId> {
        let mut ids: Vec<DetachedId> = self.sizes().ended.keys().map(|(_, id)| *id).collect();
        ids.extend(self.unsaved().keys());
        ids
    }

    /// Removes results that are too old.
    pub(crate) fn expire(&self, now: SystemTime) {
        let Some(since) = now.checked_sub(self.limits.keep) else { return };
        let days = self.limits.keep.as_secs().div_ceil(24 * 3600);
        let why = format!(
            "its result has been removed after {days} days (`keep_days` in [results] of server.toml)"
        );
        loop {
            let oldest = self.sizes().ended.first_key_value().map(|(key, _)| *key);
            let Some((written, id)) = oldest.filter(|(written, _)| *written < since) else { break };
            self.remove((written, id), &why);
        }
        let mut sizes = self.sizes();
        while let Some((&(written, id), ())) = sizes.removed.first_key_value()
            && (written < since || sizes.removed.len() > MOST_REMOVED)
        {
            sizes.removed.remove(&(written, id));
            let _ = fs::remove_file(self.path(id, Stage::Removed));
        }
    }

    /// Removes the oldest results until so many bytes are free.
    fn make_room(&self, bytes: u64) -> Result<(), StoreError> {
        let most = self.limits.bytes;
        loop {
            let sizes = self.sizes();
            if sizes.total.saturating_add(bytes) <= most {
                return Ok(());
            }
            let unfinished: u64 = sizes.unfinished.values().sum();
            let free = most.saturating_sub(unfinished);
            let oldest = sizes.ended.first_key_value().map(|(key, _)| *key);
            let Some(oldest) = oldest.filter(|_| bytes <= free) else {
                return Err(StoreError::Full { bytes, free, most });
            };
            drop(sizes);
            let why = format!(
                "its result has been removed to make room for later ones (`bytes = {most}` in [results] of server.toml)"
            );
            self.remove(oldest, &why);
        }
    }

    /// Removes a result, and remembers why.
    fn remove(&self, key: (SystemTime, DetachedId), why: &str) {
        let Some(bytes) = self.sizes().ended.remove(&key) else { return };
        let (_, id) = key;
        let ended = self.path(id, Stage::Ended);
        let read = File::open(&ended).and_then(|mut file| Record::read(&mut file, 0));
        // Before the new file is written: the disk may be full.
        let _ = fs::remove_file(&ended);
        if let Ok((mut record, _)) = read {
            let message = format!("call `{id}` of {}: {why}", record.function);
            record.failure = Some(StoredFailure::new(RemoteError::CallNotFound, message));
            if let Ok((written, _)) = self.write(id, Stage::Removed, &mut record, &[]) {
                self.sizes().removed.insert((written, id), ());
            }
        }
        let mut sizes = self.sizes();
        sizes.total = sizes.total.saturating_sub(bytes);
    }

    /// Writes a file. Returns its time and its size.
    fn write(
        &self,
        id: DetachedId,
        stage: Stage,
        record: &mut Record,
        sections: &[&[u8]],
    ) -> io::Result<(SystemTime, u64)> {
        let new = self.folder.join(format!("{NEW}{id}"));
        let written = self.write_new(&new, record, sections).and_then(|metadata| {
            fs::rename(&new, self.path(id, stage))?;
            Ok(metadata)
        });
        let Ok(metadata) = &written else {
            let _ = fs::remove_file(&new);
            return written.map(|_| (SystemTime::UNIX_EPOCH, 0));
        };
        if let Err(error) = self.synchronise() {
            // Without a promise there is no call.
            let _ = fs::remove_file(self.path(id, stage));
            return Err(error);
        }
        Ok((metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), metadata.len()))
    }

    fn write_new(
        &self,
        new: &Path,
        record: &mut Record,
        sections: &[&[u8]],
    ) -> io::Result<fs::Metadata> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = BufWriter::new(options.open(new)?);
        record.write(&mut file, sections)?;
        file.flush()?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        file.metadata()
    }

    fn synchronise(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }
}

impl Unsaved {
    fn bytes(&self) -> u64 {
        self.sections.iter().map(|section| section.len() as u64).sum()
    }
}

fn path(folder: &Path, id: DetachedId, stage: Stage) -> PathBuf {
    folder.join(format!("{id}.{}", stage.ending()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Folder {
            let id = DetachedId::random().unwrap();
            Folder(std::env::temp_dir().join(format!("gridrpc-detached-{id}")))
        }

        fn open(&self, bytes: u64) -> (Store, Vec<(DetachedId, Stage)>) {
            let keep = Duration::from_secs(24 * 3600);
            Store::open(&self.0, &ResultsConfig { keep, bytes }).unwrap()
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn record() -> Record {
        Record {
            user: "alice".to_owned(),
            groups: vec!["lab".to_owned()],
            function: "work/add".to_owned(),
            hash: "00".to_owned(),
            idempotent: false,
            submitted: 0,
            failure: None,
            big_endian: false,
            sections: Vec::new(),
        }
    }

    fn message(store: &Store, id: DetachedId) -> String {
        let (record, _) = store.read(id, 0).unwrap().unwrap();
        record.failure.map_or_else(String::new, |failure| failure.message)
    }

    #[test]
    fn unfinished_calls_are_found_again_in_their_order_with_their_state() {
        let folder = Folder::new();
        let (store, _) = folder.open(1 << 20);
        let mut added = Vec::new();
        for number in 0..5_u8 {
            added.push(store.add(record(), &[&[number]], Stage::Queued).unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
        store.begin(added[1]).unwrap();
        store.end(added[2], record(), &[b"values", b"result"]);
        fs::write(folder.0.join(".new-torn"), b"half").unwrap();
        drop(store);

        let (store, unfinished) = folder.open(1 << 20);
        let expected = [
            (added[0], Stage::Queued),
            (added[1], Stage::Running),
            (added[3], Stage::Queued),
            (added[4], Stage::Queued),
        ];
        assert_eq!(unfinished, expected);
        let (_, sections) = store.read_unfinished(added[3], Stage::Queued, usize::MAX).unwrap();
        assert_eq!(sections, [[3]]);
        let (_, sections) = store.read(added[2], usize::MAX).unwrap().unwrap();
        assert_eq!(sections, [b"values", b"result"]);
        assert!(folder.names().iter().all(|name| !name.starts_with('.')));
    }

    #[test]
    fn a_crash_between_two_steps_leaves_the_later_state() {
        let folder = Folder::new();
        let (store, _) = folder.open(1 << 20);
        let id = store.add(record(), &[b"values"], Stage::Queued).unwrap();
        let queued = fs::read(folder.0.join(format!("{id}.queued"))).unwrap();
        store.end(id, record(), &[b"values", b"result"]);
        fs::write(folder.0.join(format!("{id}.queued")), queued).unwrap();

        let (_, unfinished) = folder.open(1 << 20);
        assert_eq!(unfinished, []);
        assert_eq!(folder.names(), [format!("{id}.ended")]);
    }

    #[test]
    fn the_oldest_results_make_room_and_say_why() {
        let folder = Folder::new();
        let (store, _) = folder.open(5000);
        let mut ended = Vec::new();
        for _ in 0..3 {
            let id = store.add(record(), &[b"values"], Stage::Queued).unwrap();
            store.end(id, record(), &[b"values", &[0; 1500]]);
            ended.push(id);
            std::thread::sleep(Duration::from_millis(10));
        }
        let waits = store.add(record(), &[&[0; 2500]], Stage::Queued).unwrap();
        assert!(message(&store, ended[0]).contains("`bytes = 5000` in [results]"));
        assert_eq!(message(&store, ended[2]), "");
        let refused = store.add(record(), &[&[0; 2500]], Stage::Queued).unwrap_err().to_string();
        assert!(refused.contains("`bytes = 5000` in [results]"), "{refused}");
        assert!(store.read_unfinished(waits, Stage::Queued, 1).is_ok());
        store.end(waits, record(), &[b"values", &[0; 6000]]);
        assert!(message(&store, waits).contains("more than `bytes = 5000`"));
    }

    #[test]
    fn old_results_are_removed_and_their_ids_later() {
        let folder = Folder::new();
        let (store, _) = folder.open(1 << 20);
        let id = store.add(record(), &[b"values"], Stage::Queued).unwrap();
        store.end(id, record(), &[b"values", b"result"]);
        store.expire(SystemTime::now());
        assert_eq!(message(&store, id), "");
        store.expire(SystemTime::now() + Duration::from_secs(25 * 3600));
        assert!(store.read(id, 0).unwrap().is_none(), "expired twice at once");
        assert_eq!(folder.names(), [""; 0]);
    }

    #[test]
    fn damaged_files_are_errors() {
        let folder = Folder::new();
        let (store, _) = folder.open(1 << 20);
        let id = store.add(record(), &[b"values"], Stage::Queued).unwrap();
        let file = folder.0.join(format!("{id}.queued"));
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            assert!(store.read_unfinished(id, Stage::Queued, usize::MAX).is_err(), "{length}");
        }
        fs::write(&file, [0xFF; 64]).unwrap();
        assert!(store.read_unfinished(id, Stage::Queued, usize::MAX).is_err());
    }
}

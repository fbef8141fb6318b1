//! Tests of the files of named data.

use gridrpc_wire::Order;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::super::record::NamedRecord;
use super::{LEAST, NamedStore, Progress, ShareError};
use crate::config::{Defaults, read};
use crate::limits::Limit;
use crate::named_data::record::DataShape;
use crate::roles::Role;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let id = u64::from_ne_bytes(gridrpc_sys::random().unwrap());
        Folder(std::env::temp_dir().join(format!("gridrpc-named-{id:016x}")))
    }

    fn open(&self) -> NamedStore {
        NamedStore::open(&self.0).unwrap()
    }

    fn files(&self) -> Vec<String> {
        let folders = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let files = folders.flat_map(|path| match path.is_dir() {
            true => fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect(),
            false => vec![path],
        });
        let mut names: Vec<String> =
            files.map(|path| path.strip_prefix(&self.0).unwrap().display().to_string()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn role(user: &str, groups: &[&str]) -> Role {
    let defaults = Defaults {
        name: "here".into(),
        folder: PathBuf::from("/etc/gridrpc"),
        state: Some(PathBuf::from("/var/lib/gridrpc")),
        workers: 2,
        sockets: None,
        opentelemetry: std::collections::BTreeMap::new(),
    };
    let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    Role::of(&read("", "server.toml", &defaults).unwrap(), user, &groups)
}

fn record(owner: &str, name: &str, bytes: u64) -> NamedRecord {
    NamedRecord {
        owner: owner.to_owned(),
        name: name.to_owned(),
        number: 0,
        readers: vec!["@quants".to_owned()],
        until: u64::MAX,
        shape: DataShape { dtype: None, fortran: false, dims: Vec::new(), bytes },
    }
}

fn share(store: &NamedStore, owner: &str, name: &str, data: &[u8]) -> NamedRecord {
    let record = record(owner, name, data.len() as u64);
    match store.begin(record, Limit::Unlimited, data, Order::NATIVE) {
        Ok(Progress::Complete(record)) => record,
        _ => panic!("it is complete"),
    }
}

#[test]
fn data_is_there_again_after_a_restart() {
    let folder = Folder::new();
    let store = folder.open();
    let ann = share(&store, "ann", "x", b"one");
    share(&store, "o/../ann", "x", b"two");
    drop(store);
    let store = folder.open();
    assert_eq!(store.find(&role("ann", &[]), "x"), Some(ann.clone()));
    assert_eq!(store.find(&role("ben", &["quants"]), "ann/x"), Some(ann));
    assert_eq!(store.find(&role("ben", &[]), "ann/x"), None);
    assert_eq!(store.find(&role("o/../ann", &[]), "x").unwrap().shape.bytes, 3);
    assert_eq!(store.counts(), (2, 6));
    assert!(folder.files().iter().all(|name| !name.contains("..")));
}

#[test]
fn an_upload_has_its_name_when_it_is_complete() {
    let folder = Folder::new();
    let store = folder.open();
    let old = share(&store, "ann", "x", b"old");
    let Ok(Progress::Upload(id)) =
        store.begin(record("ann", "x", 6), Limit::Unlimited, b"new", Order::NATIVE)
    else {
        panic!("it is not complete");
    };
    assert_eq!(store.find(&role("ann", &[]), "x"), Some(old));
    assert!(matches!(store.proceed("eve", id, b"bad", Order::NATIVE), Err(ShareError::NoUpload)));
    assert!(matches!(store.proceed("ann", id, b"er.", Order::NATIVE), Ok(Progress::Complete(_))));
    assert_eq!(store.find(&role("ann", &[]), "x").unwrap().shape.bytes, 6);
    let Ok(Progress::Upload(id)) =
        store.begin(record("ann", "y", 6), Limit::Unlimited, b"new", Order::NATIVE)
    else {
        panic!("it is not complete");
    };
    assert!(matches!(store.proceed("ann", id, b"longer", Order::NATIVE), Err(ShareError::TooLong)));
    assert!(store.begin(record("ann", "z", 6), Limit::Unlimited, b"torn", Order::NATIVE).is_ok());
    drop(store);
    // As after a kill.
    fs::write(folder.0.join(".new-torn"), b"half").unwrap();
    folder.open();
    assert_eq!(folder.files(), ["ann/x"]);
}

#[test]
fn the_limit_counts_uploads_and_not_what_is_replaced() {
    let folder = Folder::new();
    let store = folder.open();
    let most = Limit::At(10_000);
    share(&store, "ann", "x", &[0; 6000]);
    share(&store, "ben", "x", &[0; 6000]);
    assert!(store.begin(record("ann", "x", 10_000), most, b"", Order::NATIVE).is_ok());
    let refused = store.begin(record("ann", "y", 1), most, b"", Order::NATIVE);
    let Err(ShareError::Limit { bytes, .. }) = refused else { panic!("there is no room") };
    assert_eq!(bytes, 6000 + 10_000 + LEAST);
}

#[test]
fn old_data_is_removed() {
    let folder = Folder::new();
    let store = folder.open();
    let mut new = record("ann", "x", 1);
    new.until = 5000;
    assert!(store.begin(new, Limit::Unlimited, b"1", Order::NATIVE).is_ok());
    assert_eq!(store.find(&role("ann", &[]), "x"), None);
    let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
    assert!(store.expire(at(4999)).is_empty());
    assert_eq!(store.expire(at(5000)).len(), 1);
    assert_eq!(folder.files(), [""; 0]);
}

#[test]
fn damaged_files_are_errors() {
    let folder = Folder::new();
    share(&folder.open(), "ann", "x", b"data");
    let path = folder.0.join("ann/x");
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(NamedRecord::read_data(&mut File::open(&path).unwrap()).is_err(), "{length}");
    }
    folder.open();
    assert_eq!(folder.files(), [""; 0]);
}

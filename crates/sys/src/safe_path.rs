//! Paths that only this user and root can change.
//!
//! A file is safe to run, load or trust if nobody else can write to it or replace it: it and every folder above it
//! belong to this user or root, and nobody else can write to them. Others may write to a sticky folder above it, such
//! as /tmp, because nobody can rename or remove there what belongs to another user. Links on the way are checked in
//! the same manner.
//!
//! The answer stays true: only this user or root could make it false. So there is no race between check and use.
//! launcher/staging.sh does the same on hosts that have no program of ours yet.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid};
use thiserror::Error;

/// Maximum number of links on the way to a file, as in the kernel.
const LINKS: usize = 40;
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
/// Owner of files whose real owner is not mapped in this user namespace.
const OVERFLOW: u32 = 65534;

/// Reason why a path cannot be used.
#[derive(Debug, Error)]
pub enum UnsafePath {
    /// It, or a folder above it, belongs to another user.
    #[error("`{}` belongs to user {uid} (mode {mode:04o}), who can change what it holds", .path.display())]
    Owner {
        /// The path with another owner.
        path: PathBuf,
        /// Its owner.
        uid: u32,
        /// Its permissions.
        mode: u32,
    },
    /// Others can write to it, or to a folder above it.
    #[error("others can write to `{}` (user {uid}, mode {mode:04o})", .path.display())]
    Writable {
        /// The writable path.
        path: PathBuf,
        /// Its owner.
        uid: u32,
        /// Its permissions.
        mode: u32,
    },
    /// It cannot be examined or created.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Checks that only this user and root can change the target of a path.
///
/// # Errors
/// When others can change it, or it cannot be examined.
pub fn check(path: &Path) -> Result<(), UnsafePath> {
    walk(path, false)
}

/// Creates a folder, with its parents, that only this user and root can write to.
///
/// # Errors
/// When others can change it, or it cannot be created.
pub fn make_folder(path: &Path) -> Result<(), UnsafePath> {
    check_place(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    check(path)
}

/// Checks whether such a folder can be created, as far as the path exists.
///
/// # Errors
/// As `check`.
pub fn check_place(path: &Path) -> Result<(), UnsafePath> {
    match path.ancestors().find(|above| above.symlink_metadata().is_ok()) {
        Some(there) => walk(there, there != path),
        None => Ok(()),
    }
}

/// Whether a file exists that others cannot change, with this content.
pub fn holds(file: &Path, content: &mut dyn io::Read) -> bool {
    let mut same = || -> io::Result<bool> {
        let mut there = fs::File::open(file)?;
        let (mut one, mut other) = (Vec::new(), Vec::new());
        loop {
            one.clear();
            other.clear();
            there.by_ref().take(PIECE).read_to_end(&mut one)?;
            (&mut *content).take(PIECE).read_to_end(&mut other)?;
            if one != other || one.is_empty() {
                return Ok(one == other);
            }
        }
    };
    check(file).is_ok() && same().unwrap_or(false)
}

/// Number of bytes compared at once.
const PIECE: u64 = 256 << 10;

/// The user's home folder, even if HOME is not set.
pub fn home() -> Option<PathBuf> {
    let of_user = || Some(User::from_uid(geteuid()).ok()??.dir);
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    home.or_else(of_user).filter(|home| home.is_absolute())
}

/// The user's cache folder.
pub fn caches() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    // The standard says to ignore a path that is not absolute.
    named.filter(|path| path.is_absolute()).or_else(|| Some(home()?.join(".cache")))
}

/// The user's folder of state that outlives a program. Python code uses `XDG_STATE_HOME` in the same manner, even if it
/// is not absolute.
pub fn states() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_STATE_HOME").filter(|path| !path.is_empty());
    named.map(PathBuf::from).or_else(|| Some(home()?.join(".local/state")))
}

/// `is_above`: the path only leads to the file in question, so it may itself be sticky.
fn walk(path: &Path, is_above: bool) -> Result<(), UnsafePath> {
    let path = std::path::absolute(path)?;
    let mut left: VecDeque<OsString> = parts(&path).collect();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    let mut shared = judge(&at, &fs::symlink_metadata(&at)?, false, is_above || !left.is_empty())?;
    while let Some(part) = left.pop_front() {
        if part == ".." {
            at.pop();
            // It has been found safe, but may be the last one.
            shared = judge(&at, &fs::symlink_metadata(&at)?, false, is_above || !left.is_empty())?;
            continue;
        }
        let next = at.join(&part);
        let data = fs::symlink_metadata(&next)?;
        if data.is_symlink() {
            links += 1;
            if links > LINKS {
                return Err(io::Error::from_raw_os_error(libc::ELOOP).into());
            }
            owner(&next, &data, shared)?;
            let to = fs::read_link(&next)?;
            if to.is_absolute() {
                at = PathBuf::from("/");
                shared = false;
            }
            for part in parts(&to).collect::<Vec<_>>().into_iter().rev() {
                left.push_front(part);
            }
            continue;
        }
        shared = judge(&next, &data, shared, is_above || !left.is_empty())?;
        at = next;
    }
    Ok(())
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// Whether others can write here, which is allowed if it is sticky and not the last component. `shared`: whether they
/// can write to its parent folder.
fn judge(path: &Path, data: &Metadata, shared: bool, follows: bool) -> Result<bool, UnsafePath> {
    owner(path, data, shared)?;
    let (uid, mode) = (data.uid(), data.mode() & 0o7777);
    let group = mode & GROUP_WRITES != 0 && !is_own_group(data.gid());
    let writable = mode & OTHERS_WRITE != 0 || group;
    if writable && !(data.is_dir() && mode & STICKY != 0 && follows) {
        return Err(UnsafePath::Writable { path: path.to_owned(), uid, mode });
    }
    Ok(writable)
}

fn owner(path: &Path, data: &Metadata, shared: bool) -> Result<(), UnsafePath> {
    let uid = data.uid();
    // In a container that does not map root, the system's folders belong to nobody. So do files of other users, which
    // they can create in shared folders.
    let of_system = uid == OVERFLOW && !shared && !root_is_mapped();
    if uid == 0 || uid == geteuid().as_raw() || of_system {
        return Ok(());
    }
    Err(UnsafePath::Owner { path: path.to_owned(), uid, mode: data.mode() & 0o7777 })
}

fn root_is_mapped() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.is_empty() || map.split_whitespace().take(2).eq(["0", "0"])
}

/// Root's group, or the private group that many systems give each user.
fn is_own_group(gid: u32) -> bool {
    let of_user = || {
        let group = Group::from_gid(Gid::from_raw(gid)).ok()??;
        let user = User::from_uid(Uid::effective()).ok()??;
        Some(group.name == user.name)
    };
    gid == 0 || (gid == getegid().as_raw() && of_user() == Some(true))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    /// A folder of a test's own, with one inside.
    fn folder(name: &str) -> (PathBuf, PathBuf) {
        let all = std::env::temp_dir().join(format!("gridrpc-safe-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&all);
        make_folder(&all.join("in")).expect("it can be made");
        let inner = all.join("in");
        (all, inner)
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn folders_that_others_can_write_to_are_refused_with_all_below() {
        let (all, inner) = folder("mode");
        check(&inner).expect("it is ours alone");
        set(&all, 0o777);
        let why = check(&inner).expect_err("others can rename what is in it").to_string();
        assert!(why.contains(&all.display().to_string()) && why.ends_with("mode 0777)"), "{why}");
        set(&all, 0o1777);
        check(&inner).expect("the owner's are safe in a sticky one");
        check(&all).expect_err("others can add to it");
        make_folder(&all.join("other/one")).expect("it can be made there");
        fs::remove_dir_all(&all).expect("it is ours");
    }

    #[test]
    fn what_belongs_to_others_is_refused() {
        if !geteuid().is_root() {
            eprintln!("only root can give files away");
            return;
        }
        let (all, inner) = folder("owner");
        set(&all, 0o1777);
        chown(&inner, Some(4711), None).expect("root can");
        for path in [&inner, &inner.join("new")] {
            let why = make_folder(path).expect_err("it is another's").to_string();
            assert!(why.contains("belongs to user 4711 (mode 0700)"), "{why}");
        }
        assert!(!inner.join("new").exists());
        fs::remove_dir_all(&all).expect("root can");
    }

    #[test]
    fn links_are_as_safe_as_the_folders_that_they_are_in() {
        let (all, inner) = folder("links");
        let there = all.join("there");
        fs::create_dir(&there).expect("it is ours");
        symlink("../there/.././in", there.join("link")).expect("it is ours");
        let way = there.join("link/../in");
        check(&way).expect("all of it is ours");
        set(&there, 0o777);
        check(&way).expect_err("others can put another link there");
        set(&there, 0o700);
        symlink("loop", there.join("loop")).expect("it is ours");
        assert!(matches!(check(&there.join("loop")), Err(UnsafePath::Io(_))));
        assert!(check(&inner).is_ok());
        fs::remove_dir_all(&all).expect("it is ours");
    }

    #[test]
    fn a_file_holds_what_is_all_of_its_content() {
        let (all, inner) = folder("content");
        let file = inner.join("file");
        fs::write(&file, b"content").expect("it is ours");
        set(&file, 0o600);
        for (content, same) in
            [("content", true), ("Content", false), ("content!", false), ("", false)]
        {
            assert_eq!(holds(&file, &mut content.as_bytes()), same, "{content}");
        }
        set(&file, 0o602);
        assert!(!holds(&file, &mut &b"content"[..]), "others can change it");
        fs::remove_dir_all(&all).expect("it is ours");
    }
}

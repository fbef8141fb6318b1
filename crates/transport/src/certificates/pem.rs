//! Reads PEM files that decide whom this process trusts.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use gridrpc_sys::safe_path;
use nix::fcntl::OFlag;
use rustls::pki_types::pem::{Error, PemObject};

use super::CredentialsError;

/// Largest size of a file with certificates or a key.
pub(super) const CREDENTIALS_LIMIT: u64 = 1 << 20;

/// Permissions that a file may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    /// Only its owner may read it.
    Private,
    /// Everybody may read it.
    Public,
}

/// Opens a regular file that only this user and root can change, and checks who may read it.
pub(super) fn open(path: &Path, access: FileAccess) -> Result<(File, Metadata), CredentialsError> {
    let unreadable = |error| CredentialsError::Unreadable { file: path.to_owned(), error };
    // Opening a FIFO would wait for a writer.
    let options = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    let file = options.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CredentialsError::Missing { file: path.to_owned() },
        _ => unreadable(error),
    })?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("it is not a regular file")));
    }
    let mode = metadata.mode() & 0o777;
    if access == FileAccess::Private && mode & 0o077 != 0 {
        return Err(CredentialsError::Exposed { file: path.to_owned(), mode });
    }
    safe_path::check(path)?;
    Ok((file, metadata))
}

/// Reads an open file with at most `limit` bytes.
pub(super) fn read(path: &Path, file: &File, limit: u64) -> Result<Vec<u8>, CredentialsError> {
    let unreadable = |error| CredentialsError::Unreadable { file: path.to_owned(), error };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(unreadable(io::Error::other(format!("it has more than {limit} bytes"))));
    }
    Ok(bytes)
}

/// All items of one kind in a PEM file.
pub(super) fn items<T: PemObject>(
    path: &Path,
    bytes: &[u8],
    expected: &'static str,
) -> Result<Vec<T>, CredentialsError> {
    let not_pem = |reason: String| CredentialsError::NotPem { file: path.to_owned(), reason };
    let items: Result<Vec<T>, Error> = T::pem_slice_iter(bytes).collect();
    let items = items.map_err(|error| not_pem(error.to_string()))?;
    let has_sections = bytes.windows(11).any(|part| part == b"-----BEGIN ");
    if items.is_empty() && !has_sections && !bytes.trim_ascii().is_empty() {
        return Err(not_pem("it has no `-----BEGIN` line".to_owned()));
    }
    if items.is_empty() {
        return Err(CredentialsError::Empty { file: path.to_owned(), expected });
    }
    Ok(items)
}

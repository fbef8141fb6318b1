//! API tokens: bearer tokens of users, for clients without certificates. The server keeps only their hashes.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Prefix of a token, with the number of its format: programs that search for leaked secrets need one.
const MARK: &str = "gridrpc-api1.";
/// Random bytes of a token.
const RANDOM: usize = 24;
/// Length of an id: the first digits of the hash.
const ID: usize = 12;
/// Most tokens.
const MOST: usize = 100_000;
/// Largest file, bytes.
const LARGEST: u64 = 64 << 20;

/// Why a token cannot be made, listed or revoked.
#[derive(Debug, Error)]
pub enum ApiTokenError {
    /// The file cannot be read or written.
    #[error("the tokens in `{}`: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is not a list of tokens.
    #[error("`{}` is no list of tokens: {error}; move it away to begin without tokens", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The problem.
        error: serde_json::Error,
    },
    /// The name cannot be a user's or a group's.
    #[error("{0:?} is not a name: write 1 to 128 printable characters without blanks")]
    Name(String),
    /// There are too many tokens.
    #[error("there are {MOST} tokens already: revoke some")]
    Full,
    /// No token has this id.
    #[error("no token has the id `{0}`; `gridrpc server tokens` lists them")]
    Unknown(String),
}

/// A token, as the server keeps it: without the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApiToken {
    /// BLAKE3 hash of the token, hexadecimal.
    hash: String,
    /// Its user.
    pub(crate) user: String,
    /// The user's groups.
    pub(crate) groups: Vec<String>,
    /// When it was made, s since 1970.
    made: u64,
    /// When it expires, s since 1970; none: never.
    until: Option<u64>,
}

impl ApiToken {
    /// Identifies it in lists and commands. Reveals nothing about the secret.
    pub(crate) fn id(&self) -> &str {
        self.hash.get(..ID).unwrap_or(&self.hash)
    }

    /// When it expires; none: never.
    pub(crate) fn until(&self) -> Option<SystemTime> {
        self.until.map(|until| SystemTime::UNIX_EPOCH + Duration::from_secs(until))
    }

    fn is_expired(&self) -> bool {
        self.until.is_some_and(|until| until <= now())
    }
}

/// The tokens of a server.
#[derive(Debug)]
pub(crate) struct ApiTokens {
    file: PathBuf,
    tokens: RwLock<Vec<ApiToken>>,
}

impl ApiTokens {
    /// Reads the tokens of a file, which may be missing.
    pub(crate) fn open(file: &Path) -> Result<ApiTokens, ApiTokenError> {
        let failed = |error| ApiTokenError::File { file: file.to_owned(), error };
        let tokens = match fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
            Ok(metadata) if metadata.len() > LARGEST => {
                let text = format!("it has more than {LARGEST} bytes");
                return Err(failed(io::Error::other(text)));
            }
            Ok(_) => {
                let text = fs::read(file).map_err(failed)?;
                serde_json::from_slice(&text)
                    .map_err(|error| ApiTokenError::Malformed { file: file.to_owned(), error })?
            }
        };
        Ok(ApiTokens { file: file.to_owned(), tokens: RwLock::new(tokens) })
    }

    /// Makes a token, which nobody can read again.
    pub(crate) fn add(
        &self,
        user: &str,
        groups: &[String],
        valid: Option<Duration>,
    ) -> Result<(String, ApiToken), ApiTokenError> {
        for name in groups.iter().map(String::as_str).chain([user]) {
            let is_printable = |c: char| !c.is_control() && !c.is_whitespace();
            if !(1..=128).contains(&name.len()) || !name.chars().all(is_printable) {
                return Err(ApiTokenError::Name(name.chars().take(128).collect()));
            }
        }
        let secret = gridrpc_sys::random::<RANDOM>().map_err(|error| self.failed(error))?;
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let token = format!("{MARK}{digits}");
        let made = now();
        let added = ApiToken {
            hash: hash(&token),
            user: user.to_owned(),
            groups: groups.to_vec(),
            made,
            until: valid.map(|valid| made.saturating_add(valid.as_secs())),
        };
        let mut tokens = self.write();
        let mut new: Vec<ApiToken> =
            tokens.iter().filter(|token| !token.is_expired()).cloned().collect();
        if new.len() >= MOST {
            return Err(ApiTokenError::Full);
        }
        new.push(added.clone());
        self.store(&new)?;
        *tokens = new;
        Ok((token, added))
    }

    /// Revokes the token with this id, at once.
    pub(crate) fn revoke(&self, id: &str) -> Result<ApiToken, ApiTokenError> {
        let mut tokens = self.write();
        let at = tokens.iter().position(|token| token.id() == id);
        let at = at.ok_or_else(|| ApiTokenError::Unknown(id.chars().take(100).collect()))?;
        let mut new = tokens.clone();
        let revoked = new.remove(at);
        // It is useless even if the file cannot be written, until the server starts again.
        *tokens = new;
        self.store(&tokens)?;
        Ok(revoked)
    }

    /// All tokens that are valid.
    pub(crate) fn list(&self) -> Vec<ApiToken> {
        self.read().iter().filter(|token| !token.is_expired()).cloned().collect()
    }

    /// The record of a token that is valid.
    pub(crate) fn find(&self, token: &str) -> Option<ApiToken> {
        // Comparing hashes reveals nothing about tokens by its duration.
        let hash = hash(token);
        self.read().iter().find(|token| token.hash == hash && !token.is_expired()).cloned()
    }

    fn store(&self, tokens: &[ApiToken]) -> Result<(), ApiTokenError> {
        let mut new = self.file.clone().into_os_string();
        new.push(".new");
        let written =
            serde_json::to_vec_pretty(tokens).map_err(io::Error::other).and_then(|text| {
                let options =
                    fs::File::options().write(true).create(true).truncate(true).to_owned();
                let mut file = options.clone().mode(0o600).open(&new)?;
                file.write_all(&text)?;
                file.sync_all()?;
                fs::rename(&new, &self.file)
            });
        written.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> ApiTokenError {
        ApiTokenError::File { file: self.file.clone(), error }
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<ApiToken>> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<ApiToken>> {
        self.tokens.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn file(name: &str) -> PathBuf {
        let name = format!("gridrpc-api-tokens-{name}-{}", std::process::id());
        let file = std::env::temp_dir().join(name);
        let _ = fs::remove_file(&file);
        file
    }

    #[test]
    fn tokens_outlive_the_server_and_are_not_in_its_file() {
        let file = file("kept");
        let tokens = ApiTokens::open(&file).unwrap();
        let (ann, _) = tokens.add("ann", &["staff".into()], None).unwrap();
        let (bob, bobs) = tokens.add("bob", &[], Some(Duration::from_secs(60))).unwrap();
        let tokens = ApiTokens::open(&file).unwrap();
        let found = tokens.find(&ann).unwrap();
        assert_eq!((&*found.user, &*found.groups), ("ann", &["staff".to_owned()][..]));
        assert_eq!(tokens.find(&bob), Some(bobs.clone()));
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&ann[MARK.len()..]) && !text.contains(MARK));
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(tokens.revoke(bobs.id()).unwrap().user, "bob");
        assert_eq!(tokens.find(&bob), None);
        assert_eq!(ApiTokens::open(&file).unwrap().list(), [found]);
        fs::remove_file(&file).unwrap();
    }

    #[test]
    fn wrong_and_expired_tokens_are_unknown() {
        let file = file("wrong");
        let tokens = ApiTokens::open(&file).unwrap();
        let (ann, record) = tokens.add("ann", &[], None).unwrap();
        let (expired, _) = tokens.add("ann", &[], Some(Duration::ZERO)).unwrap();
        let hash = hash(&ann);
        for wrong in ["", MARK, &ann[1..], &ann[..ann.len() - 1], &hash, record.id(), &expired] {
            assert_eq!(tokens.find(wrong), None, "{wrong}");
        }
        assert_eq!(tokens.list(), [record]);
        assert!(matches!(tokens.revoke(""), Err(ApiTokenError::Unknown(_))));
        for name in ["", "a b", "a\nb"] {
            assert!(matches!(tokens.add(name, &[], None), Err(ApiTokenError::Name(_))), "{name:?}");
        }
        fs::write(&file, "{").unwrap();
        assert!(matches!(ApiTokens::open(&file), Err(ApiTokenError::Malformed { .. })));
        fs::remove_file(&file).unwrap();
    }
}

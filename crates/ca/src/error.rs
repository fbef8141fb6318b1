//! Errors of the authority and of requests.

use std::io;
use std::path::PathBuf;

use gridrpc_sys::safe_path::UnsafePath;
use gridrpc_transport::certificates::CredentialsError;
use thiserror::Error;

/// Reason why a command of the authority has failed.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// There is an authority in the folder already.
    #[error("`{}` already contains an authority: choose another folder with --folder", .folder.display())]
    Exists {
        /// The folder.
        folder: PathBuf,
    },
    /// There is no authority in the folder.
    #[error(
        "`{}` contains no authority: create one with `gridrpc ca init`, or name its folder with --folder",
        .folder.display()
    )]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// No default folder is known.
    #[error("there is no home folder: name a folder with {option}")]
    NoFolder {
        /// The option that names it.
        option: &'static str,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`: {error}", .file.display())]
    File {
        /// The failed operation.
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// Other users can change the files of the authority.
    #[error("{0}; the authority needs a folder that only this user and root can change")]
    Unsafe(#[from] UnsafePath),
    /// Another command uses the authority.
    #[error("another command has used `{}` for {seconds} s: try again when it has finished", .folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// How long this command has waited.
        seconds: u64,
    },
    /// A file of the authority has been damaged.
    #[error("`{}` is damaged in line {line}: {reason}; restore it from a backup", .file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The line.
        line: usize,
        /// The problem.
        reason: String,
    },
    /// The certificate and the key of the authority do not belong together, or cannot be used.
    #[error("the authority in `{}` cannot be used: {reason}; restore it from a backup", .folder.display())]
    Unusable {
        /// The folder.
        folder: PathBuf,
        /// The problem.
        reason: String,
    },
    /// Other users can read the private key of the authority.
    #[error(
        "the key of the authority, `{}`, can be read by other users (mode {mode:03o}): run `chmod 600 {}`, and create \
         a new authority if they may have read it",
        .file.display(), .file.display()
    )]
    ExposedKey {
        /// The file of the key.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The authority's own certificate is no longer valid.
    #[error("the certificate of the authority in `{}` has expired: create a new authority", .folder.display())]
    Expired {
        /// The folder.
        folder: PathBuf,
    },
    /// A name of a user, group or server is not allowed.
    #[error(
        "the {kind} name {name:?} is not allowed: use 1 to 64 letters, digits and `._@+-`, and begin with a letter or \
         digit"
    )]
    BadName {
        /// What it names.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A host is neither a name nor an address.
    #[error("{host:?} is neither a host name nor an IP address")]
    BadHost {
        /// The host.
        host: String,
    },
    /// A server has no host.
    #[error("a server needs at least one --host, the name or address that users will connect to")]
    NoHosts,
    /// A validity of no time, or beyond what dates can express.
    #[error("{days} is not a number of days that a certificate can be valid: use 1 to 3650")]
    BadDays {
        /// The number of days.
        days: u32,
    },
    /// A request cannot be decoded.
    #[error("this is not a certificate signing request in PEM format: {reason}")]
    BadRequest {
        /// The problem.
        reason: String,
    },
    /// The request is not signed with the key that it contains.
    #[error("the signature of the request is wrong, or its kind of key is not supported: {reason}")]
    BadSignature {
        /// The problem.
        reason: String,
    },
    /// The request names no user.
    #[error("the request names no user: name one with --user")]
    NoUser,
    /// The authority does not know the token.
    #[error("this token is unknown: it was mistyped, used long ago, or made by another authority")]
    UnknownToken,
    /// The token has been used.
    #[error(
        "this token of user `{user}` has been used: make a new one with `gridrpc ca token {user}`"
    )]
    UsedToken {
        /// The user.
        user: String,
    },
    /// The token is too old.
    #[error(
        "this token of user `{user}` has expired: make a new one with `gridrpc ca token {user}`"
    )]
    ExpiredToken {
        /// The user.
        user: String,
    },
    /// The token is for another user than the request.
    #[error("this token is for user `{user}`, and the request is for `{requested}`")]
    OtherUser {
        /// The user of the token.
        user: String,
        /// The user in the request.
        requested: String,
    },
    /// A token cannot lead to this address.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// No certificate has this serial number or user.
    #[error(
        "there is no valid certificate with the serial number or user `{target}`: see `gridrpc ca list`"
    )]
    NotFound {
        /// The serial number or user.
        target: String,
    },
    /// Several certificates belong to a user.
    #[error(
        "`{target}` has {count} valid certificates: name one by its serial number, see `gridrpc ca list`"
    )]
    Ambiguous {
        /// The user.
        target: String,
        /// How many there are.
        count: usize,
    },
    /// All certificates have been revoked before.
    #[error("the certificate `{target}` has already been revoked")]
    AlreadyRevoked {
        /// The serial number or user.
        target: String,
    },
    /// A certificate cannot be made.
    #[error("the certificate cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The key of a user exists.
    #[error(
        "`{}` exists already: remove it if it is not needed any more, or name another folder with --out",
        .file.display()
    )]
    KeyExists {
        /// The file.
        file: PathBuf,
    },
    /// The files to install contain no certificate of a user.
    #[error("the files contain no certificate for the key `{}`", .key.display())]
    NoCertificate {
        /// The user's key.
        key: PathBuf,
    },
    /// The files to install contain no certificate of an authority.
    #[error("neither these files nor `{}` contain the certificate of an authority", .folder.display())]
    NoAuthority {
        /// The folder of the user's credentials.
        folder: PathBuf,
    },
    /// The credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
}

/// Reason why a text is not an enrolment token.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenError {
    /// It does not begin as tokens do.
    #[error("this is not a token of `gridrpc ca token`: tokens begin with `gridrpc-ca2.`")]
    NoToken,
    /// Its checksum is wrong.
    #[error("this token is incomplete or mistyped: copy all of it")]
    Incomplete,
    /// It does not lead to a service.
    #[error(
        "this token has no address: the owner of the authority makes one with `gridrpc ca token USER --address \
         HOST:PORT`, or signs your request with `gridrpc ca redeem`"
    )]
    WithoutAddress,
    /// Its address is not one.
    #[error("{address:?} is not an address of a service: use HOST:PORT")]
    BadAddress {
        /// The address.
        address: String,
    },
}

/// Adds the operation and the file to a system error.
pub(crate) fn file_error(
    action: &'static str,
    file: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> AuthorityError {
    let file = file.into();
    move |error| AuthorityError::File { action, file, error }
}

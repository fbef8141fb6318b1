//! `gridrpc ca`: certificates of servers and their users.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use gridrpc_ca::{
    Authority, AuthorityError, CertificateRole, EnrolmentError, Issued, SignOptions, Signed,
    create_request, default_folder, install,
};
use gridrpc_config::credentials_folder;
use gridrpc_transport::certificates::CredentialFiles;
use thiserror::Error;

use crate::duration::duration;
use crate::enrolment;

/// Which command of the authority.
#[derive(Debug, Args)]
pub struct Options {
    #[command(subcommand)]
    command: CaCommand,
}

/// The folder of the authority.
#[derive(Debug, Args)]
struct AuthorityFolder {
    /// The folder of the authority [default: $XDG_DATA_HOME/gridrpc/ca]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Where a new certificate goes.
#[derive(Debug, Args)]
struct CertificateOutput {
    /// Write the certificate to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum CaCommand {
    /// Create an authority
    Init {
        #[command(flatten)]
        authority: AuthorityFolder,
        /// Name of the authority in its certificate
        #[arg(long, default_value = "gridrpc")]
        name: String,
    },
    /// Make the key and the certificate of a server
    Server {
        /// Name of the server
        name: String,
        /// Host name or IP address of the server, as users dial it
        #[arg(long = "host", value_name = "HOST", required = true)]
        hosts: Vec<String>,
        /// The folder for certificate.pem, key.pem and authority.pem [default: NAME]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Validity in days
        #[arg(long, value_name = "N", default_value_t = Authority::SERVER_DAYS)]
        days: u32,
        #[command(flatten)]
        authority: AuthorityFolder,
    },
    /// Make your private key and a request for a certificate, on your own machine
    Request {
        /// Your user name
        user: String,
        /// The folder for key.pem and request.pem [default: $GRIDRPC_CREDENTIALS, else $XDG_CONFIG_HOME/gridrpc/credentials]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Sign the request of a user
    Sign {
        /// The file of the request; `-` for standard input
        request: PathBuf,
        /// Name of the user, instead of the one in the request
        #[arg(long)]
        user: Option<String>,
        /// A group of the user
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// Validity in days
        #[arg(long, value_name = "N", default_value_t = SignOptions::default().days)]
        days: u32,
        #[command(flatten)]
        output: CertificateOutput,
        #[command(flatten)]
        authority: AuthorityFolder,
    },
    /// Install your certificate next to your private key
    Install {
        /// The certificate that the authority sent you
        #[arg(required = true, value_name = "CERTIFICATE")]
        files: Vec<PathBuf>,
        /// The folder with key.pem [default: $GRIDRPC_CREDENTIALS, else $XDG_CONFIG_HOME/gridrpc/credentials]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Print a one-time token: whoever presents it first gets a certificate for USER
    Token {
        /// Name of the user
        user: String,
        /// A group of the user
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// How long the token is valid, such as 30min, 1h or 2d
        #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
        valid: Duration,
        /// Where the user reaches `gridrpc ca serve`; without it, the token is for `gridrpc ca redeem`
        #[arg(long, value_name = "HOST:PORT")]
        address: Option<String>,
        #[command(flatten)]
        authority: AuthorityFolder,
    },
    /// Give certificates to users who present tokens over the network
    Serve {
        /// Address and port of the service
        #[arg(long, value_name = "ADDRESS:PORT", default_value = "0.0.0.0:7713")]
        listen: SocketAddr,
        #[command(flatten)]
        authority: AuthorityFolder,
    },
    /// Make your private key, and get your certificate for a token
    Enroll {
        /// The token that the owner of the authority sent you; `-` reads it from standard input
        token: String,
        /// Your user name; refuse a token that is for another user
        #[arg(long)]
        user: Option<String>,
        /// The folder for the credentials [default: $GRIDRPC_CREDENTIALS, else $XDG_CONFIG_HOME/gridrpc/credentials]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Sign a request for the user of a token
    Redeem {
        /// The token; `-` reads it from standard input
        token: String,
        /// The file of the request
        #[arg(long, value_name = "FILE")]
        request: PathBuf,
        #[command(flatten)]
        output: CertificateOutput,
        #[command(flatten)]
        authority: AuthorityFolder,
    },
    /// List the certificates that the authority has issued
    List {
        /// Print all values as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        authority: AuthorityFolder,
    },
    /// Revoke a certificate, or all certificates and tokens of a user or server
    Revoke {
        /// Serial number, or name of the user or server
        #[arg(value_name = "SERIAL|USER")]
        target: String,
        #[command(flatten)]
        authority: AuthorityFolder,
    },
    /// Issue a new certificate for the same key, names and groups
    Renew {
        /// Serial number, or name of the user or server
        #[arg(value_name = "SERIAL|USER")]
        target: String,
        /// Validity in days
        #[arg(long, value_name = "N", default_value_t = SignOptions::default().days)]
        days: u32,
        #[command(flatten)]
        output: CertificateOutput,
        #[command(flatten)]
        authority: AuthorityFolder,
    },
}

/// Errors of `gridrpc ca`.
#[derive(Debug, Error)]
pub enum CaError {
    /// The authority or the user's credentials cannot be used.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A user cannot enrol, or the service cannot start.
    #[error(transparent)]
    Enrolment(#[from] EnrolmentError),
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
    /// The records cannot be printed.
    #[error("the list cannot be printed as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Carries out a command. Returns its output.
///
/// # Errors
/// When the authority, a request or a file cannot be used.
pub fn run(options: Options) -> Result<String, CaError> {
    match options.command {
        CaCommand::Init { authority, name } => init(&authority, &name),
        CaCommand::Server { name, hosts, out, days, authority } => {
            let folder = out.unwrap_or_else(|| PathBuf::from(&name));
            server(&open(&authority)?, &name, &hosts, days, &folder)
        }
        CaCommand::Request { user, out } => request(&user, &credentials(out)?),
        CaCommand::Sign { request, user, groups, days, output, authority } => {
            let request = read(&request)?;
            let signed = open(&authority)?.sign(&request, &SignOptions { user, groups, days })?;
            deliver(&signed, &output)
        }
        CaCommand::Install { files, out } => {
            let installed = install(&files, &credentials(out)?)?;
            Ok(format!("installed `{}`\n", installed.certificate.display()))
        }
        CaCommand::Token { user, groups, valid, address, authority } => {
            let authority = open(&authority)?;
            let Some(address) = address else {
                return Ok(authority.token(&user, &groups, valid)? + "\n");
            };
            let token = authority.enrolment_token(&user, &groups, valid, &address)?;
            Ok(format!("{}\n", token.as_str()))
        }
        CaCommand::Serve { listen, authority } => Ok(enrolment::serve(open(&authority)?, listen)?),
        CaCommand::Enroll { token, user, out } => {
            let token = if token == "-" { read(Path::new("-"))? } else { token };
            Ok(enrolment::enroll(&token, user.as_deref(), &credentials(out)?)?)
        }
        CaCommand::Redeem { token, request, output, authority } => {
            let token = if token == "-" { read(Path::new("-"))? } else { token };
            let signed = open(&authority)?.redeem(&token, &read(&request)?)?;
            deliver(&signed, &output)
        }
        CaCommand::List { json, authority } => list(&open(&authority)?, json),
        CaCommand::Revoke { target, authority } => {
            let authority = open(&authority)?;
            let revoked = authority.revoke(&target)?;
            let line = |one: &Issued| format!("revoked {} of {}\n", one.serial, one.name);
            let mut text: String = revoked.iter().map(line).collect();
            let file = authority.revocation_list();
            let _ = writeln!(text, "servers that read `{}` refuse it at once", file.display());
            Ok(text)
        }
        CaCommand::Renew { target, days, output, authority } => {
            deliver(&open(&authority)?.renew(&target, days)?, &output)
        }
    }
}

fn open(folder: &AuthorityFolder) -> Result<Authority, AuthorityError> {
    Authority::open(&authority_folder(folder)?)
}

fn authority_folder(folder: &AuthorityFolder) -> Result<PathBuf, AuthorityError> {
    let folder = folder.folder.clone().or_else(default_folder);
    folder.ok_or(AuthorityError::NoFolder { option: "--folder" })
}

fn credentials(folder: Option<PathBuf>) -> Result<PathBuf, AuthorityError> {
    folder.or_else(credentials_folder).ok_or(AuthorityError::NoFolder { option: "--out" })
}

fn init(folder: &AuthorityFolder, name: &str) -> Result<String, CaError> {
    let authority = Authority::create(&authority_folder(folder)?, name)?;
    let folder = authority.folder().display();
    Ok(format!(
        "created authority `{name}` in `{folder}`\n\
         keep `{folder}/key.pem` secret; servers need `{folder}/revoked.pem`\n"
    ))
}

fn server(
    authority: &Authority,
    name: &str,
    hosts: &[String],
    days: u32,
    folder: &Path,
) -> Result<String, CaError> {
    let files = CredentialFiles::in_folder(folder);
    if files.key.exists() {
        return Err(AuthorityError::KeyExists { file: files.key }.into());
    }
    fs::create_dir_all(folder).map_err(failed("create", folder))?;
    let made = authority.issue_server(name, hosts, days)?;
    write(&files.key, &made.key, 0o600)?;
    write(&files.authority, &made.authority, 0o644)?;
    write(&files.certificate, &made.certificate, 0o644)?;
    let (folder, list) = (folder.display(), authority.revocation_list());
    Ok(format!(
        "wrote certificate.pem, key.pem and authority.pem to `{folder}`\n\
         the server also needs `{}`, and every new version of it\n",
        list.display()
    ))
}

fn request(user: &str, folder: &Path) -> Result<String, CaError> {
    let file = create_request(user, folder)?;
    Ok(format!(
        "send `{}` to the authority; the private key `{}` stays here\n\
         then install the answer with `gridrpc ca install FILE`\n",
        file.display(),
        CredentialFiles::in_folder(folder).key.display()
    ))
}

/// Prints a new certificate, or writes it to a file.
fn deliver(signed: &Signed, output: &CertificateOutput) -> Result<String, CaError> {
    let Some(file) = &output.out else { return Ok(signed.pem.clone()) };
    write(file, &signed.pem, 0o644)?;
    let Issued { name, serial, until, .. } = &signed.issued;
    let until = gridrpc_ca::date(*until);
    Ok(format!(
        "wrote certificate {serial} of {name}, valid until {until}, to `{}`\n",
        file.display()
    ))
}

fn list(authority: &Authority, as_json: bool) -> Result<String, CaError> {
    let all = authority.list()?;
    if as_json {
        return Ok(serde_json::to_string_pretty(&all)? + "\n");
    }
    if all.is_empty() {
        return Ok("no certificates have been issued\n".to_owned());
    }
    let width = all.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for one in &all {
        let state = match one.revoked {
            Some(time) => format!("revoked on {}", gridrpc_ca::date(time)),
            None if one.is_valid() => format!("valid until {}", gridrpc_ca::date(one.until)),
            None => format!("expired on {}", gridrpc_ca::date(one.until)),
        };
        let (role, names) = match one.role {
            CertificateRole::User => ("user", &one.groups),
            CertificateRole::Server => ("server", &one.hosts),
        };
        let line = format!(
            "{}  {role:6}  {:width$}  {state:22}  {}",
            one.serial,
            one.name,
            names.join(", ")
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    Ok(text)
}

/// The contents of a file; `-` is standard input.
fn read(file: &Path) -> Result<String, CaError> {
    let mut text = String::new();
    let result = match file == Path::new("-") {
        true => io::stdin().read_to_string(&mut text).map(|_| text),
        false => fs::read_to_string(file),
    };
    result.map_err(failed("read", file))
}

fn write(file: &Path, text: &str, mode: u32) -> Result<(), CaError> {
    let mut options = OpenOptions::new();
    options.write(true).mode(mode);
    // A private key must not get the permissions of a file that exists.
    match mode {
        0o600 => options.create_new(true),
        _ => options.create(true).truncate(true),
    };
    let written = options.open(file).and_then(|mut new| {
        new.write_all(text.as_bytes())?;
        new.sync_all()
    });
    written.map_err(failed("write", file))
}

fn failed(action: &'static str, file: &Path) -> impl FnOnce(io::Error) -> CaError {
    let file = file.to_owned();
    move |error| CaError::File { action, file, error }
}

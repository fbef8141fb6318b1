//! Announcements to directories: the table `[directory]`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gridrpc_config::{Entry, Fault, ServerAddress};
use hyper::Uri;
use toml::de::DeTable;

use super::fault::{ServerFault, ServerReport};
use super::keys::{distinct, each_key};
use super::schema;

/// Default of `interval`.
pub(super) const INTERVAL: Duration = Duration::from_secs(3);
/// Default of `speed`.
pub(super) const SPEED: f64 = 1e9;
/// Where a directory receives announcements.
const PATH: &str = "/announce";
/// Longest interval, s.
const LONGEST: f64 = 3600.0;
const URLS: &str = "a list of directories, such as [\"https://directory.example.org:7713\"]";

/// Announcements to directories.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectoryConfig {
    /// URLs to post announcements to.
    pub urls: Vec<Uri>,
    /// Host where clients reach the server.
    pub host: String,
    /// Port where clients reach the server; none: the one where it listens.
    pub port: Option<u16>,
    /// Folder with the credentials of the server as a user of the directories; none: the usual one.
    pub credentials: Option<PathBuf>,
    /// Time between two announcements.
    pub interval: Duration,
    /// Operations per second of a call that runs alone.
    pub speed: f64,
}

impl DirectoryConfig {
    /// Reads the table. Paths start at the `folder` of the file; `host`: the name of this machine.
    pub(super) fn read(
        table: &DeTable<'_>,
        at: usize,
        folder: &Path,
        host: &str,
        report: &mut ServerReport<'_>,
    ) -> DirectoryConfig {
        let mut config = DirectoryConfig {
            urls: Vec::new(),
            host: host.to_owned(),
            port: None,
            credentials: None,
            interval: INTERVAL,
            speed: SPEED,
        };
        each_key(table, schema::DIRECTORY, report, |entry, report| {
            match entry.key {
                "urls" => {
                    let urls = distinct(entry, URLS, report, |text| url(text).is_some());
                    config.urls = urls.iter().filter_map(|text| url(text)).collect();
                }
                "address" => (config.host, config.port) = address(entry)?,
                "credentials" => config.credentials = Some(folder.join(entry.text()?)),
                "interval" => config.interval = entry.seconds(0.1, LONGEST)?,
                _ => config.speed = speed(entry)?,
            }
            Ok(())
        });
        if !table.contains_key("urls") {
            let example = "urls = [\"https://directory.example.org:7713\"]";
            report.add(at, ServerFault::Missing { key: "urls", example });
        }
        config
    }
}

/// Where the directory at this URL receives announcements.
fn url(text: &str) -> Option<Uri> {
    let uri: Uri = format!("{}{PATH}", text.trim_end_matches('/')).parse().ok()?;
    let is_valid = matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.query().is_none()
        && uri.host().is_some_and(|host| !host.is_empty());
    is_valid.then_some(uri)
}

/// Host and port for clients.
fn address(entry: &Entry<'_>) -> Result<(String, Option<u16>), Fault> {
    const EXPECTED: &str = "HOST, HOST:PORT or [ADDRESS]:PORT, where clients reach the server";
    let text = entry.text()?;
    let Some(ServerAddress::Tls { host, port }) = ServerAddress::parse(&text) else {
        return Err(entry.wrong(EXPECTED));
    };
    let has_port = text.trim_matches(['[', ']']) != host;
    Ok((host, has_port.then_some(port)))
}

fn speed(entry: &Entry<'_>) -> Result<f64, Fault> {
    let speed = entry.decimal().or_else(|| entry.integer().map(|whole| whole as f64));
    let speed = speed.filter(|speed| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| entry.wrong("operations per second, a number above 0"))
}

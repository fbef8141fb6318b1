//! Export of traces: the table `[traces]`, with the environment variables of OpenTelemetry as defaults.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gridrpc_config::{Entry, Fault, shown};
use hyper::Uri;
use toml::de::DeTable;

use super::fault::ServerReport;
use super::keys::each_key;
use super::schema;
use gridrpc_http::Trust;

/// Default of `endpoint`.
pub(super) const TRACES_ENDPOINT: &str = "http://localhost:4318";
/// Default of `service`.
pub(super) const TRACES_SERVICE: &str = "gridrpc-server";
/// Where a collector receives spans, below its endpoint.
const PATH: &str = "v1/traces";
const ENDPOINT: &str = "an address of a collector such as \"http://localhost:4318\"";

/// Export of traces to a collector of OpenTelemetry.
#[derive(Clone, Debug, PartialEq)]
pub struct TracesConfig {
    /// URL to post spans to.
    pub url: Uri,
    /// File with the certificates that the collector is checked with; none: those that the system trusts.
    pub authority: Option<PathBuf>,
    /// Name of the server in traces.
    pub service: String,
    /// Which calls are recorded.
    pub sampler: Sampler,
}

/// Decision which calls are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Whether a call in a trace of its client is recorded exactly if the client records it.
    pub follows_client: bool,
    /// Share of the other calls that are recorded, from 0 to 1.
    pub ratio: f64,
}

impl TracesConfig {
    /// How the collector proves who it is.
    pub(crate) fn trust(&self) -> Trust<'_> {
        self.authority.as_deref().map_or(Trust::System, Trust::Authority)
    }

    /// Reads the table. Paths start at the `folder` of the file. `environment`: the variables `OTEL_*`.
    pub(super) fn read(
        table: &DeTable<'_>,
        at: usize,
        folder: &Path,
        environment: &BTreeMap<String, String>,
        report: &mut ServerReport<'_>,
    ) -> TracesConfig {
        let (mut url, mut authority, mut service, mut ratio) = (None, None, None, None);
        each_key(table, schema::TRACES, report, |entry, _| {
            match entry.key {
                "endpoint" => url = Some(endpoint(entry)?),
                "authority" => authority = Some(folder.join(entry.text()?)),
                "service" => service = Some(entry.text()?),
                _ => ratio = Some(share(entry)?),
            }
            Ok(())
        });
        let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        let mut checked = |name: &str, read: &dyn Fn(&str) -> Option<Uri>| {
            let value = variable(name)?;
            let uri = read(value);
            if uri.is_none() {
                let (key, found, expected) = (name.into(), shown(value), ENDPOINT.into());
                report.add(at, Fault::Value { key, found, expected });
            }
            uri
        };
        let url = url
            .or_else(|| checked("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &|text| uri(text)))
            .or_else(|| checked("OTEL_EXPORTER_OTLP_ENDPOINT", &with_path))
            .unwrap_or_else(|| {
                with_path(TRACES_ENDPOINT).unwrap_or_else(|| Uri::from_static("http://localhost"))
            });
        let authority = authority.or_else(|| {
            let names = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"];
            names.into_iter().find_map(variable).map(PathBuf::from)
        });
        let service = service
            .or_else(|| variable("OTEL_SERVICE_NAME").cloned())
            .unwrap_or_else(|| TRACES_SERVICE.into());
        let argument = variable("OTEL_TRACES_SAMPLER_ARG").map(String::as_str);
        let sampler = match variable("OTEL_TRACES_SAMPLER") {
            None => Sampler::default(),
            Some(name) => Sampler::named(name, argument).unwrap_or_else(|| {
                let (key, found) = ("OTEL_TRACES_SAMPLER".into(), shown(name));
                let expected = "one of the samplers of OpenTelemetry, such as \"parentbased_traceidratio\" with a \
                                ratio from 0 to 1 in `OTEL_TRACES_SAMPLER_ARG`";
                report.add(at, Fault::Value { key, found, expected: expected.into() });
                Sampler::default()
            }),
        };
        TracesConfig {
            url,
            authority,
            service,
            sampler: Sampler { ratio: ratio.unwrap_or(sampler.ratio), ..sampler },
        }
    }
}

impl Default for Sampler {
    fn default() -> Sampler {
        Sampler { follows_client: true, ratio: 1.0 }
    }
}

impl Sampler {
    /// The sampler that `OTEL_TRACES_SAMPLER` names. None: there is none, or its argument is invalid.
    fn named(name: &str, argument: Option<&str>) -> Option<Sampler> {
        let (follows_client, kind) = match name.strip_prefix("parentbased_") {
            Some(kind) => (true, kind),
            None => (false, name),
        };
        let ratio = match kind {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => match argument {
                None => 1.0,
                Some(text) => text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio))?,
            },
            _ => return None,
        };
        Some(Sampler { follows_client, ratio })
    }
}

fn uri(text: &str) -> Option<Uri> {
    let uri: Uri = text.parse().ok()?;
    let is_valid = matches!(uri.scheme_str(), Some("http" | "https"))
        && uri.host().is_some_and(|host| !host.is_empty());
    is_valid.then_some(uri)
}

/// The URL for spans of a collector.
fn with_path(text: &str) -> Option<Uri> {
    uri(text)?;
    uri(&format!("{}/{PATH}", text.trim_end_matches('/')))
}

fn endpoint(entry: &Entry<'_>) -> Result<Uri, Fault> {
    with_path(&entry.text()?).ok_or_else(|| entry.wrong(ENDPOINT))
}

fn share(entry: &Entry<'_>) -> Result<f64, Fault> {
    let ratio = entry.decimal().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| entry.wrong("a number from 0 to 1"))
}

//! Export of traces, and the environment variables of OpenTelemetry.

use super::*;

fn with(text: &str, variables: &[(&str, &str)]) -> Result<ServerConfig, ServerProblems> {
    let pairs = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let defaults = Defaults { opentelemetry: pairs.collect(), ..defaults() };
    read(text, "server.toml", &defaults)
}

fn traces(text: &str, variables: &[(&str, &str)]) -> TracesConfig {
    with(text, variables).unwrap_or_else(|problems| panic!("{problems}")).traces.unwrap()
}

#[test]
fn the_environment_alone_exports_nothing() {
    let config = with("", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")]).unwrap();
    assert_eq!(config.traces, None);
}

#[test]
fn the_environment_has_the_defaults() {
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/otlp/");
    let whole = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:9/in");
    let name = ("OTEL_SERVICE_NAME", "lapack");
    let of_environment = traces("[traces]", &[base, name]);
    assert_eq!(of_environment.url, "http://collector:4318/otlp/v1/traces");
    assert_eq!(of_environment.service, "lapack");
    assert_eq!(traces("[traces]", &[base, whole]).url, "http://traces:9/in");
    let text = "[traces]\nendpoint = 'http://[::1]:4318'\nservice = 'here'\nratio = 0.25";
    let of_file = traces(text, &[base, whole, name]);
    assert_eq!(
        (of_file.url.to_string(), &*of_file.service),
        ("http://[::1]:4318/v1/traces".into(), "here")
    );
    assert_eq!(of_file.sampler, Sampler { follows_client: true, ratio: 0.25 });
}

#[test]
fn a_collector_with_tls_may_have_an_authority() {
    let variables = [("OTEL_EXPORTER_OTLP_CERTIFICATE", "/etc/authority.pem")];
    let with_system = traces("[traces]\nendpoint = 'https://collector'", &[]);
    assert_eq!(with_system.url, "https://collector/v1/traces");
    assert_eq!(with_system.authority, None);
    let of_environment = traces("[traces]", &variables);
    assert_eq!(of_environment.authority, Some("/etc/authority.pem".into()));
    let of_file = traces("[traces]\nauthority = 'authority.pem'", &variables);
    assert_eq!(of_file.authority, Some(defaults().folder.join("authority.pem")));
}

#[test]
fn samplers_have_their_names() {
    let of = |name: &str, argument: &str| {
        let variables = [("OTEL_TRACES_SAMPLER", name), ("OTEL_TRACES_SAMPLER_ARG", argument)];
        let Sampler { follows_client, ratio } = traces("[traces]", &variables).sampler;
        (follows_client, ratio)
    };
    assert_eq!(of("", ""), (true, 1.0));
    assert_eq!(of("always_on", "0.5"), (false, 1.0));
    assert_eq!(of("always_off", ""), (false, 0.0));
    assert_eq!(of("traceidratio", "0.5"), (false, 0.5));
    assert_eq!(of("parentbased_always_off", ""), (true, 0.0));
    assert_eq!(of("parentbased_traceidratio", "0.1"), (true, 0.1));
}

#[test]
fn invalid_values_are_problems() {
    let problems = with(
        "[traces]\nratio = 2\nendpoint = 'ftp://collector:4318'",
        &[("OTEL_TRACES_SAMPLER", "sometimes")],
    );
    let problems = problems.unwrap_err().to_string();
    assert!(problems.contains("`ratio` is 2: write a number from 0 to 1"), "{problems}");
    assert!(problems.contains("`endpoint` is \"ftp://collector:4318\""), "{problems}");
    assert!(problems.contains("`OTEL_TRACES_SAMPLER` is \"sometimes\""), "{problems}");
    let wrong = with("[traces]", &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector")]);
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("`OTEL_EXPORTER_OTLP_ENDPOINT` is \"collector\""), "{wrong}");
}

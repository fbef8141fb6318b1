//! The reference, docs/server-toml.md: lists all keys with their defaults, and its examples work.

use super::*;

const REFERENCE: &str = include_str!("../../../../../docs/server-toml.md");

/// The code blocks of a kind.
fn blocks(kind: &str) -> Vec<&'static str> {
    let open = format!("\n```{kind}\n");
    let parts = REFERENCE.split(open.as_str()).skip(1);
    parts.map(|part| part.split_once("```").unwrap().0).collect()
}

/// The keys of a section's table, with their defaults.
fn rows(heading: &str) -> Vec<(&'static str, &'static str)> {
    let (_, section) = REFERENCE.split_once(&format!("\n## {heading}\n")).unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(key, rest)| (key, rest.split(" | ").nth(2).unwrap().trim_matches('`'))).collect()
}

const GRANTS: &str = "`[users.NAME]`, `[groups.NAME]`, `[everyone]`";

#[test]
fn it_has_a_row_for_each_key() {
    let sections = [
        ("`[server]`", schema::SERVER),
        ("`[tls]`", schema::TLS),
        ("`[http]`", schema::HTTP),
        ("`[workers]`", schema::WORKERS),
        ("`[modules]`", schema::MODULES),
        ("`[modules.NAME]`", schema::CALLS),
        ("`[python.NAME]`", schema::PYTHON),
        (GRANTS, schema::GRANTS),
        ("`[audit]`", schema::AUDIT),
        ("`[results]`", schema::RESULTS),
        ("`[log]`", schema::LOG),
        ("`[traces]`", schema::TRACES),
        ("`[directory]`", schema::DIRECTORY),
    ];
    for (heading, keys) in sections {
        let names: Vec<&str> = rows(heading).iter().map(|(key, _)| *key).collect();
        assert_eq!(names, keys, "{heading}");
        for key in keys {
            let name = heading.trim_matches(['`', '[', ']']);
            let table =
                if heading == GRANTS { "everyone".into() } else { name.replace("NAME", "m") };
            let text = format!("[{table}]\n{key} = {{}}");
            let problems = read(&text, "", &defaults()).unwrap_err().to_string();
            assert!(problems.contains(&format!("`{key}` is a table")), "{text}: {problems}");
        }
    }
    for table in schema::TABLES {
        assert!(REFERENCE.contains(&format!("`[{table}")), "{table}");
    }
}

#[test]
fn its_defaults_are_right() {
    let default = |heading: &str, key: &str| {
        rows(heading).into_iter().find(|(row, _)| *row == key).unwrap().1.trim_matches('"')
    };
    let size = |text: &str| gridrpc_sys::memory::size(text).unwrap();
    let number = |text: &str| text.parse::<u64>().unwrap();
    assert_eq!(default("`[server]`", "addresses"), format!("[\"{ADDRESS}\"]"));
    assert_eq!(number(default("`[server]`", "port")), u64::from(PORT));
    let most = number(default("`[server]`", "most_connections"));
    assert_eq!(most, u64::from(MOST_CONNECTIONS));
    let http = config("[http]").http.unwrap();
    assert_eq!(default("`[http]`", "addresses"), format!("[\"{}\"]", http.addresses[0]));
    assert_eq!(number(default("`[http]`", "port")), u64::from(http.port));
    let most = number(default("`[http]`", "most_connections"));
    assert_eq!(most, u64::from(http.most_connections));
    assert_eq!(number(default("`[http]`", "most_calls")), u64::from(http.most_calls));
    assert_eq!(size(default("`[http]`", "most_request_bytes")), http.most_request_bytes);
    assert_eq!(size(default("`[http]`", "most_result_bytes")), http.most_result_bytes);
    let seconds = number(default("`[http]`", "request_seconds"));
    assert_eq!(seconds, http.request_timeout.as_secs());
    assert_eq!(default("`[log]`", "format"), "text");
    assert_eq!(config("").log, LogFormat::Text);
    let traces = config("[traces]").traces.unwrap();
    let endpoint = default("`[traces]`", "endpoint");
    assert_eq!(traces.url, format!("{endpoint}/v1/traces").as_str());
    assert_eq!(default("`[traces]`", "service"), traces.service);
    assert_eq!(default("`[traces]`", "ratio"), format!("{:.1}", traces.sampler.ratio));
    let tls = "[tls]\ncertificate = 'c'\nkey = 'k'\nauthority = 'a'\n";
    let directory = config(&format!("{tls}[directory]\nurls = 'https://a:1'")).directory.unwrap();
    let interval = number(default("`[directory]`", "interval"));
    assert_eq!(interval, directory.interval.as_secs());
    let speed = default("`[directory]`", "speed").parse::<f64>().unwrap();
    assert_eq!(speed, directory.speed);
    assert_eq!(number(default("`[workers]`", "idle")), IDLE.as_secs());
    assert_eq!(size(default("`[audit]`", "size")), AUDIT_SIZE);
    assert_eq!(number(default("`[audit]`", "keep")), u64::from(AUDIT_KEEP));
    assert_eq!(number(default("`[results]`", "keep_days")), u64::from(RESULT_DAYS));
    assert_eq!(size(default("`[results]`", "bytes")), RESULT_BYTES);
    let limits = Limits::default();
    let limit = |key: &str| default(GRANTS, key);
    assert_eq!(limit("calls"), limits.calls.to_string());
    assert_eq!(limit("queued"), limits.queued.to_string());
    assert_eq!(limit("bytes"), limits.bytes.to_string());
    assert_eq!((limit("rate"), limits.rate), ("unlimited", f64::INFINITY));
    assert_eq!(limit("workers"), limits.workers.to_string());
    assert_eq!(limit("cpu_seconds_per_day"), limits.cpu_seconds.to_string());
    assert_eq!(Limit::At(size(limit("shared_bytes"))), limits.shared_bytes);
    let names = (default("`[modules.NAME]`", "isolation"), default("`[modules.NAME]`", "policy"));
    assert_eq!(names, ("shared", "fair"));
    let calls = CallSettings::default();
    assert_eq!((calls.isolation, calls.policy), (Isolation::Shared, Policy::Fair));
}

#[test]
fn its_example_is_read() {
    let config = config(blocks("toml")[0]);
    assert_eq!(config.network.as_ref().unwrap().addresses.len(), 2);
    assert_eq!(config.calls("lapack").unwrap().calendar.len(), 3);
    assert_eq!(config.python["images"].functions.len(), 2);
    assert_eq!(config.users["ann"].rate, Some(f64::INFINITY));
}

#[test]
fn its_problems_are_reported_so() {
    let problems = read(blocks("toml")[1], "wrong.toml", &defaults()).unwrap_err().to_string();
    assert_eq!(format!("{problems}\n"), blocks("text")[0]);
}

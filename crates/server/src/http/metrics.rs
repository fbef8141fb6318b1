//! Metrics of a server.

use std::collections::BTreeMap;

use crate::exposition::Exposition;
use crate::statistics::CallCount;
use crate::status::{DetachedStatus, PoolStatus, ServerStatus, UserStatus};

/// A metric of a part of the server: name, description, and value.
type Measure<T> = (&'static str, &'static str, fn(&T) -> f64);

/// All metrics, as text.
pub(super) fn metrics(status: &ServerStatus) -> String {
    let mut text = Exposition::default();
    server(&mut text, status);
    let functions: Vec<_> = status.functions.iter().map(|(name, count)| (name, *count)).collect();
    counts(&mut text, "", "function", &functions);
    if let Some(private) = &status.private {
        let ended: Vec<_> = private.users.iter().map(|(name, user)| (name, user.ended)).collect();
        counts(&mut text, "user_", "user", &ended);
        users(&mut text, &private.users);
        let name = "gridrpc_server_connections";
        text.metric(name, "Connections of gridrpc clients that make calls, by user.");
        for (user, count) in &private.clients {
            text.sample(name, &[("user", user)], *count as f64);
        }
    }
    pools(&mut text, &status.pools);
    detached(&mut text, &status.detached);
    text.into_text()
}

fn server(text: &mut Exposition, status: &ServerStatus) {
    let name = "gridrpc_server_info";
    text.metric(name, "The server; always 1.");
    text.sample(name, &[("name", &status.name), ("version", status.version)], 1.0);
    let mut values = vec![
        ("gridrpc_server_uptime_seconds", "Time since the server started.", status.uptime),
        (
            "gridrpc_server_draining",
            "Whether the server takes no new calls.",
            f64::from(u8::from(status.draining)),
        ),
    ];
    if let Some(private) = &status.private {
        values.extend([
            (
                "gridrpc_server_refused_total",
                "Connections and requests that were not admitted.",
                private.refused as f64,
            ),
            (
                "gridrpc_server_audit_dropped_total",
                "Records that the audit log lacks.",
                private.audit_dropped as f64,
            ),
        ]);
        if let Some(spans) = &private.spans {
            values.extend([
                (
                    "gridrpc_server_spans_exported_total",
                    "Spans of traces that the collector has accepted.",
                    spans.exported as f64,
                ),
                (
                    "gridrpc_server_spans_dropped_total",
                    "Spans of traces that were not exported.",
                    spans.dropped as f64,
                ),
            ]);
        }
    }
    for (name, help, value) in values {
        text.metric(name, help);
        text.sample(name, &[], value);
    }
}

/// Ended calls by function or by user.
fn counts(text: &mut Exposition, kind: &str, label: &str, counts: &[(&String, CallCount)]) {
    let name = format!("gridrpc_server_{kind}calls_total");
    text.metric(&name, &format!("Calls that have ended, by {label} and outcome."));
    for (of, count) in counts {
        for (outcome, value) in [("returned", count.returned), ("failed", count.failed)] {
            text.sample(&name, &[(label, of), ("outcome", outcome)], value as f64);
        }
    }
    let measures: [Measure<CallCount>; 3] = [
        ("call_seconds_total", "Run time of ended calls", |count| count.seconds),
        ("argument_bytes_total", "Bytes of arguments of ended calls", |count| {
            count.bytes_in as f64
        }),
        ("result_bytes_total", "Bytes of results", |count| count.bytes_out as f64),
    ];
    for (name, help, value) in measures {
        let name = format!("gridrpc_server_{kind}{name}");
        text.metric(&name, &format!("{help}, by {label}."));
        for (of, count) in counts {
            text.sample(&name, &[(label, of)], value(count));
        }
    }
}

fn users(text: &mut Exposition, users: &BTreeMap<String, UserStatus>) {
    let measures: [Measure<UserStatus>; 3] = [
        ("gridrpc_server_user_calls_running", "Calls that run, by user.", |user| {
            user.running as f64
        }),
        ("gridrpc_server_user_calls_waiting", "Calls that wait for a limit, by user.", |user| {
            user.waiting as f64
        }),
        ("gridrpc_server_user_held_bytes", "Bytes of arguments that are held, by user.", |user| {
            user.bytes as f64
        }),
    ];
    for (name, help, value) in measures {
        text.metric(name, help);
        for (user, status) in users {
            text.sample(name, &[("user", user)], value(status));
        }
    }
}

fn pools(text: &mut Exposition, pools: &[PoolStatus]) {
    let measures: [Measure<PoolStatus>; 3] = [
        ("gridrpc_server_workers_ready", "Workers that are ready, by pool.", |pool| {
            pool.ready as f64
        }),
        ("gridrpc_server_calls_queued", "Calls that wait for a worker, by pool.", |pool| {
            pool.queued as f64
        }),
        ("gridrpc_server_calls_alive", "Calls that have begun and not ended, by pool.", |pool| {
            pool.alive as f64
        }),
    ];
    for (name, help, value) in measures {
        text.metric(name, help);
        for pool in pools {
            let module = pool.module.as_deref().unwrap_or_default();
            let user = pool.user.as_deref().unwrap_or_default();
            text.sample(name, &[("module", module), ("user", user)], value(pool));
        }
    }
}

fn detached(text: &mut Exposition, status: &DetachedStatus) {
    let name = "gridrpc_server_detached_calls";
    text.metric(name, "Detached calls that the server keeps, by state.");
    let DetachedStatus { queued, running, ended } = *status;
    for (state, number) in [("queued", queued), ("running", running), ("ended", ended)] {
        text.sample(name, &[("state", state)], number as f64);
    }
}

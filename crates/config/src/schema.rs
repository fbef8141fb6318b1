//! Schema: the keys of a host group and the kinds of their values.

/// The names of all keys.
pub fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|(name, _)| *name)
}

/// Kind of a key's value, for callers that write it without TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
    List,
    Table,
    Flag,
}

/// All keys.
const KEYS: [(&str, Kind); 46] = [
    ("launcher", Kind::Text),
    ("hosts", Kind::List),
    ("workers", Kind::Number),
    ("command", Kind::Text),
    ("prefix", Kind::Text),
    ("session", Kind::Text),
    ("server", Kind::Text),
    ("credentials", Kind::Text),
    ("python", Kind::Text),
    ("program", Kind::Text),
    ("directory", Kind::Text),
    ("environment", Kind::Table),
    ("preload", Kind::List),
    ("addresses", Kind::List),
    ("ports", Kind::Text),
    ("start_timeout", Kind::Number),
    ("reconnect_timeout", Kind::Number),
    ("stop_timeout", Kind::Number),
    ("heartbeat", Kind::Number),
    ("staging", Kind::Text),
    ("output", Kind::Text),
    ("encryption", Kind::Text),
    ("compression", Kind::Text),
    ("trusted", Kind::Flag),
    ("min_hosts", Kind::Number),
    ("idle", Kind::Number),
    ("memory", Kind::Text),
    ("resources", Kind::Table),
    ("nodes", Kind::Number),
    ("nodes_per_host", Kind::Number),
    ("partition", Kind::Text),
    ("queue", Kind::Text),
    ("account", Kind::Text),
    ("project", Kind::Text),
    ("accounting_group", Kind::Text),
    ("bank", Kind::Text),
    ("wall_time", Kind::Text),
    ("cores", Kind::Number),
    ("exclusive", Kind::Flag),
    ("constraint", Kind::Text),
    ("parallel_environment", Kind::Text),
    ("request", Kind::Text),
    ("options", Kind::List),
    ("skip", Kind::List),
    ("template", Kind::Text),
    ("requeue", Kind::Flag),
];

/// The kind of a key's value; none: there is no such key.
pub fn kind(key: &str) -> Option<Kind> {
    KEYS.iter().find(|(name, _)| *name == key).map(|(_, kind)| *kind)
}

//! Statistics of a server that many clients share.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::error::TopError;
use super::formats::{NOTHING, bytes, clock, count, rate, time};
use super::text::{push_rows, short};
use super::view::{Refreshed, View};
use crate::{server, server_query};

/// Narrowest and widest table.
const NARROWEST: usize = 70;
const WIDEST: usize = 120;
/// Lines of the table besides users, functions and pools.
const OTHER_LINES: usize = 12;
/// Width of the numeric columns.
const NUMBERS: usize = 52;

/// A server.
#[derive(Debug)]
pub(super) struct ServerView {
    /// Its address, or the file with its configuration.
    server: String,
    now: Value,
    before: Option<Value>,
}

impl ServerView {
    pub(super) fn open(server: &str) -> Result<ServerView, TopError> {
        Ok(ServerView { server: server.to_owned(), now: status(server)?, before: None })
    }

    /// What grows per second, since the last answer or on average after the first.
    fn per_second(&self, value: impl Fn(&Value) -> f64) -> f64 {
        let uptime = |status: &Value| status["uptime"].as_f64().unwrap_or(0.0);
        let before = self.before.as_ref();
        let seconds = (uptime(&self.now) - before.map_or(0.0, uptime)).max(1e-3);
        (value(&self.now) - before.map_or(0.0, value)).max(0.0) / seconds
    }

    fn head(&self) -> String {
        let now = &self.now;
        let name = now["name"].as_str().unwrap_or(NOTHING);
        let draining = if now["draining"] == true { ", takes no new calls" } else { "" };
        let uptime = clock(now["uptime"].as_f64().unwrap_or(0.0));
        let mut text =
            format!("server {name}, process {}, up for {uptime}{draining}\n\n", now["pid"]);
        let functions = |status: &Value| sum(&status["functions"], ended);
        let _ = writeln!(
            text,
            "calls    {}/s; {} have ended, {} of them with an error",
            rate(self.per_second(functions)),
            count(functions(now) as u64),
            count(sum(&now["functions"], |one| number(one, "failed")) as u64),
        );
        let waiting = sum(&now["pools"], |pool| number(pool, "queued"))
            + sum(&now["users"], |user| number(user, "waiting"));
        let alive = sum(&now["modules"], |module| number(module, "alive"));
        let _ =
            writeln!(text, "queue    {} wait of {}", count(waiting as u64), count(alive as u64));
        let flow = |key: &'static str| {
            bytes(self.per_second(|status| sum(&status["functions"], |one| number(one, key))))
        };
        let _ = writeln!(
            text,
            "bytes    arguments {}/s, results {}/s",
            flow("bytes_in"),
            flow("bytes_out")
        );
        text
    }

    /// Rows of users or functions, the busiest first. `more`: two further columns.
    fn rows(&self, kind: &str, width: usize, more: impl Fn(&Value) -> String) -> Vec<String> {
        let empty = serde_json::Map::new();
        let all = self.now[kind].as_object().unwrap_or(&empty);
        let mut rows: Vec<(f64, String)> = all
            .iter()
            .map(|(name, one)| {
                let workers = self.per_second(|status| number(&status[kind][name], "seconds"));
                let calls = self.per_second(|status| ended(&status[kind][name]));
                let row = format!(
                    "{:<width$} {:>9} {:>8} {workers:>7.2} {:>6} {}",
                    short(name, width),
                    count(ended(one) as u64),
                    rate(calls),
                    count(number(one, "failed") as u64),
                    more(one),
                );
                (workers, row)
            })
            .collect();
        rows.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

impl View for ServerView {
    fn name(&self) -> String {
        format!("the server of `{}`", self.server)
    }

    fn table(&self, columns: usize, lines: usize) -> String {
        let columns = columns.clamp(NARROWEST, WIDEST);
        let width = columns - NUMBERS;
        let mut text = self.head();
        let users = self.rows("users", width, |user| {
            let (running, waiting) = (number(user, "running"), number(user, "waiting"));
            format!("{:>8} {:>8}", count(running as u64), count(waiting as u64))
        });
        let functions = self.rows("functions", width, |one| {
            let mean = if ended(one) > 0.0 {
                time(number(one, "seconds") / ended(one))
            } else {
                NOTHING.into()
            };
            format!("{mean:>8}")
        });
        let pools: Vec<String> = self.now["pools"].as_array().map_or_else(Vec::new, |pools| {
            pools.iter().map(|pool| pool_row(pool, width)).collect()
        });
        // Each list gets a third at least.
        let room = lines.saturating_sub(OTHER_LINES);
        let third = (room / 3).max(1);
        let for_pools = pools.len().min(third).max(1);
        let for_users = users.len().min(room.saturating_sub(for_pools) / 2).max(third);
        let for_functions = room.saturating_sub(for_pools + for_users.min(users.len())).max(1);
        let head = |name, more| {
            format!(
                "\n{name:<width$} {:>9} {:>8} {:>7} {:>6} {more}\n",
                "CALLS", "CALLS/S", "WORKERS", "ERRORS"
            )
        };
        if !self.now["users"].is_null() {
            text += &head("USER", " RUNNING  WAITING");
            push_rows(&mut text, users.into_iter(), for_users, "users");
        }
        text += &head("FUNCTION", "    MEAN");
        push_rows(&mut text, functions.into_iter(), for_functions, "functions");
        let _ = writeln!(
            text,
            "\n{:<width$} {:>9} {:>8} {:>7}  USER",
            "WORKERS OF", "READY", "QUEUED", "CALLS"
        );
        push_rows(&mut text, pools.into_iter(), for_pools, "pools");
        let fit = |line: &str| line.trim_end().chars().take(columns).collect::<String>() + "\n";
        text.lines().map(fit).collect()
    }

    fn line(&self) -> String {
        let now = &self.now;
        let functions = |status: &Value| sum(&status["functions"], ended);
        format!(
            "{}  calls {} ({}/s)  alive {}  queued {}  errors {}  workers {}",
            clock(now["uptime"].as_f64().unwrap_or(0.0)),
            functions(now),
            rate(self.per_second(functions)),
            sum(&now["modules"], |module| number(module, "alive")),
            sum(&now["pools"], |pool| number(pool, "queued")),
            sum(&now["functions"], |one| number(one, "failed")),
            sum(&now["pools"], |pool| number(pool, "ready")),
        )
    }

    fn json(&self) -> String {
        self.now.to_string()
    }

    fn refresh(&mut self) -> Result<Refreshed, TopError> {
        // One that is stopped removes its socket.
        let Ok(now) = status(&self.server) else { return Ok(Refreshed::Gone) };
        let before = std::mem::replace(&mut self.now, now);
        // Another process counts from zero.
        self.before = (before["pid"] == self.now["pid"]).then_some(before);
        Ok(Refreshed::New)
    }
}

fn status(server: &str) -> Result<Value, TopError> {
    if server.contains("://") {
        return Ok(server_query::status(server)?);
    }
    Ok(server::status(Path::new(server))?)
}

fn pool_row(pool: &Value, width: usize) -> String {
    let figure = |key| count(number(pool, key) as u64);
    format!(
        "{:<width$} {:>9} {:>8} {:>7}  {}",
        short(pool["module"].as_str().unwrap_or("(common)"), width),
        figure("ready"),
        figure("queued"),
        figure("alive"),
        pool["user"].as_str().unwrap_or("(all)"),
    )
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

fn ended(count: &Value) -> f64 {
    number(count, "returned") + number(count, "failed")
}

/// The sum over the items of a list or the values of a table.
fn sum(all: &Value, of: impl Fn(&Value) -> f64) -> f64 {
    match all {
        Value::Array(all) => all.iter().map(of).fold(0.0, |a, b| a + b),
        Value::Object(all) => all.values().map(of).fold(0.0, |a, b| a + b),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(users: usize) -> ServerView {
        let one = |returned: u64| json!({ "returned": returned, "failed": 1, "seconds": 2.0, "running": 3, "waiting": 4 });
        let named = |name: &str, returned| {
            (0..users)
                .map(|n| (format!("{name}{n:04}"), one(returned)))
                .collect::<serde_json::Map<_, _>>()
        };
        let status = |uptime: f64, returned: u64| {
            json!({
                "name": "here", "pid": 7, "uptime": uptime, "users": named("user", returned),
                "functions": named("module/function", returned),
                "pools": [{ "module": null, "user": null, "ready": 2, "queued": 5, "alive": 6 }],
                "modules": [{ "name": "module", "alive": 6 }],
            })
        };
        let (now, before) = (status(12.0, 50), Some(status(10.0, 10)));
        ServerView { server: "server.toml".into(), now, before }
    }

    #[test]
    fn a_table_fits_the_terminal() {
        for users in [0, 1, 200] {
            for columns in [70, 80, 200] {
                let text = view(users).table(columns, 24);
                assert!(text.lines().count() <= 24, "{text}");
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest.is_some_and(|widest| widest <= columns.min(WIDEST)), "{text}");
                assert_eq!(text.contains("more users"), users > 100, "{text}");
            }
        }
    }

    #[test]
    fn rates_are_those_since_the_last_answer() {
        let text = view(1).table(100, 24);
        let row = text.lines().find(|line| line.starts_with("user0000")).expect("it is shown");
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["user0000", "51", "20.0", "0.00", "1", "3", "4"]);
    }
}

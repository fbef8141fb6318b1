//! The Prometheus text format.

use std::fmt::Write as _;

/// Content type of the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Metrics in the Prometheus text format.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a metric. By convention, names of counters end in `_total`.
    pub fn metric(&mut self, name: &str, help: &str) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    /// Adds a sample to the metric that began last.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{}\"", escaped(text));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_kinds_follow_the_names() {
        let mut exposition = Exposition::default();
        exposition.metric("calls_total", "Calls.");
        exposition.sample("calls_total", &[("function", "a\"b\\c\nd"), ("user", "ann")], 3.0);
        exposition.metric("queue", "Queue.");
        exposition.sample("queue", &[], 0.5);
        let expected = "# HELP calls_total Calls.\n# TYPE calls_total counter\n\
                        calls_total{function=\"a\\\"b\\\\c\\nd\",user=\"ann\"} 3\n\
                        # HELP queue Queue.\n# TYPE queue gauge\nqueue 0.5\n";
        assert_eq!(exposition.into_text(), expected);
    }
}

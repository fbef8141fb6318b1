//! Statistics in the Prometheus text format.

use gridrpc_client::live::{FunctionStats, HostStats, Stats};
use gridrpc_server::exposition::Exposition;

/// The exposition of all grids.
pub(super) fn exposition(grids: &[Stats]) -> String {
    let mut text = GridMetrics(Exposition::default());
    text.grids(grids);
    text.functions(grids);
    text.hosts(grids);
    text.0.into_text()
}

/// A metric of a grid or of one of its parts: name, description, and value.
type Measure<T> = (&'static str, &'static str, fn(&T) -> f64);

struct GridMetrics(Exposition);

impl GridMetrics {
    fn head(&mut self, name: &str, about: &str) {
        self.0.metric(name, about);
    }

    fn sample(&mut self, name: &str, grid: &Stats, labels: &[(&str, &str)], value: f64) {
        let (pid, grid) = (grid.pid.to_string(), grid.grid.to_string());
        let mut all = vec![("pid", pid.as_str()), ("grid", grid.as_str())];
        all.extend_from_slice(labels);
        self.0.sample(name, &all, value);
    }

    fn grids(&mut self, grids: &[Stats]) {
        self.head("gridrpc_grid_info", "Grids that are open; always 1.");
        for grid in grids {
            let Stats { program, host, gridrpc, .. } = grid;
            let labels = [("program", program), ("host", host), ("version", gridrpc)];
            let labels = labels.map(|(label, text)| (label, text.as_str()));
            self.sample("gridrpc_grid_info", grid, &labels, 1.0);
        }
        let measures: [Measure<Stats>; 4] = [
            ("gridrpc_uptime_seconds", "How long the grid has been open.", |grid| grid.uptime),
            ("gridrpc_calls_queued", "Calls that wait for a worker.", |grid| grid.queued as f64),
            ("gridrpc_queued_bytes", "Bytes of the arguments of waiting calls.", |grid| {
                grid.queued_bytes as f64
            }),
            ("gridrpc_calls_running", "Calls that workers have been sent.", |grid| {
                grid.running as f64
            }),
        ];
        for (name, about, value) in measures {
            self.head(name, about);
            grids.iter().for_each(|grid| self.sample(name, grid, &[], value(grid)));
        }
    }

    fn functions(&mut self, grids: &[Stats]) {
        let name = "gridrpc_calls_total";
        self.head(name, "Calls that have ended, by function and outcome.");
        for (grid, function) in all(grids, |grid| &grid.functions) {
            for (outcome, count) in function.calls.outcomes() {
                let labels = [("function", &*function.name), ("outcome", outcome)];
                self.sample(name, grid, &labels, count as f64);
            }
        }
        let measures: [Measure<FunctionStats>; 4] = [
            ("gridrpc_calls_submitted_total", "Calls that were submitted.", |function| {
                function.calls.submitted as f64
            }),
            ("gridrpc_call_seconds_total", "How long functions ran.", |function| {
                function.calls.seconds
            }),
            ("gridrpc_argument_bytes_total", "Bytes of arguments.", |function| {
                function.calls.argument_bytes as f64
            }),
            ("gridrpc_result_bytes_total", "Bytes of results that came.", |function| {
                function.calls.result_bytes as f64
            }),
        ];
        for (name, about, value) in measures {
            self.head(name, about);
            for (grid, function) in all(grids, |grid| &grid.functions) {
                self.sample(name, grid, &[("function", &function.name)], value(function));
            }
        }
    }

    fn hosts(&mut self, grids: &[Stats]) {
        let measures: [Measure<HostStats>; 5] = [
            ("gridrpc_workers", "Workers that there are to be.", |host| host.workers as f64),
            ("gridrpc_workers_ready", "Workers that have answered.", |host| host.ready as f64),
            ("gridrpc_workers_busy", "Workers that run a call.", |host| host.busy as f64),
            ("gridrpc_workers_lost_total", "Workers that were lost.", |host| host.losses as f64),
            ("gridrpc_calls_answered_total", "Calls that were answered.", |host| host.calls as f64),
        ];
        for (name, about, value) in measures {
            self.head(name, about);
            for (grid, host) in all(grids, |grid| &grid.hosts) {
                let labels = [("server", &*host.server), ("host", &*host.host)];
                self.sample(name, grid, &labels, value(host));
            }
        }
    }
}

fn all<'a, T: 'a>(
    grids: &'a [Stats],
    of: fn(&Stats) -> &Vec<T>,
) -> impl Iterator<Item = (&'a Stats, &'a T)> {
    grids.iter().flat_map(move |grid| of(grid).iter().map(move |one| (grid, one)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridrpc_client::live::CallCounts;

    #[test]
    fn labels_are_escaped_and_kinds_told() {
        let calls = CallCounts { returned: 3, seconds: 0.5, ..Default::default() };
        let functions = vec![FunctionStats { name: "a\"b\\c\nd".into(), calls }];
        let grid = Stats { pid: 7, grid: 1, functions, ..Default::default() };
        let text = exposition(&[grid]);
        let line =
            r#"gridrpc_calls_total{pid="7",grid="1",function="a\"b\\c\nd",outcome="returned"} 3"#;
        assert!(text.lines().any(|found| found == line), "{text}");
        assert!(text.contains("# TYPE gridrpc_calls_total counter\n"), "{text}");
        assert!(text.contains("# TYPE gridrpc_workers_busy gauge\n"), "{text}");
    }
}

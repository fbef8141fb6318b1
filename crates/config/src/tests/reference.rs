//! The reference, docs/grid-toml.md: lists all keys with their defaults, and its examples work.

use super::*;

const REFERENCE: &str = include_str!("../../../../docs/grid-toml.md");

/// The code blocks of a kind.
fn blocks(kind: &str) -> Vec<&'static str> {
    let open = format!("\n```{kind}\n");
    let parts = REFERENCE.split(open.as_str()).skip(1);
    parts.map(|part| part.split_once("```").unwrap().0).collect()
}

#[test]
fn it_has_a_row_for_each_key() {
    let (_, table) = REFERENCE.split_once("\n## Keys\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let rows: Vec<(&str, &str)> = rows.collect();
    let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, schema::names().collect::<Vec<_>>());
    let default = |name| rows.iter().find(|(row, _)| *row == name).unwrap().1.split(" | ").nth(2);
    let of = |time: Duration| time.as_secs().to_string();
    assert_eq!(default("start_timeout").unwrap(), of(START_TIMEOUT));
    assert_eq!(default("reconnect_timeout").unwrap(), of(RECONNECT_TIMEOUT));
    assert_eq!(default("stop_timeout").unwrap(), of(STOP_TIMEOUT));
    assert_eq!(default("heartbeat").unwrap(), of(HEARTBEAT));
}

#[test]
fn its_examples_are_read() {
    let [lab, namespaces, cluster, slurm, gridengine, _wrong] = blocks("toml")[..] else {
        panic!("other examples")
    };
    let groups = read(lab, "").unwrap();
    assert_eq!(groups[0].hosts[1], Host { name: "ann@node2".into(), workers: Some(4) });
    let groups = read(namespaces, "").unwrap();
    assert_eq!(groups.iter().map(|group| group.workers).collect::<Vec<_>>(), [2, 2]);
    let groups = read(cluster, "").unwrap();
    assert_eq!(groups[0].hosts.len(), 8);
    let groups = read(slurm, "").unwrap();
    assert_eq!(groups.iter().map(|group| group.hosts.len()).collect::<Vec<_>>(), [10, 1]);
    let groups = read(gridengine, "").unwrap();
    assert_eq!(groups.iter().map(|group| group.hosts.len()).collect::<Vec<_>>(), [100, 2]);
}

#[test]
fn so_is_the_example_of_the_guide() {
    let guide = include_str!("../../../../docs/many-machines.md");
    let (_, example) = guide.split_once("\n```toml\n").unwrap();
    let groups = read(example.split_once("```").unwrap().0, "").unwrap();
    let hosts: Vec<usize> = groups.iter().map(|group| group.hosts.len()).collect();
    assert_eq!(hosts, [3, 1]);
}

#[test]
fn its_problems_are_reported_so() {
    let wrong = blocks("toml")[5];
    let listed = read(wrong, "wrong.toml").unwrap_err().to_string();
    assert_eq!(format!("{listed}\n"), blocks("text")[0]);
}

#[test]
fn its_hosts_and_urls_are_understood() {
    let (_, table) = REFERENCE.split_once("\n## Hosts\n").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `\"")?.split_once("\"`"));
    let counts: Vec<usize> = rows
        .map(|(text, _)| read(&format!("server.a.hosts = '{text}'"), "").unwrap()[0].hosts.len())
        .collect();
    assert_eq!(counts, [1, 1, 1, 8, 4, 8, 3, 1]);
    let names: Vec<String> =
        blocks("text")[1].lines().map(|url| from_url(url).unwrap().name).collect();
    assert_eq!(
        names,
        [
            "node1",
            "node2",
            "gpu1",
            "local",
            "n1",
            "start-agents",
            "slurm",
            "lab",
            "pbs",
            "work",
            "lab.example.org",
            "/run/server.sock"
        ]
    );
}

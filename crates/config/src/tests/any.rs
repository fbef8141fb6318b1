//! Properties of arbitrary texts and groups.

use gridrpc_wire::Compression;
use proptest::prelude::*;

use super::*;

/// Texts that resemble a file.
fn nearly() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("[server.a]\n".to_owned()),
        Just("[defaults]\n".to_owned()),
        Just("hosts = ['a[1-3]:2', 'b']\n".to_owned()),
        Just("[[server.b]]\n".to_owned()),
        Just("environment = { A = 1 }\n".to_owned()),
        "(hosts|workers|ports|preload|nodes|memory|wall_time|options|exclusive|command|launcher|heartbeat|addresses|environment|resources|session|server|credentials) = [0-9\\[\\]'\"a-c.:,{}=-]{0,12}\n",
        "\\PC{0,20}",
    ];
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9 /'\"#\\\\\u{7}\n=é-]{1,20}", "[a-z]{1,8}"]
}

fn host() -> impl Strategy<Value = Host> {
    let name = prop_oneof![
        "[a-z][a-z0-9.-]{0,10}",
        "[a-z]{1,4}@[a-z0-9]{1,8}",
        Just("fd00::7".into()),
        Just("ann@fe80::1%eth0".into())
    ];
    (name, prop::option::of(1_u32..=100_000)).prop_map(|(name, workers)| Host { name, workers })
}

fn launcher() -> impl Strategy<Value = LauncherKind> {
    let words = || prop::collection::vec(text(), 1..4);
    prop_oneof![
        prop::collection::vec(text(), 0..3).prop_map(|prefix| LauncherKind::Local { prefix }),
        words().prop_map(|command| LauncherKind::Ssh { command }),
        words().prop_map(|command| LauncherKind::Program { command }),
        batch().prop_map(|batch| LauncherKind::Batch(Box::new(batch))),
    ]
}

/// Systems with one form of request.
const WITHOUT_FORMS: [BatchSystem; 4] =
    [BatchSystem::Pbs, BatchSystem::Torque, BatchSystem::Lsf, BatchSystem::Flux];

fn batch() -> impl Strategy<Value = Batch> {
    let line = || prop::option::of("[a-z0-9 '\"#\\\\é&|%-]{1,9}");
    let options = || prop::collection::vec("-[a-z =\"'-]{0,9}", 0..3);
    let requests = [
        RequestForm::Auto,
        RequestForm::Array,
        RequestForm::Job,
        RequestForm::Step,
        RequestForm::Direct,
    ];
    // Up to as many terabytes as fit into a number of bytes.
    let memory = prop::option::of("[0-9]{1,7}[KMGT]?");
    (
        (0..13_usize, line(), line(), memory, line()),
        (prop::option::of(1..=315_360_000_u64), 0..=100_000_u32, any::<bool>(), line()),
        (options(), options(), line(), any::<bool>(), prop::collection::vec(text(), 0..3)),
    )
        .prop_map(move |(first, (wall_time, cores, exclusive, constraint), rest)| {
            let (request, queue, account, memory, template) = first;
            let (options, skip, parallel_environment, requeue, prefix) = rest;
            // Each system has a form or a key that the other lacks.
            let (system, request) = match request {
                0..5 => (BatchSystem::Slurm, requests[request]),
                5..9 => (BatchSystem::GridEngine, requests[request - 5]),
                _ => (WITHOUT_FORMS[request - 9], RequestForm::Auto),
            };
            let has_one = system == BatchSystem::GridEngine;
            let parallel_environment = parallel_environment.filter(|_| has_one);
            let requeue = requeue && system != BatchSystem::Flux;
            let wall_time = wall_time.map(Duration::from_secs);
            Batch {
                system,
                prefix,
                request,
                queue,
                account,
                parallel_environment,
                memory,
                wall_time,
                cores,
                exclusive,
                constraint,
                options,
                skip,
                template,
                requeue,
                // Groups with several have one worker: tests/urls.rs.
                nodes_per_host: 0,
            }
        })
}

fn resources() -> impl Strategy<Value = Vec<(String, u64)>> {
    let named = prop::collection::btree_map("[a-z]{1,5}:[a-z .é]{1,4}", 0..1_u64 << 63, 0..4);
    named.prop_map(|named| named.into_iter().collect())
}

/// The agents of batch jobs.
fn numbered(name: &str, count: usize) -> Vec<Host> {
    (1..=count).map(|number| Host::named(format!("{name}-{number}"))).collect()
}

fn group() -> impl Strategy<Value = HostGroup> {
    let hosts = prop::collection::hash_map("[a-z]{1,6}", host(), 1..4).prop_map(|hosts| {
        let mut hosts: Vec<Host> = hosts.into_values().collect();
        hosts.sort_by(|a, b| a.name.cmp(&b.name));
        hosts.dedup_by(|a, b| a.name == b.name);
        hosts
    });
    let environment = prop::collection::btree_map("[A-Z_]{1,6}|[a-z .é]{1,4}", text(), 0..4);
    let time = || (100_u64..10_000_000).prop_map(Duration::from_millis);
    let option = || prop::option::of(text());
    (
        ("[a-zé.@:-]{1,9}", launcher(), hosts, 0_u32..=100_000),
        (option(), option(), option(), option(), environment),
        (prop::collection::vec("[a-z0-9.]{1,9}", 0..3), prop::option::of((1_u16.., 1_u16..))),
        (time(), time(), time(), any::<[bool; 2]>(), 0..3_usize, 0..3_usize),
        (prop::option::of(0..4_u32), time(), prop::option::of(0..u64::MAX), resources()),
        prop::collection::vec("[a-z0-9./é]{1,9}", 0..3),
    )
        .prop_map(
            |(
                first,
                texts,
                (addresses, ports),
                rest,
                (least, idle, memory, resources),
                preload,
            )| {
                let (name, launcher, hosts, workers) = first;
                let (python, program, directory, staging, environment) = texts;
                let (start_timeout, stop_timeout, heartbeat, flags, output, compression) = rest;
                let [encryption, trusted] = flags;
                let hosts = match launcher {
                    LauncherKind::Batch(_) => numbered(&name, hosts.len()),
                    _ => hosts,
                };
                HostGroup {
                    workers,
                    python,
                    program,
                    directory,
                    staging,
                    environment: environment.into_iter().collect(),
                    preload,
                    memory: memory.filter(|_| !matches!(launcher, LauncherKind::Batch(_))),
                    resources,
                    addresses,
                    ports: ports.map(|(a, b)| (a.min(b), a.max(b))),
                    start_timeout,
                    reconnect_timeout: start_timeout + idle,
                    stop_timeout,
                    heartbeat,
                    encryption,
                    trusted,
                    output: [WorkerOutput::Labelled, WorkerOutput::Plain, WorkerOutput::Kept]
                        [output],
                    compression: [Compression::Auto, Compression::On, Compression::Off]
                        [compression],
                    min_hosts: least.map(|least| least.min(hosts.len() as u32)),
                    idle,
                    ..HostGroup::new(name, launcher, hosts)
                }
            },
        )
}

proptest! {
    #[test]
    fn no_text_is_a_panic(text in "\\PC{0,200}") {
        let _ = read(&text, "file").map_err(|problems| problems.to_string());
        let _ = from_url(&text).map_err(|problem| problem.to_string());
    }

    #[test]
    fn no_text_that_is_nearly_a_file_is_a_panic(text in nearly()) {
        if let Err(problems) = read(&text, "file") {
            prop_assert!(!problems.listed.is_empty());
            prop_assert!(problems.to_string().lines().count() >= problems.listed.len());
        }
    }

    #[test]
    fn no_url_is_a_panic(
        text in "(ssh://|local:|program:|slurm:|gridengine:|htcondor:|session:|gridrpc://|gridrpc\\+unix://)[a-z0-9@:/\\[\\]%,.-]{0,20}(\\?[a-z_.]{1,10}=[a-z0-9%&=,.\\[\\]-]{0,20})?"
    ) {
        if let Ok(group) = from_url(&text) {
            prop_assert_eq!(read(&write(std::slice::from_ref(&group)), "").unwrap(), vec![group]);
        }
    }

    #[test]
    fn no_list_of_hosts_is_a_panic(text in "[a-c0-9@:,%\\[\\]-]{0,20}") {
        let _ = read(&format!("server.a.hosts = '{text}'"), "");
    }

    #[test]
    fn what_is_written_is_read_again(group in group()) {
        let text = write(std::slice::from_ref(&group));
        let again = read(&text, "file").map_err(|problems| TestCaseError::fail(problems.to_string()))?;
        prop_assert_eq!(again, vec![group], "{}", text);
    }
}

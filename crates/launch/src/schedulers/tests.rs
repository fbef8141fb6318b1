//! The output below is that of the systems' manuals, and of reports about them: none of the three systems is
//! installed where these tests run.

use gridrpc_config::{LauncherKind, from_url};

use super::*;

fn scheduler(url: &str) -> Scheduler {
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    Scheduler::new(&group, batch, "gridrpc-lab-0a1b2c3d".into())
}

fn script_of(url: &str) -> Result<String, String> {
    let agents = from_url(url).unwrap().hosts.len();
    scheduler(url).script(&JobRequest { agents, program: "/s/gridrpc", folder: "/s/my jobs/1" })
}

fn has_lines(script: &str, prefix: &str, lines: &[&str]) {
    for line in lines {
        assert!(script.contains(&format!("\n{prefix}{line}\n")), "{line}: {script}");
    }
}

fn row(name: &str, state: State) -> Row {
    Row { name: name.into(), state, run: String::new(), left: None }
}

fn queued(why: &str) -> State {
    State::Queued(why.into())
}

fn runs(node: &str) -> State {
    State::Runs(node.into())
}

fn ended(how: &str) -> State {
    State::Ended(how.into())
}

#[test]
fn nothing_is_needed() {
    let expected = "\
#!/bin/sh
#PBS -N gridrpc-lab-0a1b2c3d
#PBS -V
#PBS -j oe
#PBS -o /dev/null
#PBS -m n
#PBS -r n
#PBS -l select=1:ncpus=1

tickets='/s/my jobs/1'
agent=0
cd \"${PBS_O_WORKDIR:-.}\"
status=0
/s/gridrpc agent --ticket \"$tickets/$agent\" --processors 1 \\
    >\"$tickets/$agent.out\" 2>&1 || status=$?
echo \"$status\" >\"$tickets/$agent.end\"
exit \"$status\"
";
    assert_eq!(script_of("pbs:").unwrap(), expected);
}

const KEYS: &str =
    "nodes=3&workers=4&cores=2&queue=long&memory=16G&wall_time=08:00:30&exclusive=true";

#[test]
fn all_that_is_requested_is_in_the_script() {
    let pbs =
        script_of(&format!("pbs:?{KEYS}&project=me&constraint=ngpus=1&options=-A%20x")).unwrap();
    let lines = [
        "-J 0-2",
        "-r y",
        "-l select=1:ncpus=8:mem=16gb:ngpus=1",
        "-l place=exclhost",
        "-l walltime=08:00:30",
        "-q long",
        "-P me",
        "-A x",
    ];
    has_lines(&pbs, "#PBS ", &lines);
    assert!(pbs.contains("agent=$PBS_ARRAY_INDEX\n") && pbs.contains(" --processors 8 "), "{pbs}");
    let torque =
        script_of(&format!("torque:?{KEYS}&account=me&constraint=gpu&requeue=true")).unwrap();
    let lines = [
        "-N gridrpc0a1b2c3d",
        "-t 0-2",
        "-l nodes=1:ppn=8:gpu",
        "-l mem=16gb",
        "-n",
        "-A me",
        "-r y",
    ];
    has_lines(&torque, "#PBS ", &lines);
    assert!(
        torque.contains("agent=$PBS_ARRAYID\n") && torque.contains(" --patience 60 "),
        "{torque}"
    );
    let lsf = script_of(&format!("lsf:?{KEYS}&project=me&constraint=type==X64")).unwrap();
    let lines = [
        "-J \"gridrpc-lab-0a1b2c3d[1-3]\"",
        "-n 8",
        "-R \"span[hosts=1]\"",
        "-R \"rusage[mem=16GB]\"",
        "-R \"select[type==X64]\"",
        "-W 08:01",
        "-q long",
        "-P me",
        "-x",
        "-rn",
    ];
    has_lines(&lsf, "#BSUB ", &lines);
    assert!(lsf.contains("agent=$((LSB_JOBINDEX - 1))\n"), "{lsf}");
    let flux = script_of(&format!("flux:?{KEYS}&bank=me&constraint=a%26b")).unwrap();
    let lines = [
        "--cc=0-2",
        "--nodes=1",
        "--cores-per-task=8",
        "--time-limit=28830s",
        "--queue=long",
        "--bank=me",
        "--exclusive",
        "--requires='a&b'",
    ];
    has_lines(&flux, "#flux: ", &lines);
    assert!(flux.contains("agent=$FLUX_JOB_CC\n"), "{flux}");
}

#[test]
fn each_option_can_be_left_out_and_no_other() {
    let own = [
        ("pbs", "project=me&constraint=a&requeue=true"),
        ("torque", "account=me&constraint=a&requeue=true"),
        ("lsf", "project=me&constraint=a"),
        ("lsf", "requeue=true"),
        ("flux", "bank=me&constraint=a"),
    ];
    for (system, own) in own {
        let url = format!("{system}:?{KEYS}&{own}");
        let dialect = scheduler(&url).dialect;
        for line in script_of(&url).unwrap().lines() {
            let Some(option) = line.strip_prefix(dialect.directive) else { continue };
            let name = option.split(['=', ' ']).next().unwrap();
            assert!(dialect.known.contains(&name), "{name}");
            let without = script_of(&format!("{url}&skip={name}")).unwrap();
            assert!(!without.contains(&format!("\n{line}\n")), "{without}");
        }
        let why = script_of(&format!("{url}&skip=-Z")).unwrap_err();
        assert!(why.contains("`skip` names `-Z`"), "{why}");
    }
}

#[test]
fn a_host_of_several_nodes_is_a_job() {
    for (system, lines) in [
        ("pbs", &["-l select=2:ncpus=8:mpiprocs=8", "-l place=scatter"][..]),
        ("torque", &["-l nodes=2:ppn=8"]),
        ("lsf", &["-n 16", "-R \"span[ptile=8]\""]),
    ] {
        let url = format!("{system}:?nodes=3&nodes_per_host=2&cores=8");
        let script = script_of(&url).unwrap();
        has_lines(&script, scheduler(&url).dialect.directive, lines);
        assert!(script.contains(" --processors 8 "), "{script}");
    }
    let shared = script_of("pbs:?nodes_per_host=2&exclusive=true").unwrap();
    has_lines(&shared, "#PBS ", &["-l place=scatter:exclhost"]);
}

#[test]
fn whole_nodes_count_their_processors() {
    for system in ["pbs", "torque", "lsf", "flux"] {
        let script = script_of(&format!("{system}:?exclusive=true")).unwrap();
        assert!(!script.contains("--processors"), "{script}");
    }
}

#[test]
fn a_submission_names_its_job() {
    for (system, said, job) in [
        ("pbs", "4242.pbs01", Some("4242.pbs01")),
        ("pbs", "a notice of the site\n4242[].pbs01.lab", Some("4242[].pbs01.lab")),
        ("torque", "1098[].hostname", Some("1098[].hostname")),
        ("pbs", "", None),
        ("lsf", "Job <473713> is submitted to queue <pub.1h>.", Some("473713")),
        ("lsf", "Generic job.\nJob <7> is submitted to default queue <normal>.", Some("7")),
        ("lsf", "Request aborted by esub. Job not submitted.", None),
        ("flux", "ƒ2Bk7Yd\nf2Bk7Ye\n", Some("f2Bk7Yd,f2Bk7Ye")),
        ("flux", "", None),
    ] {
        let submitted = scheduler(&format!("{system}:")).dialect.submitted;
        assert_eq!(submitted(said).as_deref(), job, "{system}: {said}");
    }
}

#[test]
fn names_of_members_are_those_of_the_system() {
    for (system, job, name, number) in [
        ("pbs", "42[].pbs01", "42[3].pbs01", Some(3)),
        ("pbs", "42.pbs01", "42.pbs01", None),
        ("lsf", "42", "42[3]", Some(2)),
        ("lsf", "42", "42", None),
        ("flux", "f2a,f2b", "f2b", Some(1)),
        ("flux", "f2a", "f2a", None),
    ] {
        let dialect = scheduler(&format!("{system}:")).dialect;
        assert_eq!(task(dialect, job, name), Some(Task { job: job.into(), number }), "{name}");
        assert_eq!((dialect.names)(job, number), [name]);
    }
    let pbs = scheduler("pbs:").dialect;
    for name in ["43[3].pbs01", "42[].pbs01", "42[x].pbs01", ""] {
        assert_eq!(task(pbs, "42[].pbs01", name), None, "{name}");
    }
    assert_eq!(task(scheduler("lsf:").dialect, "42", "42[0]"), None);
}

/// After the samples of the OpenPBS user's guide; the comments are those of its scheduler.
const QSTAT: &str = "\
Job Id: 42[].pbs01
    Job_Name = gridrpc-lab
    job_state = B
    array = True

Job Id: 42[0].pbs01
    Job_Name = gridrpc-lab
    job_state = R
    exec_host = n01/0*8
    run_count = 1
    comment = Job run at Mon Nov 30 at 21:40 on (n01:ncpus=8)

Job Id: 42[1].pbs01
    job_state = Q
    comment = Not Running: Insufficient amount of resource: ncpus (R: 8 A: 4 T:
\t 8)

Job Id: 42[2].pbs01
    job_state = X
    exec_host = n02/0*8
    Exit_status = 271

Job Id: 43.pbs01
    job_state = F
    comment = Job run at Mon Nov 30 at 21:40 on (n01:ncpus=1) and failed
    Exit_status = -29

Job Id: 44.pbs01
    job_state = H

Job Id: 45.pbs01
    job_state = S
    exec_host = n03/1
";

#[test]
fn states_of_pbs() {
    let rows = (scheduler("pbs:").dialect.rows)(QSTAT);
    let not_running = "Not Running: Insufficient amount of resource: ncpus (R: 8 A: 4 T: 8)";
    let expected = [
        Row { run: "1".into(), ..row("42[0].pbs01", runs("n01")) },
        row("42[1].pbs01", queued(not_running)),
        row("42[2].pbs01", ended("was ended by signal 15")),
        row("43.pbs01", ended("has reached its wall time: see `wall_time`")),
        row("44.pbs01", queued("it is held: `qrls` lets it go")),
        row("45.pbs01", runs("n03, suspended")),
    ];
    assert_eq!(rows, expected);
    // Torque writes the status in lower case, and a core at a time.
    let torque = "Job Id: 9.t\n    job_state = C\n    exec_host = n1/0+n1/1\n    exit_status = 3\n";
    assert_eq!(
        (scheduler("torque:").dialect.rows)(torque),
        [row("9.t", ended("ended with status 3"))]
    );
    for odd in ["", "Job Id:", "Job Id: 1.a\n    job_state", "garbage = 1\n"] {
        (scheduler("pbs:").dialect.rows)(odd);
    }
}

#[test]
fn states_of_lsf() {
    let said = "\
42|1|RUN|16*hostA:4*hostB|-|Nov 30 21:40|-|-
42|2|PEND|-|-|-|-|Job's resource requirements not satisfied: 3 hosts; a|b
43|0|EXIT|hostC|140|Nov 30 21:41|TERM_RUNLIMIT: job killed after reaching LSF run time limit|-
44|0|EXIT|hostC|130|Nov 30 21:41|TERM_OWNER: job killed by owner|-
45|0|DONE|hostC|-|Nov 30 21:41|-|-
46|0|EXIT|hostC|127|Nov 30 21:41|-|-
47|0|PSUSP|-|-|-|-|Job was suspended by the user while pending;
odd
";
    let begun = |run: &str, row: Row| Row { run: run.into(), ..row };
    let rows = (scheduler("lsf:").dialect.rows)(said);
    let first = begun("Nov 30 21:40", row("42[1]", runs("hostA")));
    assert_eq!(rows[0], first);
    let why = "Job's resource requirements not satisfied: 3 hosts; a|b";
    assert_eq!(rows[1], row("42[2]", queued(why)));
    let how: Vec<State> = rows[2..6].iter().map(|row| row.state.clone()).collect();
    assert_eq!(how[0], ended("has reached its wall time: see `wall_time`"));
    assert_eq!(how[1], ended("was ended: TERM_OWNER: job killed by owner"));
    assert_eq!(how[2], ended("ended by itself"));
    assert!(matches!(&how[3], State::Ended(how) if how.starts_with("ended with status 127")));
    assert_eq!(rows[6].state, queued("it is held: `bresume` lets it go"));
    assert_eq!(rows.len(), 7);
}

#[test]
fn states_of_flux() {
    let said = "\
f2a|RUN|n[1]|3599.5||| \n\
ƒ2b|SCHED||0.0||no cores|\n\
f2c|FAILED|n1|0.0|3||\n\
f2d|CANCELED||0.0|-128||by ann\n\
f2e|TIMEOUT|n1|0.0|142||resource allocation expired\n\
f2f|FAILED|n1|0.0|-9||\n\
f2g|COMPLETED|n1|0.0|0||\n\
odd|row\n";
    let rows = (scheduler("flux:").dialect.rows)(said);
    let left = Some(Duration::from_millis(3_599_500));
    assert_eq!(rows[0], Row { left, ..row("f2a", runs("n[1]")) });
    assert_eq!(rows[1], row("f2b", queued("no cores")));
    let how: Vec<&State> = rows[2..].iter().map(|row| &row.state).collect();
    assert_eq!(*how[0], ended("ended with status 3"));
    assert_eq!(*how[1], ended("was cancelled: by ann"));
    assert_eq!(*how[2], ended("has reached its wall time: see `wall_time`"));
    assert_eq!(*how[3], ended("was ended by signal 9"));
    assert_eq!(*how[4], ended("ended by itself"));
    assert_eq!(how.len(), 5);
}

#[test]
fn refusals_become_advice() {
    for (system, words, message, advice) in [
        ("pbs", "qsub: Unknown queue", "PBS has refused the job: Unknown queue; ", "`qstat -Q`"),
        (
            "pbs",
            "qsub: Job violates queue and/or server resource limits",
            "Job violates queue and/or server resource limits; ",
            "`qstat -Qf`",
        ),
        ("pbs", "qsub: Array job exceeds server or queue size limit", "Array job", "fewer `nodes`"),
        (
            "torque",
            "qsub: submit error (Unknown queue MSG=requested queue not found)",
            "Torque has refused the job: submit error (Unknown queue",
            "`qstat -Q`",
        ),
        (
            "lsf",
            "rhel7: No such queue. Job not submitted.",
            "job: rhel7: No such queue; ",
            "`bqueues",
        ),
        (
            "lsf",
            "Error in rusage section: The merged job-level and application-level rusage\n\
             value is outside the range set by RESRSV_LIMIT. Job\nnot submitted.",
            "application-level rusage value is outside",
            "`memory`",
        ),
        (
            "flux",
            "flux-submit: ERROR: [Errno 22] 'nope' is not a valid queue",
            "Flux has refused the job: 'nope' is not a valid queue; ",
            "`flux queue status`",
        ),
        (
            "flux",
            "cc=0: [Errno 19] Unsatisfiable request\ncc=1: [Errno 19] Unsatisfiable request",
            "cc=0: [Errno 19] Unsatisfiable request; no node",
            "`flux resource list`",
        ),
    ] {
        let hints = &scheduler(&format!("{system}:")).dialect.hints;
        let failure = hints.explain(Failure::Refused(words.into()));
        assert!(matches!(failure, Failure::Refused(_)), "{failure:?}");
        let text = failure.to_string();
        assert!(text.contains(message) && text.contains(advice), "{text}");
    }
}

#[test]
fn a_server_that_is_down_is_not_a_refusal() {
    for (system, words, advice) in [
        (
            "pbs",
            "Connection refused\nqsub: cannot connect to server pbs01 (errno=15010)",
            "`qstat -B`",
        ),
        (
            "torque",
            "qsub: cannot connect to server (null) (errno=15137) could not connect to trqauthd",
            "Torque does not answer",
        ),
        ("lsf", "LSF is down. Please wait ...", "`lsid`"),
        (
            "flux",
            "flux-submit: ERROR: Unable to connect to Flux: broker socket /run/flux/local was not found",
            "FLUX_URI",
        ),
    ] {
        let hints = &scheduler(&format!("{system}:")).dialect.hints;
        let failure = hints.explain(Failure::Refused(words.into()));
        assert!(matches!(failure, Failure::Silent(_)), "{failure:?}");
        assert!(failure.to_string().contains(advice), "{failure}");
    }
}

#[test]
fn the_guide_shows_it_so() {
    let guide = include_str!("../../../../docs/pbs-lsf-flux.md");
    let (_, rest) = guide.split_once("gridrpc script --server '").unwrap();
    let (url, rest) = rest.split_once('\'').unwrap();
    let (_, shown) = rest.split_once("```text\n").unwrap();
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let system = Scheduler::new(&group, batch, "gridrpc-lab".into());
    let cache = "/home/ann/.cache/gridrpc";
    let (program, folder) = (format!("{cache}/VERSION/gridrpc"), format!("{cache}/jobs/REQUEST"));
    let wanted = JobRequest { agents: group.hosts.len(), program: &program, folder: &folder };
    assert_eq!(system.script(&wanted).unwrap(), shown.split_once("```").unwrap().0);
}

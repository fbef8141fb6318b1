use gridrpc_config::{LauncherKind, from_url};

use super::*;

fn script_of(url: &str) -> String {
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let system = HtCondor { name: "gridrpc-lab-1".into(), ..HtCondor::new(&group, batch) };
    let agents = group.hosts.len();
    system.script(&JobRequest { agents, program: "/s/gridrpc", folder: "/s/my jobs/1" }).unwrap()
}

#[test]
fn nothing_is_needed() {
    let expected = "\
universe = vanilla
batch_name = gridrpc-lab-1
should_transfer_files = NO
transfer_executable = False
getenv = True
notification = Never
request_cpus = 1
periodic_remove = (JobStatus == 1 && NumJobStarts > 0)

executable = /s/gridrpc
arguments = \"agent --ticket '/s/my jobs/1/$(Process)' --processors 1\"
output = /s/my jobs/1/$(Process).out
error = /s/my jobs/1/$(Process).out
queue 1
";
    assert_eq!(script_of("htcondor:"), expected);
}

#[test]
fn a_job_that_may_be_requeued_waits_for_its_ticket() {
    let script = script_of("htcondor:?nodes=3&requeue=true");
    assert!(!script.contains("periodic_remove"), "{script}");
    assert!(script.contains("/$(Process)' --patience 60 --processors 1\"\n"), "{script}");
    let script = script_of("htcondor:?requeue=true&wall_time=00:01:00");
    assert!(script.contains("periodic_remove = (JobStatus == 2 && "), "{script}");
}

#[test]
fn all_that_is_requested_is_in_the_description() {
    let script = script_of(
        "htcondor:?nodes=3&workers=4&cores=2&accounting_group=physics&memory=8G&wall_time=00:01:00\
         &constraint=Arch%20==%20%22X86_64%22&options=%2BIdle%20=%201&skip=getenv",
    );
    for line in [
        "request_cpus = 8",
        "request_memory = 8G",
        "requirements = Arch == \"X86_64\"",
        "accounting_group = physics",
        "+Idle = 1",
        "queue 3",
    ] {
        assert!(script.contains(&format!("\n{line}\n")), "{line}: {script}");
    }
    assert!(
        script.contains("|| (JobStatus == 2 && time() - JobCurrentStartDate > 60)"),
        "{script}"
    );
    assert!(!script.contains("getenv"), "{script}");
}

#[test]
fn the_guide_shows_it_so() {
    let guide = include_str!("../../../../docs/htcondor.md");
    let (_, rest) = guide.split_once("gridrpc script --server '").unwrap();
    let (url, rest) = rest.split_once('\'').unwrap();
    let (_, shown) = rest.split_once("```text\n").unwrap();
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let system = HtCondor { name: "gridrpc-lab".into(), ..HtCondor::new(&group, batch) };
    let cache = "/home/ann/.cache/gridrpc";
    let (program, folder) = (format!("{cache}/VERSION/gridrpc"), format!("{cache}/jobs/REQUEST"));
    let wanted = JobRequest { agents: group.hosts.len(), program: &program, folder: &folder };
    assert_eq!(system.script(&wanted).unwrap(), shown.split_once("```").unwrap().0);
}

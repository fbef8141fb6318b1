use gridrpc_config::{LauncherKind, from_url};

use super::*;
use crate::batch::JobRequest;

fn script_of(url: &str) -> String {
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let slurm = Slurm { name: "gridrpc-lab-1".into(), ..Slurm::new(&group, batch) };
    let agents = group.hosts.len();
    slurm.script(&JobRequest { agents, program: "/s/gridrpc", folder: "/s/my jobs/1" }).unwrap()
}

#[test]
fn nothing_is_needed() {
    let expected = "\
#!/bin/sh
#SBATCH --job-name=gridrpc-lab-1
#SBATCH --nodes=1
#SBATCH --output='/s/my jobs/1/0.out'
#SBATCH --ntasks-per-node=1
#SBATCH --no-requeue

exec /s/gridrpc agent --ticket '/s/my jobs/1'/\"0\" \\
    --processors \"$SLURM_CPUS_ON_NODE\"
";
    assert_eq!(script_of("slurm:"), expected);
}

#[test]
fn all_that_is_requested_is_in_the_script() {
    let script = script_of(
        "slurm:?nodes=3&workers=4&cores=2&partition=long&account=me&memory=8G&wall_time=2-00:00:00\
         &exclusive=true&constraint=a%26b&options=--qos=high&skip=--no-requeue",
    );
    for line in [
        "--array=0-2",
        "--cpus-per-task=8",
        "--partition=long",
        "--account=me",
        "--mem=8G",
        "--constraint='a&b'",
        "--time=2-00:00:00",
        "--exclusive",
        "--qos=high",
    ] {
        assert!(script.contains(&format!("\n#SBATCH {line}\n")), "{line}: {script}");
    }
    assert!(script.contains("/\"$SLURM_ARRAY_TASK_ID\""), "{script}");
    assert!(!script.contains("requeue"), "{script}");
}

#[test]
fn a_job_that_may_be_requeued_waits_for_its_ticket() {
    let script = script_of("slurm:?nodes=3&requeue=true");
    assert!(script.contains("\n#SBATCH --requeue\n"), "{script}");
    let waits = "agent --ticket '/s/my jobs/1'/\"$SLURM_ARRAY_TASK_ID\" --patience 60 \\\n";
    assert!(script.contains(waits), "{script}");
}

#[test]
fn one_job_of_several_nodes_starts_its_agents_by_srun() {
    let script = script_of("slurm:?nodes=3&workers=4&request=job");
    assert!(script.contains("#SBATCH --nodes=3\n") && !script.contains("array"), "{script}");
    assert!(script.contains("srun --nodes=3 --ntasks=3 --ntasks-per-node=1 --cpus-per-task=4"));
    assert!(script.contains(r#"exec "$0" agent --ticket "$1"/"$SLURM_PROCID" \"#), "{script}");
}

#[test]
fn a_host_of_several_nodes_is_a_job() {
    let script = script_of("slurm:?nodes=3&nodes_per_host=2&cores=8&memory=4G");
    for line in ["--array=0-2", "--nodes=2", "--ntasks-per-node=8", "--mem=4G"] {
        assert!(script.contains(&format!("\n#SBATCH {line}\n")), "{line}: {script}");
    }
    assert!(!script.contains("--cpus-per-task") && !script.contains("srun"), "{script}");
    assert!(script_of("slurm:?nodes_per_host=2").contains("\n#SBATCH --nodes=2\n"));
}

#[test]
fn each_option_can_be_left_out_and_no_other() {
    let keys =
        "workers=4&partition=long&account=me&memory=8G&wall_time=60&exclusive=true&constraint=a";
    for form in ["nodes=1", "nodes=3", "nodes=3&request=job", "nodes=3&requeue=true"] {
        for line in script_of(&format!("slurm:?{form}&{keys}")).lines() {
            let Some(option) = line.strip_prefix("#SBATCH ") else { continue };
            let name = option.split('=').next().unwrap();
            assert!(OPTIONS.contains(&name), "{name}");
            let without = script_of(&format!("slurm:?{form}&{keys}&skip={name}"));
            assert!(!without.contains(&format!("\n#SBATCH {option}\n")), "{without}");
        }
    }
    let script = script_of("slurm:?wall_time=60&skip=--no-requeue,--job-name");
    assert!(!script.contains("requeue") && !script.contains("--job-name"), "{script}");
    let group = from_url("slurm:?skip=--no-reque").unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let wanted = JobRequest { agents: 1, program: "/s/gridrpc", folder: "/s/jobs/1" };
    let why = Slurm::new(&group, batch).script(&wanted).unwrap_err();
    assert!(
        why.contains("`skip` names `--no-reque`, which is no option that gridrpc sets"),
        "{why}"
    );
}

fn printed_of(url: &str) -> String {
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let folder = std::env::temp_dir().display().to_string();
    let group =
        HostGroup { staging: Some(folder), program: Some("/s/gridrpc".into()), ..group.clone() };
    script(&group, batch, Path::new("/s/gridrpc")).unwrap()
}

#[test]
fn what_is_printed_is_what_would_be_run() {
    let direct =
        printed_of("slurm:?nodes=3&workers=4&request=direct&partition=long&options=--qos=a%20b");
    assert!(direct.starts_with("# No script is submitted: "), "{direct}");
    assert!(direct.contains("\nsrun --nodes=3 --ntasks=3 --ntasks-per-node=1 "), "{direct}");
    assert!(direct.contains(" --cpus-per-task=4 ") && direct.contains(" --partition=long "));
    assert!(direct.contains("sh -c 'exec /s/gridrpc agent --ticket "), "{direct}");
    assert!(!direct.contains("#SBATCH"), "{direct}");
    let step = printed_of("slurm:?nodes=2&request=step");
    assert!(step.starts_with("# Nothing is submitted: "), "{step}");
    assert!(step.contains("\nsrun --nodes=2 ") && step.contains(" --overlap "), "{step}");
}

#[test]
fn it_is_said_how_many_nodes_are_requested_at_first() {
    let script = printed_of("slurm:?nodes=2-10&workers=4");
    let (shell, rest) = script.split_once('\n').unwrap();
    assert_eq!(shell, "#!/bin/sh");
    assert!(rest.starts_with("# Requests 2 of the 10 nodes at first"), "{script}");
    assert!(!printed_of("slurm:?nodes=10").contains("At first"));
}

#[test]
fn the_guide_shows_it_so() {
    let guide = include_str!("../../../../docs/slurm.md");
    let (_, rest) = guide.split_once("gridrpc script --server '").unwrap();
    let (url, rest) = rest.split_once('\'').unwrap();
    let (_, shown) = rest.split_once("```text\n").unwrap();
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let slurm = Slurm { name: "gridrpc-lab".into(), ..Slurm::new(&group, batch) };
    let cache = "/home/ann/.cache/gridrpc";
    let (program, folder) = (format!("{cache}/VERSION/gridrpc"), format!("{cache}/jobs/REQUEST"));
    let wanted = JobRequest { agents: group.hosts.len(), program: &program, folder: &folder };
    assert_eq!(slurm.script(&wanted).unwrap(), shown.split_once("```").unwrap().0);
}

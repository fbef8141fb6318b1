use super::*;
use crate::servers::{LauncherKind, from_url};

fn script_of(url: &str) -> String {
    let server = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &server.launcher else { panic!("{:?}", server.launcher) };
    let slurm = Slurm { name: "gridrpc-lab-1".into(), ..Slurm::new(&server, batch) };
    let agents = server.hosts.len();
    slurm.script(&Wanted { agents, program: "/s/gridrpc", folder: "/s/my jobs/1" }).unwrap()
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
fn all_that_is_asked_for_is_in_the_script() {
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
fn the_guide_shows_it_so() {
    let guide = include_str!("../../../../../docs/slurm.md");
    let (_, rest) = guide.split_once("gridrpc script --server '").unwrap();
    let (url, rest) = rest.split_once('\'').unwrap();
    let (_, shown) = rest.split_once("```text\n").unwrap();
    let server = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &server.launcher else { panic!("{:?}", server.launcher) };
    let slurm = Slurm { name: "gridrpc-lab".into(), ..Slurm::new(&server, batch) };
    let cache = "/home/ann/.cache/gridrpc";
    let (program, folder) = (format!("{cache}/VERSION/gridrpc"), format!("{cache}/jobs/REQUEST"));
    let wanted = Wanted { agents: server.hosts.len(), program: &program, folder: &folder };
    assert_eq!(slurm.script(&wanted).unwrap(), shown.split_once("```").unwrap().0);
}

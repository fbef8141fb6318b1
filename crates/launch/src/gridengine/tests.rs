use gridrpc_config::{LauncherKind, from_url};

use super::*;
use crate::batch::JobRequest;

fn script_of(url: &str) -> Result<String, String> {
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let system = GridEngine { name: "gridrpc-lab-1".into(), ..GridEngine::new(&group, batch) };
    let agents = group.hosts.len();
    system.script(&JobRequest { agents, program: "/s/gridrpc", folder: "/s/my jobs/1" })
}

#[test]
fn nothing_is_needed() {
    let expected = "\
#!/bin/sh
#$ -N gridrpc-lab-1
#$ -S /bin/sh
#$ -cwd
#$ -V
#$ -j y
#$ -o ':/s/my jobs/1/job.out'
#$ -r n
#$ -w e

tickets='/s/my jobs/1'
agent=0
slots=${NSLOTS:-1} status=0
[ ! -r \"${PE_HOSTFILE:-}\" ] || read -r host slots rest <\"$PE_HOSTFILE\"
/s/gridrpc agent --ticket \"$tickets/$agent\" --processors \"$slots\" \\
    >\"$tickets/$agent.out\" 2>&1 || status=$?
echo \"$status\" >\"$tickets/$agent.end\"
exit \"$status\"
";
    assert_eq!(script_of("gridengine:").unwrap(), expected);
}

#[test]
fn a_job_that_may_be_requeued_waits_for_its_ticket() {
    let script = script_of("gridengine:?nodes=3&requeue=true").unwrap();
    assert!(script.contains("\n#$ -r y\n"), "{script}");
    assert!(script.contains("--ticket \"$tickets/$agent\" --patience 60 --processors"), "{script}");
    let script = script_of("gridengine:?nodes=3&requeue=true&request=job&parallel_environment=mp");
    assert!(script.unwrap().contains("\"$2\"' --patience 60 --processors 1'"));
}

#[test]
fn all_that_is_requested_is_in_the_script() {
    let script = script_of(
        "gridengine:?nodes=3&workers=4&cores=2&queue=long.q&project=me&memory=8000&wall_time=2-00:00:00\
         &exclusive=true&constraint=arch=lx-amd64,h=n*&options=-l%20h_vmem=2G&skip=-r\
         &parallel_environment=smp",
    )
    .unwrap();
    for line in [
        "-t 1-3",
        "-pe smp 8",
        "-q long.q",
        "-P me",
        "-l mem_free=8000M",
        "-l 'arch=lx-amd64,h=n*'",
        "-l h_rt=172800",
        "-l exclusive=true",
        "-l h_vmem=2G",
    ] {
        assert!(script.contains(&format!("\n#$ {line}\n")), "{line}: {script}");
    }
    assert!(script.contains("agent=$((SGE_TASK_ID - 1))"), "{script}");
    assert!(!script.contains("#$ -r"), "{script}");
}

#[test]
fn one_job_starts_its_agents_where_their_slots_are() {
    let url = "gridengine:?nodes=3&workers=4&request=job&parallel_environment=mp";
    let script = script_of(url).unwrap();
    assert!(script.contains("#$ -pe mp 12\n") && !script.contains("#$ -t"), "{script}");
    let run = r#"run='exec /s/gridrpc agent --ticket '\''/s/my jobs/1'\''/'"$2"' --processors 4'"#;
    assert!(script.contains(run), "{script}");
    assert!(script.contains("[ \"$slots\" -ge 4 ] && [ \"$agent\" -lt 3 ]"), "{script}");
}

#[test]
fn several_slots_need_a_parallel_environment() {
    let why = script_of("gridengine:?workers=4").unwrap_err();
    assert!(why.contains("4 are needed: name by `parallel_environment`"), "{why}");
    let why = script_of("gridengine:?nodes=2&workers=1&request=job").unwrap_err();
    assert!(why.contains("2 are needed"), "{why}");
    assert!(script_of("gridengine:?workers=4&skip=-pe").is_ok());
    assert!(script_of("gridengine:?workers=4&options=-pe%20mine%204").is_ok());
}

#[test]
fn the_guide_shows_it_so() {
    let guide = include_str!("../../../../docs/gridengine.md");
    let (_, rest) = guide.split_once("gridrpc script --server '").unwrap();
    let (url, rest) = rest.split_once('\'').unwrap();
    let (_, shown) = rest.split_once("```text\n").unwrap();
    let group = from_url(url).unwrap();
    let LauncherKind::Batch(batch) = &group.launcher else { panic!("{:?}", group.launcher) };
    let system = GridEngine { name: "gridrpc-lab".into(), ..GridEngine::new(&group, batch) };
    let cache = "/home/ann/.cache/gridrpc";
    let (program, folder) = (format!("{cache}/VERSION/gridrpc"), format!("{cache}/jobs/REQUEST"));
    let wanted = JobRequest { agents: group.hosts.len(), program: &program, folder: &folder };
    assert_eq!(system.script(&wanted).unwrap(), shown.split_once("```").unwrap().0);
}

"""`gridbench sync` from the command line, with real processes, here and on clusters."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from gridbench.hosts.host_group import open_hosts
from gridbench.hosts.hosts_file import HostChoice
from gridbench.sync.experiment import planned_tasks
from gridbench.sync.options import SyncParameters
from gridbench.sync.record import FILE, FORM, PlannedRound, Round, Status
from gridbench.sync.round_runner import RoundRunner
from gridbench.sync.task_group import TaskGroup
from gridbench_testbed.batch import gridengine, slurm
from gridbench_testbed.cluster import servers_of
from gridbench_testbed.links import sshd
from running import DEADLINE, PROGRAM, Run, alive, cmdline, until


def rounds(folder: Path) -> list[Round]:
    return FORM.read(folder)[1]


def well(done: subprocess.CompletedProcess[str], status: int = 0) -> None:
    assert done.returncode == status, done.stdout + done.stderr


def output(folder: Path, one: Round) -> list[str]:
    return [(folder / task.output).read_text() for task in one.tasks if task.output]


def test_a_sweep_is_measured_and_shown(gridbench: Run, tmp_path: Path) -> None:
    words = ("echo", "{parameter}", "{worker}/{total}", "{rank}", "{round}", "{{}}")
    options = (
        "-w",
        "1,3",
        "-p",
        '["4k", "a b"]',
        "--rounds",
        "2",
        "--hold",
        "both",
        "--out",
        "out",
    )
    well(gridbench("sync", *options, *words))
    found = rounds(tmp_path / "out")
    assert len(found) == 2 * 2 * 2 * 2
    assert [one.repeat for one in found] == [0] * 8 + [1] * 8
    for one in found:
        assert one.status == "done"
        assert len(one.tasks) == one.workers
        for task in one.tasks:
            assert task.began is not None
            assert task.ended is not None
            assert 0 <= task.began < task.ended
            assert task.clock_error == 0
        assert output(tmp_path / "out", one) == [
            f"{one.parameter} {n}/{one.workers} {n} {one.repeat} {{}}\n" for n in range(one.workers)
        ]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "a b" in page
    again = gridbench("sync", *options, *words)
    well(again)
    assert "16 of 16 rounds are there" in again.stderr
    assert len(rounds(tmp_path / "out")) == 16
    well(gridbench("report", "out"))


def test_tasks_have_their_place_in_the_environment(gridbench: Run, tmp_path: Path) -> None:
    text = "pwd; echo $GRIDBENCH_WORKER $GRIDBENCH_TOTAL $GRIDBENCH_PARAMETER"
    options = ("-w", "2", "-p", "8k", "--rounds", "1", "--chdir", "w/{worker}", "--out", "out")
    well(gridbench("sync", *options, "shell", text))
    (one,) = rounds(tmp_path / "out")
    assert output(tmp_path / "out", one) == [
        f"{tmp_path}/w/{number}\n{number} 2 8k\n" for number in range(2)
    ]


def test_smtef_files_and_variables_are_understood(gridbench: Run, tmp_path: Path) -> None:
    (tmp_path / "task.sh").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "task.sh").chmod(0o755)
    (tmp_path / "old.conf").write_text(
        "WORKER_COUNT=2\nTASK_FILE=./task.sh\n"
        'PARAMETER_ARRAY=["4k", "8k"]\nARGUMENTS="-s {parameter}"\n'
    )
    well(gridbench("sync", "--config", "old.conf", "--rounds", "1", "--out", "out"))
    found = rounds(tmp_path / "out")
    assert [(one.workers, one.parameter) for one in found] == [(2, "4k"), (2, "8k")]
    assert output(tmp_path / "out", found[1]) == ["-s 8k\n"] * 2
    env = {"WORKER_COUNT": "3", "TASK_FILE": "./task.sh", "ARGUMENTS": "x"}
    well(gridbench("sync", "--rounds", "1", "--out", "out2", env=env))
    assert output(tmp_path / "out2", rounds(tmp_path / "out2")[0]) == ["x\n"] * 3
    # The command line counts before the environment, and that before the file.
    env = {"WORKER_COUNT": "3"}
    options = ("--config", "old.conf", "-p", "1", "--rounds", "1")
    well(gridbench("sync", *options, "--out", "out3", env=env))
    well(gridbench("sync", *options, "-w", "1", "--out", "out4", env=env))
    assert rounds(tmp_path / "out3")[0].workers == 3
    assert rounds(tmp_path / "out4")[0].workers == 1


def as_if(folder: Path, judgement: str) -> None:
    """Tests beside this one disturb its rounds, or not."""
    header, *lines = (folder / FILE).read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        record["load"]["judgement"] = judgement
    (folder / FILE).write_text("\n".join([header, *map(json.dumps, records), ""]))


def test_failures_are_reported_by_worker_and_tried_again_if_asked(
    gridbench: Run, tmp_path: Path
) -> None:
    text = "test -e {worker} || { echo no file {worker} >&2; exit 4; }"
    (tmp_path / "1").touch()
    options = ("-w", "2", "--rounds", "1", "--out", "out", "shell", text.replace("{ ", "{{ "))
    options = (*options[:-1], options[-1].replace("; }", "; }}"))
    done = gridbench("sync", *options)
    well(done, status=1)
    assert "1 of 2 tasks failed; exit status 4: no file 0" in done.stderr
    (one,) = rounds(tmp_path / "out")
    assert [task.status for task in one.tasks] == ["failed", "ok"]
    (tmp_path / "0").touch()
    as_if(tmp_path / "out", "undisturbed")
    done = gridbench("sync", *options)
    well(done, status=1)
    assert "1 round failed before and is not tried again: 2 workers; --retry-failed tries it" in (
        done.stderr
    )
    assert rounds(tmp_path / "out")[-1].status == "failed"
    well(gridbench("sync", "--retry-failed", *options))
    assert rounds(tmp_path / "out")[-1].status == "done"


def test_a_round_that_failed_while_others_were_at_work_is_run_again(
    gridbench: Run, tmp_path: Path
) -> None:
    options = ("-w", "1", "--rounds", "1", "--out", "out", "shell", "test -e now")
    well(gridbench("sync", *options), status=1)
    (tmp_path / "now").touch()
    as_if(tmp_path / "out", "disturbed")
    well(gridbench("sync", *options))
    assert rounds(tmp_path / "out")[-1].status == "done"


def test_options_that_all_tasks_refuse_end_it_at_once(gridbench: Run, tmp_path: Path) -> None:
    options = ("-w", "2", "--rounds", "6", "--out", "out", "write-read", "--size", "1M")
    done = gridbench("sync", *options)
    well(done, status=2)
    reported = "gridbench: error: with 2 workers no task did any work: gridbench-task write-read: "
    assert done.stderr.splitlines()[-1].startswith(reported)
    assert done.stderr.count("--directory DIR is missing") == 1
    assert not (tmp_path / "out").exists()
    # What is mended has other options, and can have the folder.
    (tmp_path / "scratch").mkdir()
    well(gridbench("sync", *options, "--directory", "scratch"))
    assert len(rounds(tmp_path / "out")) == 6


def test_other_failures_of_tasks_do_not_end_it(gridbench: Run, tmp_path: Path) -> None:
    options = ("-w", "2", "--rounds", "2")
    (tmp_path / "scratch").mkdir()
    refused = ("write-read", "--directory", "scratch", "--size", "{worker}")
    well(gridbench("sync", *options, "--out", "some", *refused), status=1)
    found = rounds(tmp_path / "some")
    assert [[task.exit for task in one.tasks] for one in found] == [[2, 0], [2, 0]]
    # Of a task of the user's own the status may say anything.
    own = gridbench("sync", *options, "--out", "own", "shell", "exit 2")
    well(own, status=1)
    assert len(rounds(tmp_path / "own")) == 2
    assert "Of 4 tasks, 4 did not end well: 4 failed; the reason: exit status 2." in own.stdout
    text = " ".join(own.stdout.split())
    assert text.index("the reason: exit status 2") < text.index("Provisional: ")


def test_a_round_has_a_limit(gridbench: Run, tmp_path: Path) -> None:
    options = ("-w", "2", "--rounds", "1", "--timeout", "0.5", "--out", "out")
    well(gridbench("sync", *options, "shell", "test {worker} = 1 || sleep 1000"), status=1)
    (one,) = rounds(tmp_path / "out")
    assert [task.status for task in one.tasks] == ["timeout", "ok"]
    assert one.tasks[0].why == "it was ended after 0.5 s"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no task is named"),
        (("./missing",), "there is no program `./missing` here"),
        (("-w", "0", "null"), "--workers: "),
        (("-w", "2", "echo", "{nobody}"), "`{nobody}` in the argument"),
        (("-w", "2", "echo", "{parameter}"), "there are no parameters"),
        (("--nodes", "2", "null"), "--nodes is of the cluster"),
        (("--hosts", "missing", "null"), "missing: cannot read the host file"),
        (("--timeout", "nan", "null"), "--timeout: "),
        (("--arguments", "x", "echo", "y"), "the arguments are given twice"),
        (("--hosts", "hosts", "--emulate", "ssh", "null"), "both say which hosts are used"),
        (("--config", "bad.conf", "null"), "bad.conf:1: `workres` is not known"),
        (("--hosts", "hosts", "-w", "9", "null"), "9 workers"),
    ],
)
def test_bad_input_is_reported(
    refused: Run, tmp_path: Path, arguments: Sequence[str], message: str
) -> None:
    (tmp_path / "hosts").write_text("localhost 2\n127.0.0.2 2\n")
    (tmp_path / "bad.conf").write_text("workres = 2\n")
    done = refused("sync", "--dry-run", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_rounds_are_listed_before_they_are_run(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench("sync", "--dry-run", "--json", "-w", "2,4", "--rounds", "2", "null")
    well(done)
    listed = json.loads(done.stdout)
    assert [one["workers"] for one in listed] == [2, 4, 2, 4]
    assert {one["command"] for one in listed} == {"gridbench-task null"}
    assert not (tmp_path / "runs").exists()


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [*PROGRAM, "sync", "-w", "3", "--rounds", "50", "--out", "out", "sleep", "0.4"]
    file = tmp_path / "out" / FILE
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE)
    until(lambda: file.exists() and file.read_text().count("\n") >= 3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, said
    assert b"stopped: results are saved; --out out resumes" in said
    assert 2 <= len(rounds(tmp_path / "out")) < 50
    assert (tmp_path / "out" / "report.html").exists()


def test_tasks_end_with_a_client_that_is_killed(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    command = [*PROGRAM, "sync", "-w", "3", "--rounds", "1", "--out", "out"]
    process = subprocess.Popen(
        [*command, "shell", "echo $$ >{worker}.pid; exec sleep 1000"],
        cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    files = [tmp_path / f"{number}.pid" for number in range(3)]
    until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files))
    pids = [int(file.read_text()) for file in files]
    assert all(map(alive, pids))
    process.kill()
    process.wait()
    until(lambda: not any(map(alive, pids)))


def test_a_task_group_that_is_killed_loses_its_round_alone(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    command = [*PROGRAM, "sync", "-w", "2", "--rounds", "2", "--out", "out"]
    text = "echo $PPID >{round}-{worker}.pid; test {round} = 1 || sleep 1000"
    process = subprocess.Popen(
        [*command, "shell", text], cwd=tmp_path, env=environment, stderr=subprocess.PIPE
    )
    first = tmp_path / "0-0.pid"
    until(lambda: first.exists() and first.read_text().endswith("\n"))
    os.kill(int(first.read_text()), signal.SIGKILL)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1, said
    lost, next_one = rounds(tmp_path / "out")
    assert [task.status for task in lost.tasks] == ["lost"] * 2
    assert "its host was lost" in lost.tasks[0].why
    assert next_one.status == "done"


def test_a_full_disk_is_reported(gridbench: Run, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(full)], check=True)
    try:
        options = ("-w", "8", "--rounds", "3", "--out", full / "out")
        done = gridbench("sync", *options, "shell", "seq 20000")
        assert done.returncode == 2, done.stderr
        assert "No space left on device" in done.stderr
        assert "run the same command again" in done.stderr
    finally:
        subprocess.run(["umount", str(full)], check=True)


CLUSTERS = [("ssh", sshd.why_not), ("slurm", slurm.why_not), ("gridengine", gridengine.why_not)]


@pytest.mark.parametrize(("kind", "why_not"), CLUSTERS, ids=[kind for kind, _ in CLUSTERS])
def test_hosts_of_a_cluster_start_together(
    gridbench: Run, tmp_path: Path, kind: str, why_not: object
) -> None:
    assert callable(why_not)
    assert not why_not()
    options = ("--emulate", kind, "--nodes", "2", "-w", "2,4", "--rounds", "2", "--out", "out")
    well(gridbench("sync", *options, "shell", "echo {host} {rank}"))
    found = rounds(tmp_path / "out")
    assert [one.workers for one in found] == [2, 4, 2, 4]
    for one in found:
        hosts = sorted({task.host for task in one.tasks})
        assert len(hosts) == 2
        places = [(task.host, task.rank) for task in one.tasks]
        assert sorted(places) == sorted(
            (host, rank) for host in hosts for rank in range(one.workers // 2)
        )
        assert output(tmp_path / "out", one) == [f"{host} {rank}\n" for host, rank in places]
        for task in one.tasks:
            assert 0 < task.clock_error < 1
            # All clocks are one, so that their errors can be checked.
            assert task.began is not None
            assert task.began >= -task.clock_error
        assert [use.host for use in one.hosts] == hosts
    assert not left_behind(tmp_path)


def left_behind(folder: Path) -> list[int]:
    """Processes that were started from the folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder) and "gridrpc" in " ".join(cmdline(process)):
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_a_host_that_is_lost_loses_its_tasks_until_it_is_back() -> None:
    assert not sshd.why_not()
    with sshd.Rig(2) as rig:
        where = HostChoice(names=tuple(servers_of(rig)))
        parameters = SyncParameters(task="/bin/true", workers=(2,))
        planned: list[list[Status]] = []
        with open_hosts(where, 2, Console(quiet=True), TaskGroup) as place:
            rounds = RoundRunner(lambda: None)

            def statuses() -> list[Status]:
                place.replace_lost()
                tasks = planned_tasks(parameters, place.members, PlannedRound(workers=2))
                ran = rounds.run(tasks, "entry", 30.0)
                planned.append([task.status for task in ran.tasks])
                return planned[-1]

            assert statuses() == ["ok", "ok"]
            rig.kill(2)
            assert statuses() == ["ok", "lost"]
            rig.boot(2)
            until(lambda: statuses() == ["ok", "ok"])
        assert ["lost", "ok"] not in planned

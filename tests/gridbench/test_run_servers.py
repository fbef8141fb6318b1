"""Runs whose workers are on other hosts, each a network namespace with an sshd of its own, and the
report that puts them beside a run on this machine."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from browsing import drawn, opened
from gridbench.engines.servers import ask, limited
from gridbench.model.observation import Observation, observe
from gridbench.run.load import load_run
from gridbench_testbed.links.sshd import Rig, why_not
from running import DEADLINE, PROGRAM, REPOSITORY

TASKS = 16
AHEAD = 5000.0  # seconds: how far the clocks of two of the hosts are ahead
_SETUP = f"""\
<BenchmarkSetup>
<NTasks> {TASKS} </NTasks>
<NNodes> 3 </NNodes>
<InputFile> times </InputFile>
<TaskDataSize> 10 </TaskDataSize>
<SharedDataSize> 2000 </SharedDataSize>
<WriteDataSize> 5 </WriteDataSize>
</BenchmarkSetup>
"""
_GRID = """\
[defaults]
workers = 2
command = "ssh -F {config}"
python = "{python}"
environment = {{ PYTHONPATH = "{path}" }}

[server.one]
hosts = ["node1"]

[server.lab]
hosts = ["node[1-3]", "root@node4:1"]

[server.far]
hosts = ["node[3-4]"]
program = "{program}"
"""
# The program in a time namespace, whose processes have clocks that are ahead.
_AHEAD = """\
#!/bin/sh
exec unshare --time --monotonic {ahead:.0f} --boottime {ahead:.0f} --fork --kill-child \\
    {program} "$@"
"""


@dataclass(frozen=True)
class Place:
    """A folder with a set-up, and servers."""

    folder: Path
    grid: Path

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """`gridbench` with these arguments."""
        path = os.pathsep.join([str(REPOSITORY / "python"), os.environ.get("PYTHONPATH", "")])
        return subprocess.run(
            [*PROGRAM, *map(str, arguments)],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )

    def measured(self, out: str, *arguments: str | Path) -> tuple[dict[str, Any], Any]:
        """Record and timeline of a run that went well."""
        done = self.run("run", "setup.xml", *arguments, "--out", out)
        assert done.returncode == 0, done.stderr
        return load_run(self.folder / out)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Four hosts; the last two do not know that they are on the same machine as the client."""
    if why := why_not():
        pytest.skip(why)
    from gridrpc._launch import program

    folder = tmp_path_factory.mktemp("servers")
    (folder / "times").write_text("0.05\n" * TASKS)
    (folder / "setup.xml").write_text(_SETUP)
    with Rig(4) as rig:
        other = rig.folder / "boot_id"
        other.write_text("another machine\n")
        for node in (3, 4):
            rig.run(node, f"mount --bind {other} /proc/sys/kernel/random/boot_id")
        ahead = rig.folder / "gridrpc-ahead"
        ahead.write_text(_AHEAD.format(ahead=AHEAD, program=program()))
        ahead.chmod(0o755)
        grid = folder / "grid.toml"
        grid.write_text(
            _GRID.format(
                config=rig.config,
                python=sys.executable,
                path=REPOSITORY / "python",
                program=ahead,
            )
        )
        yield Place(folder, grid)


@pytest.fixture(scope="module")
def page(place: Place) -> Path:
    """One workload on one host, on four, and on a process pool, in one report."""
    python = ("--engine", "gridrpc-python", "--grid", place.grid)
    place.measured("one", *python, "--server", "one")
    place.measured("four", *python, "--server", "lab")
    place.measured("pool", "--engine", "process-pool")
    done = place.run("report", "one", "four", "pool", "--out", "compare.html")
    assert done.returncode == 0, done.stderr
    return place.folder / "compare.html"


@pytest.mark.parametrize("engine", ["gridrpc-python", "gridrpc-native"])
def test_workers_are_those_of_the_servers(place: Place, engine: str) -> None:
    out = f"all-{engine}"
    arguments = ("--engine", engine, "--grid", place.grid, "--server", "lab", "--start", "warm")
    record, table = place.measured(out, *arguments)
    transport = "TLS 1.3 over TCP; started by ssh"
    assert record["grid"]["servers"] == ["lab"]
    assert record["grid"]["hosts"] == [
        {"name": name, "server": "lab", "workers": workers, "transport": transport}
        for name, workers in [("node1", 2), ("node2", 2), ("node3", 2), ("root@node4", 1)]
    ]
    assert record["setup"]["NNodes"] == 7
    # sshd does not say for whom it has started their agents.
    assert record["load"]["judged"]["apart"]
    assert record["check"] == {"wanted": True, "tasks": TASKS, "wrong": 0}
    hosts = {one["name"] for one in record["grid"]["hosts"]}
    assert set(table["host"].to_pylist()) <= hosts
    assert len(set(table["host"].to_pylist())) > 1
    assert all(int(worker) > 0 for worker in table["worker"].to_pylist())
    # A model of such runs knows how often shared data goes over links.
    seen = observe(place.folder / out, disturbed=True)
    assert isinstance(seen, Observation)
    assert (seen.place.transport, seen.place.nodes) == ("links", 4)
    assert seen.place.host == f"{platform.node()}, workers on 4 hosts (node1 … node4),"


@pytest.mark.parametrize("engine", ["gridrpc-python", "gridrpc-native"])
def test_stamps_are_on_the_clients_clock(place: Place, engine: str) -> None:
    arguments = ("--engine", engine, "--grid", place.grid, "--server", "far", "--start", "warm")
    record, table = place.measured(f"far-{engine}", *arguments)
    error = table["clock_error"].to_numpy()
    assert np.all(error > 0)
    assert np.all(error < 0.1)
    assert record["summary"]["clock_error"] == error.max()
    stamps = {name: table[name].to_numpy() for name in table.column_names[3:8]}
    assert np.all(stamps["calc_in"] - stamps["submit"] >= -error)
    assert np.all(stamps["calc_out"] - stamps["calc_in"] >= 0.05 - 1e-6)
    assert np.all(stamps["retrieve"] - stamps["calc_out"] >= -error)
    assert stamps["retrieve"].max() < AHEAD / 2
    text = unescape((place.folder / f"far-{engine}" / "report.html").read_text(encoding="utf-8"))
    assert "The clocks of its hosts are known to within" in text


def test_one_report_has_one_host_and_four_and_a_peer(page: Path) -> None:
    text = unescape(page.read_text(encoding="utf-8"))
    names = [
        "gridrpc-python on node1",
        "gridrpc-python on 4 hosts (node1 … node4)",
        f"process-pool on {platform.node()}",
    ]
    assert ", ".join(names) in text
    data = json.loads(text.split('id="report-data">')[1].split("</script>")[0])
    charts = data["charts"]
    assert [trace["name"] for trace in charts["running"]["traces"]] == names
    assert [line["y0"] for line in charts["running"]["layout"]["shapes"]] == [2, 3, 7]
    lanes = charts["gantt-2"]["y"]["ticktext"]
    assert lanes
    assert all(lane.split("/")[0] in ("node1", "node2", "node3", "root@node4") for lane in lanes)
    assert text.count("<h3>Where the workers were</h3>") == 2
    cells = "<td>lab</td><td>2</td>"
    assert f'<th scope="row">node3</th>{cells}' in text
    assert "<td>TLS 1.3 over TCP; started by ssh</td><td>one clock</td>" in text


def test_the_report_is_drawn(driver: Any, page: Path) -> None:
    opened(driver, page)
    pictures = drawn(driver)
    assert len(pictures) == 5 + 2 * 3
    for name, found in pictures.items():
        assert found["width"] > 400, name
        assert found["marks"] >= 2, name
    # Each run has a bar of its own, named in two lines.
    labels = driver.execute_script(
        """return [...document.querySelectorAll('[data-name="cost"] .yaxislayer-above text')]
           .map(text => [...text.querySelectorAll("tspan")].map(line => line.textContent))"""
    )
    assert [label[0] for label in labels] == ["gridrpc-python", "gridrpc-python", "process-pool"]
    assert labels[1][1] == "on 4 hosts (node1 … node4)"


def test_fewer_cores_are_dealt_to_the_hosts(place: Place) -> None:
    given = ask(place.grid, ("lab",), patience=DEADLINE)
    assert [host.workers for host in given.hosts] == [2, 2, 2, 1]
    with limited(given, 5) as few:
        assert [host.workers for host in few.hosts] == [2, 1, 1, 1]
        again = ask(few.file, few.names, patience=DEADLINE)
        assert again.hosts == few.hosts
    arguments = ("--grid", place.grid, "--server", "lab", "--cores", 3)
    record, table = place.measured("few", *map(str, arguments))
    assert record["setup"]["NNodes"] == 3
    assert [host["name"] for host in record["grid"]["hosts"]] == ["node1", "node2", "node3"]
    assert set(table["host"].to_pylist()) <= {"node1", "node2", "node3"}


@pytest.mark.parametrize(
    ("arguments", "what", "remedy"),
    [
        (["--engine", "process-pool"], "the engine `process-pool` cannot", "gridbench report"),
        (["--server", "nine"], "`nine`", "are one, lab, far"),
        (["--server", "lab,"], "without a name", "NAME[,NAME]"),
        (["--server", "lab", "--cores", "8"], "and the servers have 7", "lower --cores"),
        (["--server", "one,lab"], "node1 is in two servers", "without common hosts"),
        (
            ["--server", "ssh://nobody.invalid?start_timeout=20"],
            "the servers cannot be used",
            "gridrpc doctor 'ssh://nobody.invalid?start_timeout=20'",
        ),
    ],
    ids=["engine", "server", "empty", "cores", "twice", "host"],
)
def test_what_cannot_be_is_refused(
    place: Place, arguments: list[str], what: str, remedy: str
) -> None:
    done = place.run("run", "setup.xml", "--grid", place.grid, *arguments, "--out", "refused")
    assert done.returncode == 2, done.stderr
    assert what in done.stderr
    assert remedy in done.stderr
    assert not (place.folder / "refused").exists()


def test_a_server_of_no_file_is_refused(gridbench: Any, make_setup: Any) -> None:
    done = gridbench("run", make_setup(), "--server", "lab")
    assert done.returncode == 2
    assert "`lab` is a server of a file, and no file is given" in done.stderr
    assert "--grid FILE" in done.stderr


def test_a_server_can_be_a_url(gridbench: Any, make_setup: Any, tmp_path: Path) -> None:
    done = gridbench("run", make_setup(), "--server", "local:?workers=2", "--out", "out")
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "out" / "timeline.parquet")
    # The host is this machine, with its clock.
    assert set(table["host"].to_pylist()) == {"localhost"}
    assert set(table["clock_error"].to_pylist()) == {0.0}
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    (host,) = record["grid"]["hosts"]
    assert (host["name"], host["workers"]) == ("localhost", 2)
    assert record["setup"]["NNodes"] == 2


def test_cores_take_the_place_of_the_setups(
    gridbench: Any, make_setup: Any, tmp_path: Path
) -> None:
    engine = ("--engine", "process-pool", "--cores", "2")
    done = gridbench("run", make_setup(nodes=4), *engine, "--out", "out")
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["setup"]["NNodes"] == 2
    assert record["grid"] is None

"""`gridrpc doctor` sees what is wrong with hosts, and says what to do about it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gridbench_testbed.links.sshd import Rig, why_not
from grids import PROGRAM


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    if why := why_not():
        pytest.skip(why)
    with Rig(2) as rig:
        yield rig


def url(rig: Rig, host: str, **keys: object) -> str:
    """A server for one host of the rig, with this Python."""
    given = {"python": sys.executable, "workers": 2, "command": f"ssh -F {rig.config}", **keys}
    query = "&".join(f"{key}={value}" for key, value in given.items())
    return f"ssh://{host}?{query}"


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, "doctor", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=cwd
    )


def look(*urls: str) -> tuple[bool, list[dict[str, Any]]]:
    """Whether all is well, and the report on each host."""
    ran = run("--json", *urls)
    reported = json.loads(ran.stdout)
    assert reported["well"] == (ran.returncode == 0), ran.stderr
    return reported["well"], reported["hosts"]


def faults(host: dict[str, Any]) -> dict[str, str]:
    """What is wrong with a host, with what to do about it, by point."""
    found = [one for one in host["complaints"] if one["weight"] == "fault"]
    return {one["point"]: f"{one['what']} -> {one['advice']}" for one in found}


def test_two_hosts_are_well(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(f"""
[server.lab]
hosts = ["node1", "node2:1"]
workers = 2
command = "ssh -F {rig.config}"
python = "{sys.executable}"
""")
    ran = run(cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for part in (
        "lab/node1 is well",
        "lab/node2 is well",
        f"reaches this machine at {rig.client_address}:",
        "2 Python, after",
        "all 2 hosts are well",
    ):
        assert part in ran.stdout
    assert "lab/node1 copies the program" in ran.stderr


def test_findings_are_for_programs(rig: Rig) -> None:
    well, (host,) = look(url(rig, "node1"))
    assert well
    assert host["complaints"] == []
    assert host["name"]["addresses"] == [rig.address(1)]
    there = host["there"]
    assert there["name"] == "node1"
    assert there["python"]["version"]
    assert there["staging"]["folder"] == str(rig.home(1) / ".cache/gridrpc")
    assert host["workers"]["ready"] == 2
    assert host["workers"]["python"]
    way = host["way"]
    assert 0 < way["round_trip_min"] <= way["round_trip_median"] < 1
    assert way["bandwidth_there"] > 1e6
    assert way["bandwidth_back"] > 1e6
    assert abs(way["clock_offset"]) < 0.1


def test_native_workers_need_no_python(rig: Rig) -> None:
    ran = run("--native", url(rig, "node1", python="/no/such/python"))
    assert ran.returncode == 0, ran.stdout
    assert "2 native, after" in ran.stdout


def test_a_host_that_nobody_knows(rig: Rig) -> None:
    well, (host,) = look(url(rig, "no-such-host.invalid"))
    assert not well
    assert "`ssh -G no-such-host.invalid`" in faults(host)["name"]


def test_a_key_that_is_refused_on_one_of_two_hosts(rig: Rig) -> None:
    rig.let_in(1, yes=False)
    try:
        well, (first, second) = look(url(rig, "node1"), url(rig, "node2"))
    finally:
        rig.let_in(1, yes=True)
    assert not well
    assert "ssh-copy-id node1" in faults(first)["agent"]
    assert faults(second) == {}
    assert second["workers"]["ready"] == 2


def test_a_host_that_is_down_does_not_keep_others(rig: Rig) -> None:
    rig.cut(1)
    try:
        ran = run(url(rig, "node1", start_timeout=20), url(rig, "node2"))
    finally:
        rig.mend(1)
    assert ran.returncode == 1
    assert "node1 has a fault" in ran.stdout
    assert "node2 is well" in ran.stdout
    assert "1 of 2 hosts are not well" in ran.stdout


def test_a_firewall_before_this_machine(rig: Rig) -> None:
    # What the host sends to this port goes to an address of the link that nobody has, and is lost.
    nobody = "02:00:00:00:00:99"
    away = rig.address(2).rpartition(".")[0] + ".99"
    rig.run(
        2,
        f"ip neigh add {away} lladdr {nobody} dev link;"
        f"ip route add {rig.client_address}/32 via {away} dev link onlink table 7;"
        "ip rule add ipproto tcp dport 40123 table 7",
    )
    try:
        well, (host,) = look(url(rig, "node2", ports=40123))
    finally:
        rig.run(2, f"ip rule del table 7; ip route flush table 7; ip neigh del {away} dev link")
    assert well, host
    (note,) = [one for one in host["complaints"] if one["point"] == "way"]
    assert "ssh keeps open" in note["what"]
    assert "slower" in note["what"]
    assert f"{rig.client_address}:40123: no answer" in note["what"]
    assert "`ports` in grid.toml" in note["advice"]
    assert host["start"]["through_ssh"]
    assert host["workers"]["ready"] == 2


def test_a_python_that_is_missing(rig: Rig) -> None:
    well, (host,) = look(url(rig, "node1", python="/no/such/python"))
    assert not well
    assert "`/no/such/python` cannot be run" in faults(host)["python"]
    assert not host["workers"]["python"]
    assert host["workers"]["ready"] == 2


def test_a_folder_for_programs_that_is_full(rig: Rig) -> None:
    folder = rig.home(2) / "full"
    rig.run(2, f"mkdir {folder}; mount -t tmpfs -o size=64k tmpfs {folder}")
    well, (host,) = look(url(rig, "node2", staging=folder))
    assert not well
    reported = faults(host)["agent"]
    assert "No space left" in reported
    assert "`staging` in grid.toml" in reported


def test_nothing_of_the_workers_folder_runs(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("open('ran-json', 'w').close()\n1/0\n")
    url = f"local://here?workers=1&python={sys.executable}&directory={tmp_path}"
    well, [host] = look(url)
    assert well, faults(host)
    assert not (tmp_path / "ran-json").exists()


def test_a_folder_for_programs_that_others_can_write_to(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    url = f"local://here?workers=1&python={sys.executable}&staging={shared}/gridrpc"
    well, [host] = look(url)
    assert not well
    assert f"others can write to `{shared}`" in faults(host)["staging"]
    assert "mode 0777" in faults(host)["staging"]


def test_what_cannot_be_looked_at_is_reported(tmp_path: Path) -> None:
    ran = run(cwd=tmp_path)
    assert ran.returncode == 1
    assert "there is nothing to look at" in ran.stderr
    (tmp_path / "grid.toml").write_text('[server.a]\nhosts = "b"\n')
    ran = run("--server", "c", cwd=tmp_path)
    assert "grid.toml has no server `c`; it has a" in ran.stderr
    ran = run("--server", "slurm:?nodes=4", cwd=tmp_path)
    assert ran.returncode == 1
    assert "`slurm:?nodes=4` is a URL: give it without `--server`" in ran.stderr
    ran = run("node1")
    assert ran.returncode == 1
    assert "`node1`" in ran.stderr

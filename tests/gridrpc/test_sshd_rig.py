"""The rig of hosts with sshds does what its tests rely on."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import pytest

from gridbench_testbed.links.sshd import Rig, why_not


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    if why := why_not():
        pytest.skip(why)
    with Rig(2) as rig:
        yield rig


def ssh(rig: Rig, host: str, script: str) -> subprocess.CompletedProcess[str]:
    options = ["-F", str(rig.config), "-oBatchMode=yes", "-oConnectTimeout=2"]
    command = ["ssh", *options, host, script]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_hosts_have_names_homes_and_processes_of_their_own(rig: Rig) -> None:
    for host, node in (("node1", 1), ("node2-behind-node1", 2)):
        said = ssh(rig, host, "uname -n; echo $HOME; ls -d /proc/[0-9]* | wc -l")
        name, home, processes = said.stdout.split()
        assert (name, home) == (f"node{node}", str(rig.home(node))), said.stderr
        assert int(processes) < 20


@pytest.mark.parametrize("loss", ["cut", "drop"])
def test_links_can_be_lost_and_mended(rig: Rig, loss: str) -> None:
    getattr(rig, loss)(1)
    assert "timed out" in ssh(rig, "node1", "true").stderr
    assert ssh(rig, "node2", "true").returncode == 0
    rig.mend(1)
    assert ssh(rig, "node1", "true").returncode == 0


def test_links_have_the_rate_that_they_are_given(rig: Rig) -> None:
    rig.link(1, rate=4e6)
    begin = time.monotonic()
    assert len(ssh(rig, "node1", "head -c 500000 /dev/zero").stdout) == 500_000
    assert time.monotonic() - begin > 0.8
    rig.link(1)


def test_a_host_can_be_killed_and_booted(rig: Rig) -> None:
    command = ["ssh", "-F", str(rig.config), "node2", "echo there; sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"there\n"
        rig.kill(2)
        assert running.wait(20) == 255
    assert not rig.pids(2)
    rig.boot(2)
    assert ssh(rig, "node2", "true").returncode == 0

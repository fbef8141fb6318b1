"""Programs in C whose handles name servers, on hosts behind ssh and on this machine."""

from __future__ import annotations

import os
import shutil
import socket
from collections import defaultdict

import pytest

from gridbench_testbed.links.sshd import Rig, why_not


@pytest.fixture(scope="module")
def rig():
    if why := why_not():
        pytest.skip(why)
    with Rig(2) as rig:
        yield rig


@pytest.fixture
def path(rig, tmp_path):
    """A PATH on which `ssh` knows the hosts of the rig."""
    folder = tmp_path / "bin"
    folder.mkdir()
    ssh = folder / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {rig.config} "$@"\n')
    ssh.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def places(printed):
    """By name: where its calls and its object ran."""
    found = defaultdict(set)
    for line in printed.splitlines():
        name, _, host = line.partition(" ")
        found[name].add(host)
    return found


def last_line(printed):
    return printed.splitlines()[-1]


def test_handles_run_on_the_hosts_that_they_name(run, path, rig):
    urls = f"ssh://node1?workers=2&command=ssh%20-F%20{rig.config} ssh://node2?workers=1"
    done = run("bound.c", "", "node1", "node2", GRIDRPC_SERVERS=urls, PATH=path)
    found = places(done.stdout)
    assert found["node1"] == {"node1"}
    assert found["node2"] == {"node2"}
    assert found["default"] <= {"node1", "node2"}
    text = last_line(done.stdout)
    assert "nowhere.invalid" in text
    assert 'the names that this grid knows are "node1" and "node2"' in text


CONFIGURATION = """\
<CLIENT>
    loglevel 3
</CLIENT>
<SERVER>
    hostname node1
    tag      first
    heartbeat 2
</SERVER>
<SERVER>
    hostname node2
    environment WHERE=second
    crypt GSI
</SERVER>
"""


def test_servers_of_a_configuration_of_ninf_g_are_started(run, path, tmp_path):
    file = tmp_path / "client.conf"
    file.write_text(CONFIGURATION)
    names = ["first", "node1", "node2", "node2:2119/jobmanager-pbs"]
    done = run("bound.c", str(file), *names, PATH=path)
    found = places(done.stdout)
    assert found["first"] == found["node1"] == {"node1"}
    assert found["node2"] == found["node2:2119/jobmanager-pbs"] == {"node2"}
    assert found["default"] <= {"node1", "node2"}
    assert 'are "first", "node2" and "node1"' in last_line(done.stdout)
    # What has its effect there is not warned of, and what has none is.
    assert "heartbeat" not in done.stderr
    assert "client.conf:12: `crypt` has no meaning here" in done.stderr


def test_this_machine_beside_others(run, path, tmp_path):
    file = tmp_path / "client.conf"
    local = "<SERVER>\n    hostname localhost\n    tag here\n</SERVER>\n"
    file.write_text(local + CONFIGURATION)
    here = socket.gethostname()
    done = run("bound.c", str(file), "here", "localhost", here, "node2", PATH=path)
    found = places(done.stdout)
    assert found["here"] == found["localhost"] == {here}
    assert found["node2"] == {"node2"}
    assert last_line(done.stdout).endswith('"node1" and "localhost"')


def test_programs_for_this_machine_are_sent_elsewhere(run):
    servers = "local://one?workers=1 local://two?workers=1"
    done = run("bound.c", "", "localhost", "one", GRIDRPC_SERVERS=servers)
    assert places(done.stdout)["localhost"] == {socket.gethostname()}
    assert last_line(done.stdout).endswith('"one" and "two"')


def test_programs_run_on_hosts_that_are_not_trusted(run):
    servers = "local://one?workers=1&trusted=false"
    done = run("bound.c", "", "localhost", "one", GRIDRPC_SERVERS=servers)
    assert places(done.stdout)["localhost"] == {socket.gethostname()}


def test_a_server_that_cannot_be_had_is_reported_by_name(run, path, tmp_path):
    file = tmp_path / "client.conf"
    file.write_text(
        CONFIGURATION + "<SERVER>\n    hostname nobody.invalid\n    tag gone\n</SERVER>\n"
    )
    done = run("bound.c", str(file), "node1", "gone", fails=True, PATH=path)
    assert done.returncode == 1
    assert "returned 5, not GRPC_NO_ERROR" in done.stderr
    assert 'no worker of server "gone" could be started' in done.stderr
    assert places(done.stdout)["node1"] == {"node1"}

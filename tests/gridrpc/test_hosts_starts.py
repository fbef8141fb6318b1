"""Hosts that do not start: each is reported with the cause and a remedy."""

from __future__ import annotations

import base64
import json
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import remote
from gridbench_testbed.links.sshd import Rig
from gridrpc import StartError
from grids import PROGRAM, opened
from hosts import configured, nothing_is_left, on_hosts, rig_of, server
from processes import LONG

#: An agent of another version. It joins with what its first argument says.
STAND_IN = """\
#!{python}
import base64, json, socket, struct, sys
if sys.argv[1] == "--version":
    sys.exit()
ticket = sys.stdin.readline().strip().removeprefix("gridrpc1.")
ticket = json.loads(base64.urlsafe_b64decode(ticket + "=" * (-len(ticket) % 4)))
host, port = ticket["addresses"][0].rsplit(":", 1)
client = socket.create_connection((host, int(port)))
text = lambda words: struct.pack("<I", len(words)) + words
body = struct.pack("<BBIIQQ", {speaks}, {speaks}, 1, 1, 1, 1)
body += text(b"old") + text(b"id") + text(b"0.0.7")
body += struct.pack("<HH", 0, 0)
header = struct.pack("<2sBcBBHII", b"GR", {frame}, b"l", 48, 0, 0, len(body), 0)
client.sendall(bytes(ticket["secret"]) + header + body)
while client.recv(100):
    pass
"""


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rig_of(4) as rig:
        yield rig
        assert nothing_is_left(rig)


def script(file: Path, text: str) -> str:
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def python_with(folder: Path, name: str, change: str) -> str:
    """A Python for workers that is not quite the client's."""
    code = f"{change}; from gridrpc._worker import main; main()"
    return script(folder / name, f"#!/bin/sh\nexec {sys.executable} -P -c '{code}'\n")


def report_of(error: BaseException) -> dict[str, str]:
    """The report on each host, one line each."""
    lines = str(error).partition(": ")[2].splitlines()
    hosts = [line.removeprefix("host ").split(" ", 1) for line in lines if line.startswith("host ")]
    return {host[0]: host[1] for host in hosts}


def test_each_host_that_does_not_come_is_reported_with_its_cause_and_a_remedy(
    rig: Rig, tmp_path: Path
) -> None:
    """All at once: they are started side by side, and each is tried again for some seconds."""
    known_by = {f"n{number}": rig.address(1) for number in range(1, 13)}
    with rig.config.open("r+") as config:
        hosts = "".join(f"Host {name}\n    HostName {at}\n" for name, at in known_by.items())
        old = config.read()
        config.seek(0)
        config.write(hosts + old)
    rig.let_in(2, yes=False)
    rig.change_host_key(3)
    rig.drop(4)
    rig.run(1, "mkdir -p /run/full && mount -t tmpfs -o size=100k tmpfs /run/full")
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as taken:
        other = python_with(
            tmp_path, "other", 'import sys; sys.version_info = (3, 8, 1, "final", 0)'
        )
        joins = script(
            tmp_path / "joins", STAND_IN.format(python=sys.executable, speaks=1, frame=3)
        )
        speaks = script(
            tmp_path / "speaks", STAND_IN.format(python=sys.executable, speaks=2, frame=2)
        )
        faults = {
            "nowhere": ({}, "the host name nowhere is not known", "`HostName`"),
            "node2": ({}, "does not let this user in", "ssh-copy-id"),
            "node3": ({}, "shows another host key than before", "ssh-keygen -R"),
            "node4": ({"start_timeout": 1}, "did not dial this client within 1 s", "firewall"),
            "n1": ({"staging": "/proc/gridrpc"}, "cannot be kept in `/proc/gridrpc`", "`staging`"),
            "n2": ({"staging": "/run/full"}, "No space left", "`staging`"),
            "n3": ({"program": "/no/gridrpc"}, "/no/gridrpc: ", "leave it out"),
            "n4": ({"program": joins, "encryption": "none"}, "is gridrpc 0.0.7", "install"),
            "n5": ({"program": speaks, "encryption": "none"}, "version 2", "install"),
            "n6": ({"python": "/no/python"}, "could not run `/no/python`", "`python`"),
            "n7": ({"python": other}, "Python 3.8.1", "client's version there by `python`"),
            "n8": ({"python": "/usr/bin/python3"}, "has no gridrpc", "pip install gridrpc"),
            "n9": ({"directory": "/no/folder"}, "/no/folder", "`directory`"),
            "n11": (
                {
                    "addresses": ["192.0.2.1"],
                    "command": f"ssh -F {rig.config} -o ClearAllForwardings=yes",
                },
                "the client cannot be reached from this host; 192.0.2.1",
                "`addresses`",
            ),
            "n10": ({"ports": taken.getsockname()[1]}, "is taken", "`ports`"),
        }
        tables = [
            server(rig, host, name=host, workers=1, **keys) for host, (keys, *_) in faults.items()
        ]
        tables.append(server(rig, "n12", name="good", workers=1))
        with opened(config=configured(tmp_path, *tables)) as grid:
            # The others work meanwhile.
            assert grid.submit(remote.add, 1, 1).result(LONG) == 2
            with pytest.raises(TimeoutError) as early:
                grid.wait_until_ready(0.1)
            assert "host nowhere" in str(early.value)
            with pytest.raises(StartError, match="too few workers") as caught:
                grid.wait_until_ready(LONG)
            assert grid.submit(remote.add, 1, 1).result(LONG) == 2
    message = report_of(caught.value)
    assert set(message) == set(faults)
    for host, (_, *words) in faults.items():
        assert all(word in message[host] for word in words), message[host]
    assert caught.value.host in faults
    rig.let_in(2, yes=True)
    rig.know(3, yes=True)
    rig.mend(4)


def test_calls_end_soon_when_no_host_comes(rig: Rig, tmp_path: Path) -> None:
    table = server(rig, "node1", python="/no/python")
    begin = time.monotonic()
    with opened(config=configured(tmp_path, table)) as grid:
        calls = [grid.submit(remote.add, 1, 1, idempotent=n % 2 == 0) for n in range(20)]
        errors = [call.exception(LONG) for call in calls]
        assert all(isinstance(error, StartError) and error.host == "node1" for error in errors)
        assert "could not run `/no/python`" in str(errors[0])
        with pytest.raises(StartError, match="/no/python"):
            grid.submit(remote.add, 1, 1)
    assert time.monotonic() - begin < 8


def test_other_versions_of_packages_are_reported_by_name_and_work(
    rig: Rig, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    change = 'from importlib import metadata; metadata.version = lambda name: "0.0.1"'
    table = server(rig, "node1", python=python_with(tmp_path, "older", change))
    with on_hosts(tmp_path, table) as grid:
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2
        message = [line for line in capfd.readouterr().err.splitlines() if "0.0.1" in line]
    (line,) = message
    assert line.startswith("[node1] gridrpc: versions here differ")
    assert "numpy 0.0.1 (the client has " in line


def test_a_ticket_is_taken_once(rig: Rig, tmp_path: Path) -> None:
    """A stranger who has read the ticket of an agent that has come is not let in."""
    ticket = tmp_path / "ticket"
    keeping = script(
        tmp_path / "keeping",
        f'#!/bin/sh\n[ "$1" = agent ] || exec {PROGRAM} "$1"\n'
        f'read -r line; echo "$line" >{ticket}\n(echo "$line"; cat) | {PROGRAM} agent\n',
    )
    table = server(rig, "node1", program=keeping, encryption="none")
    with on_hosts(tmp_path, table) as grid:
        word = ticket.read_text().strip().removeprefix("gridrpc1.")
        known = json.loads(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)))
        port = int(known["addresses"][0].rsplit(":", 1)[1])
        with socket.create_connection(("127.0.0.1", port), timeout=LONG) as stranger:
            stranger.sendall(bytes(known["secret"]))
            assert not stranger.recv(1)
        assert grid.submit(remote.add, 1, 1).result(LONG) == 2

"""Networks on this machine: what is made, and that nothing is left of it however it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench_testbed.links.network import Network, leftovers
from linking import ask, left_of, moved, skip_without_links
from running import DEADLINE, Run, until

skip_without_links()

OWNER = """
import sys, time
from gridbench_testbed.links.network import Network
with Network(2, 1e8) as network:
    print("made", flush=True)
    {then}
"""


def started(then: str) -> subprocess.Popen[str]:
    """A process that makes a network and then does something else."""
    program = [sys.executable, "-c", OWNER.format(then=then)]
    owner = subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == "made\n"
    return owner


@pytest.mark.parametrize("rate", [64e3, 1e8, 1e9, 1e11])
def test_all_ends_of_all_links_have_the_rate(rate: float) -> None:
    with Network(3, rate) as network:
        shaped = ask("tc", "qdisc", "show", "dev", network.client_interface)
        ports = ask("tc", "qdisc", "show", namespace=network.switch.name)
        # The bridge itself has no queue; its ports do.
        shaped += [port for port in ports if port["dev"].startswith(("client", "port"))]
        for node in network.namespaces:
            shaped += ask("tc", "qdisc", "show", "dev", "link", namespace=node.name)
    assert len(shaped) == 8
    for queue in shaped:
        assert queue["kind"] == "tbf"
        assert queue["options"]["rate"] == rate / 8
        # In ticks of the kernel's clock, and so not to the byte.
        assert queue["options"]["burst"] == pytest.approx(network.burst, rel=0.01)


def test_bytes_pass_the_links_of_their_node_only() -> None:
    count = 300_000
    with Network(2, 1e9) as network:
        near, far = network.namespaces[0].name, network.namespaces[1].name
        address = network.node_addresses[0]
        server = subprocess.Popen(
            ["ip", "netns", "exec", near, sys.executable, "-m", "gridbench.links.peer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdout is not None
        port = int(server.stdout.readline())
        before = moved("link", namespace=near), moved("link", namespace=far)
        sent = moved(network.client_interface)[1]
        with socket.create_connection((address, port), timeout=DEADLINE) as connection:
            connection.sendall(b"take" + bytes(12) + bytes(count))
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b"!"
        server.communicate("")
        received = moved("link", namespace=near)[0] - before[0][0]
        assert count < received < 1.2 * count
        assert count < moved(network.client_interface)[1] - sent < 1.2 * count
        assert moved("link", namespace=far)[0] - before[1][0] < 10_000


def test_networks_do_not_meet() -> None:
    with Network(2, 1e8) as one, Network(1, 1e9) as other:
        for network in (one, other):
            addresses = [network.client_address, *network.node_addresses]
            assert len(set(addresses)) == network.nodes + 1
            assert len({address.rpartition(".")[0] for address in addresses}) == 1
        assert one.client_address.rpartition(".")[0] != other.client_address.rpartition(".")[0]
        # Three nodes, two switches, and two devices of the client.
        assert len(left_of(os.getpid())) == 7
    assert left_of(os.getpid()) == []


def test_a_network_goes_with_an_error() -> None:
    def fail() -> None:
        with Network(2, 1e8) as network:
            assert all(node.exists() for node in [*network.namespaces, network.switch])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert left_of(os.getpid()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_network_goes_with_ctrl_c(number: signal.Signals) -> None:
    handler = "import signal; signal.signal(signal.SIGTERM, signal.default_int_handler)"
    owner = started(f"{handler}; print('ready', flush=True); time.sleep(1000)")
    assert owner.stdout is not None
    assert owner.stdout.readline() == "ready\n"
    assert left_of(owner.pid)
    os.killpg(owner.pid, number)
    _, said = owner.communicate(timeout=DEADLINE)
    assert "KeyboardInterrupt" in said
    assert left_of(owner.pid) == []


def test_what_a_killed_process_leaves_goes_with_the_next_network() -> None:
    owner = started("time.sleep(1000)")
    owner.kill()
    owner.communicate(timeout=DEADLINE)
    # Two nodes, the switch, and the client's device.
    assert len(left_of(owner.pid)) == 4
    with Network(1, 1e8):
        assert left_of(owner.pid) == []


def test_what_a_killed_process_leaves_can_be_removed(gridbench: Run) -> None:
    owner = started("time.sleep(1000)")
    # It lives: its network is nobody else's business.
    assert not [tag for tag in leftovers() if f"-{owner.pid}-" in tag]
    assert str(owner.pid) not in gridbench("links", "--clean").stdout
    assert len(left_of(owner.pid)) == 4
    owner.kill()
    owner.communicate(timeout=DEADLINE)
    ran = gridbench("links", "--clean")
    assert ran.returncode == 0
    assert f"removed the network gridbench-{owner.pid}-" in ran.stdout
    assert left_of(owner.pid) == []
    assert gridbench("links", "--clean").stdout == "nothing has been left\n"


def test_only_root_makes_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match="by root only\nhint: run it as root"), Network(1, 1e9):
        pass


def test_without_iproute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("gridbench_testbed.links.network._SYSTEM_FOLDERS", "")
    said = r"need the program `ip`, which is not installed\nhint: install iproute2"
    with pytest.raises(InputError, match=said), Network(1, 1e9):
        pass


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("Error: Specified qdisc kind is unknown.", "see that the kernel has .*NET_SCH_TBF"),
        ("RTNETLINK answers: Operation not permitted", "a container needs CAP_SYS_ADMIN"),
    ],
)
def test_what_the_kernel_refuses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stderr: str, said: str
) -> None:
    """The real `ip` makes devices; then a `tc` on a system that has no token bucket fails."""
    program = f"#!/bin/sh\necho '{stderr}' >&2\necho 'Command failed -:1' >&2\nexit 1\n"
    (tmp_path / "tc").write_text(program)
    (tmp_path / "tc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(InputError, match=said) as caught, Network(2, 1e9):
        pass
    assert stderr in str(caught.value)
    assert left_of(os.getpid()) == []


def test_links_are_measured(gridbench: Run) -> None:
    ran = gridbench("links", "--nodes", "2", "--link", "50mbit", "--seconds", "0.2", "--json")
    assert ran.returncode == 0, ran.stderr
    shown = json.loads(ran.stdout)
    assert (shown["nodes"], shown["rate"]) == (2, 5e7)
    measured = shown["measured"]
    assert [node["number"] for node in measured["nodes"]] == [1, 2]
    for rates in [*(node["rates"] for node in measured["nodes"]), measured["together"]]:
        # A link gives no more than its rate and what it takes at once; a busy machine gives less.
        for rate in rates.values():
            assert 0 < rate < 5e7 * 1.05
    assert all(node["round_trip"] > 0 for node in measured["nodes"])


def test_links_are_shown(gridbench: Run) -> None:
    ran = gridbench("links", "--link", "100mbit", "--seconds", "0.05")
    assert ran.returncode == 0, ran.stderr
    assert "1 nodes" not in ran.stdout
    assert "1 node behind links of 100 Mbit/s" in ran.stdout
    assert "95.6 Mbit/s can carry data" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--link", "1gb"], "did you mean `1gbit`"),
        (["--nodes", "0"], "--nodes: `0` is not a whole number from 1 to 250"),
        (["--seconds", "nan"], "--seconds: nan is not from"),
    ],
)
def test_wrong_arguments(refused: Run, arguments: list[str], said: str) -> None:
    ran = refused("links", *arguments)
    assert ran.returncode == 2
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_process_that_ends_in_the_middle_of_making_leaves_nothing(tmp_path: Path) -> None:
    """Ctrl-C while `tc` runs: the namespaces are there by then."""
    (tmp_path / "tc").write_text(f"#!/bin/sh\ntouch {tmp_path}/reached\nexec sleep 1000\n")
    (tmp_path / "tc").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(then="pass")],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until((tmp_path / "reached").exists)
    assert left_of(owner.pid)
    os.killpg(owner.pid, signal.SIGINT)
    _, said = owner.communicate(timeout=DEADLINE)
    assert "KeyboardInterrupt" in said
    assert left_of(owner.pid) == []

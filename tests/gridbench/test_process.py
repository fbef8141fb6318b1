"""Processes of ours: messages both ways, how they end, and that nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ended import gone
from gridbench.engines.environments import our_launch
from gridbench.process.child import Child, Ended
from gridbench.process.children import Leftovers, PythonLaunch
from gridbench.process.inside import ObjectChannel

_LINES = "from gridbench.process.inside import LineChannel\n"
_SERVE = "import os, sys, time\nfrom gridbench.process.inside import serve\n"
_LONG = 30.0  # seconds that nothing here takes

Start = Callable[..., Child]


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    """Adopts what is left behind."""
    with Leftovers() as active:
        yield active


@pytest.fixture
def start(tmp_path: Path, leftovers: Leftovers) -> Iterator[Start]:
    """Starts a process that runs this text; those that still run are ended after the test."""
    begun: list[Child] = []

    def begin(text: str, *, channel: type[ObjectChannel] | None = None) -> Child:
        (tmp_path / "module_of_test.py").write_text(_SERVE + _LINES + text)
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        launch = PythonLaunch([sys.executable], os.environ | {"PYTHONPATH": path})
        chosen = {} if channel is None else {"channel": channel}
        begun.append(Child("module_of_test", launch=launch, **chosen))
        return begun[-1]

    yield begin
    for child in begun:
        if child.process.returncode is None:
            child.end(leftovers)


def soon() -> float:
    return time.monotonic() + _LONG


def test_messages_go_both_ways(start: Start) -> None:
    child = start(
        "lines = LineChannel(serve(sys.argv[1]))\n"
        "while True:\n    lines.send({'back': lines.receive()})\n"
    )
    big = "ü\n" * 1_000_000
    for message in ("measure", big, [1, None, 2.5]):
        child.send(message)
        assert child.receive(soon()) == {"back": message}


def test_nothing_of_the_current_folder_runs(
    leftovers: Leftovers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("contextlib", "json", "socket"):
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'w').close()\n1/0\n")
    monkeypatch.chdir(tmp_path)
    for launch in (None, our_launch()):
        child = Child("gridbench.links.peer", launch=launch)
        with pytest.raises(Ended):
            child.receive(soon())
        child.end(leftovers)
    command = [sys.executable, "-c", "import json"]
    variables = our_launch().variables
    assert subprocess.run(command, env=variables, check=False).returncode == 0
    assert not list(tmp_path.glob("ran-*"))


def test_objects_go_both_ways(start: Start) -> None:
    child = start(
        "from gridbench.process.inside import ObjectChannel\n"
        "channel = ObjectChannel(serve(sys.argv[1]))\n"
        "while True:\n    channel.send(channel.receive())\n",
        channel=ObjectChannel,
    )
    for message in ({1, 2}, [b"\n" * 100_000], (Path("a"),)):
        child.send(message)
        assert child.receive(soon()) == message


def test_what_was_sent_before_the_end_is_received(start: Start) -> None:
    child = start(
        "print('first', flush=True)\nprint()\nprint('the cause')\n"
        "LineChannel(serve(sys.argv[1])).send(1)\nsys.exit(3)\n"
    )
    assert child.receive(soon()) == 1
    with pytest.raises(Ended):
        child.receive(soon())
    assert child.ending() == "ended with exit status 3"
    assert child.last_lines(2) == ["first", "the cause"]


def test_a_process_that_a_signal_ended(start: Start) -> None:
    child = start("serve(sys.argv[1])\nos.kill(os.getpid(), 11)\n")
    with pytest.raises(Ended):
        child.receive(soon())
    assert child.ending() == "was ended by signal 11 (Segmentation fault)"


def test_its_end_shows_though_a_process_it_forked_has_the_socket(start: Start) -> None:
    child = start(
        "lines = LineChannel(serve(sys.argv[1]))\n"
        "if os.fork():\n    lines.send('forked')\n    os._exit(0)\n"
        "time.sleep(1000)\n"
    )
    assert child.receive(soon()) == "forked"
    with pytest.raises(Ended):
        child.receive(soon())


def test_a_limit_and_looks_meanwhile(start: Start) -> None:
    child = start("serve(sys.argv[1])\ntime.sleep(1000)\n")
    looks = []
    with pytest.raises(TimeoutError):
        child.receive(time.monotonic() + 0.5, lambda: looks.append(1))
    assert len(looks) > 2


def test_ending_it_ends_what_it_started(start: Start, leftovers: Leftovers) -> None:
    child = start(
        "import subprocess\nlines = LineChannel(serve(sys.argv[1]))\n"
        "lines.send(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid)\n"
        "time.sleep(1000)\n"
    )
    started = child.receive(soon())
    child.end(leftovers)
    assert gone(child.process.pid)
    assert gone(started)


_PARENT = """
import sys, time
from gridbench.process.child import Child
child = Child(sys.argv[1])
print(child.process.pid, *child.receive(time.monotonic() + 60), flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("unwinds", [False, True])
def test_it_ends_when_its_parent_is_killed(tmp_path: Path, *, unwinds: bool) -> None:
    """With what it has started; one that unwinds takes down itself what it has made."""
    mark = tmp_path / "taken down"
    (tmp_path / "module_of_test.py").write_text(
        f"{_SERVE}{_LINES}import signal, subprocess, threading\n"
        f"lines = LineChannel(serve(sys.argv[1], unwinds={unwinds}))\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (open({str(mark)!r}, 'w'), sys.exit(0)))\n"
        "started = subprocess.Popen(['sleep', '1000'])\n"
        "try:\n"
        "    lines.send([started.pid, threading.active_count()])\n"
        "    time.sleep(1000)\n"
        "finally:\n"
        "    started.kill()\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, "module_of_test"],
        env=os.environ | {"PYTHONPATH": path}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert parent.stdout is not None
        child, started, count = map(int, parent.stdout.readline().split())
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
    assert gone(child)
    assert gone(started)
    assert count == 1
    assert mark.exists() is unwinds

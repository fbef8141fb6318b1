"""Children that are copies of a process that has imported their module."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ended import gone
from gridbench.process.child import Child, Ended, ProcessTemplate
from gridbench.process.children import Leftovers
from gridbench.process.inside import OPEN_FILES

_LONG = 30.0  # seconds that nothing here takes

_MODULE = """
import os, sys, time
from pathlib import Path
from gridbench.process.inside import serve
from gridbench.process.inside import LineChannel

with open(Path(__file__).with_name("imports"), "a") as file:
    file.write("once\\n")
runs = 0
prepared = []

def prepare(*arguments):
    prepared.append(arguments)

def main(descriptor):
    global runs
    runs += 1
    lines = LineChannel(serve(descriptor))
    lines.send([os.getpid(), os.getsid(0), runs])
    wanted = lines.receive()
    if wanted == "prepared":
        lines.send(prepared)
        wanted = 0
    if wanted == "room":
        status = Path("/proc/self/status").read_text()
        lines.send(int(status.partition("FDSize:")[2].split()[0]))
        wanted = 0
    print("it got", wanted)
    if wanted == "wait":
        time.sleep(1000)
    sys.exit(wanted)

if __name__ == "__main__":
    main(sys.argv[1])
"""

_PARENT = """
import time
from gridbench.process.children import Leftovers
from gridbench.process.child import ProcessTemplate
template = ProcessTemplate("module_of_test")
with Leftovers():
    child = template.child()
    print(template._process.pid, child.receive(time.monotonic() + 60)[0], flush=True)
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of the module that the children run."""
    (tmp_path / "module_of_test.py").write_text(_MODULE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    return tmp_path


@pytest.fixture
def template() -> Iterator[ProcessTemplate]:
    """Of that module."""
    with ProcessTemplate("module_of_test") as made:
        yield made


@pytest.fixture
def leftovers(template: ProcessTemplate) -> Iterator[Leftovers]:
    """Adopts what is left behind, and the copies; not the template, which is older."""
    assert template
    with Leftovers() as active:
        yield active


def greeting(child: Child) -> list[int]:
    received: list[int] = child.receive(time.monotonic() + _LONG)
    return received


def test_each_copy_begins_with_the_module_as_it_was_imported(
    template: ProcessTemplate, leftovers: Leftovers, folder: Path
) -> None:
    pids = set()
    for _ in range(3):
        child = template.child()
        pid, session, runs = greeting(child)
        assert pid == child.process.pid
        assert session == pid
        assert runs == 1
        assert psutil.Process(pid).ppid() == os.getpid()
        child.send(0)
        child.end(leftovers, patience=_LONG)
        pids.add(pid)
    assert len(pids) == 3
    assert (folder / "imports").read_text() == "once\n"


def test_copies_are_of_a_process_that_has_been_prepared(folder: Path) -> None:
    assert folder
    with ProcessTemplate("module_of_test", "for", "this") as made, Leftovers() as leftovers:
        child = made.child()
        greeting(child)
        child.send("prepared")
        assert child.receive(time.monotonic() + _LONG) == [["for", "this"]]
        child.end(leftovers, patience=_LONG)


def room(child: Child) -> int:
    """Open files for which the child has room, before it has to make more."""
    greeting(child)
    child.send("room")
    files: int = child.receive(time.monotonic() + _LONG)
    return files


def test_copies_and_new_processes_have_as_much_room_for_files_as_a_script(
    template: ProcessTemplate, leftovers: Leftovers
) -> None:
    for start in (template.child, lambda: Child("module_of_test")):
        child = start()
        assert room(child) >= OPEN_FILES
        child.end(leftovers, patience=_LONG)


def test_how_a_copy_ends_and_what_it_printed_is_known(
    template: ProcessTemplate, leftovers: Leftovers
) -> None:
    child = template.child()
    greeting(child)
    child.send(3)
    with pytest.raises(Ended):
        child.receive(time.monotonic() + _LONG)
    assert child.ending() == "ended with exit status 3"
    assert child.last_lines(1) == ["it got 3"]
    child.end(leftovers)


def test_a_copy_that_is_killed(template: ProcessTemplate, leftovers: Leftovers) -> None:
    child = template.child()
    greeting(child)
    child.ask_to_end(signal.SIGKILL)
    assert child.wait(_LONG)
    assert child.ending() == "was ended by signal 9 (Killed)"
    child.ask_to_end(signal.SIGKILL)  # of one that has ended, nothing comes
    child.end(leftovers)


def test_a_copy_that_still_runs_is_ended_and_the_next_one_comes(
    template: ProcessTemplate, leftovers: Leftovers
) -> None:
    child = template.child()
    pid = greeting(child)[0]
    child.send("wait")
    assert not child.wait(0.05)
    child.end(leftovers)
    assert gone(pid)
    another = template.child()
    assert greeting(another)[2] == 1
    another.end(leftovers)


def test_without_the_template_there_is_a_new_process(
    template: ProcessTemplate, leftovers: Leftovers
) -> None:
    template._process.kill()
    template._process.wait()
    child = template.child()
    assert greeting(child)[2] == 1
    child.send(0)
    child.end(leftovers, patience=_LONG)


def test_all_of_it_ends_with_the_program() -> None:
    parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        template, child = map(int, parent.stdout.readline().split())
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
    assert gone(child)
    assert gone(template)

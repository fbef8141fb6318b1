"""Programs that contain Python: none starts itself without end, whatever `sys.executable` is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from processes import run_script

#: Starts itself where an interpreter should be started. Each start is noted, and a few are enough.
PROGRAM = """
    import os, sys, threading
    import gridrpc

    with open("starts", "a") as starts:
        starts.write("start\\n")
    with open("starts") as starts:
        if len(list(starts)) > 10:
            os._exit(9)
    {before}
    sys.executable = os.path.abspath("program")
    {support}

    def square(x):
        return x * x

    def rank():
        from mpi4py import MPI
        return MPI.COMM_WORLD.allreduce(1)

    # With a thread, the client is not forked.
    gate = threading.Event()
    threading.Thread(target=gate.wait, daemon=True).start()
    try:
        with gridrpc.Grid(workers=2{settings}) as grid:
            print(list(grid.map(square, range(4))))
            {more}
    except gridrpc.GridError as error:
        print(type(error).__name__, error)
        sys.exit(3)
"""
FROZEN = "sys.frozen = True"
SUPPORT = "gridrpc.freeze_support()"


def run(
    folder: Path, before: str = "", support: str = "", settings: str = "", more: str = ""
) -> tuple[int, str, int]:
    """Run the program. Returns its status, its output, and how often it was started."""
    source = PROGRAM.format(before=before, support=support, settings=settings, more=more)
    program = folder / "program"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" script.py "$@"\n')
    program.chmod(0o755)
    ended = run_script(folder, source)
    starts = len((folder / "starts").read_text().splitlines())
    return ended.returncode, ended.stdout + ended.stderr, starts


@pytest.mark.parametrize("settings", ["", ', transport="tcp"'], ids=["unix", "tcp"])
def test_a_frozen_program_runs_its_workers(tmp_path: Path, settings: str) -> None:
    assert run(tmp_path, FROZEN, SUPPORT, settings) == (0, "[0, 1, 4, 9]\n", 2)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="there is no mpirun")
def test_a_frozen_program_runs_ranks(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    options = ', mpirun="mpirun --allow-run-as-root --oversubscribe"'
    more = "print(grid.submit(rank, ranks=2).result(60))"
    status, output, starts = run(tmp_path, FROZEN, SUPPORT, options, more)
    # The program, the spawner, and two ranks.
    assert (status, output, starts) == (0, "[0, 1, 4, 9]\n2\n", 4)


def test_a_frozen_program_without_freeze_support_is_refused(tmp_path: Path) -> None:
    status, output, starts = run(tmp_path, FROZEN)
    assert (status, starts) == (3, 1)
    assert output.startswith("ConfigError this program is frozen")
    assert "gridrpc.freeze_support()" in output


def test_a_program_that_embeds_python_does_not_start_itself_without_end(tmp_path: Path) -> None:
    status, output, starts = run(tmp_path)
    # The core tries a few times to start workers. No start leads to others.
    assert (status, 2 <= starts <= 4) == (3, True)
    assert "StartError no worker could be started" in output
    assert f"`{tmp_path}/program -" in output
    assert "was started to run the workers of a grid, but runs its main program" in output


def test_freeze_support_serves_programs_that_are_not_marked_as_frozen(tmp_path: Path) -> None:
    assert run(tmp_path, "", SUPPORT) == (0, "[0, 1, 4, 9]\n", 2)


def test_functions_may_run_programs_that_open_grids(tmp_path: Path) -> None:
    """What marks a spawner does not reach what its workers start."""
    (tmp_path / "inner.py").write_text(
        "import gridrpc\nwith gridrpc.Grid(workers=1) as grid:\n"
        "    print(grid.submit(abs, -7).result(60))\n"
    )
    source = """
        import subprocess, sys, gridrpc
        def inner():
            return subprocess.check_output([sys.executable, "inner.py"], text=True)
        for method in ("spawn", "fork"):
            with gridrpc.Grid(workers=1, start_method=method) as grid:
                print(grid.submit(inner).result(60), end="")
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "7\n7\n", "")


NO_PROGRAM = {"None": None, "empty": "", "a folder": "/", "missing": "/no/such/python"}


@pytest.mark.parametrize("name", NO_PROGRAM)
def test_what_is_no_program_is_refused(tmp_path: Path, name: str) -> None:
    source = f"""
        import sys, gridrpc
        sys.executable = {NO_PROGRAM[name]!r}
        try:
            gridrpc.Grid(workers=1)
        except gridrpc.ConfigError as error:
            print(error)
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"`sys.executable` is {NO_PROGRAM[name]!r}, which is not")
    assert "Grid(python=...)" in ended.stdout


@pytest.mark.parametrize("program", ["/bin/true", "/bin/false", "/bin/echo"])
def test_a_program_that_is_not_python_is_named(tmp_path: Path, program: str) -> None:
    source = f"""
        import sys, gridrpc
        sys.executable = {program!r}
        with gridrpc.Grid(workers=1, start_method="spawn") as grid:
            print(grid.submit(abs, -1).exception(60))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stderr) == (0, "")
    error = ended.stdout[ended.stdout.index("no worker could be started") :]
    assert f"failed: `{program} -" in error
    assert "ended (exit status: " in error
    assert "`sys.executable` has to be a Python interpreter that can import gridrpc" in error
    assert "command and its messages" not in error


def test_workers_run_another_interpreter(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(f'#!/bin/sh\nOTHER=yes exec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    source = f"""
        import os, sys, gridrpc
        sys.executable = None
        for transport in ("unix", "tcp"):
            with gridrpc.Grid(workers=1, python={str(other)!r}, transport=transport) as grid:
                print(grid.submit(lambda: os.environ["OTHER"]).result(60))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "yes\nyes\n", "")


def test_an_interpreter_that_cannot_be_is_refused(tmp_path: Path) -> None:
    source = """
        import sys, gridrpc
        forked = {"python": sys.executable, "start_method": "fork"}
        for settings in ({"python": "/no/such"}, forked):
            try:
                gridrpc.Grid(workers=1, **settings)
            except gridrpc.ConfigError as error:
                print(error)
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == (
        "`python` is '/no/such', which is not a program: name a Python interpreter\n"
        '`start_method` is "fork", but `python` names another interpreter\n'
    )

"""How workers are started: what code they run, and where grids may be opened."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from processes import (
    LONG,
    descendants,
    environment,
    run_script,
    running,
    start_script,
    until,
    write_script,
)

#: Modules that a spawner imports early.
EARLY = ("contextlib", "importlib", "pickle", "traceback", "random")


def run_elsewhere(
    script: str, folder: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script that lies in a folder of its own from another folder."""
    own = folder / "own"
    own.mkdir()
    (own / "script.py").write_text(textwrap.dedent(script))
    return subprocess.run(
        [sys.executable, *options, str(own / "script.py")],
        capture_output=True, text=True, timeout=LONG, cwd=folder, check=False,
        env={**os.environ, **variables},
    )  # fmt: skip


SQUARES = """
    import gridrpc
    with gridrpc.Grid(workers=2) as grid:
        print(list(grid.map(lambda n: n * n, range(3))))
"""


@pytest.mark.parametrize("options", [(), ("-P",), ("-I",)], ids="".join)
def test_nothing_of_the_current_folder_runs(tmp_path: Path, options: tuple[str, ...]) -> None:
    for name in EARLY:
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'w').close()\n1/0\n")
    ended = run_elsewhere(SQUARES, tmp_path, *options)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[0, 1, 4]\n", "")
    assert not list(tmp_path.glob("ran-*"))


def test_the_clients_own_folders_do_count(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def f():\n    return 'from here'\n")
    script = """
        import sys, gridrpc
        sys.path.insert(0, "")
        with gridrpc.Grid(workers=1) as grid:
            print(grid.submit("beside/f").result(60))
    """
    ended = run_elsewhere(script, tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "from here\n", "")


def test_workers_get_the_interpreters_flags(tmp_path: Path) -> None:
    script = """
        import sys, gridrpc
        def describe():
            return sys.flags[:], sys.warnoptions, sys._xoptions
        with gridrpc.Grid(workers=1) as grid:
            flags, *others = grid.submit(describe).result(60)
        ours = sys.flags[:]
        print([a for a, b in zip(ours, flags) if a != b])
        print(others == [sys.warnoptions, sys._xoptions])
        print(sys.flags.optimize, sys.flags.isolated, sys.warnoptions)
    """
    options = ("-I", "-O", "-W", "ignore::UserWarning", "-X", "faulthandler", "-X", "utf8")
    ended = run_elsewhere(script, tmp_path, *options)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "[]\nTrue\n1 1 ['ignore::UserWarning']\n"


#: A module that opens a grid when it is imported. `DEEP` bounds it if nothing else does.
OPENS = """
    import os
    import gridrpc
    deep = int(os.environ.get("DEEP", "0"))
    os.environ["DEEP"] = str(deep + 1)
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{deep}\\n")
    def square(x):
        return x * x
"""


def test_a_module_that_submits_when_it_is_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "opens.py").write_text(
        textwrap.dedent(OPENS)
        + "if deep < 3:\n"
        + "    with gridrpc.Grid(workers=1) as grid:\n"
        + "        value = grid.submit(square, 5).result(60)\n"
    )
    notes = tmp_path / "notes"
    source = f"""
        import os
        os.environ["NOTES"] = {str(notes)!r}
        import gridrpc
        try:
            import opens
        except gridrpc.NestingError as error:
            print(error)
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "`opens` opens a grid while a worker imports it" in ended.stdout
    assert '`if __name__ == "__main__":`' in ended.stdout
    # The client, the spawner, and the worker once more: none of them started another.
    assert set(notes.read_text().split()) <= {"0", "1", "2"}
    assert notes.read_text().count("0\n") == 1


def test_a_grid_at_the_top_of_a_module_is_refused_in_workers(tmp_path: Path) -> None:
    (tmp_path / "opens.py").write_text(
        "import gridrpc\npool = gridrpc.Grid(workers=1)\ndef square(x):\n    return x * x\n"
        "def run(x):\n    return pool.submit(square, x).result(60)\n"
    )
    source = """
        import gridrpc, opens
        try:
            opens.run(5)
        except gridrpc.NestingError as error:
            print("`opens` opens a grid" in str(error))
        import psutil
        print(len(psutil.Process().children(recursive=True)) <= 2)
        opens.pool.close()
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\nTrue\n", "")


def test_grids_in_functions_of_grids_have_a_depth(tmp_path: Path) -> None:
    (tmp_path / "deeper.py").write_text(
        "import gridrpc\n"
        "def deeper(level, most):\n"
        "    if level == most:\n"
        "        return level\n"
        "    try:\n"
        "        with gridrpc.Grid(workers=1) as grid:\n"
        "            return grid.submit(deeper, level + 1, most).result(60)\n"
        "    except gridrpc.NestingError as error:\n"
        "        return level, str(error)\n"
    )
    source = """
        import deeper
        print(deeper.deeper(0, 2))
        print(deeper.deeper(0, 5))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(
        "2\n(3, 'this process belongs to a grid that a function has opened"
    )


BUSY = {
    "Python code": "while True:\n    pass\n",
    "a call that keeps the interpreter": "import ctypes\nctypes.PyDLL(None).sleep(1000)\n",
    "a wait": "import threading\nthreading.Event().wait()\n",
}


@pytest.mark.parametrize("busy", BUSY)
def test_a_spawner_in_an_import_ends_with_its_client(tmp_path: Path, busy: str) -> None:
    (tmp_path / "busy.py").write_text("import os\nopen('importing', 'w').close()\n" + BUSY[busy])
    source = """
        import gridrpc
        grid = gridrpc.Grid(workers=2, preload=["busy"])
        # The thread that starts the spawner may be one that ends before the client.
        import threading
        thread = threading.Thread(target=lambda: grid.submit(abs, -1)._wait(0.5))
        thread.start()
        thread.join()
        print("ready", flush=True)
        import time
        time.sleep(1000)
    """
    process = start_script(tmp_path, source.replace("._wait(0.5)", ".exception(0.5)"))
    assert process.stdout is not None
    try:
        assert until((tmp_path / "importing").exists)
        assert process.stdout.readline() == "ready\n"
        left = descendants(process.pid)
        assert len(running(left)) == 1
    finally:
        process.kill()
    process.communicate(timeout=LONG)
    assert until(lambda: not running(left), 5.0)


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    source = """
        import os
        os.mkdir("gone")
        os.chdir("gone")
        os.rmdir("../gone")
        import gridrpc
        with gridrpc.Grid(workers=1) as grid:
            print(grid.submit(abs, -1).result(60))
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n", "")


def test_results_do_not_wait_for_modules_that_only_errors_need(tmp_path: Path) -> None:
    source = """
        import sys, threading, gridrpc
        with gridrpc.Grid(workers=1) as grid:
            done = threading.Event()
            grid.submit(abs, -1).add_done_callback(lambda _: done.set())
            assert done.wait(60)
        print("logging" in sys.modules)
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "False\n", "")


def test_folders_whose_names_are_not_utf8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    (Path(os.fsdecode(folder)) / "beside.py").write_text(
        "import os\ndef f():\n    return os.getcwdb()\n"
    )
    script = (
        "import os, sys, gridrpc\n"
        "with gridrpc.Grid(workers=1) as grid:\n"
        "    print(grid.submit('beside/f').result(60))\n"
    )
    (Path(os.fsdecode(folder)) / "script.py").write_text(script)
    ended = subprocess.run(
        [sys.executable, b"script.py"], capture_output=True, timeout=LONG, cwd=folder,
        env=environment(), check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert ended.stdout.strip() == repr(folder).encode()


def test_without_proc(tmp_path: Path) -> None:
    unshare = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    try:
        can = subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        can = False
    if not can:
        pytest.skip("/proc cannot be hidden here")
    source = """
        import gridrpc
        for settings in ({}, {"transport": "tcp"}, {"start_method": "fork"}, {"initializer": int}):
            try:
                with gridrpc.Grid(workers=2, **settings) as grid:
                    print(list(grid.map(abs, [-1, -2])))
            except gridrpc.ConfigError as error:
                print(error)
    """
    ended = subprocess.run(
        [*unshare, sys.executable, str(write_script(tmp_path, source))],
        capture_output=True, text=True, timeout=LONG, env=environment(), check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "[1, 2]",
        "[1, 2]",
        '`start_method` is "fork", but /proc, which shows threads, is missing: leave it out, or '
        'give "spawn"',
        "workers find their `initializer` in /proc, which is missing: mount it, or leave out "
        "`initializer`",
    ]


#: A module that is slow to import, by its name, and notes who imports it.
SLOW = "import os\nwith open('imported', 'a') as notes:\n    notes.write(f'{os.getpid()}\\n')\n"


@pytest.mark.parametrize(
    ("settings", "shared"),
    [("workers=1", False), ("workers=5", True), ("workers=1, max_tasks_per_child=1", True),
     ("workers=1, preload=['pandas']", True), ("servers='local:?workers=1'", True)],
)  # fmt: skip
def test_slow_modules_are_imported_once_for_many_workers_only(
    tmp_path: Path, settings: str, shared: bool
) -> None:
    (tmp_path / "pandas.py").write_text(SLOW)
    source = f"""
        import os, pandas, gridrpc
        def importers():
            with open("imported") as notes:
                return [int(line) for line in notes]
        def use():
            import pandas
            return os.getpid()
        with gridrpc.Grid(start_method="spawn", {settings}) as grid:
            grid.submit(abs, -1).result(60)
            print(len(importers()) > 1)
            worker = grid.submit(use).result(60)
            print(worker in importers())
    """
    ended = run_script(tmp_path, source)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{shared}\n{not shared}\n"

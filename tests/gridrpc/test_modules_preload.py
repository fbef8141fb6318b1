"""Modules that workers have before their first call."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

import gridrpc
from grids import CompileIdl, opened
from hosts import configured
from processes import LONG

#: Its function tells which process has loaded it, and which one runs it.
IDL = """
Module loaded;
Globals {
#include <unistd.h>
static int loaded_by;
__attribute__((constructor)) static void load(void) { loaded_by = getpid(); }
}
Define processes(OUT int loader[1], OUT int worker[1])
{
    *loader = loaded_by;
    *worker = getpid();
}
"""

#: It starts a thread when it is loaded, and if STOPS, ends it before each fork.
THREADED = """
Module threaded;
Globals {
#include <pthread.h>
#include <unistd.h>
static int started_threads;
static int ends[2];
static pthread_t thread;
static void *wait_for_end(void *unused)
{
    char byte;
    (void)!read(ends[0], &byte, 1);
    return unused;
}
static void stop(void)
{
    if (ends[1]) {
        close(ends[1]);
        pthread_join(thread, 0);
        ends[1] = 0;
    }
}
__attribute__((constructor)) static void start(void)
{
    (void)!pipe(ends);
    started_threads = pthread_create(&thread, 0, wait_for_end, 0) == 0;
    if (STOPS) pthread_atfork(stop, 0, 0);
}
}
Define threads(OUT int started[1]) { *started = started_threads; }
"""

KINDS = [("native", "unix"), ("native", "tcp"), ("python", "unix"), ("python", "tcp")]


@pytest.fixture
def module(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


def processes(grid: gridrpc.Grid) -> tuple[int, int]:
    """Which process has loaded the module, and which one is the worker that says so."""
    loader, worker = grid.function("loaded/processes")()
    return int(loader[0]), int(worker[0])


@pytest.mark.parametrize(("worker", "transport"), KINDS)
def test_it_is_loaded_once_and_before_workers_are_forked(
    module: Path, worker: Any, transport: Any
) -> None:
    settings = {"worker": worker, "transport": transport, "modules": [module]}
    with opened(workers=2, preload=[module], max_tasks_per_child=1, **settings) as grid:
        grid.wait_until_ready(LONG)
        seen = [processes(grid) for _ in range(3)]
    loaders, workers = ({one for one, _ in seen}, {other for _, other in seen})
    assert len(loaders) == 1
    assert len(workers) == 3, "each process served one call"
    assert not loaders & workers
    with opened(workers=1, **settings) as grid:
        loader, own = processes(grid)
        assert loader == own, "without `preload`, the first call loads it"


def test_names_mean_what_workers_run(module: Path) -> None:
    with opened(workers=1, worker="native", modules=[module.parent], preload=["loaded"]) as grid:
        loader, own = processes(grid)
        assert loader != own

    def has(name: str) -> bool:
        return name in sys.modules

    preload = ["xml.dom.minidom", module]
    with opened(workers=1, modules=[module], preload=preload) as grid:
        assert grid.submit(has, "xml.dom.minidom").result(LONG)
        loader, own = processes(grid)
        assert loader != own


@pytest.mark.parametrize("worker", ["native", "python"])
def test_servers_name_their_own(
    module: Path, basics: Path, tmp_path: Path, worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(module.parent)
    table = 'launcher = "local"\nworkers = 1\n'
    file = configured(
        tmp_path,
        f'[server.with]\n{table}preload = ["./{module.name}"]\n',
        f"[server.without]\n{table}",
    )
    with opened(config=file, worker=worker, modules=[module, basics], preload=[basics]) as grid:
        for server, has in (("with", True), ("without", False)):
            loader, own = grid.function("loaded/processes", server=server)()
            assert (loader[0] != own[0]) == has
            assert grid.function("basics/number", server=server)(5) == 5


def test_what_is_not_there_is_reported_at_once(module: Path, tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("nothing")
    for name, why in (
        ("/no/such.so", "could not read `/no/such.so`: No such file"),
        (tmp_path / "text.so", "is not a module"),
        ("lapack", "there is no module `lapack`"),
    ):
        with pytest.raises(gridrpc.StartError) as caught:
            gridrpc.Grid(workers=1, worker="native", modules=[module], preload=[name])
        reported = str(caught.value)
        for part in (socket.gethostname(), "`preload`", why, "gridrpc compile"):
            assert part in reported


def refused(**settings: Any) -> str:
    with opened(**settings) as grid:
        with pytest.raises(gridrpc.StartError) as caught:
            grid.wait_until_ready(LONG)
        return str(caught.value)


@pytest.fixture
def broken(compile_idl: CompileIdl, tmp_path: Path) -> Path:
    """A module that needs a library which is gone."""
    folder = tmp_path / "lib"
    folder.mkdir()
    library = folder / "libneeded.so"
    os.system(f"echo 'int needed(void) {{ return 1; }}' | cc -shared -o {library} -x c -")
    idl = "Module needs; Define one(OUT int r[1]) { *r = 1; }"
    file = compile_idl(f"/* {tmp_path} */ {idl}", f"-L{folder}", "-Wl,--no-as-needed", "-lneeded")
    library.unlink()
    return file


@pytest.mark.parametrize(("worker", "transport"), KINDS)
def test_one_that_does_not_load_is_reported(broken: Path, worker: Any, transport: Any) -> None:
    reported = refused(workers=2, worker=worker, transport=transport, preload=[broken])
    for part in (broken.name, "libneeded.so", "install there", "`preload`"):
        assert part in reported
    assert ("localhost" if transport == "tcp" else socket.gethostname()) in reported


def test_threads_that_workers_would_lack_are_reported(compile_idl: CompileIdl) -> None:
    file = compile_idl(THREADED.replace("STOPS", "0"))
    reported = refused(workers=1, worker="native", preload=[file])
    assert f"loading `{file}` starts threads" in reported
    with opened(workers=1, worker="native", modules=[file]) as grid:
        assert grid.function("threaded/threads")() == 1


def test_threads_that_end_before_forks_are_no_matter(compile_idl: CompileIdl) -> None:
    file = compile_idl(THREADED.replace("STOPS", "1"))
    with opened(workers=2, worker="native", modules=[file], preload=[file]) as grid:
        grid.wait_until_ready(LONG)
        assert grid.function("threaded/threads")() == 1


@pytest.mark.parametrize(("worker", "transport"), [("native", "unix"), ("python", "tcp")])
def test_one_that_ends_the_process_that_loads_it_is_reported(
    compile_idl: CompileIdl, worker: Any, transport: Any
) -> None:
    file = compile_idl(
        "Module dies; Globals {\n#include <stdlib.h>\n"
        "__attribute__((constructor)) static void die(void) { abort(); }\n}\n"
        "Define one(OUT int r[1]) { *r = 1; }"
    )
    reported = refused(workers=2, worker=worker, transport=transport, preload=[file])
    for part in (file.name, "SIGABRT", "`preload`", "take out the one that ends it"):
        assert part in reported

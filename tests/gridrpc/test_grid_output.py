"""Output of calls that comes with their results: `Grid(output="captured")`."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import opened
from processes import LONG, run_script


def speak(word: str, fails: bool = False) -> str:
    print("out", word)
    print("err", word, file=sys.stderr)
    if fails:
        raise KeyError(word)
    return word


async def speak_later(word: str) -> str:
    print("out", word)
    return word


def speak_in_other_ways() -> None:
    library = ctypes.CDLL(None)
    library.puts(b"C")
    library.printf(b"more\n")
    os.write(2, b"descriptor\n")
    command = "echo child; echo child >&2; echo at the end >> /dev/stderr"
    subprocess.run(["sh", "-c", command], check=True)


def print_much(size: int) -> None:
    os.write(1, b"first\n")
    for _ in range(size // 4096):
        os.write(1, b"x" * 4096)
    print("last")


class Unsendable(Exception):
    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.lock = sys.stdout

    def __reduce__(self) -> Any:
        raise TypeError("not to be sent")


def fail_with_it() -> None:
    print("out", flush=True)
    raise Unsendable("word")


def parts(count: int) -> Iterator[int]:
    for part in range(count):
        print("part", part)
        yield part
    print("end")


def array(size: int) -> np.ndarray[Any, Any]:
    print("array of", size)
    return np.ones(size)


def crash(how: str) -> None:
    os.write(2, b"before it\n")
    getattr(ctypes.CDLL(None), how)(3)


def start_a_late_writer(gate: str) -> None:
    command = f"while [ ! -e {gate} ]; do sleep 0.01; done; echo late; touch {gate}.done"
    subprocess.Popen(["sh", "-c", command])


def wait_for(path: str) -> None:
    while not os.path.exists(path):
        pass


class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self) -> int:
        self.count += 1
        print("count", self.count)
        return self.count


@pytest.fixture(scope="module", params=["unix", "tcp"])
def captured(request: pytest.FixtureRequest) -> Iterator[Grid]:
    with opened(workers=2, transport=request.param, output="captured") as grid:
        yield grid


def outputs(call: gridrpc.Call[Any]) -> tuple[str, str]:
    return call.stdout, call.stderr


def test_output_comes_with_the_result(captured: Grid) -> None:
    call = captured.submit(speak, "a")
    assert outputs(call) == ("out a\n", "err a\n")
    assert call.result() == "a"
    # Nothing of a call is left for the next one.
    silent = captured.submit(abs, -1)
    assert (silent.result(), *outputs(silent)) == (1, "", "")
    for function in (f"{__name__}/speak", lambda word: speak(f"{word}"), gridrpc.retrying(speak)):
        other = captured.submit(function, "b")
        assert (other.result(), *outputs(other)) == ("b", "out b\n", "err b\n")
    later = captured.submit(speak_later, "c")
    assert (later.result(), later.stdout) == ("c", "out c\n")


def test_output_of_c_and_of_child_processes(captured: Grid) -> None:
    out, error = outputs(captured.submit(speak_in_other_ways))
    assert sorted(out.splitlines()) == ["C", "child", "more"]
    assert error == "descriptor\nchild\nat the end\n"


def test_output_of_fortran(captured: Grid, tmp_path: Path) -> None:
    source = tmp_path / "say.f90"
    source.write_text(
        "subroutine say() bind(C)\n  print '(a)', 'from Fortran'\nend subroutine say\n"
    )
    library = tmp_path / "say.so"
    subprocess.run(["gfortran", "-shared", "-fPIC", source, "-o", library], check=True)

    def say(path: str) -> None:
        ctypes.CDLL(path).say()

    for _ in range(2):
        assert captured.submit(say, str(library)).stdout == "from Fortran\n"


def test_errors(captured: Grid) -> None:
    call = captured.submit(speak, "a", True)
    with pytest.raises(KeyError, match="a") as raised:
        call.result()
    assert outputs(call) == ("out a\n", "err a\n")
    trace = str(raised.value.__cause__)
    assert "in speak" in trace
    assert "_wrapped" not in trace
    unsendable = captured.submit(fail_with_it)
    with pytest.raises(gridrpc.RemoteError, match="Unsendable: word"):
        unsendable.result()
    assert outputs(unsendable) == ("out\n", "")


def test_the_end_of_much_output_is_kept(captured: Grid) -> None:
    size = 50 << 20
    text = captured.submit(print_much, size).stdout
    first, _, last = text.partition("\n")
    dropped = len(b"first\n") + size + len(b"last\n") - (1 << 20)
    assert first == f"[gridrpc: {dropped} bytes before this are dropped]"
    assert len(last) == 1 << 20
    assert last.strip("x") == "last\n"


@pytest.mark.parametrize("options", [{}, {"chunk": 1}, {"ordered": False}, {"chunk": 4}])
def test_maps(captured: Grid, options: dict[str, Any]) -> None:
    words = [str(number) for number in range(30)]
    results = captured.map(speak, words, **options)
    seen = [(word, results.stdout, results.stderr) for word in results]
    assert sorted(seen) == sorted((word, f"out {word}\n", f"err {word}\n") for word in words)


def test_errors_of_maps(captured: Grid) -> None:
    fails = [False, False, True]
    results = captured.map(speak, "abc", fails)
    assert [next(results), next(results)] == ["a", "b"]
    with pytest.raises(KeyError):
        next(results)
    assert (results.stdout, results.stderr) == ("out c\n", "err c\n")
    results = captured.map(speak, "abc", fails, return_exceptions=True)
    seen = [(type(value), results.stdout) for value in results]
    assert seen == [(str, "out a\n"), (str, "out b\n"), (KeyError, "out c\n")]


def test_results_that_are_awaited(captured: Grid) -> None:
    async def take() -> list[tuple[str, str]]:
        results = captured.map(speak, "ab")
        return [(word, results.stdout) async for word in results]

    assert asyncio.run(take()) == [("a", "out a\n"), ("b", "out b\n")]


def test_a_journal_keeps_results_alone(captured: Grid, grid: Grid, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    results = captured.map(speak, "ab", journal=journal)
    assert [(word, results.stdout) for word in results] == [("a", "out a\n"), ("b", "out b\n")]
    again = captured.map(speak, "abc", journal=journal)
    assert [(word, again.stdout) for word in again] == [("a", ""), ("b", ""), ("c", "out c\n")]
    assert list(grid.map(speak, "abc", journal=journal)) == ["a", "b", "c"]


def test_streams_and_objects(captured: Grid) -> None:
    stream = captured.stream(parts, 3, buffer=2)
    assert [(part, stream.stdout) for part in stream] == [(n, f"part {n}\n") for n in range(3)]
    assert (stream.stdout, stream.stderr) == ("end\n", "")
    with captured.object(Counter) as counter:
        assert counter.add() == 1
        assert counter.add.submit().stdout == "count 2\n"


def test_results_as_arguments_and_arrays(captured: Grid) -> None:
    first = captured.submit(array, 100_000)
    second = captured.submit(np.sum, first)
    assert second.result(LONG) == 100_000
    assert first.stdout == "array of 100000\n"
    assert first.result().shape == (100_000,)


def test_the_faces_of_other_pools(captured: Grid) -> None:
    with gridrpc.Executor(grid=captured) as executor:
        future = executor.submit(speak, "a")
        assert future.result(LONG) == "a"
        assert list(executor.map(speak, "abc")) == ["a", "b", "c"]
    rows = captured.sweep(speak, [{"word": "a"}, {"word": "b"}])
    assert [row["result"] for row in rows] == ["a", "b"]


def test_lost_workers() -> None:
    with opened(workers=1, output="captured") as grid:
        ended = grid.submit(os._exit, 3)
        assert outputs(ended) == ("", "")
        # What a crash says comes through, as without a capture.
        for how, (status, number) in {"abort": (None, signal.SIGABRT), "exit": (3, None)}.items():
            call = grid.submit(crash, how)
            error = call.exception(LONG)
            assert isinstance(error, gridrpc.WorkerLost)
            assert (error.status, error.signal) == (status, number)
            assert "before it" in error.stderr
            assert ("in crash" in error.stderr) == (how == "abort")
            assert outputs(call) == ("", "")
        cancelled = grid.submit(wait_for, "/nothing/there")
        cancelled.cancel()
        assert outputs(cancelled) == ("", "")


def test_processes_that_outlive_their_call(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    with opened(workers=1, output="captured", leftovers="keep") as grid:
        assert grid.submit(start_a_late_writer, gate).stdout == ""
        Path(gate).touch()
        assert grid.submit(wait_for, f"{gate}.done").stdout == ""


def test_nothing_is_printed(tmp_path: Path) -> None:
    source = """
        import sys, gridrpc
        def speak(word):
            print("out", word)
            print("err", word, file=sys.stderr)
        def leave(word):
            speak(word)
            sys.exit(3)
        with gridrpc.Grid(1, output="captured", initializer=speak, initargs=["first"]) as grid:
            print(repr(grid.submit(speak, "a").stdout))
            list(grid.map(speak, "bc"))
            print(type(grid.submit(leave, "last").exception()).__name__)
    """
    ended = run_script(tmp_path, source)
    # What a worker prints before its calls, or as it leaves, is printed.
    lines = {"out first", "'out a\\n'", "out last", "WorkerLost"}
    assert set(ended.stdout.splitlines()) == lines
    assert set(ended.stderr.splitlines()) == {"err first", "err last"}


def test_grids_that_do_not_capture(grid: Grid, basics: Path, tmp_path: Path) -> None:
    results = grid.map(speak, "a")
    stream = grid.stream(parts, 1)
    call = grid.submit(speak, "a")
    for one in (call, results, stream):
        for name in ("stdout", "stderr"):
            with pytest.raises(ValueError, match=r'that needs `Grid\(output="captured"\)`'):
                getattr(one, name)
    stream.close()
    with opened(workers=1, output="captured", modules=[basics]) as captured:
        number = captured.function("basics/number").submit(1)
        with pytest.raises(ValueError, match="a Python function of this program"):
            _ = number.stdout
        with pytest.raises(ValueError, match="a Python function of this program"):
            _ = captured.map(captured.function("basics/number"), [1]).stdout
    with pytest.raises(gridrpc.ConfigError, match="is for Python functions"):
        Grid(1, output="captured", worker="native")
    with pytest.raises(gridrpc.ConfigError, match="'plain' or 'labelled' or 'captured'"):
        Grid(1, output="kept")
    file = tmp_path / "grid.toml"
    file.write_text('[grid]\nworkers = 1\noutput = "captured"\n')
    with Grid(config=file) as captured:
        assert captured.submit(speak, "a").stdout == "out a\n"

"""`map` with a journal: what it has is not run again, and nothing of it is taken on trust."""

from __future__ import annotations

import asyncio
import collections
import functools
import itertools
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
import remote
from gridrpc import Grid, Journal, JournalError, OutcomeUnknown, _fingerprint, _journal
from grids import CompileIdl
from processes import LONG, environment, small_disk, start_script, until, write_script

CHUNKS = pytest.mark.parametrize("chunk", ["auto", 1, 7])
BOTH_ORDERS = pytest.mark.parametrize("ordered", [True, False])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "work.journal"


def noted(folder: str, item: int) -> int:
    """Leaves a trace that it has run."""
    with open(Path(folder, "ran"), "a") as ran:
        ran.write(f"{item}\n")
    return 10 * item


def noted_if_open(folder: str, gate: str, item: int) -> int:
    """The same, where item 2 waits until somebody makes the file `gate`."""
    return noted(folder, item if item != 2 else remote.wait_for(gate, item))


def fails_once(folder: str, item: int) -> int:
    """Raises an error for item 5, unless it did before."""
    noted(folder, item)
    mark = Path(folder, "failed")
    if item == 5 and not mark.exists():
        mark.touch()
        raise ValueError("not today")
    return item


def ran(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "ran").read_text().splitlines()]


@CHUNKS
@BOTH_ORDERS
def test_a_second_run_takes_results_from_the_file(
    grid: Grid, file: Path, tmp_path: Path, chunk: Any, ordered: bool
) -> None:
    work = functools.partial(noted, str(tmp_path))
    expected = [10 * n for n in range(100)]
    how = {"chunk": chunk, "ordered": ordered, "journal": file}
    assert sorted(grid.map(work, range(100), **how)) == expected
    again = list(grid.map(work, range(100), **how))
    assert (again if ordered else sorted(again)) == expected
    assert sorted(ran(tmp_path)) == list(range(100))


@CHUNKS
@BOTH_ORDERS
def test_what_is_missing_is_run_and_lies_between_what_is_there(
    grid: Grid, file: Path, tmp_path: Path, chunk: Any, ordered: bool
) -> None:
    work = functools.partial(noted, str(tmp_path))
    for gap in (range(20, 30), range(50, 51), range(95, 100)):
        # Raised where the item is taken.
        items = (n if n not in gap else 1 // 0 for n in range(100))
        with pytest.raises(ZeroDivisionError):
            list(grid.map(work, items, journal=file, chunk=chunk, ordered=ordered))
    more = list(grid.map(work, range(120), journal=file, chunk=chunk, ordered=ordered))
    assert (more if ordered else sorted(more)) == [10 * n for n in range(120)]
    assert sorted(ran(tmp_path)) == list(range(120))


@CHUNKS
def test_what_raised_an_error_runs_again(
    grid: Grid, file: Path, tmp_path: Path, chunk: Any
) -> None:
    work = functools.partial(fails_once, str(tmp_path))
    with pytest.raises(ValueError, match="not today"):
        list(grid.map(work, range(10), journal=file, chunk=chunk))
    assert list(grid.map(work, range(10), journal=file, chunk=chunk, idempotent=True)) == [
        *range(10)
    ]
    counts = collections.Counter(ran(tmp_path))
    assert counts[5] == 2


def test_errors_in_place_of_results_are_not_kept(grid: Grid, file: Path, tmp_path: Path) -> None:
    work = functools.partial(fails_once, str(tmp_path))
    first = list(grid.map(work, range(10), journal=file, return_exceptions=True))
    assert isinstance(first.pop(5), ValueError)
    assert first == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    assert list(grid.map(work, range(10), journal=file)) == [*range(10)]


RUN = """
    import functools, sys, time
    import gridrpc

    def work(item):
        with open("ran", "a") as ran:
            ran.write(f"{item}\\n")
        time.sleep(0.01)
        return 10 * item

    if __name__ == "__main__":
        idempotent = sys.argv[1:] == ["idempotent"]
        with gridrpc.Grid(workers=3) as grid:
            results = grid.map(
                work, range(300), journal="work.journal", ordered=not idempotent,
                idempotent=idempotent, return_exceptions=True,
            )
            for result in results:
                print(result if isinstance(result, int) else type(result).__name__, flush=True)
"""


def killed_and_run_again(folder: Path, *arguments: str) -> tuple[list[str], str]:
    """What the second run prints."""
    first = start_script(folder, RUN)
    try:
        assert until(lambda: (folder / "ran").exists() and len(ran(folder)) > 100)
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate(timeout=LONG)
    # Workers end what they have begun.
    before = -1
    while before != (before := len(ran(folder))):
        until(lambda: False, 0.2)
    script = write_script(folder, RUN)
    second = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True, text=True, timeout=LONG, cwd=folder, check=True, env=environment(),
    )  # fmt: skip
    return second.stdout.split(), second.stderr


def test_after_a_kill_idempotent_items_run_again(tmp_path: Path) -> None:
    printed, said = killed_and_run_again(tmp_path, "idempotent")
    assert sorted(map(int, printed)) == [10 * n for n in range(300)]
    assert "items have their results" in said
    assert "run again" in said
    counts = collections.Counter(ran(tmp_path))
    assert set(counts) == set(range(300))
    assert max(counts.values()) <= 2


def test_after_a_kill_other_items_are_reported_and_nothing_runs_twice(tmp_path: Path) -> None:
    printed, said = killed_and_run_again(tmp_path)
    counts = collections.Counter(ran(tmp_path))
    assert max(counts.values()) == 1
    unknown = [n for n, result in enumerate(printed) if result == "OutcomeUnknown"]
    assert len(printed) == 300
    assert all(int(printed[n]) == 10 * n for n in range(300) if n not in unknown)
    assert unknown
    # Two calls of each of three workers: not those that were only to be sent.
    assert len(unknown) <= 2 * 3
    assert set(range(300)) - set(unknown) <= set(counts)
    assert "not sent again" in said


def waits_for_the_others(folder: str, item: int) -> int:
    """Item 0 ends when many others have: more than are kept under way."""
    if item == 0:
        assert until(lambda: Path(folder, "ran").exists() and len(ran(Path(folder))) > 20)
        return 0
    return noted(folder, item)


def test_items_behind_one_that_takes_long_are_sent(file: Path, tmp_path: Path) -> None:
    work = functools.partial(waits_for_the_others, str(tmp_path))
    expected = [10 * n for n in range(40)]
    with gridrpc.Grid(workers=2) as grid:
        assert list(grid.map(work, range(40), chunk=1, journal=file)) == expected


def test_items_behind_one_that_takes_long_are_sent_by_async_for(file: Path, tmp_path: Path) -> None:
    async def collected() -> list[int]:
        with gridrpc.Grid(workers=2) as grid:
            return [one async for one in grid.map(work, range(40), chunk=1, journal=file)]

    work = functools.partial(waits_for_the_others, str(tmp_path))
    assert asyncio.run(collected()) == [10 * n for n in range(40)]


def test_an_unknown_outcome_is_raised_where_its_result_would_be(
    grid: Grid, file: Path, tmp_path: Path
) -> None:
    work = functools.partial(noted_if_open, str(tmp_path), str(tmp_path / "gate"))
    with gridrpc.Grid(workers=1) as one:
        results = one.map(work, range(4), chunk=1, journal=file)
        assert [next(results) for _ in range(2)] == [0, 10]
        assert until(lambda: file.read_bytes().count(b"sent") > 2)
        while_running = file.read_bytes()
        Path(tmp_path, "gate").touch()
        assert list(results) == [20, 30]
    file.write_bytes(while_running)
    results = grid.map(work, range(4), chunk=1, journal=file)
    assert [next(results) for _ in range(2)] == [0, 10]
    with pytest.raises(OutcomeUnknown, match="item 2 "):
        next(results)
    assert list(grid.map(work, range(4), chunk=1, journal=file, idempotent=True)) == [
        0, 10, 20, 30,
    ]  # fmt: skip


def cut_behind(file: Path, kind: bytes, number: int) -> None:
    """Cut a journal off behind the record of this kind with this number, from 1."""
    contents = file.read_bytes()
    at = -1
    for _ in range(number):
        at = contents.index(kind, at + 1)
    length = int.from_bytes(contents[at + 16 : at + 24], "little")
    file.write_bytes(contents[: at + 48 + length])


def test_calls_that_were_given_up_before_they_began_run_again(file: Path, tmp_path: Path) -> None:
    work = functools.partial(noted, str(tmp_path))
    with gridrpc.Grid(workers=1) as grid:
        results = grid.map(work, range(1000), chunk=1, journal=file)
        assert next(results) == 0
        results.close()
        again = list(grid.map(work, range(1000), chunk=1, journal=file, return_exceptions=True))
    unknown = sum(isinstance(result, OutcomeUnknown) for result in again)
    assert unknown < 50
    assert max(collections.Counter(ran(tmp_path)).values()) == 1


def other_items() -> Iterator[Any]:
    yield pytest.param(lambda items: items[:-1], "there are 9 items", id="fewer")
    yield pytest.param(lambda items: [*items[:-1], "x"], "has changed", id="other")
    yield pytest.param(lambda items: [*items[1:], items[0]], "has changed", id="moved")


@pytest.mark.parametrize(("change", "message"), [*other_items()])
def test_changed_items_are_noticed(
    grid: Grid, file: Path, change: Callable[[list[Any]], list[Any]], message: str
) -> None:
    items = [f"item {n}" for n in range(10)]
    assert list(grid.map(len, items, journal=file)) == [6] * 10
    before = file.read_bytes()
    with pytest.raises(JournalError, match=message) as caught:
        list(grid.map(len, change(items), journal=file))
    assert caught.value.path == str(file)
    assert file.read_bytes().startswith(before)
    assert list(grid.map(len, items, journal=file)) == [6] * 10


def test_items_are_compared_by_what_they_hold(grid: Grid, file: Path) -> None:
    def items(text: str) -> list[Any]:
        array = np.arange(40_000.0)
        return [(text, text, array), (f"{text}"[:], [1, {"a": text}], array[:3])]

    shared = "".join(["ab", "c"])
    first = list(grid.starmap(describe, items(shared), journal=file))
    assert list(grid.starmap(describe, items("".join(["a", "bc"])), journal=file)) == first
    changed = items("abc")
    changed[0][2][17] = -1
    with pytest.raises(JournalError):
        list(grid.starmap(describe, changed, journal=file))


def describe(*values: Any) -> str:
    return str([getattr(value, "shape", value) for value in values])


def test_results_may_be_anything(grid: Grid, file: Path) -> None:
    for _ in range(2):
        arrays, text, number, none = grid.map(anything, range(4), journal=file)
        assert [array.sum() for array in arrays] == [3.0, 1e6]
        arrays[1][0] = 2.0
        assert (text, number, none) == ("x" * 1_000_000, 1 << 100, None)


def anything(item: int) -> Any:
    arrays = [np.ones(3), np.ones((1000, 1000), order="F")]
    return [arrays, "x" * 1_000_000, 1 << 100, None][item]


CHANGES = {
    "code": "def work(item):\n    return item + 2\n",
    "default": "def work(item, by=2):\n    return item + by\n",
    "global": "BY = 3\ndef work(item):\n    return item + BY\n",
    "helper": "def more(item):\n    return item + 3\ndef work(item):\n    return more(item)\n",
    "method": "class A:\n    def __call__(self, item):\n        return item + 4\nwork = A()\n",
    "state": "from functools import partial\nfrom operator import add\nwork = partial(add, 5)\n",
    "closure": "def make(by):\n    return lambda item: item + by\nwork = make(2)\n",
}


def made(source: str) -> Any:
    variables: dict[str, Any] = {"__name__": "__main__"}
    exec(source, variables)
    return variables["work"]


@pytest.mark.parametrize("kind", CHANGES)
def test_a_changed_function_is_noticed(grid: Grid, file: Path, kind: str) -> None:
    source = CHANGES[kind]
    digit = next(c for c in reversed(source) if c.isdigit())
    other = source.replace(digit, "7")
    expected = list(grid.map(made(source), range(5), journal=file))
    # The same function, made again and a line further down.
    assert list(grid.map(made("\n" + source), range(5), journal=file)) == expected
    with pytest.raises(JournalError, match="has changed since"):
        grid.map(made(other), range(5), journal=file)
    stored = grid.map(made(other), range(6), journal=Journal(file, if_changed="keep"))
    assert list(stored) == [*expected, 12]
    restarted = grid.map(made(other), range(5), journal=Journal(file, if_changed="restart"))
    assert list(restarted) == [n + 7 for n in range(5)]
    assert (file.parent / "work.journal.old").exists()


class Adds:
    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, item: int) -> int:
        return item + self.number


def test_objects_that_were_pickled_are_the_same_functions() -> None:
    before = _fingerprint.of_function(Adds(1))
    pickle.dumps(Adds(1))
    assert _fingerprint.of_function(Adds(1)) == before
    assert _fingerprint.of_function(Adds(2)) != before


def test_another_function_is_reported_by_name(grid: Grid, file: Path) -> None:
    list(grid.map(len, ["a"], journal=file))
    with pytest.raises(JournalError, match=r"begun with `len`, not with `add`"):
        grid.starmap(remote.add, [(1, 2)], journal=file)


def test_functions_of_modules_have_journals(native_grid: Grid, file: Path) -> None:
    arrays = [np.arange(n, dtype=float) for n in range(1, 40)]
    function = native_grid.function("basics/doubled")
    for fn in (function, "basics/doubled"):
        results = native_grid.map(fn, arrays, journal=file)
        assert [list(result) for result in results] == [list(2 * array) for array in arrays]


READER = """
    Module reader;
    Globals {
    #include <stdio.h>
    static int first(const char *path)
    {
        FILE *file = fopen(path, "r");
        int byte = fgetc(file);
        fclose(file);
        return byte;
    }
    }
    Define one(IN int n, IN filename of, OUT int r[1]) Idempotent { r[0] = n * first(of); }
    Define two(IN int n, IN filename of[2], OUT int r[1])
        { r[0] = n * first(of[0]) * first(of[1]); }
"""


@pytest.mark.parametrize("function", ["one", "two"])
@pytest.mark.parametrize("spread", [False, True])
def test_files_that_items_name_are_compared(
    compile_idl: CompileIdl, file: Path, tmp_path: Path, function: str, spread: bool
) -> None:
    given, other = tmp_path / "given", tmp_path / "other"
    given.write_text("\2")
    other.write_text("\3")
    of: Any = given if function == "one" else [other, given]
    expected = [n * (2 if function == "one" else 6) for n in range(4)]

    def results(grid: Grid, count: int = 4) -> list[int]:
        if spread:
            how = [{"of": of, "n": n} for n in range(count)]
            came = grid.starmap(f"reader/{function}", how, journal=file)
        else:
            came = grid.map(f"reader/{function}", range(count), itertools.repeat(of), journal=file)
        return [int(r[0]) for r in came]

    with Grid(1, worker="native", modules=[compile_idl(READER)]) as grid:
        assert results(grid) == expected
        os.utime(given, (1, 1))
        assert results(grid) == expected
        for change in (lambda: given.write_text("\4"), given.unlink):
            change()
            with pytest.raises(JournalError, match="item 0, or a file that it names, has changed"):
                results(grid)
        given.write_text("\2")
        assert results(grid, 5)[:4] == expected


def test_an_unknown_outcome_of_a_compiled_function_names_the_way_to_run_it_again(
    compile_idl: CompileIdl, file: Path
) -> None:
    source = "Module twice; Define of(IN int n, OUT int r[1]) { r[0] = 2 * n; }"
    with Grid(1, worker="native", modules=[compile_idl(source)]) as grid:
        assert [int(r[0]) for r in grid.map("twice/of", range(4), chunk=1, journal=file)] == [
            0, 2, 4, 6,
        ]  # fmt: skip
        cut_behind(file, b"sent", 1)
        with pytest.raises(OutcomeUnknown, match=r"add `Idempotent` to .*if_changed=\"keep\""):
            list(grid.map("twice/of", range(4), chunk=1, journal=file))
        with pytest.raises(TypeError, match="`idempotent=True` out, or add that word"):
            grid.map("twice/of", range(4), journal=file, idempotent=True)
    marked = compile_idl(source.replace(") {", ") Idempotent {"))
    with Grid(1, worker="native", modules=[marked]) as grid:
        kept = Journal(file, if_changed="keep")
        assert [int(r[0]) for r in grid.map("twice/of", range(4), journal=kept)] == [0, 2, 4, 6]


def test_of_large_files_the_size_and_the_time_are_compared(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as sparse:
        sparse.truncate(_fingerprint.LARGEST_READ + 1)
    before = _fingerprint.digest_of_file(large)
    assert before == _fingerprint.digest_of_file(large) != b""
    os.utime(large, (1, 1))
    assert _fingerprint.digest_of_file(large) != before


def test_to_compare_a_fifo_does_not_read_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert _fingerprint.digest_of_file(tmp_path / "fifo") == b""


def test_a_module_that_was_compiled_again_is_noticed(compile_idl: CompileIdl, file: Path) -> None:
    source = "Module twice; Define of(IN int n, OUT int r[1]) Idempotent { r[0] = 2 * n; }"
    for text in (source, source, source.replace("2 *", "3 *")):
        with Grid(1, worker="native", modules=[compile_idl(text)]) as grid:
            if text == source:
                assert [int(r[0]) for r in grid.map("twice/of", range(3), journal=file)] == [
                    0,
                    2,
                    4,
                ]
            else:
                with pytest.raises(JournalError, match="begun with `twice/of`, which has changed"):
                    grid.map("twice/of", range(3), journal=file)


@pytest.mark.parametrize("length", [0, 5, 17, 18, 40, 70, -1, -30, -60])
def test_a_file_that_was_cut_off_continues(grid: Grid, file: Path, length: int) -> None:
    list(grid.map(abs, range(10), journal=file, chunk=2))
    contents = file.read_bytes()
    file.write_bytes(contents[: length if length >= 0 else len(contents) + length])
    assert list(grid.map(abs, range(10), journal=file, idempotent=True)) == [*range(10)]


def test_large_results_that_did_not_reach_the_disk_are_made_again(grid: Grid, file: Path) -> None:
    items = ["a" * 2_000_000, "b" * 3_000_000]
    list(grid.map(str.upper, items, journal=file, chunk=1))
    contents = file.read_bytes()
    # Before anything was known to be on disk.
    contents = contents[: contents.rindex(b"sync")]
    file.write_bytes(contents[:-1_000_000] + bytes(1_000_000))
    results = list(grid.map(str.upper, items, journal=file, idempotent=True))
    assert results == list(map(str.upper, items))


def test_damage_is_reported_and_not_made_worse(grid: Grid, file: Path) -> None:
    list(grid.map(abs, range(10), journal=file, chunk=2))
    contents = file.read_bytes()
    place = contents.index(b"back") + 4
    damaged = contents[:place] + b"\xff" + contents[place + 1 :]
    file.write_bytes(damaged)
    with pytest.raises(JournalError, match=r"is damaged at byte \d+"):
        grid.map(abs, range(10), journal=file)
    assert file.read_bytes() == damaged


@pytest.mark.parametrize("place", ["header", "contents", "sent"])
@pytest.mark.parametrize("behind", [0, 1])
def test_damage_behind_what_was_on_disk_is_reported(
    grid: Grid, file: Path, tmp_path: Path, place: str, behind: int
) -> None:
    """Items that are recorded there would run twice."""
    items = [str(tmp_path)] * 6, range(6)
    list(grid.map(noted, *items, journal=file, chunk=1))
    contents = file.read_bytes()
    # Before anything was known to be on disk.
    first = contents.index(b"sync")
    contents = contents[:first] + contents[first + _journal.HEADER : contents.rindex(b"sync")]
    kind = b"sent" if place == "sent" else b"back"
    starts = [at for at in range(len(contents)) if contents.startswith(kind, at)]
    start = starts[-1 - behind]
    at = start + (_journal.HEADER + 20 if place == "contents" else 10)
    damaged = bytearray(contents)
    damaged[at] ^= 4
    file.write_bytes(damaged)
    with pytest.raises(JournalError, match=rf"is damaged at byte {start}; nothing has been"):
        grid.map(noted, *items, journal=file)
    assert file.read_bytes() == damaged


def forged(
    kind: bytes, first: int, count: int, contents: bytes, digest: bytes = bytes(16)
) -> bytes:
    """A record with checksums as they should be."""
    header = _journal._HEADER.pack(kind, count, first, len(contents), digest)
    header += zlib.crc32(contents).to_bytes(4, "little")
    return header + zlib.crc32(header).to_bytes(4, "little") + contents


def forged_results(values: bytes) -> bytes:
    return _journal._BUFFERS.pack(0) + _journal._LENGTH.pack(len(values)) + values


@pytest.mark.parametrize(
    "records",
    [
        [forged(b"back", 0, 3, b""), forged(b"back", 2, 3, b"")],
        [forged(b"back", 0, 3, b""), forged(b"back", 0, 3, b"")],
        [forged(b"sent", 1 << 63, 1, b"")],
        [forged(b"back", 5, 0xFFFFFFFF, b"")],
        [forged(b"func", 0, 0, b"[]")],
        [forged(b"func", 0, 0, b"{}")],
        [forged(b"func", 0, 0, b"\xff")],
    ],
)
def test_records_that_cannot_be_are_reported(grid: Grid, file: Path, records: list[bytes]) -> None:
    list(grid.map(abs, [], journal=file))
    with file.open("ab") as opened:
        opened.write(b"".join(records))
    with pytest.raises(JournalError, match=r"work\.journal"):
        list(grid.map(abs, range(10), journal=file, return_exceptions=True))


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"\xff" * 40,
        forged_results(b"no pickle"),
        forged_results(pickle.dumps([1, 2, 3])),
        forged_results(pickle.dumps(7)),
    ],
)
def test_results_that_cannot_be_are_reported(grid: Grid, file: Path, contents: bytes) -> None:
    list(grid.map(abs, range(1), journal=file))
    known = file.read_bytes()
    at = known.index(b"back")
    digest = known[at + _journal._HEADER.size - 16 : at + _journal._HEADER.size]
    file.write_bytes(known[:at] + forged(b"back", 0, 1, contents, digest))
    with pytest.raises(JournalError, match=r"results of items 0 to 0, at byte \d+, cannot be read"):
        list(grid.map(abs, range(1), journal=file))


def test_only_files_are_journals(grid: Grid, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    for path, kind in (
        (tmp_path / "fifo", "a FIFO"),
        (tmp_path / "socket", "a socket"),
        (tmp_path, "a directory"),
        (Path("/dev/null"), "a device"),
    ):
        with pytest.raises(JournalError, match=f"{path}: cannot be opened: it is {kind}"):
            grid.map(abs, range(3), journal=path)


def test_a_file_that_others_can_change_is_refused(grid: Grid, file: Path) -> None:
    before = os.umask(0)
    try:
        assert list(grid.map(abs, range(3), journal=file)) == [0, 1, 2]
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o644
    file.chmod(0o666)
    with pytest.raises(JournalError, match=r"can be changed by other users \(mode 666\)"):
        grid.map(abs, range(3), journal=file)
    file.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        with pytest.raises(JournalError, match="belongs to nobody, and what it has is unpickled"):
            grid.map(abs, range(3), journal=file)
        os.chown(file, 0, 0)
    assert list(grid.map(abs, range(3), journal=file)) == [0, 1, 2]


def test_damaged_results_are_reported_when_they_are_read(grid: Grid, file: Path) -> None:
    list(grid.map(bytes, [2_000_000], journal=file))
    contents = file.read_bytes()
    file.write_bytes(contents[:-1_000_000] + b"\1" + contents[-999_999:])
    with pytest.raises(JournalError, match=r"results of items 0 to 0 cannot be read"):
        list(grid.map(bytes, [2_000_000], journal=file))


def test_another_file_is_left_as_it_is(grid: Grid, file: Path) -> None:
    file.write_text("My diary.\n")
    with pytest.raises(JournalError, match="another kind of file"):
        grid.map(abs, range(3), journal=file)
    assert file.read_text() == "My diary.\n"
    with pytest.raises(JournalError, match="cannot be opened"):
        grid.map(abs, range(3), journal=file.parent)
    with pytest.raises(JournalError, match="cannot be opened: No such file"):
        grid.map(abs, range(3), journal=file.parent / "none" / "journal")


def test_two_maps_cannot_use_one_file(grid: Grid, file: Path) -> None:
    first = grid.map(abs, range(3), journal=file)
    with pytest.raises(JournalError, match="is in use"):
        grid.map(abs, range(3), journal=file)
    assert list(first) == [0, 1, 2]
    assert list(grid.map(abs, range(3), journal=file)) == [0, 1, 2]


def test_a_map_that_nobody_asks_for_results_lets_go_of_its_file(grid: Grid, file: Path) -> None:
    for _ in range(3):
        grid.map(abs, range(3), journal=file)
    assert list(grid.map(abs, range(3), journal=file)) == [0, 1, 2]


def test_async_for_keeps_results_as_well(grid: Grid, file: Path) -> None:
    async def taken(most: int) -> list[int]:
        found: list[int] = []
        async for result in grid.map(abs, range(200), journal=file, chunk=1):
            found.append(result)
            if len(found) == most:
                break
        return found

    assert asyncio.run(taken(10)) == [*range(10)]
    results = grid.map(abs, range(200), journal=file, idempotent=True)
    assert list(results) == [*range(200)]
    assert asyncio.run(taken(1000)) == [*range(200)]


def test_a_full_disk_is_reported_and_the_work_continues_later(grid: Grid, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, "1m"):
        file = folder / "work.journal"
        sizes = [100_000] * 30
        taken: list[int] = []
        results = grid.map(bytes, sizes, journal=file, chunk=1, idempotent=True)
        with pytest.raises(JournalError, match="cannot be written: No space left"):
            taken.extend(map(len, results))
        assert 0 < len(taken) <= 10
        subprocess.run(["mount", "-o", "remount,size=16m", folder], check=True)
        results = grid.map(bytes, sizes, journal=file, chunk=1, idempotent=True)
        assert [len(result) for result in results] == sizes


@pytest.mark.parametrize("size", ["16k", "160k"])
def test_a_full_disk_leaves_no_items_in_doubt(grid: Grid, tmp_path: Path, size: str) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk(folder, size):
        file = folder / "work.journal"
        with pytest.raises(JournalError, match=r"No space left on device\. There is no room for"):
            list(grid.map(noted, [str(tmp_path)] * 5000, range(5000), journal=file, chunk=1))
        subprocess.run(["mount", "-o", "remount,size=16m", folder], check=True)
        again = grid.map(noted, [str(tmp_path)] * 5000, range(5000), journal=file)
        assert list(again) == [10 * n for n in range(5000)]
        assert sorted(ran(tmp_path)) == list(range(5000))
        # The room that was not needed is given back.
        assert file.stat().st_blocks * 512 < file.stat().st_size + (64 << 10)


@CHUNKS
def test_items_that_could_not_be_sent_have_not_run(grid: Grid, file: Path, chunk: Any) -> None:
    closed = Grid(workers=1)
    closed.close()
    with pytest.raises(gridrpc.GridClosed):
        list(closed.map(abs, range(10), journal=file, chunk=chunk))
    assert list(grid.map(abs, range(10), journal=file, chunk=chunk)) == list(range(10))


@BOTH_ORDERS
def test_results_are_recorded_while_the_queue_is_filled(
    grid: Grid,
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ordered: bool,
) -> None:
    """A kill in the first seconds of a long map costs only what is under way."""
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for taken in range(250):  # fewer than may be under way
            if taken == 50:
                until(lambda: len(ran(tmp_path)) > 10)
            if taken > 50:
                time.sleep(0.02)  # the first results come back meanwhile
            yield taken

    work = functools.partial(noted, str(tmp_path))
    how = {"idempotent": True, "ordered": ordered, "journal": file}
    results = grid.map(work, items(), **how)
    next(results)
    assert taken < 249
    results.close()
    capsys.readouterr()
    assert len(list(grid.map(work, range(250), **how))) == 250
    kept = re.search(r"journal .*: (\d+) items have their results", capsys.readouterr().err)
    assert kept is not None
    assert 1 <= int(kept[1]) < 250


def test_memory_is_bounded_and_any_number_of_items_can_be_taken(grid: Grid, file: Path) -> None:
    results = grid.map(abs, itertools.count(), journal=file)
    assert list(itertools.islice(results, 20_000)) == [*range(20_000)]
    results.close()
    again = grid.map(abs, itertools.count(), journal=file, return_exceptions=True)
    first = list(itertools.islice(again, 20_000))
    again.close()
    assert first[:10_000] == [*range(10_000)]


def test_if_changed_is_one_of_three(file: Path) -> None:
    with pytest.raises(ValueError, match="`if_changed` is 'ask'"):
        Journal(file, if_changed="ask")  # type: ignore[arg-type]

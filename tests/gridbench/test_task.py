"""The body of a task: it really touches, sleeps, writes and digests."""

from __future__ import annotations

import mmap
import pickle
import subprocess
import sys
import zlib

import numpy as np
import numpy.typing as npt
import pytest

from gridbench.workload.task import DIGEST_BYTES, PAGE, check_task, pattern, run_task


def test_stamps_lie_in_order_and_the_sleep_is_measured() -> None:
    result = run_task(0.02, np.zeros(10, np.uint8), None, 5000)
    assert 0.02 <= result.slept <= result.calc_out - result.calc_in
    assert result.output is not None
    assert result.output.shape == (5000,)
    assert pickle.loads(pickle.dumps(result))[:5] == result[:5]


def test_no_output_is_none() -> None:
    assert run_task(0, b"", None, 0).output is None


def present_pages(region: mmap.mmap, pages: int) -> int:
    """How many of the mapping's pages the process has touched."""
    address = np.frombuffer(region, np.uint8).__array_interface__["data"][0]
    with open("/proc/self/pagemap", "rb") as file:
        file.seek(address // PAGE * 8)
        entries = np.frombuffer(file.read(pages * 8), np.uint64)
    return int((entries >> np.uint64(63)).sum())


@pytest.mark.parametrize("which", ["data", "shared"])
def test_every_page_is_touched_before_calc_in(which: str) -> None:
    pages = 64
    region = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    region.madvise(mmap.MADV_NOHUGEPAGE)
    assert present_pages(region, pages) == 0
    # One byte into a page and one short of the end: the last page has a single byte.
    buffer = np.frombuffer(region, np.uint8)[PAGE - 1 :]
    data, shared = (buffer, None) if which == "data" else (None, buffer)
    run_task(0, data, shared, 0)
    assert present_pages(region, pages) == pages


def test_output_is_written_not_promised() -> None:
    first, second = (run_task(0, None, None, 3 * PAGE).output for _ in range(2))
    assert first is not None
    assert second is not None
    assert not np.shares_memory(first, second)
    assert (first == first[0]).all()


def as_array(content: bytes) -> npt.NDArray[np.uint8]:
    return np.frombuffer(content, np.uint8)


@pytest.mark.parametrize("kind", [as_array, bytes, bytearray, memoryview])
def test_digests_and_pattern_are_what_the_client_expects(kind: type) -> None:
    data, shared = kind(b"abc" * 1000), kind(b"")
    output = check_task(data, shared, 600).output
    assert output is not None
    assert output[:4].tobytes() == zlib.crc32(b"abc" * 1000).to_bytes(4, "little")
    assert output[4:8].tobytes() == bytes(4)
    assert (output[DIGEST_BYTES:] == np.arange(600) % 251).all()
    assert pattern(0).shape == (0,)


def test_wide_elements_are_taken_as_bytes() -> None:
    wide = np.arange(1000, dtype=np.float64)
    output = check_task(wide, wide[:0], 0).output
    assert output is not None
    assert output[:4].tobytes() == zlib.crc32(wide.tobytes()).to_bytes(4, "little")
    run_task(0, wide, wide[:0], 0)


def test_importing_it_loads_no_heavy_library(environment: dict[str, str]) -> None:
    script = "import sys, gridbench.workload.task as t; t.run_task(0, b'x', None, 0);"
    script += (
        "print([m for m in ('numpy', 'pyarrow', 'click', 'rich', 'psutil') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"

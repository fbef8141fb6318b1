"""A server that many clients share: calls, callbacks, objects, shared data, the audit log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from grids import CompileIdl
from processes import HERE, LONG, until
from servers import WORK, Authority, Server, began, offering

pytestmark = pytest.mark.usefixtures("no_modules_here")


class Lab:
    """A server with two users, which the tests of this file share."""

    def __init__(self, folder: Path, config: str) -> None:
        self.authority = Authority(folder)
        self.ann, self.bob = self.authority.user("ann", "staff"), self.authority.user("bob")
        self.server = Server(folder, config, self.authority)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, compile_idl: CompileIdl) -> Iterator[Lab]:
    python = f"""
        [python.site]
        functions = ["noting:noted", "os:getpid", "math:fsum"]
        path = ["{HERE}"]
        """
    config = offering(compile_idl(WORK), workers=2, python=True) + python
    made = Lab(tmp_path_factory.mktemp("lab"), config)
    try:
        yield made
    finally:
        assert made.server.stop() == 0


@pytest.mark.parametrize("way", ["socket", "certificate"])
def test_calls_by_the_socket_and_by_certificate(lab: Lab, way: str) -> None:
    credentials = lab.ann if way == "certificate" else None
    with lab.server.client(credentials) as grid:
        assert grid.function("work/add")(2, 3) == [5]
        x = np.arange(4.0)
        grid.function("work/scale")(2.0, x)
        assert list(x) == [0, 2, 4, 6]
        assert grid.function("work/pid")()[0] != lab.server.pid
        sums = grid.map("work/add", range(300), range(300))
        assert [int(one[0]) for one in sums] == [2 * item for item in range(300)]


@pytest.mark.parametrize("way", ["socket", "certificate"])
@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_003, 20_000_000])
def test_arrays_of_all_sizes(lab: Lab, way: str, size: int) -> None:
    with lab.server.client(lab.ann if way == "certificate" else None) as grid:
        data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
        assert np.array_equal(grid.function("work/copy")(data), data)
        x = np.arange(size // 8, dtype=float)
        grid.function("work/scale")(3.0, x)
        assert np.array_equal(x, 3.0 * np.arange(size // 8))


def test_starmap_calls_python_functions(lab: Lab, tmp_path: Path) -> None:
    with lab.server.client(lab.ann, trusted=True) as grid:
        items: list[Any] = [(str(tmp_path), 1), {"folder": str(tmp_path), "item": 2}] * 50
        assert list(grid.starmap("site/noted", items)) == [10, 20] * 50
        with pytest.raises(TypeError, match="`retries`"):
            grid.map("site/fsum", [[1.0]], retries=2)


@pytest.mark.parametrize("chunk", ["auto", 100])
def test_map_calls_python_functions(lab: Lab, chunk: Any) -> None:
    # A server that takes no code runs no chunks of them.
    with lab.server.client(lab.ann, trusted=True) as grid:
        items = [[float(item), 1.0] for item in range(300)]
        sums = list(grid.map("site/fsum", items, chunk=chunk))
        assert sums == [item + 1.0 for item in range(300)]


def test_users_call_at_the_same_time(lab: Lab, tmp_path: Path) -> None:
    def calls(credentials: Path, base: int) -> list[int]:
        with lab.server.client(credentials) as grid:
            begun = [grid.submit("work/add", base, item) for item in range(200)]
            return [int(call.result(LONG)[0]) for call in begun]

    # Both have a call that runs before either may end.
    log, gate = tmp_path / "log", tmp_path / "gate"
    with lab.server.client(lab.ann) as one, lab.server.client(lab.bob) as other:
        held = [
            grid.submit("work/gated", str(log), str(gate), number)
            for number, grid in enumerate([one, other])
        ]
        assert until(lambda: sorted(began(log)) == [0, 1])
        gate.touch()
        assert [call.result(LONG)[0] for call in held] == [0, 1]
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(calls, [lab.ann, lab.bob], [1000, 2000])
        assert list(results) == [[base + item for item in range(200)] for base in (1000, 2000)]


def test_functions_call_back_to_their_client(lab: Lab) -> None:
    def answer(factor: int) -> Any:
        def give(i: int, a: Any) -> None:
            a[0] = factor * i

        return give

    with lab.server.client(lab.ann) as one, lab.server.client(lab.bob) as other:
        calls = [
            grid.function("work/ask").submit(50, answer(factor))
            for grid, factor in ((one, 3), (other, 7))
        ]
        for call, factor in zip(calls, (3, 7), strict=True):
            assert list(call.result(LONG)) == [factor * i for i in range(50)]


def test_objects_belong_to_their_client(lab: Lab) -> None:
    with lab.server.client(lab.ann) as one, lab.server.client(lab.bob) as other:
        of_one, of_other = one.object("work/counter"), other.object("work/counter")
        assert [int(of_one.add(1)[0]), int(of_other.add(10)[0])] == [1, 10]
        assert [int(of_one.add(1)[0]), int(of_other.add(10)[0])] == [2, 20]
        assert of_one.pid()[0] != of_other.pid()[0]
        one.close()
        assert of_other.add(1)[0] == 21


def test_data_is_shared_with_the_calls_of_a_client(lab: Lab) -> None:
    with ExitStack() as stack:
        clients = [lab.ann, lab.bob]
        grids = [stack.enter_context(lab.server.client(one, trusted=True)) for one in clients]
        shared = [grid.share(np.full(100_000, base)) for base, grid in enumerate(grids, 1)]
        for _ in range(3):
            both = zip(grids, shared, strict=True)
            calls = [grid.submit("site/fsum", data) for grid, data in both]
            assert [call.result(LONG) for call in calls] == [100_000, 200_000]
        grids[0].close()
        assert grids[1].submit("site/fsum", shared[1]).result(LONG) == 200_000


def test_functions_of_the_packages_of_the_server(lab: Lab, tmp_path: Path) -> None:
    with lab.server.client(lab.ann, trusted=True) as grid:
        assert grid.submit("site/noted", str(tmp_path), 4).result(LONG) == 40
        assert (tmp_path / "ran").read_text() == "4\n"
        assert grid.submit("site/getpid").result(LONG) != lab.server.pid
        with pytest.raises(gridrpc.FunctionNotFound, match="has no function `waits`"):
            grid.submit("site/waits", str(tmp_path), 4).result(LONG)
        with pytest.raises(FileNotFoundError, match="nowhere"):
            grid.submit("site/noted", "/nowhere", 4).result(LONG)
    untrusted = pytest.raises(gridrpc.FunctionNotFound, match="trusted = true")
    with lab.server.client(lab.ann) as grid, untrusted:
        grid.submit("site/noted", str(tmp_path), 4)


def test_code_of_clients_is_refused(lab: Lab) -> None:
    with lab.server.client(lab.ann, trusted=True) as grid:
        with pytest.raises(gridrpc.NotPermitted, match="code = true"):
            grid.submit(lambda: 1).result(LONG)
        assert grid.function("work/add")(1, 1) == [2]
    assert until(
        lambda: (
            "gridrpc.NotPermitted" in {record["outcome"] for record in lab.server.audit("refuse")}
        )
    )


def test_the_audit_log_has_each_call(lab: Lab) -> None:
    with lab.server.client(lab.bob) as grid:
        data = np.zeros(1000, np.uint8)
        grid.function("work/copy")(data)

    def ended() -> list[dict[str, Any]]:
        return [
            record
            for record in lab.server.audit("end")
            if (record["user"], record["function"]) == ("bob", "work/copy")
        ]

    assert until(lambda: len(ended()) == 1)
    (record,) = ended()
    assert record["outcome"] == "ok"
    assert re.fullmatch(r"127\.0\.0\.1:\d+", record["address"])
    assert 1000 <= record["bytes_in"] <= 1200
    assert 1000 <= record["bytes_out"] <= 1200
    assert record["seconds"] >= 0
    assert until(lambda: "bob" in {record["user"] for record in lab.server.audit("connect")})

"""Calls whose numbers travel in the byte order that this machine does not have."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from big_endian import CALLBACK, Relay, relayed
from gridrpc import Grid
from grids import PROGRAM, CompileIdl, opened
from servers import ANY, FAILURE, HOST_CALL, REPLY, Wire, arguments, offering, serving

#: Type of the interface language, and NumPy's.
TYPES = {
    "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16", "int32": "int32",
    "uint32": "uint32", "int64": "int64", "uint64": "uint64", "float": "float32",
    "double": "float64", "scomplex": "complex64", "dcomplex": "complex128",
}  # fmt: skip
#: Elements that go in the message, and behind it.
SMALL, LARGE = 5, 60_000
#: Of doubles in the order that this machine does not have.
FOREIGN = np.dtype(float).newbyteorder()

IDL = """Module orders;
Globals {
    #include <complex.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
}
""" + "\n".join(
    f"Define reversed_{kind}(IN int n, IN {kind} a[n], OUT {kind} r[n])"
    " { for (int i = 0; i < n; i++) r[i] = a[n - 1 - i]; }"
    for kind in TYPES
)
IDL += """
Define mixed(IN int n, IN double a[n], IN int b[2], IN dcomplex c, IN string s, INOUT double d[n],
             OUT double r[n], OUT int length[1])
    {
        for (int i = 0; i < n; i++) {
            d[i] += a[i] + b[0] - b[1];
            r[i] = creal(c) - cimag(c);
        }
        *length = strlen(s);
    }
Define parts(IN int n, IN int sizes[n], IN int values[sizes[0] + sizes[1]], OUT long sum[1])
    { *sum = 0; for (int i = 0; i < sizes[0] + sizes[1]; i++) *sum += values[i]; }
Define some(IN int n, IN double a[n:1,n], OUT double sum[1])
    { *sum = 0; for (int i = 1; i < n; i++) *sum += a[i]; }
Define even(IN int n, INOUT double a[n:0,n,2])
    { for (int i = 0; i < n; i += 2) a[i] += 1; }
Define again(IN int n, INOUT double a[n]) Idempotent
    { for (int i = 0; i < n; i++) a[i] *= 2; }
Define parts_of(IN string s[2], OUT string r[2], INOUT string t)
    { r[0] = strdup(s[1]); r[1] = 0; *t = "changed"; }
Define files(IN filename a, OUT filename b)
    {
        FILE *from = fopen(a, "r"), *to = fopen(b, "w");
        for (int c; (c = fgetc(from)) != EOF;) fputc(c, to);
        fclose(from);
        fclose(to);
    }
Define ask(IN int n, IN double a[n], OUT double r[n],
           answer(IN int n, IN double x[n], IN dcomplex c, IN string s, INOUT double y[n]))
    { for (int i = 0; i < n; i++) r[i] = i; answer(n, a, 2 + 1 * I, "ask", r); }
Define fails(IN int n, IN int a[n], OUT int r[n])
    { if (a[0] == 7) exit(3); for (int i = 0; i < n; i++) r[i] = a[i] + 1; }
Define twice(IN int n, IN short a[n], OUT int r[1]) { *r = 2 * a[0]; }
"""


def foreign(array: np.ndarray) -> np.ndarray:
    """The same numbers in the other byte order."""
    return array.astype(array.dtype.newbyteorder())


@pytest.fixture(scope="module")
def module(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [0, 1, SMALL, LARGE])
def test_elements_of_every_type(each_module_grid: Grid, kind: str, size: int) -> None:
    a = (np.arange(size) % 120 * 257 % 30_000).astype(TYPES[kind])
    if TYPES[kind].startswith("complex"):
        a = a * np.array(1 + 2j, TYPES[kind])
    result = each_module_grid.function(f"orders/reversed_{kind}")(foreign(a))
    assert result.dtype == np.dtype(TYPES[kind])
    np.testing.assert_array_equal(result, a[::-1])


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("is_shared", [False, True])
def test_other_arguments_of_such_a_call(each_module_grid: Grid, n: int, is_shared: bool) -> None:
    a = np.arange(float(n))
    for b in (np.array([7, 3], np.int32), foreign(np.array([7, 3], np.int32))):
        d = gridrpc.empty(n, np.float64) if is_shared else np.empty(n)
        d[...] = 0.5
        r = gridrpc.empty(n, np.float64)
        out = (r, None) if is_shared else None
        given = (foreign(a), b, 3 + 1j, "ünï", d)
        found, length = each_module_grid.function("orders/mixed")(*given, out=out)
        np.testing.assert_array_equal(d, a + 4.5)
        np.testing.assert_array_equal(found, np.full(n, 2.0))
        assert length[0] == len("ünï".encode())
    # The largest array decides: here it has this machine's order.
    small = foreign(np.array([7, 3], np.int32))
    d = np.zeros(n)
    each_module_grid.function("orders/mixed")(a, small, 1j, "", d)
    np.testing.assert_array_equal(d, a + 4)


def test_sizes_follow_from_numbers_of_the_other_order(each_module_grid: Grid) -> None:
    parts = each_module_grid.function("orders/parts")
    sizes, values = np.array([2, 3], np.int32), np.arange(5, dtype=np.int32)
    for one in (sizes, foreign(sizes)):
        assert parts(one, foreign(values))[0] == 10


def test_a_part_of_an_array(each_module_grid: Grid) -> None:
    some = each_module_grid.function("orders/some")
    for n in (SMALL, LARGE):
        a = np.arange(float(n)) + 1
        assert some(foreign(a))[0] == a[1:].sum()


def test_many_items_of_a_map(each_module_grid: Grid) -> None:
    items = [np.array([n], np.int16) for n in range(40)]
    function = each_module_grid.function("orders/twice")
    twice = list(each_module_grid.map(function, map(foreign, items)))
    assert [int(np.ravel(one)[0]) for one in twice] == [2 * n for n in range(40)]


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("is_shared", [False, True])
def test_results_in_arrays_of_the_other_order(
    each_module_grid: Grid, n: int, is_shared: bool
) -> None:
    """They are converted on the way back, whatever the order of the other arguments."""
    a = np.arange(float(n))
    b = np.array([7, 3], np.int32)

    def array(value: float) -> np.ndarray:
        made = gridrpc.empty(n, FOREIGN) if is_shared else np.empty(n, FOREIGN)
        made[...] = value
        return made

    for given in (a, foreign(a)):
        d, r = array(0.5), array(9)
        length = np.zeros(1, np.int32)
        each_module_grid.function("orders/mixed")(given, b, 3 + 1j, "text", d, out=(r, length))
        assert d.dtype == r.dtype == FOREIGN
        np.testing.assert_array_equal(d, a + 4.5)
        np.testing.assert_array_equal(r, np.full(n, 2.0))
        assert length[0] == 4
    twice = array(1.5)
    each_module_grid.function("orders/again")(twice)
    np.testing.assert_array_equal(twice, np.full(n, 3.0))


def test_a_part_of_an_array_of_the_other_order_is_changed(each_module_grid: Grid) -> None:
    for n in (SMALL, LARGE):
        for dtype in (np.dtype(float), FOREIGN):
            a = np.arange(n).astype(dtype)
            each_module_grid.function("orders/even")(a)
            wanted = np.arange(float(n))
            wanted[::2] += 1
            np.testing.assert_array_equal(a, wanted)


@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_a_server_passes_the_order_on(tmp_path: Path, module: Path, n: int) -> None:
    a = np.arange(float(n)) * (1 + 1j)
    with serving(tmp_path, offering(module)) as server, server.client() as grid:
        result = grid.function("orders/reversed_dcomplex")(foreign(a))
        np.testing.assert_array_equal(result, a[::-1])
        d = np.zeros(n)
        given = (foreign(a.real), np.array([2, 1], np.int32), 5 + 1j, "text", d)
        found, length = grid.function("orders/mixed")(*given)
        np.testing.assert_array_equal(d, a.real + 1)
        assert (found[0], length[0]) == (4.0, 4)
        detached = grid.function("orders/reversed_double").detach(foreign(a.real))
        np.testing.assert_array_equal(grid.attach(detached).result(), a.real[::-1])


# ---- A client of the other order, made by hand


def big_sections(*parts: bytes) -> bytes:
    heads = b"".join(struct.pack(">BQ", 0, len(part)) for part in parts)
    return struct.pack(">H", len(parts)) + heads + b"".join(parts)


def big_call(wire: Wire, number: int, values: bytes, *parts: bytes) -> None:
    """Call function 1 in a frame of big-endian numbers."""
    body = struct.pack(">QIIBH", number, 1, ANY, 0, 0) + big_sections(values, *parts)
    head = struct.pack(">BcBBHII", 3, b"B", HOST_CALL, 0, 0, len(body), 0)
    wire.socket.sendall(b"GR" + head + body)


def big_values(n: int, elements: int) -> bytes:
    """`n`, an array of so many doubles in section 1, and a result."""
    array = struct.pack(">BBBHHQ", 5, 10, 0, 1, 1, elements)
    return struct.pack(">HBq", 3, 1, n) + array + b"\0"


def test_frames_of_both_orders_and_truncated_elements(tmp_path: Path, module: Path) -> None:
    with serving(tmp_path, offering(module)) as server, server.connect() as wire:
        wire.serve()
        wire.name(1, "orders/reversed_double")
        whole = struct.pack(">3d", 1.0, 2.0, 3.5)
        big_call(wire, 1, big_values(3, 3), whole)
        kind, body = wire.receive(REPLY, FAILURE, 0)
        assert kind == REPLY
        assert body.endswith(struct.pack("<3d", 3.5, 2.0, 1.0))
        # Too few bytes, too many, an incomplete element, none, and other numbers of elements.
        for number, (elements, content) in enumerate(
            [
                (3, whole[:-8]), (3, whole + whole), (3, whole[:-1]), (3, b""), (2, whole),
                (1 << 62, whole), ((1 << 64) - 1, whole),
            ],
            start=2,
        ):  # fmt: skip
            big_call(wire, number, big_values(3, elements), content)
            _, message = wire.failure()
            assert "argument `a`" in message
        # Values in little-endian order in a frame that is marked as big-endian.
        big_call(wire, 20, arguments(3, None, None)[0], whole)
        assert wire.failure()
        # Values that end within a number.
        big_call(wire, 21, big_values(3, 3)[:-3], whole)
        assert wire.failure()
        # The server and its worker serve on.
        big_call(wire, 22, big_values(3, 3), whole)
        assert wire.receive(REPLY, FAILURE, 0)[0] == REPLY


# ---- A server of the other order

S390X = os.environ.get("GRIDRPC_S390X")
"""The program `gridrpc` for that machine, as scripts/test-big-endian builds it. Without it the
server is one of this machine, behind a relay that turns what it sends."""


def compiled_for_s390x(folder: Path) -> Path:
    (folder / "orders.idl").write_text(IDL)
    compiler = {**os.environ, "CC": "s390x-linux-gnu-gcc"}
    subprocess.run([PROGRAM, "compile", "orders.idl"], cwd=folder, check=True, env=compiler)
    return folder / "orders.so"


@pytest.fixture(scope="module")
def big_server(
    tmp_path_factory: pytest.TempPathFactory, module: Path
) -> Iterator[tuple[Grid, list[Relay]]]:
    folder = tmp_path_factory.mktemp("big")
    if S390X is not None:
        offered = offering(compiled_for_s390x(folder))
        with (
            serving(folder, offered, program=Path(S390X).absolute()) as server,
            server.client() as grid,
        ):
            yield grid, []
        return
    with (
        serving(folder, offering(module)) as server,
        relayed(server.socket, folder) as (url, relays),
        opened(servers=[url]) as grid,
    ):
        yield grid, relays
        # All answers have been turned: none has come in this machine's order.
        assert sum(relay.counts[REPLY] for relay in relays) > 0


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("size", [0, 1, SMALL, LARGE])
def test_results_of_every_type_from_a_big_endian_server(
    big_server: tuple[Grid, list[Relay]], kind: str, size: int
) -> None:
    grid, _ = big_server
    a = (np.arange(size) % 120 * 257 % 30_000).astype(TYPES[kind])
    if TYPES[kind].startswith("complex"):
        a = a * np.array(1 + 2j, TYPES[kind])
    for given in (a, foreign(a)):
        result = grid.function(f"orders/reversed_{kind}")(given)
        assert result.dtype == a.dtype
        np.testing.assert_array_equal(result, a[::-1])
        # Into an array of the caller, which has one of the two orders.
        out = np.empty_like(given)
        grid.function(f"orders/reversed_{kind}")(a, out=out)
        np.testing.assert_array_equal(out, a[::-1])


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("is_shared", [False, True])
def test_all_kinds_of_results_from_a_big_endian_server(
    big_server: tuple[Grid, list[Relay]], n: int, is_shared: bool
) -> None:
    test_other_arguments_of_such_a_call(big_server[0], n, is_shared)
    test_results_in_arrays_of_the_other_order(big_server[0], n, is_shared)
    test_a_part_of_an_array_of_the_other_order_is_changed(big_server[0])


def test_strings_and_files_from_a_big_endian_server(
    big_server: tuple[Grid, list[Relay]], tmp_path: Path
) -> None:
    grid, _ = big_server
    found = grid.function("orders/parts_of")(["one", "tw\u00f6"], "given")
    assert list(found[0]) == ["tw\u00f6", None]
    assert found[1] == "changed"
    (tmp_path / "in").write_text("content")
    grid.function("orders/files")(str(tmp_path / "in"), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "content"


@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_callbacks_of_a_big_endian_server(big_server: tuple[Grid, list[Relay]], n: int) -> None:
    grid, relays = big_server
    before = sum(relay.counts[CALLBACK] for relay in relays)
    a = np.arange(float(n)) * 3

    def answer(count: int, x: np.ndarray, c: complex, s: str, y: np.ndarray) -> None:
        assert (count, c, s) == (n, 2 + 1j, "ask")
        y += x

    result = grid.function("orders/ask")(a, answer=answer)
    np.testing.assert_array_equal(result, np.arange(n) * 4.0)
    assert not relays or sum(relay.counts[CALLBACK] for relay in relays) == before + 1


def test_many_items_on_a_big_endian_server(big_server: tuple[Grid, list[Relay]]) -> None:
    grid, _ = big_server
    function = grid.function("orders/reversed_int32")
    items = [np.arange(n, n + 3, dtype=np.int32) for n in range(40)]
    for item, result in zip(items, grid.map(function, items), strict=True):
        np.testing.assert_array_equal(result, item[::-1])
    arrays = [np.full(3, float(n)) for n in range(40)]
    list(grid.map(grid.function("orders/even"), arrays))
    np.testing.assert_array_equal(arrays[9], [10.0, 9.0, 10.0])
    # What remains of items whose worker is gone, and the error of the lost one.
    fails = grid.function("orders/fails")
    given = [np.array([n], np.int32) for n in range(12)]
    results = list(grid.map(fails, given, return_exceptions=True))
    lost = [n for n, result in enumerate(results) if isinstance(result, Exception)]
    assert lost == [7]
    assert [int(np.ravel(one)[0]) for n, one in enumerate(results) if n != 7] == [
        n + 1 for n in range(12) if n != 7
    ]


def test_detached_calls_of_a_big_endian_server(big_server: tuple[Grid, list[Relay]]) -> None:
    grid, _ = big_server
    a = np.arange(9.0)
    for given in (a, foreign(a)):
        detached = grid.function("orders/reversed_double").detach(given)
        np.testing.assert_array_equal(grid.attach(detached).result(), a[::-1])

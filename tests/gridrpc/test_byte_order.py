"""Calls whose numbers travel in the byte order that this machine does not have."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import CompileIdl
from servers import ANY, FAILURE, HOST_CALL, REPLY, Wire, arguments, offering, serving

#: Type of the interface language, and NumPy's.
TYPES = {
    "int8": "int8", "uint8": "uint8", "int16": "int16", "uint16": "uint16", "int32": "int32",
    "uint32": "uint32", "int64": "int64", "uint64": "uint64", "float": "float32",
    "double": "float64", "scomplex": "complex64", "dcomplex": "complex128",
}  # fmt: skip
#: Elements that go in the message, and behind it.
SMALL, LARGE = 5, 60_000

IDL = "Module orders;\nGlobals { #include <string.h> }\n" + "\n".join(
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
Define again(IN int n, INOUT double a[n]) Idempotent
    { for (int i = 0; i < n; i++) a[i] *= 2; }
Define twice(IN int n, IN short a[n], OUT int r[1]) { *r = 2 * a[0]; }
""".replace("#include <string.h>", "#include <complex.h>\n#include <string.h>")


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


def test_arrays_that_are_changed_have_this_machine_s_order(each_module_grid: Grid) -> None:
    a = foreign(np.ones(3))
    for name in ("mixed", "again"):
        function = each_module_grid.function(f"orders/{name}")
        rest = (np.ones(3), np.ones(2, np.int32), 1j, "") if name == "mixed" else ()
        with pytest.raises(gridrpc.ArgumentError, match=r"another byte order .* \(a\.astype"):
            function(*rest, a)


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

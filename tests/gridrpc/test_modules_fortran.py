"""Functions of compiled modules that are written in Fortran."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gridrpc
from gridrpc import Grid
from grids import PROGRAM, opened

SOURCE = """
subroutine scale(n, factor, x)
  integer, intent(in) :: n
  double precision, intent(in) :: factor
  double precision, intent(inout) :: x(n)
  x = factor * x
end subroutine

subroutine multiply(n, m, k, a, b, c)
  integer, intent(in) :: n, m, k
  double precision, intent(in) :: a(n, k), b(k, m)
  double precision, intent(out) :: c(n, m)
  c = matmul(a, b)
end subroutine

subroutine lengths(flag, text, other, n, r)
  character(len=1), intent(in) :: flag
  character(len=*), intent(in) :: text, other
  integer, intent(in) :: n
  integer, intent(out) :: r(4)
  r = [ichar(flag), len(text), len(other), n]
end subroutine

subroutine greeting(name, text)
  character(len=*), intent(in) :: name
  character(len=*), intent(out) :: text
  text = 'hello ' // name
end subroutine

subroutine kinds(s, i, l, f, z, b, r)
  integer(2), intent(in) :: s
  integer(4), intent(in) :: i
  integer(8), intent(in) :: l
  real(4), intent(in) :: f
  complex(8), intent(in) :: z
  integer(1), intent(in) :: b
  double precision, intent(out) :: r(7)
  r = [dble(s), dble(i), dble(l), dble(f), dble(real(z)), dble(aimag(z)), dble(b)]
end subroutine

subroutine integral(a, b, n, f, r)
  double precision, intent(in) :: a, b
  integer, intent(in) :: n
  double precision, intent(out) :: r(1)
  external :: f
  double precision :: x, y
  integer :: i
  r = 0
  do i = 1, n
    x = a + (i - 0.5d0) * (b - a) / n
    call f(x, y)
    r = r + y * (b - a) / n
  end do
end subroutine

subroutine stops(code)
  integer, intent(in) :: code
  integer :: few(3)
  character(len=3) :: word = 'one'
  select case (code)
  case (1)
    error stop 3
  case (2)
    error stop 'singular matrix'
  case (3)
    stop
  case (4)
    stop 7
  case (5)
    few(code - 1) = 1  ! index 4
    print *, few
  case (6)
    read (word, *) few
  end select
end subroutine

subroutine prints(n)
  integer, intent(in) :: n
  print '(a, i0)', 'from Fortran ', n
end subroutine
"""

IDL = """
Module fortran;
Define scale(IN int n, IN double factor, INOUT double x[n]) Required "parts.o"
    Calls "Fortran" scale(n, factor, x);
Define multiply(IN int n, IN int m, IN int k, IN double a[n][k], IN double b[k][m],
                OUT double c[n][m])
    Calls "Fortran" multiply(n, m, k, a, b, c);
Define lengths(IN char flag, IN string text, IN string other, IN int n, OUT int r[4])
    Calls "Fortran" lengths(flag, text, other, n, r);
Define greeting(IN string name, OUT char text[20]) Calls "Fortran" greeting(name, text);
Define kinds(IN short s, IN int i, IN long l, IN float f, IN dcomplex z, IN char b,
             OUT double r[7])
    Calls "Fortran" kinds(s, i, l, f, z, b, r);
Define integral(IN double a, IN double b, IN int n, f(IN double x, OUT double y[1]),
                OUT double r[1])
    Calls "Fortran" integral(a, b, n, f, r);
Define stops(IN int code) Calls "Fortran" stops(code);
Define prints(IN int n) Calls "Fortran" prints(n);
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fortran")
    (folder / "parts.f90").write_text(SOURCE)
    (folder / "fortran.idl").write_text(IDL)
    compiler = ["gfortran", "-fPIC", "-fcheck=bounds", "-c", "parts.f90"]
    subprocess.run(compiler, cwd=folder, check=True)
    subprocess.run([PROGRAM, "compile", "fortran.idl"], cwd=folder, check=True)
    return folder / "fortran.so"


@pytest.fixture(scope="module", params=["native", "python"])
def fortran(request: pytest.FixtureRequest, module: Path) -> Iterator[Grid]:
    with opened(workers=1, worker=request.param, modules=[module]) as grid:
        yield grid


@pytest.mark.parametrize("size", [3, 100_000])
def test_scalars_go_by_address_and_arrays_change_in_place(fortran: Grid, size: int) -> None:
    x = np.arange(size) + 1.0
    fortran.function("fortran/scale")(-2.0, x)
    np.testing.assert_array_equal(x, -2.0 * (np.arange(size) + 1))


@pytest.mark.parametrize("n", [3, 150])
def test_matrices_are_stored_by_columns(fortran: Grid, n: int) -> None:
    rng = np.random.default_rng(n)
    a = np.asfortranarray(rng.random((n, 7)))
    b = np.asfortranarray(rng.random((7, 5)))
    c = fortran.function("fortran/multiply")(a, b)
    assert c.flags.f_contiguous
    np.testing.assert_allclose(c, a @ b)


@pytest.mark.parametrize("chunk", [1, 4])
def test_matrices_of_many_items_are_stored_by_columns(fortran: Grid, chunk: int) -> None:
    matrices = [np.asfortranarray(np.arange(6.0).reshape(2, 3) + n) for n in range(6)]
    others = [np.asfortranarray(np.arange(12.0).reshape(3, 4))] * 6
    products = fortran.map(fortran.function("multiply"), matrices, others, chunk=chunk)
    for a, b, c in zip(matrices, others, products, strict=True):
        assert c.flags.f_contiguous
        np.testing.assert_array_equal(c, a @ b)


def test_texts_have_their_length(fortran: Grid) -> None:
    lengths = fortran.function("fortran/lengths")
    assert lengths("N", "three", "", 9).tolist() == [ord("N"), 5, 0, 9]
    text = fortran.function("fortran/greeting")("you")
    assert text.tobytes() == b"hello you".ljust(20)


def test_numbers_of_every_kind(fortran: Grid) -> None:
    r = fortran.function("fortran/kinds")(-2, 3, 2**40, 0.5, 1 - 2j, -1)
    assert r.tolist() == [-2, 3, 2**40, 0.5, 1, -2, -1]


def test_fortran_calls_back(fortran: Grid) -> None:
    def square(x: float, y: Any) -> None:
        y[0] = x * x

    assert fortran.function("fortran/integral")(0.0, 3.0, 100, square)[0] == pytest.approx(
        9, rel=1e-3
    )


@pytest.mark.parametrize(
    ("code", "said", "status", "written"),
    [
        (1, "ERROR STOP 3", 3, "ERROR STOP 3"),
        (2, "ERROR STOP singular matrix", 1, "ERROR STOP singular matrix"),
        (3, "STOP", 0, ""),
        (4, "STOP 7", 7, "STOP 7"),
        (5, "Index '4' of dimension 1 of array 'few' above upper bound of 3", 2, "upper bound"),
        # The library has found this itself.
        (6, "Bad integer for item 1 in list input", 2, "Fortran runtime error: Bad integer"),
    ],
)
def test_stop_and_errors_of_fortran_are_errors_of_the_call(
    fortran: Grid, code: int, said: str, status: int, written: str
) -> None:
    with pytest.raises(gridrpc.RemoteError) as raised:
        fortran.function("fortran/stops")(code)
    assert raised.value.type_name == "gridrpc.FunctionExited"
    end = f"the function ended its process with status {status} instead of returning"
    message = str(raised.value).splitlines()[0]
    assert message.endswith(f"{said}: {end}" if said else f"FunctionExited: {end}")
    assert written in raised.value.stderr
    fortran.function("fortran/stops")(0)


def test_what_fortran_prints_is_seen_at_once(
    module: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with opened(workers=1, worker="native", modules=[module], output="labelled") as grid:
        grid.function("fortran/prints")(5)
        grid.function("fortran/prints")(6)
    out = capfd.readouterr().out
    assert "[worker 0] from Fortran 5\n[worker 0] from Fortran 6\n" in out

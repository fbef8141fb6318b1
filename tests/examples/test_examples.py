"""The examples of compiled modules are built as their READMEs say, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = Path(sys.prefix) / "bin" / "gridrpc"
SECONDS = 120


def copy_of(example: str, folder: Path) -> Path:
    """A copy to build in: the sources stay as they are."""
    built = (
        "*.so",
        "*.o",
        "*.mod",
        "*.nc",
        "solve",
        "solve_c",
        "solve_fortran",
        "pi_task_farm",
        "farm_*",
    )
    left = shutil.ignore_patterns(*built)
    return Path(shutil.copytree(EXAMPLES / example, folder / example, ignore=left))


def make(folder: Path, *targets: str, **environment: str) -> str:
    ran = subprocess.run(
        [
            "make",
            "--no-print-directory",
            f"GRIDRPC={PROGRAM}",
            f"PYTHON={sys.executable}",
            *targets,
        ],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "warning" not in ran.stderr, ran.stderr
    return ran.stdout


def test_lapack_computes_what_numpy_computes(tmp_path: Path) -> None:
    folder = copy_of("lapack", tmp_path)
    table = make(folder, "run").splitlines()
    rows = [line.split() for line in table[table.index(HEAD) + 1 :]]
    functions = ["dgemm", "dgesv", "dgetrf", "dgetrs", "dsyev", "dgels", "zgesv"]
    assert [row[0] for row in rows] == functions
    for name, off, _, there, back in rows:
        assert float(off) < 100, name
        # Matrices have 1,280,000 bytes each.
        assert int(there) < 30_000, f"{name} copies matrices"
        assert int(back) < 30_000, f"{name} copies matrices"


HEAD = "function  rounding errors     ms  bytes moved there  and back"


def test_the_portfolio_is_worth_what_numpy_says(tmp_path: Path) -> None:
    folder = copy_of("montecarlo", tmp_path)
    make(folder, "modules")
    said = subprocess.run(
        [sys.executable, "portfolio.py", "--scenarios", "40", "--workers", "2"],
        cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stdout + said.stderr
    assert "value at risk, 95 %, of 40 scenarios" in said.stdout


def test_pi_is_about_pi(tmp_path: Path) -> None:
    import gridrpc

    folder = copy_of("montecarlo", tmp_path)
    make(folder, "modules")
    with gridrpc.Grid(workers=2, worker="native", modules=[folder]) as grid:
        counts = grid.map(grid.function("pi/pi_trial"), range(20), [100_000] * 20)
        pi = 4 * sum(int(count[0]) for count in counts) / 2_000_000
    assert pi == pytest.approx(3.14159, abs=0.01)


@pytest.mark.parametrize(
    ("example", "command", "said"),
    [
        ("lapack", ["./solve", "", "300"], "order 300: residual"),
        ("montecarlo", ["./pi_task_farm", "", "20", "100000"], "pi is about 3.1"),
    ],
)
def test_clients_in_c_compute_what_they_should(
    tmp_path: Path, example: str, command: list[str], said: str
) -> None:
    folder = copy_of(example, tmp_path)
    make(folder, "modules", "clients", PKG_CONFIG_PATH=f"{sys.prefix}/lib/pkgconfig")
    environment = {**os.environ, "GRIDRPC_MODULE_PATH": str(folder)}
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(said)

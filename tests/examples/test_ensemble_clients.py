"""The clients of examples/ensemble: equal forecasts in three languages, NetCDF, failing members."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from test_examples import PROGRAM, SECONDS, copy_of, make

import gridrpc

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy_of("ensemble", tmp_path_factory.mktemp("ensemble"))
    strict = "-O2 -Wall -Wextra -Werror"
    make(folder, "ensemble.so", "clients", FFLAGS=strict, CFLAGS=strict)
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    """What is built, in a folder of the test's own."""
    return Path(shutil.copytree(built, tmp_path / "ensemble"))


def run(folder: Path, *command: str, status: int = 0) -> tuple[str, str]:
    """What a command prints, and what it says beside."""
    ran = subprocess.run(
        command, cwd=folder, env={**os.environ, "GRIDRPC_MODULE_PATH": "."}, text=True,
        capture_output=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout, ran.stderr


def python(folder: Path, *arguments: str, status: int = 0) -> tuple[str, str]:
    return run(folder, sys.executable, *arguments, status=status)


def spread_of(folder: Path, members: int, days: int) -> float:
    """The spread of the vorticity, by NumPy."""
    with gridrpc.Grid(2, worker="native", modules=[folder]) as grid:
        calls = ((20, member, 1.0) for member in range(members))
        initial = grid.starmap("ensemble/initial_state", calls)
        settings = folder / "settings.nml"
        results = grid.starmap(
            "ensemble/forecast", ((20, 4 * days, settings, state) for state in initial)
        )
        last = np.array([one.states[:, -1] for one in results])
    variances = last.var(axis=0)
    return float(np.sqrt(variances[:21].sum() + 2 * variances[21:].sum()))


def test_clients_in_all_languages_forecast_the_same(folder: Path) -> None:
    for program in ("./farm_c", "./farm_fortran"):
        printed, _ = run(folder, program, "", "7", "4")
        begin, _, number = printed.partition(" is ")
        assert begin == "7 of 7 members, day 4: the spread of the vorticity"
        assert float(number.split()[0]) == pytest.approx(spread_of(folder, 7, 4), rel=1e-3)
        assert run(folder, program, "", "none", status=1)[1].startswith("members and days have")


def test_xarray_reads_the_ensemble(folder: Path) -> None:
    printed, _ = python(folder, "ensemble.py", "--members", "6", "--days", "5", "--workers", "2")
    assert printed == "6 of 6 members have forecasts of 5 days\n"
    with xr.open_dataset(folder / "ensemble.nc") as data:
        assert dict(data.sizes) == {"member": 6, "day": 20, "latitude": 32, "longitude": 64}
        height = data.height
        assert height.units == "m"
        assert height.dtype == "float32"
        assert height.notnull().all()
        # High in the tropics and low at the poles, and less so in the mean of all.
        zonal = height.mean(("member", "day", "longitude"))
        assert float(zonal.sel(latitude=0, method="nearest")) > 5500
        assert float(zonal[0]) < 5100
        assert float(zonal[-1]) < 5100
        assert float(data.latitude[0]) == pytest.approx(-85.76, abs=0.01)
        # Members differ more and more.
        spread = height.std("member").mean(("latitude", "longitude"))
        assert 2 * float(spread.sel(day=1)) < float(spread.sel(day=5))
        assert set(data.failure.values) == {""}

    printed, _ = python(folder, "maps.py", "--day", "5", "--below", "5300", "--out", "five.html")
    assert printed == "maps: five.html\n"
    page = (folder / "five.html").read_text()
    assert "on day 5, 6 members" in page
    assert "probability of less than 5300 m" in page


def with_faults(folder: Path) -> None:
    """Compile the module again, with members that fail."""
    shutil.copy(HERE / "faulty.f90", folder)
    run(folder, "gfortran", "-O0", "-fPIC", "-c", "faulty.f90")
    interface = (folder / "ensemble.idl").read_text()
    changed = interface.replace('Calls "Fortran" forecast(', 'Calls "Fortran" faulty(')
    changed = changed.replace('Required "forecast.o', 'Required "faulty.o forecast.o')
    assert changed.count("faulty") == 4
    (folder / "ensemble.idl").write_text(changed)
    run(folder, str(PROGRAM), "compile", "ensemble.idl")
    (folder / "settings.nml").write_text("&model\n  time_step = 21600\n/\n")


def test_members_that_fail_leave_the_others_as_they_are(folder: Path) -> None:
    (folder / "settings.nml").write_text("&model\n  time_step = 21600\n/\n")
    options = ("ensemble.py", "--members", "8", "--days", "4", "--workers", "2", "--out")
    python(folder, *options, "sound.nc")
    with_faults(folder)
    printed, said = python(folder, *options, "faulty.nc", status=1)
    assert printed == "5 of 8 members have forecasts of 4 days\n"
    reasons = dict(line.split(": ", 1) for line in said.splitlines() if line.startswith("member "))
    assert reasons.keys() == {"member 2", "member 4", "member 6"}
    assert "SIGSEGV" in reasons["member 2"]
    assert "FunctionExited" in reasons["member 4"]
    assert "the disk with the observations is gone" in reasons["member 4"]
    assert reasons["member 6"].startswith("the model diverged before hour ")
    with (
        xr.open_dataset(folder / "sound.nc") as sound,
        xr.open_dataset(folder / "faulty.nc") as data,
    ):
        for member in (0, 1, 3, 5, 7):
            assert np.array_equal(data.height[member], sound.height[member])
        assert data.height[[2, 4]].isnull().all()
        # Until the model diverges there are heights.
        assert data.height[6, 0].notnull().all()
        assert data.height[6, -1].isnull().all()
        assert str(data.failure.values[6]) == reasons["member 6"]
    python(folder, "maps.py", "faulty.nc", "--day", "4")
    assert "on day 4, 5 members" in (folder / "maps.html").read_text()
    for program in ("./farm_c", "./farm_fortran"):
        printed, said = run(folder, program, "", "8", "4", status=1)
        assert printed.startswith("5 of 8 members, day 4: the spread of the vorticity is ")
        assert "member 6: the model diverged before hour " in said
        assert "the disk with the observations is gone" in said


def test_wrong_settings_fail_every_member(folder: Path) -> None:
    (folder / "settings.nml").write_text("&model\n  jet = 1000\n/\n")
    printed, said = python(folder, "ensemble.py", "--members", "2", status=1)
    assert printed == "0 of 2 members have forecasts of 10 days\n"
    assert "member 1: settings: `jet` is 1000: it has to be from -150 to 150 m/s\n" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--settings", "none.nml"), "--settings none.nml: there is no such file"),
        (("--module", "none.so"), "--module none.so: there is no such file: run `make`"),
        (("--members", "0"), "--members and --days have to be 1 or more"),
        (("--truncation", "171"), "--truncation has to be from 5 to 170"),
        (("--days", "-3"), "--members and --days have to be 1 or more"),
    ],
)
def test_wrong_options_are_named(built: Path, options: tuple[str, str], said: str) -> None:
    assert said in python(built, "ensemble.py", *options, status=2)[1]


def test_a_journal_resumes(folder: Path) -> None:
    options = ("ensemble.py", "--journal", "members.journal", "--days", "2", "--members")
    python(folder, *options, "4")
    journal = folder / "members.journal"
    size = journal.stat().st_size
    assert size > 4 * 441 * 8 * 8
    first = (folder / "ensemble.nc").read_bytes()
    python(folder, *options, "4")
    assert journal.stat().st_size == size
    assert (folder / "ensemble.nc").read_bytes() == first
    # Results of another number of days do not count, nor those of other settings.
    _, said = python(folder, *options[:3], "--days", "3", "--members", "4", status=1)
    assert "error: " in said
    assert "has changed" in said
    (folder / "settings.nml").write_text("&model\n  jet = 60\n/\n")
    _, settings_said = python(folder, *options, "4", status=1)
    assert "item 0, or a file that it names, has changed" in settings_said
    assert "Traceback" not in said + settings_said
    assert (folder / "ensemble.nc").read_bytes() == first


def test_a_full_disk_leaves_the_file_that_is_there(folder: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1M", "none", disk]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        options = ("--members", "2", "--out", "disk/ensemble.nc")
        python(folder, "ensemble.py", "--days", "1", *options)
        before = (disk / "ensemble.nc").read_bytes()
        _, said = python(folder, "ensemble.py", "--days", "20", *options, status=1)
        assert "Traceback" not in said
        assert "error: cannot write disk/ensemble.nc: No space left on device" in said
        assert "choose another place with --out" in said
        assert [file.name for file in disk.iterdir()] == ["ensemble.nc"]
        assert (disk / "ensemble.nc").read_bytes() == before
    finally:
        subprocess.run(["umount", disk], check=True)

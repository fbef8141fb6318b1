"""Pages and data files in docs/benchmarks that are made of results of gridbench commands.

    python -m benchmarks.pages.recipes crossover [RUNS]      shared data, compute and data grids
    python -m benchmarks.pages.recipes scenarios [RUNS]      100 workers of a Grid Engine
    python -m benchmarks.pages.recipes sync-storage [RUNS]   files and directories, as root
    python -m benchmarks.pages.recipes links FILE.json       what links carry, as root
    python -m benchmarks.pages.recipes linpack [RUNS]        all tables with many clients, in hours
    python -m benchmarks.pages.recipes linpack-short [RUNS]  the same in minutes, without a page
    python -m benchmarks.pages.recipes ensemble [RUNS]       the weather ensemble, as root, in hours
    python -m benchmarks.pages.recipes ensemble-short [RUNS] the same in minutes, of shorter samples

Results are in RUNS (runs/NAME), where an interrupted call resumes. What a page is made of is copied
beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gridbench.atomic_write import write_file
from gridbench.run.machine import machine_facts, versions

ROOT = Path(__file__).resolve().parents[3]
_PAGES = ROOT / "docs" / "benchmarks"


def gridbench(
    *arguments: str | os.PathLike[str], **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command of gridbench, which may fail."""
    command = [sys.executable, "-m", "gridbench", *(os.fspath(one) for one in arguments)]
    return subprocess.run(command, text=True, cwd=ROOT, check=False, **options)


def run(*arguments: str | os.PathLike[str], **options: Any) -> str:
    """Run a command of gridbench; returns what it prints, if that is wanted. Exits if it fails."""
    ended = gridbench(*arguments, **options)
    if ended.returncode:
        sys.exit(ended.returncode)
    return ended.stdout or ""


def keep(file: Path, place: Path) -> None:
    """Copy a file, into a folder that may not exist."""
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, place)


def _markdown(*sources: Path) -> str:
    return run("report", *sources, "--markdown", "-", stdout=subprocess.PIPE)


def _write(page: Path, *parts: str) -> None:
    write_file(page, "\n".join(parts))
    print(f"wrote {page.relative_to(ROOT)}")


def crossover(runs: Path) -> None:
    """Bring shared data to tasks through compute grids and data grids on this machine."""
    engines = ("gridrpc-python", "ray", "process-pool")
    chosen = [word for name in engines for word in ("--engine", name)]
    chosen += [word for name in ("hazelcast", "redis") for word in ("--data-grid", name)]
    chosen += ["--sizes", "1MB,4MB,16MB,64MB", "--cores", "1,2,4", "--rounds", "2"]
    run("data", "crossover", *chosen, "--out", runs)
    stored = _PAGES / "crossover"
    keep(runs / "crossover.jsonl", stored / "crossover.jsonl")
    _write(
        stored.with_suffix(".md"),
        "# Shared data through compute grids and data grids\n",
        "Measured by `make bench-crossover`, as [Shared data, task data, or a data grid?]"
        "(../shared-data-or-data-grid.md#measure-it) tells.\n",
        _markdown(stored),
    )


def scenarios(runs: Path) -> None:
    """Run scenarios on 100 workers of a Grid Engine, as far as their figures are published."""
    chosen = ["--engine", "emulated-gridengine-native", "--cores", "100", "--case-limit", "150"]
    run("scenario", "1", "3", *chosen, "--out", runs / "1-start")
    run("scenario", "6", *chosen, "--sizes", "0,1MB", "--out", runs / "2-split")
    # Of these, what is published leaves the start of workers and the time of tasks out.
    warm = ["--start", "warm", "--sizes", "0,10KB,100KB,1MB,10MB", "--time-scale", "0.2"]
    run("scenario", "2", "4", "5", *chosen, *warm, "--out", runs / "3-warm")
    stored = _PAGES / "scenarios"
    shutil.rmtree(stored, ignore_errors=True)
    for cases in sorted(runs.rglob("cases.jsonl")):
        keep(cases, stored / cases.relative_to(runs))
    page = stored.with_suffix(".md")
    # What stands above the results is written by hand.
    head = page.read_text(encoding="utf-8").partition("\n## Results")[0].rstrip("\n")
    _write(page, head, "\n## Results\n", _markdown(*sorted(stored.iterdir())))


def sync_storage(runs: Path) -> None:
    """Rounds of tasks that all use the disk of this machine at once: files up to more than its
    memory ($SIZES: of each worker's file), and directories without Gfarm."""
    counts = ("--workers", "1,2,4,8,16,28,56", "--rounds", "3")
    metadata = ("metadata", "--total", "20000", "--operations", "mkdir,unlink")
    scratch = runs / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    sizes = ("--parameters", os.environ.get("SIZES") or "512M,2G,6656M")
    written = ("write-read", "--directory", scratch, "--size", "{parameter}")
    run("sync", "--workers", "4", "--rounds", "1", *sizes, "--out", runs / "1-files", *written)
    shutil.rmtree(scratch)
    with _ext4(runs / "disk") as disk:
        (disk / "directories").mkdir()
        out = ("--out", runs / "2-directories")
        run("sync", *counts, *out, *metadata, "--directory", disk / "directories")
        mounts = runs / "mnt"
        start = ("services", "start", "passthrough", "--mounts-in", mounts, "--")
        rounds = ("sync", *counts, "--out", runs / "3-fuse", *metadata)
        command = (sys.executable, "-m", "gridbench", *rounds, "--directory", mounts / "mount-0")
        run(*start, *command, env=os.environ | {"TMPDIR": str(disk)})
    titles = {
        "1-files": "Files, written and read, of 4 workers",
        "2-directories": "20,000 directories on a new ext4 with a journal, in a file",
        "3-fuse": "The same through FUSE",
    }
    stored = _PAGES / "sync-storage"
    parts = ["# Files and directories of many workers at once\n"]
    parts += ["Measured by `make bench-sync-storage`.\n"]
    for name, title in titles.items():
        keep(runs / name / "rounds.jsonl", stored / name / "rounds.jsonl")
        parts += [f"## {title}\n", _markdown(stored / name)]
    _write(stored.with_suffix(".md"), *parts)


@contextlib.contextmanager
def _ext4(disk: Path) -> Iterator[Path]:
    """A new ext4 in a file. That of the disk may have no journal, and then looks past all that was
    deleted within minutes before it makes a directory."""
    image = disk.with_suffix(".img")
    disk.mkdir(parents=True, exist_ok=True)
    with image.open("wb") as file:
        file.truncate(4 << 30)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    try:
        subprocess.run(["mount", "-o", "loop", image, disk], check=True)
        try:
            yield disk
        finally:
            subprocess.run(["umount", disk], check=True)
    finally:
        disk.rmdir()
        image.unlink()


def links(file: Path, rounds: int = 3) -> None:
    """What links of several rates carry between two nodes on this machine; takes two minutes."""
    seconds = 0.8
    chosen = ("links", "--nodes", "2", "--seconds", str(seconds), "--json", "-q")
    found = {
        "machine": machine_facts(),
        "versions": versions(),
        "seconds": seconds,
        "rounds": [
            [
                json.loads(run(*chosen, "--link", rate, stdout=subprocess.PIPE))
                for rate in ("10mbit", "100mbit", "1gbit", "2gbit", "5gbit", "10gbit")
            ]
            for _ in range(rounds)
        ],
    }
    write_file(file, json.dumps(found, indent=1) + "\n")


def linpack(runs: Path) -> None:
    """All cases of the Ninf project's tables, at its step and at a scaled one."""
    run("linpack", "clients", "--steps", "both", "--out", runs)
    run("report", runs, "--table", _PAGES / "linpack-tables.csv")
    _write(
        _PAGES / "linpack-tables.md",
        "# Many clients of a Linpack server\n",
        "Measured by `make bench-linpack`, as [Remote Linpack](../linpack.md#many-clients) tells."
        "\n",
        _markdown(runs),
    )


def linpack_short(runs: Path) -> None:
    """The same cases, each for 4 s and once: whether all of it works here."""
    words = ("--duration", "4", "--rounds", "1", "--accept-load")
    ended = gridbench("linpack", "clients", "--steps", "both", *words, "--out", runs)
    if ended.returncode not in (0, 3):
        sys.exit(ended.returncode)


_GRAINS = ("--grains", "10-days,month,100-days")
_ENSEMBLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "1-presto3": ("One cluster: PRESTO3", ("--processors", "10,50,100,200,250", *_GRAINS)),
    "2-venus": (
        "One cluster behind a slow link: VENUS",
        ("--layouts", "venus", "--processors", "10,50", *_GRAINS),
    ),
    "3-ume": (
        "200 processors behind 1 Gbit/s",
        ("--layouts", "ume", "--processors", "200", "--ahead", "0,1"),
    ),
    "4-pairs": ("Two clusters at once", ("--layouts", "pairs", "--grains", "month")),
    "5-ninf-g": ("Four clusters", ("--layouts", "ninf-g", "--grains", "100-days")),
    "6-sc2003": ("500 processors of five clusters", ("--layouts", "sc2003", "--ahead", "0,1")),
    "7-start": (
        "Start-up at once and one by one",
        ("--processors", "10,50,100", "--requests", "together,one-by-one", "--samples", "1"),
    ),
    "8-engines": (
        "Beside other engines",
        (
            *("--processors", "4,8", "--batch-systems", "none", "--engines"),
            "gridrpc-native,gridrpc-python,dask,parsl,hyperqueue,mpi",
        ),
    ),
    "9-many": (
        "1,000 and 5,000 processors behind 10 Gbit/s",
        ("--layouts", "modern", "--processors", "1000,5000", "--batch-systems", "none"),
    ),
}
"""Title and options of each part of the page on the ensemble."""
_ENSEMBLE_TIMES = {"7-start": "0.01", "8-engines": "0.1"}
"""Time scales, where the time of a sample does not matter."""


_FEWER = {
    "1-presto3": ("--processors", "10,50,200", "--grains", "10-days,month"),
    "2-venus": ("--layouts", "venus", "--processors", "10,50", "--grains", "10-days,month"),
    "7-start": ("--processors", "10,50", "--requests", "together,one-by-one", "--samples", "1"),
}
"""Options of shorter parts."""


def ensemble(runs: Path, *, short: bool = False) -> None:
    """The evaluation of Ninf-G2, each part three times; `short`: once, with short samples."""
    short_times = {"1-presto3": "0.05", "2-venus": "0.05", "4-pairs": "0.1", "5-ninf-g": "0.05"}
    stored = _PAGES / "ensemble"
    command = f"make bench-ensemble{' SHORT=1' if short else ''}"
    parts = ["# A weather ensemble on emulated clusters\n", f"Measured by `{command}`.\n"]
    for name, (title, usual) in _ENSEMBLES.items():
        options = _FEWER.get(name, usual) if short else usual
        scale = (short_times if short else {}).get(name) or _ENSEMBLE_TIMES.get(name, "1")
        times = ("--time-scale", scale, "--links", "paper" if name == "8-engines" else "scaled")
        rounds = ("--rounds", "1" if short else "3", *(("--accept-load",) if short else ()))
        ended = gridbench("ensemble", *options, *times, *rounds, "--out", runs / name)
        if ended.returncode not in (0, 3):
            sys.exit(ended.returncode)
        keep(runs / name / "ensemble.jsonl", stored / name / "ensemble.jsonl")
        parts += [f"## {title}\n", _markdown(stored / name)]
    _write(stored.with_suffix(".md"), *parts)


def ensemble_short(runs: Path) -> None:
    """The same in minutes."""
    ensemble(runs, short=True)


RECIPES: dict[str, Callable[[Path], None]] = {
    "crossover": crossover, "scenarios": scenarios, "sync-storage": sync_storage, "links": links,
    "linpack": linpack, "linpack-short": linpack_short,
    "ensemble": ensemble, "ensemble-short": ensemble_short,
}  # fmt: skip


def main() -> None:
    """Follow the recipe that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.recipes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("recipe", choices=RECIPES)
    parser.add_argument("place", type=Path, nargs="?", metavar="RUNS")
    chosen = parser.parse_args()
    default = _PAGES / "links.json" if chosen.recipe == "links" else ROOT / "runs" / chosen.recipe
    RECIPES[chosen.recipe]((chosen.place or default).absolute())


if __name__ == "__main__":
    main()

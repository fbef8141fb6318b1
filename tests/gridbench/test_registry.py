"""Engines are found by name, among real installed metadata, and imported only when chosen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gridbench.engines.names import RENAMED
from gridbench.engines.registry import installed_engines
from running import REPOSITORY, MakeSetup, Run

EXAMPLE = REPOSITORY / "examples" / "engines" / "thread_pool"


def install(folder: Path, entry_points: str, name: str = "other-engines") -> dict[str, str]:
    """Metadata of a package as pip would leave it; the environment in which it is found."""
    info = folder / "site" / f"{name.replace('-', '_')}-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    (info / "entry_points.txt").write_text("[gridbench.engines]\n" + entry_points)
    paths = [REPOSITORY / "python", folder / "site", EXAMPLE]
    return {"PYTHONPATH": ":".join(map(str, paths))}


def test_engines_are_listed_without_importing_them(gridbench: Run, tmp_path: Path) -> None:
    env = install(tmp_path, "broken = no.such.module:Engine\n")
    done = gridbench("engines", env=env)
    assert done.returncode == 0
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line}
    assert {"broken", "process-pool", "gridrpc-native", "gridrpc-python"} <= set(lines)
    where = gridbench("engines", "--where", env=env).stdout.splitlines()
    (broken,) = [line for line in where if line.startswith("broken ")]
    assert "no.such.module:Engine (other-engines 1.5)" in broken


LACKING = """
from gridbench.engines.base import Cannot
from gridbench.engines.process_pool import ProcessPoolEngine
class Lacking(ProcessPoolEngine):
    def __init__(self):
        raise Cannot("there is no Slurm")
"""


@pytest.mark.parametrize(
    ("name", "words", "remedy"),
    [
        ("process-poool", "unknown engine `process-poool`", "did you mean `process-pool`?"),
        ("zebra", "unknown engine `zebra`", "hint: known engines:"),
        ("", "each engine must have 1 to 65,536 characters", "leave that one out"),
        ("broken", "`broken` cannot be loaded: ModuleNotFoundError", "other-engines 1.5 needs"),
        ("absent", "`absent` cannot be loaded: AttributeError", "other-engines 1.5"),
        ("syntax", "`syntax` cannot be loaded: SyntaxError", "other-engines 1.5"),
        ("function", "does not subclass gridbench.engines.base.Engine", "correct the entry point"),
        ("abstract", "`abstract` cannot be set up: TypeError", "manual"),
        ("lacking", "`lacking` cannot be set up: there is no Slurm\n", ""),
        ("slurm-jobs", "the engine `slurm-jobs` is now `emulated-slurm-jobs`", "--server 'slurm:"),
    ],
)
def test_an_engine_that_cannot_be_used(
    *, gridbench: Run, tmp_path: Path, make_setup: MakeSetup, name: str, words: str, remedy: str
) -> None:
    env = install(
        tmp_path,
        "broken = no.such.module:Engine\n"
        "absent = gridbench.engines.base:NoSuchEngine\n"
        "syntax = bad_syntax:Engine\n"
        "function = os.path:join\n"
        "abstract = gridbench.engines.base:Engine\n"
        "lacking = lacking:Lacking\n",
    )
    (tmp_path / "site" / "lacking.py").write_text(LACKING)
    (tmp_path / "site" / "bad_syntax.py").write_text("class Engine(:\n")
    engines = ("--engine", "process-pool", "--engine", name)
    done = gridbench("run", make_setup(), *engines, "--out", "out", env=env)
    assert done.returncode == 2
    assert words in done.stderr
    assert remedy in done.stderr
    assert "Traceback" not in done.stderr
    # Nothing was run, though the first engine of the two is good.
    assert not (tmp_path / "out").exists()


def test_two_packages_may_not_share_a_name(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench("engines", env=install(tmp_path, "process-pool = their.module:Pool\n"))
    assert done.returncode == 2
    assert "two packages provide an engine `process-pool`" in done.stderr


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_third_partys_engine_runs(
    gridbench: Run, tmp_path: Path, make_setup: MakeSetup, start: str
) -> None:
    wanted = 'thread-pool = "gridbench_thread_pool:ThreadPoolEngine"'
    assert wanted in (EXAMPLE / "pyproject.toml").read_text()
    env = install(
        tmp_path, "thread-pool = gridbench_thread_pool:ThreadPoolEngine\n", "gridbench-thread-pool"
    )
    setup = make_setup(tasks=12, nodes=3, task_kb=5, shared_kb=50, write_kb=0.5)
    options = ("--engine", "thread-pool", "--start", start, "--out", "out")
    done = gridbench("run", setup, *options, env=env)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Tasks succeeded +12\b", done.stdout)


USES_PANDAS = """
import pandas
from gridbench.engines.process_pool import ProcessPoolEngine

class Engine(ProcessPoolEngine):
    name = "table"
"""


def test_pandas_is_for_engines_of_others_alone(
    gridbench: Run, make_setup: MakeSetup, tmp_path: Path
) -> None:
    pytest.importorskip("pandas")
    env = install(tmp_path, "table = uses_pandas:Engine\n")
    (tmp_path / "site" / "uses_pandas.py").write_text(USES_PANDAS)
    setup = make_setup(tasks=2, nodes=1)
    for engine in ("process-pool", "table"):
        traced = env | {"PYTHONPROFILEIMPORTTIME": "1"}
        done = gridbench("run", setup, "--engine", engine, "--out", engine, env=traced)
        assert done.returncode == 0, done.stderr
        imported = re.search(r"\| +pandas\.core$", done.stderr, re.MULTILINE)
        assert (imported is not None) == (engine == "table")


def test_engines_that_bring_a_batch_system_are_listed_with_what_uses_ones_own(
    gridbench: Run,
) -> None:
    listed = gridbench("engines").stdout
    assert "emulated-slurm " in listed
    assert "--engine gridrpc-native --server 'slurm:?nodes=4&workers=25'" in listed
    assert RENAMED.keys() & installed_engines().keys() == set()
    assert set(RENAMED.values()) <= installed_engines().keys()

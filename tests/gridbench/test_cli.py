"""The program as people meet it: help, versions, and messages word for word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from running import PROGRAM, REPOSITORY, MakeSetup, Run


def test_help_names_the_commands_and_gives_examples(gridbench: Run) -> None:
    done = gridbench("--help")
    assert done.returncode == 0
    for command in ("run", "list-times", "report", "engines"):
        assert f"\n  {command} " in done.stdout
        help_of = gridbench(command, "-h")
        assert help_of.returncode == 0
        assert "Usage: gridbench" in help_of.stdout
    assert "gridbench run examples/compute/setup.xml\n" in gridbench("run", "-h").stdout


def test_help_loads_no_heavy_library(environment: dict[str, str]) -> None:
    script = (
        "import sys, gridbench.cli\n"
        "try: gridbench.cli.main(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('numpy', 'pyarrow', 'plotly', 'psutil', 'rich')\n"
        "print('loaded:', [name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("loaded: []\n")


def test_the_version_is_told(gridbench: Run) -> None:
    assert gridbench("--version").stdout.startswith("gridbench ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run", "none.xml"),
            "gridbench: none.xml: cannot read the set-up file: No such file or directory\n"
            "hint: give the path of an XML set-up file, such as examples/compute/setup.xml\n",
        ),
        (
            ("run", "bad.xml"),
            "gridbench: bad.xml:3: <NNodes> must be from 1 to 100,000, not `0`\n"
            "hint: write a whole number such as 100\n",
        ),
        (
            ("run", "short.xml"),
            "gridbench: times:8: the list ends after 8 times, but NTasks is 9\n"
            "hint: set NTasks to 8, or make a longer list with `gridbench list-times`\n",
        ),
        (
            ("run", "long.xml"),
            "gridbench: times:8: the list goes on after 7 times, but NTasks is 7\n"
            "hint: set NTasks to the length of the list, or shorten the list\n",
        ),
        (
            ("run", "lost.xml"),
            "gridbench: lost: cannot read the list of task times: No such file or directory\n"
            "hint: make one with `gridbench list-times`, or correct InputFile in the set-up file\n",
        ),
        (
            ("report", "a"),
            "gridbench: a: does not exist\nhint: give folders of results, or task logs\n",
        ),
        (
            ("report", ".", ".", "."),
            "gridbench: several sources or a log need the name of the page to write\n"
            "hint: add --out FILE\n",
        ),
        (
            ("list-times", "--tasks", "3", "--mean", "-1", "--out", "t"),
            "gridbench: --mean must be from 0 to 1,000,000 seconds, not -1\n",
        ),
    ],
)
def test_messages(
    gridbench: Run,
    make_setup: MakeSetup,
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    good = make_setup().read_text()
    (tmp_path / "bad.xml").write_text(good.replace("<NNodes> 4", "<NNodes> 0"))
    (tmp_path / "short.xml").write_text(good.replace("<NTasks> 8", "<NTasks> 9"))
    (tmp_path / "long.xml").write_text(good.replace("<NTasks> 8", "<NTasks> 7"))
    (tmp_path / "lost.xml").write_text(good.replace("times", "lost"))
    done = gridbench(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("run",),
        ("fly",),
        ("run", "x.xml", "--start", "tepid"),
        ("run", "x.xml", "--fast"),
        ("list-times", "--tasks", "3.5", "--mean", "1", "--out", "t"),
        ("report",),
    ],
)
def test_wrong_usage_exits_with_2(gridbench: Run, arguments: tuple[str, ...]) -> None:
    done = gridbench(*arguments)
    assert done.returncode == 2
    assert "Usage: gridbench" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_example_runs(gridbench: Run, tmp_path: Path) -> None:
    setup = REPOSITORY / "examples" / "compute" / "setup.xml"
    options = ("--engine", "process-pool", "--time-scale", "0.1", "--out", "out")
    done = gridbench("run", setup, *options)
    assert done.returncode == 0, done.stderr
    assert "200 / 0 / 0" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir())[0] == "report.html"


def test_the_list_of_the_example_is_what_its_heading_says(gridbench: Run, tmp_path: Path) -> None:
    kept = REPOSITORY / "examples" / "compute" / "input.200.1.0.1"
    command = kept.read_text().splitlines()[2].removeprefix("# gridbench ").split()
    assert gridbench(*command, "--out", "again").returncode == 0
    assert (tmp_path / "again").read_text().splitlines()[3:] == kept.read_text().splitlines()[3:]


def test_progress_is_a_bar_on_a_terminal(
    make_setup: MakeSetup, tmp_path: Path, environment: dict[str, str]
) -> None:
    import os
    import pty

    setup = make_setup(tasks=6, nodes=2, sleep=0.2)
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "run", str(setup), "--engine", "process-pool", "--out", str(tmp_path / "out")],
        env=environment | {"TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=follower,
    )
    os.close(follower)
    seen = b""
    try:
        while part := os.read(leader, 4096):
            seen += part
    except OSError:  # how the end of a pseudo-terminal reads
        pass
    os.close(leader)
    assert process.wait(60) == 0
    text = seen.decode()
    for words in ("6/6", "running", "tasks/s", "left", "process-pool"):
        assert words in text
    assert "\x1b[?25h" in text  # the cursor is there again

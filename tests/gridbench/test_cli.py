"""The program as people meet it: help, versions, and messages word for word."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gridbench.cli import COMMANDS
from running import PROGRAM, REPOSITORY, MakeSetup, Run


def test_help_lists_the_commands_in_groups(gridbench: Run) -> None:
    done = gridbench("--help")
    assert done.returncode == 0
    places = [done.stdout.index(f"\n{group}:\n") for group in ("Start here", "Special")]
    for command in ("run", "micro", "scenario", "advise", "report"):
        assert places[0] < done.stdout.index(f"\n  {command} ") < places[1]
    assert all(f"\n  {command} " in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_can_be_loaded_and_explains_itself(command: str) -> None:
    loaded = COMMANDS[command].load()
    assert loaded.name == command
    assert loaded.help


@pytest.mark.parametrize("command", [(), ("run",), ("engines", "install"), ("data", "run")])
def test_help_of_a_command_is_that_of_its_option(gridbench: Run, command: tuple[str, ...]) -> None:
    done = gridbench("help", *command)
    assert done.returncode == 0
    assert done.stdout == gridbench(*command, "--help").stdout
    assert done.stdout.startswith(" ".join(("Usage: gridbench", *command)))


def test_advise_has_a_short_help_and_a_whole_one(gridbench: Run) -> None:
    short = gridbench("advise", "--help", env={"COLUMNS": "80"})
    assert short.returncode == 0
    assert len(short.stdout.splitlines()) <= 33
    assert "--memory-traffic" not in short.stdout
    assert "\n  --help-all " in short.stdout
    whole = gridbench("advise", "--help-all", env={"COLUMNS": "80"}).stdout
    options = [
        option for parameter in COMMANDS["advise"].load().params for option in parameter.opts
    ]
    assert [option for option in options if option not in whole] == []
    assert gridbench("help", "advise", env={"COLUMNS": "80"}).stdout == short.stdout


def test_help_gives_examples(gridbench: Run) -> None:
    assert "gridbench run examples/compute/setup.xml\n" in gridbench("run", "-h").stdout


def loaded_by(environment: dict[str, str], *arguments: str) -> set[str]:
    """The modules that the program has imported at its end."""
    script = (
        "import sys, gridbench.program\n"
        f"sys.argv = ['gridbench', *{arguments!r}]\n"
        "try: gridbench.program.main()\n"
        "except SystemExit: pass\n"
        "print('loaded:', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("loaded: ")[2].split())


def test_help_loads_no_command(environment: dict[str, str]) -> None:
    loaded = loaded_by(environment, "--help")
    own = {name for name in loaded if name.startswith("gridbench.")}
    assert own == {f"gridbench.{name}" for name in ("cli", "command_line", "errors", "program")}
    assert not loaded & {"dataclasses", "difflib", "json", "subprocess"}


def test_help_of_a_command_loads_no_heavy_library(environment: dict[str, str]) -> None:
    loaded = loaded_by(environment, "run", "--help")
    assert not loaded & {"numpy", "pyarrow", "plotly", "psutil", "rich"}


def test_the_version_is_reported(gridbench: Run) -> None:
    assert gridbench("--version").stdout.startswith("gridbench ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run", "none.xml"),
            "gridbench: error: none.xml: cannot read the set-up file: No such file or directory\n"
            "hint: give the path of an XML set-up file, such as examples/compute/setup.xml\n",
        ),
        (
            ("run", "bad.xml"),
            "gridbench: error: bad.xml:3: <NNodes> must be from 1 to 100,000, not `0`\n"
            "hint: write a whole number such as 100\n",
        ),
        (
            ("run", "short.xml"),
            "gridbench: error: times:8: the list ends after 8 times, but NTasks is 9\n"
            "hint: set NTasks to 8, or make a longer list with `gridbench list-times`\n",
        ),
        (
            ("run", "long.xml"),
            "gridbench: error: times:8: the list continues after 7 times, but NTasks is 7\n"
            "hint: set NTasks to the length of the list, or shorten the list\n",
        ),
        (
            ("run", "lost.xml"),
            "gridbench: error: lost: cannot read the list of task times: No such file or"
            " directory\n"
            "hint: make one with `gridbench list-times`, or correct InputFile in the set-up file\n",
        ),
        (
            ("report", "a"),
            "gridbench: error: a: does not exist\nhint: give folders of results, or task logs\n",
        ),
        (
            ("report", ".", ".", "."),
            "gridbench: error: several sources or a log need the name of the page to write\n"
            "hint: add --out FILE\n",
        ),
        (
            ("list-times", "--tasks", "3", "--mean", "-1", "--out", "t"),
            "gridbench: error: --mean must be from 0 to 1,000,000 seconds, not -1\n",
        ),
    ],
)
def test_messages(
    refused: Run,
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
    done = refused(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (
            ("fly",),
            "gridbench has no command `fly`",
            "`gridbench --help` lists the commands",
        ),
        (
            ("scenarios",),
            "gridbench has no command `scenarios`",
            "did you mean `scenario`? `gridbench --help` lists the commands",
        ),
        (
            ("help", "data", "rum"),
            "gridbench data has no command `rum`",
            "did you mean `run`? `gridbench data --help` lists the commands",
        ),
        (
            ("run", "x.xml", "--start", "tepid"),
            "--start: `tepid` is not one of `cold`, `warm`",
            "`gridbench run --help` lists the options",
        ),
        (
            ("run", "x.xml", "--fast"),
            "gridbench run has no option `--fast`",
            "`gridbench run --help` lists the options",
        ),
        (
            ("run", "x.xml", "--engines", "loky"),
            "gridbench run has no option `--engines`",
            "did you mean `--engine`? `gridbench run --help` lists the options",
        ),
        (
            ("list-times", "--tasks", "3.5", "--mean", "1", "--out", "t"),
            "--tasks: `3.5` is not a whole number from 1 to 10,000,000",
            "give a number such as 1000, or 1e3",
        ),
        (
            ("report",),
            "missing argument `DIR_OR_LOG...`",
            "`gridbench report --help` lists the options",
        ),
    ],
)
def test_errors_of_usage_are_like_all_others(
    gridbench: Run, arguments: tuple[str, ...], what: str, hint: str
) -> None:
    done = gridbench(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gridbench: error: {what}\nhint: {hint}\n"


def test_no_command_shows_the_help(gridbench: Run) -> None:
    done = gridbench()
    assert done.returncode == 2
    assert done.stderr == gridbench("--help").stdout


def test_the_example_runs(gridbench: Run, tmp_path: Path) -> None:
    setup = REPOSITORY / "examples" / "compute" / "setup.xml"
    options = ("--engine", "process-pool", "--time-scale", "0.1", "--out", "out")
    done = gridbench("run", setup, *options)
    assert done.returncode == 0, done.stderr
    assert re.search(r"Tasks succeeded +200\b", done.stdout)
    assert sorted(path.name for path in (tmp_path / "out").iterdir())[0] == "report.html"


def test_the_list_of_the_example_is_what_its_heading_says(gridbench: Run, tmp_path: Path) -> None:
    stored = REPOSITORY / "examples" / "compute" / "input.200.1.0.1"
    command = stored.read_text().splitlines()[2].removeprefix("# gridbench ").split()
    assert gridbench(*command, "--out", "again").returncode == 0
    assert (tmp_path / "again").read_text().splitlines()[3:] == stored.read_text().splitlines()[3:]


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

"""What all commands have in common in what they print: `--json`, `--quiet`, 80 columns, pipes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gridbench.cli import cli
from gridbench.terminal import new_console, new_table, say
from running import DEADLINE, REPOSITORY, MakeSetup, Run

#: What colours, bars and other changes of a terminal are made of.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def _commands(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, *path, name)


COMMANDS = dict(_commands(cli, "gridbench"))
#: What they print is made for shells, or is one line that says what was written or removed.
WITHOUT_JSON = {
    "gridbench",
    "gridbench completion",
    "gridbench data",
    "gridbench data engines class-path",
    "gridbench data engines install",
    "gridbench data engines remove",
    "gridbench engines install",
    "gridbench engines remove",
    "gridbench help",
    "gridbench linpack",
    "gridbench placement",
    "gridbench services",
    "gridbench services start",
}
#: They answer at once.
WITHOUT_PROGRESS = {
    "gridbench",
    "gridbench check",
    "gridbench completion",
    "gridbench data",
    "gridbench data engines",
    "gridbench data engines class-path",
    "gridbench engines",
    "gridbench help",
    "gridbench linpack",
    "gridbench placement",
    "gridbench list-times",
    "gridbench services",
    "gridbench services start",
    "gridbench services start gfarm",
    "gridbench services start passthrough",
    "gridbench services start redis",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_80_columns(name: str) -> None:
    command = COMMANDS[name]
    text = command.get_help(click.Context(command, info_name=name, terminal_width=80))
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_all_commands_have_the_same_options_for_what_they_print() -> None:
    options = {
        name: {parameter.opts[-1]: parameter for parameter in command.params}
        for name, command in COMMANDS.items()
    }
    assert {name for name, own in options.items() if "--json" not in own} == WITHOUT_JSON
    assert {name for name, own in options.items() if "--quiet" not in own} == WITHOUT_PROGRESS
    for option in ("--json", "--quiet"):
        helps = {own[option].help for own in options.values() if option in own}  # type: ignore[attr-defined]
        assert len(helps) == 1


def test_a_run_tells_programs_what_it_found_and_people_nothing(
    gridbench: Run, make_setup: MakeSetup
) -> None:
    setup = make_setup(tasks=4, nodes=2, sleep=0.05)
    options = ("--engine", "process-pool", "--out", "out")
    done = gridbench("run", setup, *options, "--json", "--quiet")
    message = json.loads(done.stdout)
    assert message["results"] == "out"
    assert message["runs"]["process-pool"]["summary"]["ok"] == 4
    # Another program may have disturbed it, which is no progress.
    assert all(line.startswith("gridbench: ") for line in done.stderr.splitlines())

    page = json.loads(gridbench("report", "out", "--out", "page.html", "--json").stdout)
    assert (page["page"], page["compared"]) == ("page.html", [])
    assert "figures" in page  # none if other programs disturbed the run


def test_scenarios_tell_programs_their_cases(gridbench: Run) -> None:
    choice = ("scenario", "1", "--cores", "1", "--sizes", "0", "--time-scale", "1e-5")
    planned = json.loads(gridbench(*choice, "--dry-run", "--json").stdout)
    assert [one["scenario"] for one in planned] == [1]
    (case,) = planned[0]["cases"]
    assert case["skipped"] == ""

    done = gridbench(*choice, "--out", "out", "--json", "--quiet", timeout=DEADLINE)
    (case,) = json.loads(done.stdout)["cases"]
    assert case["engine"] == "gridrpc-native"
    assert all(line.startswith("gridbench: ") for line in done.stderr.splitlines())


def test_lists_are_there_for_programs(gridbench: Run) -> None:
    engines = json.loads(gridbench("engines", "--json").stdout)
    pool = next(one for one in engines if one["name"] == "process-pool")
    assert pool["state"] == "installed"
    assert pool["problem"] == ""
    listed = json.loads(gridbench("micro", "--list", "--json").stdout)
    assert listed["engines"]["process-pool"] == "can be used"
    assert "null_call" in listed["workloads"]


def test_a_list_of_times_tells_programs_what_it_holds(gridbench: Run) -> None:
    requested = ("list-times", "--tasks", "3", "--mean", "2", "--out", "times", "--force")
    message = json.loads(gridbench(*requested, "--json").stdout)
    assert message == {"file": "times", "tasks": 3, "min": 2.0, "max": 2.0, "mean": 2.0}
    assert gridbench(*requested).stdout == "times: 3 times, 2.000 s, mean 2.000 s\n"


@pytest.mark.parametrize(
    "words",
    [
        ("published", "5.5.4"),
        ("simulate", "--cores", "4", "--sleep", "1"),
        ("scenario", "3", "--dry-run"),
        ("data", "scenario", "1", "2", "3", "--dry-run"),
        ("data", "ycsb", "all", "--dry-run"),
        ("engines",),
    ],
)
def test_a_pipe_gets_text_of_80_columns(gridbench: Run, words: tuple[str, ...]) -> None:
    done = gridbench(*words, env={"COLUMNS": "80", "TERM": "xterm-256color"})
    assert done.returncode == 0, done.stderr
    assert CONTROL.search(done.stdout + done.stderr) is None
    # Sentences of documents and descriptions are not broken, so that lines can be searched.
    if words[0] not in ("engines", "published"):
        assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gridbench ", {"run", "scenario", "completion"}),
        ("gridbench engines ", {"install", "remove"}),
        ("gridbench data ", {"run", "scenario", "ycsb", "engines"}),
        ("gridbench data setup.xml --ki", {"--kill-node"}),
        ("gridbench run --sta", {"--start", "--start-timeout"}),
        ("gridbench completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_bash_completes_commands_and_options(gridbench: Run, line: str, offered: set[str]) -> None:
    script = gridbench("completion", "bash").stdout
    words = line.split(" ")
    ask = (
        f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}\n"
        f"_gridbench_completion gridbench {words[-1]!r} {words[-2]!r}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script + "\n" + ask],
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert offered <= set(done.stdout.split()), done.stderr


def test_names_from_outside_are_shown_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    name = "runs/[bold]a[/bold]:smile: [::1]"
    say(new_console(), f"{name} \x1b[31m{'far beyond the width of a terminal ' * 10}")
    new_console(stderr=True).print(name)
    table = new_table(name)
    table.add_column(name)
    table.add_row(name)
    new_console().print(table)
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].startswith(f"{name} ?[31mfar beyond")
    assert printed.out.splitlines()[0].endswith("of a terminal ")
    assert printed.out.count(name) == 4
    assert printed.err == f"{name}\n"

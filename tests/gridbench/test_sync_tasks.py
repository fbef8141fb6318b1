"""The catalogue of built-in tasks: what it runs is there, and does what it says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench.native import task_program
from gridbench.sync.record import PROGRAM
from gridbench.sync.reports import reported
from gridbench.sync.tasks import BUILT_INS, command_of, expand, split_arguments
from running import DEADLINE

"""Of the placeholders, but for the parameter."""
PARAMETERS = {"sleep": "0.01", "memory": "3M"}
"""Of examples, where it is not the size of a file."""

EXAMPLES = [(task.name, example) for task in BUILT_INS.values() for example in task.examples]


def expanded(words: tuple[str, ...], parameter: str) -> list[str]:
    """As the runner does it."""
    values = {"worker": "1", "rank": "1", "host": "here", "round": "0", "total": "2"}
    values["parameter"] = parameter
    found = expand(words, values)
    return [str(task_program()) if word == PROGRAM else word for word in found]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_examples_run_and_report_their_phases(tmp_path: Path, name: str, example: str) -> None:
    assert name != "fio" or shutil.which("fio"), "make fio installs it"
    if name == "read":
        written = command_of("write", split_arguments(f"--directory {tmp_path} --size 128K"))
        subprocess.run(expanded(written, ""), check=True, timeout=DEADLINE)
    words = command_of(name, split_arguments(example.replace("/scratch", str(tmp_path))))
    ran = subprocess.run(
        expanded(words, PARAMETERS.get(name, "64K" if name != "shell" else "0.01")),
        capture_output=True,
        timeout=DEADLINE,
        cwd=tmp_path,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    found = reported(ran.stdout)
    assert not found.why
    names = [phase.name for phase in found.phases]
    phases = BUILT_INS[name].phases
    assert set(names) <= set(phases)
    assert bool(names) == bool(phases)
    if name == "shell" and "echo" in example:
        assert (tmp_path / "here-1").read_text() == "1 of 2\n"


def test_the_catalogue_is_one_of_names_and_lines() -> None:
    for name, task in BUILT_INS.items():
        assert task.name == name
        assert task.help
        assert "\n" not in task.help
        assert name == "null" or task.examples


def test_arguments_follow_those_of_the_task() -> None:
    assert command_of("write", split_arguments("--size {parameter} --directory '/a b'")) == (
        PROGRAM,
        "write",
        "--worker",
        "{worker}",
        "--of",
        "{total}",
        "--size",
        "{parameter}",
        "--directory",
        "/a b",
    )
    assert command_of("null", ()) == (PROGRAM, "null")


def test_a_command_for_the_shell_stays_in_one_piece() -> None:
    text = "for f in *; do echo \"$f\" '{worker}'; done | wc -l"
    assert command_of("shell", [text]) == ("/bin/sh", "-c", text)
    with pytest.raises(InputError, match="has no command"):
        command_of("shell", [" "])


def test_programs_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "task.sh"
    program.write_text("#!/bin/sh\n")
    with pytest.raises(InputError, match="cannot be executed") as error:
        command_of("./task.sh", ())
    assert error.value.remedy == "chmod +x ./task.sh"
    program.chmod(0o755)
    for name in ("task.sh", "./task.sh", str(program)):
        assert command_of(name, ["{worker}", "b c"]) == (str(program), "{worker}", "b c")
    # A file beside a built-in task of the same name.
    program.rename("write")
    assert command_of("write", ())[0] == PROGRAM
    assert command_of("./write", ()) == (str(tmp_path / "write"),)
    # Hosts may have it, and the PATH.
    assert command_of("/opt/elsewhere/task", ["x"]) == ("/opt/elsewhere/task", "x")
    assert command_of("env", ["true"]) == ("env", "true")


@pytest.mark.parametrize("task", ["", "reed", "./write", "nobody/has/it", "~nobody-of-this-name/x"])
def test_what_is_not_there_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        command_of(task, ())
    assert "write-read" in str(error.value)


def test_the_right_name_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean `read`"):
        command_of("raed", ())
    with pytest.raises(InputError, match="a folder, and no program"):
        command_of(str(tmp_path), ())

"""Tasks that are a C function of a shared library, or a program."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gridbench.errors import InputError
from gridbench.run.load import load_run
from gridbench.workload.body import body
from gridbench.workload.options import parse_body
from running import MakeSetup, Run

SOURCE = """
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static void note(const char *text) {
    FILE *file = fopen("calls", "a");
    fprintf(file, "%s\\n", text);
    fclose(file);
}

void sizes(double seconds, const void *data, size_t size, const void *shared, size_t common) {
    char text[100];
    snprintf(text, sizeof text, "%g %zu %zu", seconds, size, common);
    note(text);
}

double nap(double seconds) {
    usleep(1e6 * seconds);
    return seconds;
}

int nothing(void) { return 7; }
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.c").write_text(SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", "libmine.so", "mine.c"], check=True)
    return tmp_path / "libmine.so"


def test_a_c_function_gets_the_time_and_both_data(library: Path) -> None:
    call = body(parse_body("libmine.so:sizes"))
    call(0.5, memoryview(b"\0abc"), b"xy")
    call(0.0, None, None)
    assert (library.parent / "calls").read_text() == "0.5 4 2\n0 0 0\n"


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("function", ["nap", "nothing"])
def test_it_may_take_less_and_return_what_it_likes(function: str) -> None:
    assert body(parse_body(f"./libmine.so:{function}"))(0.001, b"data", b"") is None


@pytest.mark.parametrize("engine", ["process-pool", "gridrpc-python"])
def test_engines_run_it(gridbench: Run, make_setup: MakeSetup, library: Path, engine: str) -> None:
    setup = make_setup(tasks=6, nodes=2, sleep=0.01, task_kb=1, shared_kb=2)
    task = ("--task", "libmine.so:nap", "--accept-load", "--out", "out")
    done = gridbench("run", setup, engine, *task)
    assert done.returncode == 0, done.stderr
    _, table = load_run(library.parent / "out")
    begin, end = (table.column(name).to_numpy() for name in ("calc_in", "calc_out"))
    assert ((end - begin) >= 0.01).all()


@pytest.mark.usefixtures("library")
def test_native_workers_refuse_it(gridbench: Run) -> None:
    done = gridbench("run", "gridrpc-native", "--task", "libmine.so:nap", "--out", "out")
    assert done.returncode == 2
    assert "the engine `gridrpc-native` cannot run tasks that do `libmine.so:nap`" in done.stderr


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model run"
    path.write_text(
        '#!/bin/sh\necho "$@" $(wc -c) >> calls\n[ "$1" != bad ] || { echo no >&2; exit 3; }\n'
    )
    path.chmod(0o755)
    return path


def test_a_program_gets_arguments_and_the_data(program: Path) -> None:
    call = body(parse_body("'./model run' --time {seconds}"))
    call(0.25, b"four", b"shared")
    assert (program.parent / "calls").read_text() == "--time 0.25 4\n"


@pytest.mark.usefixtures("program")
def test_a_program_that_fails_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="model run ended with status 3: no"):
        body(parse_body("'./model run' bad"))(0.0, None, None)


def test_an_engine_runs_a_program(gridbench: Run, program: Path) -> None:
    done = gridbench(
        *("run", "process-pool", "--tasks", "3", "--cores", "2", "--task-time", "0"),
        *("--task", "'./model run' {seconds}", "--no-check", "--accept-load", "--out", "out"),
    )
    assert done.returncode == 0, done.stderr
    assert (program.parent / "calls").read_text() == "0.0 0\n" * 3


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("none.so:f", "there is no shared library `none.so`", "cc -O2 -shared"),
        ("libmine.so:bok", "libmine.so:bok cannot be used: AttributeError: .*bok", "nm -D"),
        ("mine.c.so:f", "there is no shared library", "cc"),
        ("./none", "the program `./none` does not exist", "--task './model"),
        ("./mine.c", "the program `./mine.c` is not executable", "--task './model"),
        ("./mine.c 'x", "is not a command: No closing quotation", "quotes"),
        ("", "`` names nothing that a task can do", "LIBRARY.so:FUNCTION of C"),
        ("nap", "`nap` names nothing that a task can do", "./PROGRAM"),
    ],
)
def test_what_cannot_be_run_is_refused(text: str, what: str, hint: str) -> None:
    with pytest.raises(InputError, match=what) as caught:
        parse_body(text)
    assert caught.value.what.startswith("--task: ")
    assert hint in caught.value.remedy

"""Programs in C and C++ with real workers; each checks what it does by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest


def ends(pid: int) -> bool:
    """Whether a process ends within some seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("name", ["calls", "handles", "sessions", "threads", "odd", "edges"])
def test_program(run, name):
    run(f"{name}.c")


@pytest.mark.parametrize("name", ["calls", "sessions", "threads", "edges"])
def test_program_with_one_worker(run, name):
    run(f"{name}.c", GRIDRPC_WORKERS="1")


@pytest.mark.parametrize("name", ["calls", "handles", "sessions", "threads", "edges"])
def test_program_whose_calls_run_on_hosts(run, name):
    run(f"{name}.c", GRIDRPC_SERVERS="local://one?workers=1 local://two?workers=2")


def test_servers_that_make_no_sense_are_reported(run, tmp_path):
    file = tmp_path / "grid.toml"
    file.write_text("[server.one]\nhost = ['a']\n")
    done = run("lifecycle.c", fails=True, GRIDRPC_CONFIG=str(file))
    assert 'grid.toml:2: server "one": ' in done.stderr


def test_objects(run, tmp_path):
    run("objects.c", COUNTER_FILE=str(tmp_path / "finalized"))


def test_what_breaks_workers_is_reported_and_breaks_nothing_else(run):
    done = run("mishaps.c")
    assert "no newline" in done.stdout
    assert "a line\n" in done.stdout
    assert "to stderr" in done.stderr


def test_a_small_limit_of_file_sizes_is_reported_and_ends_nothing(run):
    run("limited.c")


def test_before_the_beginning_and_after_the_end(run):
    run("lifecycle.c")


def test_workers_end_with_a_program_that_does_not_finalize(run):
    assert ends(int(run("lifecycle.c", "no end").stdout))


def test_a_hundred_thousand_sessions(run):
    print(run("many.c").stdout)


def test_ninf(run):
    run("ninf.c", "-server", "localhost", "-port", "3000")


def test_cpp(run):
    run("wrapped.cpp")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_program_and_its_workers(compiled, modules, tmp_path, number):
    program = compiled("signals.c")
    environment = {"GRIDRPC_MODULE_PATH": str(modules), "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        [program], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        worker = int(process.stdout.readline())
        process.send_signal(number)
        assert process.wait(timeout=20) == -number
    assert ends(worker)


def test_workers_end_with_a_program_that_is_killed(compiled, modules, tmp_path):
    program = compiled("signals.c")
    environment = {"GRIDRPC_MODULE_PATH": str(modules), "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        [program], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        worker = int(process.stdout.readline())
        process.kill()
    assert ends(worker)


def test_signals_that_the_program_handles(compiled, modules, tmp_path):
    program = compiled("signals.c")
    environment = {"GRIDRPC_MODULE_PATH": str(modules), "PATH": os.environ["PATH"]}
    with subprocess.Popen(
        [program, "handled"], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert process.stdout.read() == "signal 15\n"


def test_nothing_is_lost_from_memory(compiled, modules, tmp_path):
    program = compiled("leaks.c")
    environment = {"GRIDRPC_MODULE_PATH": str(modules), "PATH": os.environ["PATH"]}
    # Tables are referred to by addresses inside of them, so that more may seem possible.
    kinds = ["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]
    command = [
        "valgrind",
        "--quiet",
        "--leak-check=full",
        *kinds,
        "--error-exitcode=9",
        str(program),
    ]
    done = subprocess.run(
        command,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_memory_and_descriptors_of_a_long_program(run):
    run("steady.c", timeout=120)

"""What a configuration, and modules as they are found, do to a program in C."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time

import pytest


@pytest.fixture
def configured(run, tmp_path):
    """Runs `configured.c` with a configuration; returns what it prints and the errors."""

    def run_one(text, *arguments, **environment):
        file = tmp_path / "client.conf"
        file.write_text(text)
        done = run("configured.c", str(file), *arguments, **environment)
        return done.stdout.strip(), done.stderr

    return run_one


SERVER = "<SERVER>\nhostname localhost\ntag here\n{}\n</SERVER>\n"


def test_environment_and_folder_of_workers(configured, tmp_path):
    text = SERVER.format('environment "COLOUR=dark blue"\nenvironment OMP_NUM_THREADS=7')
    assert configured(text, "variable", "COLOUR")[0] == "dark blue"
    assert configured(text, "variable", "OMP_NUM_THREADS")[0] == "7"
    assert int(configured(text, "variable", "OPENBLAS_NUM_THREADS")[0]) >= 1
    assert configured(text, "variable", "OPENBLAS_NUM_THREADS", OPENBLAS_NUM_THREADS="3")[0] == "3"
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    assert configured(SERVER.format(f"workDirectory {folder}"), "folder")[0] == str(folder)


def test_modules_that_workers_have_from_the_beginning(configured, modules):
    text = SERVER.format(f"preload {modules / 'cases.so'}\npreload cases")
    assert configured(text, "cases/add")[0] == "0"
    code, error = configured(SERVER.format("preload /no/such.so"), "cases/add")
    assert code != "0"
    assert '`preload` names "/no/such.so"' in error


def test_time_limit_of_a_function(configured, modules):
    info = "<FUNCTION_INFO>\nhostname localhost\nfuncname cases/nap\npath {}\nsession_timeout 1\n"
    text = SERVER.format("") + info.format(modules / "cases.so") + "</FUNCTION_INFO>\n"
    assert configured(text, "limit")[0] == "16"


def test_output_of_workers(configured):
    out, errors = configured(SERVER.format(""), "shout")
    assert "said" in out
    assert "to stderr" in errors
    out, errors = configured(SERVER.format("redirect_outerr false"), "shout")
    assert "said" not in out
    assert "to stderr" not in errors


def test_numbers_by_address(configured, tmp_path):
    fortran = "<CLIENT>\nfortran_compatible true\n</CLIENT>\n"
    assert configured(fortran, "fortran")[0] == "3"
    other, bad = tmp_path / "other.conf", tmp_path / "bad.conf"
    other.write_text(fortran)
    bad.write_text("nonsense\n")
    assert configured("", "again", str(other), str(bad))[0] == "3"


def test_sessions_that_are_kept(configured):
    client = "<CLIENT>\nsave_sessionInfo {}\n</CLIENT>\n"
    assert configured(client.format(0), "session")[0] == "8"
    assert configured(client.format(1), "session")[0] == "0"
    assert configured(client.format(-1), "session")[0] == "0"


def test_signals_that_are_left_alone(configured):
    text = "<CLIENT>\nhandling_signals none\n</CLIENT>\n"
    assert configured(text, "signal")[0] == str(int(signal.SIGTERM))


def test_the_folder_of_files(configured, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    text = f"<CLIENT>\ntmp_dir {folder}\n</CLIENT>\n"
    assert configured(text, "file")[0].startswith(f"{folder}/")


def test_defaults_of_servers_in_another_file(configured, tmp_path):
    (tmp_path / "defaults.conf").write_text(
        "<SERVER_DEFAULT>\nenvironment COLOUR=red\nenvironment SHAPE=round\n</SERVER_DEFAULT>\n"
    )
    text = "<INCLUDE>\nfilename defaults.conf\n</INCLUDE>\n" + SERVER.format(
        "environment COLOUR=blue"
    )
    assert configured(text, "variable", "COLOUR")[0] == "blue"
    assert configured(text, "variable", "SHAPE")[0] == "round"


def test_a_worker_that_does_not_start_in_time(configured, tmp_path):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 100\n")
    slow.chmod(0o755)
    begin = time.monotonic()
    code, error = configured(
        SERVER.format("job_startTimeout 1"), "cases/add", GRIDRPC_PROGRAM=str(slow)
    )
    assert code == "16"
    assert "within 1s" in error
    assert time.monotonic() - begin < 20


def test_unknown_attributes_are_errors(configured):
    code, error = configured("<CLIENT>\nnonsense 1\n</CLIENT>\n", "cases/add")
    assert code == "4"
    assert "client.conf:2" in error
    assert "nonsense" in error


def test_attributes_without_effect_are_reported(configured):
    code, error = configured(SERVER.format("jobmanager jobmanager-pbs"), "cases/add")
    assert code == "0"
    assert "client.conf:4" in error


@pytest.mark.parametrize("section", ["LOCAL_LDIF", "MDS_SERVER"])
def test_a_section_that_nothing_needs_is_reported_at_level_3(configured, section):
    text = f"<{section}>\nfilename a.ldif\n</{section}>\n"
    reported = f"<{section}> has no meaning here"
    assert reported not in configured(text, "cases/add")[1]
    assert reported in configured(f"<CLIENT>\nloglevel 3\n</CLIENT>\n{text}", "cases/add")[1]


@pytest.fixture
def logged(run, tmp_path):
    """Runs `logged.c` with a line of the configuration; returns the errors."""

    def run_one(line):
        file = tmp_path / "client.conf"
        file.write_text(f"<CLIENT>\n{line}\n</CLIENT>\n")
        return run("logged.c", str(file)).stderr

    return run_one


@pytest.mark.parametrize("level", ["", "loglevel 2", "loglevel Error", "loglevel 5"])
def test_errors_are_logged(logged, level):
    """Old programs print no more than `grpc_error_string`."""
    reported = logged(level)
    for text in (
        '`no.such.host` is not this machine, and there is no server "no.such.host"',
        "session 0: cases/leave: the function ended its process with status 7",
        "process with status 8",
    ):
        assert reported.count(text) >= 1, reported
    assert reported.count("process with status 7") == 1, "once"


@pytest.mark.parametrize("level", ["loglevel 0", "loglevel Off", "loglevel Fatal"])
def test_errors_that_nobody_wants_to_see(logged, level):
    assert "gridrpc: error" not in logged(level)


def test_log_file(configured, tmp_path):
    text = f"<CLIENT>\nloglevel 5\nlog_filePath {tmp_path}/logs/%p.log\n</CLIENT>\n"
    assert configured(text, "cases/add")[0] == "0"
    (log,) = (tmp_path / "logs").iterdir()
    assert "workers" in log.read_text()


def test_log_files_of_many_programs_that_start_at_once(compiled, modules, tmp_path):
    """In a folder that is not there yet."""
    file = tmp_path / "client.conf"
    file.write_text(f"<CLIENT>\nloglevel 5\nlog_filePath {tmp_path}/a/b/%p.log\n</CLIENT>\n")
    environment = {"GRIDRPC_MODULE_PATH": str(modules), "GRIDRPC_WORKERS": "1"}
    command = [compiled("configured.c"), file, "cases/add"]
    programs = [
        subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    for program in programs:
        assert program.communicate(timeout=60)[0] == "0\n"
    assert len(list((tmp_path / "a/b").iterdir())) == 8


def test_servers_by_tag_and_name(configured):
    text = SERVER.format("") + "<SERVER>\nhostname far.away.invalid\ntag far\n</SERVER>\n"
    assert configured(text, "cases/add", "here")[0] == "0"
    code, error = configured(text, "cases/add", "far")
    assert code == "5"
    assert "far" in error


def test_modules_by_path_and_list(configured, modules, tmp_path):
    none = {"GRIDRPC_MODULE_PATH": "", "GRIDRPC_CATALOGUE": str(tmp_path / "none")}
    assert configured("", "cases/add", **none)[0] == "6"
    stub = tmp_path / "_stub_add"
    stub.symlink_to(modules / "cases.so")
    info = (
        f"<FUNCTION_INFO>\nhostname localhost\nfuncname cases/add\npath {stub}\n</FUNCTION_INFO>\n"
    )
    assert configured(info, "cases/add", **none)[0] == "0"
    source = "<INFORMATION_SOURCE>\ntype NRF\nsource none.nrf\n</INFORMATION_SOURCE>\n"
    assert "client.conf:1: `source` names" in configured(source, "cases/add", **none)[1]
    (tmp_path / "cases.nrf").write_text(f"module {modules / 'cases.so'}\n")
    source = "<INFORMATION_SOURCE>\ntype NRF\nsource cases.nrf\n</INFORMATION_SOURCE>\n"
    assert configured(source, "cases/add", **none)[0] == "0"
    shutil.copy(modules / "cases.so", tmp_path)
    assert configured("", "cases/add", **none)[0] == "0"


def test_a_module_for_another_version(configured, modules, tmp_path):
    folder = tmp_path / "old"
    folder.mkdir()
    content = (modules / "cases.so").read_bytes()
    assert b"gridrpc module 1\n" in content
    (folder / "cases.so").write_bytes(content.replace(b"gridrpc module 1\n", b"gridrpc module 9\n"))
    code, error = configured("", "cases/add", GRIDRPC_MODULE_PATH=str(folder))
    assert code == "6"
    assert "another version" in error
    assert "compile it again" in error


@pytest.mark.parametrize("program", ["/nonexistent/program", "/bin/false"])
def test_workers_that_cannot_be_started(configured, program):
    code, error = configured("", "cases/add", GRIDRPC_PROGRAM=program)
    assert code == "5"
    assert "no worker could be started" in error


def test_a_missing_file_and_the_usual_ones(run, tmp_path):
    assert run("configured.c", str(tmp_path / "none"), "cases/add").stdout == "3\n"
    (tmp_path / ".ngconf").write_text("<CLIENT>\nfortran_compatible true\n</CLIENT>\n")
    assert run("configured.c", "", "fortran").stdout == "3\n"
    other = tmp_path / "named.conf"
    other.write_text("nonsense\n")
    assert run("configured.c", "", "fortran", NG_CONFIG_FILE=str(other)).stdout == "4\n"


def test_numbers_of_workers(configured):
    code, error = configured("", "cases/add", GRIDRPC_WORKERS="many")
    assert code == "18"
    assert "GRIDRPC_WORKERS" in error
    assert configured("", "cases/add", GRIDRPC_WORKERS="3")[0] == "0"

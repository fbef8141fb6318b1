"""Operations of `gridrpc server`: its log, the service manager, and draining."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from grids import PROGRAM, CompileIdl

IDL = r"""
Module served;
Globals { #include <unistd.h> }
Define nap(IN double seconds) { usleep(seconds * 1e6); }
"""

Start = Callable[..., Any]


class Server:
    """A server that has started."""

    def __init__(self, config: Path, process: subprocess.Popen[str], lines: list[str]) -> None:
        self.config = config
        self.process = process
        #: What it has printed so far.
        self.lines = lines

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [PROGRAM, "server", "--config", self.config, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def start(compile_idl: CompileIdl, tmp_path: Path) -> Start:
    module = compile_idl(IDL)

    @contextmanager
    def start(tables: str = "", **environment: str) -> Iterator[Server]:
        config = tmp_path / "server.toml"
        config.write_text(
            f"[server]\nstate = '{tmp_path}/state'\n[workers]\ncount = 1\n"
            f"[modules]\nfolders = ['{module.parent}']\n{tables}\n"
        )
        command = [PROGRAM, "server", "--config", config, "start"]
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        with process:
            assert process.stderr
            lines = [process.stderr.readline()]
            while lines[-1] and "listens" not in lines[-1]:
                lines.append(process.stderr.readline())
            try:
                assert lines[-1], lines
                yield Server(config, process, lines)
            finally:
                process.terminate()

    return start


def test_the_log_may_be_json(start: Start) -> None:
    with start("[log]\nformat = 'json'") as server:
        assert server.run("stop").returncode == 0
        entries = [json.loads(line) for line in [*server.lines, *server.process.stderr]]
    (published,) = [entry for entry in entries if entry["message"] == "module is published"]
    assert (published["level"], published["module"]) == ("info", "served")
    assert all(entry["time"].endswith("Z") for entry in entries)


def test_the_log_is_text(start: Start) -> None:
    with start() as server:
        published = "gridrpc: module is published module=served file="
        assert any(line.startswith(published) for line in server.lines)


@pytest.mark.parametrize("is_abstract", [False, True])
def test_the_service_manager_learns_that_it_is_ready(
    start: Start, tmp_path: Path, is_abstract: bool
) -> None:
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(20)
        manager.bind("\0" + name if is_abstract else name)
        with start(NOTIFY_SOCKET="@" + name if is_abstract else name) as server:
            assert manager.recv(100) == b"READY=1"
            assert server.run("status").returncode == 0


def test_a_drain_has_a_time_limit(start: Start) -> None:
    with start("[http]\nport = 0\nanonymous = 'guest'") as server, ThreadPoolExecutor() as pool:
        address = server.lines[-1].split()[-1]
        tensor = {"name": "seconds", "datatype": "FP64", "shape": [1], "data": [3]}
        body = json.dumps({"inputs": [tensor]}).encode()

        def nap() -> int:
            request = Request(f"{address}/v2/models/served/nap/infer", body, method="POST")
            with urlopen(request, timeout=20) as answer:
                status: int = answer.status
                return status

        running = pool.submit(nap)
        until = time.monotonic() + 10
        while not json.loads(server.run("status", "--json").stdout)["modules"][0]["alive"]:
            assert time.monotonic() < until
            time.sleep(0.01)
        drained = server.run("drain", "--wait", "--timeout", "1")
        assert drained.returncode == 1
        assert "1 calls have not ended after 1 s" in drained.stderr
        drained = server.run("drain", "--wait", "--timeout", "20")
        assert (drained.returncode, running.result()) == (0, 200)

"""Directories with servers that announce themselves, for tests."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import gridrpc
from grids import PROGRAM
from processes import LONG, until
from servers import Authority, Server, program, serving

#: One function that says where it runs, one that computes, and one that holds a worker.
IDL = r"""
Module where;
Globals {
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
}
Define parent(IN int n, OUT long r[1]) "The process that has started the worker." CalcOrder n
    { *r = getppid(); }
Define scale(IN int n, IN double a, INOUT double x[n])
    "Multiplies a vector by a number, as dscal of BLAS." CalcOrder n
    { for (int i = 0; i < n; i++) x[i] *= a; }
Define hold(IN string log, IN string gate, IN long n, OUT long r[1])
    {
        char line[32];
        int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int length = snprintf(line, sizeof line, "%ld\n", n);
        if (write(file, line, length) != length) abort();
        close(file);
        while (access(gate, F_OK)) usleep(1000);
        *r = n;
    }
"""


class DirectoryProcess:
    """A directory that runs."""

    def __init__(self, folder: Path, authority: Authority, *options: str, before: str = "") -> None:
        self.folder = folder
        #: A program that starts it, and its options.
        self.before = before.split()
        self.credentials = authority.server()
        self.options = options
        self.port = 0
        self.start()

    def start(self) -> None:
        """Start it, the second time on the same port."""
        log = self.folder / "directory.log"
        with log.open("ab") as output:
            begin = output.tell()
            self.process = subprocess.Popen(
                [
                    *self.before, PROGRAM, "directory", "start",
                    "--state", self.folder / "directory", "--port", str(self.port),
                    "--credentials", self.credentials, *self.options,
                ],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

        def port() -> int:
            found = re.search(r"https://[0-9.]+:(\d+)", log.read_bytes()[begin:].decode())
            return int(found.group(1)) if found else 0

        assert until(lambda: port() > 0 or self.process.poll() is not None)
        self.port = port()
        assert self.port, log.read_text()

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(timeout=LONG)


class Site:
    """A directory, servers that announce themselves to it, and a user."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.user = self.authority.user("ann")
        self.stack = ExitStack()
        self.directory = self.run_directory("first", *options)

    def run_directory(self, name: str, *options: str, before: str = "") -> DirectoryProcess:
        folder = self.folder / name
        folder.mkdir()
        directory = DirectoryProcess(folder, self.authority, *options, before=before)
        self.stack.callback(directory.stop)
        return directory

    def serve(
        self,
        name: str,
        module: Path,
        *directories: DirectoryProcess,
        workers: int = 1,
        more: str = "",
        is_listed: bool = True,
        python: str = "",
    ) -> Server:
        """A server that the directories list. `python`: tables of packages in Python."""
        folder = self.folder / name
        folder.mkdir()
        urls = [one.url for one in directories or [self.directory]]
        interpreter = f"python = '{sys.executable}'\n" if python else ""
        config = (
            f"[workers]\ncount = {workers}\n{interpreter}[modules]\nfiles = ['{module}']\n"
            f"[directory]\nurls = {urls}\naddress = '127.0.0.1'\ncredentials = '{self.user}'\n"
            f"interval = 0.3\n{more}{python}"
        )
        places = directories or [self.directory]
        count = self.offers if is_listed else lambda one: len(self.servers(one))
        before = [count(one) for one in places]
        server = self.stack.enter_context(serving(folder, config, self.authority))
        assert until(lambda: all(count(one) > old for one, old in zip(places, before, strict=True)))
        return server

    def command(
        self, *words: str, directory: DirectoryProcess | None = None, status: int = 0
    ) -> str:
        """What `gridrpc directory` prints."""
        url = (directory or self.directory).url
        place = ["--directory", url, "--credentials", str(self.user)]
        return program("directory", *words, *place, status=status)

    def servers(self, directory: DirectoryProcess | None = None) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]]
        listed = json.loads(self.command("status", "--json", directory=directory))["servers"]
        return listed

    def offers(self, directory: DirectoryProcess) -> int:
        """How many servers offer `where/scale`."""
        listed = json.loads(self.command("list", "--json", directory=directory))
        return sum(len(one["servers"]) for one in listed if one["name"] == "where/scale")

    def grid(
        self, *directories: DirectoryProcess, trusted: bool = False, **options: Any
    ) -> gridrpc.Grid:
        """A grid that chooses among the servers. `trusted`: results may be pickles."""
        added = f"credentials={self.user}{'&trusted=true' if trusted else ''}"
        urls = [f"{one.url}?{added}" for one in directories or [self.directory]]
        grid = gridrpc.Grid(directory=urls, **options)
        self.stack.callback(grid.close)
        return grid

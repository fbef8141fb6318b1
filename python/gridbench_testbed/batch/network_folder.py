"""A folder that comes over the network, as those that the nodes of a cluster share.

SFTP over TCP on the loopback interface, mounted by sshfs, which needs FUSE and no more of the
kernel. What files hold is read anew whenever one is opened.

    with NetworkFolder() as folder:
        (folder.path / "file").write_text("there and back")
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

from gridbench_testbed.daemons import PATIENCE, lacking, serve_each

_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")


def why_not() -> str:
    """Why there can be no such folder here; empty if there can."""
    program = lacking("sshfs", "fusermount3")
    if program or _server() is None:
        return f"`{program or 'sftp-server'}` is not installed: scripts/ensure-sshfs does that"
    return "" if os.access("/dev/fuse", os.W_OK) else "/dev/fuse cannot be opened"


def _server() -> str | None:
    return next((one for one in _SERVERS if os.access(one, os.X_OK)), None)


class NetworkFolder:
    """While active, `path` is a folder on a server."""

    def __init__(self) -> None:
        self._base = Path(tempfile.mkdtemp(prefix="gb-network-"))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._mounted: subprocess.Popen[bytes] | None = None
        self._serving: list[subprocess.Popen[bytes]] = []
        self.path = self._base / "mounted"
        self.path.mkdir()
        (self._base / "served").mkdir()

    def __enter__(self) -> NetworkFolder:
        arguments = self._listener, self._serve
        threading.Thread(target=serve_each, args=arguments, daemon=True).start()
        port = self._listener.getsockname()[1]
        # Nobody keeps names or attributes either: nodes see what others have written at once.
        options = f"directport={port},dir_cache=no,entry_timeout=0,attr_timeout=0"
        command = ["sshfs", "-f", "-o", options, f"127.0.0.1:{self._base / 'served'}"]
        log = self._base / "log"
        with log.open("wb") as file:
            self._mounted = subprocess.Popen(
                [*command, str(self.path)], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + PATIENCE
        while not os.path.ismount(self.path):
            if self._mounted.poll() is not None or time.monotonic() > until:
                said = log.read_text(errors="replace").strip()
                self.close()
                raise RuntimeError(f"sshfs has not mounted: {said}")
            time.sleep(0.02)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unmount the folder, and remove what it held."""
        with contextlib.suppress(OSError):
            self._listener.close()
        subprocess.run(
            ["fusermount3", "-u", "-z", str(self.path)], capture_output=True, check=False
        )
        for process in (*([self._mounted] if self._mounted else []), *self._serving):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.terminate()
                process.wait(PATIENCE)
        shutil.rmtree(self._base, ignore_errors=True)

    def _serve(self, connection: socket.socket) -> None:
        """A server of files for a connection, as sshd has it."""
        server = _server()
        assert server is not None
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._serving.append(
                subprocess.Popen(
                    [server],
                    stdin=connection.fileno(),
                    stdout=connection.fileno(),
                    stderr=subprocess.DEVNULL,
                )
            )

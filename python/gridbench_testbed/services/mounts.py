"""File systems of FUSE: mounted once for each worker, or a folder that comes over the network.

Mounts agree with a delay. FUSE tells its file system of the end of a file only after `close` has
returned, and the kernel keeps names and attributes for a second: what one mount wrote, another has
in full a second later. `mkdir` and its kin are seen at once, except what is removed.

A network folder is SFTP over TCP on the loopback interface, mounted by sshfs, which needs FUSE and
no more of the kernel. What files hold is read again whenever one is opened.

    with NetworkFolder() as folder:
        (folder.path / "file").write_text("there and back")
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from gridbench_testbed.daemons import PATIENCE, Daemons, lacking, serve_each


def why_no_fuse() -> str:
    """Why FUSE cannot mount here; empty if it can."""
    if lacking("fusermount3"):
        return "`fusermount3` is not installed: scripts/ensure-gfarm does that"
    return "" if os.access("/dev/fuse", os.R_OK | os.W_OK) else "/dev/fuse cannot be opened"


def mounted() -> set[str]:
    """The mount points that this process sees."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {
        re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line.split()[4]) for line in lines
    }


class Mounts(Daemons):
    """A file system that is mounted at each path of `mounts` while this is open."""

    # A process group keeps Ctrl-C from them.
    _sessions = False

    def __init__(
        self, name: str, directory: Path | None = None, mounts_in: Path | None = None
    ) -> None:
        """`directory`: the parent of `folder`. `mounts_in`: the folder of `mounts`, by default
        `folder`; created if missing."""
        super().__init__(name, directory)
        self.mounts: list[Path] = []
        """A mount point for each worker: mount-0, mount-1 and so on."""
        self.directories: list[Path] = []
        """A directory for each worker, below its mount point."""
        # Resolved, as in the system's list of mounts.
        self._mounts_in = (mounts_in or self.folder).resolve()
        self.variables = {"GRIDBENCH_MOUNTS": str(self._mounts_in)}
        self._made: list[Path] = []

    def close(self) -> None:
        """Unmount, end all daemons, and remove the files; may be called again."""
        super().close()
        if os.getpid() != self._owner:
            return
        # `rmdir` keeps folders with files of others.
        for place in reversed(self._made):
            with contextlib.suppress(OSError):
                place.rmdir()
        self._made = []

    def _mount(self, count: int, program: str, *arguments: str) -> None:
        """Run `program` `count` times in the foreground, each with a mount point as its last
        argument."""
        if not self._mounts_in.exists():
            self._mounts_in.mkdir(parents=True)
            self._made.append(self._mounts_in)
        for number in range(count):
            mount = self._mounts_in / f"mount-{number}"
            if not mount.exists():
                mount.mkdir()
                self._made.append(mount)
            elif str(mount) in mounted() or any(mount.iterdir()):
                raise RuntimeError(f"{mount} is there already, and not an empty folder")
            self.mounts.append(mount)
            self._start(mount.name, program, *arguments, str(mount))
        wanted = set(map(str, self.mounts))
        self._until(lambda: wanted <= mounted(), "nothing is mounted")
        for number, mount in enumerate(self.mounts):
            self.directories.append(mount / f"worker-{number}")
            self.directories[-1].mkdir()

    def _leave(self) -> None:
        try:
            # All at once, as each takes a while.
            names = [mount.name for mount in self.mounts if mount.name in self._daemons]
            for name in names:
                self._signal_to_end(name)
            for name in names:
                self._end(name)
        finally:
            # A killed program leaves its mount.
            for mount in self.mounts:
                if str(mount) in mounted():
                    command = ["fusermount3", "-u", "-z", str(mount)]
                    subprocess.run(command, capture_output=True, check=False)


def why_no_passthrough() -> str:
    """Why bindfs cannot be used here; empty if it can."""
    if program := lacking("bindfs", "setpriv"):
        return f"`{program}` is not installed: scripts/ensure-gfarm does that"
    return why_no_fuse()


class Passthrough(Mounts):
    """A folder of a local disk, mounted several times by bindfs."""

    def __init__(
        self, mounts: int = 1, *, directory: Path | None = None, mounts_in: Path | None = None
    ) -> None:
        """`directory`: the parent of the folder, on the disk to use."""
        super().__init__("passthrough", directory, mounts_in)
        served = self.folder / "served"
        served.mkdir()
        with self._making():
            self._mount(mounts, "bindfs", "-f", "-o", "fsname=passthrough", str(served))


_SERVERS = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")


def why_no_network_folder() -> str:
    """Why a network folder cannot be mounted here; empty if it can."""
    program = lacking("sshfs", "fusermount3")
    if program or _server() is None:
        return f"`{program or 'sftp-server'}` is not installed: scripts/ensure-sshfs does that"
    return why_no_fuse()


def _server() -> str | None:
    return next((one for one in _SERVERS if os.access(one, os.X_OK)), None)


class NetworkFolder:
    """A folder on a server, at `path` while this is active."""

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
        # No caches of names and attributes: nodes see writes of others at once.
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmount the folder, and remove its files."""
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
        """Start an SFTP server for a connection, as sshd does."""
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

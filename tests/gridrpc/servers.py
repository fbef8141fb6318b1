"""Servers that many clients share, certificates of their users, and connections made by hand."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gridrpc
from grids import PROGRAM, opened
from hostile import sections, text
from processes import LONG, descendants, running, until

#: Kinds of messages.
FUNCTION, REPLY, FAILURE, GOODBYE = 3, 6, 7, 12
JOIN, SERVE, WORKERS, HOST_CALL, ENDED, PING, PONG = 48, 49, 50, 51, 52, 56, 57
#: First bytes of a server over TLS to a client that it admits.
ADMITTED = b"gridrpc1"
#: In place of a reserved worker: any.
ANY = 0xFFFF_FFFF
#: Stamps of an answer, without its leases: what stands between the call and these.
STAMPS = 5 * 8 + 3 * 4


#: A module for many purposes. `gated` appends a line to a file, and then waits for another file.
WORK = r"""
Module work;
Globals {
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <time.h>
    #include <unistd.h>
    static void note(const char *log, long n)
    {
        char line[32];
        int file = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        int length = snprintf(line, sizeof line, "%ld\n", n);
        if (write(file, line, length) != length) abort();
        close(file);
    }
    static long now(void)
    {
        struct timespec at;
        clock_gettime(CLOCK_MONOTONIC, &at);
        return at.tv_sec * 1000000000L + at.tv_nsec;
    }
}
Define pid(OUT long r[1]) { *r = getpid(); }
Define add(IN long a, IN long b, OUT long r[1]) { *r = a + b; }
Define gated(IN string log, IN string gate, IN long n, OUT long r[1])
    {
        note(log, n);
        while (access(gate, F_OK)) usleep(1000);
        *r = n;
    }
Define nap(IN string log, IN long ms, OUT long r[1])
    {
        note(log, now());
        usleep(1000 * ms);
        note(log, *r = now());
    }
Define scale(IN long n, IN double a, INOUT double x[n])
    { for (long i = 0; i < n; i++) x[i] *= a; }
Define copy(IN long n, IN uint8 x[n], OUT uint8 y[n]) { memcpy(y, x, n); }
Define ask(IN int n, OUT int r[n], answer(IN int i, OUT int a[1]))
    { for (int i = 0; i < n; i++) answer(i, r + i); }
Define threads(OUT long r[1])
    { char *text = getenv("OMP_NUM_THREADS"); *r = text ? atol(text) : 0; }
DefClass counter {
    DefState { static long value; }
    DefMethod add(IN long n, OUT long r[1]) { *r = value += n; }
    DefMethod pid(OUT long r[1]) { *r = getpid(); }
}
"""


def named(name: str) -> str:
    """The same as a module of another name."""
    return WORK.replace("Module work", f"Module {name}")


def program(*arguments: object, status: int = 0, **options: Any) -> str:
    """What a command of `gridrpc` prints."""
    command = [PROGRAM, *map(str, arguments)]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=LONG, check=False, **options
    )
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def offering(*modules: Path, workers: int = 1, python: bool = False) -> str:
    """Tables of a configuration: workers, these modules, and a watched folder."""
    interpreter = f"python = '{sys.executable}'\n" if python else ""
    files = [str(module) for module in modules]
    return (
        f"[workers]\ncount = {workers}\n{interpreter}"
        f"[modules]\nfolders = ['watched']\nfiles = {files}\n"
    )


def began(log: Path) -> list[int]:
    """The numbers that calls have written: `gated` its argument, `nap` its begin and end in ns."""
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def hold(grid: gridrpc.Grid, folder: Path, module: str, number: int = 0) -> gridrpc.Call[Any]:
    """A call of `gated` that has begun, and holds a worker until there is a file `gate`."""
    call = grid.submit(f"{module}/gated", str(folder / "log"), str(folder / "gate"), number)
    assert until(lambda: number in began(folder / "log"))
    return call


class Authority:
    """An authority that signs certificates of servers and users."""

    def __init__(self, folder: Path, name: str = "test") -> None:
        self.folder = folder / f"authority-{name}"
        self._users = folder / f"users-{name}"
        program("ca", "init", "--folder", self.folder, "--name", name)
        self._users.mkdir()
        #: Names of its servers.
        self.hosts: tuple[str, ...] = ("localhost", "127.0.0.1")

    def server(self) -> Path:
        """The folder with the credentials of all servers with the names `hosts`."""
        hosts = self.hosts
        folder = self._users / f"server-{hosts[0]}"
        if not folder.exists():
            names = [word for host in hosts for word in ("--host", host)]
            program("ca", "server", "lab", *names, "--out", folder, "--folder", self.folder)
        return folder

    def user(self, name: str, *groups: str) -> Path:
        """The folder with the credentials of a user."""
        folder = self._users / name
        program("ca", "request", name, "--out", folder)
        words = [word for group in groups for word in ("--group", group)]
        answer = self._users / f"{name}.pem"
        request = folder / "request.pem"
        program("ca", "sign", request, *words, "--out", answer, "--folder", self.folder)
        program("ca", "install", answer, "--out", folder)
        return folder

    def dated(self, name: str, begin: str, end: str) -> Path:
        """The same with a certificate that is valid between these days, such as `19980101`."""
        folder = self._users / name
        program("ca", "request", name, "--out", folder)
        answer = self._users / f"{name}.pem"
        (self._users / "index.txt").touch()
        (self._users / "ca.cnf").write_text(
            "[ca]\ndefault_ca=old\n[old]\ndatabase=index.txt\nnew_certs_dir=.\nrand_serial=yes\n"
            "default_md=sha256\npolicy=any\nx509_extensions=user\n[any]\ncommonName=supplied\n"
            "[user]\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=clientAuth\n"
        )
        key = ["-cert", self.folder / "authority.pem", "-keyfile", self.folder / "key.pem"]
        dates = ["-startdate", f"{begin}000000Z", "-enddate", f"{end}000000Z"]
        request = ["-in", folder / "request.pem", "-out", answer, "-notext"]
        command = ["openssl", "ca", "-batch", "-config", "ca.cnf", *key, *dates, *request]
        subprocess.run(command, cwd=self._users, check=True, capture_output=True)
        shutil.copy(answer, folder / "certificate.pem")
        shutil.copy(self.folder / "authority.pem", folder / "authority.pem")
        return folder

    def revoke(self, name: str) -> None:
        program("ca", "revoke", name, "--folder", self.folder)


class Server:
    """A server that runs."""

    def __init__(
        self,
        folder: Path,
        config: str,
        authority: Authority | None = None,
        *,
        socket: Path | None = None,
        program: Path = PROGRAM,
    ) -> None:
        self.folder = folder
        self.authority = authority
        self.file = write_config(folder, config, authority)
        self.state = folder / "state"
        self.socket = socket or self.state / "socket"
        self.printed = folder / "printed"
        self.program = program
        self.start()

    def start(self) -> None:
        """Starts it, and waits for the line that says where it listens."""
        with self.printed.open("ab") as output:
            begin = output.tell()
            self.process = subprocess.Popen(
                [self.program, "server", "-c", self.file, "start"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

        def line() -> str:
            return next((one for one in self.lines(begin) if " listens at " in one), "")

        assert until(lambda: bool(line()) or self.process.poll() is not None)
        assert line(), self.printed.read_text()
        _, _, port = line().rpartition(":")
        self.port = int(port) if " and " in line() else 0

    @property
    def pid(self) -> int:
        return self.process.pid

    def lines(self, begin: int = 0) -> list[str]:
        """What it has printed."""
        return self.printed.read_bytes()[begin:].decode(errors="replace").splitlines()

    def says(self, words: str) -> bool:
        """Whether it prints these words, now or soon."""
        return until(lambda: any(words in line for line in self.lines()))

    def command(self, *words: object, status: int = 0) -> str:
        """What `gridrpc server` prints."""
        return program("server", "-c", self.file, *words, status=status)

    def state_of(self, key: str) -> Any:
        return json.loads(self.command("status", "--json"))[key]

    def module(self, name: str) -> dict[str, Any]:
        """The state of a module; empty: there is none."""
        modules: list[dict[str, Any]] = self.state_of("modules")
        return next((module for module in modules if module["name"] == name), {})

    def audit(self, event: str = "") -> list[dict[str, Any]]:
        """Records of the audit log."""
        file = self.state / "audit.jsonl"
        # The last line may not be complete.
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        records = [json.loads(line) for line in lines if line.endswith("\n")]
        return [record for record in records if event in {"", record["event"]}]

    def url(self, credentials: Path | None = None, *, trusted: bool = False) -> str:
        """Its URL: with credentials that of its port, without those that of its socket."""
        query = [f"credentials={credentials}"] if credentials else []
        query += ["trusted=true"] if trusted else []
        place = (
            f"gridrpc://127.0.0.1:{self.port}" if credentials else f"gridrpc+unix://{self.socket}"
        )
        return f"{place}?{'&'.join(query)}" if query else place

    @contextmanager
    def client(
        self, credentials: Path | None = None, *, trusted: bool = False
    ) -> Iterator[gridrpc.Grid]:
        with opened(servers=[self.url(credentials, trusted=trusted)]) as grid:
            yield grid

    def publish(self, file: Path, name: str) -> None:
        """Puts a module into the watched folder, at once."""
        new = self.folder / "watched" / ".new"
        shutil.copy(file, new)
        new.rename(self.folder / "watched" / f"{name}.so")

    def connect(self, credentials: Path | None = None) -> Wire:
        """A connection by hand."""
        if credentials is None:
            plain = socket.socket(socket.AF_UNIX)
            plain.connect(str(self.socket))
            return Wire(plain)
        wire = Wire(tls(credentials).wrap_socket(self.dial(), server_hostname="127.0.0.1"))
        assert wire.stream.read(len(ADMITTED)) == ADMITTED
        return wire

    def dial(self) -> socket.socket:
        """A connection to its port, without TLS so far."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=LONG)

    def stop(self) -> int:
        """Ends it and returns its status; all its processes are gone then."""
        started = descendants(self.pid)
        self.process.terminate()
        status = self.process.wait(timeout=LONG)
        assert until(lambda: not running(started))
        return status


def write_config(folder: Path, config: str, authority: Authority | None) -> Path:
    """A file of this text, with keys of all servers of tests.

    `config` starts with further keys of [server].
    """
    (folder / "watched").mkdir(exist_ok=True)
    head = f'[server]\nname = "lab"\nstate = "{folder / "state"}"\n'
    tail = ""
    if authority is not None:
        head += "port = 0\n"
        files = authority.server()
        tail = (
            f'\n[tls]\ncertificate = "{files}/certificate.pem"\nkey = "{files}/key.pem"\n'
            f'authority = "{files}/authority.pem"\nrevoked = "{authority.folder}/revoked.pem"\n'
        )
    file = folder / "server.toml"
    file.write_text(head + config + tail)
    return file


@contextmanager
def serving(
    folder: Path,
    config: str,
    authority: Authority | None = None,
    *,
    socket: Path | None = None,
    program: Path = PROGRAM,
) -> Iterator[Server]:
    """A server while the context lasts. It may have ended before."""
    server = Server(folder, config, authority, socket=socket, program=program)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def tls(credentials: Path) -> ssl.SSLContext:
    """What a client of a server needs."""
    context = ssl.create_default_context(cafile=credentials / "authority.pem")
    context.load_cert_chain(credentials / "certificate.pem", credentials / "key.pem")
    return context


def frame(kind: int, body: bytes) -> bytes:
    return b"GR" + struct.pack("<BcBBHII", 3, b"l", kind, 0, 0, len(body), 0) + body


class Wire:
    """A client that speaks the wire format by itself: docs/developers/wire-format.md."""

    def __init__(self, connected: socket.socket) -> None:
        connected.settimeout(LONG)
        self.socket = connected
        self.stream = connected.makefile("rb")

    def send(self, kind: int, body: bytes) -> None:
        self.socket.sendall(frame(kind, body))

    def receive(self, *kinds: int) -> tuple[int, bytes]:
        """The next message of one of these kinds; kind 0: the connection has ended."""
        while True:
            try:
                header = self.stream.read(16)
            except OSError:
                header = b""
            if len(header) < 16:
                return 0, b""
            (length,) = struct.unpack_from("<I", header, 8)
            body = self.stream.read(length)
            if header[4] in kinds or not kinds:
                return header[4], body

    def has_ended(self) -> bool:
        """Whether the server closes the connection."""
        return self.receive(-1) == (0, b"")

    def serve(self) -> None:
        """Becomes a client that makes calls."""
        assert self.receive()[0] == JOIN
        numbers = struct.pack("<BIQQQIQQB", 3, 0, 1 << 20, 0, 0, 0, 1 << 40, 0, 0)
        texts = (
            text("") + bytes(2) + bytes(2) + text("") + bytes(2) + bytes(2) + text("") + bytes(2)
        )
        self.send(SERVE, numbers + texts)
        assert self.receive(WORKERS)[0] == WORKERS

    def name(self, number: int, name: str, form: int = 0) -> None:
        self.send(FUNCTION, struct.pack("<IB", number, form) + text(name) + sections())

    def call(self, number: int, function: int, *parts: bytes, blobs: tuple[int, ...] = ()) -> None:
        head = struct.pack("<QIIBH", number, function, ANY, 0, len(blobs))
        listed = b"".join(struct.pack("<Q", blob) for blob in blobs)
        self.send(HOST_CALL, head + listed + sections(*parts))

    def failure(self) -> tuple[str, str]:
        """The name and the message of the next failure."""
        kind, body = self.receive(REPLY, FAILURE, ENDED, 0)
        assert kind == FAILURE, (kind, body)
        at, texts = 8 + STAMPS, []
        (leases,) = struct.unpack_from("<H", body, at)
        at += 2 + 12 * leases
        for _ in range(2):
            (length,) = struct.unpack_from("<I", body, at)
            texts.append(body[at + 4 : at + 4 + length].decode())
            at += 4 + length
        return texts[0], texts[1]

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def arguments(*given: int | str | None) -> list[bytes]:
    """Sections of a call with integers and texts as arguments; None: an OUT parameter."""
    packed, parts = [], []
    for value in given:
        if value is None:
            packed.append(b"\0")
        elif isinstance(value, int):
            packed.append(struct.pack("<Bq", 1, value))
        else:
            parts.append(struct.pack("<q", len(value.encode())) + value.encode())
            packed.append(struct.pack("<BH", 4, len(parts)))
    return [struct.pack("<H", len(given)) + b"".join(packed), *parts]


def sockets_of(pid: int) -> int:
    """How many sockets a process has."""
    folder = Path(f"/proc/{pid}/fd")

    def target(name: str) -> str:
        try:
            return os.readlink(folder / name)
        except OSError:
            return ""

    return sum(target(name).startswith("socket:") for name in os.listdir(folder))

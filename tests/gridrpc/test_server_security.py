"""Attacks on a server: certificates, damaged frames, floods, tricks in names, harmful modules."""

from __future__ import annotations

import itertools
import os
import random
import resource
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psutil
import pytest

import gridrpc
from grids import CompileIdl, opened
from hostile import sections, text
from processes import LONG, descendants, running, until
from servers import (
    ADMITTED,
    ANY,
    ENDED,
    FAILURE,
    FUNCTION,
    HOST_CALL,
    JOIN,
    PING,
    PONG,
    REPLY,
    SERVE,
    WORK,
    Authority,
    Server,
    Wire,
    arguments,
    frame,
    hold,
    offering,
    program,
    serving,
    sockets_of,
    tls,
    write_config,
)

pytestmark = pytest.mark.usefixtures("no_modules_here")

#: Functions that harm their worker, or try to harm more.
HARMFUL = r"""
Module harmful;
Globals {
    #include <fcntl.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/wait.h>
    #include <unistd.h>
}
Define crash() { raise(SIGSEGV); }
Define leave(IN int status) { _exit(status); }
Define exits(IN int status) { exit(status); }
Define forks(IN int n, OUT long r[1])
    { for (int i = 0; i < n; i++) if (fork() == 0) for (;;) pause(); *r = getpid(); }
Define eat(OUT long r[1])
    {
        for (*r = 0; *r < 4096; ++*r) {
            char *some = malloc(1 << 20);
            if (!some) abort();
            memset(some, 1, 1 << 20);
        }
    }
Define user(OUT long r[1]) { *r = getuid(); }
Define reads(IN string file, OUT long r[1]) { *r = open(file, O_RDONLY) >= 0; }
Define opens(IN int n, OUT long r[1])
    {
        int fds[1024];
        for (*r = 0; *r < n && (fds[*r] = open("/dev/null", O_RDONLY)) >= 0; ++*r);
        for (long i = 0; i < *r; i++) close(fds[i]);
    }
Define starts(IN int n, OUT long r[1])
    {
        pid_t pids[1024];
        for (*r = 0; *r < n; ++*r) {
            if ((pids[*r] = fork()) == 0) for (;;) pause();
            if (pids[*r] < 0) break;
        }
        for (long i = 0; i < *r; i++) { kill(pids[i], SIGKILL); waitpid(pids[i], 0, 0); }
    }
Define holds(IN filename f, OUT string told)
    {
        char content[64];
        int fd = open(f, O_RDONLY);
        long n = read(fd, content, sizeof content);
        close(fd);
        for (long i = 0; i < n; i++) if (!content[i]) content[i] = '0';
        *told = malloc(256);
        snprintf(*told, 256, "%s:%.*s", f, (int)n, content);
    }
Define closes() { for (int fd = 3; fd < 1024; fd++) close(fd); }
Define overwrites(IN string file, OUT long r[1])
    {
        int fd = open(file, O_WRONLY | O_TRUNC);
        *r = fd >= 0 && write(fd, "harm", 4) == 4;
    }
"""


class Site:
    """A server, and a user who is as usual."""

    def __init__(self, folder: Path, config: str) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        self.ann = self.authority.user("ann")
        self.server = Server(folder, config, self.authority)

    def works(self) -> bool:
        """Whether the usual user can connect and call."""
        with self.server.client(self.ann) as grid:
            return int(grid.function("work/add")(20, 22)[0]) == 42


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, compile_idl: CompileIdl) -> Iterator[Site]:
    config = offering(compile_idl(WORK), compile_idl(HARMFUL), workers=2)
    made = Site(tmp_path_factory.mktemp("site"), config)
    try:
        yield made
        # Whatever the tests have done.
        assert made.works()
    finally:
        assert made.server.stop() == 0
        assert "panicked" not in made.server.printed.read_text()


def refused(server: Server, words: str) -> bool:
    """Whether the audit log has a connection that was refused for this reason, now or soon."""
    return until(
        lambda: any(words in record.get("outcome", "") for record in server.audit("refuse"))
    )


def is_admitted(server: Server, context: ssl.SSLContext) -> bool:
    with ExitStack() as stack:
        stack.enter_context(suppress(OSError))
        dialled = stack.enter_context(closing(server.dial()))
        secured = context.wrap_socket(dialled, server_hostname="127.0.0.1")
        return stack.enter_context(closing(secured)).recv(len(ADMITTED)) == ADMITTED
    return False


# ---- Certificates


def test_no_certificate(site: Site) -> None:
    context = ssl.create_default_context(cafile=site.ann / "authority.pem")
    assert not is_admitted(site.server, context)
    assert refused(site.server, "it has presented no certificate")
    context.load_cert_chain(site.ann / "certificate.pem", site.ann / "key.pem")
    assert is_admitted(site.server, context)


def test_an_expired_certificate(site: Site) -> None:
    assert not is_admitted(site.server, tls(site.authority.dated("old", "19980101", "19990101")))
    assert refused(site.server, "its certificate expired on 1999-01-01")


def test_clocks_that_differ(site: Site) -> None:
    """Each side says what the certificate and its own clock say."""
    young = site.authority.dated("young", "20900101", "20910101")
    assert not is_admitted(site.server, tls(young))
    reported = "its certificate is not valid before 2090-01-01"
    assert refused(site.server, reported)
    (record, *_) = (one for one in site.server.audit("refuse") if reported in one["outcome"])
    assert f"the clock of this host says {record['time'][:10]}" in record["outcome"]
    url = site.server.url(young)
    with (
        opened(servers=[url]) as grid,
        pytest.raises(gridrpc.StartError, match="is valid from 2090-01-01") as caught,
    ):
        grid.submit("work/add", 1, 2).result(LONG)
    assert f"the clock of this host says {record['time'][:10]}" in str(caught.value)


def test_a_server_whose_certificate_is_not_valid_yet(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    young = authority.dated("young", "20900101", "20910101")
    file = write_config(tmp_path, "[workers]\ncount = 1\n", authority)
    text_of_file = file.read_text()
    for name in ("certificate", "key"):
        (before,) = (line for line in text_of_file.splitlines() if line.startswith(f"{name} = "))
        text_of_file = text_of_file.replace(before, f"{name} = '{young / name}.pem'")
    file.write_text(text_of_file)
    for command in ("check", "start"):
        said = program("server", "-c", file, command, status=1)
        assert "is valid from 2090-01-01" in said
        assert "the clock of this host says 2" in said


def test_a_foreign_certificate(site: Site, tmp_path: Path) -> None:
    foreign = Authority(tmp_path, "foreign").user("ann")
    context = tls(foreign)
    context.load_verify_locations(site.ann / "authority.pem")
    assert not is_admitted(site.server, context)
    assert refused(site.server, "no trusted authority has signed its certificate")
    # Nor does a client accept a server that its own authority does not know.
    with site.server.client(foreign) as grid, pytest.raises(gridrpc.StartError, match="authority"):
        grid.function("work/add")


def test_the_certificate_of_a_server_is_none_of_a_user(site: Site) -> None:
    (folder,) = site.folder.glob("users-*/server-*")
    assert not is_admitted(site.server, tls(folder))
    assert refused(site.server, "its certificate is not valid")


def test_a_server_whose_certificate_has_another_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.hosts = ("lab.example.org",)
    ann = authority.user("ann")
    unknown = pytest.raises(gridrpc.StartError, match=r"lab\.example\.org")
    with serving(tmp_path, offering(), authority) as server, server.client(ann) as grid, unknown:
        grid.function("work/add")


def test_tls_before_version_13(site: Site) -> None:
    context = tls(site.ann)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert not is_admitted(site.server, context)
    assert refused(site.server, "its version of TLS is older than 1.3")


def test_a_revoked_certificate_ends_live_connections(site: Site) -> None:
    bob = site.authority.user("bob")
    with site.server.connect(bob) as wire:
        wire.serve()
        site.authority.revoke("bob")
        assert wire.has_ended()
    assert not is_admitted(site.server, tls(bob))
    assert refused(site.server, "its certificate has been revoked")
    assert site.works()


def test_calls_of_a_revoked_user_end(site: Site, tmp_path: Path) -> None:
    eve = site.authority.user("eve")
    with site.server.client(eve) as grid:
        call = hold(grid, tmp_path, "work")
        site.authority.revoke("eve")
        with pytest.raises(gridrpc.WorkerLost, match="is gone"):
            call.result(LONG)
        # What it ran does not hold a worker forever.
        assert until(lambda: site.server.module("work")["alive"] == 0)
    (tmp_path / "gate").touch()


def test_a_plain_client_at_the_port(site: Site) -> None:
    with closing(site.server.dial()) as dialled:
        dialled.sendall(frame(PING, struct.pack("<Q", 1)))
        dialled.settimeout(LONG)
        with suppress(ConnectionError):
            while dialled.recv(4096):
                pass
    assert refused(site.server, "it does not use TLS")


def test_tls_at_the_socket(site: Site) -> None:
    with socket.socket(socket.AF_UNIX) as plain:
        plain.connect(str(site.server.socket))
        plain.settimeout(LONG)
        with pytest.raises(OSError, match=r"SSL|EOF|reset"):
            tls(site.ann).wrap_socket(plain, server_hostname="127.0.0.1")
    assert site.works()


# ---- Damaged connections


#: What a client has sent so far: a request to serve, a function, and a call.
def usual(wire: Wire) -> None:
    wire.serve()
    wire.name(1, "work/add")
    wire.call(1, 1, *arguments(1, 2, None))
    assert wire.receive(REPLY)[0] == REPLY


CALL = struct.pack("<QIIBH", 9, 1, ANY, 0, 0)

DAMAGED = {
    "garbage": random.Random(1).randbytes(4096),
    "text": b"GET / HTTP/1.1\r\nHost: lab\r\n\r\n",
    "other version": frame(PING, bytes(8)).replace(b"GR\3", b"GR\2"),
    "unknown kind": frame(200, b""),
    "long body": b"GR" + struct.pack("<BcBBHII", 3, b"l", PING, 0, 0, 1 << 31, 0),
    "short body": frame(PING, b"1234"),
    "bytes left over": frame(PING, bytes(9)),
    "data of no message": b"GR" + struct.pack("<BcBBHII", 3, b"l", 5, 0, 0, 4, 77) + b"data",
    "descriptors": b"GR" + struct.pack("<BcBBHII", 3, b"l", PING, 0, 3, 8, 0) + bytes(8),
    "many sections": frame(HOST_CALL, CALL + struct.pack("<H", 0xFFFF)),
    "sections without bytes": frame(HOST_CALL, CALL + struct.pack("<HBQ", 1, 0, 1 << 40)),
    "huge stream": frame(HOST_CALL, CALL + struct.pack("<HBQ", 1, 1, 1 << 47)),
    "many blobs": frame(HOST_CALL, struct.pack("<QIIBH", 9, 1, ANY, 0, 0xFFFF)),
    "a worker's message": frame(REPLY, bytes(64)),
    "a spawner's message": frame(33, bytes(8)),
    "text that is not UTF-8": frame(
        FUNCTION, struct.pack("<IBI", 2, 0, 2) + b"\xff\xff" + bytes(2)
    ),
    "unknown form": frame(FUNCTION, struct.pack("<IB", 2, 9) + text("work/add") + sections()),
}


@pytest.mark.parametrize("way", ["socket", "certificate"])
@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_frames_end_their_own_connection(site: Site, damage: str, way: str) -> None:
    credentials = site.ann if way == "certificate" else None
    with site.server.connect(credentials) as wire, site.server.connect(credentials) as other:
        usual(wire)
        usual(other)
        wire.socket.sendall(DAMAGED[damage])
        assert wire.has_ended()
        other.call(2, 1, *arguments(3, 4, None))
        assert other.receive(REPLY)[0] == REPLY


@pytest.mark.parametrize("way", ["socket", "certificate"])
def test_frames_that_are_cut_off(site: Site, way: str) -> None:
    whole = frame(HOST_CALL, CALL + sections(*arguments(1, 2, None)))
    for length in range(1, len(whole), 7):
        with site.server.connect(site.ann if way == "certificate" else None) as wire:
            usual(wire)
            wire.socket.sendall(whole[:length])
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.has_ended()
    assert until(lambda: site.server.module("work")["alive"] == 0)


def test_frames_with_random_bits_changed(site: Site) -> None:
    chance = random.Random(7)
    whole = frame(FUNCTION, struct.pack("<IB", 2, 0) + text("work/add") + sections())
    whole += frame(HOST_CALL, CALL + sections(*arguments(1, 2, None)))
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        with site.server.connect() as wire:
            wire.serve()
            wire.socket.sendall(damaged)
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.has_ended()
    assert until(lambda: site.server.module("work")["alive"] == 0)
    assert site.works()


def test_a_call_that_is_sent_twice(site: Site) -> None:
    with site.server.connect(site.ann) as wire, site.server.connect(site.ann) as other:
        usual(wire)
        usual(other)
        again = frame(HOST_CALL, CALL + sections(*arguments(1, 2, None)))
        wire.socket.sendall(again + again)
        # With one number for two calls, a client confuses itself and nobody else.
        other.call(2, 1, *arguments(3, 4, None))
        assert other.receive(REPLY)[1][:8] == struct.pack("<Q", 2)
    assert until(lambda: site.server.module("work")["alive"] == 0)


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
def test_frames_in_another_order(site: Site, order: tuple[int, ...]) -> None:
    frames = [
        frame(FUNCTION, struct.pack("<IB", 1, 0) + text("work/add") + sections()),
        frame(HOST_CALL, CALL + sections(*arguments(1, 2, None))),
        frame(PING, struct.pack("<Q", 5)),
    ]
    with site.server.connect(site.ann) as wire:
        wire.serve()
        wire.socket.sendall(b"".join(frames[one] for one in order))
        answers = dict(wire.receive(REPLY, FAILURE, ENDED, PONG) for _ in range(2))
        assert answers.pop(PONG)[:8] == struct.pack("<Q", 5)
        # A call has one answer, and is refused if the function has no name yet.
        ((kind, body),) = answers.items()
        is_known = order.index(0) < order.index(1)
        assert body[:8] == CALL[:8]
        assert kind == (REPLY if is_known else ENDED)
        assert is_known or b"its function is not offered" in body
        wire.call(2, 1, *arguments(3, 4, None))
        assert wire.receive(REPLY)[1].endswith(struct.pack("<q", 7))


def test_a_client_that_begins_twice(site: Site) -> None:
    with site.server.connect(site.ann) as wire, site.server.connect(site.ann) as other:
        usual(wire)
        usual(other)
        wire.send(SERVE, bytes(64))
        assert wire.has_ended()
        other.call(2, 1, *arguments(3, 4, None))
        assert other.receive(REPLY)[0] == REPLY


@pytest.mark.parametrize("what", ["twice", "swapped"])
def test_records_of_tls_that_are_replayed_or_reordered(site: Site, what: str) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    inner = tls(site.ann).wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with closing(site.server.dial()) as dialled:

        def exchange() -> bool:
            """Sends what is to be sent, and receives. Returns whether something came."""
            dialled.sendall(outgoing.read())
            try:
                come = dialled.recv(1 << 16)
            except ConnectionError:
                come = b""
            incoming.write(come)
            return bool(come)

        while True:
            try:
                inner.do_handshake()
                break
            except ssl.SSLWantReadError:
                assert exchange()
        come = b""
        while len(come) < len(ADMITTED) + 16:
            try:
                come += inner.read(1 << 16)
            except ssl.SSLWantReadError:
                assert exchange()
        assert come[len(ADMITTED) + 4] == JOIN
        inner.write(frame(PING, struct.pack("<Q", 5)))
        record = outgoing.read()
        inner.write(frame(PING, struct.pack("<Q", 6)))
        following = outgoing.read()
        dialled.sendall(record + record if what == "twice" else following + record)
        # The record at the wrong place does not decrypt: the connection ends.
        while exchange():
            pass
    assert site.works()


# ---- Floods


#: Number of connections that do not complete the handshake.
CROWD = 10_000


@pytest.fixture
def many_files() -> Iterator[None]:
    """Room for 10,000 sockets in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CROWD + 1000:
        pytest.skip(f"the hard limit of open files is {hard}: run as root or raise it")
    resource.setrlimit(resource.RLIMIT_NOFILE, (CROWD + 1000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_ten_thousand_half_open_connections(site: Site) -> None:
    before = sockets_of(site.server.pid)
    with ExitStack() as stack, site.server.client(site.ann) as grid:
        add = grid.function("work/add")
        for number in range(CROWD):
            dialled = stack.enter_context(closing(site.server.dial()))
            if number % 2:
                # Those that begin a handshake and send no more.
                with suppress(ConnectionError):
                    dialled.sendall(b"\x16\x03\x01\x02\x00\x01")
            if number % 500 == 0:
                assert add(number, 1) == [number + 1]
        assert add(1, 1) == [2]

        def can_connect() -> bool:
            # One that comes from the address of the crowd may have to try again.
            with suppress(gridrpc.StartError):
                return site.works()
            return False

        assert until(can_connect)
    assert until(lambda: sockets_of(site.server.pid) <= before)


def test_slow_senders_harm_nobody(site: Site) -> None:
    whole = frame(HOST_CALL, CALL + struct.pack("<HBQ", 1, 1, 1 << 20))
    with ExitStack() as stack:
        slow = [stack.enter_context(site.server.connect(site.ann)) for _ in range(50)]
        for wire in slow:
            usual(wire)
            wire.socket.sendall(whole + frame(PING, bytes(8))[:9])
        assert site.works()
        # They are served as before, as soon as they send the rest.
        for wire in slow[:5]:
            wire.socket.sendall(frame(PING, bytes(8))[9:])
            assert wire.receive(PONG)[0] == PONG
    assert until(lambda: site.server.module("work")["alive"] == 0)


# ---- Names


NAMES = [
    "../x", "../../etc/passwd", "/etc/passwd", "work/../work/add", "work/../../etc/passwd",
    "./work/add", "work/add\0", "\0", "", "/", "work/", "/add", "work//add", "work/add/add",
    "work/counter", "work/counter.", "work/.add", "WORK/add", "work/add ", "work/%61dd",
    "work\\add", "work/add#", "posix/system", "os/system", "builtins/eval",
    "work/" + "a" * 60_000, "a" * 65_000, "ｗork/add",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:20]))
def test_tricks_in_names(site: Site, name: str) -> None:
    with site.server.connect(site.ann) as wire:
        usual(wire)
        wire.name(2, name)
        wire.call(5, 2, *arguments(1, 2, None))
        error, message = wire.failure()
        assert error in {"gridrpc.FunctionNotFound", "gridrpc.InterfaceChanged"}
        assert len(message) < 70_000
        wire.call(6, 1, *arguments(1, 2, None))
        assert wire.receive(REPLY)[0] == REPLY
    # No line of the log is broken or long.
    assert until(lambda: bool(site.server.audit("refuse")))
    assert all(len(str(record)) < 4096 for record in site.server.audit("refuse"))


#: Contents of a file argument. Only the contents travel, so none of them is a path.
CONTENTS = ["/etc/passwd", "../../../../etc/passwd", "/proc/self/mem", "a\0b", "-", "|id", ""]


@pytest.mark.parametrize("content", CONTENTS, ids=repr)
def test_tricks_in_file_arguments(site: Site, content: str) -> None:
    with site.server.connect(site.ann) as wire:
        wire.serve()
        wire.name(1, "harmful/holds")
        wire.call(1, 1, *arguments(content, None))
        kind, body = wire.receive(REPLY, FAILURE, ENDED)
        assert kind == REPLY, body
        # The path is the worker's choice, and the file has the text.
        _, path, told = body.rpartition(b"/proc/self/fd/")
        number, _, held = told.partition(b":")
        assert path
        assert number.isdigit()
        assert held == content.replace("\0", "0").encode()


@pytest.mark.parametrize("form", [1, 2])
def test_functions_that_clients_send(site: Site, form: int, tmp_path: Path) -> None:
    (tmp_path / "own.so").touch()
    with site.server.connect(site.ann) as wire:
        usual(wire)
        body = str(tmp_path / "own.so").encode()
        wire.send(FUNCTION, struct.pack("<IB", 2, form) + text("work/add") + sections(body))
        wire.call(5, 2, *arguments(1, 2, None))
        error, message = wire.failure()
        assert error == "gridrpc.NotPermitted"
        assert "code = true" in message


@pytest.mark.parametrize("request_", ["add", "remove", "drain", "stop"])
def test_users_do_not_control_the_server(site: Site, request_: str) -> None:
    with site.server.connect(site.ann) as wire:
        assert wire.receive()[0] == JOIN
        wire.name(1, request_)
        wire.call(1, 1, b"/etc/passwd")
        error, message = wire.failure()
        assert error == "gridrpc.NotPermitted"
        assert "not ann" in message
    assert site.works()


# ---- What belongs to others


def test_numbers_of_shared_data_of_others(site: Site) -> None:
    bob = site.authority.user("robert")
    blob = struct.pack("<Q", 4711)
    with site.server.connect(site.ann) as wire, site.server.connect(bob) as other:
        usual(wire)
        usual(other)
        wire.send(10, blob + sections(b"secret"))
        # Once this call has been answered, the data has arrived.
        wire.call(2, 1, *arguments(1, 2, None))
        assert wire.receive(REPLY)[0] == REPLY
        # A call that refers to the data of others waits for its own, forever.
        reference = struct.pack("<HBQQI", 1, 3, 6, 4711, 0)
        other.send(HOST_CALL, struct.pack("<QIIBHQ", 7, 1, ANY, 0, 1, 4711) + reference)
        other.call(8, 1, *arguments(1, 2, None))
        _, body = other.receive(REPLY)
        assert struct.unpack_from("<Q", body) == (8,)
        # Its number cannot be taken either.
        other.send(10, blob + sections(b"forged"))
        assert other.has_ended()
        wire.call(9, 1, *arguments(1, 2, None))
        assert wire.receive(REPLY)[0] == REPLY


def test_numbers_of_calls_and_objects_of_others(site: Site, tmp_path: Path) -> None:
    with site.server.client(site.ann) as grid, site.server.connect(site.ann) as other:
        call = hold(grid, tmp_path, "work", 5)
        usual(other)
        for number in range(200):
            # Cancel, Dismiss, FetchResult, DropResult, Retract.
            other.send(14, struct.pack("<Q", number))
            other.send(55, struct.pack("<I", number))
            other.send(68, struct.pack("<Q", number))
            other.send(70, struct.pack("<Q", number))
        other.call(1000, 1, *arguments(1, 2, None))
        assert until(lambda: other.receive(REPLY)[1][:8] == struct.pack("<Q", 1000))
        (tmp_path / "gate").touch()
        assert call.result(LONG) == [5]


# ---- Harmful modules


def test_modules_that_end_their_worker(site: Site) -> None:
    with site.server.client(site.ann) as grid, site.server.client(site.ann) as other:
        with pytest.raises(gridrpc.WorkerLost, match="SIGSEGV"):
            grid.function("harmful/crash")()
        with pytest.raises(gridrpc.WorkerLost, match="status 3"):
            grid.function("harmful/leave")(3)
        with pytest.raises(gridrpc.GridError, match="4"):
            grid.function("harmful/exits")(4)
        with suppress(gridrpc.WorkerLost):
            grid.function("harmful/closes")()
        for each in (grid, other):
            assert each.function("work/add")(1, 2) == [3]
    assert until(lambda: any(r["outcome"] == "WorkerLost" for r in site.server.audit("end")))


def test_processes_that_modules_leave_end_with_the_server(
    tmp_path: Path, compile_idl: CompileIdl
) -> None:
    config = offering(compile_idl(HARMFUL))
    with serving(tmp_path, config) as server, server.client() as grid:
        worker = int(grid.function("harmful/forks")(20)[0])
        left = descendants(worker)
        assert len(left) == 20
        server.stop()
        assert until(lambda: not running(left | {worker}))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_workers_that_run_as_their_caller(open_folder: Path, compile_idl: CompileIdl) -> None:
    authority = Authority(open_folder)
    nobody, ann = authority.user("nobody"), authority.user("no-such-user")
    config = (
        offering(compile_idl(HARMFUL), compile_idl(WORK))
        + "[modules.harmful]\nrun_as = 'caller'\nopen_files = 150\nprocesses = 8\n"
    )
    with serving(open_folder, config, authority, program=open_folder / "gridrpc") as server:
        with server.client(nobody) as grid:
            assert grid.function("harmful/user")() == [65534]
            files = [file for file in server.state.rglob("*") if file.is_file()]
            assert len(files) > 3
            for file in files:
                assert grid.function("harmful/overwrites")(str(file)) == [0]
                # Modules are all that their workers need of the state.
                readable = grid.function("harmful/reads")(str(file)) == [1]
                assert readable == (file.suffix == ".so" and "copies" in file.parts)
            assert grid.function("harmful/overwrites")("/proc/self/comm") == [1]
            opened = int(grid.function("harmful/opens")(1000)[0])
            assert 100 < opened < 150
            # The limit bounds the worker and its children; it does not hold for root.
            assert 1 <= int(grid.function("harmful/starts")(100)[0]) <= 40
            assert grid.function("work/add")(1, 2) == [3]
        unknown = pytest.raises(gridrpc.GridError, match="no user `no-such-user`")
        with server.client(ann) as grid, unknown:
            grid.function("harmful/overwrites")("/proc/self/comm")


#: Tells who runs it, and uses memory of the client.
IDENTITY = r"""
Module identity;
Globals { #include <unistd.h> }
Define user(IN int n, INOUT long x[n]) { for (int i = 0; i < n; i++) x[i] = getuid(); }
"""
WARNING = "the workers run as root"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
@pytest.mark.parametrize(
    ("user", "settings", "expected"),
    [
        ("", "", 0),
        ("daemon", "", 1),
        ("daemon", "[modules.identity]\nisolation = 'user'\n", 1),
        # As another module runs as its caller, none runs as root.
        ("", "[modules.harmful]\nrun_as = 'caller'\n", 65534),
        ("daemon", "[modules.harmful]\nrun_as = 'caller'\n", 1),
    ],
    ids=["root", "user", "isolated", "beside callers", "user beside callers"],
)
def test_the_user_of_workers(
    open_folder: Path, compile_idl: CompileIdl, user: str, settings: str, expected: int
) -> None:
    config = offering(compile_idl(IDENTITY), compile_idl(HARMFUL)) + settings
    if user:
        config = config.replace("[workers]\n", f"[workers]\nuser = '{user}'\n")
    with serving(open_folder, config, program=open_folder / "gridrpc") as server:
        assert any(WARNING in line for line in server.lines()) == (expected == 0)
        if expected == 0:
            assert WARNING in server.command("check")
        with server.client() as grid:
            for size in (1, 1 << 18):
                users = np.zeros(size, np.int64)
                grid.function("identity/user")(users)
                assert set(users.tolist()) == {expected}
            if "run_as" in settings:
                # Root calls here, and no worker runs as root.
                with pytest.raises(gridrpc.GridError, match="`root`, which is root"):
                    grid.function("harmful/user")()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
@pytest.mark.parametrize(
    ("user", "why"),
    [("no-such-user", "whom this machine does not have"), ("root", "which is root")],
)
def test_workers_that_cannot_run_as_their_user(tmp_path: Path, user: str, why: str) -> None:
    file = write_config(tmp_path, f"[workers]\nuser = '{user}'\n", None)
    for command in ("check", "start"):
        said = program("server", "-c", file, command, status=1)
        assert user in said
        assert why in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be other users")
def test_other_users_of_this_machine(compile_idl: CompileIdl) -> None:
    with TemporaryDirectory(dir="/tmp", prefix="gridrpc-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        config = f"socket = '{folder / 'public'}'\n" + offering(compile_idl(WORK))
        with serving(folder, config, socket=folder / "public") as server:
            pid = os.fork()
            if pid == 0:
                # Whatever happens, this process does not continue as a second run of the tests.
                status = 9
                try:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                    with server.connect() as wire:
                        usual(wire)
                    with server.connect() as wire:
                        assert wire.receive()[0] == JOIN
                        wire.name(1, "stop")
                        wire.call(1, 1, b"")
                        assert wire.failure()[0] == "gridrpc.NotPermitted"
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert until(lambda: "nobody" in {record["user"] for record in server.audit("end")})


def test_memory_of_a_worker_is_limited(tmp_path: Path, compile_idl: CompileIdl) -> None:
    config = (
        offering(compile_idl(HARMFUL), compile_idl(WORK))
        + "[modules.harmful]\nmemory = '256 MiB'\n"
    )
    with serving(tmp_path, config) as server, server.client() as grid:
        with pytest.raises((gridrpc.WorkerLost, MemoryError)):
            grid.function("harmful/eat")()
        assert grid.function("work/add")(1, 2) == [3]
        assert psutil.Process(server.pid).memory_info().rss < 256 << 20

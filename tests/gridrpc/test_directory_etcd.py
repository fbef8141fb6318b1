"""Directories that share their announcements through a real etcd of three members."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from directories import IDL, DirectoryProcess, Site
from grids import CompileIdl
from processes import LONG, until
from servers import program

pytestmark = [
    pytest.mark.usefixtures("no_modules_here"),
    pytest.mark.skipif(
        not shutil.which("etcd"), reason="`etcd` is not installed: scripts/ensure-etcd does that"
    ),
]

MEMBERS = 3


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Etcd:
    """A cluster of etcd on this machine."""

    def __init__(
        self, folder: Path, members: int = MEMBERS, certificate: Path | None = None
    ) -> None:
        self._folder = folder
        self._scheme = "https" if certificate else "http"
        self._tls: list[str | Path] = []
        if certificate:
            self._tls = [
                "--cert-file", certificate / "certificate.pem",
                "--key-file", certificate / "key.pem",
                "--trusted-ca-file", certificate / "authority.pem", "--client-cert-auth",
            ]  # fmt: skip
        self._ports = free_ports(2 * members)
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * members
        self.start()

    @property
    def urls(self) -> list[str]:
        return [f"{self._scheme}://127.0.0.1:{port}" for port in self._ports[::2]]

    @property
    def option(self) -> tuple[str, str]:
        """The option of a directory."""
        return "--etcd", ",".join(self.urls)

    def start(self) -> None:
        """Start all members that do not run, each with the data that it has."""
        peers = [f"http://127.0.0.1:{port}" for port in self._ports[1::2]]
        cluster = ",".join(f"m{index}={url}" for index, url in enumerate(peers))
        for index, (url, peer) in enumerate(zip(self.urls, peers, strict=True)):
            if self._processes[index] is not None:
                continue
            with (self._folder / f"etcd-{index}.log").open("ab") as log:
                self._processes[index] = subprocess.Popen(
                    [
                        "etcd", "--name", f"m{index}", "--data-dir", self._data(index),
                        "--listen-client-urls", url, "--advertise-client-urls", url,
                        "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                        "--initial-cluster", cluster, "--log-level", "error",
                        # A machine with many tests is slow.
                        "--heartbeat-interval", "200", "--election-timeout", "2000", *self._tls,
                    ],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                )  # fmt: skip

    def _data(self, index: int) -> Path:
        return self._folder / f"etcd-{index}"

    def kill(self, *indexes: int) -> None:
        """Kill these members; without any, all."""
        for index in indexes or range(len(self._processes)):
            process = self._processes[index]
            if process is not None:
                process.kill()
                process.wait(timeout=LONG)
            self._processes[index] = None

    def forget(self) -> None:
        """Delete all data of a cluster that does not run."""
        for index in range(len(self._processes)):
            shutil.rmtree(self._data(index))

    def post(self, path: str, **request: Any) -> dict[str, Any]:
        """A request to the first member that answers."""
        failure: Exception | None = None
        for url in self.urls:
            try:
                body = json.dumps(request).encode()
                with urllib.request.urlopen(f"{url}/v3/{path}", body, timeout=LONG) as answer:
                    found: dict[str, Any] = json.load(answer)
                    return found
            except OSError as error:
                failure = error
        raise AssertionError(failure)

    def names(self, prefix: str = "/gridrpc/") -> list[str]:
        """All keys with a prefix that ends with a slash."""
        answer = self.post(
            "kv/range", key=_base64(prefix), range_end=_base64(prefix[:-1] + "0"), keys_only=True
        )
        return [base64.b64decode(kv["key"]).decode() for kv in answer.get("kvs", [])]

    def put(self, key: str, value: str) -> None:
        self.post("kv/put", key=_base64(key), value=_base64(value))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    cluster = Etcd(tmp_path)
    yield cluster
    cluster.kill()


@pytest.fixture
def site(tmp_path: Path, etcd: Etcd) -> Iterator[Site]:
    made = Site(tmp_path, *etcd.option)
    with made.stack:
        assert until(lambda: shared(made, made.directory)["is_connected"])
        yield made


@pytest.fixture
def other(site: Site, etcd: Etcd) -> DirectoryProcess:
    """A second directory of the same etcd."""
    return second(site, etcd)


@pytest.fixture
def where(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


def second(site: Site, etcd: Etcd, before: str = "") -> DirectoryProcess:
    directory = site.run_directory("second", *etcd.option, before=before)
    assert until(lambda: len(shared(site, directory)["directories"]) == 1)
    return directory


def shared(site: Site, directory: DirectoryProcess) -> dict[str, Any]:
    """What a directory says of etcd."""
    status = json.loads(site.command("status", "--json", directory=directory))
    found: dict[str, Any] = status["etcd"]
    return found


def is_heard(site: Site, directory: DirectoryProcess, port: int) -> bool:
    """Whether a directory lists a server that is not silent."""
    listed = {one["address"]: one for one in site.servers(directory)}
    server = listed.get(f"127.0.0.1:{port}")
    return server is not None and not server["is_silent"]


def test_what_one_directory_hears_all_know(
    site: Site, other: DirectoryProcess, etcd: Etcd, where: Path
) -> None:
    server = site.serve("one", where)
    assert until(lambda: is_heard(site, other, server.port))
    assert until(lambda: "chosen" in site.command("why", "where/scale", "n=4", directory=other))
    assert int(site.grid(other).function("where/parent")(4)[0]) > 0
    assert "other directories: " in site.command("status", directory=other)
    assert len(shared(site, site.directory)["directories"]) == 1
    # It stays known while it is heard, and each directory counts the time by itself.
    age = next(one["age"] for one in site.servers(other))
    assert age < 2
    # One that is killed is silent, and leaves etcd.
    os.kill(server.pid, signal.SIGKILL)
    server.process.wait(timeout=LONG)
    assert until(lambda: [one["is_silent"] for one in site.servers(other)] == [True])
    assert until(lambda: not any("/servers/" in key for key in etcd.names()))
    # One that stops leaves all directories.
    leaving = site.serve("two", where)
    assert until(lambda: is_heard(site, other, leaving.port))
    leaving.stop()
    assert until(lambda: len(site.servers(other)) == 1)
    # So does a directory.
    other.stop()
    assert until(lambda: not shared(site, site.directory)["directories"])


def test_a_member_is_lost(site: Site, other: DirectoryProcess, etcd: Etcd, where: Path) -> None:
    used = etcd.urls.index(shared(site, site.directory)["member"])
    etcd.kill(used)
    server = site.serve("one", where)
    assert until(lambda: is_heard(site, other, server.port))
    etcd.start()
    etcd.kill((used + 1) % MEMBERS)
    another = site.serve("two", where, other)
    assert until(lambda: is_heard(site, site.directory, another.port))
    assert until(lambda: is_heard(site, other, server.port))


@pytest.mark.parametrize("forgets", [False, True])
def test_all_members_are_lost(
    site: Site, other: DirectoryProcess, etcd: Etcd, where: Path, forgets: bool
) -> None:
    first = site.serve("one", where)
    away = site.serve("two", where, other)
    assert until(lambda: is_heard(site, other, first.port))
    assert until(lambda: is_heard(site, site.directory, away.port))
    grid = site.grid()
    parent = grid.function("where/parent")
    etcd.kill()
    assert until(lambda: not shared(site, site.directory)["is_connected"])
    text = site.command("status")
    assert "no member answers" in text
    assert etcd.urls[0] in text
    # It knows what it knew; the server that announces itself elsewhere becomes silent.
    assert until(lambda: not is_heard(site, site.directory, away.port))
    assert is_heard(site, site.directory, first.port)
    assert len(site.servers()) == 2
    parent(4)
    if forgets:
        etcd.forget()
    etcd.start()
    assert until(lambda: is_heard(site, site.directory, away.port))
    assert until(lambda: is_heard(site, other, first.port))
    assert "connected to" in site.command("status")


@pytest.mark.parametrize("forgets", [False, True])
def test_a_directory_is_killed(
    site: Site, other: DirectoryProcess, where: Path, forgets: bool
) -> None:
    server = site.serve("one", where)
    assert until(lambda: is_heard(site, other, server.port))
    other.stop(signal.SIGKILL)
    if forgets:
        shutil.rmtree(other.folder / "directory")
    other.start()
    assert until(lambda: is_heard(site, other, server.port))
    assert "chosen" in site.command("why", "where/scale", "n=4", directory=other)
    # The other way round, its own servers come back with their next announcements.
    own = site.serve("two", where, other)
    other.stop(signal.SIGKILL)
    other.start()
    assert until(lambda: is_heard(site, site.directory, own.port))
    assert until(lambda: is_heard(site, other, own.port))


def test_clocks_apart_by_an_hour_do_nothing(site: Site, etcd: Etcd, where: Path) -> None:
    # The program `faketime` would stay between the test and the directory.
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None:
        pytest.skip("`faketime` is not installed: scripts/ensure-etcd does that")
    # Certificates begin with the day before they are made, so that both ways work.
    ahead = second(site, etcd, before=f"env LD_PRELOAD={library} FAKETIME=+1h")
    first = site.serve("one", where)
    away = site.serve("two", where, ahead)
    for directory in (site.directory, ahead):
        for server in (first, away):
            assert until(lambda: is_heard(site, directory, server.port))  # noqa: B023
        assert max(one["age"] for one in site.servers(directory)) < 60
    away.stop()
    assert until(lambda: len(site.servers()) == 1)


def test_records_that_make_no_sense_are_skipped(
    site: Site, other: DirectoryProcess, etcd: Etcd, where: Path
) -> None:
    server = site.serve("one", where)
    assert until(lambda: is_heard(site, other, server.port))
    root = "/gridrpc/directory"
    announcement = {
        "name": "x", "address": "127.0.0.1:1", "version": "1", "interval": 1e308, "cores": 1,
        "load": 0, "queued": 0, "speed": 1, "accepts": True,
        "modules": [{"name": "m", "hash": "0" * 64}],
    }  # fmt: skip
    record = {"from": 1, "owner": "lab", "announcement": announcement}
    wrong = {**announcement, "address": "127.0.0.1?trusted=true:1"}
    for key, value in {
        "servers/127.0.0.1:2": "no JSON",
        "servers/127.0.0.1:3": json.dumps(record),
        "servers/127.0.0.1?trusted=true:1": json.dumps({**record, "announcement": wrong}),
        "servers/": "{}",
        "servers": "",
        "interfaces/" + "0" * 64: "Module m; Define f(IN int n);",
        "directories/x": "y" * 100_000,
        "": "",
        # One that is possible, without its interface.
        "servers/127.0.0.1:1": json.dumps(record),
    }.items():
        etcd.put(f"{root}/{key}", value)
    assert until(lambda: len(site.servers(other)) == 2)
    assert {one["address"] for one in site.servers(other)} == {
        f"127.0.0.1:{server.port}", "127.0.0.1:1",
    }  # fmt: skip
    assert "m/" not in site.command("list", directory=other)
    assert shared(site, other)["is_connected"]
    assert is_heard(site, other, server.port)


def test_connections_to_etcd_are_encrypted(tmp_path: Path, where: Path) -> None:
    site = Site(tmp_path)
    with site.stack:
        certificate = both_ways(site)
        etcd = Etcd(tmp_path, members=1, certificate=certificate)
        site.stack.callback(etcd.kill)
        user = site.user
        files = (
            "--etcd-cacert", user / "authority.pem", "--etcd-cert", user / "certificate.pem",
            "--etcd-key", user / "key.pem",
        )  # fmt: skip
        first, other = (
            site.run_directory(name, *etcd.option, *map(str, files)) for name in ("a", "b")
        )
        server = site.serve("one", where, first)
        assert until(lambda: is_heard(site, other, server.port))
        # Without a certificate, or with the authorities of the system, etcd is out of reach.
        for words in ((), files[:2]):
            name = f"without-{len(words)}"
            alone = site.run_directory(name, *etcd.option, *map(str, words))
            assert until(lambda: "not answered" not in shared(site, alone)["reason"])  # noqa: B023
            assert not shared(site, alone)["is_connected"]


def both_ways(site: Site) -> Path:
    """A certificate for a member of etcd, which its gateway presents to the member itself."""
    folder = site.folder / "etcd-certificate"
    folder.mkdir()
    authority = site.authority.folder
    shutil.copy(authority / "authority.pem", folder)
    extensions = folder / "extensions"
    extensions.write_text(
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n"
    )
    request = [
        "openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
        "-nodes", "-subj", "/CN=etcd", "-keyout", folder / "key.pem",
        "-out", folder / "request.pem",
    ]  # fmt: skip
    sign = [
        "openssl", "x509", "-req", "-in", folder / "request.pem", "-days", "2",
        "-CA", authority / "authority.pem", "-CAkey", authority / "key.pem", "-CAcreateserial",
        "-extfile", extensions, "-out", folder / "certificate.pem",
    ]  # fmt: skip
    for command in (request, sign):
        subprocess.run(command, check=True, capture_output=True, timeout=LONG)
    return folder


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    start = ("directory", "start", "--state", tmp_path / "state", "--port", "0")
    for url in ("ftp://localhost:2379", "localhost:2379", "http://a:1/b", "", "http://a,b"):
        assert "as in http://localhost:2379" in program(*start, "--etcd", url, status=2)
    url = ("--etcd", "https://localhost:2379")
    assert "--etcd-key" in program(*start, *url, "--etcd-cert", "c.pem", status=2)
    assert "--etcd" in program(*start, "--etcd-prefix", "/x", status=2)
    missing = tmp_path / "none.pem"
    assert str(missing) in program(*start, *url, "--etcd-cacert", missing, status=1)

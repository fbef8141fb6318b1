"""Enrolment over the network: `gridrpc ca serve` and `gridrpc ca enroll`, as processes."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from grids import PROGRAM
from test_ca import Machine, is_accepted, mode_of, subject


@contextmanager
def service_of(office: Machine) -> Iterator[str]:
    """Runs the service of an authority. Gives its address."""
    log = office.folder / "serve.log"
    with log.open("w") as file:
        service = subprocess.Popen(
            [PROGRAM, "ca", "serve", "--listen", "127.0.0.1:0"],
            env=office.environment,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )
    try:
        assert service.stdout is not None
        yield service.stdout.readline().split()[-1]
    finally:
        service.terminate()
        service.communicate()


@pytest.fixture
def office(tmp_path: Path) -> Machine:
    """The machine of the authority."""
    machine = Machine(tmp_path / "office")
    machine.says("init", "--name", "test centre")
    return machine


@pytest.fixture
def address(office: Machine) -> Iterator[str]:
    """The address of the authority's service."""
    with service_of(office) as address:
        yield address


@pytest.fixture
def ann(tmp_path: Path) -> Machine:
    """The machine of a user without credentials."""
    return Machine(tmp_path / "ann")


def token_for(office: Machine, address: str, *arguments: str) -> str:
    return office.says("token", *arguments, "--address", address).strip()


def test_a_user_enrols_with_a_token_and_the_key_stays(
    office: Machine, address: str, ann: Machine
) -> None:
    token = token_for(office, address, "ann", "--group", "staff")
    said = ann.says("enroll", "-", text=token)
    assert said.startswith("enrolled as `ann` (groups: staff), valid until 20")
    files = {path.name: mode_of(path) for path in ann.credentials.iterdir()}
    assert files == {"key.pem": 0o600, "certificate.pem": 0o600, "authority.pem": 0o600}
    certificate = ann.credentials / "certificate.pem"
    assert subject(certificate) == "subject=CN=ann,OU=staff"
    assert is_accepted(office, certificate, "sslclient")
    authority = (office.authority / "authority.pem").read_text()
    assert (ann.credentials / "authority.pem").read_text() == authority
    assert [entry["name"] for entry in office.certificates()] == ["ann"]
    assert "certificate" in (office.folder / "serve.log").read_text()
    assert "exists already" in ann.fails("enroll", token_for(office, address, "ann"))


@pytest.mark.usefixtures("ann")
def test_a_token_serves_once(office: Machine, address: str, tmp_path: Path) -> None:
    token = token_for(office, address, "ann")
    machines = [Machine(tmp_path / f"machine{number}") for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        ran = list(pool.map(lambda machine: machine.run("enroll", token), machines))
    assert sorted(one.returncode for one in ran) == [0, 1, 1, 1, 1, 1]
    refused = [one.stderr for one in ran if one.returncode]
    assert all("token of user `ann` has been used: ask for a new one" in text for text in refused)
    assert len(office.certificates()) == 1
    # Nothing is left behind, so that the next token works.
    losers = [machine for machine, one in zip(machines, ran, strict=True) if one.returncode]
    assert not any(list(machine.credentials.iterdir()) for machine in losers)
    losers[0].says("enroll", token_for(office, address, "ann"))


def test_a_token_for_another_user_is_refused_and_stays_valid(
    office: Machine, address: str, ann: Machine
) -> None:
    token = token_for(office, address, "bob")
    error = ann.fails("enroll", token, "--user", "ann")
    assert "the token is for user `bob`, and not for `ann`" in error
    ann.says("enroll", token, "--user", "bob")


def test_expired_revoked_and_foreign_tokens_are_refused(
    office: Machine, address: str, ann: Machine
) -> None:
    old = token_for(office, address, "ann", "--valid", "1s")
    revoked = token_for(office, address, "eve")
    # It has no certificate yet, but its token ends.
    office.fails("revoke", "eve")
    time.sleep(1.1)
    assert "token of user `ann` has expired" in ann.fails("enroll", old)
    assert "has been used" in ann.fails("enroll", revoked)
    (office.authority / "tokens.jsonl").write_text("")
    assert "the token is unknown" in ann.fails("enroll", old)
    assert not office.certificates()


def test_shortened_tokens_are_noticed_before_anything_is_sent(
    office: Machine, ann: Machine
) -> None:
    token = token_for(office, "127.0.0.1:1", "ann")
    assert "incomplete or mistyped" in ann.fails("enroll", token[:-1])
    assert "incomplete or mistyped" in ann.fails("enroll", token[: len(token) // 2])
    assert "not a token" in ann.fails("enroll", "hello")
    plain = office.says("token", "ann").strip()
    assert "this token has no address" in ann.fails("enroll", plain)
    assert "cannot connect to the authority at 127.0.0.1:1" in ann.fails("enroll", token)
    assert not ann.credentials.exists() or not list(ann.credentials.iterdir())
    for wrong in ("ca", "ca:0", "two words:1"):
        assert "is not an address" in office.fails("token", "ann", "--address", wrong)


def test_a_service_of_another_authority_learns_no_token(
    office: Machine, ann: Machine, tmp_path: Path
) -> None:
    other = Machine(tmp_path / "other")
    other.says("init", "--name", "test centre")
    with service_of(other) as address:
        token = token_for(office, address, "ann")
        error = ann.fails("enroll", token)
    assert f"{address} is not the service of the authority that made this token" in error
    assert "nothing was sent" in error
    assert not (other.folder / "serve.log").read_text()


def test_a_server_of_the_authority_cannot_pose_as_its_service(
    office: Machine, ann: Machine
) -> None:
    """It has a valid certificate for the host in the token."""
    office.says("server", "gpu", "--host", "localhost")
    folder = office.folder / "gpu"
    chain = folder / "chain.pem"
    chain.write_text(
        (folder / "certificate.pem").read_text() + (folder / "authority.pem").read_text()
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, folder / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:

        def pose() -> bytes:
            stream, _ = listener.accept()
            try:
                with context.wrap_socket(stream, server_side=True) as accepted:
                    return accepted.recv(1)
            except ssl.SSLError:
                return b""

        received = pool.submit(pose)
        token = token_for(office, f"localhost:{listener.getsockname()[1]}", "ann")
        assert "is not the service of the authority" in ann.fails("enroll", token)
        assert received.result() == b""
    name = "enrolment.gridrpc.invalid"
    assert "neither a host name" in office.fails("server", "evil", "--host", name)


def wrong_token(office: Machine, address: str) -> str:
    """A token that is well formed, for the right authority, with a secret of its own."""
    mark, _, text = token_for(office, address, "ann").partition(".")
    token = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    token[:24] = sha256(bytes(token)).digest()[:24]
    # The checksum is no secret, but it is BLAKE3: the service does not look at it.
    return f"{mark}.{base64.urlsafe_b64encode(token).decode().rstrip('=')}"


def post(address: str, body: bytes, path: str = "/enrol") -> tuple[int, bytes]:
    """Sends a request as a program of somebody else does. Returns status and body."""
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with (
        socket.create_connection((host, int(port)), timeout=30) as plain,
        context.wrap_socket(plain) as stream,
    ):
        stream.sendall(head + body)
        answer = b""
        while part := stream.recv(4096):
            answer += part
    return int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]


def test_wrong_tokens_are_limited(office: Machine, address: str, ann: Machine) -> None:
    good = token_for(office, address, "ann")
    ann.says("request", "ann", "--out", "new")
    request = (ann.folder / "new/request.pem").read_text()
    statuses = []
    for _ in range(12):
        body = {"token": wrong_token(office, address), "request": request}
        status, answer = post(address, json.dumps(body).encode())
        statuses.append(status)
    assert statuses == [403] * 10 + [429] * 2
    assert json.loads(answer)["refused"]["reason"] == "too_many"
    # Guessing helps nobody, also not with the right token.
    error = ann.fails("enroll", good)
    assert "too many refused requests have come from this address: try again in" in error
    assert not office.certificates()


def test_broken_requests_are_answered_and_slow_ones_keep_nobody_out(
    office: Machine, address: str, ann: Machine
) -> None:
    assert post(address, b"not JSON")[0] == 400
    assert post(address, b'{"token": "x", "request": "y"}')[0] == 400
    assert post(address, b"x" * (65 << 10))[0] == 413
    assert post(address, b"", path="/else")[0] == 404
    host, _, port = address.rpartition(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(15)]
    try:
        silent[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
        ann.says("enroll", token_for(office, address, "ann"))
    finally:
        for stream in silent:
            stream.close()


def test_an_address_in_use_is_named(office: Machine, address: str) -> None:
    assert f"cannot listen at {address}" in office.fails("serve", "--listen", address)

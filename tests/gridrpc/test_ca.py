"""Certificates of servers and users: `gridrpc ca`, with openssl as the other side."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from grids import PROGRAM


class Machine:
    """Runs `gridrpc ca` as somebody with folders of their own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self.authority = folder / "data/gridrpc/ca"
        self.credentials = folder / "config/gridrpc/credentials"
        self.environment = {
            **os.environ,
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }

    def run(self, *arguments: object, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, "ca", *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    def says(self, *arguments: object, text: str = "") -> str:
        ran = self.run(*arguments, text=text)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def fails(self, *arguments: object, text: str = "") -> str:
        ran = self.run(*arguments, text=text)
        assert ran.returncode == 1, ran.stdout
        return ran.stderr

    def certificates(self) -> list[dict[str, Any]]:
        """What the authority has issued."""
        issued: list[dict[str, Any]] = json.loads(self.says("list", "--json"))
        return issued


@pytest.fixture
def office(tmp_path: Path) -> Machine:
    """The machine of the authority."""
    machine = Machine(tmp_path / "office")
    machine.says("init", "--name", "test centre")
    return machine


@pytest.fixture
def ann(tmp_path: Path) -> Machine:
    """The machine of a user."""
    machine = Machine(tmp_path / "ann")
    machine.says("request", "ann")
    return machine


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def subject(file: Path) -> str:
    command = ["openssl", "x509", "-noout", "-subject", "-nameopt", "RFC2253", "-in", file]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def is_accepted(office: Machine, certificate: Path, purpose: str) -> bool:
    """Whether openssl accepts a certificate, with the authority's revocation list."""
    authority = ["-CAfile", office.authority / "authority.pem"]
    revoked = ["-crl_check", "-CRLfile", office.authority / "revoked.pem"]
    command = ["openssl", "verify", *authority, *revoked, "-purpose", purpose, certificate]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_user_gets_a_certificate_and_the_key_stays(office: Machine, ann: Machine) -> None:
    request = ann.credentials / "request.pem"
    assert "PRIVATE" not in request.read_text()
    assert mode_of(ann.credentials / "key.pem") == 0o600
    signed = office.says("sign", request, "--group", "chemistry", "--group", "staff")
    (ann.folder / "answer.pem").write_text(signed)
    assert "installed" in ann.says("install", "answer.pem")
    certificate = ann.credentials / "certificate.pem"
    assert subject(certificate) == "subject=CN=ann,OU=staff,OU=chemistry"
    assert is_accepted(office, certificate, "sslclient")
    assert not is_accepted(office, certificate, "sslserver")
    authority = (ann.credentials / "authority.pem").read_text()
    assert authority == (office.authority / "authority.pem").read_text()


def test_a_server_and_a_user_connect_with_openssl(office: Machine, ann: Machine) -> None:
    office.says("server", "gpu", "--host", "localhost", "--host", "127.0.0.1")
    (ann.folder / "answer.pem").write_text(
        office.says("sign", "-", text=(ann.credentials / "request.pem").read_text())
    )
    ann.says("install", "answer.pem")
    served = office.folder / "gpu"
    assert mode_of(served / "key.pem") == 0o600
    files = ["-cert", "certificate.pem", "-key", "key.pem", "-CAfile", "authority.pem"]
    accept = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-tls1_3", "-Verify", "1"]
    server = subprocess.Popen(
        [*accept, "-verify_return_error", *files],
        cwd=served,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = next(line.split()[1] for line in server.stdout if line.startswith("ACCEPT"))
        connect = ["openssl", "s_client", "-connect", f"localhost:{address.rpartition(':')[2]}"]
        check = ["-verify_hostname", "localhost", "-verify_return_error", "-quiet"]
        client = subprocess.run(
            [*connect, *check, *files],
            cwd=ann.credentials,
            input="GET / HTTP/1.0\r\n\r\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
        assert "HTTP/1.0 200" in client.stdout, client.stderr
    finally:
        server.kill()
        server.communicate()


def test_a_token_is_redeemed_once(office: Machine, ann: Machine) -> None:
    token = office.says("token", "ann", "--group", "staff", "--valid", "5min").strip()
    request = ann.credentials / "request.pem"
    said = office.says("redeem", "-", "--request", request, "--out", "ann.pem", text=token)
    assert "of ann, valid until 20" in said
    assert subject(office.folder / "ann.pem") == "subject=CN=ann,OU=staff"
    assert "has been used" in office.fails("redeem", token, "--request", request)
    assert "unknown" in office.fails("redeem", "gridrpc-ca1.AAAA", "--request", request)
    old = office.says("token", "ann", "--valid", "1s").strip()
    time.sleep(1.1)
    assert "expired" in office.fails("redeem", old, "--request", request)
    assert len(office.certificates()) == 1


def test_revoked_certificates_are_listed_and_refused(office: Machine, ann: Machine) -> None:
    request = ann.credentials / "request.pem"
    for name in ("one", "other"):
        office.says("sign", request, "--out", f"{name}.pem")
    one, other = office.certificates()
    assert (one["name"], one["role"], one["revoked"]) == ("ann", "user", None)
    assert f"revoked {one['serial']} of ann" in office.says("revoke", one["serial"])
    assert not is_accepted(office, office.folder / "one.pem", "sslclient")
    assert is_accepted(office, office.folder / "other.pem", "sslclient")
    office.says("revoke", "ann")
    assert not is_accepted(office, office.folder / "other.pem", "sslclient")
    lines = office.says("list").splitlines()
    assert all("revoked on 20" in line for line in lines)
    assert [line.split()[0] for line in lines] == [one["serial"], other["serial"]]
    assert "already been revoked" in office.fails("revoke", "ann")
    assert "gridrpc ca list" in office.fails("revoke", "bob")


def test_a_renewed_certificate_fits_the_key(office: Machine, ann: Machine) -> None:
    request = ann.credentials / "request.pem"
    answer = ann.folder / "answer.pem"
    office.says("sign", request, "--group", "staff", "--days", "2", "--out", answer)
    ann.says("install", answer)
    before = (ann.credentials / "certificate.pem").read_text()
    office.says("renew", "ann", "--days", "200", "--out", answer)
    ann.says("install", answer)
    certificate = ann.credentials / "certificate.pem"
    assert certificate.read_text() != before
    assert subject(certificate) == "subject=CN=ann,OU=staff"
    old, new = office.certificates()
    assert new["until"] > old["until"] + 190 * 24 * 3600


def test_signing_at_the_same_time_loses_nothing(office: Machine, ann: Machine) -> None:
    request = ann.credentials / "request.pem"

    def sign(number: int) -> str:
        return office.says("sign", request, "--user", f"user{number}")

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(sign, range(16)))) == 16
    assert {entry["name"] for entry in office.certificates()} == {
        f"user{number}" for number in range(16)
    }
    assert {path.name for path in office.authority.iterdir()} == {
        "authority.pem",
        "index.jsonl",
        "key.pem",
        "lock",
        "revoked.pem",
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("init",), "already contains an authority"),
        (("sign", "absent.pem"), "cannot read `absent.pem`"),
        (("sign", "text"), "not a certificate signing request"),
        (("server", "../gpu", "--host", "gpu", "--out", "o"), 'name "../gpu" is not allowed'),
        (("server", "gpu", "--host", "gpu:4000"), "neither a host name nor an IP address"),
        (("token", "two words"), 'name "two words" is not allowed'),
        (("list", "--folder", "elsewhere"), "gridrpc ca init"),
        (("install", "text"), "cannot read"),
    ],
)
def test_errors_say_what_to_do(office: Machine, arguments: tuple[str, ...], said: str) -> None:
    (office.folder / "text").write_text("hello")
    error = office.fails(*arguments)
    assert error.startswith("gridrpc: ")
    assert said in error


def test_keys_are_not_overwritten(office: Machine, ann: Machine) -> None:
    key = (ann.credentials / "key.pem").read_text()
    assert "exists already" in ann.fails("request", "ann")
    assert (ann.credentials / "key.pem").read_text() == key
    office.says("server", "gpu", "--host", "gpu")
    assert "exists already" in office.fails("server", "gpu", "--host", "gpu")
    assert len(office.certificates()) == 1


def test_a_folder_that_others_can_change_is_refused(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "office")
    shared = machine.folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert "others can write" in machine.fails("init", "--folder", shared / "ca")
    assert not (shared / "ca").exists()

"""The example of a server: clients of ours and of others, in network namespaces of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from test_examples import EXAMPLES, copy_of, make

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("ip", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None,
    reason="network namespaces need root and the program `ip` of iproute2",
)


def namespaces() -> set[str]:
    listed = subprocess.run(
        ["ip", "netns", "list"], capture_output=True, text=True, check=True, timeout=60
    )
    return {line.split()[0] for line in listed.stdout.splitlines() if line.startswith("lapack")}


def processes_in(folder: Path) -> list[str]:
    """Processes that run in a folder, which may be gone."""
    folders = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            folders.append(os.readlink(link))
        except OSError:
            continue  # it has ended
    return [one for one in folders if one.startswith(f"{folder}/")]


def test_clients_call_lapack_on_a_server(tmp_path: Path) -> None:
    copy_of("lapack", tmp_path)
    folder = copy_of("server", tmp_path)
    make(folder)
    before = namespaces()
    # The path of a Unix socket has at most 107 bytes.
    temporary = Path(tempfile.mkdtemp(dir="/tmp"))
    printed = make(folder, "run", TMPDIR=str(temporary))
    page = (EXAMPLES / "server" / "README.md").read_text(encoding="utf-8")
    assert page.split("```text\n")[1].split("```")[0] in printed
    assert "lapack/dgemm   C = alpha op(A) op(B)" in printed
    # Nothing is left behind.
    assert namespaces() <= before
    assert list(temporary.iterdir()) == []
    assert processes_in(temporary) == []
    temporary.rmdir()

"""Files appear under their name when they are complete, or not at all."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gridbench.atomic_write import replace_file, write_file
from gridbench.errors import InputError


@pytest.fixture
def small_files() -> Iterator[None]:
    """Files end at 1,000 bytes, as on a disk that is full."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    file = tmp_path / "result"
    for text in ("größer", ""):
        write_file(file, text)
        assert file.read_bytes() == text.encode()
    assert os.listdir(tmp_path) == ["result"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_its_permissions_are_those_of_new_files(tmp_path: Path, umask: int, mode: int) -> None:
    file = tmp_path / "result"
    before = os.umask(umask)
    try:
        write_file(file, "text")
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == mode


@pytest.mark.usefixtures("small_files")
def test_an_older_file_stays_if_there_is_no_room_for_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "result"
    write_file(file, "old")
    with pytest.raises(InputError, match=r"result: cannot be written: File too large\n"):
        write_file(file, "new" * 1000)
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["result"]


def test_who_has_more_to_say_gets_the_error_itself(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "none" / "result", "text")
    with pytest.raises(IsADirectoryError):
        replace_file(tmp_path, "text")


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to("folder/result")
    for text in ("made", "replaced"):
        write_file(link, text)
        assert (tmp_path / "folder" / "result").read_text() == text
    assert link.is_symlink()
    assert os.listdir(tmp_path / "folder") == ["result"]


def test_a_pipe_or_device_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_file(pipe, "for whoever reads")
    reader.join(10)
    assert read == ["for whoever reads"]
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
@pytest.mark.parametrize("to_file", [False, True])
def test_standard_output_can_be_written_to(tmp_path: Path, name: str, to_file: bool) -> None:
    write = "import sys, pathlib, gridbench.atomic_write as to;"
    write += "to.write_file(pathlib.Path(sys.argv[1]), 'text')"
    command = [sys.executable, "-c", write, name]
    out = tmp_path / "out"
    if to_file:
        with out.open("w") as file:
            subprocess.run(command, stdout=file, check=True, timeout=60)
        assert (out.read_text(), os.listdir(tmp_path)) == ("text", ["out"])
    else:
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
        assert run.stdout == "text"


def test_a_pipe_whose_reader_has_gone_is_no_folder_that_is_missing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with pytest.raises(BrokenPipeError):
            write_file(Path(f"/dev/fd/{writer}"), "text")
    finally:
        os.close(writer)

"""The servers and file systems to put under load are what they say, and leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from gridbench_testbed import daemons
from gridbench_testbed.services import gfarm, mounts, redis
from gridbench_testbed.services.gfarm import Gfarm, Postgres
from gridbench_testbed.services.mounts import Passthrough
from gridbench_testbed.services.redis import Redis
from running import PROGRAM, Run, until

needs_gfarm = pytest.mark.skipif(bool(gfarm.why_not()), reason=gfarm.why_not())
needs_database = pytest.mark.skipif(bool(gfarm.why_no_postgres()), reason=gfarm.why_no_postgres())
needs_redis = pytest.mark.skipif(bool(redis.why_not()), reason=redis.why_not())
needs_passthrough = pytest.mark.skipif(
    bool(mounts.why_no_passthrough()), reason=mounts.why_no_passthrough()
)


@pytest.fixture(scope="module")
def plain() -> Iterator[Gfarm]:
    """A Gfarm with two mounts that keeps its metadata in memory alone."""
    with Gfarm(mounts=2) as rig:
        yield rig


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that all users reach, as PostgreSQL is not root's."""
    with tempfile.TemporaryDirectory(prefix="gb-services-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def started_by(process: psutil.Process) -> list[psutil.Process]:
    """What a process has started, and what that has."""
    return list(process.children(recursive=True))


def run(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run."""
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def mounted_below(folder: Path) -> list[str]:
    return [path for path in mounts.mounted() if path.startswith(f"{folder}/")]


def entries(rig: Gfarm, name: str) -> list[str]:
    """The entries of directories that the database of a Gfarm has for those whose name is like
    `name`, of them and in them. Rows of other directories may still be in the queue."""
    assert rig.postgres is not None
    of = f"select entryINumber from DirEntry where entryName like '{name}'"
    query = f"select entryName from DirEntry where entryName like '{name}' or dirINumber in ({of})"
    return rig.postgres.sql(query, "gfarm").split()


def journalled(rig: Gfarm) -> bytes:
    """All that the journal of a Gfarm holds."""
    return b"".join(file.read_bytes() for file in rig.journal.iterdir())


def make_directories(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"made-{number}").mkdir()


@needs_gfarm
def test_files_are_the_same_through_all_mounts(plain: Gfarm) -> None:
    data = os.urandom(3_000_000)
    (plain.mounts[0] / "written").write_bytes(data)
    # FUSE tells its file system of the end of a file only after `close` has returned.
    until(lambda: (plain.mounts[1] / "written").read_bytes() == data)


@needs_gfarm
def test_directories_that_one_mount_makes_are_seen_by_the_other(plain: Gfarm) -> None:
    assert [mount.name for mount in plain.mounts] == ["mount-0", "mount-1"]
    make_directories(plain.directories[0], 20)
    seen = plain.mounts[1] / plain.directories[0].name
    assert {path.name for path in seen.iterdir()} == {f"made-{number}" for number in range(20)}
    assert plain.directories[1] == plain.mounts[1] / "worker-1"
    (seen / "made-7").rmdir()
    # The kernel keeps names for a second.
    until(lambda: not (plain.directories[0] / "made-7").exists())


@needs_gfarm
def test_without_database_and_journal_nothing_is_kept(plain: Gfarm) -> None:
    make_directories(plain.directories[1], 5)
    assert plain.postgres is None
    assert journalled(plain) == b""


@needs_gfarm
@needs_database
@pytest.mark.parametrize(("journal", "synchronous"), [(False, False), (True, False), (True, True)])
def test_metadata_go_to_the_database_and_the_journal(journal: bool, synchronous: bool) -> None:
    with Gfarm("postgresql", journal, synchronous=synchronous) as rig:
        names = [f"entry-{number}" for number in range(50)]
        for name in names:
            (rig.directories[0] / name).mkdir()
        if journal:  # it is ahead of the answers
            written = journalled(rig)
            assert all(name.encode() in written for name in names)
        else:
            assert journalled(rig) == b""
        # Each has an entry for itself, and those for `.` and `..`.
        wanted = sorted([*names, *[".", ".."] * 50])
        until(lambda: sorted(entries(rig, "entry-%")) == wanted)


@needs_gfarm
def test_files_can_have_copies_on_several_nodes() -> None:
    with Gfarm(nodes=2) as rig:
        assert rig.run("gfhost").split() == ["127.0.0.1", "127.0.0.2"]
        data = os.urandom(100_000)
        (rig.mounts[0] / "copied").write_bytes(data)
        until(lambda: len(rig.run("gfwhere", "/copied").split()) == 1)
        rig.run("gfrep", "-N", "2", "/copied")
        for node in (0, 1):
            files = [path for path in rig.spool(node).rglob("*") if path.is_file()]
            assert [path.read_bytes() for path in files] == [data]


@needs_gfarm
def test_two_rigs_do_not_know_of_each_other(plain: Gfarm) -> None:
    me = psutil.Process()
    before = set(started_by(me))
    with Gfarm() as other:
        (other.mounts[0] / "of the other").mkdir()
        assert not (plain.mounts[0] / "of the other").exists()
        started = [process for process in started_by(me) if process not in before]
        assert len(mounted_below(other.folder)) == 1
        assert run(started)
    assert run(started) == []
    assert mounted_below(other.folder) == []
    assert not other.folder.exists()
    assert len(list(plain.mounts[0].iterdir())) >= 2


@needs_gfarm
def test_what_was_killed_leaves_nothing(tmp_path: Path) -> None:
    me = psutil.Process()
    before = set(started_by(me))
    with Gfarm(mounts=2, mounts_in=tmp_path / "mounts") as rig:
        started = [process for process in started_by(me) if process not in before]
        rig.check()
        for name in ("gfsd-0", "mount-0", "mount-1"):
            os.kill(rig.processes[name], signal.SIGKILL)
        with pytest.raises(RuntimeError, match="has ended: "):
            until(rig.check)
        assert len(mounted_below(tmp_path)) == 2
    assert run(started) == []
    assert mounted_below(tmp_path) == []
    assert not (tmp_path / "mounts").exists()


@needs_gfarm
def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "mount-1" / "something").mkdir(parents=True)
    me = psutil.Process()
    before = set(started_by(me))
    with pytest.raises(RuntimeError, match="mount-1 is there already, and not an empty folder"):
        Gfarm(mounts=2, directory=tmp_path, mounts_in=tmp_path)
    assert set(started_by(me)) == before
    assert mounted_below(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["mount-1"]


SERVICES = "gridbench_testbed.services"
OWNERS = {
    "gfarm": (
        f"from {SERVICES}.gfarm import Gfarm as S",
        "S('postgresql', True, 2, {})",
    ),
    "passthrough": (
        f"from {SERVICES}.mounts import Passthrough as S",
        "S(2, {})",
    ),
    "redis": (f"from {SERVICES}.redis import Redis as S", "S('always', {})"),
}


@needs_gfarm
@needs_database
@needs_passthrough
@needs_redis
@pytest.mark.parametrize("name", OWNERS)
def test_a_service_ends_with_a_killed_owner(name: str, open_folder: Path) -> None:
    imported, made = OWNERS[name]
    script = f"import sys; from pathlib import Path\n{imported}\n"
    script += f"s = {made.format('directory=Path(sys.argv[1])')}\n"
    script += "print(s.folder, flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script, open_folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, text=True,
    ) as owner:  # fmt: skip
        assert owner.stdout is not None
        assert Path(owner.stdout.readline().strip()).parent == open_folder
        started = started_by(psutil.Process(owner.pid))
        assert run(started)
        owner.kill()
    until(lambda: not run(started))
    assert mounted_below(open_folder) == []


@needs_passthrough
def test_a_folder_is_passed_through(tmp_path: Path) -> None:
    with Passthrough(2, directory=tmp_path) as rig:
        assert rig.folder.parent == tmp_path
        assert sorted(mounted_below(tmp_path)) == sorted(map(str, rig.mounts))
        data = os.urandom(100_000)
        (rig.mounts[0] / "file").write_bytes(data)
        assert (rig.mounts[1] / "file").read_bytes() == data
    assert list(tmp_path.iterdir()) == []


@needs_redis
def test_redis_answers_and_keeps_nothing() -> None:
    with Redis() as one, Redis() as other:
        assert one.command("set", "key", "a value") == "OK"
        assert one.command("get", "key") == "a value"
        assert other.command("get", "key") == ""
        with pytest.raises(RuntimeError, match="unknown command"):
            one.command("nothing")
        assert {path.name for path in one.folder.iterdir()} == {"log", "socket"}
    assert not one.folder.exists()


@needs_redis
def test_a_forked_process_leaves_its_parents_service_alone() -> None:
    with Redis() as rig:
        if (child := os.fork()) == 0:
            rig.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert rig.command("ping") == "PONG"


@needs_redis
def test_redis_keeps_what_it_is_reported_to() -> None:
    with Redis("always") as rig:
        rig.command("set", "key", "kept at once")
        stored = [path.read_bytes() for path in (rig.folder / "appendonlydir").glob("*.incr.aof")]
        assert [b"kept at once" in file for file in stored] == [True]
        assert "appendfsync\nalways" in rig.command("config", "get", "appendfsync")


@needs_database
def test_a_database_is_of_its_own() -> None:
    with Postgres() as one, Postgres() as other:
        one.sql("create table numbers as select * from generate_series(1, 3)")
        assert one.sql("select * from numbers").split() == ["1", "2", "3"]
        with pytest.raises(RuntimeError, match='relation "numbers" does not exist'):
            other.sql("select * from numbers")
    assert not one.folder.exists()


def test_it_is_reported_what_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gridbench: Run
) -> None:
    monkeypatch.setattr(daemons, "path", lambda: str(tmp_path))
    monkeypatch.setattr(gfarm, "_PLACES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert redis.why_not() == "`redis-server` is not installed: scripts/ensure-redis does that"
    assert gfarm.why_not() == "`gfmd` is not installed: scripts/ensure-gfarm does that"
    assert (
        mounts.why_no_passthrough() == "`bindfs` is not installed: scripts/ensure-gfarm does that"
    )
    assert mounts.why_no_fuse() == "`fusermount3` is not installed: scripts/ensure-gfarm does that"
    for program in ("setpriv", "fusermount3", "gfmd", "gfsd", "gfarm2fs"):
        (tmp_path / program).symlink_to("/bin/true")
    assert gfarm.why_no_postgres() == (
        "PostgreSQL's server is not installed: scripts/ensure-postgres does that"
    )
    done = gridbench("services", "start", "redis", env={"PATH": str(tmp_path)})
    assert done.returncode == 2
    assert done.stderr == (
        "gridbench: error: Redis cannot be started: `redis-server` is not installed\n"
        "hint: scripts/ensure-redis does that\n"
    )


@needs_gfarm
def test_a_command_has_a_gfarm(gridbench: Run, tmp_path: Path) -> None:
    done = gridbench(
        "services", "start", "gfarm", "--mounts", "2", "--mounts-in", "here", "--", "sh", "-c",
        "mkdir here/mount-0/new && ls -d here/mount-1/* $GRIDBENCH_MOUNTS/mount-1/new; exit 3",
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.split() == [
        str(tmp_path / "here/mount-1/new"), "here/mount-1/new", "here/mount-1/worker-0",
        "here/mount-1/worker-1",
    ]  # fmt: skip
    assert done.returncode == 3
    assert list(tmp_path.iterdir()) == []


@needs_redis
def test_a_service_is_part_of_what_a_command_measures(gridbench: Run) -> None:
    script = (
        "import os, sys; from gridbench.machine.processes import processes, whose\n"
        "table = processes(); known = whose(table, os.getpid())\n"
        "found = {table[p].name for p in known.ours} & {'redis-server', 'bindfs'}\n"
        "print(sorted(found), int(sys.argv[1]) in known.others)"
    )
    start = ("services", "start")
    with Redis() as other:
        server = str(other.processes["redis-server"])
        inner = (*PROGRAM, *start, "passthrough", "--", sys.executable, "-c", script, server)
        done = gridbench(*start, "redis", "--", *inner)
        assert done.stdout == "['bindfs', 'redis-server'] True\n", done.stderr
        done = gridbench(*start, "redis", "--", "env", "GRIDBENCH_SERVICES=1.1,", *inner)
        assert done.stdout == "['bindfs'] True\n", done.stderr


@needs_passthrough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_service_is_there_until_it_is_interrupted(
    number: signal.Signals, environment: dict[str, str], tmp_path: Path
) -> None:
    with subprocess.Popen(
        [*PROGRAM, "services", "start", "passthrough", "--mounts", "2", "--files-in", tmp_path],
        env=environment, stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert program.stdout.readline() == "The local folder is there until Ctrl-C.\n"
        assert len(mounted_below(tmp_path)) == 2
        started = started_by(psutil.Process(program.pid))
        program.send_signal(number)
        assert program.wait() == 0
    assert run(started) == []
    assert list(tmp_path.iterdir()) == []


@needs_redis
def test_where_a_service_is_can_be_read(environment: dict[str, str], tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "services", "start", "redis", "--files-in", tmp_path, "--json"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None
        assert program.stderr is not None
        text = ""
        while not text.endswith("}\n}\n"):
            text += program.stdout.readline()
        record = json.loads(text)
        url = record["variables"]["REDIS_URL"]
        requested = subprocess.run(
            ["redis-cli", "-u", url, "ping"], capture_output=True, text=True, check=True
        )
        assert requested.stdout == "PONG\n"
        (server,) = started_by(psutil.Process(program.pid))
        assert record["processes"] == {"redis-server": server.pid}
        server.kill()
        assert program.wait() == 2
        assert "redis-server has ended" in program.stderr.read()
    assert list(tmp_path.iterdir()) == []

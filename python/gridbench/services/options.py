"""The commands `gridbench services`. What they need is imported when they are called."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gridbench.command_line import CommandWithExamples
from gridbench.printing import json_option
from gridbench.quantities import Count

if TYPE_CHECKING:
    from gridbench_testbed.services.gfarm import Backend
    from gridbench_testbed.services.redis import Fsync

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group()
def services() -> None:
    """Servers and file systems on this machine that `gridbench sync` puts under load."""


@services.group(short_help="Start one, and keep it until Ctrl-C.")
def start() -> None:
    """Start a service beside those of the system, and keep it until Ctrl-C.

    With a COMMAND, the service is there while the command runs, and the exit status is the
    command's. Variables such as GRIDBENCH_MOUNTS and REDIS_URL tell it where the
    service is. All files of the service are in a temporary folder, which is removed at the end.
    """


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """The options of all services."""

    @click.option(
        "--files-in",
        type=_FOLDER,
        metavar="FOLDER",
        help="Where its temporary folder is made: on the disk that is to be measured.",
    )
    @json_option
    @click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND]...")
    @functools.wraps(command)
    def with_options(**options: object) -> None:
        command(**options)

    return with_options


def _mounting(command: Callable[..., None]) -> Callable[..., None]:
    """The options of file systems."""

    @click.option(
        "--mounts",
        type=Count(1, 1000),
        default=1,
        show_default=True,
        metavar="N",
        help="How many times it is mounted: as mount-0, mount-1 and so on, one for each worker.",
    )
    @click.option(
        "--mounts-in",
        type=_FOLDER,
        metavar="FOLDER",
        help="Where the mounts are, if not in its temporary folder.",
    )
    @functools.wraps(command)
    def with_options(**options: object) -> None:
        command(**options)

    return with_options


@start.command(
    cls=CommandWithExamples,
    short_help="A distributed file system with a metadata server.",
    examples=(
        "gridbench services start gfarm --mounts 8 --mounts-in /tmp/gfarm",
        "gridbench services start gfarm --backend postgresql --journal synchronous",
        "gridbench services start gfarm --mounts 2 -- sh -c 'ls $GRIDBENCH_MOUNTS'",
    ),
)
@_mounting
@click.option(
    "--backend",
    type=click.Choice(["none", "postgresql"]),
    default="none",
    show_default=True,
    help="The database that the metadata server writes to.",
)
@click.option(
    "--journal",
    type=click.Choice(["none", "buffered", "synchronous"]),
    default="none",
    show_default=True,
    help="Whether it writes a journal before it answers, and brings it to the disk too.",
)
@click.option(
    "--storage-nodes",
    "nodes",
    type=Count(1, 250),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of file system nodes.",
)
@_common
def gfarm(
    *,
    mounts: int,
    mounts_in: Path | None,
    backend: Backend,
    journal: str,
    nodes: int,
    files_in: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Start Gfarm: its metadata server gfmd, file system nodes, and mounts by gfarm2fs."""
    from gridbench.services.command import run_service
    from gridbench_testbed.services.gfarm import Gfarm, why_not

    def make() -> Gfarm:
        return Gfarm(
            backend, journal != "none", mounts, nodes=nodes, synchronous=journal == "synchronous",
            directory=files_in, mounts_in=mounts_in,
        )  # fmt: skip

    sys.exit(run_service("Gfarm", why_not(backend), make, as_json, command))


@start.command(
    cls=CommandWithExamples,
    short_help="A local folder that is mounted through FUSE.",
    examples=("gridbench services start passthrough --mounts 8 --mounts-in /tmp/passthrough",),
)
@_mounting
@_common
def passthrough(
    *,
    mounts: int,
    mounts_in: Path | None,
    files_in: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Mount a folder of a local disk by bindfs: what FUSE costs without a server behind it."""
    from gridbench.services.command import run_service
    from gridbench_testbed.services.mounts import Passthrough, why_no_passthrough

    def make() -> Passthrough:
        return Passthrough(mounts, directory=files_in, mounts_in=mounts_in)

    sys.exit(run_service("The local folder", why_no_passthrough(), make, as_json, command))


@start.command(
    cls=CommandWithExamples,
    short_help="A server of keys and values.",
    examples=(
        "gridbench services start redis --port 7000 --fsync everysec",
        "gridbench services start redis -- sh -c 'redis-cli -u $REDIS_URL ping'",
    ),
)
@click.option(
    "--port",
    type=Count(1, 65535),
    metavar="N",
    help="At which port of 127.0.0.1 it listens, by default a free one.",
)
@click.option(
    "--fsync",
    type=click.Choice(["no", "everysec", "always"]),
    help="Keep what is written in a file, and bring that to the disk so often.",
)
@_common
def redis(
    *,
    port: int | None,
    fsync: Fsync | None,
    files_in: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Start Redis, which keeps nothing on the disk unless it is told to."""
    from gridbench.services.command import run_service
    from gridbench_testbed.services.redis import Redis, why_not

    def make() -> Redis:
        return Redis(fsync or "", port=port or 0, directory=files_in)

    sys.exit(run_service("Redis", why_not(), make, as_json, command))

"""The commands `gridbench services`. Imports are deferred until they run."""

from __future__ import annotations

import functools
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError
from gridbench.machine.processes import SERVICES, with_service
from gridbench.printing import json_option, print_json
from gridbench.process.interrupt import Interrupt
from gridbench.quantities import Count
from gridbench_testbed.daemons import Daemons
from gridbench_testbed.services.mounts import Mounts

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
    """Start Redis, which keeps nothing on the disk unless its options say so."""
    from gridbench_testbed.services.redis import Redis, why_not

    def make() -> Redis:
        return Redis(fsync or "", port=port or 0, directory=files_in)

    sys.exit(run_service("Redis", why_not(), make, as_json, command))


# ---- Running a service

_GLANCE = 0.1  # seconds between looks at whether the daemons still run


def run_service(
    name: str, why_not: str, make: Callable[[], Daemons], as_json: bool, command: tuple[str, ...]
) -> int:
    """Run a service during the command, or until Ctrl-C; the exit status. InputError if it does not
    start, or cannot for the reason `why_not`."""
    if why_not:
        what, _, remedy = why_not.partition(": ")
        raise InputError(f"{name} cannot be started: {what}", remedy=remedy)
    with Interrupt() as interrupt:
        try:
            service = make()
        except (RuntimeError, OSError) as error:
            raise InputError(f"{name} does not start: {error}") from error
        # What the service uses is part of what the command measures.
        service.variables[SERVICES] = with_service()
        with service:
            if as_json:
                print_json(_record(service))
            elif not command:
                _tell(name, service)
            return _command(service, command, interrupt) if command else _wait(service, interrupt)


def _record(service: Daemons) -> dict[str, object]:
    record: dict[str, object] = {
        "folder": service.folder,
        "variables": service.variables,
        "processes": service.processes,
    }
    if isinstance(service, Mounts):
        record |= {"mounts": service.mounts, "directories": service.directories}
    return record


def _tell(name: str, service: Daemons) -> None:
    click.echo(f"{name} is there until Ctrl-C.")
    if isinstance(service, Mounts):
        for mount, directory in zip(service.mounts, service.directories, strict=True):
            click.echo(f"  mounted at {mount}, with the worker's own folder {directory.name}")
    for variable, value in service.variables.items():
        click.echo(f"  {variable}={value}")


def _wait(service: Daemons, interrupt: Interrupt) -> int:
    """Wait for Ctrl-C, the regular end."""
    while not interrupt.came:
        try:
            service.check()
        except RuntimeError as error:
            raise InputError(str(error)) from error
        time.sleep(_GLANCE)
    return 0


def _command(service: Daemons, command: tuple[str, ...], interrupt: Interrupt) -> int:
    """Run the command; its exit status, as in a shell."""
    try:
        running = subprocess.Popen(command, env=service.environment)
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from error
    requested = False
    with running:
        while running.poll() is None:
            if interrupt.came and not requested:
                # Ctrl-C has come to it as well, other signals to this process alone.
                requested = True
                running.terminate()
            try:
                running.wait(_GLANCE)
            except subprocess.TimeoutExpired:
                continue
    return running.returncode if running.returncode >= 0 else 128 - running.returncode

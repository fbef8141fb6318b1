"""`gridbench services start`: has a service while it is wanted, and says where it is."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import click

from gridbench.errors import InputError
from gridbench.machine.processes import SERVICES, with_service
from gridbench.printing import print_json
from gridbench.process.interrupt import Interrupt
from gridbench_testbed.daemons import Daemons
from gridbench_testbed.services import gfarm, redis
from gridbench_testbed.services.gfarm import Backend, Gfarm
from gridbench_testbed.services.mounts import Mounts, Passthrough, why_no_passthrough
from gridbench_testbed.services.redis import Fsync, Redis

_GLANCE = 0.1  # seconds between looks at whether the daemons still run


def run_gfarm(
    *,
    backend: Backend,
    journal: str,
    mounts: int,
    mounts_in: Path | None,
    nodes: int,
    files_in: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Have a Gfarm. Returns the exit status."""

    def make() -> Gfarm:
        return Gfarm(
            backend, journal != "none", mounts, nodes=nodes, synchronous=journal == "synchronous",
            directory=files_in, mounts_in=mounts_in,
        )  # fmt: skip

    return _run("Gfarm", gfarm.why_not(backend), make, as_json, command)


def run_passthrough(
    *,
    mounts: int,
    mounts_in: Path | None,
    files_in: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Have a local folder mounted. Returns the exit status."""

    def make() -> Passthrough:
        return Passthrough(mounts, directory=files_in, mounts_in=mounts_in)

    return _run("The local folder", why_no_passthrough(), make, as_json, command)


def run_redis(
    *,
    port: int | None,
    fsync: Fsync | None,
    files_in: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Have a Redis. Returns the exit status."""

    def make() -> Redis:
        return Redis(fsync or "", port=port or 0, directory=files_in)

    return _run("Redis", redis.why_not(), make, as_json, command)


def _run(
    name: str, why_not: str, make: Callable[[], Daemons], as_json: bool, command: tuple[str, ...]
) -> int:
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
    """Until it is no longer wanted: this is how it is meant to end."""
    while not interrupt.came:
        try:
            service.check()
        except RuntimeError as error:
            raise InputError(str(error)) from error
        time.sleep(_GLANCE)
    return 0


def _command(service: Daemons, command: tuple[str, ...], interrupt: Interrupt) -> int:
    """Run the command. Returns its exit status, as a shell has it."""
    try:
        running = subprocess.Popen(command, env=service.environment)
    except OSError as error:
        raise InputError(f"{command[0]}: {error.strerror}") from error
    asked = False
    with running:
        while running.poll() is None:
            if interrupt.came and not asked:
                # Ctrl-C has come to it as well, other signals to this process alone.
                asked = True
                running.terminate()
            try:
                running.wait(_GLANCE)
            except subprocess.TimeoutExpired:
                continue
    return running.returncode if running.returncode >= 0 else 128 - running.returncode

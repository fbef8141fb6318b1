"""`gridbench services start`: runs a service during a command, or until Ctrl-C."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

import click

from gridbench.errors import InputError
from gridbench.machine.processes import SERVICES, with_service
from gridbench.printing import print_json
from gridbench.process.interrupt import Interrupt
from gridbench_testbed.daemons import Daemons
from gridbench_testbed.services.mounts import Mounts

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

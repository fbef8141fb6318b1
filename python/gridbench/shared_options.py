"""Options that several benchmarks share, declared once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridbench.errors import InputError
from gridbench.machine.options import load_options
from gridbench.printing import printing_options
from gridbench.quantities import (
    FLAG,
    PATH,
    ROUNDS,
    Count,
    Duration,
    Quantity,
    Texts,
    text_or_texts,
    words,
)
from gridbench.schema import option, options_of

if TYPE_CHECKING:
    from gridbench.hosts.hosts_file import HostChoice

MOST_NODES = 250
"""Of an emulated cluster."""
TIMEOUT = Duration(1e-3, 1e7)


class ServerNames(Quantity[tuple[str, ...]]):
    """Names of servers, each of which may be `NAME[,NAME]` or a URL."""

    name = "servers"

    def read(self, value: Any, folder: Path | None = None) -> tuple[str, ...]:
        """The names, each once."""
        from gridbench.engines.servers import names_in

        del folder
        found = text_or_texts(value)
        names = names_in([found] if isinstance(found, str) else found)
        if twice := [name for number, name in enumerate(names) if name in names[:number]]:
            raise InputError(f"the server `{twice[0]}` occurs twice", remedy="name it once")
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class GridOptions:
    """Servers of a grid that have the workers."""

    grid: Path | None = option(
        "--grid", PATH, metavar="FILE", help="Have workers on the servers of this grid.toml."
    )
    servers: tuple[str, ...] = option(
        "--server",
        ServerNames(),
        metavar="NAME[,NAME]",
        help="Only on these servers of FILE, or on one that is a URL, such as ssh://node1; may be"
        " given several times.",
        default=(),
        default_text="all of FILE",
        multiple=True,
    )

    @property
    def elsewhere(self) -> bool:
        """Whether a grid or a server is given."""
        return bool(self.grid or self.servers)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions(GridOptions):
    """The same, and how long they may take to start."""

    start_timeout: float = option(
        "--start-timeout",
        TIMEOUT,
        metavar="S",
        help="Time until all workers and hosts have to be ready.",
        default=180.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOptions(ServerOptions):
    """Where a benchmark's work is done."""

    hosts: Path | None = option(
        "--hosts",
        PATH,
        metavar="FILE",
        help="Hosts with their cores, a line each: `node1 8`. They are reached by ssh.",
        older_name="HOST_FILE",
    )
    emulate: str | None = option(
        "--emulate",
        words("ssh", "slurm", "gridengine"),
        help="Use a cluster that gridbench starts on this machine; needs root.",
    )
    nodes: int | None = option(
        "--nodes",
        Count(1, MOST_NODES),
        metavar="K",
        help="Nodes that gridbench emulates on this machine; needs root.",
        default_text="4",
    )

    def where(self) -> HostChoice:
        """The hosts. InputError if one choice contradicts another, or for a host file that cannot
        be read."""
        from gridbench.hosts.hosts_file import HostChoice, read_hosts

        ways = {
            "--hosts": self.hosts,
            "--grid and --server": self.grid or self.servers,
            "--emulate": self.emulate,
        }
        chosen = [way for way, value in ways.items() if value]
        if len(chosen) > 1:
            raise InputError(
                f"{' and '.join(chosen)} both say which hosts are used", remedy="choose one of them"
            )
        if self.nodes is not None and self.emulate is None:
            raise InputError(
                "--nodes is of the cluster that --emulate starts, and there is none",
                remedy="add --emulate ssh, slurm or gridengine",
            )
        return HostChoice(
            hosts=() if self.hosts is None else read_hosts(self.hosts),
            grid=self.grid,
            names=self.servers,
            emulated=self.emulate,
            nodes=self.nodes or 4,
            patience=self.start_timeout,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsOptions:
    """The folder of results, and what of it is measured again.

    What has a value is not measured again. What failed is kept with its reason, and not tried again
    unless that is requested. What other programs disturbed when it failed is, as they may be the
    reason; what was cut off is not kept, and so is missing.
    """

    out: Path | None = option("--out", PATH, metavar="DIR", help="Folder for the results.")
    fresh: bool = option(
        "--fresh", FLAG, help="Forget the results that DIR holds.", default=False, in_files=False
    )
    retry_failed: bool = option(
        "--retry-failed",
        FLAG,
        help="Repeat measurements that failed in an earlier call.",
        default=False,
        in_files=False,
    )


def engines_option(default_text: str) -> Any:
    """The parameter `--engine`."""
    return option(
        "--engine",
        Texts("engine"),
        metavar="NAME",
        help="Engine to measure; may be given several times.",
        default=(),
        default_text=default_text,
        multiple=True,
    )


def start_option(record: str = "") -> Any:
    """The parameter `--start`."""
    return option(
        "--start",
        words("cold", "warm"),
        help="Whether starting the workers counts (cold), or all have answered before t = 0"
        " (warm).",
        default="cold",
        record=record,
    )


def auto_rounds_option(default: Any = None, default_text: str = "") -> Any:
    """The parameter `--rounds`, which may be `auto`."""
    return option(
        "--rounds",
        ROUNDS,
        metavar="N|auto",
        help="How often each case is measured; auto: as often as the answer takes.",
        default=default,
        default_text=default_text,
    )


def rounds_option(help: str, default: int, most: int = 1000) -> Any:
    """The parameter `--rounds`."""
    return option("--rounds", Count(1, most), metavar="N", help=help, default=default)


def seed_option(record: str = "") -> Any:
    """The parameter `--seed`."""
    return option(
        "--seed",
        Count(0, 2**31 - 1),
        metavar="K",
        help="Random seed: the same seed gives the same order and times.",
        default=1,
        record=record,
    )


def case_limit_option(default: float) -> Any:
    """The parameter `--case-limit`."""
    return option(
        "--case-limit",
        Duration(1e-3, 1e7),
        metavar="S",
        help="Seconds that a case may take.",
        default=default,
    )


dry_run_option = click.option("--dry-run", is_flag=True, help="List what would be run, and exit.")


def experiment_options(schema: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of an experiment: those of its schema, and what all have. Its
    arguments are `given`, `policy` and `printing`."""
    return lambda command: options_of(schema)(load_options(printing_options(command)))

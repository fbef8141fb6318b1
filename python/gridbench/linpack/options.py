"""The parameters and the commands of `gridbench linpack`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gridbench.command_line import CommandWithExamples
from gridbench.errors import InputError
from gridbench.links.options import LINK_RATE
from gridbench.linpack.record import (
    BIG_ENDIAN,
    POLICIES,
    SERVERS,
    ClientLanguage,
    CorePolicy,
    LinpackServer,
    StepKind,
)
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import Choice, Count, Counts, Duration, ListOf, Probability, Quantity
from gridbench.schema import group, option, read_parameters
from gridbench.shared_options import (
    ResultsOptions,
    case_limit_option,
    experiment_options,
    rounds_option,
    seed_option,
)
from gridbench.workload.numbers import shown

LARGEST = 10_000
"""Order of the matrix, which then has 800 MB."""
_SINGLE = "single"
LOOPBACK = ("socket", "tcp", "tls")
_LINKS = ("1gbit", "100mbit+10ms")
MOST_CLIENTS = 1000
_PAPER: tuple[StepKind, ...] = ("paper",)
_BOTH: tuple[StepKind, ...] = ("paper", "scaled")
_SCALED: tuple[StepKind, ...] = ("scaled",)
_CLIENT: Choice[ClientLanguage] = Choice({"C": "C", "Python": "Python"})
_LONGEST_ROUND_TRIP = Duration(0.0, 10.0)


class LinpackPath(Quantity[str]):
    """The way from client to server: `socket`, `tcp`, `tls`, or a link such as `100mbit+10ms`; with
    `+big-endian` behind it for numbers in that byte order."""

    name = "path"

    def read(self, value: Any, folder: Path | None = None) -> str:
        """Its name, as it is written."""
        del folder
        text = str(value).strip()
        link_of(text)
        return text


@dataclass(frozen=True, slots=True)
class ShapedLink:
    """A link of known rate and round-trip time."""

    rate: float
    """Bits per second."""
    round_trip: float
    """Seconds, added to those of the machine."""


def link_of(path: str) -> ShapedLink | None:
    """The link of a path; None: it has none. InputError for what is no path."""
    way = path.removesuffix(BIG_ENDIAN)
    if way in LOOPBACK:
        return None
    rate, plus, delay = way.partition("+")
    try:
        round_trip = _LONGEST_ROUND_TRIP.read(delay) if plus else 0.0
        return ShapedLink(LINK_RATE.read(rate), round_trip)
    except InputError as error:
        raise InputError(
            f"`{shown(path)}` is no path to a server: {error.what}",
            remedy=f"choose {', '.join(LOOPBACK)}, or a link of a rate and a round-trip time,"
            f" such as 1gbit or 100mbit+10ms; {BIG_ENDIAN} may follow",
        ) from None


class Speed(Quantity[float]):
    """A share of a processor, such as `10%` or `0.1`."""

    name = "speed"

    def read(self, value: Any, folder: Path | None = None) -> float:
        """The share."""
        del folder
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            share = 0.0
        if not 0.01 <= share < 1:
            raise InputError(
                f"`{shown(text)}` is no speed of a client",
                remedy="give a share of its processors from 1% up to 99%, such as 10%",
            )
        return share


@dataclass(frozen=True, slots=True, kw_only=True)
class LinpackParameters:
    """Which systems are solved where, by which clients."""

    sizes: tuple[int, ...] = option(
        "-n",
        "--sizes",
        Counts("size", LARGEST),
        metavar="LIST",
        help=f"Orders of the matrix, up to {LARGEST:,}; 100-1600:100 goes in steps of 100.",
        default=(100, 200, 400, 600, 800, 1000, 1200, 1400, 1600),
    )
    paths: tuple[str, ...] = option(
        "--paths",
        ListOf(LinpackPath()),
        metavar="LIST",
        help="Ways to the server: its Unix socket, TCP and TLS on the loopback, and links such as"
        f" {' and '.join(_LINKS)} (rate and round-trip time), which need root. Over a path such as"
        f" socket{BIG_ENDIAN}, a client in Python sends numbers in the other byte order.",
        default=LOOPBACK,
    )
    languages: tuple[ClientLanguage, ...] = option(
        "--languages",
        ListOf(_CLIENT),
        metavar="LIST",
        help="Languages of the client.",
        default=("C", "Python"),
    )
    speeds: tuple[float, ...] = option(
        "--client-speed",
        ListOf(Speed()),
        metavar="LIST",
        help="Shares of its processors that a slowed client gets, beside one that is not slowed.",
        default=(0.1,),
        default_text="10%",
    )
    threads: int = option(
        "--threads",
        Count(1, 1024),
        metavar="N",
        help="Threads of the solver, locally and on the server.",
        default=1,
        record="threads",
    )
    calls: int = option(
        "--calls",
        Count(1, 1000),
        metavar="N",
        help="Systems that a client solves at least each time.",
        default=3,
        record="calls",
    )
    rounds: int = rounds_option("How often each case is measured.", 3)
    limit: float = case_limit_option(600.0)
    seed: int = seed_option()
    results: ResultsOptions = group(ResultsOptions, out="runs/linpack-<time>")

    def links(self) -> dict[str, ShapedLink]:
        """The links that are needed, by the names of their paths without the byte order.
        InputError if they cannot be made here."""
        from gridbench_testbed.links.network import require_links

        ways = [path.removesuffix(BIG_ENDIAN) for path in self.paths]
        found = {way: link for way in ways if (link := link_of(way))}
        if found:
            require_links()
        return found

    def check(self) -> None:
        """InputError for more threads than processors, and for numbers in another byte order
        without a client that has them."""
        from gridbench.run.machine import usable_processors

        usable = usable_processors()
        if self.threads > usable:
            raise InputError(
                f"--threads: {self.threads} threads need as many processors, and there are"
                f" {usable}",
                remedy=f"give {usable} at most",
            )
        foreign = [path for path in self.paths if path.endswith(BIG_ENDIAN)]
        if foreign and "Python" not in self.languages:
            raise InputError(
                f"--paths: only the client in Python sends numbers as {foreign[0]} wants them",
                remedy="give --languages Python",
            )


class _SingleByDefault(click.Group):
    """A group whose options are those of `single` if they name no command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `single` before its options."""
        own = not args or args[0].startswith("-")
        if own and not ctx.resilient_parsing and not set(args[:1]) & set(ctx.help_option_names):
            args = [_SINGLE, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_SingleByDefault, short_help="Solve linear systems here and on a server.")
def linpack() -> None:
    """Measure remote solving of dense linear systems, the Linpack benchmark of servers.

    Without a command, `gridbench linpack` is `gridbench linpack single`.
    """


@linpack.command(
    _SINGLE,
    cls=CommandWithExamples,
    short_help="One client, over several paths.",
    examples=(
        "gridbench linpack",
        "gridbench linpack --sizes 100-1600:100 --paths socket,tls,1gbit,100mbit+10ms",
        "gridbench linpack -n 200,400 --paths tls --languages C --rounds 1",
        "gridbench linpack -n 1000,5000,10000 --threads 2 --client-speed 5%,25%",
        "gridbench linpack --paths socket,socket+big-endian --languages Python",
    ),
)
@experiment_options(LinpackParameters)
def single(*, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
    """Say from which size on a server solves a linear system sooner than the client itself.

    A client solves a dense system of order n by LAPACK's dgesv: with OpenBLAS in its own process,
    and with the same library on a server that gridbench starts on this machine. A slowed client,
    with a share of a processor, stands for a small machine. All solutions are checked.

    DIR then holds linpack.jsonl and report.html: performance over n, the n from which the server
    is faster, throughput, and a model of communication and computation, which `gridbench model`
    and `gridbench simulate` use as well. The same command with the same --out resumes.

    Exit status 1: a case failed. 2: the options cannot be followed. 3: other programs disturbed
    all cases.
    """
    from gridbench.experiment import run_experiment
    from gridbench.linpack.experiment import LinpackExperiment

    parameters = read_parameters(LinpackParameters, given)
    experiment = LinpackExperiment(parameters)
    sys.exit(run_experiment(experiment, parameters.results, policy, printing))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientsParameters:
    """Which cases are measured, and how the clients call."""

    clients: tuple[int, ...] = option(
        "--clients",
        Counts("number of clients", MOST_CLIENTS),
        metavar="LIST",
        help="Numbers of clients, such as 10 or 1,10,100.",
        default=(1, 4, 8, 12, 16),
    )
    sizes: tuple[int, ...] = option(
        "-n",
        "--sizes",
        Counts("order", LARGEST),
        metavar="LIST",
        help="Orders of the matrix.",
        default=(600, 1000, 1400),
    )
    policies: tuple[CorePolicy, ...] = option(
        "--policies",
        ListOf(Choice[CorePolicy]({name: name for name in POLICIES})),
        metavar="LIST",
        help="How the server divides its cores: `all` runs one call at a time on all cores, `one`"
        " gives each call a core.",
        default=tuple(POLICIES),
    )
    servers: tuple[LinpackServer, ...] = option(
        "--servers",
        ListOf(Choice[LinpackServer]({name: name for name in SERVERS})),
        metavar="LIST",
        help="Servers: gridrpc, grpc (Python, over a Unix socket) and ray-serve (over HTTP). All"
        " solve with the same OpenBLAS and as many threads.",
        default=("gridrpc",),
    )
    steps: tuple[StepKind, ...] = option(
        "--steps",
        Choice({"paper": _PAPER, "scaled": _SCALED, "both": _BOTH}),
        help="The step as --step has it; or divided by the ratio of the paper's time of a call of"
        " one client to this machine's, so that a client loads the server as it did then; or both.",
        default=_PAPER,
    )
    step: float = option(
        "--step",
        Duration(1e-3, 3600.0),
        metavar="S",
        help="Time between the steps of a client.",
        default=3.0,
        record="step",
    )
    probability: float = option(
        "--probability",
        Probability(),
        metavar="P",
        help="Probability that a client calls at a step.",
        default=0.5,
        record="probability",
    )
    duration: float = option(
        "--duration",
        Duration(0.1, 86400.0),
        metavar="S",
        help="Time in which the clients of a case begin calls.",
        default=60.0,
        record="duration",
    )
    rounds: int = rounds_option("How often each case is measured.", default=2)
    seed: int = seed_option()
    results: ResultsOptions = group(ResultsOptions, out="runs/linpack-clients-<time>")


@linpack.command(
    cls=CommandWithExamples,
    short_help="Measure a server that many clients call at random.",
    examples=(
        "gridbench linpack clients --duration 10 --rounds 1",
        "gridbench linpack clients --steps both --out runs/clients",
        "gridbench linpack clients --clients 64 --duration 600 --steps scaled -n 600",
        "gridbench linpack clients --servers gridrpc,grpc --clients 1,16 -n 600",
    ),
)
@experiment_options(ClientsParameters)
def clients(*, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
    """Measure a Linpack server that many clients call at random.

    Each client is a process. At each step it calls the server with a probability, as in the
    benchmark of the Ninf project. The tables stand beside the published ones. The server runs on
    this machine, with each of two policies: one call at a time on all cores, or one core for each
    call.

    With many clients for ten minutes it is a soak test: the report says whether calls were lost,
    and whether the server's memory grew.
    """
    from gridbench.experiment import run_experiment
    from gridbench.linpack.clients_experiment import ClientsExperiment

    parameters = read_parameters(ClientsParameters, given)
    experiment = ClientsExperiment(parameters)
    sys.exit(run_experiment(experiment, parameters.results, policy, printing))

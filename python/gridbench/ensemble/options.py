"""The parameters and the command `gridbench ensemble`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from gridbench.command_line import CommandWithExamples
from gridbench.ensemble.layouts import GRAINS, Division, GrainName, LayoutName, divisions
from gridbench.ensemble.record import OURS, RequestKind
from gridbench.errors import InputError
from gridbench.formats import as_given, size
from gridbench.machine.options import Policy
from gridbench.printing import Printing
from gridbench.quantities import PATH, Choice, Count, Counts, ListOf, TimeScale, Word
from gridbench.schema import group, option, read_parameters
from gridbench.shared_options import (
    ResultsOptions,
    case_limit_option,
    experiment_options,
    rounds_option,
    seed_option,
)

LAYOUTS: dict[LayoutName, str] = {
    "ume": "a cluster behind 122.1 MB/s, 0.04 ms",
    "koume": "the same",
    "presto3": "9.3 MB/s, 1.5 ms",
    "venus": "1.1 MB/s, 17.2 ms",
    "jupiter": "the same",
    "amata": "0.09 MB/s, 80 ms",
    "modern": "1,195 MB/s (10 Gbit/s), 0.02 ms, which is not of the paper",
    "pairs": "UME and PRESTO3 at once, as the paper's table 3 has them",
    "ninf-g": "10 processors of 4 clusters",
    "sc2003": "500 processors of 5 clusters",
}
MOST_PROCESSORS = 5000
"""Of a cluster."""
SETTINGS = "settings.nml"
"""Beside the module of the model."""
ModelName = Literal["sleep", "compute"]
LinkKind = Literal["paper", "scaled"]
BatchKind = Literal["both", "slurm", "gridengine", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnsembleParameters:
    """Which ensembles are run where."""

    layouts: tuple[LayoutName, ...] = option(
        "--layouts",
        ListOf(Choice[LayoutName]({name: name for name in LAYOUTS})),
        metavar="LIST",
        help="Clusters, each in a network namespace behind its link (throughput, latency one way): "
        + "; ".join(f"`{name}`, {reported}" for name, reported in LAYOUTS.items())
        + ".",
        default=("presto3",),
    )
    processors: tuple[int, ...] = option(
        "--processors",
        Counts("number of processors", MOST_PROCESSORS),
        metavar="LIST",
        help="Processors of a layout that is a single cluster: a worker for each.",
        default=(10, 50, 100, 200, 250),
    )
    grains: tuple[GrainName, ...] = option(
        "--grains",
        ListOf(Choice[GrainName]({name: name for name in GRAINS})),
        metavar="LIST",
        help="Forecasts: "
        + "; ".join(
            f"`{name}`, {as_given(one.seconds)} with {size(one.output)} of results"
            for name, one in GRAINS.items()
        )
        + ".",
        default=("10-days",),
    )
    samples: int | None = option(
        "--samples",
        Count(1, 1000),
        metavar="N",
        help="Samples of each processor.",
        default_text="5, as in the paper; 2 for sc2003",
        record="samples",
    )
    time_scale: float = option(
        "--time-scale",
        TimeScale(),
        metavar="F",
        help="Multiply the time of every sample by F, above 0. Below 1, results are as large and"
        " more frequent, so efficiencies fall: see --links.",
        default=1.0,
        record="time_scale",
    )
    links: LinkKind = option(
        "--links",
        Choice[LinkKind]({"paper": "paper", "scaled": "scaled"}),
        help="Links as the paper's, or with latencies multiplied and throughputs divided by"
        " --time-scale, so that they keep their share of the time of a sample.",
        default="paper",
        record="links",
    )
    model: ModelName = option(
        "--model",
        Choice[ModelName]({"sleep": "sleep", "compute": "compute"}),
        help="What a sample does: `sleep` for its time and return as many bytes, or `compute` the"
        " forecast with the model of --module, as long as that takes.",
        default="sleep",
        record="model",
    )
    module: Path | None = option(
        "--module",
        PATH,
        metavar="FILE",
        help="The module of `--model compute`: ensemble.so, as `make` in examples/ensemble"
        " compiles it.",
    )
    batch: BatchKind = option(
        "--batch-systems",
        Choice[BatchKind](
            {"both": "both", "slurm": "slurm", "gridengine": "gridengine", "none": "none"}
        ),
        help="Launcher of the workers of a cluster: Slurm, Grid Engine at VENUS and AMATA; one of"
        " them everywhere; or none, which needs neither.",
        default="both",
        record="batch_systems",
    )
    requests: tuple[RequestKind, ...] = option(
        "--requests",
        ListOf(Choice[RequestKind]({"together": "together", "one-by-one": "one by one"})),
        metavar="LIST",
        help="How to request workers from a batch system: `together` in one request, or"
        " `one-by-one`.",
        default=("together",),
    )
    ahead: tuple[int, ...] = option(
        "--ahead",
        ListOf(Count(0, 10), ascending=True),
        metavar="LIST",
        help="Calls that wait for each processor, beside the one that it runs. With 0, as in the"
        " paper, a processor is idle while a result and the next call are on the way.",
        default=(0,),
    )
    engines: tuple[str, ...] = option(
        "--engines",
        ListOf(Word()),
        metavar="LIST",
        help=f"`{OURS}` has its workers from the batch systems. Others are drivers of `gridbench"
        " engines` whose workers can be in network namespaces, such as gridrpc-python, dask,"
        " parsl, hyperqueue and mpi; they start them there themselves.",
        default=(OURS,),
    )
    rounds: int = rounds_option("How often each run is made.", 1)
    limit: float = case_limit_option(1800.0)
    seed: int = seed_option()
    results: ResultsOptions = group(ResultsOptions, out="runs/ensemble-<time>")

    def check(self) -> None:
        """InputError for what cannot be measured here."""
        from gridbench_testbed.links.network import require_links

        require_links()
        if (self.model == "compute") != (self.module is not None):
            raise InputError(
                "--model compute and --module need each other",
                remedy="compile the model by `make -C examples/ensemble`, and give --model compute"
                " --module examples/ensemble/ensemble.so",
            )
        others = [name for name in self.engines if name != OURS]
        if others and self.model == "compute":
            raise InputError(
                f"the model is a function of a module, which {others[0]} cannot call",
                remedy=f"give --engines {OURS}, or --model sleep",
            )
        if self.module is not None:
            for file in (self.module, self.module.with_name(SETTINGS)):
                if not file.is_file():
                    raise InputError(
                        "there is no such file, which the model needs",
                        file=file,
                        remedy="give the module in examples/ensemble, where `make` compiles it",
                    )
        if self.time_scale <= 0:
            raise InputError(
                "--time-scale: a sample has to take some time", remedy="give 0.01 or more"
            )

    def divisions(self, layout: LayoutName) -> list[Division]:
        """The runs of a layout."""
        found = divisions(layout, self.processors)
        return [
            one if self.samples is None else Division(one.shares, self.samples) for one in found
        ]


@click.command(
    cls=CommandWithExamples,
    short_help="Run a weather ensemble on emulated clusters.",
    examples=(
        "gridbench ensemble --processors 10,50 --time-scale 0.1",
        "gridbench ensemble --layouts presto3,venus --grains 10-days,month,100-days",
        "gridbench ensemble --layouts pairs --grains month --rounds 3",
        "gridbench ensemble --layouts sc2003 --batch-systems slurm",
        "gridbench ensemble --processors 50 --requests together,one-by-one --samples 1",
        "gridbench ensemble --processors 8 --engines gridrpc-python,dask,hyperqueue,mpi",
    ),
)
@experiment_options(EnsembleParameters)
def ensemble(*, given: dict[str, Any], policy: Policy, printing: Printing) -> None:
    """Measure how efficiently clusters run a weather ensemble, as the evaluation of Ninf-G2 did.

    A client farms out samples: each processor has one call at a time, or more with --ahead, and the
    next one as soon as that has ended. The clusters are network namespaces of this machine, each
    with a batch system of its own, behind links of the paper's throughput and latency. A sample
    sleeps as long as a forecast took in the paper, and returns as many bytes, so that hundreds of
    processors fit on a machine; everything else is real.

    DIR then holds ensemble.jsonl and report.html: run times, call times and efficiency beside the
    paper's tables, and start-up times. The same command with the same --out resumes.

    Exit status 1: a run failed. 2: the options cannot be followed. 3: other programs disturbed all
    runs.
    """
    from gridbench.ensemble.experiment import EnsembleExperiment
    from gridbench.experiment import run_experiment

    parameters = read_parameters(EnsembleParameters, given)
    experiment = EnsembleExperiment(parameters)
    sys.exit(run_experiment(experiment, parameters.results, policy, printing))

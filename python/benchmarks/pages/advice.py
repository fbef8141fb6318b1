"""Measurements behind docs/advice-models.md.

    python -m benchmarks.pages.advice splits [--out FILE.json]
    python -m benchmarks.pages.advice calls [--out FILE.json]

`splits` runs the advised split of ten works beside 1, 10, 25, 50, 100, 200, 400 and 1,000 tasks, as
far as they fit. For each work, the engine is calibrated as by `gridbench advise --try`.

`calls` measures how long `gridbench advise` takes without a saved model: for twelve jobs, half of
them with data, of 0.5 s to 100 s of work on 2 to 100 cores, three times each. It keeps the seconds
of each call and the intervals of its answers, and takes about three minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks.pages.recipes import ROOT
from benchmarks.runner import save_record
from gridbench.advise.advice import advise
from gridbench.advise.command import AdviceRequest, find_model
from gridbench.advise.document import trial_record
from gridbench.advise.options import AdviceParameters
from gridbench.advise.search import Split, best_split
from gridbench.advise.trial import Trial, left_out, trial_warnings
from gridbench.advise.trying import TrialEffort, participant_of, try_out
from gridbench.advise.work import DivisibleWork
from gridbench.errors import InputError
from gridbench.formats import NOTHING, counted, duration
from gridbench.machine.options import WAIT, Policy
from gridbench.machine.quiet import settle
from gridbench.model.model import PipelineModel
from gridbench.quantities import KB, MB
from gridbench.run.machine import machine_facts, versions

WORKS = {
    "1 s on 100 cores": DivisibleWork(seconds=1, cores=100),
    "0.1 s on 100 cores": DivisibleWork(seconds=0.1, cores=100),
    "100 s on 100 cores": DivisibleWork(seconds=100, cores=100),
    "10 s on 100 cores, 100 KB for each task": DivisibleWork(
        seconds=10, cores=100, bytes_in_each=100 * KB
    ),
    "5 s on 20 cores, 1 MB for each task": DivisibleWork(seconds=5, cores=20, bytes_in_each=MB),
    "2 s on 10 cores, 100 MB of input": DivisibleWork(seconds=2, cores=10, bytes_in=100 * MB),
    "3 s on 50 cores, 20 MB of input, 5 MB of output": DivisibleWork(
        seconds=3, cores=50, bytes_in=20 * MB, bytes_out=5 * MB
    ),
    "20 s on 100 cores, 1 MB of output of each task": DivisibleWork(
        seconds=20, cores=100, bytes_out_each=MB
    ),
    "60 s on 100 cores, 1 MB in and out of each task": DivisibleWork(
        seconds=60, cores=100, bytes_in_each=MB, bytes_out_each=MB
    ),
    "30 s on 200 cores, 10 MB of shared data": DivisibleWork(
        seconds=30, cores=200, bytes_shared=10 * MB
    ),
}
SHORT, LONG = 1.0, 10_000.0
"""Seconds of two works whose advice must differ; the long one is not run."""
CORES = 100
"""For these two."""


def measure_splits(chosen: argparse.Namespace) -> int:
    """Measure, keep all of it, print a table. Exit status 1: something could not be measured; 3:
    nothing can be claimed, as other programs used the machine."""
    if chosen.rounds < 1 or not chosen.try_limit > 0:
        raise InputError("--rounds and --try-limit must be above 0")
    if not any(chosen.only in name for name in WORKS):
        raise InputError(
            f"no work has `{chosen.only}` in its name", remedy=f"there are: {'; '.join(WORKS)}"
        )
    console = Console(stderr=True, highlight=False)
    effort = TrialEffort(rounds=chosen.rounds, limit=chosen.try_limit)
    record: dict[str, Any] = {
        "machine": machine_facts(),
        "versions": versions(),
        "effort": asdict(effort),
        "complete": False,
        "works": [],
    }
    save_record(chosen.out, record)  # fails before the work if it cannot be written
    policy = policy_of(chosen)
    settle(policy, console)
    names = [name for name in WORKS if chosen.only in name]
    rows, verdicts, missing, claims = [], Counter[str](), False, True
    for number, name in enumerate(names, 1):
        console.print(f"{number} of {len(names)}: {name}")
        work = WORKS[name]
        model = model_for(work, chosen, console, policy)
        advice = advise(model, work)
        trial = try_out(advice, participant_of(model), effort, console, policy)
        for text in (*left_out(trial), *trial_warnings(trial)):
            console.print(f"  {text}", soft_wrap=True, markup=False)
        record["engine"] = model.fit.place.engine
        rows.append(row(name, advice.split, trial))
        verdicts[trial.close or NOTHING] += 1
        missing |= bool(trial.failed) or trial.ratio is None
        claims &= trial.claims and not model.disturbed
        record["works"].append(
            {"name": name, "work": asdict(work), "advised": asdict(advice.split)}
            | {"tried": trial_record(trial)}
        )
        save_record(chosen.out, record)
    record["short and long"] = short_and_long(chosen, console, policy)
    save_record(chosen.out, record | {"complete": True})
    print_table(rows, verdicts, record["short and long"])
    return int(missing) or policy.exit_status(claims=claims)


def policy_of(chosen: argparse.Namespace) -> Policy:
    """The policy for other programs on the machine."""
    return Policy(accept=chosen.accept_load, wait=0.0 if chosen.accept_load else WAIT)


def add_split_options(parser: argparse.ArgumentParser) -> None:
    """Options of `splits`."""
    parser.add_argument("--engine", help="default: gridrpc-native, or the only one of --from")
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        help="a model, or a folder of runs; without it the engine is calibrated for each work",
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each split is run")
    parser.add_argument(
        "--try-limit",
        type=float,
        default=6.0,
        help="seconds; splits that are expected to take longer are left out",
    )
    parser.add_argument("--only", default="", help="works in whose name this stands")


def model_for(
    work: DivisibleWork, chosen: argparse.Namespace, console: Console, policy: Policy
) -> PipelineModel:
    """The model that the command line names, or one that is calibrated for the work."""
    options = AdviceParameters(engine=chosen.engine, source=chosen.source, renew=True)
    request = AdviceRequest(work=work, policy=policy, options=options)
    return find_model(request, console)[0]


def short_and_long(chosen: argparse.Namespace, console: Console, policy: Policy) -> dict[str, Any]:
    """What is advised for both, by one model: calibration does not depend on the time."""
    work = DivisibleWork(seconds=SHORT, cores=CORES)
    model = model_for(work, chosen, console, policy)
    splits = [best_split(model, replace(work, seconds=time)) for time in (SHORT, LONG)]
    return {
        "cores": CORES,
        "works": [
            {"seconds": time} | asdict(split)
            for time, split in zip((SHORT, LONG), splits, strict=True)
        ],
    }


def row(name: str, split: Split, trial: Trial) -> str:
    """One work, as a row of the table."""
    advised, rival = trial.advised, trial.rival
    if advised is None or rival is None or trial.ratio is None:
        return f"| {name} | {describe(split.tasks, split.cores)} | | | | | not measured |"
    bounds = trial.bounds
    between = "" if bounds is None else f" ({bounds[0]:.2f} to {bounds[1]:.2f})"
    return (
        f"| {name} | {describe(split.tasks, split.cores)} | {duration(median(advised.compared))}"
        f" | {describe(rival.tasks, rival.cores)} | {duration(median(rival.compared))}"
        f" | {trial.ratio:.3f}{between} | {trial.close or NOTHING} |"
    )


def describe(tasks: int, cores: int) -> str:
    """A split in words."""
    return f"{counted(tasks, 'task')} on {cores:,}"


def print_table(rows: list[str], verdicts: Counter[str], both: dict[str, Any]) -> None:
    """As Markdown."""
    print("| work | advised | took | best of the others | took | ratio (bounds) | within 5 % |")
    print("|---|---|---:|---|---:|---:|---|", *rows, sep="\n")
    counts = ", ".join(f"{how}: {verdicts[how]}" for how in ("yes", "not proved", "no"))
    print(f"\nWithin 5 % of the best, of {len(rows)} works: {counts}.")
    splits = [
        f"{one['seconds']:,.0f} s on {both['cores']} cores: {describe(one['tasks'], one['cores'])}"
        f" cores, {duration(one['total'])} expected"
        for one in both["works"]
    ]
    print(f"Advised for {'; for '.join(splits)}.")


FIRST_WORKS = (
    "0.5s --cores 2",
    "2s --cores 10",
    "10s --cores 50",
    "20s --cores 100",
    "60s --cores 20",
    "100s --cores 2",
)
DATA = ("--input 100MB", "--input-per-task 1MB", "--input 20MB --shared 5MB")
TIMES = 3


def measure_calls(chosen: argparse.Namespace) -> int:
    """Measure, keep all of it, print what it took."""
    policy = policy_of(chosen)
    console = Console(stderr=True, highlight=False)
    record: dict[str, Any] = {
        "machine": machine_facts(),
        "versions": versions(),
        "complete": False,
        "jobs": [],
    }
    save_record(chosen.out, record)  # fails before the work if it cannot be written
    jobs = [
        *(f"--work {work}" for work in FIRST_WORKS),
        *(f"--work {work} {DATA[number % len(DATA)]}" for number, work in enumerate(FIRST_WORKS)),
    ]
    for job in jobs:
        found = [advised_call(job, policy, console) for _ in range(TIMES)]
        record["jobs"].append({"options": job, "answers": found})
        save_record(chosen.out, record)
        took = ", ".join(f"{one['seconds']:.2f} s" for one in found)
        print(f"{job}: {took}", flush=True)
    save_record(chosen.out, record | {"complete": True})
    for what, some in (
        ("without data", jobs[: len(FIRST_WORKS)]),
        ("with data", jobs[len(FIRST_WORKS) :]),
    ):
        each = [
            one["seconds"]
            for job in record["jobs"]
            if job["options"] in some
            for one in job["answers"]
        ]
        print(f"{what}: {median(each):.1f} s, {min(each):.1f} to {max(each):.1f}")
    return 0


def advised_call(job: str, policy: Policy, console: Console) -> dict[str, Any]:
    """One call: its seconds, and the interval of the expected total."""
    settle(policy, console)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gridbench", "advise", *job.split()]
        accept = ["--accept-load"] if policy.accept else []
        begin = time.monotonic()
        ran = subprocess.run(
            [*command, "--task", "sleep", "--renew", "--json", "-q", *accept, "--out", folder],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        took = time.monotonic() - begin
    if ran.returncode:
        raise InputError(f"`gridbench advise {job}` has failed", remedy="see above")
    expected = json.loads(ran.stdout)["expected"]
    return {"seconds": took} | {name: expected[name] for name in ("low", "total", "high")}


def main() -> int:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pages.advice",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    each = parser.add_subparsers(required=True, metavar="{splits,calls}")
    splits, calls = each.add_parser("splits"), each.add_parser("calls")
    add_split_options(splits)
    splits.set_defaults(measure=measure_splits)
    calls.set_defaults(measure=measure_calls)
    for one in (splits, calls):
        one.add_argument("--out", type=Path, help="keep all values as JSON")
        one.add_argument(
            "--accept-load",
            action="store_true",
            default=bool(os.environ.get("GRIDBENCH_ACCEPT_LOAD")),
            help="measure although other programs use the machine",
        )
    chosen = parser.parse_args()
    return int(chosen.measure(chosen))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InputError as error:
        print(f"bench-advice: {error}", file=sys.stderr)
        sys.exit(error.exit_status)

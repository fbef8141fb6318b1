"""What all tests need."""

import os
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from cpu_time import CpuTime
from fresh import environment, full_environment, packages, sdist, static_wheel, unpacked, wheel
from hypothesis import settings

# What tests measure is not for claims, and machines that run tests are busy. Those of what is done
# about that take it away again.
os.environ["GRIDBENCH_ACCEPT_LOAD"] = "1"

# Java of data grids and of Maven runs for seconds: to compile its code a second time takes longer
# than that gains, and so does a collector with threads of its own. What a user has set stays.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# How long an example of Hypothesis takes is no claim either.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")

#: Fixtures for all folders.
__all__ = [
    "environment",
    "full_environment",
    "packages",
    "sdist",
    "static_wheel",
    "unpacked",
    "wheel",
]

#: How many characters of the failure of a test that is run again the summary has.
RERUN_TEXT = 2000

#: Files that take longer than others with as few tests.
LONG = (
    # What it builds first, others need as well.
    "packages/test_debian.py",
    "gridbench/test_datagrid_run.py",
    "gridbench/test_engine_drivers.py",
    "gridbench/test_model_fit.py",
    "gridbench/test_micro_run.py",
    "gridrpc/test_batch_faults.py",
    "gridrpc/test_joblib_suite.py",
    "gridrpc/test_cpython_futures.py",
    "docs/test_as_printed_gridbench.py",
    "docs/test_as_printed.py",
    "docs/test_reader.py",
    "docs/test_site.py",
    "packages/test_wheel.py",
    "gridbench/test_bench_cluster.py",
    "gridbench/test_bench_hosts.py",
    "gridbench/test_batch_gridengine.py",
    "gridbench/test_batch_slurm.py",
    "gridbench/test_sync_run.py",
    "gridbench/test_linpack_run.py",
    "gridbench/test_ensemble_run.py",
    "gridbench/test_datagrid_engines.py",
    "gridbench/test_crossover_run.py",
    "gridbench/test_scenario_run.py",
    "gridbench/test_scenario_cluster.py",
    "gridrpc/test_slurm_elastic.py",
    "gridrpc/test_batch_elastic.py",
    "gridrpc/test_slurm_faults.py",
    "gridrpc/test_slurm.py",
    "gridrpc/test_gridengine.py",
    "gridbench/test_advise.py",
    "gridbench/test_advise_try.py",
    "gridbench/test_model_saved.py",
    "gridbench/test_model_command.py",
    "gridbench/test_environments.py",
)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CpuTime())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """For root, who can install it, what is not installed is no reason to leave a test out."""
    report = yield
    if report.skipped and os.geteuid() == 0 and "not installed" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was left out: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A test that passes at the second attempt reports how the first one failed."""
    if reports := terminalreporter.stats.get("rerun", []):
        terminalreporter.section("why tests were run again")
        for report in reports:
            terminalreporter.write_line(f"{report.nodeid}\n{str(report.longrepr)[-RERUN_TEXT:]}\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long come first, then those with many tests: processes that share them end at
    about the same time."""
    files = [Path(__file__).parent / name for name in LONG]
    rank = {file: number for number, file in enumerate(files)}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (rank.get(item.path, len(rank)), -tests[item.path], item.path))


# Whoever runs the tests in the background may have them ignore Ctrl-C or the end of the terminal,
# and whatever they start would inherit that: tests need these signals as a terminal gives them.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

"""A plugin of pytest: notes how long tests take, and what was imported from outside of them."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest

_seconds: dict[str, float] = defaultdict(float)
#: They belong to the run that notes, and would not be of use in one that tries.
_OF_THIS_RUN = {"__main__", "_pytest", "coverage", "execnet", "mutants", "pytest_cov", "xdist"}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    noted = {"seconds": dict(_seconds), "modules": _imported(session.config.rootpath)}
    path = Path(os.environ["MUTANTS_NOTES"], f"{os.getpid()}.json")
    path.write_text(json.dumps(noted))


def _imported(checkout: Path) -> list[str]:
    """All modules that are not of the checkout, in the order of their import."""
    return [
        name
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] not in _OF_THIS_RUN
        and (file := getattr(module, "__file__", None)) is not None
        and not Path(file).is_relative_to(checkout)
    ]

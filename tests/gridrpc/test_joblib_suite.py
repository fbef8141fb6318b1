"""joblib's own tests, as they are installed, with our backend beside loky."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

#: What passes with loky and not here, by the function's name, and why that is meant.
DIFFERENT = {
    "test_error_capture": "an error in a task does not replace the workers: they survive it",
    "test_auto_memmap_on_arrays_from_generator": "arrays come from shared memory, not from files",
    "test_memmapping_leaks": "there are no temporary files that could be left",
}


def test_as_many_pass_as_with_loky(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    plugin = Path(__file__).parent / "joblib_suite"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "with_gridrpc"),
        *("--pyargs", "joblib.test.test_parallel", "-k", "loky or gridrpc", f"--junitxml={report}"),
    ]
    ran = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(plugin)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert report.exists(), ran.stdout + ran.stderr
    passed, failed = outcomes(report)
    with_gridrpc = {name for name in passed | failed if "gridrpc" in name}
    assert len(with_gridrpc) > 100, "joblib's tests are no longer found as they were"
    twins = {name for name in with_gridrpc if name.replace("gridrpc", "loky") in passed}
    unexpected = {name for name in twins & failed if name.partition("[")[0] not in DIFFERENT}
    assert not unexpected, ran.stdout[-20_000:]
    mended = {name.partition("[")[0] for name in with_gridrpc & passed} & set(DIFFERENT)
    assert not mended, "these pass: take them from the list"


def outcomes(report: Path) -> tuple[set[str], set[str]]:
    """Names of the tests that passed, and of those that failed."""
    passed, failed = set(), set()
    for case in ElementTree.parse(report).iter("testcase"):
        states = {child.tag for child in case}
        if states & {"failure", "error"}:
            failed.add(case.get("name", ""))
        elif "skipped" not in states:
            passed.add(case.get("name", ""))
    return passed, failed

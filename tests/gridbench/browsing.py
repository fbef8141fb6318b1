"""What the tests of pages look at in a real browser. Its fixture `driver` is in conftest.py."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
from browser import SECONDS_TO_DRAW, open_report
from selenium.webdriver.support.ui import WebDriverWait


def opened(driver, path: Path) -> None:
    """Load a page, which fetches nothing; caveats and details of engines are then unfolded and
    drawn."""
    open_report(driver, path)
    assert driver.get_log("browser") == []
    # The page itself is the one resource; whatever else it loaded would stand here.
    loaded = driver.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert [name for name in loaded if not name.startswith(("data:", "blob:"))] == []
    folded = driver.execute_script(
        """const all = [...document.querySelectorAll("details.folded, details.notice")];
        const open = all.filter(one => one.open && location.hash === "").length;
        all.forEach(one => { one.open = true; });
        return open === 0;"""
    )
    assert folded, "the first screen shows the answer"
    wait_until_drawn(driver)


def wait_until_drawn(driver) -> None:
    """Wait for the pictures of all that is unfolded."""
    WebDriverWait(driver, SECONDS_TO_DRAW).until(
        lambda d: d.execute_script(
            """return [...document.querySelectorAll("[data-chart]")]
            .every(figure => plots.folded(figure) || figure.querySelector(".empty, .main-svg"))"""
        )
    )


def drawn(driver) -> dict[str, dict[str, float]]:
    """Size of each picture and how many marks it has that are not empty."""
    return driver.execute_script(
        """
        return Object.fromEntries([...document.querySelectorAll("[data-chart]")].map(figure => {
          const box = figure.querySelector(".main-svg")?.getBoundingClientRect();
          const marks = [...figure.querySelectorAll(".scatterlayer path, .barlayer path")]
            .filter(path => path.getAttribute("d")?.length > 10 && path.getBBox().width > 0);
          const { width = 0, height = 0 } = box ?? {};
          return [figure.dataset.name, {width, height, marks: marks.length}];
        }))
        """
    )


def pixels(png: bytes) -> np.ndarray:
    """The bytes of the picture's rows; enough to tell whether it shows anything."""
    data, at = b"", 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += length + 12
    return np.frombuffer(zlib.decompress(data), dtype=np.uint8)

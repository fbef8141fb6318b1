"""A headless Chromium for tests of pages, and pictures of them.

Chromium and its driver are those of the system's packages; no browser is ever downloaded.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gridbench.errors import InputError

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTH = 1280
SECONDS_TO_DRAW = 60
_REMEDY = "apt-get install chromium chromium-driver"


@contextlib.contextmanager
def browser(downloads: Path | None = None, *, local: bool = False) -> Iterator[Chrome]:
    """A headless Chromium that can reach no network; what it downloads goes to `downloads`.

    `local`: it can reach what is served at 127.0.0.1, and nothing else.

    Raises InputError if the browser, its driver or selenium is not installed.
    """
    program, driver = _program("chromium", "chromium-browser"), _program("chromedriver")
    try:
        from selenium.webdriver import Chrome, ChromeOptions, ChromeService
    except ImportError:
        raise InputError("selenium is not installed", remedy="pip install selenium") from None
    with tempfile.TemporaryDirectory(prefix="gridbench-browser-") as profile:
        options = ChromeOptions()
        options.binary_location = program
        for flag in (
            "headless",
            "no-sandbox",
            "disable-gpu",
            "disable-quic",
            "no-first-run",
            "disable-background-networking",
            "disable-component-update",
            "disable-sync",
            "disable-dev-shm-usage",
            "hide-scrollbars",
            # Nothing listens there: whatever the page asks the network for fails, and shows.
            "proxy-server=http://127.0.0.1:9",
            f"proxy-bypass-list=<-loopback>{';127.0.0.1' if local else ''}",
            f"user-data-dir={profile}",
            f"window-size={WIDTH},1000",
        ):
            options.add_argument(f"--{flag}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        if downloads is not None:
            options.add_experimental_option(
                "prefs",
                {
                    "download.default_directory": str(downloads),
                    "download.prompt_for_download": False,
                },
            )
        opened = Chrome(options=options, service=ChromeService(executable_path=driver))
        try:
            yield opened
        finally:
            opened.quit()


def open_report(driver: Chrome, report: Path) -> None:
    """Load a report and wait until all its pictures are drawn; TimeoutException if they are not. A
    page without pictures has no script."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get(report.resolve().as_uri())
    WebDriverWait(driver, SECONDS_TO_DRAW).until(
        lambda d: d.execute_script(
            "return document.documentElement.dataset.ready === 'true'"
            " || document.readyState === 'complete' && !document.getElementById('report-data')"
        )
    )


def picture(driver: Chrome, height: int | None = None) -> bytes:
    """PNG of the whole page that is open, or of its upper `height` pixels."""
    full = driver.execute_script("return document.documentElement.scrollHeight")
    shot = driver.execute_cdp_cmd(
        "Page.captureScreenshot",
        {
            "format": "png",
            "captureBeyondViewport": True,
            "clip": {"x": 0, "y": 0, "width": WIDTH, "height": height or full, "scale": 1},
        },
    )
    return base64.b64decode(shot["data"])


def _program(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise InputError(f"`{names[0]}` is not installed", remedy=_REMEDY)

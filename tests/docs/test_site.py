"""The documentation site: it has every page, its links are alive, and it needs no network."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
from blocks import ROOT, pages
from browser import browser
from fresh import once
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

import gridrpc
from gridbench.cli import COMMANDS

#: What a page loads, by element; what it only leads to is another matter.
LOADED = {"img": "src", "link": "href", "script": "src", "source": "src", "iframe": "src"}


class Links(HTMLParser):
    """What a page has: the names of its places, where it leads to, and what it loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.leads_to: list[str] = []
        self.loads: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.ids.add(attributes.get("id") or "")
        if tag == "a" and attributes.get("href"):
            self.leads_to.append(attributes["href"] or "")
        if tag in LOADED and attributes.get(LOADED[tag]):
            self.loads.append(attributes[LOADED[tag]] or "")


def build(sources: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Has Sphinx build other sources by this site's rules."""
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    return subprocess.run(
        [*sphinx, "-c", ROOT / "docs/site", sources, folder],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder."""

    def make(folder: Path) -> None:
        built = subprocess.run(
            [ROOT / "scripts/build-docs", sys.executable, "html", folder / "site"],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert built.returncode == 0, built.stderr
        assert built.stderr == ""
        assert built.stdout.endswith(f"{folder}/site/index.html: open it in a browser.\n")

    return once("documentation", tmp_path_factory, make) / "site"


@pytest.fixture(scope="module")
def driver() -> Iterator[Chrome]:
    """A browser that reaches no network."""
    with browser() as opened:
        yield opened


#: The pages of crates, packages and libraries, which are for developers.
READMES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("crates/*", "python/*", "datagrid", "java", "lisp")
    for path in ROOT.glob(f"{folder}/README.md")
)


def test_every_page_is_there(site: Path) -> None:
    expected = {
        *(page.removesuffix(".md") for page in [*pages(), *READMES]),
        *(
            "ARCHITECTURE",
            "CHANGELOG",
            "CODE_OF_CONDUCT",
            "CONTRIBUTING",
            "SECURITY",
            "index",
            "search",
        ),
        *(f"docs/reference/{name}" for name in ("python", "gridrpc", "gridbench")),
    }
    assert {page for page in expected if not (site / f"{page}.html").is_file()} == set()


def test_every_page_is_in_the_navigation_of_the_first(site: Path) -> None:
    first = site / "docs/README.html"
    inside = re.search(r'<div class="sidebar-tree">.*?</div>', first.read_text(), re.DOTALL)
    assert inside is not None
    reached = {
        (first.parent / href).resolve() for href in re.findall(r'href="([^"#]+)"', inside[0])
    }
    expected = {site / f"{page.removesuffix('.md')}.html" for page in [*pages(), *READMES]}
    assert expected - reached == {first}


def test_links_lead_somewhere(site: Path) -> None:
    found = {page.resolve(): Links(page) for page in site.rglob("*.html")}
    dead = []
    for page, links in found.items():
        for link in links.leads_to:
            address, place = urldefrag(link)
            if urlsplit(address).scheme:
                continue
            to = (page.parent / unquote(address)).resolve() if address else page
            if not to.exists() or (place and unquote(place) not in found[to].ids):
                dead.append(f"{page.relative_to(site)}: {link}")
    assert dead == []


def test_nothing_comes_from_the_network(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert [one for one in Links(page).loads if urlsplit(one).netloc] == [], page
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text()) == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("journal", "docs/maps.html"),
        ("slurm partition", "docs/slurm.html"),
        ("WorkerLost", "docs/reference/python.html"),
        ("grpc_call_async", "docs/c/grpc_call_async.html"),
    ],
)
def test_search_works_from_a_file(site: Path, driver: Chrome, words: str, page: str) -> None:
    driver.get(f"{(site / 'search.html').as_uri()}?q={words.replace(' ', '+')}")

    def addresses() -> list[str]:
        links = driver.find_elements(By.CSS_SELECTOR, "#search-results li a")
        return [urlsplit(link.get_attribute("href") or "").path for link in links]

    # Results come one by one.
    WebDriverWait(driver, 60).until(
        lambda _: any(one.endswith(page) for one in addresses()),
        f"no result leads to {page}",
    )
    assert driver.get_log("browser") == []


def test_reference_has_every_public_name(site: Path) -> None:
    ids = Links(site / "docs/reference/python.html").ids
    assert {f"gridrpc.{name}" for name in gridrpc.__all__} - ids == set()


def test_reference_has_every_command(site: Path) -> None:
    ids = Links(site / "docs/reference/gridbench.html").ids
    assert {f"gridbench-{name}" for name in COMMANDS if name != "help"} - ids == set()
    assert "gridbench-engines-install" in ids
    assert {"gridrpc-compile", "gridrpc-session-start"} <= Links(
        site / "docs/reference/gridrpc.html"
    ).ids


def written(folder: Path, links: dict[str, str]) -> Path:
    """Sources: a first page that lists others, each with a link; by their names."""
    docs = folder / "sources/docs"
    docs.mkdir(parents=True)
    listed = "".join(f"- [{name}]({name}.md)\n" for name in links)
    (docs / "README.md").write_text(f"# Documentation\n\n## Start\n\n{listed}")
    for name, link in links.items():
        (docs / f"{name}.md").write_text(f"# Other\n\n## Somewhere\n\n{link}\n")
    return folder / "sources"


def test_links_that_lead_somewhere_are_no_errors(tmp_path: Path) -> None:
    links = {"here": "[here](#somewhere)", "there": "[there](README.md#start)"}
    built = build(written(tmp_path, links), tmp_path / "site")
    assert (built.returncode, built.stderr) == (0, "")


def test_dead_links_and_pages_that_nothing_lists_are_errors(tmp_path: Path) -> None:
    links = {
        "nofile": "[there](nowhere.md)",
        "noplace": "[there](README.md#elsewhere)",
        "notever": "[here](#nonesuch)",
    }
    sources = written(tmp_path, links)
    (sources / "docs/alone.md").write_text("# Alone\n")
    built = build(sources, tmp_path / "site")
    assert built.returncode != 0
    for name, why in {
        "nofile": r"nowhere\.md",
        "noplace": "elsewhere",
        "notever": "nonesuch",
    }.items():
        assert re.search(rf"{name}\.md:5: WARNING: .*{why}", built.stderr), built.stderr
    assert "alone.md: WARNING: document isn't included in any toctree" in built.stderr

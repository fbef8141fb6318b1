"""The kit that pages are made of: colours that differ from paper, escaping, the one table."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import entry_points
from itertools import product

import pytest
from plotly.offline import get_plotlyjs, get_plotlyjs_version

from gridbench.pages import render
from gridbench.pages.chart import Chart
from gridbench.pages.colours import PHASES, SERIES, engine_colours
from gridbench.pages.render import as_json, asset, environment
from gridbench.pages.table import Cell, Table, facts

TEXT, MARK = 4.5, 3.0
DATA_GRIDS = ("hazelcast", "coherence", "geode", "ignite", "redis", "embedded")
EVIL = "</script><b onclick='x'>&"


def theme(dark: bool) -> dict[str, str]:
    """The colours of the style sheet by name; the dark ones replace light ones."""
    light, night = asset("pages/page.css").split("@media (prefers-color-scheme: dark)", 1)
    found = dict(re.findall(r"--([\w-]+): (#\w+)", light))
    rule = night[: night.index("\n}")]
    assert rule.count("--") == len(re.findall(r"--[\w-]+: #\w+", rule)) >= 8
    return found | dict(re.findall(r"--([\w-]+): (#\w+)", rule)) if dark else found


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    shares = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def engines() -> list[str]:
    return sorted(entry.name for entry in entry_points(group="gridbench.engines"))


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#fff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_can_be_read(dark: bool) -> None:
    colours = theme(dark)
    pairs = [*product(("ink", "soft", "accent", "good", "bad"), ("paper", "ground"))]
    for text, ground in [*pairs, ("ink", "warn"), ("paper", "accent")]:
        assert contrast(colours[text], colours[ground]) >= TEXT, (text, ground)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_marks_can_be_seen(dark: bool) -> None:
    paper = theme(dark)["paper"]
    marks = PHASES | engine_colours([*engines(), *DATA_GRIDS])
    marks |= {colour: colour for colour in SERIES}
    assert len(marks) > 30
    for name, colour in marks.items():
        assert contrast(colour, paper) >= MARK, name


def test_each_engine_has_a_colour_of_its_own_and_its_variants_have_it_too() -> None:
    colours = engine_colours([*engines(), *DATA_GRIDS])
    assert len(set(colours.values())) == len(colours) > 20
    reported = engine_colours(["ray", "ray on 2 hosts", "rays", "emulated-slurm-native (TLS)"])
    assert reported["ray"] == reported["ray on 2 hosts"] == colours["ray"]
    assert reported["emulated-slurm-native (TLS)"] == colours["emulated-slurm-native"]
    # One that nobody knows has one by its name alone, whoever else is on the page.
    assert engine_colours(["rays"])["rays"] == reported["rays"]


def test_no_page_has_a_colour_of_its_own() -> None:
    """Scripts take colours from the page's data and style: none is written into them."""
    names = [
        "pages/plots.js",
        "pages/curves.js",
    ]
    for name in names:
        assert re.findall(r"""["'`]#[0-9a-fA-F]{3,8}\b""", asset(name)) == [], name


def shown(call: str, **values: object) -> str:
    source = '{% from "pages/parts.html" import chart, items, notice, table %}' + call
    return environment().from_string(source).render(**values)


def test_all_text_is_escaped() -> None:
    table = Table([EVIL, EVIL], [[EVIL, Cell(EVIL, EVIL, EVIL)]], [EVIL], EVIL)
    chart = Chart(EVIL, EVIL, name=EVIL, title=EVIL, about=EVIL, table=table)
    for call, value in (
        ("table(value)", table),
        ("chart(value)", chart),
        ("notice(value, value[0])", [EVIL]),
        ("items(value)", [EVIL]),
    ):
        page = shown("{{ " + call + " }}", value=value)
        assert "<b onclick" not in page, call
        assert "</script>" not in page, call
        assert "&lt;b onclick=&#39;x&#39;&gt;&amp;" in page, call


def test_a_cell_may_lead_somewhere() -> None:
    table = Table(["", "x"], [["a", Cell("b", link='x"><b onclick=y>')]])
    page = shown("{{ table(value) }}", value=table)
    assert '<td><a href="x&#34;&gt;&lt;b onclick=y&gt;">b</a></td>' in page


def test_json_closes_no_element() -> None:
    assert as_json({"a": "</script><!--&"}) == '{"a":"\\u003c/script\\u003e\\u003c!--\\u0026"}'


def test_a_table_has_a_class_and_a_name_for_each_row() -> None:
    page = shown(
        "{{ table(value) }}",
        value=Table(["", "x"], [["a", "1"], ["b", Cell("2", "note")]], ["", "own"]),
    )
    assert '<tr><th scope="row">a</th><td>1</td></tr>' in page
    assert '<tr class="own"><th scope="row">b</th><td>2<small>note</small></td></tr>' in page
    with pytest.raises(ValueError, match="zip"):
        shown("{{ table(value) }}", value=Table(["", "x"], [["a", "1"]], ["one", "too many"]))
    assert 'class="facts"' in shown("{{ table(value) }}", value=facts([("a", "b")]))


def test_what_a_template_names_must_be_given() -> None:
    with pytest.raises(Exception, match="'missing' is undefined"):
        shown("{{ missing }}")


@pytest.mark.skipif(shutil.which("npm") is None, reason="it is fetched by npm")
def test_the_part_of_plotly_is_of_the_version_that_is_the_whole() -> None:
    part = asset("pages/plotly-basic.min.js")
    assert f"plotly.js (basic - minified) v{get_plotlyjs_version()}" in part[:200]
    assert len(part) < len(get_plotlyjs()) / 3


def test_without_the_part_a_page_has_all_of_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        if name.endswith("plotly-basic.min.js"):
            raise FileNotFoundError(name)
        return asset(name)

    monkeypatch.setattr(render, "asset", missing)
    assert render._plotly() == get_plotlyjs()

"""docs/configuration.md has all keys of the configuration, with their defaults."""

from __future__ import annotations

import tomllib
from dataclasses import fields

from blocks import blocks_of

from gridrpc import Config


def test_page_has_all_keys_with_their_defaults():
    (block,) = (one for one in blocks_of("docs/configuration.md") if one.kind == "toml")
    table = tomllib.loads(block.text)["grid"]
    defaults = {field.name: getattr(Config(), field.name) for field in fields(Config)}
    lists = {name: tuple(value) for name, value in table.items() if isinstance(value, list)}
    assert {**table, **lists} == defaults

"""Somebody who reads a page, for each test again."""

from __future__ import annotations

from pathlib import Path

import pytest
from fresh import Environment, once
from reader import Reader, copy_checkout


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, made once for all processes of a test run."""
    return once("checkout", tmp_path_factory, copy_checkout)


@pytest.fixture
def reader(
    full_environment: Environment, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> Reader:
    # Paths of sockets below it have 107 characters at most.
    return Reader(full_environment, checkout, tmp_path_factory.mktemp("page"))

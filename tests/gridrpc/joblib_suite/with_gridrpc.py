"""A plugin of pytest: wherever joblib's own tests try `loky`, they try `gridrpc` as well."""

from __future__ import annotations

from typing import Any

import joblib.testing

import gridrpc.joblib  # noqa: F401 - registers the backend

_parametrize = joblib.testing.parametrize


def parametrize(names: Any, values: Any, *arguments: Any, **options: Any) -> Any:
    """As joblib's own, with one more backend."""
    values = list(values)
    texts = [value for value in values if isinstance(value, str)]
    if "loky" in texts and "gridrpc" not in texts:
        values.append("gridrpc")
    return _parametrize(names, values, *arguments, **options)


joblib.testing.parametrize = parametrize

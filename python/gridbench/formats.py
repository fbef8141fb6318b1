"""Numbers as a reader sees them: on a terminal, in Markdown and on pages alike."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NOTHING = "–"
"""Stands for what is not known."""

_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_SIZES = {"bytes": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}
_BITS = {"kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
_BANDWIDTHS = {"bytes/s": 1.0, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
_FLOPS = {"flop/s": 1.0, "kflop/s": 1e3, "Mflop/s": 1e6, "Gflop/s": 1e9, "Tflop/s": 1e12}
_RATES = {"/s": 1.0, "k/s": 1e3, "M/s": 1e6, "G/s": 1e9}
_SHOWN = {"us": "µs", "x": "×"}
_ROUGH = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_TIMES_AS_LONG = 2.0
"""Ratios from here on are shown as times, and not as percent."""
_TINY = 1e-4
"""Smaller numbers are given as powers of ten,"""
_HUGE = 1e15
"""and so are those from here on."""
_ALL_DIGITS = 17  # of a float
_KB = 1024
_HOUR, _DAY = 3600.0, 86400.0


def duration(seconds: float) -> str:
    """Four significant digits in the unit that suits: µs, ms or s; a dash if not known."""
    if not math.isfinite(seconds):
        return NOTHING
    size = abs(seconds)
    if size == 0:
        return "0 s"
    if size < 999.95e-6:
        return f"{_four(seconds * 1e6)} µs"
    if size < 0.99995:
        return f"{_four(seconds * 1e3)} ms"
    return f"{_four(seconds)} s"


def spread(seconds: Sequence[float]) -> str:
    """The least and the largest of some times: `2.510 s to 2.602 s`; a dash of none."""
    ends = dict.fromkeys(map(duration, (min(seconds), max(seconds)))) if seconds else (NOTHING,)
    return " to ".join(ends)


def as_given(value: float, unit: str = "s") -> str:
    """What the user or a profile has given, with up to six digits and no zeros at the end: `0.5 s`,
    `1,200 s`, `1.2e-09 s/byte`. What is refused is shown as well: `nan`, `1e+300`."""
    as_power = not (value == 0 or _TINY <= abs(value) < _HUGE)
    return f"{f'{value:.6g}' if as_power else plain(value, 6)} {unit}".rstrip()


def rough(seconds: float, significant: int = 2) -> str:
    """A time as far as a model knows it, in the unit that suits: `1.3 s`, `830 ms`, `12,000 s`."""
    if not math.isfinite(seconds):
        return NOTHING
    size = abs(rounded(seconds, significant))
    unit, name = next((one for one in _ROUGH if size >= one[0]), _ROUGH[-1])
    return f"{digits(rounded(seconds, significant) / unit, significant)} {name}" if size else "0 s"


def between(low: float, high: float) -> str:
    """The interval of a time as far as a model knows it, with as many digits as tell its ends
    apart: `22 s to 30 s`, `30.00 s to 30.02 s`, `30 s, within 0.1 %`; a dash if it is none."""
    if low == high:
        return NOTHING
    significant = digits_apart(low, high)
    ends = rough(low, significant), rough(high, significant)
    return " to ".join(ends) if ends[0] != ends[1] else f"{rough(high)}, within 0.1 %"


def digits_apart(low: float, high: float) -> int:
    """With how many digits, from two to four, the ends of an interval differ; two if with none."""
    apart = (n for n in (2, 3, 4) if rough(low, n) != rough(high, n))
    return next(apart, 2)


def longer(total: float, best: float) -> str:
    """How much longer one total is than another that is no longer: `12 % longer`, `3.4 times as
    long`."""
    ratio = total / best
    if ratio < _TIMES_AS_LONG:
        return f"{percent(ratio - 1, 0)} longer"
    return f"{digits(ratio, 2)} times as long"


def about(seconds: float) -> str:
    """A time that is only estimated, as people say it: `40 s`, `12 min`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"


def age(seconds: float) -> str:
    """How long something is ago: `40 s`, `5 hours`, `3 days`."""
    if seconds >= 2 * _DAY:
        return f"{seconds / _DAY:,.0f} days"
    if seconds >= 2 * _HOUR:
        return f"{seconds / _HOUR:,.0f} hours"
    return about(max(1.0, seconds))


def clock(seconds: float) -> str:
    """A time that runs, in whole seconds: `0:07`, `1:02:03`."""
    whole = math.ceil(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


def size(count: float) -> str:
    """Bytes in units of 1024: `512 B`, `1.5 MB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if abs(count) < _KB or unit == "GB":
            break
        count /= _KB
    return f"{count:,.0f} {unit}" if abs(count) >= 1000 else f"{count:.4g} {unit}"


def compact_size(count: float) -> str:
    """The same without a blank, as in the name of a case: `10KB`."""
    for unit, step in (("GB", _KB**3), ("MB", _KB**2), ("KB", _KB)):
        if count >= step:
            return f"{count / step:.4g}{unit}"
    return f"{count:g}" if count == 0 else f"{count:g}B"


def bit_rate(rate: float) -> str:
    """Bits per second in the unit that suits, with three digits: `1 Gbit/s`, `868 Mbit/s`."""
    for unit, step in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if abs(rate) >= 0.9995 * step:
            return f"{_trimmed(digits(rate / step))} {unit}"
    return f"{plain(rate)} bit/s"


def percent(share: float, decimals: int = 1) -> str:
    """A share (0 to 1) in percent."""
    return f"{share * 100:.{decimals}f} %" if math.isfinite(share) else NOTHING


def signed_percent(share: float) -> str:
    """A relative error in percent with one decimal, with its sign."""
    return f"{share * 100:+.1f} %" if math.isfinite(share) else NOTHING


def share_given(share: float) -> str:
    """A share as options take it, without blank and commas: `50%`, `1000%`."""
    return f"{share * 100:g}%"


def processors(used: float) -> str:
    """So many processors, or a share of one, in hundredths: what is used is compared with what is
    tolerated, and hosts with each other."""
    return fixed(used, 2)


def whole(count: float) -> str:
    """A number of things, with all its digits: `12,345`."""
    return fixed(count, 0)


def fixed(value: float, decimals: int, *, signed: bool = False, grouped: bool = True) -> str:
    """So many decimals, for numbers of one unit that are compared, such as those of a column:
    `0.95` beside `1.05`; a dash if not known. `signed` is of differences: `+0.30`, `0.00`. Not
    `grouped` are those beside figures as others have printed them: `1116.1` beside `1116`."""
    if not math.isfinite(value):
        return NOTHING
    text = f"{abs(value):{',' if grouped else ''}.{decimals}f}"
    if not text.strip("0.,"):
        return text
    return f"{'-' if value < 0 else '+' if signed else ''}{text}"


def shortened(text: str, most: int) -> str:
    """A text of any number of lines on one, cut off after so many letters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def counted(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `10,000 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit to show values in: `value * factor` of `suffix`."""

    factor: float
    suffix: str

    def text(self, value: float, significant: int = 3) -> str:
        """With the unit."""
        return self.with_suffix(self.bare(value, significant))

    def with_suffix(self, number: str) -> str:
        """A number that is a text already, with the unit."""
        space = "" if self.suffix in ("", "×") else " "
        return f"{number}{space}{self.suffix}"

    def bare(self, value: float, significant: int = 3) -> str:
        """Without the unit, for where it stands already."""
        return digits(value * self.factor, significant)


def scale(value: float, unit: str) -> Scale:
    """The unit that suits `value`, which is in `unit`."""
    for units in (_TIMES, _SIZES, _BITS, _BANDWIDTHS, _FLOPS, _RATES):
        # Rates are of something: calls/s, tasks/s.
        known = "/s" if units is _RATES and unit.endswith("/s") else unit
        if known in units:
            base = units[known]
            size = abs(rounded(value * base))
            name = max(
                (name for name in units if units[name] <= size),
                key=lambda name: units[name],
                default=min(units, key=lambda name: units[name]) if size else known,
            )
            return Scale(base / units[name], unit_shown(name))
    return Scale(1.0, unit_shown(unit))


def unit_shown(unit: str) -> str:
    """A unit of a record, such as `us` or `x`, as it is shown."""
    return _SHOWN.get(unit, unit)


def amount(value: float | None, unit: str, significant: int = 3) -> str:
    """`267 µs`, `1.60 M/s`, `4.71 GB`; a dash if not known."""
    return NOTHING if value is None else scale(value, unit).text(value, significant)


def round_amount(value: float, unit: str) -> str:
    """The same for round numbers, such as 10 KB or 100 µs: without zeros at the end."""
    shown = scale(value, unit)
    return shown.with_suffix(_trimmed(shown.bare(value)))


def interval(
    low: float | None, high: float | None, unit: str, *, around: float, alone: bool = False
) -> str:
    """`251–290`, in the unit that `amount` shows `around` in, and with that unit if the interval
    stands `alone`; nothing if there is none."""
    if low is None or high is None:
        return ""
    shown = scale(around, unit)
    ends = f"{shown.bare(low)}–{shown.bare(high)}"
    return shown.with_suffix(ends) if alone else ends


def times(ratio: float, significant: int = 3) -> str:
    """`8.31×`."""
    return f"{digits(ratio, significant)}×"


def bound(value: float) -> str:
    """A bound on a ratio as it was written: `1/8`, `1.5`, `25`."""
    tenths = math.isclose(value * 10, round(value * 10))
    if 0 < value < 0.6 and not tenths and math.isclose(1 / value, round(1 / value), rel_tol=1e-6):
        return f"1/{round(1 / value)}"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def digits(value: float, significant: int = 3) -> str:
    """So many significant digits, never as a power of ten."""
    if not math.isfinite(value):
        return NOTHING
    value = rounded(value, significant)
    if not value:
        return "0"
    places = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def plain(value: float, significant: int = 3) -> str:
    """A number without a unit, and without zeros at the end: `8.3`, `1,230`."""
    return _trimmed(digits(value, significant))


def rounded(value: float, significant: int = 3) -> float:
    """To so many significant digits, for pictures, and for what is computed with as it is shown."""
    return float(f"{value:.{significant - 1}e}") if math.isfinite(value) else value


def digits_to_judge(value: float, bound: float, sense: Literal["<=", ">="]) -> int:
    """With how many digits, at least three, a reader finds the same of `value` and `bound`."""
    holds = operator.le if sense == "<=" else operator.ge
    judged = holds(value, bound)
    alike = (n for n in range(3, _ALL_DIGITS) if holds(rounded(value, n), bound) == judged)
    return next(alike, _ALL_DIGITS)


def _four(value: float) -> str:
    """Four digits at least, all of those before the point."""
    whole = len(str(int(abs(rounded(value, 4)))))
    return f"{value:,.{max(0, 4 - whole)}f}"


def _trimmed(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


_NAMED = 3
"""Things of a list that are named, at most."""


def named(things: Sequence[str]) -> str:
    """The first of them, and how many more there are: `a; b; c; 2 more`."""
    more = [f"{len(things) - _NAMED} more"] if len(things) > _NAMED else []
    return "; ".join([*things[:_NAMED], *more])

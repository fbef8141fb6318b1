"""Spans of calls, for programs that use OpenTelemetry.

Nothing is imported: a program without OpenTelemetry makes calls without spans.
"""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from gridrpc._native import Call, CallOptions

T = TypeVar("T")

_TRACE = "opentelemetry.trace"


def is_used() -> bool:
    """Whether the program has imported OpenTelemetry."""
    return _TRACE in sys.modules


def in_current_span(options: CallOptions) -> CallOptions:
    """Options of calls that belong to the current span of the program, if there is one."""
    span = sys.modules[_TRACE].get_current_span()
    return _with_span(span, options)


def submitted(
    function: object, options: CallOptions, submit: Callable[[CallOptions], Call[T]]
) -> Call[T]:
    """Submit a call in a span of kind CLIENT, which ends with the call."""
    span = _begin(function)
    try:
        call = submit(_with_span(span, options))
    except BaseException as error:
        _end(span, error)
        raise
    if span.is_recording():
        # Without a thread for callbacks the span is lost, and the call is not.
        with contextlib.suppress(RuntimeError):
            call.add_done_callback(lambda ended: _end_with(span, ended))
    return call


def called(function: object, options: CallOptions, call: Callable[[CallOptions], T]) -> T:
    """Make a call and wait for its result, in a span of kind CLIENT."""
    span = _begin(function)
    try:
        result = call(_with_span(span, options))
    except BaseException as error:
        _end(span, error)
        raise
    span.end()
    return result


def _begin(function: object) -> Any:
    trace = sys.modules[_TRACE]
    name = function if isinstance(function, str) else getattr(function, "__qualname__", "call")
    service, _, method = name.rpartition("/")
    attributes = {"rpc.system": "gridrpc", "rpc.method": method}
    if service:
        attributes["rpc.service"] = service
    tracer = trace.get_tracer("gridrpc")
    return tracer.start_span(name, kind=trace.SpanKind.CLIENT, attributes=attributes)


def _with_span(span: Any, options: CallOptions) -> CallOptions:
    context = span.get_span_context()
    if not context.is_valid:
        return options
    return options.with_trace(context.trace_id, context.span_id, context.trace_flags)


def _end_with(span: Any, call: Call[Any]) -> None:
    # Not later than the result arrived: this runs when a thread has time for it.
    arrived: float = call._profile()["retrieve"]
    late = time.monotonic() - arrived if arrived else 0.0
    _end(span, call.exception(), time.time_ns() - int(late * 1e9))


def _end(span: Any, error: BaseException | None, at: int | None = None) -> None:
    if error is not None:
        trace = sys.modules[_TRACE]
        span.record_exception(error)
        span.set_attribute("error.type", type(error).__qualname__)
        span.set_status(trace.Status(trace.StatusCode.ERROR, str(error)))
    span.end(end_time=at)

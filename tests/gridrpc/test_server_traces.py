"""Traces of calls, as a collector of OpenTelemetry receives them."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

import gridrpc
from grids import CompileIdl
from processes import until
from servers import Server, arguments, offering, serving

IDL = r"""
Module work;
Globals { #include <stdlib.h> }
Define add(IN long a, IN long b, OUT long r[1]) { *r = a + b; }
Define fail() { abort(); }
Define sum(IN long n, IN double x[n], OUT double r[1])
    { *r = 0; for (long i = 0; i < n; i++) *r += x[i]; }
"""

#: A message of the wire format.
TRACE = 22

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PARENT_TRACE, PARENT_SPAN = (bytes.fromhex(part) for part in PARENT.split("-")[1:3])


class Collector:
    """A receiver of the OpenTelemetry protocol over HTTP."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                is_right = self.headers["content-type"] == "application/x-protobuf"
                if is_right and self.path == "/v1/traces":
                    collector.requests.append(ExportTraceServiceRequest.FromString(body))
                self.send_response(200 if is_right else 415)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' * bool(tls)}://127.0.0.1:{self.http.server_port}"

    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def calls(self, count: int) -> list[Span]:
        """The spans of calls when there are so many, by time."""

        def found() -> list[Span]:
            return [span for span in self.spans() if span.kind == Span.SPAN_KIND_SERVER]

        assert until(lambda: len(found()) >= count)
        calls = sorted(found(), key=lambda span: span.start_time_unix_nano)
        assert len(calls) == count
        return calls

    def children(self, span: Span) -> dict[str, Span]:
        return {one.name: one for one in self.spans() if one.parent_span_id == span.span_id}


def values(attributes: Any) -> dict[str, str | int]:
    """Attributes as Python values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with receiving(Collector()) as receiver:
        yield receiver


@contextmanager
def receiving(receiver: Collector) -> Iterator[Collector]:
    thread = threading.Thread(target=receiver.http.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.http.shutdown()
        receiver.http.server_close()
        thread.join()


@pytest.fixture
def module(compile_idl: CompileIdl) -> Path:
    return compile_idl(IDL)


@contextmanager
def traced(folder: Path, module: Path, tables: str) -> Iterator[tuple[Server, gridrpc.Grid]]:
    with ExitStack() as stack:
        server = stack.enter_context(serving(folder, offering(module) + tables))
        yield server, stack.enter_context(server.client())


@pytest.fixture
def tracing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Configures OpenTelemetry in this program. The returned exporter has the spans that ended."""

    def tracing(sampler: Sampler = ALWAYS_ON) -> InMemorySpanExporter:
        provider, memory = TracerProvider(sampler=sampler), InMemorySpanExporter()
        provider.add_span_processor(SimpleSpanProcessor(memory))
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
        return memory

    return tracing


def client_span(memory: InMemorySpanExporter) -> ReadableSpan:
    """The span of the only call."""

    def found() -> list[ReadableSpan]:
        return [span for span in memory.get_finished_spans() if span.kind is trace.SpanKind.CLIENT]

    assert until(lambda: bool(found()))
    (span,) = found()
    return span


@pytest.mark.parametrize("waits", [False, True])
def test_the_client_span_is_the_parent(
    tmp_path: Path, module: Path, collector: Collector, tracing: Any, waits: bool
) -> None:
    memory = tracing()
    tables = f"[traces]\nendpoint = '{collector.url}'\nservice = 'centre'\n"
    with traced(tmp_path, module, tables) as (_, grid):
        add = grid.function("work/add")
        with trace.get_tracer("test").start_as_current_span("job") as job:
            assert (add(1, 2) if waits else add.submit(1, 2).result()) == 3
        client = client_span(memory)
        (call,) = collector.calls(1)
        children = collector.children(call)
    assert client.parent is not None
    assert client.context is not None
    assert client.parent.span_id == job.get_span_context().span_id
    assert call.name == client.name == "work/add"
    assert call.trace_id == client.context.trace_id.to_bytes(16)
    assert call.parent_span_id == client.context.span_id.to_bytes(8)
    assert set(children) == {"queue", "run"}
    queue, run = children["queue"], children["run"]
    assert {queue.trace_id, run.trace_id} == {call.trace_id}
    assert client.start_time is not None
    assert client.end_time is not None
    times = [
        client.start_time, call.start_time_unix_nano,
        queue.start_time_unix_nano, queue.end_time_unix_nano,
        run.start_time_unix_nano, run.end_time_unix_nano,
        call.end_time_unix_nano, client.end_time,
    ]  # fmt: skip
    assert times == sorted(times)
    attributes = values(call.attributes)
    assert attributes["rpc.system"] == "gridrpc"
    assert (attributes["rpc.service"], attributes["rpc.method"]) == ("work", "add")
    assert attributes["gridrpc.outcome"] == "ok"
    assert attributes["enduser.id"]
    assert attributes["gridrpc.bytes_in"]
    assert attributes["gridrpc.bytes_out"]
    resource = values(collector.requests[0].resource_spans[0].resource.attributes)
    assert resource["service.name"] == "centre"


def test_a_collector_with_tls_is_checked(tmp_path: Path, module: Path) -> None:
    certificate, key = tmp_path / "collector.pem", tmp_path / "collector.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=collector",
         "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True, capture_output=True,
    )  # fmt: skip
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with receiving(Collector(tls)) as collector:
        tables = f"[traces]\nendpoint = '{collector.url}'\n"
        trusted = f"{tables}authority = '{certificate}'\n"
        for name, known in [("trusting", trusted), ("strange", tables)]:
            folder = tmp_path / name
            folder.mkdir()
            with traced(folder, module, known) as (server, grid):
                assert grid.submit("work/add", 1, 2).result() == 3
                if name == "trusting":
                    collector.calls(1)
                else:
                    assert server.says("UnknownIssuer")
    assert len(collector.requests) == 1


def test_a_failure_is_an_error_of_both_spans(
    tmp_path: Path, module: Path, collector: Collector, tracing: Any
) -> None:
    memory = tracing()
    with traced(tmp_path, module, f"[traces]\nendpoint = '{collector.url}'\n") as (_, grid):
        with pytest.raises(gridrpc.WorkerLost):
            grid.submit("work/fail").result()
        (call,) = collector.calls(1)
        client = client_span(memory)
    assert call.status.code == Status.STATUS_CODE_ERROR
    assert values(call.attributes)["error.type"] == call.status.message == "WorkerLost"
    assert client.status.status_code is trace.StatusCode.ERROR


def test_large_arguments_have_the_span_of_their_call(
    tmp_path: Path, module: Path, collector: Collector, tracing: Any
) -> None:
    tracing()
    with traced(tmp_path, module, f"[traces]\nendpoint = '{collector.url}'\n") as (_, grid):
        spans = []
        for size in (1 << 20, 1, 1 << 20):
            with trace.get_tracer("test").start_as_current_span("job") as job:
                spans.append(job.get_span_context())
                assert grid.submit("work/sum", np.ones(size)).result() == size
        calls = collector.calls(3)
    assert [call.trace_id for call in calls] == [one.trace_id.to_bytes(16) for one in spans]


def test_calls_of_a_map_belong_to_the_current_span(
    tmp_path: Path, module: Path, collector: Collector, tracing: Any
) -> None:
    tracing()
    with traced(tmp_path, module, f"[traces]\nendpoint = '{collector.url}'\n") as (_, grid):
        with trace.get_tracer("test").start_as_current_span("job") as job:
            sums = grid.map("work/add", range(3), range(3), chunk=1)
            assert list(sums) == [0, 2, 4]
        parents = {call.parent_span_id for call in collector.calls(3)}
    assert parents == {job.get_span_context().span_id.to_bytes(8)}


def test_a_span_of_another_program_is_passed_on(
    tmp_path: Path, module: Path, collector: Collector
) -> None:
    context = trace.SpanContext(
        int.from_bytes(PARENT_TRACE), int.from_bytes(PARENT_SPAN), is_remote=True,
        trace_flags=trace.TraceFlags(1),
    )  # fmt: skip
    with traced(tmp_path, module, f"[traces]\nendpoint = '{collector.url}'\n") as (_, grid):
        with trace.use_span(trace.NonRecordingSpan(context)):
            assert grid.submit("work/add", 1, 2).result() == 3
        (call,) = collector.calls(1)
    assert (call.trace_id, call.parent_span_id) == (PARENT_TRACE, PARENT_SPAN)


def test_the_audit_log_names_the_span_of_each_call(tmp_path: Path, module: Path) -> None:
    # Without an export of traces as well.
    with traced(tmp_path, module, "") as (server, grid):
        names = []
        for number in (1, 2):
            context = trace.SpanContext(int.from_bytes(PARENT_TRACE), number, is_remote=False)
            with trace.use_span(trace.NonRecordingSpan(context)):
                assert grid.submit("work/add", number, 2).result() == number + 2
            names.append(f"00-{PARENT_TRACE.hex()}-{number:016x}-00")
        lost = trace.NonRecordingSpan(trace.SpanContext(1, 3, is_remote=False))
        with trace.use_span(lost), pytest.raises(gridrpc.WorkerLost):
            grid.submit("work/fail").result()
        assert grid.submit("work/add", 3, 2).result() == 5
        assert until(lambda: len(server.audit("end")) == 4)
        named = [(one["outcome"] == "ok", one.get("trace", "")) for one in server.audit("end")]
    assert named == [
        (True, names[0]), (True, names[1]), (False, f"00-{1:032x}-{3:016x}-00"), (True, ""),
    ]  # fmt: skip


def test_a_trace_that_the_client_does_not_record_is_not_exported(
    tmp_path: Path, module: Path, collector: Collector, tracing: Any
) -> None:
    tables = f"[traces]\nendpoint = '{collector.url}'\n"
    with traced(tmp_path, module, tables) as (server, grid):
        tracing(ALWAYS_OFF)
        with trace.get_tracer("test").start_as_current_span("job"):
            assert grid.submit("work/add", 1, 2).result() == 3
        memory = tracing()
        assert grid.submit("work/add", 3, 4).result() == 7
        (call,) = collector.calls(1)
        context = client_span(memory).context
        assert context is not None
        assert call.trace_id == context.trace_id.to_bytes(16)
        server.stop()
        assert len(collector.spans()) == 3


def test_the_ratio_holds_for_traces_that_begin_here(
    tmp_path: Path, module: Path, collector: Collector, tracing: Any
) -> None:
    tables = f"[traces]\nendpoint = '{collector.url}'\nratio = 0\n"
    with traced(tmp_path, module, tables) as (_, grid):
        assert grid.submit("work/add", 1, 2).result() == 3
        tracing()
        assert grid.submit("work/add", 3, 4).result() == 7
        (call,) = collector.calls(1)
    assert call.parent_span_id


def test_requests_over_http_have_their_parents(
    tmp_path: Path, module: Path, collector: Collector
) -> None:
    tables = f"[traces]\nendpoint = '{collector.url}'\n[http]\nport = 0\nanonymous = 'web'\n"
    with serving(tmp_path, offering(module) + tables) as server:
        line = next(line for line in server.lines() if "http://" in line)
        port = int(line.split("http://")[1].split()[0].rpartition(":")[2].strip("/"))
        inputs = [
            {"name": name, "shape": [1], "datatype": "INT64", "data": [1]} for name in ("a", "b")
        ]
        body = json.dumps({"inputs": inputs})
        for headers in ({"traceparent": PARENT}, {"traceparent": "nonsense"}):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("POST", "/v2/models/work/add/infer", body, headers)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            connection.close()
        client = triton_grpc.InferenceServerClient(f"127.0.0.1:{port}")
        tensors = []
        for name in ("a", "b"):
            tensor = triton_grpc.InferInput(name, [1], "INT64")
            tensor.set_data_from_numpy(np.ones(1, np.int64))
            tensors.append(tensor)
        client.infer("work/add", tensors, headers={"traceparent": PARENT})
        client.close()
        rest, other, grpc = collector.calls(3)
    for call in (rest, grpc):
        assert (call.trace_id, call.parent_span_id) == (PARENT_TRACE, PARENT_SPAN)
        assert values(call.attributes)["enduser.id"] == "web"
    assert not other.parent_span_id


def test_a_span_of_the_wire_holds_for_the_next_call(
    tmp_path: Path, module: Path, collector: Collector
) -> None:
    tables = f"[traces]\nendpoint = '{collector.url}'\n"
    with serving(tmp_path, offering(module) + tables) as server, server.connect() as wire:
        wire.serve()
        wire.name(1, "work/add")
        context = PARENT_TRACE + PARENT_SPAN + b"\1"
        for number, announced in ((1, 1), (2, 3), (3, None)):
            if announced:
                wire.send(TRACE, struct.pack("<Q", announced) + context)
            wire.call(number, 1, *arguments(1, 2, None))
            assert wire.receive()[0]
        parents = [call.parent_span_id for call in collector.calls(3)]
        assert parents == [PARENT_SPAN, b"", b""]
        # An id that the standard forbids.
        wire.send(TRACE, struct.pack("<Q", 4) + bytes(16) + PARENT_SPAN + b"\1")
        assert wire.has_ended()


def test_a_collector_that_is_away_delays_no_call(tmp_path: Path, module: Path) -> None:
    with socket.socket() as taken:
        # Nothing listens there.
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with traced(tmp_path, module, f"[traces]\nendpoint = '{endpoint}'\n") as (server, grid):
            assert grid.submit("work/add", 1, 2).result() == 3
            assert server.says("cannot export traces")
            assert until(lambda: server.state_of("spans") == {"exported": 0, "dropped": 3})
            assert grid.submit("work/add", 3, 4).result() == 7
            assert server.stop() == 0


def test_there_are_no_traces_by_default(
    tmp_path: Path, module: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    with traced(tmp_path, module, "") as (server, grid):
        assert grid.submit("work/add", 1, 2).result() == 3
        assert server.state_of("spans") is None
        server.stop()
    assert collector.requests == []


def test_the_environment_names_the_collector(
    tmp_path: Path, module: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "by environment")
    with traced(tmp_path, module, "[traces]\n") as (server, grid):
        assert grid.submit("work/add", 1, 2).result() == 3
        # Spans in the queue are exported before it ends.
        server.stop()
        collector.calls(1)
    resource = values(collector.requests[0].resource_spans[0].resource.attributes)
    assert resource["service.name"] == "by environment"

"""The Open Inference Protocol: clients of others call functions of compiled modules."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tritonclient.grpc import service_pb2 as messages
from tritonclient.grpc import service_pb2_grpc as service
from tritonclient.utils import InferenceServerException

from grids import PROGRAM, opened

#: With the calling convention of Fortran: this needs no compiler for it.
FORTRAN = """
void multiply_(const int *n, const int *m, const int *k, const double *a, const double *b,
               double *c)
{
    for (int i = 0; i < *n; i++)
        for (int j = 0; j < *m; j++) {
            c[i + j * *n] = 0;
            for (int l = 0; l < *k; l++)
                c[i + j * *n] += a[i + l * *n] * b[l + j * *k];
        }
}

void bump_(const int *n, const int *m, double *a)
{
    for (int i = 0; i < *n; i++)
        for (int j = 0; j < *m; j++)
            a[i + j * *n] += 10 * i + j;
}
"""

IDL = r"""
Module served;
Globals {
    #include <complex.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
}
Define multiply(IN int n, IN int m, IN int k, IN double a[n][k], IN double b[k][m],
                OUT double c[n][m]) "C = A B" Required "parts.o"
    Calls "Fortran" multiply(n, m, k, a, b, c);
Define bump(IN int n, IN int m, INOUT double a[n][m]) Calls "Fortran" bump(n, m, a);
Define rows(IN int n, IN int m, IN double a[n][m], OUT double sums[n])
{
    memset(sums, 0, n * sizeof *sums);
    for (int i = 0; i < n * m; i++) sums[i / m] += a[i];
}
Define scale(IN int n, IN double factor, INOUT double x[n])
    { for (int i = 0; i < n; i++) x[i] *= factor; }
Define safe(IN int n, INOUT double x[n]) Idempotent
    { for (int i = 0; i < n; i++) x[i] += 1; }
Define conjugate(IN int n, IN dcomplex z[n], IN scomplex w, OUT dcomplex r[n], OUT scomplex v[1])
    { for (int i = 0; i < n; i++) r[i] = conj(z[i]); v[0] = conjf(w); }
Define types(IN int8 a[2], IN int16 b[2], IN int32 c[2], IN int64 d[2], IN uint8 e[2],
             IN uint16 f[2], IN uint32 g[2], IN uint64 h[2], IN float i[2], IN double j[2],
             OUT int8 ra[2], OUT int16 rb[2], OUT int32 rc[2], OUT int64 rd[2], OUT uint8 re[2],
             OUT uint16 rf[2], OUT uint32 rg[2], OUT uint64 rh[2], OUT float ri[2],
             OUT double rj[2])
{
    memcpy(ra, a, 2); memcpy(rb, b, 4); memcpy(rc, c, 8); memcpy(rd, d, 16); memcpy(re, e, 2);
    memcpy(rf, f, 4); memcpy(rg, g, 8); memcpy(rh, h, 16); memcpy(ri, i, 8); memcpy(rj, j, 16);
}
Define joined(IN int n, IN string s[n], OUT string r, OUT int count[1])
{
    *r = calloc(1, 100000);
    *count = n;
    for (int i = 0; i < n; i++) strcat(strcat(*r, s[i]), ";");
}
Define reversed(IN int n, INOUT string s[n])
{
    for (int i = 0; i < n / 2; i++) { char *t = s[i]; s[i] = s[n - 1 - i]; s[n - 1 - i] = t; }
}
Define code(IN char c, OUT int r[1]) { *r = c; }
Define extended(IN filename f, OUT filename r)
{
    FILE *in = fopen(f, "r"), *out = fopen(r, "w");
    for (int c; (c = fgetc(in)) != EOF;) fputc(c, out);
    fputs("more", out); fclose(in); fclose(out);
}
Define echo(IN long n, IN uint8 data[n], OUT uint8 same[n]) { memcpy(same, data, n); }
Define nap(IN double seconds, OUT int pid[1]) { *pid = getpid(); usleep(seconds * 1e6); }
Define roots(IN int n, IN double x[n], OUT double r[n])
    { for (int i = 0; i < n; i++) r[i] = x[i] / 0.0; }
Define exits(IN int status) { exit(status); }
Define killed(IN int signal) { fprintf(stderr, "last words\n"); raise(signal); }
Define zeros(IN long n, OUT uint8 x[n]) { memset(x, 0, n); }
Define scratch(IN long n, WORK double w[n], OUT int r[1]) { w[0] = *r = 1; }
Define called(IN double x, f(IN double x, OUT double y[1])) { double y; f(x, &y); }
"""


@dataclass
class Server:
    """A running server."""

    process: subprocess.Popen[str]
    address: str
    config: Path

    def run(self, *arguments: str) -> str:
        """Output of `gridrpc server`."""
        command = [PROGRAM, "server", "--config", self.config, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.run("status", "--json"))
        return status

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer."""
        connection = http.client.HTTPConnection(self.address, timeout=30)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, content

    def infer(self, function: str, body: Any, **headers: str) -> dict[str, Any]:
        status, _, content = self.request(
            "POST", f"/v2/models/served/{function}/infer", body, headers
        )
        assert status == 200, content
        return {output["name"]: output for output in json.loads(content)["outputs"]}

    def error(self, function: str, body: Any, **headers: str) -> tuple[int, str]:
        path = f"/v2/models/served/{function}/infer"
        status, _, content = self.request("POST", path, body, headers)
        return status, json.loads(content)["error"]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    (folder / "parts.c").write_text(FORTRAN)
    (folder / "served.idl").write_text(IDL)
    subprocess.run(["cc", "-fPIC", "-c", "parts.c"], cwd=folder, check=True)
    subprocess.run([PROGRAM, "compile", "served.idl"], cwd=folder, check=True)
    return folder / "served.so"


Serve = Callable[..., Any]

#: A request whose body is yet to come.
HEAD = "POST /v2/models/served/nap/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"


@pytest.fixture(scope="module")
def serve(module: Path, tmp_path_factory: pytest.TempPathFactory) -> Serve:
    """Starts servers; `http` are lines of their table [http], `tables` further ones."""

    @contextmanager
    def serve(
        *http: str, anonymous: bool = True, workers: int = 2, tls: str = "", tables: str = ""
    ) -> Iterator[Server]:
        folder = tmp_path_factory.mktemp("server")
        config = folder / "server.toml"
        lines = ["port = 0", *http, *(['anonymous = "guest"'] if anonymous else [])]
        if tls:
            tables += f"\n[tls]\n{tls}"
        network = "port = 0" if tls else ""
        config.write_text(
            f"[server]\nstate = '{folder}/state'\n{network}\n[workers]\ncount = {workers}\n"
            f"[modules]\nfiles = ['{module}']\n[http]\n" + "\n".join(lines) + f"\n{tables}\n"
        )
        command = [PROGRAM, "server", "start", "--config", config]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr
        found = None
        while not found and (line := process.stderr.readline()):
            found = re.search(r"it listens at .* and https?://(\S+)", line)
        # It must not block the server.
        reader = threading.Thread(target=process.stderr.read)
        reader.start()
        try:
            assert found, "the server has not started"
            server = Server(process, found[1], config)
            wait_until_ready(server)
            yield server
        finally:
            process.terminate()
            assert process.wait(30) == 0
            reader.join()

    return serve


def wait_until_ready(server: Server) -> None:
    until = time.monotonic() + 30
    while not server.status()["pools"][0]["ready"]:
        assert time.monotonic() < until, "no worker is ready"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def server(serve: Serve) -> Iterator[Server]:
    with serve() as server:
        yield server


def tensor(name: str, datatype: str, shape: list[int], data: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data, **more}


def triton(server: Server, protocol: str) -> Any:
    if protocol == "http":
        return triton_http.InferenceServerClient(server.address, network_timeout=60)
    return triton_grpc.InferenceServerClient(server.address)


def call(
    server: Server, protocol: str, function: str, inputs: dict[str, Any], binary: bool = True
) -> Callable[[str], Any]:
    """Calls by tritonclient; gives the outputs by name."""
    kinds = {np.dtype(np.object_): "BYTES"}
    package: Any = triton_http if protocol == "http" else triton_grpc
    tensors = []
    for name, value in inputs.items():
        array = np.asarray(value)
        names = {"f": "FP", "i": "INT", "u": "UINT"}
        kind = kinds.get(array.dtype) or f"{names[array.dtype.kind]}{8 * array.dtype.itemsize}"
        one = package.InferInput(name, list(array.shape), kind)
        if protocol == "http":
            one.set_data_from_numpy(array, binary_data=binary)
        else:
            one.set_data_from_numpy(array)
        tensors.append(one)
    with triton(server, protocol) as client:
        if protocol == "http" and not binary:
            metadata = client.get_model_metadata(function)
            outputs = [
                package.InferRequestedOutput(output["name"], binary_data=False)
                for output in metadata["outputs"]
            ]
            return client.infer(function, tensors, outputs=outputs).as_numpy
        return client.infer(function, tensors).as_numpy


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

EACH_FORM = pytest.mark.parametrize(
    ("protocol", "binary"), [("http", True), ("http", False), ("grpc", True)]
)
EACH_PROTOCOL = pytest.mark.parametrize("protocol", ["http", "grpc"])


# ---- Health and metadata


@EACH_PROTOCOL
def test_health_and_metadata(server: Server, protocol: str) -> None:
    with triton(server, protocol) as client:
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("served/scale")
        assert client.is_model_ready("served.scale", "1")
        assert not client.is_model_ready("served/scale", "2")
        assert not client.is_model_ready("served/nothing")
        more = {"as_json": True} if protocol == "grpc" else {}
        assert client.get_server_metadata(**more)["name"] == socket.gethostname()
        metadata = client.get_model_metadata("served/multiply", **more)
        inputs = [
            (one["name"], one["datatype"], list(map(int, one["shape"])))
            for one in metadata["inputs"]
        ]
        assert inputs == [
            ("n", "INT32", [1]),
            ("m", "INT32", [1]),
            ("k", "INT32", [1]),
            ("a", "FP64", [-1, -1]),
            ("b", "FP64", [-1, -1]),
        ]
        assert [output["name"] for output in metadata["outputs"]] == ["c"]
        index = client.get_model_repository_index(**more)
        models = index["models"] if protocol == "grpc" else index
        names = [model["name"] for model in models]
        assert "served/multiply" in names
        assert "served/called" not in names, "functions with callbacks cannot be called"


def test_metadata_describe_what_the_protocol_has_no_field_for(server: Server) -> None:
    status, _, content = server.request("GET", "/v2/models/served%2Fmultiply")
    metadata = json.loads(content)
    assert status == 200
    assert metadata["parameters"]["description"] == "C = A B"
    inputs = {one["name"]: one["parameters"] for one in metadata["inputs"]}
    assert inputs["a"]["order"] == "F"
    assert inputs["a"]["dimensions"] == ["n", "k"]
    assert inputs["n"]["optional"]
    assert not inputs["a"]["optional"]
    _, _, content = server.request("GET", "/v2/models/served.conjugate/versions/1")
    complexes = {one["name"]: one for one in json.loads(content)["inputs"]}
    assert complexes["z"]["shape"] == [-1, 2]
    assert complexes["z"]["parameters"]["complex"]
    assert complexes["w"]["shape"] == [2]


# ---- Calls


@EACH_FORM
@pytest.mark.parametrize("size", [3, 200])
def test_fortran_has_the_indices_of_the_tensors(
    server: Server, protocol: str, binary: bool, size: int
) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((size, 4)), rng.random((4, 5))
    c = call(server, protocol, "served/multiply", {"a": a, "b": b}, binary)("c")
    np.testing.assert_allclose(c, a @ b)
    changed = call(server, protocol, "served/bump", {"a": a}, binary)("a")
    np.testing.assert_allclose(changed, a + 10 * np.arange(size)[:, None] + np.arange(4))
    sums = call(server, protocol, "served/rows", {"a": a}, binary)("sums")
    np.testing.assert_allclose(sums, a.sum(axis=1))


def test_results_agree_with_the_python_api(server: Server, module: Path) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4) ** 2
    with opened(workers=1, worker="native", modules=[module]) as grid:
        ours = [
            grid.function("served/multiply")(np.asfortranarray(a), np.asfortranarray(b)),
            grid.function("served/rows")(a),
        ]
    theirs = [
        call(server, "http", "served/multiply", {"a": a, "b": b})("c"),
        call(server, "http", "served/rows", {"a": a})("sums"),
    ]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_elements_in_column_order_are_not_transposed(server: Server) -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    inputs = [
        tensor("a", "FP64", [2, 3], a.ravel("F").tolist(), parameters={"order": "F"}),
        tensor("b", "FP64", [3, 4], b.ravel("C").tolist()),
    ]
    by_rows = server.infer("multiply", {"inputs": inputs})["c"]
    assert by_rows["data"] == (a @ b).ravel("C").tolist()
    body = {"inputs": inputs, "outputs": [{"name": "c", "parameters": {"order": "F"}}]}
    by_columns = server.infer("multiply", body)["c"]
    assert by_columns["data"] == (a @ b).ravel("F").tolist()
    assert by_columns["shape"] == [2, 4]
    # A function in C has its arrays in the other order.
    columns = tensor("a", "FP64", [2, 3], a.ravel("F").tolist(), parameters={"order": "F"})
    assert server.infer("rows", {"inputs": [columns]})["sums"]["data"] == [3, 12]
    # The order of all outputs.
    body = {"inputs": inputs, "parameters": {"order": "F"}}
    assert server.infer("multiply", body)["c"]["data"] == (a @ b).ravel("F").tolist()


@EACH_FORM
def test_every_type_comes_back(server: Server, protocol: str, binary: bool) -> None:
    inputs: dict[str, Any] = {}
    for name, kind in zip("abcdefgh", INTEGERS, strict=True):
        limits = np.iinfo(kind)
        inputs[name] = np.array([limits.min, limits.max], kind)
    inputs["i"] = np.array([0.1, -3e38], "float32")
    inputs["j"] = np.array([0.1, 1e300])
    result = call(server, protocol, "served/types", inputs, binary)
    for name, array in inputs.items():
        back = result(f"r{name}")
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)


@EACH_FORM
@pytest.mark.parametrize("count", [0, 3, 100_000])
@pytest.mark.parametrize("function", ["scale", "safe"])
def test_arrays_that_are_changed_come_back(
    server: Server, protocol: str, binary: bool, count: int, function: str
) -> None:
    x = np.arange(count, dtype=float)
    inputs = {"x": x}
    if function == "scale":
        inputs["factor"] = np.array([2.0])
    back = call(server, protocol, f"served/{function}", inputs, binary)("x")
    np.testing.assert_array_equal(back, 2 * x if function == "scale" else x + 1)


@EACH_FORM
def test_complex_numbers_have_a_last_dimension_of_two(
    server: Server, protocol: str, binary: bool
) -> None:
    z = np.array([[1, 2], [3, -4], [0.5, 0]], float)
    inputs = {"z": z, "w": np.array([1, 5], "float32")}
    result = call(server, protocol, "served/conjugate", inputs, binary)
    np.testing.assert_array_equal(result("r"), z * [1, -1])
    np.testing.assert_array_equal(result("v"), [[1, -5]])


@EACH_FORM
def test_strings(server: Server, protocol: str, binary: bool) -> None:
    words = np.array(["one", "", "zwölf"], object)
    inputs = {"n": np.array([3], "int32"), "s": words}
    result = call(server, protocol, "served/joined", inputs, binary)
    assert result("r")[0] in ("one;;zwölf;", "one;;zwölf;".encode())
    assert result("count")[0] == 3
    back = call(server, protocol, "served/reversed", inputs, binary)("s")
    decoded = [word.decode() if isinstance(word, bytes) else word for word in back]
    assert decoded == ["zwölf", "", "one"]


@EACH_PROTOCOL
def test_files_travel_by_content(server: Server, protocol: str) -> None:
    inputs = {"f": np.array([b"/etc/hostname\0\xff"], object)}
    back = call(server, protocol, "served/extended", inputs)("r")
    assert back[0] == b"/etc/hostname\0\xffmore"


def test_a_character_is_a_number_or_a_string(server: Server) -> None:
    for datatype, data in [("BYTES", "N"), ("INT8", 78), ("UINT8", 78)]:
        result = server.infer("code", {"inputs": [tensor("c", datatype, [1], [data])]})
        assert result["r"]["data"] == [78]
    status, message = server.error("code", {"inputs": [tensor("c", "BYTES", [1], ["NO"])]})
    assert (status, "one character" in message) == (400, True)


@EACH_PROTOCOL
def test_large_data(server: Server, protocol: str) -> None:
    data = np.random.default_rng(1).integers(0, 256, 20_000_000, "uint8")
    same = call(server, protocol, "served/echo", {"data": data})("same")
    np.testing.assert_array_equal(same, data)


def test_typed_contents_in_grpc(server: Server) -> None:
    request = messages.ModelInferRequest(model_name="served/joined", id="7")
    request.inputs.add(name="n", datatype="INT32", shape=[1]).contents.int_contents.append(2)
    words = request.inputs.add(name="s", datatype="BYTES", shape=[2])
    words.contents.bytes_contents.extend([b"a", b"b"])
    request.outputs.add(name="r")
    with grpc.insecure_channel(server.address) as channel:
        answer = service.GRPCInferenceServiceStub(channel).ModelInfer(request)
    assert [(output.name, list(output.shape)) for output in answer.outputs] == [("r", [1])]
    assert answer.raw_output_contents[0] == struct.pack("<I", 4) + b"a;b;"
    assert (answer.id, answer.model_name) == ("7", "served/joined")


def test_curl(server: Server) -> None:
    body = {
        "id": "a",
        "inputs": [tensor("x", "FP64", [2], [1, 2]), tensor("factor", "FP64", [], 3)],
    }
    url = f"http://{server.address}/v2/models/served/scale/infer"
    command = ["curl", "--silent", "--fail", "--compressed", "-d", json.dumps(body), url]
    ran = subprocess.run(command, capture_output=True, check=True)
    assert json.loads(ran.stdout) == {
        "model_name": "served/scale",
        "model_version": "1",
        "id": "a",
        "outputs": [{"name": "x", "datatype": "FP64", "shape": [2], "data": [3.0, 6.0]}],
    }


def test_binary_data_by_http_client(server: Server) -> None:
    head = json.dumps(
        {
            "inputs": [
                {
                    "name": "x",
                    "shape": [2],
                    "datatype": "FP64",
                    "parameters": {"binary_data_size": 16},
                },
                tensor("factor", "FP64", [1], [2]),
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    body = head + struct.pack("<2d", 1, 2)
    headers = {"Inference-Header-Content-Length": str(len(head))}
    path = "/v2/models/served/scale/infer"
    status, headers, content = server.request("POST", path, body, headers)
    assert status == 200, content
    length = int(headers["inference-header-content-length"])
    assert json.loads(content[:length])["outputs"][0]["parameters"] == {"binary_data_size": 16}
    assert content[length:] == struct.pack("<2d", 2, 4)
    assert headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
def test_compressed_bodies(server: Server, algorithm: str) -> None:
    x = triton_http.InferInput("x", [1000], "FP64")
    x.set_data_from_numpy(np.ones(1000))
    factor = triton_http.InferInput("factor", [1], "FP64")
    factor.set_data_from_numpy(np.array([3.0]))
    with triton(server, "http") as client:
        result = client.infer(
            "served/scale",
            [x, factor],
            request_compression_algorithm=algorithm,
            response_compression_algorithm=algorithm,
        )
    np.testing.assert_array_equal(result.as_numpy("x"), np.full(1000, 3.0))


def test_numbers_that_json_lacks_are_null(server: Server) -> None:
    result = server.infer("roots", {"inputs": [tensor("x", "FP64", [2], [1, 0])]})
    assert result["r"]["data"] == [None, None]


# ---- Errors

X = tensor("x", "FP64", [2], [1, 2])
FACTOR = tensor("factor", "FP64", [1], [2])


@pytest.mark.parametrize(
    ("function", "inputs", "message"),
    [
        ("scale", [X], "served/scale: argument `factor` is missing"),
        ("scale", [FACTOR], "served/scale: argument `n` is missing"),
        (
            "scale",
            [X, FACTOR, tensor("y", "FP64", [1], [2])],
            "argument `y` is unknown; its inputs are: n, factor, x",
        ),
        ("scale", [X, X, FACTOR], "argument `x` is given twice"),
        (
            "scale",
            [tensor("x", "FP32", [2], [1, 2]), FACTOR],
            "argument `x` has datatype FP32, but has to be FP64",
        ),
        (
            "scale",
            [X, FACTOR, tensor("n", "INT32", [1], [3])],
            "argument `x` has 2 elements, but has to have 3",
        ),
        (
            "scale",
            [tensor("x", "FP64", [1, 2], [1, 2]), FACTOR],
            "argument `x` has shape [1, 2], but has to have 1 dimension",
        ),
        ("scale", [X, tensor("factor", "FP64", [2], [2, 3])], "argument `factor` has shape [2]"),
        (
            "scale",
            [X, FACTOR, tensor("n", "INT32", [1], [2**31])],
            "input `n` has invalid data for INT32",
        ),
        ("scale", [X, FACTOR, tensor("n", "INT32", [1], [-1])], "`x` is -1, below 0"),
        ("rows", [tensor("sums", "FP64", [1], [1])], "argument `sums` is not an input"),
        (
            "rows",
            [tensor("n", "INT32", [1], [3]), tensor("a", "FP64", [2, 3], [0] * 6)],
            "argument `a` has shape [2, 3], but has to have [3, 3]",
        ),
        ("conjugate", [tensor("z", "FP64", [3], [0] * 3)], "argument `z` is complex"),
        (
            "joined",
            [tensor("n", "INT32", [1], [2]), tensor("s", "BYTES", [1], ["a"])],
            "argument `s` has 1 strings, but needs 2",
        ),
        (
            "joined",
            [tensor("n", "INT32", [1], [1]), tensor("s", "BYTES", [1], ["a\0b"])],
            "zero byte",
        ),
        ("extended", [], "argument `f` is missing"),
    ],
)
def test_wrong_inputs_are_named(
    server: Server, function: str, inputs: list[Any], message: str
) -> None:
    status, text = server.error(function, {"inputs": inputs})
    assert status == 400
    assert message in text


def test_wrong_requests(server: Server) -> None:
    scale = {"inputs": [X, FACTOR]}
    for outputs, message in [
        ([{"name": "y"}], "argument `y` is not an output"),
        ([{"name": "factor"}], "argument `factor` is not an output"),
        ([{"name": "x"}, {"name": "x"}], "argument `x` is requested twice"),
    ]:
        status, text = server.error("scale", {**scale, "outputs": outputs})
        assert (status, message in text) == (400, True), text
    assert server.error("nothing", scale)[0] == 404
    assert server.error("called", scale)[0] in (404, 501)
    for method, path, status in [
        ("GET", "/nothing", 404),
        ("GET", "/v2/models/served/scale/infer", 405),
        ("POST", "/v2/models/served/scale", 405),
        ("GET", "/v2/models/..%2F..%2Fetc/passwd", 400),
        ("POST", "/v2/models/served/scale/versions/7/infer", 404),
    ]:
        got, _, content = server.request(method, path, {})
        assert got == status, (path, content)
        assert json.loads(content)["error"]


def test_sizes_do_not_make_the_server_allocate(serve: Serve) -> None:
    with serve('most_request_bytes = "1 MB"', 'most_result_bytes = "1 MB"') as server:
        status, text = server.error("echo", {"inputs": [tensor("n", "INT64", [1], [2**62])]})
        assert status == 400
        # A shape that only claims to have elements.
        huge = tensor("data", "UINT8", [2**62], [1])
        status, text = server.error("echo", {"inputs": [huge]})
        assert (status, "needs 4611686018427387904" in text) == (400, True), text
        status, text = server.error("nap", b" " * 1_000_001)
        assert (status, "1000000 bytes" in text) == (413, True)
        # So much is declared that it is not even sent.
        with socket.create_connection(server.address.split(":")) as other:
            other.sendall(HEAD.replace("100", "99999999999").encode())
            assert b" 413 " in other.recv(100)
        bomb = gzip.compress(b" " * 5_000_000)
        assert len(bomb) < 10_000
        status, text = server.error("nap", bomb, **{"Content-Encoding": "gzip"})
        assert status == 413
        # Chunks have no declared length.
        connection = http.client.HTTPConnection(server.address, timeout=30)
        chunks = (b" " * 100_000 for _ in range(20))
        path, headers = "/v2/models/served/nap/infer", {"Transfer-Encoding": "chunked"}
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request("POST", path, chunks, headers, encode_chunked=True)
        assert connection.getresponse().status == 413
        with pytest.raises(InferenceServerException, match="message length too large"):
            call(server, "grpc", "served/echo", {"data": np.zeros(2_000_000, "uint8")})


def test_results_are_bounded_before_they_are_allocated(serve: Serve) -> None:
    with serve('most_request_bytes = "1 MB"', 'most_result_bytes = "1 MB"') as server:
        body = {"inputs": [tensor("n", "INT64", [1], [10**12])]}
        for function, size in [("zeros", 10**12), ("scratch", 8 * 10**12 + 4)]:
            status, text = server.error(function, body)
            assert (status, f"have {size} bytes, above" in text) == (400, True), text
        largest = {"inputs": [tensor("n", "INT64", [1], [2**63 - 1])]}
        assert server.error("zeros", largest)[0] == 400
        body = {"inputs": [tensor("n", "INT64", [1], [100_000])]}
        assert server.infer("zeros", body)["x"]["shape"] == [100_000]


@EACH_PROTOCOL
def test_a_worker_that_dies_is_reported_and_replaced(server: Server, protocol: str) -> None:
    with pytest.raises(InferenceServerException, match="signal 9") as raised:
        call(server, protocol, "served/killed", {"signal": np.array([9], "int32")})
    assert "last words" in str(raised.value)
    with pytest.raises(InferenceServerException, match="ended its process with status 3"):
        call(server, protocol, "served/exits", {"status": np.array([3], "int32")})
    result = call(server, protocol, "served/nap", {"seconds": np.array([0.0])})
    assert result("pid")[0] > 0


def test_codes_of_grpc(server: Server) -> None:
    def code(function: str, **inputs: Any) -> str:
        with pytest.raises(InferenceServerException) as raised:
            call(server, "grpc", function, inputs)
        return str(raised.value.status())

    assert code("served/nothing") == "StatusCode.NOT_FOUND"
    assert code("nothing") == "StatusCode.INVALID_ARGUMENT"
    assert code("served/scale", x=np.ones(2)) == "StatusCode.INVALID_ARGUMENT"


# ---- Time, load and ends


def nap(server: Server, seconds: float, token: str | None = None) -> int:
    body = {"inputs": [tensor("seconds", "FP64", [1], [seconds])]}
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return server.request("POST", "/v2/models/served/nap/infer", body, headers)[0]


@EACH_PROTOCOL
def test_time_limits(server: Server, protocol: str) -> None:
    start = time.monotonic()
    package: Any = triton_http if protocol == "http" else triton_grpc
    seconds = package.InferInput("seconds", [1], "FP64")
    seconds.set_data_from_numpy(np.array([30.0]))
    with (
        triton(server, protocol) as client,
        pytest.raises(InferenceServerException, match="time limit"),
    ):
        client.infer("served/nap", [seconds], timeout=100_000)
    assert time.monotonic() - start < 10


def test_a_caller_that_goes_away_cancels_its_call(serve: Serve) -> None:
    with serve(workers=1) as server:
        body = json.dumps({"inputs": [tensor("seconds", "FP64", [1], [60])]})
        connection = http.client.HTTPConnection(server.address)
        connection.request("POST", "/v2/models/served/nap/infer", body)
        time.sleep(0.5)
        connection.close()
        start = time.monotonic()
        assert nap(server, 0) == 200, "the only worker still runs the call"
        assert time.monotonic() - start < 10
        client = triton(server, "grpc")
        seconds = triton_grpc.InferInput("seconds", [1], "FP64")
        seconds.set_data_from_numpy(np.array([60.0]))
        with pytest.raises(InferenceServerException, match=r"(?i)deadline"):
            client.infer("served/nap", [seconds], client_timeout=0.5)
        start = time.monotonic()
        assert nap(server, 0) == 200
        assert time.monotonic() - start < 10
        client.close()


def test_too_many_calls_are_refused(serve: Serve) -> None:
    with serve("most_calls = 2") as server, ThreadPoolExecutor() as pool:
        running = [pool.submit(nap, server, 2) for _ in range(2)]
        path = "/v2/models/served/nap/infer"
        time.sleep(0.5)
        status, headers, content = server.request("POST", path, {"inputs": []})
        assert (status, headers["retry-after"]) == (503, "1")
        assert "2 calls are running" in json.loads(content)["error"]
        with pytest.raises(InferenceServerException, match="2 calls are running"):
            call(server, "grpc", "served/nap", {"seconds": np.zeros(1)})
        # Health needs no permit.
        assert server.request("GET", "/v2/health/live")[0] == 200
        assert [one.result() for one in running] == [200, 200]
        assert nap(server, 0) == 200


@contextmanager
def holding(server: Server, count: int) -> Iterator[None]:
    """Calls that the server runs or queues, until they are cancelled at the end."""
    body = json.dumps({"inputs": [tensor("seconds", "FP64", [1], [600])]})
    with ExitStack() as stack:
        for _ in range(count):
            connection = stack.enter_context(closing(http.client.HTTPConnection(server.address)))
            connection.request("POST", "/v2/models/served/nap/infer", body)
        until = time.monotonic() + 30
        while server.status()["modules"][0]["alive"] < count:
            assert time.monotonic() < until, "the calls have not begun"
            time.sleep(0.01)
        yield


def test_a_full_queue_says_when_to_try_again(serve: Serve) -> None:
    tables = "[modules.served]\nmost_running = 1\nmost_queued = 1"
    path = "/v2/models/served/nap/infer"
    body = {"inputs": [tensor("seconds", "FP64", [1], [0])]}
    with serve(tables=tables) as server:
        assert nap(server, 1.1) == 200
        with holding(server, 2):
            status, headers, content = server.request("POST", path, body)
            assert status == 429
            assert int(headers["retry-after"]) >= 1
            message = json.loads(content)["error"]
            assert "the queue of module `served` is full: 2 calls run or wait" in message
            assert re.search(r"try again in \d+ (s|min)$", message)


def test_calls_that_would_wait_until_their_deadline_are_refused(serve: Serve) -> None:
    path = "/v2/models/served/nap/infer"
    with serve(workers=1) as server:

        def ends(timeout: float) -> tuple[int, dict[str, str], str]:
            inputs = [tensor("seconds", "FP64", [1], [0])]
            body = {"inputs": inputs, "parameters": {"timeout": int(timeout * 1e6)}}
            status, headers, content = server.request("POST", path, body)
            return status, headers, json.loads(content).get("error", "")

        # Nothing is known of these calls: it waits until its deadline.
        with holding(server, 3):
            status, _, message = ends(0.1)
            assert (status, "time limit" in message) == (504, True)
        assert nap(server, 1.1) == 200
        with holding(server, 3):
            status, headers, message = ends(0.1)
            assert status == 429
            assert int(headers["retry-after"]) >= 1
            told = (
                "would not end within its 100 ms: 2 calls wait for the workers of module `served`"
            )
            assert told in message
            assert re.search(r"begin in about \d+ (s|min); try again in \d+ (s|min)$", message)
            seconds = triton_grpc.InferInput("seconds", [1], "FP64")
            seconds.set_data_from_numpy(np.array([0.0]))
            with (
                triton(server, "grpc") as client,
                pytest.raises(InferenceServerException, match="2 calls wait") as refused,
            ):
                client.infer("served/nap", [seconds], timeout=100_000)
            assert refused.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
        # The queue is empty again.
        assert ends(60)[0] == 200


def test_slow_senders_are_cut_off(serve: Serve) -> None:
    with serve("request_seconds = 0.5") as server:
        for start in ["", "P", "PRI", "POST /v2", HEAD, HEAD + "{"]:
            with socket.create_connection(server.address.split(":")) as slow:
                slow.settimeout(10)
                slow.sendall(start.encode())
                if start.startswith(HEAD):
                    assert b" 408 " in slow.recv(1000), start
                else:
                    with suppress(ConnectionResetError):
                        assert b" 200 " not in slow.recv(1000)
        assert nap(server, 0) == 200


def test_callers_that_do_not_read_are_cut_off(serve: Serve) -> None:
    with serve("most_calls = 1", "request_seconds = 1") as server:
        body: dict[str, Any] = {"inputs": [tensor("n", "INT64", [1], [60_000_000])]}
        body["parameters"] = {"binary_data_output": True}
        connection = http.client.HTTPConnection(server.address)
        connection.request("POST", "/v2/models/served/zeros/infer", json.dumps(body))
        time.sleep(0.5)
        assert nap(server, 0) == 503, "the result is still to be read"
        time.sleep(1.5)
        assert nap(server, 0) == 200
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            connection.getresponse().read()


def test_silent_connections_keep_nobody_out(serve: Serve) -> None:
    with serve("most_connections = 40", "request_seconds = 30") as server, ExitStack() as stack:
        for _ in range(100):
            other = socket.create_connection(server.address.split(":"))
            stack.enter_context(other)
            other.sendall(b"POST /v2")
        start = time.monotonic()
        assert nap(server, 0) == 200
        assert time.monotonic() - start < 10


def test_malformed_connections_harm_nobody(server: Server) -> None:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for garbage in [b"\0" * 100, b"GET", preface, preface + b"\xff" * 100, os.urandom(1000)]:
        with socket.create_connection(server.address.split(":")) as other:
            other.sendall(garbage)
            other.shutdown(socket.SHUT_WR)
    assert nap(server, 0) == 200


def test_a_shutdown_completes_running_calls(serve: Serve) -> None:
    with serve() as server, ThreadPoolExecutor() as pool:
        running = pool.submit(nap, server, 1)
        time.sleep(0.4)
        server.process.send_signal(signal.SIGTERM)
        assert running.result() == 200
        assert server.process.wait(10) == 0
        with pytest.raises(ConnectionRefusedError):
            nap(server, 0)


# ---- Who may call


def test_web_pages_need_permission(serve: Serve, server: Server) -> None:
    status, headers, _ = server.request("GET", "/v2", headers={"Origin": "http://evil.example"})
    assert status == 403
    assert "access-control-allow-origin" not in headers
    with serve("allowed_origins = 'http://good.example'") as open_server:
        for origin, allowed in [("http://good.example", True), ("http://evil.example", False)]:
            requested = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            path = "/v2/models/served/nap/infer"
            status, headers, _ = open_server.request("OPTIONS", path, headers=requested)
            assert (status == 204) == allowed
            assert (headers.get("access-control-allow-origin") == origin) == allowed


def test_tokens(serve: Serve) -> None:
    with serve(anonymous=False) as server:
        secret = server.run("token", "ada").strip()
        path = "/v2/models/served/nap/infer"
        body = {"inputs": [tensor("seconds", "FP64", [1], [0])]}
        for token, status in [
            (None, 401),
            ("Bearer wrong", 401),
            (f"Basic {secret}", 401),
            (f"Bearer {secret}", 200),
        ]:
            headers = {"Authorization": token} if token else {}
            got, answer, _ = server.request("POST", path, body, headers)
            assert got == status
            assert (answer.get("www-authenticate") == "Bearer") == (status == 401)
        assert server.request("GET", "/v2/models/served/nap")[0] == 401
        assert server.request("POST", "/v2/repository/index")[0] == 401
        assert server.request("GET", "/v2/health/ready")[0] == 200
        client = triton(server, "grpc")
        seconds = triton_grpc.InferInput("seconds", [1], "FP64")
        seconds.set_data_from_numpy(np.zeros(1))
        with pytest.raises(InferenceServerException, match="UNAUTHENTICATED"):
            client.infer("served/nap", [seconds])
        client.infer("served/nap", [seconds], headers={"authorization": f"Bearer {secret}"})
        client.close()
        # Revoked and expired tokens.
        tokens = json.loads(server.run("tokens", "--json"))
        assert [(token["user"], token["until"]) for token in tokens] == [("ada", None)]
        assert server.run("tokens", "--revoke", tokens[0]["id"]).count("ada") == 1
        assert nap(server, 0, secret) == 401
        state = "".join(
            file.read_text() for file in server.config.parent.rglob("*.json*") if file.is_file()
        )
        assert '"ada"' in state
        assert secret not in state


ROLES = """
[users.ada]
calls = 1
queued = 0
[users.bob]
modules = []
[users.eve]
bytes = "1 KB"
monitor = true
"""


def test_roles_and_limits_hold(serve: Serve) -> None:
    with serve(anonymous=False, tables=ROLES) as server, ThreadPoolExecutor() as pool:
        ada, bob, eve = (server.run("token", name).strip() for name in ("ada", "bob", "eve"))
        running = pool.submit(nap, server, 1, ada)
        time.sleep(0.4)
        body = {"inputs": [tensor("seconds", "FP64", [1], [0])]}
        path = "/v2/models/served/nap/infer"

        def answer(token: str, path: str = path, body: Any = body) -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {token}"}
            status, _, content = server.request("POST", path, body, headers)
            return status, content.decode()

        status, error = answer(ada)
        assert status == 429
        assert "`queued` of user" in error
        assert running.result() == 200
        assert answer(ada)[0] == 200
        assert answer(bob)[0] == 404
        assert answer(bob, "/v2/repository/index") == (200, "[]")
        large = {"inputs": [tensor("data", "UINT8", [2000], [1] * 2000)]}
        status, error = answer(eve, "/v2/models/served/echo/infer", large)
        assert status == 429
        assert "`bytes` of user" in error
        users = server.status()["users"]
        assert (users["ada"]["returned"], users["ada"]["running"]) == (2, 0)
        server.run("stop")
        audit = (server.config.parent / "state/audit.jsonl").read_text().splitlines()
        ends = [event for event in map(json.loads, audit) if event["event"] == "end"]
        assert [(end["user"], end["function"]) for end in ends] == [("ada", "served/nap")] * 2


def test_metrics_and_the_page_are_for_monitors(serve: Serve) -> None:
    with serve(anonymous=False, tables=ROLES) as server:
        ada, eve = (server.run("token", name).strip() for name in ("ada", "eve"))
        assert nap(server, 0, ada) == 200
        for path in ("/", "/metrics", "/status", "/page.js"):
            assert server.request("GET", path)[0] == 401
            assert server.request("GET", path, None, {"Authorization": f"Bearer {ada}"})[0] == 403
            assert server.request("GET", f"{path}?token={eve}")[0] == 200
        assert server.request("GET", "/elsewhere")[0] == 404
        headers = {"Authorization": f"Bearer {eve}"}
        _, reported, content = server.request("GET", "/metrics", None, headers)
        assert reported["content-type"].startswith("text/plain; version=0.0.4")
        lines = content.decode().splitlines()
        for line in (
            'gridrpc_server_calls_total{function="served/nap",outcome="returned"} 1',
            'gridrpc_server_user_calls_total{user="ada",outcome="returned"} 1',
            'gridrpc_server_workers_ready{module="",user=""} 2',
            'gridrpc_server_connections{user="ada"} 0',
            'gridrpc_server_detached_calls{state="ended"} 0',
            "gridrpc_server_refused_total 4",
        ):
            assert line in lines, line
        _, _, content = server.request("GET", "/", None, headers)
        assert eve.encode() not in content
        _, _, content = server.request("GET", f"/?token={eve}")
        assert f'src="page.js?token={eve}"'.encode() in content


def test_a_module_with_its_own_pool_runs_there(serve: Serve) -> None:
    with serve(tables="[modules.served]\nisolation = 'call'") as server:
        body = {"inputs": [tensor("seconds", "FP64", [1], [0])]}
        pids = {server.infer("nap", body)["pid"]["data"][0] for _ in range(3)}
        assert len(pids) == 3
        pools = [pool["module"] for pool in server.status()["pools"]]
        assert pools == [None, "served"]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two authorities; certificates of the server, a client, and one of the other authority."""
    folder = tmp_path_factory.mktemp("keys")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for authority, names in [("ca", ["server", "client"]), ("other", ["stranger"])]:
        openssl(
            "req",
            "-x509",
            *new,
            "-keyout",
            f"{authority}.key",
            "-out",
            f"{authority}.pem",
            "-days",
            "2",
            "-subj",
            f"/CN={authority}",
        )
        for name in names:
            openssl(
                "req",
                *new,
                "-keyout",
                f"{name}.key",
                "-out",
                f"{name}.csr",
                "-subj",
                f"/CN={name}",
                "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1",
            )
            openssl(
                "x509",
                "-req",
                "-in",
                f"{name}.csr",
                "-CA",
                f"{authority}.pem",
                "-CAkey",
                f"{authority}.key",
                "-CAcreateserial",
                "-out",
                f"{name}.pem",
                "-days",
                "2",
                "-copy_extensions",
                "copy",
            )
    return folder


def test_certificates(serve: Serve, keys: Path) -> None:
    files = {"certificate": "server.pem", "key": "server.key", "authority": "ca.pem"}
    tls = "".join(f"{key} = '{keys}/{file}'\n" for key, file in files.items())
    with serve(anonymous=False, tls=tls) as server:
        port = server.address.rpartition(":")[2]

        def health(name: str | None, authority: str = "ca") -> int:
            context = ssl.create_default_context(cafile=keys / f"{authority}.pem")
            if name:
                context.load_cert_chain(keys / f"{name}.pem", keys / f"{name}.key")
            connection = http.client.HTTPSConnection("localhost", int(port), context=context)
            connection.request("GET", "/v2/models/served/nap/ready")
            return connection.getresponse().status

        assert health("client") == 200
        assert health(None) == 401
        for name, authority in [("stranger", "ca"), ("client", "other")]:
            with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
                health(name, authority)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            nap(server, 0)

        def grpc_nap(name: str) -> Any:
            with triton_grpc.InferenceServerClient(
                f"localhost:{port}",
                ssl=True,
                root_certificates=f"{keys}/ca.pem",
                private_key=f"{keys}/{name}.key",
                certificate_chain=f"{keys}/{name}.pem",
            ) as client:
                seconds = triton_grpc.InferInput("seconds", [1], "FP64")
                seconds.set_data_from_numpy(np.zeros(1))
                return client.infer("served/nap", [seconds]).as_numpy("pid")

        assert grpc_nap("client")[0] > 0
        with pytest.raises(InferenceServerException):
            grpc_nap("stranger")


def test_revoked_certificates_are_refused_at_once(serve: Serve, tmp_path: Path) -> None:
    places = {name: str(tmp_path / name) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    environment = {**os.environ, **places}

    def ca(*arguments: object) -> str:
        command = [PROGRAM, "ca", *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        ).stdout

    ca("init", "--name", "centre")
    ca("server", "here", "--host", "localhost")
    ca("request", "ann")
    user = tmp_path / "XDG_CONFIG_HOME/gridrpc/credentials"
    ca("sign", user / "request.pem", "--out", tmp_path / "answer.pem")
    ca("install", tmp_path / "answer.pem")
    authority = tmp_path / "XDG_DATA_HOME/gridrpc/ca"
    tls = "".join(
        f"{key} = '{tmp_path}/here/{key}.pem'\n" for key in ("certificate", "key", "authority")
    )
    with serve(anonymous=False, tls=f"{tls}revoked = '{authority}/revoked.pem'\n") as server:
        port = int(server.address.rpartition(":")[2])
        context = ssl.create_default_context(cafile=user / "authority.pem")
        context.load_cert_chain(user / "certificate.pem", user / "key.pem")

        def connect() -> http.client.HTTPSConnection:
            return http.client.HTTPSConnection("localhost", port, context=context, timeout=10)

        def index(connection: http.client.HTTPSConnection) -> int:
            connection.request("GET", "/v2/repository/index")
            answer = connection.getresponse()
            answer.read()
            return answer.status

        connection = connect()
        assert [index(connection), index(connection)] == [200, 200]
        ca("revoke", "ann")
        time.sleep(1)
        # On the connection that is open, and on a new one.
        assert index(connection) == 401
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            index(connect())
        # A thread of its own writes the audit log.
        audit = server.config.parent / "state/audit.jsonl"
        until = time.monotonic() + 10
        reasons = ("has been revoked", "TLS handshake failed")
        while not all(reason in audit.read_text() for reason in reasons):
            assert time.monotonic() < until, audit.read_text()
            time.sleep(0.01)


def test_top_shows_users_functions_and_workers(serve: Serve) -> None:
    with serve() as server:
        assert nap(server, 0) == 200
        command = [PROGRAM, "top", "--once", "--server", server.config]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows = [line.split() for line in text.splitlines() if line]
        starts = [(row[0], row[1]) for row in rows]
        assert ("guest", "1") in starts
        assert ("served/nap", "1") in starts
        assert ("(common)", "2") in starts
        reported = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
        assert json.loads(reported.stdout)["users"]["guest"]["returned"] == 1

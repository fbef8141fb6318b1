"""Solves a system of linear equations with dgesv of a server, by NVIDIA's client for gRPC.

solve_triton.py HOST:PORT CREDENTIALS
"""

import sys
from pathlib import Path

import numpy as np
from tritonclient.grpc import InferenceServerClient, InferInput

address, credentials = sys.argv[1], Path(sys.argv[2])
# Elements are in the order of C: the server transposes arrays of Fortran functions.
a = np.array([[4.0, 1, 0], [1, 4, 1], [0, 1, 4]])
b = np.array([[6.0], [12], [14]])
inputs = [InferInput(name, list(x.shape), "FP64") for name, x in (("a", a), ("b", b))]
for tensor, x in zip(inputs, (a, b), strict=True):
    tensor.set_data_from_numpy(x)

with InferenceServerClient(
    address,
    ssl=True,
    root_certificates=str(credentials / "authority.pem"),
    private_key=str(credentials / "key.pem"),
    certificate_chain=str(credentials / "certificate.pem"),
) as client:
    result = client.infer("lapack/dgesv", inputs)
x = result.as_numpy("b")
print("tritonclient:", *(f"{value:.3f}" for value in x.ravel()))
if result.as_numpy("info")[0] != 0 or not np.allclose(x.ravel(), [1, 2, 3]):
    sys.exit("dgesv: the solution is wrong")

"""The model that MLServer serves beside ours."""

from __future__ import annotations

from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class Twice(MLModel):  # type: ignore[misc]
    """Twice each number of a tensor."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        """The tensor `y`."""
        twice = 2 * NumpyCodec.decode_input(payload.inputs[0])
        outputs = [NumpyCodec.encode_output("y", twice)]
        return InferenceResponse(model_name=self.name, outputs=outputs)

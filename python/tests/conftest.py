"""What the tests share: the repository's models, and small ones made here."""

from pathlib import Path

import onnx
import onnx.parser
import pytest

MODELS = Path(__file__).resolve().parents[2] / "models"

CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
chain (float[batch, 4, 6] x) => (float[batch, c, d] y) {
    sizes = Shape (x)
    zero = Constant <value = int64[1] {0}> ()
    first = Gather (sizes, zero)
    rest = Constant <value = int64[2] {6, 4}> ()
    wanted = Concat <axis = 0> (first, rest)
    moved = Reshape (x, wanted)
    y = Relu (moved)
}
"""


@pytest.fixture
def chain() -> onnx.ModelProto:
    """Four nodes compute a shape that is known but for the batch."""
    return onnx.parser.parse_model(CHAIN)


@pytest.fixture
def bert() -> Path:
    return MODELS / "bert_dy18d.onnx"


@pytest.fixture(params=sorted(MODELS.glob("*.onnx")), ids=lambda path: path.stem)
def each_model(request) -> Path:
    """Each of the repository's real exports."""
    return request.param

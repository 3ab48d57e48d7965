"""What is said of a graph that can't be read; exported models themselves are tested in export."""

import pytest

from cptuning.errors import CPTuningError
from cptuning.inference.onnx_encoder import OnnxEncoder


@pytest.mark.parametrize("contents", [None, b"", b"no graph"])
def test_a_file_that_is_no_graph_is_named(tmp_path, contents):
    path = tmp_path / "encoder.onnx"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(CPTuningError, match=r"encoder\.onnx is no readable ONNX model"):
        OnnxEncoder(layout=None, path=path)

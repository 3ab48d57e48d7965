"""Tensors that were written are read back, and what is missing or changed is noticed."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cptuning.files import tensors
from cptuning.files.tensors import save_tensors, tensor_shapes, verify_tensors

SOME = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([1, 2])}


def test_tensors_are_written_with_their_metadata(tmp_path):
    save_tensors(tmp_path / "t", SOME | {"c": SOME["a"].T}, {"kind": "words"})
    found = load_file(tmp_path / "t")
    assert all(np.array_equal(found[name], tensor) for name, tensor in SOME.items())
    assert np.array_equal(found["c"], SOME["a"].T)
    assert tensor_shapes(tmp_path / "t") == {"a": (2, 3), "b": (2,), "c": (3, 2)}


@pytest.mark.parametrize("damage", ["a byte", "a name", "a tensor", "a shape"])
def test_a_damaged_write_is_noticed(tmp_path, monkeypatch, damage):
    def write(written, path, metadata):
        if damage == "a name":
            written = {"other": written["a"], "b": written["b"]}
        if damage == "a tensor":
            written = {"a": written["a"]}
        if damage == "a shape":
            written = written | {"a": written["a"].reshape(3, 2)}
        save_file(written, path, metadata)
        if damage == "a byte":
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(content)

    monkeypatch.setattr(tensors, "save_file", write)
    with pytest.raises(OSError, match="does not hold what was written"):
        save_tensors(tmp_path / "t", SOME)


def test_tensors_that_others_wrote_are_verified_whatever_their_names(tmp_path):
    save_file({"x": SOME["b"]}, tmp_path / "1")
    save_file({"y": SOME["a"]}, tmp_path / "2")
    paths = [tmp_path / "1", tmp_path / "2"]
    verify_tensors(paths, [*SOME.values(), SOME["a"]])  # One is shared, and so stored once.
    for wrong in ([SOME["a"]], [*SOME.values(), SOME["a"] + 1], [SOME["a"], SOME["b"][:1]]):
        with pytest.raises(OSError, match="1, 2 does not hold"):
            verify_tensors(paths, wrong)

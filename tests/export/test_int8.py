"""Graphs in 8 bits and in 16: what rounding changes, and what it must not."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from tests.tiny import SINGLES

from cptuning import CPTuningClassifier
from cptuning.export import precisions
from cptuning.export.folding import fold_constants
from cptuning.export.graph import MICROSOFT, Graph
from cptuning.export.int8 import _quantize_product, _rounded_weights, observed, quantized
from cptuning.inference.onnx_encoder import session


@pytest.fixture(scope="module")
def embedded():
    """The embedded backbone before and after rounding: tiny ones are too small to tell."""
    some = SINGLES * 2
    classifier = CPTuningClassifier(steps=0, validation="none", verbose=False)
    classifier.fit(some, ["good", "bad"] * (len(some) // 2))
    encoder = classifier.predictor_.encoder
    samples = encoder.layout.encode(classifier.predictor_.support.examples)
    reference = precisions.Reference(encoder, samples)
    exact = precisions.float_graph(reference)
    return SimpleNamespace(
        samples=samples, reference=reference, exact=exact, rounded=quantized(exact, samples)
    )


def test_16_bits_are_enough_for_a_second_look(embedded):
    short = precisions.int16_graph(embedded.exact, embedded.reference)
    assert short.ByteSize() < 0.6 * embedded.exact.ByteSize()
    found, rounded = (embedded.reference.gap(model) for model in (short, embedded.rounded))
    assert found < 0.05 * rounded


def test_a_graph_that_needs_more_than_16_bits_keeps_32(embedded, monkeypatch):
    monkeypatch.setattr(precisions, "stored_in_16_bits", lambda model: embedded.rounded)
    kept = precisions.int16_graph(embedded.exact, embedded.reference)
    assert kept is embedded.exact


def test_what_a_channel_always_has_costs_no_exactness():
    plain, moved = (errors_of_8_bits((12, 24), middle) for middle in (0.0, 50.0))
    assert np.abs(moved).mean() < 1.5 * np.abs(plain).mean()


@pytest.mark.parametrize("shape", [(12, 24), (24, 12)], ids=["widening", "narrowing"])
def test_a_small_token_is_rounded_as_exactly_as_a_large_one(shape):
    sizes = np.tile(np.float32([0.1, 1]), 250)
    wrong = np.abs(errors_of_8_bits(shape, sizes=sizes)) / sizes[:, None]
    assert wrong[::2].mean() < 1.5 * wrong[1::2].mean()


def test_what_has_a_floor_is_rounded_from_there():
    """As activation functions make it: all the integers are for what lies above."""
    sizes = np.tile(np.float32([0.02, 1]), 250)  # There are tokens that hardly leave the floor.
    signed, floored = (
        np.abs(errors_of_8_bits((24, 12), sizes=sizes, floor=floor)[1::2]).mean()
        for floor in (None, -0.17)
    )
    assert floored < 0.7 * signed


def test_rounded_weights_make_up_for_each_other():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(300, 20)).astype(np.float32)
    # Channels of texts say much the same thing.
    inputs, new = (rng.normal(size=(n, 40)) for n in (1000, 500))
    mixing = rng.normal(size=(40, 300))
    inputs, new = (
        (x @ mixing + rng.normal(size=(len(x), 300))).astype(np.float32) for x in (inputs, new)
    )

    def wrong(rows, scales):
        assert np.abs(rows).max() <= 127
        return np.abs(new @ (rows * scales - matrix)).mean()

    rows, scales = _rounded_weights(matrix, inputs)
    assert wrong(rows, scales) < 0.5 * wrong(np.round(matrix / scales), scales)


def errors_of_8_bits(shape, middle=0.0, sizes=1.0, floor=None):
    """Of x @ weights + bias, for an x whose channels lie around values of such a size.

    Its tokens have such sizes; with a floor, none of its values is below.
    """
    rng = np.random.default_rng(0)
    weights, bias, noise, places = (
        rng.normal(size=size).astype(np.float32)
        for size in (shape, shape[1], (500, shape[0]), shape[0])
    )
    seen = np.reshape(np.float32(sizes), (-1, 1)) * noise + np.float32(middle) * places
    if floor is not None:
        seen = np.abs(seen) + np.float32(floor)
    exact = seen.astype(np.float64) @ weights + bias
    return eight_bit_product(seen, weights, bias) - exact


def eight_bit_product(seen, weights, bias):
    """seen @ weights + bias by a graph of 8-bit integers."""
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("MatMul", ["x", "w"], ["product"]),
            onnx.helper.make_node("Add", ["product", "b"], ["sum"]),
            onnx.helper.make_node("Identity", ["sum"], ["y"]),
        ],
        "product",
        [tensor("x", onnx.TensorProto.FLOAT, [None, len(weights)])],
        [tensor("y", onnx.TensorProto.FLOAT, [None, len(bias)])],
        [onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(bias, "b")],
    )
    opset = [onnx.helper.make_opsetid("", 18)]
    rewritten = Graph(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9))
    _quantize_product(rewritten, rewritten.nodes[0], seen)
    return session(rewritten.model().SerializeToString()).run(None, {"x": seen})[0]


def test_folding_spares_passes_and_changes_nothing_else(embedded, monkeypatch):
    monkeypatch.setattr("cptuning.export.int8.fold_constants", lambda graph: graph.prune())
    whole = quantized(embedded.exact, embedded.samples)
    before, after = (
        Counter(node.op_type for node in model.graph.node) for model in (whole, embedded.rounded)
    )
    layers = before["MultiHeadAttention"]
    assert layers == 12
    # Keys have no bias any more, norms add the biases of both products before a residual sum, and
    # attention's results are neither centred nor scaled.
    assert before - after == Counter(Add=3 * layers, Sub=layers, Mul=layers)
    # The first layer's two residual sums. Further on some integers differ, as 32-bit numbers are
    # rounded, too, and with them all that follows.
    norms = [n for n in embedded.exact.graph.node if n.op_type == "LayerNormalization"]
    sums = [norm.input[0] for norm in norms[1:3]]
    folded, unfolded = (
        observed(model, sums, embedded.samples) for model in (embedded.rounded, whole)
    )
    for name in sums:
        gap = np.abs(folded[name] - unfolded[name]).mean()
        assert gap < 1e-4 * np.abs(unfolded[name]).mean()


def attention_graph(**constants):
    """Attention over an x: keys and values with what is added to them, the result x' = (a - m) f.

    The values are made as in a graph of 8 bits, from integers.
    """
    make, tensor = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [
        make("Add", ["x", "key bias"], ["keys"]),
        make(
            "MatMulIntegerToFloat",
            ["integers", "weights", "one", "scales", "zero"],
            ["product"],
            domain=MICROSOFT,
        ),
        make("Reshape", ["product", "shape"], ["made"]),
        make("Mul", ["made", "rows"], ["sized"]),
        make("Add", ["sized", "value bias"], ["values"]),
        make("MultiHeadAttention", ["x", "keys", "values"], ["a"], domain=MICROSOFT, num_heads=2),
        make("Sub", ["a", "middle"], ["centred"]),
        make("Mul", ["centred", "factors"], ["y"]),
        make("Identity", ["y"], ["result"]),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "attention",
        [
            tensor("x", onnx.TensorProto.FLOAT, [None, None, 8]),
            tensor("integers", onnx.TensorProto.UINT8, [None, 8]),
            tensor("rows", onnx.TensorProto.FLOAT, [None, None, 1]),
        ],
        [tensor("result", onnx.TensorProto.FLOAT, [None, None, 8])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid(MICROSOFT, 1)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)


def test_what_is_folded_around_attention_is_exact():
    rng = np.random.default_rng(0)
    vectors = ("key bias", "value bias", "middle", "factors", "scales")
    model = attention_graph(
        **{name: rng.normal(size=8).astype(np.float32) for name in vectors},
        weights=rng.integers(-127, 128, (8, 8)).astype(np.int8),
        one=np.array(0.01, np.float32),
        zero=np.array(128, np.uint8),
        shape=np.array([2, 3, 8]),
    )
    rewritten = Graph(model)
    fold_constants(rewritten)
    folded = rewritten.model()
    assert "Sub" not in {node.op_type for node in folded.graph.node}
    inputs = {
        "x": rng.normal(size=(2, 3, 8)).astype(np.float32),
        "integers": rng.integers(0, 256, (6, 8)).astype(np.uint8),
        "rows": rng.random((2, 3, 1)).astype(np.float32),
    }
    found, expected = (session(m.SerializeToString()).run(None, inputs)[0] for m in (folded, model))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_int8_graphs_are_smaller(embedded):
    assert embedded.rounded.ByteSize() < 0.4 * embedded.exact.ByteSize()


def test_words_are_hardly_rounded(embedded):
    """What is wrong with a word is wrong in all that is computed from it."""
    nodes = embedded.exact.graph.node
    first = next(node.input[0] for node in nodes if node.op_type == "LayerNormalization")
    expected, found = (
        observed(model, [first], embedded.samples)[first]
        for model in (embedded.exact, embedded.rounded)
    )
    assert np.abs(found - expected).mean() < 0.001 * np.abs(expected).mean()

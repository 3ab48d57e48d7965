"""Steps that move into their neighbours: the same results, from fewer nodes."""

from collections import Counter

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cptuning import CPTuningClassifier
from cptuning.export import graphs, int8
from cptuning.export.folding import fold, with_fast_gelu
from cptuning.export.graph import Graph
from cptuning.export.tracing import OUTPUTS
from cptuning.inference.onnx_encoder import session

RNG = np.random.default_rng(0)
WIDTH, HEADS = 8, 2


def model_of(nodes, constants, inputs, results):
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None, WIDTH])

    graph = helper.make_graph(
        nodes,
        "graph",
        [value(name) for name in inputs],
        [helper.make_empty_tensor_value_info(name) for name in results],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def vector(n=WIDTH):
    return RNG.normal(size=n).astype(np.float32)


def result_of(model, **given):
    return session(model.SerializeToString()).run(None, given)


def ops(graph):
    return Counter(node.op_type for node in graph.nodes)


def gelu(root=2**0.5, half=0.5):
    constants = {"root": np.float32(root), "one": np.float32(1), "half": np.float32(half)}
    nodes = [
        helper.make_node("Div", ["x", "root"], ["divided"]),
        helper.make_node("Erf", ["divided"], ["erf"]),
        helper.make_node("Add", ["erf", "one"], ["added"]),
        helper.make_node("Mul", ["x", "added"], ["product"]),
        helper.make_node("Mul", ["product", "half"], ["y"]),
        helper.make_node("Identity", ["y"], ["result"]),
    ]
    return model_of(nodes, constants, ["x"], ["result"])


def test_gelu_by_a_tanh_is_nearly_the_same():
    x = np.linspace(-6, 6, 30 * WIDTH, dtype=np.float32).reshape(1, -1, WIDTH)
    exact, fast = gelu(), with_fast_gelu(gelu())
    assert ops(Graph(fast)) == {"FastGelu": 1, "Identity": 1}
    np.testing.assert_allclose(result_of(fast, x=x), result_of(exact, x=x), atol=1e-3)


@pytest.mark.parametrize("other", [{"root": 2.0}, {"half": 1.0}])
def test_an_error_function_for_something_else_is_left_alone(other):
    assert "Erf" in ops(Graph(with_fast_gelu(gelu(**other))))


def attention(factors=None):
    """Keys and values with biases, and a step behind, as a product in 8 bits wants it."""
    constants = {
        "matrix": RNG.integers(-127, 128, (WIDTH, WIDTH)).astype(np.int8),
        "scales": np.abs(vector()) / 100,
        "input scale": np.array(0.02, np.float32),
        "zero": np.array(128, np.uint8),
        "key bias": vector(),
        "value bias": vector(),
        "middle": vector(),
        "factors": np.abs(vector()) + 0.1 if factors is None else factors,
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "input scale", "zero"], ["integers"]),
        helper.make_node(
            "MatMulIntegerToFloat",
            ["integers", "matrix", "input scale", "scales", "zero"],
            ["made"],
            domain="com.microsoft",
        ),
        helper.make_node("Mul", ["made", "sizes"], ["sized"]),
        helper.make_node("Add", ["sized", "value bias"], ["values"]),
        helper.make_node("Add", ["x", "key bias"], ["keys"]),
        helper.make_node(
            "MultiHeadAttention",
            ["x", "keys", "values"],
            ["attended"],
            domain="com.microsoft",
            num_heads=HEADS,
        ),
        helper.make_node("Sub", ["attended", "middle"], ["moved"]),
        helper.make_node("Mul", ["moved", "factors"], ["result"]),
        helper.make_node("Identity", ["result"], ["y"]),
    ]
    return model_of(nodes, constants, ["x", "sizes"], ["y"])


def folded(model):
    graph = Graph(model)
    fold(graph)
    return graph


def test_attention_s_values_are_moved_and_multiplied_before_it_and_keys_need_no_bias():
    model = attention()
    graph = folded(model)
    assert ops(graph)["Sub"] == 0
    assert (ops(graph)["Add"], ops(graph)["Mul"]) == (1, 1)
    x, sizes = (RNG.normal(size=(3, 5, WIDTH)).astype(np.float32) for _ in range(2))
    # A size of its own for each token comes between the product and the bias.
    given = {"x": x, "sizes": np.abs(sizes[..., :1]) * np.ones_like(sizes)}
    np.testing.assert_allclose(
        result_of(graph.model(), **given)[0], result_of(model, **given)[0], atol=1e-5
    )


def test_channels_that_are_silent_can_t_be_got_back_and_stay():
    silent = np.float32([0, *[1] * (WIDTH - 1)])
    assert ops(folded(attention(factors=silent)))["Sub"] == 1


def norm(sums=1, bias=True):
    """A layer norm whose result a product wants moved and multiplied, and others add to theirs."""
    constants = {"weight": vector(), "middle": vector(), "factors": np.abs(vector()) + 0.1}
    constants |= {"bias": vector(), "shift": vector()}
    parts = ["x", "weight", "bias"] if bias else ["x", "weight"]
    nodes = [
        helper.make_node("LayerNormalization", parts, ["normed"], axis=-1),
        helper.make_node("Sub", ["normed", "middle"], ["moved"]),
        helper.make_node("Mul", ["moved", "factors"], ["product"]),
        helper.make_node("Identity", ["product"], ["read"]),
    ]
    for number in range(sums):
        nodes += [
            helper.make_node("Add", ["x", "shift"], [f"shifted {number}"]),
            helper.make_node("Add", [f"shifted {number}", "x"], [f"more {number}"]),
            helper.make_node("Add", [f"more {number}", "normed"], [f"sum {number}"]),
        ]
    return model_of(nodes, constants, ["x"], ["read", *(f"sum {n}" for n in range(sums))])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sums", [0, 1])
def test_a_layer_norm_makes_what_a_product_reads_and_a_sum_gets_it_back(sums, bias):
    model = norm(sums, bias)
    graph = folded(model)
    assert ops(graph)["Sub"] == 0
    x = RNG.normal(size=(2, 3, WIDTH)).astype(np.float32)
    for found, expected in zip(result_of(graph.model(), x=x), result_of(model, x=x), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_layer_norm_that_more_than_one_sum_reads_stays():
    assert ops(folded(norm(sums=2)))["Sub"] == 1


def test_a_whole_model_says_the_same_with_fewer_nodes(monkeypatch):
    texts = ["a fine film", "dull and long", "i loved it", "what a mess", "so so", "great fun"]
    classifier = CPTuningClassifier(steps=0, validation="none", verbose=False)
    encoder = classifier.fit(texts, ["good", "bad"] * 3).predictor_.encoder
    samples = encoder.layout.encode(classifier.predictor_.support.examples)
    exact = graphs.float_graph(encoder, samples)
    found = int8.quantized(exact, samples, OUTPUTS)
    monkeypatch.setattr(int8, "fold", lambda graph: None)
    plain = int8.quantized(exact, samples, OUTPUTS)
    cosines = (graphs._embeddings(found, samples) * graphs._embeddings(plain, samples)).sum(axis=1)
    assert cosines.min() > 0.999
    subs = [ops(Graph(model))["Sub"] for model in (plain, found)]
    layers = encoder.module.model.config.num_hidden_layers
    # Of three a layer before products of what attention or a norm made; the first and the last
    # layer are read by others, too.
    assert subs[0] - subs[1] >= 3 * (layers - 2)

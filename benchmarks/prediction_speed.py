"""Sentences per second on a CPU: exported models against SetFit, on one backbone.

    CPTUNING_DATA=folder python -m benchmarks.prediction_speed [--rows 872] [--rounds 15]

All in one process, warm, in turns: SetFit with the mean vector of the embedded backbone, ours in
float32 and in 8 bits, with a second look at close calls and without, and the float32 matrix
products of ours alone, which no way of computing them this precisely can beat. It stops if the
sides do not do the same work.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import cptuning
from benchmarks.alternating import Ratio, Times, alternate
from benchmarks.setfit_side import encoder_hash, require_same, saved_backbone, setfit_model
from cptuning import CPTuningClassifier
from cptuning.data import as_examples, load_dataset_split
from cptuning.export import export_onnx
from cptuning.inference.onnx_encoder import OnnxEncoder, session

SETFIT, FLOAT32, INT8 = "SetFit", "cptuning, float32", "cptuning, int8"
ONE_LOOK = "cptuning, int8, no second look"
EXPORTS = {
    FLOAT32: {},
    INT8: {"int8": True},
    ONE_LOOK: {"int8": True, "second_look": False},
}
PRODUCTS = "float32 matrix products alone"
MAX_LENGTH = 128
Contender = Callable[[Sequence[str]], int]
"""Answers texts; gives how many it has answered."""


def matrix_products(encoder: OnnxEncoder) -> Contender:
    """The products with constant matrices in an exported graph, in the same batches, on ones.

    Each reads the latest result of its width, so that none can be left out.
    """
    graph = onnx.load(encoder.path).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    one_row = {"outputs"}  # what is computed at [OMSK] alone
    nodes, weights, latest, inputs = [], [], {}, []
    random = np.random.default_rng(0)
    for node in graph.node:
        if one_row & set(node.input):
            one_row.update(node.output)
        if node.op_type not in ("MatMul", "Gemm") or node.input[1] not in shapes:
            continue
        shape = shapes[node.input[1]]
        width, made = shape if node.op_type == "MatMul" else shape[::-1]  # linear layers' own
        kind = "texts" if node.input[0] in one_row else "tokens"
        if (kind, width) not in latest:
            latest[kind, width] = f"{kind} {width}"
            inputs.append((kind, width))
        number = str(len(nodes))
        matrix = random.standard_normal((width, made), np.float32) / np.float32(width**0.5)
        weights.append(numpy_helper.from_array(matrix, f"weight {number}"))
        nodes.append(
            helper.make_node("MatMul", [latest[kind, width], f"weight {number}"], [number])
        )
        latest[kind, made] = number
    given = [
        helper.make_tensor_value_info(f"{kind} {width}", TensorProto.FLOAT, [None, width])
        for kind, width in inputs
    ]
    results = [helper.make_empty_tensor_value_info(v) for v in latest.values() if v.isdigit()]
    model = helper.make_model(
        helper.make_graph(nodes, "products", given, results, weights),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    multiply = session(model.SerializeToString())

    def contender(texts: Sequence[str]) -> int:
        lengths = [len(encoding) for encoding in encoder.layout.encode(as_examples(texts))]

        def compute(rows: np.ndarray) -> np.ndarray:
            sizes = {"tokens": sum(lengths[i] for i in rows), "texts": len(rows)}
            ones = {
                f"{kind} {width}": np.ones((sizes[kind], width), np.float32)
                for kind, width in inputs
            }
            multiply.run(None, ones)
            return rows[:, None]

        return len(encoder.in_batches(lengths, compute))

    return contender


def check_same_work(setfit, classifier: CPTuningClassifier, models: dict, threads: int) -> None:
    """Stop unless both sides have the same weights, lengths and threads, and compute with them."""
    encoder, body = classifier.predictor_.encoder, setfit.model_body
    ours, theirs = encoder.module.model.base_model, body[0].auto_model
    names = set(ours.state_dict())
    require_same("weights", encoder_hash(ours, names), encoder_hash(theirs, names))
    require_same("longest input", encoder.layout.max_length, body.max_seq_length)
    texts = classifier.predictor_.support.examples.first
    require_same("threads", torch.get_num_threads(), threads)
    for name, model in models.items():
        require_same(f"threads ({name})", model.predictor_.encoder.threads, threads)
        cosines = (model.transform(texts) * classifier.transform(texts)).sum(axis=1)
        require_same(f"what is computed ({name})", bool(cosines.min() >= 0.95), True)


def read_twice(model: CPTuningClassifier, texts: Sequence[str]) -> int:
    """How many of the texts an 8-bit model reads a second time."""
    embeddings = model.transform(texts)
    return len(model.predictor_.close_calls(embeddings, model.predictor_.scores(embeddings)))


def measure(rows: int | None = None, rounds: int = 15, threads: int = 2) -> tuple[Times, int, int]:
    """Let all contenders answer the same test sentences, in turns.

    Also gives how many sentences there are, and how many of them the 8-bit model read twice.
    """
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    split = load_dataset_split("SST-2", seed=13)
    texts = list(split.test.first)[:rows]
    classifier = CPTuningClassifier(
        steps=0, max_length=MAX_LENGTH, validation="none", device="cpu", verbose=False
    ).fit(split.train, split.train_labels)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        setfit = setfit_model(saved_backbone(place / "backbone"), MAX_LENGTH)
        vectors = setfit.model_body.encode(list(split.train.first), show_progress_bar=False)
        setfit.model_head.fit(vectors, split.train_labels)
        models = {}
        for name, how in EXPORTS.items():
            export_onnx(classifier, place / name, **how)
            models[name] = cptuning.load(place / name)
        check_same_work(setfit, classifier, models, threads)
        contenders: dict[str, Contender] = {
            SETFIT: lambda texts: len(setfit.predict(texts, show_progress_bar=False)),
            **{name: lambda t, m=model: len(m.predict(t)) for name, model in models.items()},
            PRODUCTS: matrix_products(models[FLOAT32].predictor_.encoder),
        }
        times = alternate(contenders, [texts] * rounds)
        twice = read_twice(models[INT8], texts)
    for name, counts in times.results.items():
        require_same(f"the number of answers ({name})", counts, [len(texts)] * rounds)
    return times, len(texts), twice


def table(times: Times, texts: int, twice: int) -> str:
    """Rates, ratios and the share of what is possible, as Markdown."""
    lines = ["| | sentences per second, median | times SetFit |", "|---|---|---|"]
    for name in times.seconds:
        rate = texts / times.median(name)
        lines.append(f"| {name} | {rate:.0f} | {times.ratio(SETFIT, name)} |")
    part = times.ratio(PRODUCTS, FLOAT32)
    share = Ratio(*(100 * value for value in (part.median, part.least, part.most)))
    said = (
        f"In float32 that is {share:.0f} % of the products alone. "
        f"In 8 bits {twice} of the {texts} were read twice."
    )
    return "\n".join([*lines, "", said])


def section(
    quick: bool = False, rows: int | None = None, rounds: int = 15, threads: int = 2
) -> str:
    """Measure, and give the result as Markdown."""
    if quick:
        rows, rounds = 200, 3
    times, texts, twice = measure(rows, rounds, threads)
    return (
        "## Prediction on a CPU\n\n"
        f"{texts} test sentences of SST-2, the embedded backbone, {threads} threads; {rounds} "
        "rounds, ratios round by round: median (least to most).\n\n"
        + table(times, texts, twice)
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    print(section(rows=chosen.rows, rounds=chosen.rounds, threads=chosen.threads))


if __name__ == "__main__":
    main()

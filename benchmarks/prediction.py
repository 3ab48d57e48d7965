"""Sentences a second on a CPU: exported models against SetFit, on one backbone.

    CPTUNING_DATA=folder python -m benchmarks.prediction [--rows 872] [--rounds 5] [--threads 2]

All in one process, warm, in turns: SetFit with the mean vector of the embedded backbone, ours in
float32 and in 8 bits, and the float32 matrix products of ours alone, which no way of computing
them this precisely can beat. It stops if the sides do not do the same work. Needs
``pip install setfit``.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

import cptuning
from cptuning import CPTuningClassifier
from cptuning.backbone import load_backbone
from cptuning.data import NamedSplit, as_examples, load_dataset_split
from cptuning.export import export_onnx
from cptuning.inference.onnx_encoder import OnnxEncoder, session

SETFIT, FLOAT32, INT8 = "SetFit", "cptuning, float32", "cptuning, int8"
PRODUCTS = "float32 matrix products alone"
MAX_LENGTH = 128
Contender = Callable[[Sequence[str]], int]
"""Takes texts, and tells how many it has done."""


@dataclass
class Result:
    """Sentences a second of each contender, one figure a round."""

    rates: dict[str, list[float]]
    texts: int
    threads: int

    def ratios(self, one: str, other: str) -> np.ndarray:
        """How many times faster one is than another, round by round."""
        return np.array(self.rates[one]) / np.array(self.rates[other])


def setfit_model(split: NamedSplit, folder: Path):
    """SetFit's model on the embedded backbone, not trained further, with its usual head."""
    from sentence_transformers import SentenceTransformer, models
    from setfit import SetFitModel
    from sklearn.linear_model import LogisticRegression

    backbone = load_backbone("embedded")
    backbone.model.base_model.save_pretrained(folder)
    backbone.tokenizer.save_pretrained(folder)
    words = models.Transformer(str(folder), max_seq_length=MAX_LENGTH)
    body = SentenceTransformer(
        modules=[words, models.Pooling(words.get_word_embedding_dimension())], device="cpu"
    )
    vectors = body.encode(list(split.train.first), show_progress_bar=False)
    head = LogisticRegression().fit(vectors, split.train_labels)
    return SetFitModel(model_body=body, model_head=head)


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
    body = setfit.model_body
    module = classifier.predictor_.encoder.module
    ours = module.model.base_model.state_dict()
    theirs = body[0].auto_model.state_dict()
    for name, weight in ours.items():
        if not torch.equal(weight, theirs[name]):
            raise SystemExit(f"The backbones differ in {name}.")
    if body.max_seq_length != MAX_LENGTH or classifier.predictor_.encoder.layout.max_length != (
        MAX_LENGTH
    ):
        raise SystemExit("The sides read texts up to different lengths.")
    counts = {SETFIT: torch.get_num_threads()}
    counts |= {name: model.predictor_.encoder.threads for name, model in models.items()}
    if set(counts.values()) != {threads}:
        raise SystemExit(f"The sides have different numbers of threads: {counts}.")
    texts = classifier.predictor_.support.examples.first
    for name, model in models.items():
        cosines = (model.transform(texts) * classifier.transform(texts)).sum(axis=1)
        if cosines.min() < 0.95:
            raise SystemExit(f"{name} does not compute what the backbone does.")


def measure(rows: int | None = None, rounds: int = 5, threads: int = 2) -> Result:
    """Let all contenders read the same test sentences, in turns."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    torch.set_num_threads(threads)
    split = load_dataset_split("SST-2", seed=13)
    texts = list(split.test.first)[:rows]
    classifier = CPTuningClassifier(
        steps=0, max_length=MAX_LENGTH, validation="none", device="cpu", verbose=False
    ).fit(split.train, split.train_labels)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        setfit = setfit_model(split, place / "setfit")
        models = {}
        for name, int8 in ((FLOAT32, False), (INT8, True)):
            export_onnx(classifier, place / name, int8=int8)
            models[name] = cptuning.load(place / name)
        check_same_work(setfit, classifier, models, threads)
        contenders: dict[str, Contender] = {
            SETFIT: lambda texts: len(setfit.predict(texts, show_progress_bar=False)),
            **{name: lambda t, m=model: len(m.predict(t)) for name, model in models.items()},
            PRODUCTS: matrix_products(models[FLOAT32].predictor_.encoder),
        }
        for contender in contenders.values():
            contender(texts[:64])
        rates: dict[str, list[float]] = {name: [] for name in contenders}
        for number in range(rounds):
            order = list(contenders)
            for name in order if number % 2 == 0 else reversed(order):
                began = time.perf_counter()
                done = contenders[name](texts)
                seconds = time.perf_counter() - began
                if done != len(texts):
                    raise SystemExit(f"{name} answered {done} of {len(texts)} texts.")
                rates[name].append(len(texts) / seconds)
    return Result(rates, len(texts), threads)


def section(result: Result) -> str:
    """The figures as a part of a Markdown page."""

    def spread(values: Sequence[float], digits: int) -> str:
        low, middle, high = np.quantile(values, [0, 0.5, 1])
        return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"

    lines = [
        "## Prediction on a CPU",
        "",
        f"{result.texts} test sentences of SST-2, the embedded backbone, {result.threads} threads; "
        f"median (least to greatest) of {len(result.rates[SETFIT])} rounds, ratios round by round.",
        "",
        "| | sentences a second | times SetFit |",
        "|---|---|---|",
    ]
    for name, rates in result.rates.items():
        lines.append(f"| {name} | {spread(rates, 0)} | {spread(result.ratios(name, SETFIT), 2)} |")
    share = 100 * result.ratios(FLOAT32, PRODUCTS)
    lines += ["", f"cptuning in float32 reaches {spread(share, 0)} % of its matrix products alone."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    print(section(measure(chosen.rows, chosen.rounds, chosen.threads)))


if __name__ == "__main__":
    main()

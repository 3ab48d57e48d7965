"""What each pass of the exporter is worth: its share of the time, and what it does to exactness.

    CPTUNING_DATA=folder python -m benchmarks.export_passes [--dataset SST-2] [--steps 0]
                                                            [--rounds 60]

For every pass, the graph that is made without it against the graph with all of them: both read the
same texts of a few lengths in turns, in one process and one thread, and the processor time is
compared, so that other programs disturb little. Embeddings are compared with torch's on 200 test
sentences. Only the mask view is read, the one that every pass has something to do for.
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from time import thread_time
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx

from benchmarks.alternating import alternate
from cptuning import CPTuningClassifier
from cptuning.data import load_dataset_split
from cptuning.export import int8, precisions
from cptuning.export.exporter import calibration_samples, in_torch
from cptuning.inference.onnx_encoder import run, session
from cptuning.prompting import Encoding

ALL = "all passes"
COMPARED = 200
# Texts per batch, and tokens per text.
SHAPES = ((8, 24), (2, 128), (1, 400))
HEAD = (
    f"| without | {' | '.join(f'{tokens} tokens' for _, tokens in SHAPES)} "
    "| largest difference | 1 - mean cosine |",
    "|---" * (len(SHAPES) + 3) + "|",
)


def _rounded_to_nearest(weights, _inputs):
    scales = (np.abs(weights).max(axis=0) / 127).astype(np.float32)
    return np.round(weights / scales).astype(np.int8), scales


@dataclass(frozen=True)
class Pass:
    """Where a pass is found, and what stands in for it when it is left out."""

    place: Any
    name: str
    instead: Any


FLOAT_PASSES = {
    "attention as one operator": Pass(precisions, "_fused_graph", precisions._eager_graph),
    "`gather_early`": Pass(precisions, "gather_early", lambda *_: None),
}
INT8_PASSES = {
    "`fold_constants`": Pass(int8, "fold_constants", lambda graph: graph.prune()),
    "smoothing": Pass(int8, "_SMOOTHING", np.float32(0)),
    "the floor of activation functions": Pass(
        int8._Quantizer,
        "fit",
        classmethod(lambda cls, seen: cls._around(seen, seen.mean(axis=0), one_sided=False)),
    ),
    "centres": Pass(
        int8._Quantizer,
        "fit",
        classmethod(lambda cls, seen: cls._around(seen, 0 * seen[0], one_sided=False)),
    ),
    "GPTQ": Pass(int8, "_rounded_weights", _rounded_to_nearest),
}


def graphs(reference: precisions.Reference) -> Iterator[tuple[str, dict]]:
    """In each precision, the graph with all passes, and that without each of them."""
    exact = precisions.float_graph(reference)

    def in_8_bits() -> onnx.ModelProto:
        return precisions.int8_graph(exact, reference)

    def in_floats() -> onnx.ModelProto:
        return precisions.float_graph(reference)

    for precision, make, passes in (
        ("float32", in_floats, FLOAT_PASSES),
        ("int8", in_8_bits, INT8_PASSES),
    ):
        made = {ALL: make()}
        for name, left_out in passes.items():
            with ExitStack() as stack:
                stack.enter_context(patch.object(left_out.place, left_out.name, left_out.instead))
                made[name] = make()
        yield precision, made


def of_all_shapes(encodings: list[Encoding]) -> Iterator[list[Encoding]]:
    """A batch of each shape, of tokens of the encodings."""
    tokens = np.concatenate([encoding.ids for encoding in encodings])
    for texts, length in SHAPES:
        yield [
            Encoding(ids, 0 * ids, ids > 0, output=1, shortened=False)
            for ids in tokens[: texts * length].reshape(texts, length)
        ]


def tables(dataset: str, steps: int, rounds: int) -> Iterator[str]:
    """For each precision, a row of the table for every pass."""
    split = load_dataset_split(dataset, seed=13)
    classifier = CPTuningClassifier(
        pooling="mask",
        steps=steps,
        random_state=13,
        validation="none",
        device="cpu",
        verbose=False,
    ).fit(split.train, split.train_labels)
    encoder = in_torch(classifier.predictor_.encoder)
    samples = calibration_samples(encoder.layout, classifier.predictor_.support.examples)
    encodings = encoder.layout.encode(split.test.take(np.arange(COMPARED)))
    compared = precisions.Reference(encoder, encodings)
    for precision, made in graphs(precisions.Reference(encoder, samples)):
        yield "\n".join([f"\n{precision}:\n", *HEAD])
        sessions = {name: session(graph.SerializeToString()) for name, graph in made.items()}
        times = [
            alternate(
                {name: partial(run, by, texts) for name, by in sessions.items()},
                rounds,
                clock=thread_time,
            )
            for texts in of_all_shapes(compared.sequences)
        ]
        for name, graph in made.items():
            found = compared.embeddings_by(graph)
            gap = np.abs(found - compared.embeddings).max()
            lost = 1 - (found.astype(np.float64) * compared.embeddings).sum(axis=1).mean()
            shown = "nothing" if name == ALL else name
            ratios = " | ".join(f"{one.ratio(name, ALL).median:.3f}" for one in times)
            yield f"| {shown} | {ratios} | {gap:.1e} | {lost:.2e} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", default="SST-2")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=60)
    chosen = parser.parse_args()
    for line in tables(chosen.dataset, chosen.steps, chosen.rounds):
        print(line, flush=True)


if __name__ == "__main__":
    main()

"""A fitted model as an ONNX folder that predicts with numpy, tokenizers and ONNX Runtime alone."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference import Predictor
from cptuning.inference.onnx_encoder import ONNX_FILE
from cptuning.prompting import Encoding, Layout
from cptuning.storage import new_folder, write_common

if TYPE_CHECKING:
    from cptuning.estimator import TextClassifier

# So many labelled examples are enough to compare graphs by, and to find the range of numbers.
_SAMPLES = 32


def export_onnx(classifier: "TextClassifier", folder: str | Path, *, int8: bool = False) -> None:
    """Write the classifier so that ``cptuning.load`` needs no torch for it.

    The folder predicts, explains and takes new examples; it can't be trained further. ``int8``
    makes it about a third as large and faster, for answers that are nearly always the same. Every
    graph is compared with torch before it is written.
    """
    from cptuning.backbone import TextEncoder
    from cptuning.export.graphs import float_graph, int8_graph

    predictor = classifier.predictor_
    if not isinstance(predictor, Predictor):
        raise CPTuningError(
            f"Only models of the method cp-tuning can be exported, and this one is of "
            f"{classifier.method}."
        )
    encoder = predictor.encoder
    if not isinstance(encoder, TextEncoder):
        raise CPTuningError("This model is exported already: export the folder it came from.")
    samples = _samples(encoder.layout, predictor.support.examples)
    with new_folder(Path(folder)) as place:
        graph = float_graph(encoder, samples)
        if int8:
            graph = int8_graph(encoder, graph, samples)
        (place / ONNX_FILE).write_bytes(graph.SerializeToString())
        write_common(classifier, place)


def _samples(layout: Layout, examples: Examples) -> list[Encoding]:
    """Some of the labelled examples, from first to last, and a long one made of them."""
    rows = np.linspace(0, len(examples) - 1, min(len(examples), _SAMPLES)).astype(int)
    some = examples.take(rows)
    joined = Examples(
        (" ".join(some.first),), None if some.second is None else (" ".join(some.second),)
    )
    return [*layout.encode(some), *layout.encode(joined)]

"""A fitted tagger as an ONNX folder that predicts with numpy, tokenizers and ONNX Runtime alone."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from cptuning.errors import CPTuningError
from cptuning.export.graph import Graph
from cptuning.export.precisions import first_exact
from cptuning.export.rewriting import drop_idle_reshapes
from cptuning.export.tracing import EAGER, FUSED, traced_words
from cptuning.inference.onnx_encoder import ONNX_FILE, session
from cptuning.inference.onnx_words import OnnxWordEncoder
from cptuning.inference.tag_predictor import TagPredictor
from cptuning.storage import new_folder
from cptuning.storage.taggers import TaggerFacts, write_tagger

if TYPE_CHECKING:
    from cptuning.backbone.word_encoder import WordEncoder

_SAMPLES = 16


def export_tagger(facts: TaggerFacts, predictor: TagPredictor, folder: Path) -> None:
    """Write the tagger so that ``cptuning.load`` needs no torch for it.

    The folder predicts, explains and takes new examples. Its graph is compared with torch first.
    """
    encoder = predictor.encoder
    if isinstance(encoder, OnnxWordEncoder):
        raise CPTuningError("This tagger is exported already: export the folder it came from.")
    graph = _graph(encoder, predictor)  # type: ignore[arg-type]
    with new_folder(folder) as place:
        (place / ONNX_FILE).write_bytes(graph.SerializeToString())
        write_tagger(facts, predictor, place)


def _graph(encoder: "WordEncoder", predictor: TagPredictor) -> onnx.ModelProto:
    """The fastest graph that computes what torch does."""
    samples = predictor.examples.sentences[:_SAMPLES]
    expected = np.concatenate(encoder.embed(samples))

    def traced(attention: str) -> onnx.ModelProto:
        graph = Graph(traced_words(encoder.encoder.module, attention))
        drop_idle_reshapes(graph)
        return graph.model()

    def gap(graph: onnx.ModelProto) -> float:
        by_graph = session(graph.SerializeToString())
        reader = OnnxWordEncoder(encoder.layout, by_graph, encoder.pieces)
        return float(np.abs(np.concatenate(reader.embed(samples)) - expected).max(initial=0))

    return first_exact([partial(traced, FUSED), partial(traced, EAGER)], gap)

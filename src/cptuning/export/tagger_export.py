"""A fitted tagger as an ONNX folder that predicts with numpy, tokenizers and ONNX Runtime alone."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from cptuning.errors import CPTuningError
from cptuning.export.graph import Graph
from cptuning.export.rewriting import drop_idle_reshapes
from cptuning.export.tracing import EAGER, FUSED, traced_words
from cptuning.inference.onnx_encoder import ONNX_FILE, session
from cptuning.inference.onnx_words import OnnxWordEncoder
from cptuning.inference.tag_predictor import TagPredictor
from cptuning.storage import new_folder
from cptuning.storage.taggers import TaggerFacts, write_tagger

if TYPE_CHECKING:
    from cptuning.backbone.word_encoder import WordEncoder

# How far the words' unit vectors may be from torch's: rounding differs, nothing else may.
_TOLERANCE = 1e-4
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
    cause: Exception | None = None
    for attention in (FUSED, EAGER):
        try:
            rewritten = Graph(traced_words(encoder.encoder.module, attention))
            drop_idle_reshapes(rewritten)
            graph = rewritten.model()
            by_graph = session(graph.SerializeToString())
            reader = OnnxWordEncoder(encoder.layout, by_graph, encoder.pieces)
            gap = float(np.abs(np.concatenate(reader.embed(samples)) - expected).max(initial=0))
        except Exception as error:  # torch, transformers, onnx and ONNX Runtime have many
            cause = error
            continue
        if gap <= _TOLERANCE:
            return graph
    raise CPTuningError(
        "This backbone can't be exported: no ONNX graph of it computes what torch does. "
        "Use the tagger's folder itself."
    ) from cause

"""The graphs of an encoder: the fastest that computes what torch computes, and one in 8 bits."""

from collections.abc import Sequence

import numpy as np
import onnx

from cptuning.backbone import PromptedEncoder, TextEncoder
from cptuning.errors import CPTuningError
from cptuning.export.folding import fold_biases
from cptuning.export.graph import Graph
from cptuning.export.int8 import moved_back, quantized, shortened
from cptuning.export.rewriting import spare_keys_and_values, straighten_attention, take_row_early
from cptuning.export.tracing import EAGER, FUSED, OUTPUTS, traced
from cptuning.inference.onnx_encoder import run, session
from cptuning.inference.support import FloatArray
from cptuning.prompting import Encoding

# What embeddings may differ by from torch's: rounding differs, nothing else may.
_TOLERANCE = 1e-4
# What they may differ by where matrices have 16 bits.
_TOLERANCE_IN_16_BITS = 1e-3
# The least mean cosine similarity with torch's embeddings that 8 bits must keep.
_LEAST_COSINE = 0.97


def float_graph(encoder: TextEncoder, samples: Sequence[Encoding]) -> onnx.ModelProto:
    """The fastest graph that gives what torch gives; not every architecture allows every way."""
    expected = encoder.embed_encodings(samples)
    cause: Exception | None = None
    for make in (_fused_graph, _eager_graph, _plain_graph):
        try:
            graph = make(encoder.module)
            gap = np.abs(_embeddings(graph, samples) - expected).max()
        except Exception as error:  # torch, transformers, onnx and ONNX Runtime have many
            cause = error
            continue
        if gap <= _TOLERANCE:
            return graph
    raise CPTuningError(
        "This backbone can't be exported: no ONNX graph of it computes what torch does. "
        "Use the model folder itself."
    ) from cause


def _fused_graph(module: PromptedEncoder) -> onnx.ModelProto:
    """Attention as one operator, and one row where one is enough."""
    graph = Graph(traced(module, FUSED))
    straighten_attention(graph)
    fold_biases(graph)
    take_row_early(graph, OUTPUTS)
    spare_keys_and_values(graph, OUTPUTS)
    return graph.model()


def _eager_graph(module: PromptedEncoder) -> onnx.ModelProto:
    """One row where one is enough."""
    graph = Graph(traced(module, EAGER))
    take_row_early(graph, OUTPUTS)
    return graph.model()


def _plain_graph(module: PromptedEncoder) -> onnx.ModelProto:
    """As it was traced."""
    return traced(module, EAGER)


def short_graph(
    graph: onnx.ModelProto, samples: Sequence[Encoding], expected: FloatArray
) -> onnx.ModelProto:
    """The graph in a file of half the size, if its numbers can be told in 16 bits."""
    short = shortened(graph)
    gap = np.abs(_embeddings(short, samples) - expected).max()
    return short if gap <= _TOLERANCE_IN_16_BITS else graph


def int8_graph(
    graph: onnx.ModelProto, samples: Sequence[Encoding], expected: FloatArray
) -> tuple[onnx.ModelProto, FloatArray]:
    """The graph in 8 bits, if that does not change the embeddings much, and those it makes."""
    rounded = quantized(graph, samples, OUTPUTS)
    # Rounding moves all texts a little in one direction; what is left of it differs by text.
    rounded = moved_back(rounded, (_embeddings(rounded, samples) - expected).mean(axis=0))
    found = _embeddings(rounded, samples)
    cosines = (found * expected).sum(axis=1)
    if cosines.mean() < _LEAST_COSINE:
        raise CPTuningError(
            f"In 8 bits this model's embeddings are too far from its own (mean cosine similarity "
            f"{cosines.mean():.3f}): export it without --int8."
        )
    return rounded, found


def _embeddings(graph: onnx.ModelProto, samples: Sequence[Encoding]) -> FloatArray:
    """What a graph makes of the samples."""
    embedding = session(graph.SerializeToString())
    return np.concatenate([run(embedding, [sample])[0] for sample in samples])

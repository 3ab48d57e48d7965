"""The graphs of an encoder in every precision, each compared with torch."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np
import onnx

from cptuning.backbone import PromptedEncoder, TextEncoder
from cptuning.errors import CPTuningError
from cptuning.export.graph import Graph
from cptuning.export.int8 import quantized, stored_in_16_bits
from cptuning.export.rewriting import drop_idle_reshapes, gather_early
from cptuning.export.tracing import EAGER, FUSED, OUTPUTS, traced
from cptuning.inference.onnx_encoder import GraphEncoder, session
from cptuning.inference.support import FloatArray
from cptuning.prompting import Encoding

# How far embeddings may be from torch's: rounding differs, nothing else may.
_TOLERANCE = 1e-4
# How far they may be where the file has matrices of 16 bits.
_TOLERANCE_OF_16_BITS = 1e-3
# The least mean cosine similarity with torch's embeddings that 8 bits must keep.
_LEAST_COSINE = 0.97


class Reference:
    """What graphs are compared with: torch's embeddings of some examples."""

    def __init__(self, encoder: TextEncoder, samples: Sequence[Encoding]) -> None:
        self.encoder = encoder
        self.samples = samples
        self.embeddings: FloatArray = encoder.embed_encodings(samples)

    @property
    def sequences(self) -> list[Encoding]:
        """All that is read for the examples, one sequence after another."""
        return [sequence for sample in self.samples for sequence in sample.sequences]

    def embeddings_by(self, graph: onnx.ModelProto) -> FloatArray:
        """The examples' embeddings by a graph, its views joined as the encoder joins them."""
        by_graph = session(graph.SerializeToString())
        views = self.encoder.module.views
        reader = GraphEncoder(self.encoder.layout, by_graph, "The graph", views)
        return reader.embed_encodings(self.samples)

    def gap(self, graph: onnx.ModelProto) -> float:
        """The largest difference of a number in a graph's embeddings."""
        return float(np.abs(self.embeddings_by(graph) - self.embeddings).max())


def float_graph(reference: Reference) -> onnx.ModelProto:
    """The fastest graph that computes what torch does; an architecture may not allow every pass."""
    module = reference.encoder.module
    makes = (_fused_graph, _eager_graph, _plain_graph)
    return first_exact([partial(make, module) for make in makes], reference.gap)


def first_exact(
    makes: Iterable[Callable[[], onnx.ModelProto]], gap: Callable[[onnx.ModelProto], float]
) -> onnx.ModelProto:
    """The first graph that can be made and computes what torch does, by its gap to it."""
    cause: Exception | None = None
    for make in makes:
        try:
            graph = make()
            found = gap(graph)
        except Exception as error:  # torch, transformers, onnx and ONNX Runtime have many
            cause = error
            continue
        if found <= _TOLERANCE:
            return graph
    raise CPTuningError(
        "This backbone can't be exported: no ONNX graph of it computes what torch does. "
        "Use the model folder itself."
    ) from cause


def _fused_graph(module: PromptedEncoder) -> onnx.ModelProto:
    """Attention as one operator, and one row where one is enough."""
    graph = Graph(traced(module, FUSED))
    drop_idle_reshapes(graph)
    gather_early(graph, OUTPUTS)
    return graph.model()


def _eager_graph(module: PromptedEncoder) -> onnx.ModelProto:
    """One row where one is enough."""
    graph = Graph(traced(module, EAGER))
    gather_early(graph, OUTPUTS)
    return graph.model()


def _plain_graph(module: PromptedEncoder) -> onnx.ModelProto:
    """As it was traced."""
    return traced(module, EAGER)


def int16_graph(graph: onnx.ModelProto, reference: Reference) -> onnx.ModelProto:
    """The graph in a file of half the size, unless its numbers need more than 16 bits."""
    smaller = stored_in_16_bits(graph)
    return smaller if reference.gap(smaller) <= _TOLERANCE_OF_16_BITS else graph


def int8_graph(graph: onnx.ModelProto, reference: Reference) -> onnx.ModelProto:
    """The graph in 8 bits, whose embeddings must be close to torch's."""
    rounded = quantized(graph, reference.sequences)
    cosines = (reference.embeddings_by(rounded) * reference.embeddings).sum(axis=1)
    if cosines.mean() < _LEAST_COSINE:
        raise CPTuningError(
            f"In 8 bits this model's embeddings are too far from its own (mean cosine similarity "
            f"{cosines.mean():.3f}): export it without --int8."
        )
    return rounded

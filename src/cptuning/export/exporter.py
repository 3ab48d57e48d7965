"""A fitted model as an ONNX folder that predicts with numpy, tokenizers and ONNX Runtime alone."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np

from cptuning.data import Examples
from cptuning.data.sample_data import read_sample
from cptuning.errors import CPTuningError
from cptuning.files.places import as_path
from cptuning.inference import (
    EmbeddingPredictor,
    Encoder,
    MultiLabelPredictor,
    Predictor,
    SecondLook,
)
from cptuning.inference.embedded_encoder import EmbeddedEncoder
from cptuning.inference.onnx_encoder import EXACT_FILE, ONNX_FILE, OnnxEncoder
from cptuning.inference.ranked_documents import RankingPredictor, SentenceEncoder
from cptuning.inference.support import FloatArray
from cptuning.prompting import Encoding, Layout, all_windows
from cptuning.storage import ModelFacts, new_folder, write_common

if TYPE_CHECKING:
    from cptuning.backbone import TextEncoder

# Enough labelled examples to compare graphs by, and to find the ranges of activations.
_SAMPLES = 32
# A lead is clear from so many standard deviations on of what rounding does to it.
_CLEAR_DEVIATIONS = 2


class FittedClassifier(Protocol):
    """What is exported: a classifier of any method, which has been fitted or loaded."""

    method: ClassVar[str]
    predictor_: Predictor

    def model_facts(self, predictor: Predictor) -> ModelFacts:
        """The facts that a folder of this model contains, for one of its predictors."""
        ...


def export_onnx(
    classifier: FittedClassifier,
    folder: str | Path,
    *,
    int8: bool = False,
    second_look: bool = True,
) -> None:
    """Write the classifier so that ``cptuning.load`` needs no torch for it.

    The folder predicts, explains and takes new examples; it can't be trained further. ``int8``
    makes it faster. Texts whose two best classes are so close that rounding may decide are read
    again by the exact model, which the folder holds as well; without ``second_look`` the folder is
    about a third as large, and a label differs now and then. Every graph is compared with torch
    before it is written.
    """
    wanted = as_path(folder, "folder")
    predictor = classifier.predictor_
    if isinstance(predictor, RankingPredictor) and int8:
        raise CPTuningError(
            "A ranker can't be rounded to 8 bits: its order of close documents would change. "
            "Export it without int8."
        )
    if not isinstance(predictor, EmbeddingPredictor):
        raise CPTuningError(
            f"Only models of the method cp-tuning can be exported; this one is of the method "
            f"{classifier.method}."
        )
    inner = predictor.encoder
    inner = inner.encoder if isinstance(inner, SentenceEncoder) else inner
    if isinstance(inner, OnnxEncoder):
        raise CPTuningError("This model is exported already: export the folder it came from.")
    from cptuning.export.precisions import Reference, float_graph, int8_graph, int16_graph

    encoder = in_torch(inner)
    samples = calibration_samples(encoder.layout, predictor.support.examples)
    reference = Reference(encoder, samples)
    with new_folder(wanted) as place:
        graph = float_graph(reference)
        if int8:
            exact, graph = graph, int8_graph(graph, reference)
            if second_look:
                smaller = int16_graph(exact, reference)
                (place / EXACT_FILE).write_bytes(smaller.SerializeToString())
                found = reference.embeddings_by(graph)
                look = SecondLook(encoder, _clear_lead(predictor, reference.embeddings, found))
                predictor = replace(predictor, second_look=look)
        (place / ONNX_FILE).write_bytes(graph.SerializeToString())
        encoder.module.views.save(place)
        write_common(classifier.model_facts(predictor), predictor, place)


def in_torch(encoder: Encoder) -> "TextEncoder":
    """The encoder as a model of torch, from which a graph can be traced."""
    from cptuning.backbone import TextEncoder

    if isinstance(encoder, EmbeddedEncoder):
        return encoder.with_torch()
    assert isinstance(encoder, TextEncoder)
    return encoder


def _clear_lead(predictor: EmbeddingPredictor, expected: FloatArray, found: FloatArray) -> float:
    """The lead of the best class from which on rounding hardly ever decides.

    Measured on some examples: two standard deviations of the difference of two scores. A label of
    a label set leads its threshold, which rounding does not change.
    """
    if isinstance(predictor, MultiLabelPredictor):
        changes = predictor.scores(found) - predictor.scores(expected)
        return _CLEAR_DEVIATIONS * float(np.sqrt((changes**2).mean()))
    if predictor.inference == "knn":
        changes = (found - expected) @ predictor.support.embeddings.T
    else:
        changes = predictor.scores(found) - predictor.scores(expected)
    # A lead is the difference of two scores: its mean square is twice the variance of one.
    deviations = changes - changes.mean(axis=1, keepdims=True)
    variances = (deviations**2).sum(axis=1) / max(deviations.shape[1] - 1, 1)
    return _CLEAR_DEVIATIONS * float(np.sqrt(2 * variances.mean()))


def calibration_samples(layout: Layout, examples: Examples) -> list[Encoding]:
    """Some of the labelled examples, from first to last, and a long one made of them."""
    if not len(examples.known):  # The model was shared without its texts: any others will do.
        sample = "same_question_train" if examples.is_pair else "messages_train"
        examples = read_sample(sample).examples
    examples = examples.known
    rows = np.linspace(0, len(examples) - 1, min(len(examples), _SAMPLES)).astype(int)
    some = examples.take(rows)
    joined = Examples(
        (" ".join(some.first),), None if some.second is None else (" ".join(some.second),)
    )
    return all_windows([*layout.encode(some), *layout.encode(joined)])[0]

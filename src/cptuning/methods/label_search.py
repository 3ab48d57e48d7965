"""LM-BFF's Auto-L: words for the classes that the untrained model itself would say."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import log_softmax

from cptuning.backbone import TextEncoder
from cptuning.errors import CPTuningError
from cptuning.inference.support import IntArray
from cptuning.methods.training import LabelledExamples
from cptuning.prompting import Batch

FloatArray = NDArray[np.float32]


def search_words(
    encoder: TextEncoder,
    data: LabelledExamples,
    n_classes: int,
    *,
    words_per_class: int,
    combinations: int,
) -> list[tuple[str, ...]]:
    """Words of the classes, in their order; the most promising combinations first.

    For each class, the words that are the likeliest at the mask of its examples; of all
    combinations, those by which most training examples would be answered rightly untrained.
    """
    said = mask_log_probabilities(encoder, data)
    by_class = [
        _likeliest(said[data.labels == label].mean(axis=0), encoder, words_per_class)
        for label in range(n_classes)
    ]
    columns = sorted({token for tokens in by_class for token in tokens})
    place = {token: i for i, token in enumerate(columns)}
    choices = [[place[token] for token in tokens] for tokens in by_class]
    ranked = best_combinations(said[:, columns], data.labels, choices, most=combinations)
    if len(ranked) == 0:
        raise CPTuningError(
            f"There are no different words for the {n_classes} classes among the "
            f"{words_per_class} likeliest of each: raise words_per_class."
        )
    text = {i: word_of(token, encoder) for token, i in place.items()}
    return [tuple(str(text[i]) for i in row) for row in ranked.tolist()]


def mask_log_probabilities(encoder: TextEncoder, data: LabelledExamples) -> FloatArray:
    """The log-probabilities at the mask: one row per example, one column per token."""

    def said(batch: Batch) -> torch.Tensor:
        return log_softmax(encoder.module.decode(encoder.module.at_outputs(batch)[1]).float(), -1)

    found = encoder.in_batches(encoder.layout.encode(data.examples), said)
    return np.asarray(found.cpu().numpy())


def _likeliest(log_probabilities: FloatArray, encoder: TextEncoder, count: int) -> list[int]:
    """The likeliest tokens that are whole words."""
    found: list[int] = []
    for token in np.argsort(-log_probabilities, kind="stable"):
        if word_of(int(token), encoder) is not None:
            found.append(int(token))
            if len(found) == count:
                break
    return found


def word_of(token: int, encoder: TextEncoder) -> str | None:
    """The word that a token is by itself; None if it is only a part of one."""
    if token >= len(encoder.backbone.tokenizer):
        return None
    text = str(encoder.backbone.tokenizer.decode([token])).strip()
    return text if text.isalpha() and encoder.layout.token_ids(text) == [token] else None


def some_words(encoder: TextEncoder) -> Iterator[str]:
    """Any words of the vocabulary, to measure the time of a training with."""
    for token in range(len(encoder.backbone.tokenizer)):
        word = word_of(token, encoder)
        if word is not None:
            yield word


def best_combinations(
    said: FloatArray, labels: IntArray, choices: Sequence[Sequence[int]], most: int
) -> IntArray:
    """Columns of ``said``, one per class and none twice, the most accurate combinations first.

    With few classes all combinations are compared. Their number explodes with the classes, so
    they grow class by class, and only as many go on as keep ``most`` to be compared at once.
    Equally accurate ones are ranked by the likelihood of the labels.

    >>> said = np.log(np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], dtype=np.float32))
    >>> best_combinations(said, np.array([0, 1]), [[0, 1], [1, 2]], most=10).tolist()
    [[0, 2], [0, 1], [1, 2]]
    """
    chosen = np.zeros((1, 0), dtype=np.int64)
    for label, columns in enumerate(choices):
        chosen = chosen[: max(1, most // max(1, len(columns)))]
        grown = np.column_stack(
            [np.repeat(chosen, len(columns), axis=0), np.tile(np.array(columns, int), len(chosen))]
        )
        chosen = grown[(grown[:, :-1] != grown[:, -1:]).all(axis=1)]
        known = labels <= label
        chosen = chosen[_ranking(said[known], labels[known], chosen)]
    return chosen


def _ranking(said: FloatArray, labels: IntArray, chosen: IntArray) -> IntArray:
    """The order of combinations by accuracy, then by likelihood."""
    accuracy = np.zeros(len(chosen))
    likelihood = np.zeros(len(chosen))
    for scores, label in zip(said, labels, strict=True):  # an example at a time: little memory
        logits = scores[chosen]
        right = logits[:, label]
        accuracy += logits.argmax(axis=1) == label
        largest = logits.max(axis=1)
        likelihood += right - largest - np.log(np.exp(logits - largest[:, None]).sum(axis=1))
    return np.lexsort((-likelihood, -accuracy))

"""The scores of types for words by labelled words, and the choice among ways to compute them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cptuning.data.tag_schemes import WordSpan
from cptuning.errors import CPTuningError
from cptuning.inference.calibration import fit_temperature, softmax
from cptuning.inference.closed_form import DiscriminantAnalysis
from cptuning.inference.tag_decoding import Transitions, spans_from, viterbi

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]
Matrix = NDArray[np.float64]

WordInference = Literal["prototype", "neighbours", "lda"]
WORD_INFERENCES: tuple[WordInference, ...] = get_args(WordInference)

SHAPE_WEIGHTS = (0.0, 0.3, 0.6)
"""What the weight of how words are written is chosen from."""
_SHRINKAGES = (0.9, 0.75, 0.5, 0.25)
_TRANSITION_WEIGHTS = (0.5, 1.0)
_COOLING = (1.0, 0.5)
# The ways to compare words that are refined by the numbers above.
_MOST_REFINED = 3
_OUTSIDE_BIASES = (0.0, 1.0, 2.0, -1.0)
# Sentences are left out one by one, or in so many parts if there are more.
_MOST_PARTS = 20
_LEAST_PROBABILITY = 1e-9


@dataclass(frozen=True)
class WordAnswer:
    """How the labelled words are compared with others, and how sure that makes one.

    "prototype" is the nearest mean of a type's words, "neighbours" the nearest word, as in
    StructShot, and "lda" linear discriminant analysis. Words without a span are a type, too.
    """

    inference: WordInference
    shrinkage: float = 1.0
    """Of the analysis; 1 makes it the nearest mean."""
    shape_weight: float = 0.0
    """What the writing of words counts beside their unit vector."""
    temperature: float = 0.1
    transition_weight: float = 0.5
    outside_bias: float = 0.0
    """What is added to the log-probability of no span."""

    def joined(self, vectors: FloatArray, shapes: FloatArray) -> FloatArray:
        """The unit vectors of words with how the words are written."""
        if not self.shape_weight:
            return vectors
        return np.concatenate([vectors, np.float32(self.shape_weight) * shapes], axis=1)


class WordScores:
    """Scores of types, of which 0 is no span, by labelled words.

    >>> vectors, labels = np.eye(2, dtype=np.float32)[[0, 0, 1, 1]], np.array([0, 0, 1, 1])
    >>> scores = WordScores(vectors, labels, 3)  # There is no word of the type 2.
    >>> scores.of(WordAnswer("neighbours"), vectors[:1]).tolist()
    [[1.0, 0.0, -1.0]]
    """

    def __init__(self, vectors: FloatArray, labels: IntArray, n_labels: int) -> None:
        self._vectors, self._labels, self._n_labels = vectors, labels, n_labels
        self._analysis: DiscriminantAnalysis | None = None

    def of(self, answer: WordAnswer, queries: FloatArray) -> Matrix:
        """One row per query, one column per type."""
        if answer.inference == "neighbours":
            similar = queries @ self._vectors.T
            columns = [self._labels == label for label in range(self._n_labels)]
            best = [similar[:, c].max(axis=1, initial=-1.0) for c in columns]
            return np.stack(best, axis=1).astype(np.float64)
        if self._analysis is None:
            self._analysis = DiscriminantAnalysis(self._vectors, self._labels)
        found = self._analysis.discriminants(answer.shrinkage).for_classes(self._n_labels)
        return found.scores(queries)


@dataclass(frozen=True)
class LabelledWords:
    """The words of sentences: their vectors, how they are written, and the type of each."""

    vectors: FloatArray
    shapes: FloatArray
    labels: IntArray
    sentences: IntArray
    """The number of the sentence of each word."""

    def take(self, chosen: NDArray[np.bool_]) -> "LabelledWords":
        """Some of them."""
        return LabelledWords(
            self.vectors[chosen], self.shapes[chosen], self.labels[chosen], self.sentences[chosen]
        )

    def scores(self, answer: WordAnswer, n_labels: int) -> WordScores:
        """What answers by these words."""
        return WordScores(answer.joined(self.vectors, self.shapes), self.labels, n_labels)


def emissions(scores: Matrix, answer: WordAnswer) -> Matrix:
    """Log-probabilities of O, and B and I of each type, from the scores of types."""
    probabilities = softmax(scores, answer.temperature)
    logs = np.log(np.maximum(probabilities, _LEAST_PROBABILITY))
    logs[:, 0] += answer.outside_bias
    return np.asarray(logs[:, np.r_[0, np.repeat(np.arange(1, scores.shape[1]), 2)]])


def decoded(
    scores: Sequence[Matrix], transitions: Transitions, answer: WordAnswer, types: Sequence[str]
) -> list[list[WordSpan]]:
    """The spans of sentences, from the scores of their words."""
    first, after = transitions.scores(len(types))
    weight = answer.transition_weight
    tags = viterbi([emissions(one, answer) for one in scores], weight * first, weight * after)
    return [spans_from(one, types) for one in tags]


@dataclass(frozen=True)
class HeldOutSpans:
    """The spans that were found in sentences which the model had not seen."""

    truth: tuple[tuple[WordSpan, ...], ...]
    found: tuple[tuple[WordSpan, ...], ...]

    @property
    def counts(self) -> IntArray:
        """For each sentence how many spans are right, there and found."""
        rows = [
            (len(set(truth) & set(found)), len(truth), len(found))
            for truth, found in zip(self.truth, self.found, strict=True)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    @property
    def f1(self) -> float:
        """F1 over all spans; 0 if there are none."""
        return float(_f1(self.counts.sum(axis=0)[None])[0])

    def is_clearly_better_than(self, other: "HeldOutSpans") -> bool:
        """Whether F1 is higher by more than a standard error, of a jackknife over sentences."""
        mine, others = self.counts, other.counts
        n = len(mine)
        without = _f1(mine.sum(axis=0) - mine) - _f1(others.sum(axis=0) - others)
        error = np.sqrt((n - 1) / max(n, 1) * ((without - without.mean()) ** 2).sum())
        return bool(self.f1 - other.f1 > error)


def _f1(counts: IntArray) -> Matrix:
    """F1 of rows of how many spans are right, there and found."""
    return np.asarray(2 * counts[:, 0] / np.maximum(counts[:, 1] + counts[:, 2], 1))


Fold = tuple[LabelledWords, LabelledWords]
"""Words to answer by, and words of other sentences to answer."""


_Tried = tuple[WordAnswer, HeldOutSpans, Sequence[Matrix]]


def left_out_folds(words: LabelledWords, n_sentences: int) -> list[Fold]:
    """Each sentence by the words of all others; with many sentences, parts of them."""
    part = words.sentences % _MOST_PARTS if n_sentences > _MOST_PARTS else words.sentences
    parts = np.unique(part)
    if len(parts) < 2:
        return []
    return [(words.take(part != one), words.take(part == one)) for one in parts]


def chosen_answer(
    folds: Sequence[Fold],
    truth: Sequence[Sequence[WordSpan]],
    types: Sequence[str],
    transitions: Transitions,
    inferences: Sequence[WordInference] = WORD_INFERENCES,
    shape_weights: Sequence[float] = SHAPE_WEIGHTS,
) -> tuple[WordAnswer, HeldOutSpans]:
    """The way to answer that finds the left-out spans best, and what it found.

    First the ways to compare words are tried, then the best of them with other temperatures and
    weights. The best of several is a little optimistic. Of equally good ones it is the
    first.
    """
    if not folds:
        raise CPTuningError("There is nothing to choose by: give at least two sentences.")
    n_labels = 1 + len(types)
    labels = np.concatenate([away.labels for _, away in folds])
    known = np.concatenate([np.isin(away.labels, rest.labels) for rest, away in folds])
    counts = np.bincount(labels[known], minlength=n_labels)
    # All types count the same, as many words as O has; types that are in no other sentence, none.
    weights = known / np.maximum(counts[labels], 1) if known.any() else None

    def tried(scores: Sequence[Matrix], answer: WordAnswer) -> _Tried:
        spans = decoded(scores, transitions, answer, types)
        return answer, HeldOutSpans(tuple(map(tuple, truth)), tuple(map(tuple, spans))), scores

    first: list[_Tried] = []
    for shape_weight in shape_weights:
        any_answer = WordAnswer("lda", shape_weight=shape_weight)
        fits = [rest.scores(any_answer, n_labels) for rest, _ in folds]
        queries = [any_answer.joined(away.vectors, away.shapes) for _, away in folds]
        for answer in _candidates(inferences, shape_weight):
            found = [fit.of(answer, rows) for fit, rows in zip(fits, queries, strict=True)]
            temperature = fit_temperature(np.concatenate(found), labels, weights)
            by_sentence = _by_sentence(found, folds, len(truth), n_labels)
            first.append(tried(by_sentence, replace(answer, temperature=temperature)))
    best: _Tried | None = None
    first.sort(key=lambda trial: -trial[1].f1)
    for answer, _, scores in first[:_MOST_REFINED]:
        for factor, weight, bias in product(_COOLING, _TRANSITION_WEIGHTS, _OUTSIDE_BIASES):
            refined = replace(
                answer,
                temperature=factor * answer.temperature,
                transition_weight=weight,
                outside_bias=bias,
            )
            trial = tried(scores, refined)
            if best is None or trial[1].f1 > best[1].f1:
                best = trial
    assert best is not None
    return best[:2]


def _by_sentence(
    found: Sequence[Matrix], folds: Sequence[Fold], n: int, n_labels: int
) -> list[Matrix]:
    """The scores of the words that were left out, sentence by sentence."""
    scores = [np.empty((0, n_labels))] * n
    for rows, (_, away) in zip(found, folds, strict=True):
        for number in np.unique(away.sentences).tolist():
            scores[number] = rows[away.sentences == number]
    return scores


def _candidates(inferences: Sequence[WordInference], shape_weight: float) -> list[WordAnswer]:
    """The ways to answer with one weight of the writing."""
    found = []
    for inference in inferences:
        shrinkages = _SHRINKAGES if inference == "lda" else (1.0,)
        found += [WordAnswer(inference, s, shape_weight) for s in shrinkages]
    return found

"""Labels that are probably wrong, by the answers of a model that has not seen them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cptuning.data import LabelSpace, stratified_sample
from cptuning.inference import SupportSet, softmax
from cptuning.inference.leave_one_out import MOST_ANSWERS
from cptuning.inference.scoring import Scores
from cptuning.inference.support import IntArray
from cptuning.methods.evaluation_log import HeldOut

LIKELY = 0.5
"""A label is reported if it is wrong with at least this probability."""

# Before the labels are seen, so many imagined ones speak for this share of errors.
_PRIOR_SHARE, _PRIOR_LABELS = 0.1, 50
# What the temperature and the share of errors are chosen from.
_TEMPERATURES = np.geomspace(1e-3, 10.0, 80)
_SHARES = np.geomspace(1e-3, 0.5, 40)
_TINY = 1e-12
_NEAREST = 2


@dataclass(frozen=True)
class LabelError:
    """A row whose label is probably wrong."""

    row: int
    label: Hashable
    suggestion: Hashable
    """The label that the model answers."""
    probability: float
    """The probability that the label is wrong."""
    nearest: tuple[int, ...]
    """The nearest rows that have the suggested label."""


@dataclass(frozen=True)
class ErrorEstimate:
    """How probable it is that each label is wrong, and how many are wrong in all.

    A label is taken to be right with probability 1 - ε, and else to be any of the other classes,
    each as likely. If p is the probability of the label by the answer of a model that has not seen
    it, and K the number of classes, the label is wrong with the probability

        ε (1 - p) / (K - 1)  /  [(1 - ε) p + ε (1 - p) / (K - 1)].

    The denominator is the likelihood of the label. The share ε, and the temperature of the model's
    answers, maximise the product over all labels; a Beta distribution of mean 0.1 that counts as
    much as 50 labels keeps ε sensible if there are only a few.
    """

    probabilities: Scores
    share: float
    """The estimated share of wrong labels."""
    temperature: float

    @classmethod
    def of(cls, scores: Scores, labels: IntArray) -> "ErrorEstimate":
        """The estimate from class scores, each of a model that has not seen the row.

        >>> scores = np.eye(2)[[0] * 20 + [1] * 20]
        >>> labels = np.array([0] * 20 + [1] * 19 + [0])
        >>> estimate = ErrorEstimate.of(scores, labels)
        >>> np.flatnonzero(estimate.probabilities > 0.5).tolist()
        [39]
        """
        sample = stratified_sample(labels, MOST_ANSWERS, seed=0)
        best = -np.inf, 1.0, _PRIOR_SHARE
        for temperature in _TEMPERATURES:
            right, wrong = _likelihoods(scores[sample], labels[sample], temperature)
            mixed = np.log((1 - _SHARES) * right[:, None] + _SHARES * wrong[:, None]).sum(axis=0)
            mixed += _PRIOR_LABELS * _PRIOR_SHARE * np.log(_SHARES)
            mixed += _PRIOR_LABELS * (1 - _PRIOR_SHARE) * np.log(1 - _SHARES)
            place = int(mixed.argmax())
            best = max(best, (float(mixed[place]), float(temperature), float(_SHARES[place])))
        _, temperature, share = best
        right, wrong = _likelihoods(scores, labels, temperature)
        probabilities = share * wrong / (share * wrong + (1 - share) * right)
        return cls(probabilities, share, temperature)


def _likelihoods(scores: Scores, labels: IntArray, temperature: float) -> tuple[Scores, Scores]:
    """The probability of each label if it is right, and if it is wrong."""
    own = softmax(scores, temperature)[np.arange(len(labels)), labels]
    own = np.maximum(own, _TINY)
    return own, np.maximum(1 - own, _TINY) / max(scores.shape[1] - 1, 1)


def label_errors(
    scores: Scores, rows: IntArray, support: SupportSet, label_space: LabelSpace
) -> tuple[list[LabelError], ErrorEstimate]:
    """The labels that are probably wrong, the most probable ones first, and the whole estimate.

    ``scores`` are the answers to ``rows`` of the labelled examples ``support``, each by a model
    that has not seen the row.
    """
    labels = support.labels[rows]
    estimate = ErrorEstimate.of(scores, labels)
    answers = scores.argmax(axis=1)
    is_likely = (estimate.probabilities >= LIKELY) & (answers != labels)
    listed = np.flatnonzero(is_likely)
    found = []
    for place in listed[np.argsort(-estimate.probabilities[listed], kind="stable")]:
        row, answer = int(rows[place]), int(answers[place])
        found.append(
            LabelError(
                row,
                label=label_space.classes[labels[place]],
                suggestion=label_space.classes[answer],
                probability=float(estimate.probabilities[place]),
                nearest=_nearest_of(answer, row, support),
            )
        )
    return found, estimate


def _nearest_of(answer: int, row: int, support: SupportSet) -> tuple[int, ...]:
    members = np.flatnonzero(support.labels == answer)
    places, _ = support.take(members).nearest(support.embeddings[row][None], _NEAREST)
    nearest: Any = members[places[0]].tolist()
    return tuple(nearest)


@dataclass(frozen=True)
class WrongInSet:
    """A label that a row has and probably should not have, or the other way round."""

    row: int
    """Among the held-out rows."""
    label: Hashable
    is_given: bool
    """Whether the row has the label."""
    probability: float
    """The probability that this is wrong."""


def label_set_errors(held_out: HeldOut, classes: Sequence[Hashable]) -> list[WrongInSet]:
    """The labels that are probably missing or wrong, the most probable ones first.

    Each label of each row is a task of two classes, to have it or not. Its score is its calibrated
    log-odds by the answer of a model that has not seen the row, and :class:`ErrorEstimate` is that
    of all of them together.
    """
    calibration, labels = held_out.calibration, held_out.labels
    logits = held_out.scores / calibration.temperature - calibration.biases
    binary = np.stack([np.zeros(logits.size), logits.ravel()], axis=1)
    probabilities = ErrorEstimate.of(binary, labels.ravel()).probabilities
    is_likely = (probabilities >= LIKELY) & ((logits.ravel() > 0) != (labels.ravel() == 1))
    listed = np.flatnonzero(is_likely)
    order = listed[np.argsort(-probabilities[listed], kind="stable")]
    return [
        WrongInSet(
            int(place // labels.shape[1]),
            classes[place % labels.shape[1]],
            bool(labels.ravel()[place]),
            float(probabilities[place]),
        )
        for place in order.tolist()
    ]

"""The choice among embeddings by leave-one-out, and answers that are honest about the choice."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cptuning.data import strata, stratified_folds, stratified_sample
from cptuning.inference.closed_form import DiscriminantAnalysis, Flags, Floats
from cptuning.inference.label_regression import LabelRegression
from cptuning.inference.leave_one_out import MOST_ANSWERS, nearly_best

if TYPE_CHECKING:
    from cptuning.inference.scoring import Scores
    from cptuning.inference.support import FloatArray, IntArray

SENTENCE_WEIGHTS = (1.0, 2.0, 0.5, 4.0)
"""What the weight of the sentence view is chosen from, the preferred one first."""

DESCRIPTION_WEIGHTS = (2.0, 4.0, 0.0, 0.5, 1.0)
"""What the weight of labels' descriptions is chosen from."""

PREFERRED_WEIGHTS = 2
"""So many of the first ones are preferred to a better one that is not clearly better.

A handful of examples can't tell weights apart, and these are the best on most sets.
"""

Analysis = DiscriminantAnalysis | LabelRegression

_FOLDS = 5
# Log-losses that differ by less differ by rounding: embeddings are of single precision.
_SAME_LOSS = 1e-6


class LeaveOneOut:
    """The choice of a candidate and its shrinkage, and how well new texts would be answered.

    The candidates are analyses of different embeddings of the same rows, the preferred one first.
    The one with the least log-loss is chosen, each judged by its leave-one-out answers at its best
    shrinkage and temperature; of equally good ones, the first. With some ``preferred`` groups it is
    the best candidate of the first of them that has one within a standard error of the best of all,
    in its log-loss and in its errors, if there is one: what few answers can't tell apart is not
    left to chance. A group are as many candidates as ``group_size`` says, which stand together; the
    preferred ones are the first.

    The least of several losses is optimistic, even if no candidate is better than the
    others. So a row is answered by the choice of a fit without it. It would not do to leave out
    just its own loss: its label also counts in the answers to the other rows. One such fit per row
    would be slow; there is one for each of five folds.

    >>> rows, labels = np.array([[0.8, 0.6], [0.8, -0.6], [0.6, 0.8], [0.6, -0.8]]), [0, 0, 1, 1]
    >>> columns = rows[:, 1:], rows[:, :1]  # The second one tells the classes apart.
    >>> LeaveOneOut([DiscriminantAnalysis(x, np.array(labels)) for x in columns]).candidate
    1
    """

    def __init__(
        self, analyses: "Sequence[Analysis]", *, group_size: int = 1, preferred: int = 0
    ) -> None:
        self._analyses = analyses
        self._groups = group_size, preferred
        self.candidate, self.shrinkage = _choice(analyses, *self._groups)

    @property
    def rows(self) -> "IntArray":
        """The rows that are answered: all but those that are alone in their class."""
        return self._analyses[self.candidate].left_out

    def scores(self) -> "Scores":
        """The class scores of ``rows``.

        Each row is answered by a fit to all others, of the candidate and with the shrinkage that
        were chosen without its fold. With more than 2048 rows a sample of them is split into
        folds, and the choice by all answers the rest. Scores of different choices are brought to
        the temperature of the choice by all.
        """
        n = len(self._analyses[0].labels)
        candidates, shrinkages = np.full(n, self.candidate), np.full(n, self.shrinkage)
        for away, rest in self._folds():
            parts = [analysis.restricted(rest) for analysis in self._analyses]
            candidates[away], shrinkages[away] = _choice(parts, *self._groups)
        candidates, shrinkages = candidates[self.rows], shrinkages[self.rows]
        scores = np.empty((len(self.rows), self._analyses[0].n_classes))
        final = self._temperature(self.candidate, self.shrinkage)
        for candidate, shrinkage in set(zip(candidates.tolist(), shrinkages.tolist(), strict=True)):
            chosen = (candidates == candidate) & (shrinkages == shrinkage)
            found = self._analyses[candidate].leave_one_out(shrinkage, self.rows[chosen])
            scores[chosen] = found * (final / self._temperature(candidate, shrinkage))
        return scores

    def _temperature(self, candidate: int, shrinkage: float) -> float:
        return self._analyses[candidate].trials[shrinkage].temperature

    def _folds(self) -> "list[tuple[IntArray, IntArray]]":
        """The rows that a fold leaves out, and all others."""
        labels = strata(self._analyses[0].labels)
        if len(self.rows) == 0:
            return []
        never_left_out = np.setdiff1d(np.arange(len(labels)), self.rows)
        sample = np.union1d(stratified_sample(labels, MOST_ANSWERS, seed=0), never_left_out)
        n_folds = min(_FOLDS, len(sample))
        folds = stratified_folds(labels[sample], n_folds, seed=0)
        # A row that is alone in its class is not answered, and its class would be missed.
        folds[~np.isin(sample, self.rows)] = n_folds
        return [(sample[folds == fold], sample[folds != fold]) for fold in range(n_folds)]


def analysis_of(
    embeddings: "FloatArray",
    labels: "IntArray",
    weights: "Floats | None" = None,
    is_description: "Flags | None" = None,
) -> Analysis:
    """What answers in closed form: LDA for classes, ridge regression for a matrix of label sets."""
    if labels.ndim == 2:
        return LabelRegression(embeddings, labels, weights)
    return DiscriminantAnalysis(embeddings, labels, weights, is_description)


def _choice(analyses: Sequence[Analysis], group_size: int, preferred: int) -> tuple[int, float]:
    """The number and the shrinkage of the analysis that is chosen."""
    losses = np.array([analysis.least_loss for analysis in analyses])
    numbers = [
        start + _first_of_the_least(losses[start : start + group_size])
        for start in range(0, group_size * preferred, group_size)
    ]
    numbers.append(_first_of_the_least(losses))
    candidate = numbers[-1]
    if preferred and len(analyses[0].left_out):
        good = np.flatnonzero(nearly_best([analyses[number].best for number in numbers]))
        candidate = numbers[good[0]] if len(good) else candidate
    return candidate, analyses[candidate].shrinkage


def _first_of_the_least(losses: "Floats") -> int:
    """The first of those that are equally good, up to rounding."""
    return int((losses <= losses.min() + _SAME_LOSS).argmax())


def choice_of_weights(
    embeddings: "Sequence[FloatArray]",
    labels: "IntArray",
    weights: "Sequence[Floats | None]" = (None,),
    is_description: "Flags | None" = None,
    preferred: int = 0,
) -> LeaveOneOut:
    """The choice, by leave-one-out, among embeddings of the same rows and weights of these rows.

    The candidates are every embedding with the first weights, then with the next ones. Some of the
    first weights may be ``preferred`` to others that are not better by more than a standard error.
    """
    return LeaveOneOut(
        [analysis_of(one, labels, w, is_description) for w in weights for one in embeddings],
        group_size=len(embeddings),
        preferred=preferred,
    )

"""Which answers are sure enough that, with a known risk, at most a given share of them is wrong."""

import re
from dataclasses import dataclass
from math import ceil, log, log1p

import numpy as np
from numpy.typing import NDArray

from cptuning.errors import CPTuningError

CERTAINTY = 0.9
"""How probable it is that a target is met."""

_TARGET = re.compile(r"\s*error\s*<=\s*(\d*\.?\d+)\s*(%?)\s*")
# The first threshold answers this share of the examples; each further one, so many more.
_FIRST, _STEP = 3, 20
_NOTHING = 1.0


def error_target(target: object) -> float | None:
    """The share of wrong answers in a target such as "error<=0.05"; None for anything else.

    >>> error_target("error<=0.05"), error_target("error <= 5 %"), error_target("auto")
    (0.05, 0.05, None)
    >>> error_target("error<=1.5")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: 'error<=1.5' can't be a target: the share of wrong answers ...
    """
    found = _TARGET.fullmatch(target) if isinstance(target, str) else None
    if found is None:
        return None
    share = float(found[1]) / (100 if found[2] else 1)
    if not 0 < share < 1:
        raise CPTuningError(
            f"{target!r} can't be a target: the share of wrong answers must be between 0 and 1, "
            'as in "error<=0.05".'
        )
    return share


@dataclass(frozen=True)
class Rejection:
    """A threshold of the confidence, and the held-out answers that it rests on.

    A text is answered if its confidence is *above* the threshold. If no threshold meets the
    target, it is 1, and nothing is answered.
    """

    target: float
    """The largest share of wrong answers."""
    threshold: float
    held_out: int
    """How many held-out examples there were."""
    answered: int
    """How many of them are answered."""
    wrong: int
    """How many of these answers are wrong."""

    @property
    def upper_bound(self) -> float:
        """The exact upper confidence bound of the error (Clopper and Pearson); 1 without answers.

        >>> round(Rejection(0.05, 0.7, held_out=100, answered=60, wrong=0).upper_bound, 4)
        0.0376
        """
        if self.answered == 0:
            return 1.0
        from scipy.special import betaincinv  # type: ignore[import-untyped]  # Comes with scikit-learn.

        right = self.answered - self.wrong
        return float(betaincinv(self.wrong + 1, right, CERTAINTY)) if right else 1.0

    def sentence(self) -> str:
        """The guarantee, or why there is none.

        >>> print(Rejection(0.05, 1.0, held_out=32, answered=0, wrong=0).sentence())
        At most 5 % errors can't be promised from 32 held-out answers, it takes at least 45: every
        text will be answered "unknown".
        >>> print(Rejection(0.05, 0.7, held_out=96, answered=60, wrong=0).sentence())
        At most 5 % of the answers are wrong, with 90 % certainty: 60 of 96 held-out examples are
        answered, 0 of them wrongly.
        """
        share = f"At most {100 * self.target:g} %"
        if self.answered:
            return (
                f"{share} of the answers are wrong, with {100 * CERTAINTY:g} % certainty: "
                f"{self.answered} of {self.held_out} held-out examples are answered, "
                f"{self.wrong} of them wrongly."
            )
        why = f"from {self.held_out} held-out answers"
        needed = least_answers(self.target)
        why += (
            f", it takes at least {needed}"
            if self.held_out < needed
            else ", too many of the surest are wrong"
        )
        return f'{share} errors can\'t be promised {why}: every text will be answered "unknown".'


def rejection(
    confidence: NDArray[np.floating], right: NDArray[np.bool_], target: float
) -> Rejection:
    """The lowest threshold of the confidence above which at most ``target`` of the answers fail.

    Thresholds are tested from strict to loose, and the last one before the first failure is
    taken: *fixed-sequence testing*, as in "Learn then Test" (Angelopoulos et al., 2021), so that
    no correction is needed for having tested many. The first one answers a third of the held-out
    examples, or as many as it takes for a test to succeed; each further one a twentieth more. The
    t-th highest confidence as a threshold answers m texts, e of them wrongly. It passes if

        P(Binomial(m, target) <= e) <= 1 - certainty,

    which says the same as that the Clopper-Pearson bound of the error is at most the target.

    >>> rejection(np.linspace(1, 0, 101), np.linspace(1, 0, 101) > 0.19, 0.05).answered
    80
    """
    from scipy.special import bdtr

    n = len(confidence)
    ordered = -np.sort(-confidence)
    errors = np.cumsum(~right[np.argsort(-confidence, kind="stable")])
    best = Rejection(target, _NOTHING, n, answered=0, wrong=0)
    first = max(least_answers(target), n // _FIRST)
    for rank in [*range(first, n, max(1, n // _STEP)), n] if first <= n else ():
        threshold = float(ordered[rank]) if rank < n else 0.0
        answered = int((ordered > threshold).sum())
        if answered == 0:  # All so far are equally sure.
            continue
        wrong = int(errors[answered - 1])
        if bdtr(wrong, answered, target) > 1 - CERTAINTY:
            break
        best = Rejection(target, threshold, n, answered, wrong)
    return best


def least_answers(target: float) -> int:
    """How many answers, all of them right, show that at most this share is wrong.

    >>> least_answers(0.05), least_answers(0.2)
    (45, 11)
    """
    return ceil(log(1 - CERTAINTY) / log1p(-target))

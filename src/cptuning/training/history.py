"""How good the weights were on held-out examples, step by step, and which of them are kept."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Score:
    """How good the weights are on held-out examples; accuracy decides, then the log-loss."""

    accuracy: float
    negative_log_loss: float
    examples: int = field(default=0, compare=False)
    """How many were answered; 0 means that it is not known."""

    @property
    def error(self) -> float:
        """The standard error of the accuracy; a little above zero even if all are right.

        >>> round(Score(0.75, -0.5, examples=32).error, 3)
        0.078
        """
        if self.examples == 0:
            return 0.0
        share = (self.accuracy * self.examples + 1) / (self.examples + 2)
        return math.sqrt(share * (1 - share) / self.examples)


@dataclass
class History:
    """The scores by step, and the step whose weights were kept."""

    scores: dict[int, Score] = field(default_factory=dict)
    best_step: int = 0
    last_step: int = 0

    @property
    def best(self) -> Score | None:
        """The score of the weights that were kept."""
        return self.scores.get(self.best_step)


def kept_step(scores: Mapping[int, Score], last: int, selection: str) -> int:
    """The step whose weights are kept: the best one, and of equally good ones the first.

    With "one-standard-error" it is the last one unless the best is better by more than that.

    >>> scores = {0: Score(0.81, -0.5, 32), 20: Score(0.78, -0.4, 32)}
    >>> [kept_step(scores, 20, how) for how in ("best", "one-standard-error")]
    [0, 20]
    """
    best = max(scores, key=lambda step: (scores[step], -step))
    if selection == "one-standard-error" and last in scores:
        lost = scores[best].accuracy - scores[last].accuracy
        return last if lost <= scores[best].error else best
    return best

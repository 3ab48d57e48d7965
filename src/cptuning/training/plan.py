"""How long, how fast and how carefully to train: the settings of the loop."""

from dataclasses import dataclass
from typing import Literal

Selection = Literal["best", "one-standard-error"]


@dataclass(frozen=True)
class TrainingPlan:
    """The loop's settings; the presets fill them in."""

    steps: int
    learning_rate: float
    optimizer: Literal["adam", "adamw"]
    weight_decay: float
    warmup: float
    """The share of the steps over which the learning rate rises from zero."""
    clip_norm: float
    """The longest gradient; 0: any."""
    accumulate: int
    """How many batches one step of the optimiser sees."""
    evaluate_every: int
    patience: int
    """Stop after so many evaluations without a better one; 0: never."""
    precision: Literal["auto", "float32", "bfloat16"]
    seed: int
    selection: Selection = "best"
    """Keep the best weights, or the last unless the best are better by a standard error."""
    replay: bool = True
    """Whether a GPU may record steps and replay them."""

    def rate(self, step: int) -> float:
        """The learning rate of a step as a share of the peak: a linear rise, a linear fall.

        >>> plan = TrainingPlan(steps=10, learning_rate=1.0, optimizer="adam", weight_decay=0,
        ...     warmup=0.2, clip_norm=1, accumulate=1, evaluate_every=5, patience=0,
        ...     precision="float32", seed=0)
        >>> [plan.rate(step) for step in (0, 1, 2, 6, 9)]
        [0.5, 1.0, 1.0, 0.5, 0.125]
        """
        rising = round(self.warmup * self.steps)
        if step < rising:
            return (step + 1) / rising
        return (self.steps - step) / max(1, self.steps - rising)

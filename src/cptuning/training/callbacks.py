"""Callbacks that follow a run: a progress bar, a logger, a user's own object."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from cptuning.training.history import Score


class Callback:
    """Is notified of every event in a fit; the methods of this base class do nothing.

    Subclass it and override what you need. A fit may consist of several trainings: those of
    cross-fitting, of candidates or patterns, and the last one.

    >>> class Losses(Callback):
    ...     def on_step(self, step, losses):
    ...         print(step, float(losses["loss"]))
    """

    def on_search(self, what: str, done: int, last: int) -> None:
        """A search before the trainings is at ``done`` of at most ``last``; ``on_end`` follows."""

    def on_instant(self, score: "Score") -> None:
        """Held-out examples were answered without any training, which may follow."""

    def on_start(self, stage: str, step: int, last: int) -> None:
        """A training begins, at step 0 or at the step at which an earlier run was cut off."""

    def on_step(self, step: int, losses: "dict[str, Tensor]") -> None:
        """A step was made. The losses are tensors: reading one waits for the device."""

    def on_evaluate(self, step: int, score: "Score") -> None:
        """The weights after this many steps were evaluated on held-out examples."""

    def on_end(self, step: int) -> None:
        """A training or a search is over, or was interrupted."""

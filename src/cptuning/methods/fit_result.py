"""The result of a fit, of any kind of model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from cptuning.data import LabelSpace
from cptuning.inference import Predictor
from cptuning.inference.support import IntArray
from cptuning.methods.evaluation_log import HeldOut
from cptuning.prompting import Encoding, Layout
from cptuning.training import History


class FittedTask(Protocol):
    """The part of a task that a fitted model is made of."""

    @property
    def layout(self) -> Layout:
        """How texts are laid out."""
        ...

    @property
    def settings(self) -> Any:
        """The settings of the fit."""
        ...

    @property
    def encodings(self) -> Sequence[Encoding]:
        """The training examples as the model reads them."""
        ...

    def predictor(
        self, label_space: LabelSpace, temperature: float, unknown_threshold: float | None
    ) -> Predictor:
        """The model, ready to predict."""
        ...


T_co = TypeVar("T_co", bound=FittedTask, covariant=True)


@dataclass(frozen=True)
class FitResult(Generic[T_co]):
    """The result of a fit."""

    task: T_co
    """With the weights that were kept."""
    history: History
    held_out: HeldOut | None
    """Answers to dev examples, or to training examples, each by a model that had not seen it."""
    held_out_rows: IntArray | None = None
    """Which training examples they answer, if they do."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else a result must state: how much was searched, and what for."""

"""The settings that every method has, and how a preset is filled in and checked."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import ceil
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Self, TypeVar

from cptuning.errors import CPTuningError

# The budget of LM-BFF's protocol, which the paper follows.
_MOST_STEPS = 1000


@dataclass(frozen=True)
class TrainingSettings:
    """What the input looks like and how long, how fast and on what batches to train."""

    template: str
    max_length: int
    optimizer: Literal["adam", "adamw"]
    learning_rate: float
    weight_decay: float
    warmup: float
    clip_norm: float
    """The longest gradient; 0: any."""
    batch_size: int
    batches: Literal["uniform", "balanced"]
    accumulate: int
    steps: int
    epochs: int
    """At least so many passes over the examples, up to 1000 steps; 0: just ``steps``."""
    evaluate_every: int
    patience: int
    """Stop after so many evaluations without a better one; 0: never."""
    selection: Literal["best", "one-standard-error"]
    """Keep the weights that answered held-out examples best; or the last ones, unless the best are
    better by more than a standard error: few examples can't tell more from chance."""
    temperature: float
    """Of the probabilities, where no held-out examples tell a better one."""

    def scaled_to(self, n: int) -> Self:
        """The settings for n examples: where ``epochs`` asks for more steps, evaluations keep pace.

        >>> from cptuning.methods.settings import settings_for
        >>> settings = settings_for("paper", pair=False, steps=40, epochs=10, evaluate_every=5)
        >>> settings = settings.scaled_to(96)
        >>> settings.steps, settings.evaluate_every
        (60, 8)
        """
        wanted = min(_MOST_STEPS, ceil(self.epochs * n / (self.batch_size * self.accumulate)))
        if wanted <= self.steps:
            return self
        pace = round(self.evaluate_every * wanted / max(1, self.steps))
        return replace(self, steps=wanted, evaluate_every=pace)


AnySettings = TypeVar("AnySettings", bound=TrainingSettings)
# Pairs; single texts; and single texts of more than two classes, where a preset tells them apart.
Kind = Literal["pair", "single", "many"]
Presets = Mapping[str, Mapping[Kind, AnySettings]]


def resolve_preset(
    presets: Presets[AnySettings], preset: str, *, pair: bool, classes: int, **changes: Any
) -> AnySettings:
    """A preset's settings for such examples, with some of them changed."""
    if preset not in presets:
        raise CPTuningError(f"There is no preset {preset!r}: choose one of {', '.join(presets)}.")
    if "steps" in changes:  # Who names a number of steps means that number.
        changes.setdefault("epochs", 0)
    chosen = presets[preset]
    kind: Kind = "pair" if pair else "many" if classes > 2 and "many" in chosen else "single"
    settings = replace(chosen[kind], **changes)
    _check(settings)
    return settings


# What a setting must be at least; and, where a border itself is no choice, above it.
_AT_LEAST = {
    "max_length": 8,
    "batch_size": 2,
    "accumulate": 1,
    "steps": 0,
    "epochs": 0,
    "evaluate_every": 1,
    "patience": 0,
    "k": 1,
    "chunk_size": 0,
    "weight_decay": 0,
    "margin": 0,
    "clip_norm": 0,
    "n_templates": 0,
    "n_mappings": 0,
    "words_per_class": 1,
    "combinations": 1,
    "beam": 1,
    "template_tokens": 3,
    "demonstrations": 0,
    "candidate_steps": 0,
    "candidate_batch_size": 2,
    "distillation_steps": 1,
}
_ABOVE_ZERO = (
    "tau_n",
    "xi",
    "learning_rate",
    "prompt_learning_rate",
    "candidate_learning_rate",
    "temperature",
    "distillation_temperature",
    "similar_share",
)
_SHARES = (
    "contrastive_weight",
    "mlm_rate",
    "mlm_weight",
    "warmup",
    "similar_share",
    "frozen_share",
)

# What a value may be, and what to call it; the choices are checked by themselves.
_KINDS: dict[Any, tuple[type, str]] = {
    int: (Integral, "a whole number"),
    int | None: (Integral, "a whole number"),
    float: (Real, "a number"),
    float | None: (Real, "a number"),
    bool: (bool, "true or false"),
    str: (str, "a text"),
    str | None: (str, "a text"),
    dict[str, str] | None: (dict, "a word for each label, as in {'good': 'great', 'bad': 'dull'}"),
    tuple[str, ...]: (list | tuple, "a list of texts"),  # type: ignore[dict-item]
}


def _check(settings: TrainingSettings) -> None:
    """Refuse what can't work, in one sentence."""
    _check_kinds(settings)
    # A setting that is left open, or that the method does not have, needs no check.
    values = {name: value for name, value in vars(settings).items() if value is not None}
    for field in fields(settings):
        if getattr(field.type, "__origin__", None) is Literal:
            choices = field.type.__args__  # type: ignore[union-attr]
            if values[field.name] not in choices:
                listed = ", ".join(map(repr, choices))
                raise CPTuningError(
                    f"{field.name} is {values[field.name]!r}: choose one of {listed}."
                )
    for name, least in _AT_LEAST.items():
        if name in values and not values[name] >= least:
            raise CPTuningError(f"{name} is {values[name]}: it must be at least {least}.")
    for name in _ABOVE_ZERO:
        if name in values and not values[name] > 0:
            raise CPTuningError(f"{name} is {values[name]}: it must be above zero.")
    for name in _SHARES:
        if name in values and not 0 <= values[name] <= 1:
            raise CPTuningError(f"{name} is {values[name]}: it must be between 0 and 1.")


def _check_kinds(settings: TrainingSettings) -> None:
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.type not in _KINDS or (value is None and isinstance(field.type, UnionType)):
            continue
        kind, name = _KINDS[field.type]
        # True is a number to Python, and a slip to everybody else.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise CPTuningError(f"{field.name} is {value!r}: it must be {name}.")
        if isinstance(value, list | tuple) and not all(isinstance(one, str) for one in value):
            raise CPTuningError(f"{field.name} is {value!r}: it must be {name}.")

"""The settings that every method has: described, checked and resolved from presets in one place."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import ceil, isfinite
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Self, TypeVar

from cptuning.errors import CPTuningError

LARGEST_SEED = 2**32 - 1
"""The largest seed that numpy and scikit-learn take."""

# The largest whole number that a setting may be: no count of steps or tokens is larger.
_LARGEST_NUMBER = 2**31 - 1


def setting(
    description: str,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    default: Any = dataclasses.MISSING,
) -> Any:
    """A field of a settings class: what it means, and between which bounds it may be."""
    metadata = {"description": description, "least": least, "above": above, "most": most}
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class TrainingSettings:
    """What the input looks like, and how long, how fast and on what batches to train."""

    template: str = setting(
        "The prompt around a text {a} or a pair {a}, {b}; the model answers at [MASK] or [CLS]."
    )
    max_length: int = setting(
        "The maximum length of an input in tokens; longer texts are truncated.", least=8
    )
    optimizer: Literal["adam", "adamw"] = setting("The optimiser.")
    learning_rate: float = setting("The peak learning rate.", above=0)
    weight_decay: float = setting("The weight decay of AdamW; Adam has none.", least=0)
    warmup: float = setting(
        "The share of the steps over which the learning rate rises from zero; "
        "it falls to zero over the rest.",
        least=0,
        most=1,
    )
    clip_norm: float = setting(
        "Gradients with a larger norm are scaled down to it; 0 leaves them as they are.", least=0
    )
    batch_size: int = setting("The number of labelled examples in a batch.", least=2)
    batches: Literal["uniform", "balanced"] = setting(
        'How a batch is drawn: "uniform" takes every example equally often, "balanced" takes '
        "equally many of each class."
    )
    accumulate: int = setting(
        "The number of batches whose gradients are added up in one optimiser step.", least=1
    )
    steps: int = setting("The number of training steps; 0 leaves the model untrained.", least=0)
    epochs: int = setting(
        "The minimum number of passes over the examples; 0 means ``steps`` alone.", least=0
    )
    most_steps: int = setting("The maximum number of steps that ``epochs`` can result in.", least=0)
    evaluate_every: int = setting(
        "The number of steps between two evaluations on held-out examples.", least=1
    )
    patience: int = setting(
        "Stop after this many evaluations without improvement; 0 means never.", least=0
    )
    selection: Literal["best", "one-standard-error"] = setting(
        'Which weights are kept: "best" keeps those with the best answers to held-out examples; '
        '"one-standard-error" keeps the last ones unless the best are better by more than a '
        "standard error, since a few examples cannot show smaller differences."
    )
    temperature: float = setting(
        "The temperature of the probabilities if there are no held-out examples to fit it to.",
        above=0,
    )

    def scaled_to(self, n: int) -> Self:
        """The settings for n examples: if ``epochs`` asks for more steps, evaluations keep pace.

        >>> from cptuning.methods.cp_tuning_settings import settings_for
        >>> settings = settings_for("paper", pair=False, steps=40, epochs=10, evaluate_every=5)
        >>> settings = settings.scaled_to(96)
        >>> settings.steps, settings.evaluate_every
        (60, 8)
        """
        wanted = ceil(self.epochs * n / (self.batch_size * self.accumulate))
        wanted = min(self.most_steps, wanted)
        if wanted <= self.steps:
            return self
        pace = round(self.evaluate_every * wanted / max(1, self.steps))
        return replace(self, steps=wanted, evaluate_every=pace)

    @property
    def leaves_one_out(self) -> bool:
        """Whether a fit can answer each example as if it had not seen it, without cross-fitting."""
        return False

    def rate(self, step: int) -> float:
        """The learning rate of a step as a share of the highest: a linear rise, a linear fall.

        >>> from cptuning.methods.cp_tuning_settings import settings_for
        >>> settings = settings_for("paper", pair=False, steps=10, warmup=0.2)
        >>> [settings.rate(step) for step in (0, 1, 2, 6, 9)]
        [0.5, 1.0, 1.0, 0.5, 0.125]
        """
        rising = round(self.warmup * self.steps)
        if step < rising:
            return (step + 1) / rising
        return (self.steps - step) / max(1, self.steps - rising)


S = TypeVar("S", bound=TrainingSettings)
# Pairs; single texts; and, if a preset tells them apart, single texts of more than two classes, and
# single texts and pairs that a sentence encoder reads.
Kind = Literal["pair", "single", "many", "sentence", "sentence-pair"]
Presets = Mapping[str, Mapping[Kind, S]]


def resolve_preset(
    presets: Presets[S],
    preset: str,
    *,
    pair: bool,
    classes: int,
    pooled: bool = False,
    **changes: Any,
) -> S:
    """A preset's settings for such examples, with some of them changed.

    ``pooled`` examples are read as they are, without words around them.
    """
    if not isinstance(preset, str) or preset not in presets:
        raise CPTuningError(f"There is no preset {preset!r}: choose one of {', '.join(presets)}.")
    if "steps" in changes:  # Whoever names a number of steps means that number.
        changes.setdefault("epochs", 0)
    chosen = presets[preset]
    kind: Kind = "pair" if pair else "many" if classes > 2 and "many" in chosen else "single"
    if pooled:
        of_encoders: Kind = "sentence-pair" if pair else "sentence"
        kind = of_encoders if of_encoders in chosen else kind
        changes["template"] = "{a} [SEP] {b}" if pair else "{a}"
    settings = replace(chosen[kind], **changes)
    check_settings(settings)
    return settings


def check_settings(settings: TrainingSettings) -> None:
    """Refuse a value that can't work, in one sentence."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value is None and isinstance(field.type, UnionType):
            continue
        _check_kind(field, value)
        _check_bounds(field, value)


# What a value may be, and what to call it.
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


def _check_kind(field: "dataclasses.Field[Any]", value: Any) -> None:
    if getattr(field.type, "__origin__", None) is Literal:
        choices = field.type.__args__  # type: ignore[union-attr]
        if value not in choices:
            listed = ", ".join(map(repr, choices))
            raise CPTuningError(f"{field.name} is {value!r}: choose one of {listed}.")
        return
    kind, name = _KINDS[field.type]
    # True is a number to Python, and a slip to everybody else.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise CPTuningError(f"{field.name} is {value!r}: it must be {name}.")
    if isinstance(value, Integral):
        if int(value) > _LARGEST_NUMBER:
            raise CPTuningError(f"{field.name} is {value}: it must be at most {_LARGEST_NUMBER}.")
    elif isinstance(value, Real) and not isfinite(value):
        raise CPTuningError(f"{field.name} is {value}: it must be a finite number.")
    if isinstance(value, list | tuple) and not all(isinstance(one, str) for one in value):
        raise CPTuningError(f"{field.name} is {value!r}: it must be {name}.")


def _check_bounds(field: "dataclasses.Field[Any]", value: Any) -> None:
    least, above, most = (field.metadata[bound] for bound in ("least", "above", "most"))
    problem = None  # NaN is within no bounds.
    if above is not None and not value > above:
        problem = f"above {above}"
    elif least is not None and most is not None and not least <= value <= most:
        problem = f"between {least} and {most}"
    elif least is not None and not value >= least:
        problem = f"at least {least}"
    elif most is not None and not value <= most:
        problem = f"at most {most}"
    if problem:
        raise CPTuningError(f"{field.name} is {value}: it must be {problem}.")

"""Every setting of CP-Tuning, and the two presets that fill them in: ``paper`` and ``default``."""

from dataclasses import dataclass, fields, replace
from math import ceil
from numbers import Integral, Real
from typing import Any, Literal

from cptuning.errors import CPTuningError
from cptuning.inference import Inference

# The budget of LM-BFF's protocol, which the paper follows.
_MOST_STEPS = 1000

Loss = Literal["pccl", "sampled-pccl", "supcon", "triplet", "n-pair", "circle"]


@dataclass(frozen=True)
class Settings:
    """What a run of CP-Tuning is made of; the estimator's parameters have the same names."""

    # The input
    template: str
    max_length: int
    # The loss: λ · contrastive + (1 − λ) · masked LM
    loss: Loss
    margin: float
    tau_n: float
    xi: float
    reduction: Literal["sum", "mean"]
    relaxation: bool
    detach_relaxation: bool
    form: Literal["sum_log", "log_sum"]
    contrastive_weight: float
    mlm_rate: float
    features: Literal["head", "hidden"]
    centred: bool
    """Take the mean of the untrained training embeddings off before normalising."""
    # The training
    optimizer: Literal["adam", "adamw"]
    learning_rate: float
    prompt_learning_rate: float | None
    """None: the same as ``learning_rate``."""
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
    frozen_layers: int
    # The inference
    inference: Inference
    k: int
    temperature: float
    """Of the probabilities, where no held-out examples tell a better one."""

    def stretched(self, n: int) -> "Settings":
        """The settings for n examples: where ``epochs`` asks for more steps, evaluations keep pace.

        >>> settings = settings_for("default", pair=False).stretched(96)
        >>> settings.steps, settings.evaluate_every
        (60, 8)
        """
        wanted = min(_MOST_STEPS, ceil(self.epochs * n / (self.batch_size * self.accumulate)))
        if wanted <= self.steps:
            return self
        pace = round(self.evaluate_every * wanted / max(1, self.steps))
        return replace(self, steps=wanted, evaluate_every=pace)


# As printed in the paper (its defaults; learning rate and batch size from the middle of its grid).
_PAPER = Settings(
    template="{a} it is [MASK]",
    max_length=128,
    loss="pccl",
    margin=0.3,
    tau_n=1.0,
    xi=2.0,
    reduction="sum",
    relaxation=True,
    detach_relaxation=True,
    form="sum_log",
    contrastive_weight=0.5,
    mlm_rate=0.15,
    features="head",
    centred=False,
    optimizer="adam",
    learning_rate=3e-5,
    prompt_learning_rate=None,
    weight_decay=0.0,
    warmup=0.0,
    clip_norm=0.0,
    batch_size=16,
    batches="uniform",
    accumulate=1,
    steps=1000,
    epochs=0,
    evaluate_every=100,
    patience=0,
    frozen_layers=0,
    inference="knn",
    k=3,
    temperature=0.15,
)

_DEFAULT = replace(
    _PAPER,
    template="{a} it is so [MASK] .",
    tau_n=1 / 8,
    reduction="mean",
    centred=True,
    optimizer="adamw",
    learning_rate=5e-5,
    weight_decay=0.01,
    warmup=0.1,
    clip_norm=1.0,
    batches="balanced",
    steps=40,
    epochs=10,
    evaluate_every=5,
    inference="unit-prototype",
)

PRESETS: dict[str, dict[Literal["single", "pair"], Settings]] = {
    "paper": {"single": _PAPER, "pair": replace(_PAPER, template="{a} ? [MASK] {b}")},
    "default": {
        "single": _DEFAULT,
        "pair": replace(_DEFAULT, template="{a} [SEP] {b} these are [MASK] ."),
    },
}


def settings_for(preset: str, *, pair: bool, **changes: Any) -> Settings:
    """A preset's settings for single texts or for pairs, with some of them changed.

    >>> settings_for("paper", pair=True).template
    '{a} ? [MASK] {b}'
    >>> settings_for("paper", pair=False, margin=0.2).margin
    0.2
    """
    if preset not in PRESETS:
        raise CPTuningError(f"There is no preset {preset!r}: choose one of {', '.join(PRESETS)}.")
    if "steps" in changes:  # Who names a number of steps means that number.
        changes.setdefault("epochs", 0)
    settings = replace(PRESETS[preset]["pair" if pair else "single"], **changes)
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
    "frozen_layers": 0,
    "weight_decay": 0,
    "margin": 0,
    "clip_norm": 0,
}
_ABOVE_ZERO = ("tau_n", "xi", "learning_rate", "temperature")
_SHARES = ("contrastive_weight", "mlm_rate", "warmup")
_CHOICES = {
    field.name: field.type.__args__  # type: ignore[union-attr]
    for field in fields(Settings)
    if getattr(field.type, "__origin__", None) is Literal
}


# What a value may be, and what to call it; the choices are checked by themselves.
_KINDS: dict[Any, tuple[type, str]] = {
    int: (Integral, "a whole number"),
    float: (Real, "a number"),
    float | None: (Real, "a number"),
    bool: (bool, "true or false"),
    str: (str, "a text"),
}


def _check_kinds(settings: Settings) -> None:
    for field in fields(Settings):
        value = getattr(settings, field.name)
        if field.type not in _KINDS or (value is None and field.type == float | None):
            continue
        kind, name = _KINDS[field.type]
        # True is a number to Python, and a slip to everybody else.
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise CPTuningError(f"{field.name} is {value!r}: it must be {name}.")


def _check(settings: Settings) -> None:
    """Refuse what can't work, in one sentence."""
    _check_kinds(settings)
    for name, choices in _CHOICES.items():
        if getattr(settings, name) not in choices:
            listed = ", ".join(map(repr, choices))
            raise CPTuningError(f"{name} is {getattr(settings, name)!r}: choose one of {listed}.")
    for name, least in _AT_LEAST.items():
        if not getattr(settings, name) >= least:
            raise CPTuningError(
                f"{name} is {getattr(settings, name)}: it must be at least {least}."
            )
    for name in _ABOVE_ZERO:
        if not getattr(settings, name) > 0:
            raise CPTuningError(f"{name} is {getattr(settings, name)}: it must be above zero.")
    for name in _SHARES:
        if not 0 <= getattr(settings, name) <= 1:
            raise CPTuningError(f"{name} is {getattr(settings, name)}: it must be between 0 and 1.")

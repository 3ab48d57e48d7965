"""Every setting of CP-Tuning, and the presets that fill them in."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from cptuning.inference import Index, Inference
from cptuning.methods.training_settings import Kind, TrainingSettings, resolve_preset

Loss = Literal["pccl", "sampled-pccl", "supcon", "triplet", "n-pair", "circle"]


@dataclass(frozen=True)
class CPTuningSettings(TrainingSettings):
    """What a run of CP-Tuning is made of; the estimator's parameters have the same names."""

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
    prompt_learning_rate: float | None
    """None: the same as ``learning_rate``."""
    frozen_share: float
    """Which part of the layers, from the lowest up, and the word table with them, is held still."""
    # The inference
    inference: Inference
    k: int
    index: Index = "exact"
    """How the nearest examples are found; "approximate" is for hundreds of thousands of them."""
    chunk_size: int = 0
    """Rows of a batch that are in memory at a time (gradient caching); 0: all of them."""


# As printed in the paper (its defaults; learning rate and batch size from the middle of its grid).
_PAPER = CPTuningSettings(
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
    selection="best",
    frozen_share=0.0,
    inference="knn",
    k=3,
    temperature=0.15,
)

_DEFAULT = replace(
    _PAPER,
    template="{a} it is [MASK] .",
    tau_n=1 / 2,
    reduction="mean",
    optimizer="adamw",
    learning_rate=2e-5,
    frozen_share=0.5,
    weight_decay=0.01,
    warmup=0.1,
    clip_norm=1.0,
    batches="balanced",
    steps=20,
    epochs=10,
    evaluate_every=10,
    selection="one-standard-error",
    inference="unit-prototype",
)

# The code that the authors released is not the method of their paper: Circle loss (margin 0.4,
# scale 64) without a masked LM, and the nearest example alone decides.
_RELEASED = replace(
    _PAPER,
    loss="circle",
    margin=0.4,
    tau_n=1 / 64,
    contrastive_weight=1.0,
    reduction="mean",
    k=1,
)

PRESETS: dict[str, dict[Kind, CPTuningSettings]] = {
    "paper": {"single": _PAPER, "pair": replace(_PAPER, template="{a} ? [MASK] {b}")},
    "default": {
        "single": _DEFAULT,
        # Negatives of many classes are not alike, so the near ones must count more; and there is
        # more to learn.
        "many": replace(_DEFAULT, tau_n=1 / 8, centred=True, learning_rate=1e-4),
        "pair": replace(
            _DEFAULT,
            template="{a} [SEP] {b} these are [MASK] .",
            contrastive_weight=0.3,
            centred=True,
            steps=40,
        ),
    },
    "released": {"single": _RELEASED, "pair": replace(_RELEASED, template="{a} ? [MASK] {b}")},
}


def settings_for(preset: str, *, pair: bool, classes: int = 2, **changes: Any) -> CPTuningSettings:
    """A preset's settings for so many classes of single texts or of pairs, some of them changed.

    >>> settings_for("paper", pair=True).template
    '{a} ? [MASK] {b}'
    >>> settings_for("paper", pair=False, margin=0.2).margin
    0.2
    """
    return resolve_preset(PRESETS, preset, pair=pair, classes=classes, **changes)

"""Every setting of the tagger, and the presets that fill them in."""

from dataclasses import dataclass, replace
from typing import Literal

from cptuning.settings import Kind, TrainingSettings, setting


@dataclass(frozen=True)
class TaggerSettings(TrainingSettings):
    """The settings of the tagger; the parameters of its estimator have the same names."""

    depth: float | None = setting(
        "The share of the layers that is read, from the lowest upwards: the upper layers of a "
        "sentence encoder describe whole texts. None chooses it by held-out sentences.",
        above=0,
        most=1,
    )
    pieces: Literal["mean", "first"] = setting(
        "How the tokens of a word become its vector: their mean, or the first one."
    )
    inference: Literal["auto", "prototype", "neighbours", "lda"] = setting(
        'How a word is classified: by the nearest mean of a type\'s words ("prototype"), the '
        'nearest word ("neighbours"), linear discriminant analysis ("lda"), or whichever finds '
        'most spans in held-out training sentences ("auto").'
    )
    shape_weight: float | None = setting(
        "The weight of the spelling of words, such as capitals and digits, relative to their "
        "vectors; None chooses it by held-out sentences.",
        least=0,
        most=100,
    )
    margin: float = setting(
        "The margin m: the similarity of two words of one type should be above 1 - m, that of "
        "words of two types below m.",
        least=0,
    )
    tau_n: float = setting("The temperature τn of negative pairs.", above=0)
    xi: float = setting(
        "ξ, the temperature of positive pairs as a multiple of τn; above 1 it relaxes them.",
        above=0,
    )
    outside_ratio: float = setting(
        "The number of words outside spans that a batch compares, per word inside a span.", least=0
    )
    frozen_share: float = setting(
        "The share of the layers, from the lowest upwards, that is not trained; the embedding "
        "table is frozen as well.",
        least=0,
        most=1,
    )


_DEFAULT = TaggerSettings(
    template="{a}",
    max_length=256,
    optimizer="adamw",
    learning_rate=5e-5,
    weight_decay=0.01,
    warmup=0.1,
    clip_norm=1.0,
    batch_size=8,
    batches="uniform",
    accumulate=1,
    steps=20,
    epochs=10,
    most_steps=150,
    evaluate_every=10,
    patience=0,
    selection="one-standard-error",
    temperature=0.1,
    depth=None,
    pieces="mean",
    inference="auto",
    shape_weight=None,
    margin=0.3,
    tau_n=1 / 8,
    xi=2.0,
    outside_ratio=1.0,
    frozen_share=0.0,
)

TAGGER_PRESETS: dict[str, dict[Kind, TaggerSettings]] = {
    "default": {"single": _DEFAULT},
    "instant": {"single": replace(_DEFAULT, steps=0, epochs=0)},
}

"""Every setting of CP-Tuning, and the presets that fill them in."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from cptuning.inference import Index, Inference
from cptuning.settings import Kind, TrainingSettings, resolve_preset, setting

Loss = Literal["pccl", "sampled-pccl", "supcon", "triplet", "n-pair", "circle"]


@dataclass(frozen=True)
class CPTuningSettings(TrainingSettings):
    """The settings of CP-Tuning; the parameters of its classifier have the same names."""

    # The loss: λ · contrastive + (1 − λ) · masked LM
    loss: Loss = setting(
        'The contrastive loss; "pccl" is the paper\'s, the others are for comparison.'
    )
    margin: float = setting(
        "The margin m: the similarity of a positive pair should be above 1 - m, that of a negative "
        "pair below m.",
        least=0,
    )
    tau_n: float = setting("The temperature τn of negative pairs.", above=0)
    xi: float = setting(
        "ξ, the temperature of positive pairs as a multiple of τn; above 1 it relaxes them.",
        above=0,
    )
    reduction: Literal["sum", "mean"] = setting(
        "Whether the losses of an anchor's pairs are added (\"sum\", the paper's) or averaged "
        '("mean").'
    )
    relaxation: bool = setting("Whether pairs are weighted by their distance from the goal (α).")
    detach_relaxation: bool = setting("Whether α is treated as a constant in differentiation.")
    form: Literal["sum_log", "log_sum"] = setting(
        "Whether the sum over an anchor's positive pairs is outside the logarithm (the paper's) or "
        "inside it."
    )
    contrastive_weight: float = setting(
        "The weight λ of the contrastive loss; the masked-LM loss has the weight 1 - λ.",
        least=0,
        most=1,
    )
    mlm_rate: float = setting(
        "The share of the text's tokens that is masked for the masked-LM loss.", least=0, most=1
    )
    features: Literal["head", "hidden"] = setting(
        'The vectors that are compared: the input of the masked-LM decoder ("head", the paper\'s) '
        "or the last hidden state."
    )
    pooling: Literal["auto", "mask", "mean", "cls"] = setting(
        'How a text becomes one vector: at the [MASK] of the template ("mask", the paper\'s), or '
        "of the text alone, without a template, as the mean of its tokens' last hidden states "
        '("mean") or the first of them ("cls"). "auto" is what a sentence-transformers folder says '
        'itself, "mask" for a masked LM, "mean" for an encoder without a head, and for the '
        "embedded backbone both its views, at the mask and of the text's tokens."
    )
    sentence_weight: float | None = setting(
        "The weight of the sentence view relative to the mask view, if the backbone has both; 0 "
        "leaves it out, None chooses it by leave-one-out answers to the training examples.",
        least=0,
        most=100,
    )
    centred: bool = setting(
        "Whether the mean of the untrained training embeddings is subtracted before normalising."
    )
    prompt_learning_rate: float | None = setting(
        "The peak learning rate of the prompt vectors; None means ``learning_rate``.", above=0
    )
    frozen_share: float = setting(
        "The share of the layers, from the lowest upwards, that is not trained; the embedding "
        "table is frozen as well.",
        least=0,
        most=1,
    )
    # The inference
    inference: Inference = setting(
        'How labels are predicted: by the votes of the nearest examples ("knn", the paper\'s), the '
        'nearest class mean ("prototype"), the nearest class direction ("unit-prototype"), or '
        'linear discriminant analysis ("lda").'
    )
    k: int = setting("The number of neighbours that vote.", least=1)
    index: Index = setting(
        'How the nearest examples are found; "approximate" is for hundreds of thousands of '
        "examples.",
        default="exact",
    )
    description_weight: float | None = setting(
        "The weight of a label's description relative to an example, for a class with examples; "
        "0 leaves descriptions out, None is 2 or 4 unless leave-one-out answers to the training "
        "examples clearly favour another weight.",
        least=0,
        most=100,
        default=None,
    )
    instant_first: bool = setting(
        'Whether a model without training, as with the preset "instant", is fitted first and kept '
        "if held-out answers prefer it by more than a standard error.",
        default=False,
    )
    chunk_size: int = setting(
        "The number of rows of a batch in memory at a time (gradient caching); 0 means all.",
        least=0,
        default=0,
    )

    long_texts: Literal["truncate", "windows"] = setting(
        "What becomes of a single text that is longer than ``max_length``: its end is not read "
        '("truncate"), or it is read in overlapping windows, of which its vector is the mean '
        '("windows"); a step of training draws one of them. Pairs are always truncated.',
        default="truncate",
    )
    most_windows: int = setting(
        "The maximum number of windows of a long text; anything after them is not read.",
        least=1,
        most=1024,
        default=32,
    )

    @property
    def windows(self) -> int:
        """How many windows a text may have."""
        return self.most_windows if self.long_texts == "windows" else 1

    @property
    def leaves_one_out(self) -> bool:
        """LDA does so in closed form, if the embeddings were not trained on the examples."""
        return self.inference == "lda" and self.steps == 0


# The budget of LM-BFF's protocol, which the paper follows.
MOST_STEPS = 1000

_PAIR_TEMPLATE = "{a} [SEP] {b} these are [MASK] ."

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
    pooling="auto",
    sentence_weight=0.0,
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
    most_steps=MOST_STEPS,
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
    sentence_weight=None,
    template="{a} it is [MASK] .",
    tau_n=1 / 8,
    reduction="mean",
    centred=True,
    optimizer="adamw",
    learning_rate=5e-5,
    frozen_share=0.5,
    weight_decay=0.01,
    warmup=0.1,
    clip_norm=1.0,
    batches="balanced",
    steps=20,
    epochs=10,
    # More take minutes if there are many classes, and gain nothing (HWU64 in docs/presets.md).
    most_steps=150,
    evaluate_every=10,
    selection="one-standard-error",
    inference="lda",
    instant_first=True,
    # A text that fits has the same vector, and where texts are long it pays (docs/long-texts.md).
    long_texts="windows",
)

# A sentence encoder already knows what a text is about: all layers follow, and there is no masked
# LM beside them.
_SENTENCE = replace(_DEFAULT, contrastive_weight=1.0, frozen_share=0.0)

# It also knows whether two texts mean the same, which a few pairs only make it forget: it is not
# trained, and gently if ``steps`` asks for it.
_SENTENCE_PAIR = replace(
    _SENTENCE,
    learning_rate=1e-5,
    steps=0,
    epochs=0,
    centred=False,
    instant_first=False,
    long_texts="truncate",
)

# Nothing is trained. What is not centred on the examples has exact leave-one-out answers.
_INSTANT = replace(
    _DEFAULT,
    template="{a} all in all , [MASK] !",
    steps=0,
    epochs=0,
    centred=False,
    instant_first=False,
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
        # There is more to learn, and the masked LM would hold it back.
        "many": replace(_DEFAULT, contrastive_weight=1.0),
        "pair": replace(
            _DEFAULT,
            template=_PAIR_TEMPLATE,
            learning_rate=2e-5,
            inference="unit-prototype",
            long_texts="truncate",
        ),
        "sentence": _SENTENCE,
        "sentence-pair": _SENTENCE_PAIR,
    },
    "instant": {
        "single": _INSTANT,
        "pair": replace(_INSTANT, template=_PAIR_TEMPLATE, long_texts="truncate"),
    },
    "released": {"single": _RELEASED, "pair": replace(_RELEASED, template="{a} ? [MASK] {b}")},
}


def settings_for(
    preset: str, *, pair: bool, classes: int = 2, pooled: bool = False, **changes: Any
) -> CPTuningSettings:
    """A preset's settings for so many classes of single texts or of pairs, some of them changed.

    ``pooled`` texts are read without a template.

    >>> settings_for("paper", pair=True).template
    '{a} ? [MASK] {b}'
    >>> settings_for("paper", pair=False, margin=0.2).margin
    0.2
    >>> settings_for("paper", pair=True, pooled=True).template
    '{a} [SEP] {b}'
    """
    return resolve_preset(PRESETS, preset, pair=pair, classes=classes, pooled=pooled, **changes)

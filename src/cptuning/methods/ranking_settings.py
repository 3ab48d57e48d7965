"""Every setting of the ranker, and the presets that fill them in."""

from dataclasses import dataclass, replace
from typing import Literal

from cptuning.inference.index import Index
from cptuning.settings import Kind, TrainingSettings, setting


@dataclass(frozen=True)
class RankingSettings(TrainingSettings):
    """The settings of the ranker; the parameters of its estimator have the same names."""

    # The embedding: the sentence view alone
    pooling: Literal["auto", "mean", "cls"] = setting(
        'How a text becomes one vector: "auto" is what the backbone says itself, and else the mean '
        'of its tokens; or their "mean", or the first of them ("cls").'
    )
    index: Index = setting(
        'How the nearest documents are found; "approximate" is for hundreds of thousands of '
        "documents."
    )
    # The tuned view
    margin: float = setting(
        "The margin m: a query's similarity to its answers should be above 1 - m, and that to "
        "other documents below m.",
        least=0,
    )
    tau_n: float = setting("The temperature τn of negative pairs.", above=0)
    xi: float = setting(
        "ξ, the temperature of positive pairs as a multiple of τn; above 1 it relaxes them.",
        above=0,
    )
    negatives: int = setting(
        "The number of hard negatives of a judged query: documents judged not relevant, then the "
        "nearest unjudged documents.",
        least=1,
    )
    tuned_weight: float = setting(
        "The weight w of the tuned view relative to the sentence view, if it is kept: the "
        "similarity is (s + w² t) / (1 + w²) with the similarities s and t of the two.",
        above=0,
        most=100,
    )
    # The pair view
    rerank: int = setting(
        "The number of nearest documents that the pair view scores, if it is kept.", least=1
    )
    pair_weight: float = setting(
        "The weight of the pair view: by how many standard deviations of the candidates' "
        "similarities one of its scores counts.",
        above=0,
        most=100,
    )
    folds: int = setting(
        "The number of folds in which judged queries are left out; one by one if there are no more"
        " queries than folds.",
        least=2,
    )

    @property
    def features(self) -> Literal["head"]:
        """What a folder's encoder reads for its mask view, which plays no part."""
        return "head"

    @property
    def sentence_weight(self) -> float:
        """The weight of the sentence view where an encoder joins both; it is then taken alone."""
        return 1.0


_DEFAULT = RankingSettings(
    template="{a} it is [MASK] .",
    max_length=256,
    optimizer="adamw",
    learning_rate=1e-3,
    weight_decay=0.0,
    warmup=0.0,
    clip_norm=0.0,
    batch_size=32,
    batches="uniform",
    accumulate=1,
    steps=40,
    epochs=0,
    most_steps=1000,
    evaluate_every=40,
    patience=0,
    selection="best",
    temperature=0.1,
    pooling="auto",
    index="exact",
    margin=0.3,
    tau_n=1 / 8,
    xi=2.0,
    negatives=20,
    tuned_weight=0.5,
    rerank=100,
    pair_weight=0.3,
    folds=20,
)

RANKING_PRESETS: dict[str, dict[Kind, RankingSettings]] = {
    "default": {"single": _DEFAULT},
    "instant": {"single": replace(_DEFAULT, steps=0)},
}

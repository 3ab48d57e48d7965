"""The ranker: documents in, and for a query those that answer it, best first."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from cptuning.data import LabelSpace
from cptuning.data.judgements import IdentifiedTexts, Relevance, as_relevance
from cptuning.errors import CPTuningError
from cptuning.estimator.parameters import described
from cptuning.estimator.text_model import TextModel, seed_of
from cptuning.extras import needed_for
from cptuning.inference import SupportSet
from cptuning.inference.embedded_encoder import EmbeddedEncoder
from cptuning.inference.ranked_documents import (
    RankedDocument,
    RankingPredictor,
    SentenceEncoder,
    ViewedEncoder,
    with_tuned,
)
from cptuning.methods.ranking import JudgedVectors, RankingFit, fit_ranking
from cptuning.methods.ranking_settings import RANKING_PRESETS, RankingSettings
from cptuning.prompting import Template
from cptuning.settings import resolve_preset

if TYPE_CHECKING:
    from cptuning.backbone import Backbone
    from cptuning.training import Callback


@described
class CPTuningRanker(TextModel):
    """Ranks documents by how well they answer a query, with few relevance judgements or none.

    Without judgements, the nearest documents come first, by the sentence view of the unmodified
    backbone. Judgements teach a tuned view (PCCL, with hard negatives) and a pair view, which are
    kept if they improve the ranking of held-out queries. The preset "instant" learns only what
    needs no training, and does not need torch on the embedded backbone.

    Examples
    --------
    >>> documents = {"tea": "how to brew green tea", "car": "change a flat tyre on your car",
    ...              "cat": "what to feed a young cat"}
    >>> ranker = CPTuningRanker().fit([], documents, {})
    >>> [found.document for found in ranker.rank("my car has a flat tyre", top_k=2)][0]
    'car'
    >>> [best, *_] = CPTuningRanker().rank("food for kittens", list(documents.values()))
    >>> best.document, best.text
    (2, 'what to feed a young cat')

    """

    method = "ranking"
    learner = "cptuning.methods.ranking:fit_ranking"
    settings_class = RankingSettings
    presets = RANKING_PRESETS
    attributes: ClassVar[dict[str, tuple[str, str]]] = {
        "settings_": (
            "RankingSettings",
            "The settings of the fit: those given, and otherwise the preset's.",
        ),
        "predictor_": ("RankingPredictor", "The fitted ranker, with the vectors of its documents."),
        "held_out_score_": (
            "float or None",
            "nDCG@10 of judged queries, each ranked with what the others taught; None if fewer "
            "than two were judged. It is slightly optimistic if a view was kept because of it.",
        ),
        "training_": (
            "dict",
            "What the model card says about the fit: queries, views that were kept, ...",
        ),
    }
    predictor_: RankingPredictor

    def __init__(
        self,
        backbone: "str | Backbone" = "embedded",
        preset: str = "default",
        random_state: Any = 0,
        *,
        device: str = "auto",
        verbose: bool = True,
        callbacks: "Sequence[Callback] | None" = None,
        max_length: int | None = None,
        pooling: str | None = None,
        index: str | None = None,
        margin: float | None = None,
        tau_n: float | None = None,
        xi: float | None = None,
        negatives: int | None = None,
        learning_rate: float | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        tuned_weight: float | None = None,
        rerank: int | None = None,
        pair_weight: float | None = None,
        folds: int | None = None,
    ) -> None:
        # scikit-learn's rule: store what was given under its own name, and look at it in fit.
        given = locals()
        for name in self.parameter_names():
            setattr(self, name, given[name])

    def fit(self, queries: Any = (), documents: Any = None, relevance: Any = ()) -> Self:
        """Read the documents, and learn from the judgements of some queries.

        ``documents`` and ``queries`` map ids to texts, or are texts whose ids are their
        positions, starting from 0. ``relevance`` says which documents answer which query: a mapping
        ``{query: {document: grade}}`` or ``{query: [document, ...]}``, or triples
        ``(query, document, grade)`` as in a qrels file, all by ids. A grade above 0 is relevant.
        Documents that were not judged for a query may be used as its hard negatives.
        """
        if documents is None:
            raise CPTuningError("No documents were given: fit(queries, documents, relevance).")
        asked = IdentifiedTexts.of(queries, "queries")
        listed = IdentifiedTexts.of(documents, "documents")
        if not len(listed):
            raise CPTuningError("There are no documents: give at least one.")
        judged = as_relevance(relevance, asked, listed)
        seed = seed_of(self.random_state)
        predictor, settings, facts = self._read(listed)
        fitted = self._learned(predictor, asked, judged, settings, seed)
        if fitted.tuned is not None:
            predictor = with_tuned(predictor, fitted.tuned)
        self.settings_ = settings
        self.predictor_ = replace(
            predictor, support=predictor.support.searched(settings.index), pair=fitted.pair
        )
        self.held_out_score_ = fitted.held_out
        counts = {"documents": len(listed), "judgements": sum(map(len, judged))}
        learned = fitted.facts or {"judged_queries": 0, "kept": []}
        self.training_ = {
            "examples": counts,
            "validation": "none" if fitted.held_out is None else "leave-one-query-out",
            "held_out_accuracy": None,
            "held_out_kept_ndcg": fitted.held_out,
            "best_step": settings.steps if fitted.tuned is not None else 0,
            "seed": seed,
            "backbone": facts,
            **learned,
        }
        return self

    def rank(
        self, query: Any, documents: Any = None, top_k: int = 10
    ) -> list[RankedDocument] | list[list[RankedDocument]]:
        """The documents that answer a query best, as ``(document, score, text)``, best first.

        For several queries, a list of such lists. ``documents`` are ranked instead of those of the
        fit; an unfitted ranker ranks them without judgements.
        """
        predictor = self._ranking(documents)
        if isinstance(query, str):
            return predictor.rank([query], top_k)[0]
        return predictor.rank(query, top_k)

    def add_documents(self, documents: Any) -> Self:
        """Add documents without training; ids that are positions continue from the last one."""
        predictor = self._fitted_ranking()
        listed = IdentifiedTexts.of(documents, "documents")
        ids = listed.ids
        if not isinstance(documents, IdentifiedTexts) and not hasattr(documents, "keys"):
            ids = tuple(len(predictor.support) + place for place in range(len(listed)))
        self.predictor_ = predictor.with_documents(listed.examples, ids)
        return self

    def _ranking(self, documents: Any) -> RankingPredictor:
        if documents is None:
            return self._fitted_ranking()
        listed = IdentifiedTexts.of(documents, "documents")
        if not len(listed):
            raise CPTuningError("There are no documents: give at least one.")
        if not hasattr(self, "predictor_"):
            return self._read(listed)[0]
        known = self.predictor_
        embeddings = known.encoder.embed(listed.examples)
        return replace(known, **_listed(listed, embeddings))

    def _fitted_ranking(self) -> RankingPredictor:
        predictor = self._fitted()
        assert isinstance(predictor, RankingPredictor)
        return predictor

    def _read(
        self, documents: IdentifiedTexts
    ) -> tuple[RankingPredictor, RankingSettings, dict[str, Any]]:
        """The documents as the backbone reads them, the settings, and the backbone's facts."""
        settings, encoder, facts = self._reading()
        reader = SentenceEncoder(encoder)
        predictor = RankingPredictor(
            reader,
            **_listed(documents, reader.embed(documents.examples)),
            inference="knn",
            k=1,
            temperature=settings.temperature,
            rerank=settings.rerank,
        )
        return predictor, settings, facts

    def _reading(self) -> tuple[RankingSettings, ViewedEncoder, dict[str, Any]]:
        settings = self._given_settings(pooled=False)
        is_embedded = self.backbone == "embedded" and self.device in ("auto", "cpu")
        if is_embedded and settings.pooling == "auto":
            from cptuning.backbone.packed import PackedBackbone

            template = Template.parse(settings.template, needs_output=True)
            embedded = EmbeddedEncoder.untrained(template, settings.max_length, 1.0)
            return settings, embedded, PackedBackbone().facts
        with needed_for("A ranker on this backbone"):
            from cptuning.backbone import PromptedEncoder, TextEncoder, describe, layout_for
            from cptuning.training import Processes
        backbone, _ = self._start(None, settings.template)
        mask, pooling = backbone.views(settings.pooling, 1.0)
        if pooling is None:  # A masked LM says nothing of how its tokens make one vector.
            settings = replace(settings, pooling="mean")
            mask, pooling = backbone.views("mean")
        if not mask:
            settings = replace(self._given_settings(pooled=True), pooling=settings.pooling)
        layout = layout_for(
            backbone,
            Template.parse(settings.template, needs_output=mask),
            settings.max_length,
            text_prefix=pooling.text_prefix if pooling else "",
            sentences=True,
        )
        module = PromptedEncoder(backbone, layout.prompt_ids, "head", pooling, mask=mask)
        module.to(Processes.find(self.device).device).eval()
        return settings, TextEncoder(layout, module, backbone), describe(backbone)

    def _given_settings(self, *, pooled: bool) -> RankingSettings:
        names = set(self.settings_class.__dataclass_fields__)
        given = {name: getattr(self, name) for name in self.parameter_names() if name in names}
        changes = {name: value for name, value in given.items() if value is not None}
        return resolve_preset(
            RANKING_PRESETS, self.preset, pair=False, classes=1, pooled=pooled, **changes
        )

    def _learned(
        self,
        predictor: RankingPredictor,
        queries: IdentifiedTexts,
        judged: Relevance,
        settings: RankingSettings,
        seed: int,
    ) -> RankingFit:
        rows = [row for row, grades in enumerate(judged) if grades]
        if not rows:
            return RankingFit()
        vectors = JudgedVectors(
            predictor.encoder.embed(queries.examples.take(rows)),
            predictor.support.embeddings,
            tuple(judged[row] for row in rows),
        )
        callbacks: list[Callback] = list(self.callbacks or [])
        if settings.steps == 0:
            return fit_ranking(vectors, settings, seed)
        with needed_for('Learning from judgements (all but preset="instant")'):
            from cptuning.training import ProgressBar

            if self.verbose:
                callbacks.insert(0, ProgressBar())
            return fit_ranking(vectors, settings, seed, callbacks)


def _listed(documents: IdentifiedTexts, embeddings: Any) -> dict[str, Any]:
    """Documents as what a predictor knows: each is a class of its own, named by its id."""
    labels = np.arange(len(documents))
    return {
        "support": SupportSet(documents.examples, embeddings, labels),
        "label_space": LabelSpace(documents.ids),
    }

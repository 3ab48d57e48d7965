"""What a few relevance judgements teach a ranker, and whether held-out queries say that it pays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cptuning.data.judgements import Relevance
from cptuning.inference.closed_form import DiscriminantAnalysis
from cptuning.inference.ranked_documents import PairView, TunedView, relations
from cptuning.inference.ranking_metrics import ndcg
from cptuning.inference.support import FloatArray, IntArray
from cptuning.methods.ranking_settings import RankingSettings

if TYPE_CHECKING:
    from cptuning.training import Callback

# A view is kept if the held-out gain is above so many of its standard errors.
_CLEAR_GAIN = 1.0
_CUTOFF = 10


@dataclass(frozen=True)
class JudgedVectors:
    """Queries and documents as unit vectors of the sentence view, with their judgements."""

    queries: FloatArray
    documents: FloatArray
    relevance: Relevance

    def __len__(self) -> int:
        return len(self.relevance)

    @cached_property
    def similarities(self) -> FloatArray:
        """What the first stage says: one row per query, one column per document."""
        return np.asarray(self.queries @ self.documents.T)

    def relevant(self, query: int) -> IntArray:
        """The documents that answer a query."""
        return np.array([d for d, grade in self.relevance[query].items() if grade > 0], dtype=int)

    def hard_negatives(self, query: int, n: int) -> IntArray:
        """Documents that don't answer a query: those judged so, then the nearest unjudged ones.

        >>> vectors = JudgedVectors(np.eye(3)[:1], np.eye(3), ({0: 1, 2: 0},))
        >>> vectors.hard_negatives(0, n=2).tolist()
        [2, 1]
        """
        judged = self.relevance[query]
        refused = [document for document, grade in judged.items() if grade <= 0]
        nearest = np.argsort(-self.similarities[query], kind="stable")[: n + len(judged)]
        found = [*refused, *(int(d) for d in nearest if int(d) not in judged)]
        return np.array(found[:n], dtype=int)

    def contrasted(
        self, queries: Sequence[int], negatives: int
    ) -> tuple[FloatArray, NDArray[np.int64]]:
        """Vectors and label sets for PCCL: a text's labels are the queries that it belongs to.

        A query belongs to itself, a document to every query that it answers, and a hard negative
        to none, unless it answers another query.
        """
        rows = sorted(
            {int(d) for q in queries for d in self.relevant(q)}
            | {int(d) for q in queries for d in self.hard_negatives(q, negatives)}
        )
        answers = [[self.relevance[q].get(d, 0) > 0 for q in queries] for d in rows]
        vectors = np.concatenate([self.queries[list(queries)], self.documents[rows]])
        itself = np.eye(len(queries), dtype=np.int64)
        return vectors, np.concatenate([itself, np.array(answers, dtype=np.int64)])


@dataclass(frozen=True)
class RankingFit:
    """What was kept of what the judgements taught, and what held-out queries said about it."""

    tuned: TunedView | None = None
    pair: PairView | None = None
    held_out: float | None = None
    """nDCG@10 of held-out queries by what was kept."""
    facts: dict[str, Any] | None = None


def fit_ranking(
    vectors: JudgedVectors,
    settings: RankingSettings,
    seed: int,
    callbacks: "Sequence[Callback]" = (),
) -> RankingFit:
    """Learn a tuned view and a pair view from the judgements, and keep of them what pays.

    Each query is answered by what the others taught (of more than ``folds`` queries, some are left
    out together). A view is kept if nDCG@10 rises by more than a standard error of the mean gain:
    first the tuned view over the sentence view alone, then the pair view over what was kept.
    """
    judged = [q for q in range(len(vectors)) if len(vectors.relevant(q))]
    if len(judged) < 2:
        return RankingFit(facts={"judged_queries": len(judged), "kept": []})

    def learned_tuned(rows: Sequence[int], title: str) -> TunedView:
        return tuned_view(vectors, rows, settings, seed, title, callbacks)

    frozen = _Answers(vectors, settings.rerank)
    facts: dict[str, Any] = {"judged_queries": len(judged), "kept": []}
    before = frozen.scores(judged)
    facts["held_out_ndcg"] = {"sentence view": float(before.mean())}
    tuned = None
    tuned_by: dict[int, TunedView] = {}
    if settings.steps > 0:
        for title, rest, away in _folds(judged, settings.folds, seed):
            view = learned_tuned(rest, title)
            tuned_by |= dict.fromkeys(away, view)
        after = frozen.scores(judged, tuned_by.get)
        facts["held_out_ndcg"]["tuned view"] = float(after.mean())
        if _pays(before, after):
            tuned, before = learned_tuned(judged, "training"), after
            facts["kept"].append("tuned view")
    seen_by = tuned_by.get if tuned is not None else (lambda _query: None)
    pair_by: dict[int, PairView] = {}
    for _, rest, away in _folds(judged, settings.folds, seed):
        pair_by |= dict.fromkeys(away, pair_view(vectors, rest, settings))
    after = frozen.scores(judged, seen_by, pair_by.get)
    facts["held_out_ndcg"]["pair view"] = float(after.mean())
    pair = None
    if _pays(before, after):
        pair, before = pair_view(vectors, judged, settings), after
        facts["kept"].append("pair view")
    return RankingFit(tuned, pair, float(before.mean()), facts)


def tuned_view(
    vectors: JudgedVectors,
    queries: Sequence[int],
    settings: RankingSettings,
    seed: int,
    title: str = "training",
    callbacks: "Sequence[Callback]" = (),
) -> TunedView:
    """The map of the sentence view that PCCL makes of the identity."""
    from cptuning.methods.ranking_task import TunedViewTask
    from cptuning.training import Processes, train

    task = TunedViewTask(vectors, list(queries), settings, seed)
    # A few hundred short vectors: a GPU would only wait for the host.
    train(task, settings, Processes.find("cpu"), stage=title, callbacks=callbacks)
    return TunedView(task.matrix(), settings.tuned_weight)


def pair_view(
    vectors: JudgedVectors, queries: Sequence[int], settings: RankingSettings
) -> PairView:
    """The linear discriminant of pairs that belong together and hard negatives."""
    rows, columns, labels = [], [], []
    for query in queries:
        for label, found in (
            (1, vectors.relevant(query)),
            (0, vectors.hard_negatives(query, settings.negatives)),
        ):
            rows += [query] * len(found)
            columns += found.tolist()
            labels += [label] * len(found)
    related = relations(vectors.queries[rows], vectors.documents[columns])
    if len(set(labels)) < 2:  # Every document answers: there is nothing to tell apart.
        return PairView(np.zeros(related.shape[1]), settings.pair_weight)
    analysis = DiscriminantAnalysis(related, np.array(labels))
    directions = analysis.discriminants(analysis.shrinkage).directions
    return PairView(directions[1] - directions[0], settings.pair_weight)


class _Answers:
    """How well queries are answered, by the best candidates of the stages."""

    def __init__(self, vectors: JudgedVectors, depth: int) -> None:
        self.vectors, self.depth = vectors, max(depth, _CUTOFF)

    def scores(
        self,
        queries: Sequence[int],
        tuned: "Callable[[int], TunedView | None]" = lambda _query: None,
        pair: "Callable[[int], PairView | None]" = lambda _query: None,
    ) -> NDArray[np.float64]:
        """nDCG@10 of each query, with the views that were learned without it."""
        return np.array([self._score(q, tuned(q), pair(q)) for q in queries])

    def _score(self, query: int, tuned: TunedView | None, pair: PairView | None) -> float:
        vectors = self.vectors
        similarities = vectors.similarities[query]
        if tuned is not None:
            # As TunedView.joined has it, with the map of all documents.
            asked = tuned.joined(vectors.queries[query : query + 1])
            similarities = (asked @ self._mapped(tuned).T)[0]
        best = np.argsort(-similarities, kind="stable")[: self.depth]
        if pair is not None:
            found = pair.scores(vectors.queries[query], vectors.documents[best])
            blended = pair.blended(similarities[best], found)
            best = best[np.argsort(-blended, kind="stable")]
        return ndcg(best.tolist(), vectors.relevance[query], _CUTOFF)

    def _mapped(self, tuned: TunedView) -> FloatArray:
        if getattr(self, "_last", None) is not tuned:
            self._last = tuned
            self._documents = tuned.joined(self.vectors.documents)
        return self._documents


def _folds(
    queries: Sequence[int], folds: int, seed: int
) -> "list[tuple[str, list[int], list[int]]]":
    """Each part of the queries that is left out, with all others."""
    n = min(folds, len(queries))
    order = np.random.default_rng(seed).permutation(len(queries))
    parts = [sorted(queries[i] for i in order[fold::n]) for fold in range(n)]
    return [
        (f"part {fold + 1} of {n}", sorted(set(queries) - set(away)), away)
        for fold, away in enumerate(parts)
    ]


def _pays(before: NDArray[np.float64], after: NDArray[np.float64]) -> bool:
    """Whether the mean gain is above its standard error.

    >>> _pays(np.array([0.1, 0.2, 0.3]), np.array([0.2, 0.3, 0.5]))
    True
    >>> _pays(np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.0, 0.1]))
    False
    """
    gains = after - before
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    return bool(gains.mean() > _CLEAR_GAIN * error)

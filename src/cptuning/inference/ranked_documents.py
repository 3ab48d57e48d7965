"""Documents in the order in which they answer a query: nearest first, then by pairs."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from cptuning.backbone.joined_views import Views, relation, unit
from cptuning.data import Examples, as_examples
from cptuning.errors import CPTuningError
from cptuning.files.tensors import save_tensors
from cptuning.inference.predictor import EmbeddingPredictor, Encoder
from cptuning.inference.support import FloatArray, IntArray

RANKING_FILE = "ranking.safetensors"
"""In a ranker's folder: what relevance judgements taught, if anything was kept of it."""

_TUNED, _PAIR = "tuned", "pair"


class RankedDocument(NamedTuple):
    """A document at its place in a ranking."""

    document: Hashable
    """Its id."""
    score: float
    text: str


class ViewedEncoder(Encoder, Protocol):
    """An encoder that says how its views are joined."""

    @property
    def views(self) -> Views | None:
        """The views; None if they are joined inside."""
        ...


@dataclass(frozen=True)
class TunedView:
    """A linear map of the sentence view, and its weight beside it."""

    matrix: FloatArray
    weight: float

    def joined(self, sentences: FloatArray) -> FloatArray:
        """The unit vectors (s, w t) / √(1 + w²), with t = M s at unit length.

        So the similarity of two texts is (s·s' + w² t·t') / (1 + w²).

        >>> view = TunedView(np.array([[0, 1], [1, 0]], np.float32), weight=2.0)
        >>> vectors = view.joined(np.array([[0.6, 0.8], [1.0, 0.0]], np.float32))
        >>> round(float(vectors[0] @ vectors[1]), 3)  # (0.6 + 4 · 0.6) / 5
        0.6
        """
        both = np.concatenate([sentences, self.weight * unit(sentences @ self.matrix)], axis=1)
        return unit(both)


class SentenceEncoder:
    """Texts as the unit vectors of their sentence view alone, with the tuned view if there is one.

    The mask view says what a language model would say about a text, which is no answer to whether
    it answers a query.
    """

    def __init__(self, encoder: ViewedEncoder, tuned: TunedView | None = None) -> None:
        self.encoder, self.tuned = encoder, tuned
        self.layout = encoder.layout

    def embed(self, examples: Examples) -> FloatArray:
        """One row per example, in their order."""
        vectors = self.sentences(examples)
        return vectors if self.tuned is None else self.tuned.joined(vectors)

    def sentences(self, examples: Examples) -> FloatArray:
        """The sentence view alone."""
        views = self.encoder.views
        vectors = self.encoder.embed(examples)
        return unit(vectors[:, 0 if views is None else views.mask_width :])

    def save(self, folder: Path) -> None:
        """Write the encoder; what is tuned is the predictor's to write."""
        self.encoder.save(folder)


@dataclass(frozen=True)
class PairView:
    """A linear function of how two texts are related: their cosine and |u − v|."""

    direction: NDArray[np.float64]
    weight: float

    def scores(self, query: FloatArray, documents: FloatArray) -> NDArray[np.float64]:
        """How well documents answer a query, all given as vectors of the sentence view."""
        related = relations(np.broadcast_to(query, documents.shape), documents)
        return np.asarray(related @ self.direction)

    def blended(self, similarities: FloatArray, scores: NDArray[np.float64]) -> FloatArray:
        """The similarities of candidates, and the weight times their standardised scores.

        s + w σ(s) (p − μ(p)) / σ(p), so that one standard deviation of the one counts as w of the
        other's.

        >>> view = PairView(np.zeros(1), weight=1.0)
        >>> view.blended(np.array([0.5, 0.3]), np.array([2.0, 4.0])).tolist()
        [0.4, 0.4]
        """
        spread = scores.std()
        if spread < 1e-12:
            return similarities
        standard = (scores - scores.mean()) / spread
        return np.asarray(similarities + self.weight * similarities.std() * standard)


def relations(queries: FloatArray, documents: FloatArray) -> FloatArray:
    """The relation of each query to the document in the same row, at unit length."""
    return unit(relation(queries, documents))


@dataclass(frozen=True)
class RankingPredictor(EmbeddingPredictor):
    """Documents with their embeddings; each is a class of its own, named by its id.

    The nearest documents are found first. If the pair view was kept, it then reads the best of
    them, and their order is that of both.
    """

    pair: PairView | None = None
    rerank: int = 1

    def rank(self, queries: Any, top_k: int = 10) -> list[list[RankedDocument]]:
        """The best documents for each query, best first."""
        examples = _queries(queries)
        if isinstance(top_k, bool) or not isinstance(top_k, Integral) or top_k < 1:
            raise CPTuningError(f"top_k is {top_k!r}: give a whole number of documents.")
        names, texts = self.label_space.decode(self.support.labels), self.support.examples.first
        return [
            [
                RankedDocument(_plain(names[row]), float(score), texts[row])
                for row, score in zip(rows, scores, strict=True)
            ]
            for rows, scores in self.ranked_rows(self.encoder.embed(examples), top_k)
        ]

    def ranked_rows(self, embedded: FloatArray, top_k: int) -> "list[tuple[IntArray, FloatArray]]":
        """The rows of the best documents for each embedded query, and their scores."""
        depth = top_k if self.pair is None else max(top_k, self.rerank)
        found = zip(embedded, *self.support.nearest(embedded, depth), strict=True)
        return [self._reranked(query, rows, s, top_k) for query, rows, s in found]

    def _reranked(
        self, query: FloatArray, rows: IntArray, similarities: FloatArray, top_k: int
    ) -> "tuple[IntArray, FloatArray]":
        if self.pair is None:
            return rows[:top_k], similarities[:top_k]
        width = len(self.pair.direction) - 1
        documents = unit(self.support.embeddings[rows][:, :width])
        blended = self.pair.blended(
            similarities, self.pair.scores(unit(query[None, :width]), documents)
        )
        order = np.argsort(-blended, kind="stable")[:top_k]
        return rows[order], blended[order]

    def with_documents(self, examples: Examples, ids: Sequence[Hashable]) -> "RankingPredictor":
        """The same ranker knowing more documents, without training."""
        known = set(self.label_space.classes)
        for name in ids:
            if name in known:
                raise CPTuningError(
                    f"There is a document {name!r} already: give new documents ids of their own."
                )
        extended = self.with_examples(examples, list(ids))
        assert isinstance(extended, RankingPredictor)
        return extended

    def save_judged(self, folder: Path) -> None:
        """Write what relevance judgements taught; the weights are settings."""
        tuned = self.encoder.tuned if isinstance(self.encoder, SentenceEncoder) else None
        learned: dict[str, NDArray[Any]] = {}
        if tuned is not None:
            learned[_TUNED] = tuned.matrix
        if self.pair is not None:
            learned[_PAIR] = self.pair.direction
        if learned:
            save_tensors(folder / RANKING_FILE, learned)


def load_judged(
    folder: Path, width: int, tuned_weight: float, pair_weight: float
) -> tuple[TunedView | None, PairView | None]:
    """The inverse of :meth:`RankingPredictor.save_judged`; ``ValueError`` if it can't be.

    ``width`` is that of the sentence view.
    """
    if not (folder / RANKING_FILE).exists():
        return None, None
    stored = load_file(folder / RANKING_FILE)
    tuned, pair = stored.get(_TUNED), stored.get(_PAIR)
    for array in stored.values():
        if not np.isfinite(array).all():
            raise ValueError(f"{RANKING_FILE} contains values that are not numbers")
    if tuned is not None and not (tuned.dtype == np.float32 and tuned.shape == (width, width)):
        raise ValueError(f"the tuned view in {RANKING_FILE} is made for another encoder")
    if pair is not None and not (pair.dtype == np.float64 and pair.shape == (width + 1,)):
        raise ValueError(f"the pair view in {RANKING_FILE} is made for another encoder")
    return (
        None if tuned is None else TunedView(tuned, tuned_weight),
        None if pair is None else PairView(pair, pair_weight),
    )


def with_tuned(predictor: RankingPredictor, tuned: TunedView) -> RankingPredictor:
    """A ranker of sentence views, with the tuned view beside it; no text is read again."""
    assert isinstance(predictor.encoder, SentenceEncoder)
    support = predictor.support
    return replace(
        predictor,
        encoder=SentenceEncoder(predictor.encoder.encoder, tuned),
        support=replace(support, embeddings=tuned.joined(support.embeddings), index=None),
    )


def _queries(queries: Any) -> Examples:
    examples = as_examples(queries)
    if examples.is_pair:
        raise CPTuningError("The queries are pairs of texts: give one text for each.")
    return examples


def _plain(name: Any) -> Hashable:
    """An id as it was given: numpy's own kinds are not."""
    plain: Hashable = name.item() if isinstance(name, np.generic) else name
    return plain

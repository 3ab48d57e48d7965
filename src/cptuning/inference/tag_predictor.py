"""What a tagger predicts with: labelled sentences, compared word by word, and a decoder."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np

from cptuning.data.sentences import Sentence, TaggedSentences
from cptuning.data.tag_schemes import WordSpan, types_of
from cptuning.errors import CPTuningError
from cptuning.inference.tag_decoding import Transitions, marginals
from cptuning.inference.word_answers import (
    FloatArray,
    IntArray,
    LabelledWords,
    Matrix,
    WordAnswer,
    WordScores,
    decoded,
    emissions,
)
from cptuning.inference.word_shapes import word_shapes
from cptuning.prompting import Layout

# Sentences that are read at a time.
_CHUNK = 256


class WordReader(Protocol):
    """What turns sentences into unit vectors of their words."""

    @property
    def layout(self) -> Layout:
        """How sentences are laid out."""
        ...

    def embed(self, sentences: Sequence[Sentence]) -> list[FloatArray]:
        """One array per sentence: a unit vector for each of its words."""
        ...

    def save(self, folder: Path) -> None:
        """Write it into a model's folder."""
        ...


@dataclass(frozen=True)
class FoundSpan:
    """A span that was found, and the mean probability of its tags."""

    span: WordSpan
    score: float


@dataclass(frozen=True)
class SpanReason:
    """A labelled span that is near a found one."""

    text: str
    label: str
    similarity: float
    sentence: str


@dataclass(frozen=True)
class TagPredictor:
    """Finds spans by the words of labelled sentences."""

    encoder: WordReader
    examples: TaggedSentences
    vectors: FloatArray
    """The unit vectors of all words of the examples, one sentence after the other."""
    types: tuple[str, ...]
    answer: WordAnswer

    def __post_init__(self) -> None:
        if len(self.vectors) != sum(map(len, self.examples.sentences)):
            raise CPTuningError("There is not one vector for each word of the examples.")

    def found(self, sentences: Sequence[Sentence]) -> list[list[FoundSpan]]:
        """The spans of each sentence."""
        return [self._found(vectors, sentence) for sentence, vectors in self._read(sentences)]

    def explain(
        self, sentences: Sequence[Sentence], k: int
    ) -> list[list[tuple[FoundSpan, list[SpanReason]]]]:
        """The spans of each sentence, each with the k nearest labelled spans of its type."""
        answers = []
        for sentence, vectors in self._read(sentences):
            reasons = []
            for found in self._found(vectors, sentence):
                mean = _unit(vectors[found.span.start : found.span.stop].mean(axis=0)[None])
                reasons.append((found, self._nearest(mean[0], found.span.label, k)))
            answers.append(reasons)
        return answers

    def without(self, words: Collection[tuple[str, ...]]) -> "TagPredictor":
        """The same without the examples that consist of some of these sequences of words."""
        sentences = self.examples.sentences
        kept = [row for row, sentence in enumerate(sentences) if sentence.words not in words]
        of_words = np.repeat(np.arange(len(sentences)), list(map(len, sentences)))
        return replace(
            self,
            examples=self.examples.take(kept),
            vectors=self.vectors[np.isin(of_words, kept)],
        )

    def with_added(self, more: TaggedSentences) -> "TagPredictor":
        """The same with more examples, whose types may be new."""
        vectors = np.concatenate([self.vectors, *self.encoder.embed(more.sentences)])
        new = [label for label in types_of(more.spans) if label not in self.types]
        return replace(
            self,
            examples=self.examples + more,
            vectors=vectors,
            types=(*self.types, *new),
        )

    @cached_property
    def transitions(self) -> Transitions:
        """How likely each move is in the examples."""
        return transitions_of(self.examples)

    @cached_property
    def _scores(self) -> WordScores:
        words = labelled_words(self.examples, self.vectors, self.types)
        return words.scores(self.answer, 1 + len(self.types))

    def _read(self, sentences: Sequence[Sentence]) -> Iterator[tuple[Sentence, FloatArray]]:
        for start in range(0, len(sentences), _CHUNK):
            chunk = sentences[start : start + _CHUNK]
            yield from zip(chunk, self.encoder.embed(chunk), strict=True)

    def _found(self, vectors: FloatArray, sentence: Sentence) -> list[FoundSpan]:
        queries = self.answer.joined(vectors, word_shapes([sentence]))
        scores = self._scores.of(self.answer, queries)
        [spans] = decoded([scores], self.transitions, self.answer, self.types)
        sure = self._sure(scores, spans)
        return [FoundSpan(span, score) for span, score in zip(spans, sure, strict=True)]

    def _sure(self, scores: Matrix, spans: Sequence[WordSpan]) -> list[float]:
        """The mean probability of each span's tags."""
        if not spans:
            return []
        weight = self.answer.transition_weight
        first, after = self.transitions.scores(len(self.types))
        tags = emissions(scores, self.answer)
        probabilities = marginals(tags, weight * first, weight * after)
        sure = []
        for span in spans:
            tag = 1 + 2 * self.types.index(span.label)
            inside = probabilities[span.start + 1 : span.stop, tag + 1]
            own = np.r_[probabilities[span.start, tag], inside]
            sure.append(float(np.clip(own.mean(), 0.0, 1.0)))
        return sure

    def _nearest(self, vector: FloatArray, label: str, k: int) -> list[SpanReason]:
        spans, vectors = self._span_vectors
        rows = [row for row, (_, span) in enumerate(spans) if span.label == label]
        similar = vectors[rows] @ vector
        reasons = []
        for place in np.argsort(-similar, kind="stable")[:k].tolist():
            sentence, span = spans[rows[place]]
            text = sentence.marked(span)["text"]
            reasons.append(SpanReason(text, label, float(similar[place]), sentence.text))
        return reasons

    @cached_property
    def _span_vectors(self) -> tuple[list[tuple[Sentence, WordSpan]], FloatArray]:
        """The labelled spans, and the mean direction of each one's words."""
        found, vectors, start = [], [np.empty((0, self.vectors.shape[1]), np.float32)], 0
        for sentence, spans in zip(self.examples.sentences, self.examples.spans, strict=True):
            for span in spans:
                found.append((sentence, span))
                words = self.vectors[start + span.start : start + span.stop]
                vectors.append(_unit(words.mean(axis=0)[None]))
            start += len(sentence)
        return found, np.concatenate(vectors)


def labelled_words(
    examples: TaggedSentences, vectors: FloatArray, types: Sequence[str]
) -> LabelledWords:
    """The words of examples as answers compare them: the type 0 is no span."""
    sentences = np.repeat(np.arange(len(examples)), list(map(len, examples.sentences)))
    labels: IntArray = np.zeros(len(sentences), dtype=np.int64)
    start = 0
    for sentence, spans in zip(examples.sentences, examples.spans, strict=True):
        for span in spans:
            labels[start + span.start : start + span.stop] = 1 + types.index(span.label)
        start += len(sentence)
    return LabelledWords(vectors, word_shapes(examples.sentences), labels, sentences)


def transitions_of(examples: TaggedSentences) -> Transitions:
    """How likely each move is in some examples."""
    lengths = map(len, examples.sentences)
    return Transitions.estimated(zip(examples.spans, lengths, strict=True))


def _unit(rows: FloatArray) -> FloatArray:
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray(rows / lengths, dtype=np.float32)

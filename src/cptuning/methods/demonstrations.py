"""Labelled examples that are read along with a text in LM-BFF: one of each class.

A demonstration is the prompt around a training example with the label's word in the mask's place.
Its examples are drawn from the share of a class that is most similar to the text; similarity is
the cosine of the model's own vectors at the mask.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cptuning.backbone import TextEncoder
from cptuning.data import Examples
from cptuning.inference.support import FloatArray, IntArray
from cptuning.methods.heads import Head
from cptuning.methods.words import WordHead
from cptuning.prompting import Encoding

_FILE = "demonstrations.json"


@dataclass
class Demonstrations:
    """The training examples, each with its word in place of the mask."""

    encoder: TextEncoder
    head: WordHead
    examples: Examples
    labels: IntArray
    draws_per_text: int
    similar_share: float

    def __post_init__(self) -> None:
        self._encodings = self.encoder.layout.encode(self.examples)
        words = self.head.tokens[:, 0].tolist()
        self._shown = [
            _filled(encoding, words[label], len(self.encoder.layout.special.prefix))
            for encoding, label in zip(self._encodings, self.labels, strict=True)
        ]
        # Training draws by the untrained model's similarities, which are computed once.
        self._untrained = self.encoder.embed_encodings(self._encodings)

    @property
    def longest(self) -> int:
        """How many tokens a training text has with its demonstrations, at most."""
        of_class = [
            max((len(self._shown[i]) for i in np.flatnonzero(self.labels == label)), default=0)
            for label in range(len(self.head.tokens))
        ]
        return max(map(len, self._encodings)) + sum(of_class)

    def for_training(
        self, encodings: Sequence[Encoding], rows: IntArray, seed: Sequence[int]
    ) -> list[Encoding]:
        """Training examples, known by their rows, with demonstrations that are not themselves."""
        similarity = self._untrained[rows] @ self._untrained.T
        similarity[np.arange(len(rows)), rows] = -np.inf
        return self._drawn(encodings, similarity, np.random.default_rng([*seed]))

    def draws(self, encodings: Sequence[Encoding]) -> list[Sequence[Encoding]]:
        """Any texts, several times, each time with other demonstrations."""
        known = self.encoder.embed_encodings(self._encodings)
        similarity = self.encoder.embed_encodings(encodings) @ known.T
        return [
            self._drawn(encodings, similarity, np.random.default_rng(draw))
            for draw in range(self.draws_per_text)
        ]

    def _drawn(
        self, encodings: Sequence[Encoding], similarity: FloatArray, rng: np.random.Generator
    ) -> list[Encoding]:
        """The encodings with one example of each class behind them."""
        drawn = list(encodings)
        for label in range(len(self.head.tokens)):
            members = np.flatnonzero(self.labels == label)
            nearest = np.argsort(-similarity[:, members], axis=1, kind="stable")
            others = np.isfinite(similarity[:, members]).sum(axis=1)
            among = np.maximum(1, np.round(self.similar_share * others))
            places = (rng.random(len(drawn)) * among).astype(int)
            for i in np.flatnonzero(others):  # a text that is alone in its class has none
                shown = self._shown[members[nearest[i, places[i]]]]
                drawn[i] = _followed_by(drawn[i], shown, self.encoder.backbone.max_length)
        return drawn

    def save(self, folder: Path) -> None:
        """Write the examples and how they are drawn."""
        facts = {
            "texts": list(self.examples),
            "labels": self.labels.tolist(),
            "draws": self.draws_per_text,
            "similar_share": self.similar_share,
        }
        (folder / _FILE).write_text(json.dumps(facts, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def load(cls, folder: Path, encoder: TextEncoder, head: Head) -> "Demonstrations | None":
        """The demonstrations that were saved, if any were."""
        if not (folder / _FILE).is_file():
            return None
        facts: dict[str, Any] = json.loads((folder / _FILE).read_text("utf-8"))
        texts = facts["texts"]
        if encoder.layout.template.is_pair:
            examples = Examples(tuple(a for a, _ in texts), tuple(b for _, b in texts))
        else:
            examples = Examples(tuple(texts))
        assert isinstance(head, WordHead)
        labels = np.array(facts["labels"], dtype=np.int64)
        return cls(encoder, head, examples, labels, facts["draws"], facts["similar_share"])


def _filled(encoding: Encoding, word: int, prefix: int) -> Encoding:
    """The encoding with a word in the mask's place, without what opens a sequence."""
    ids = encoding.ids.copy()
    ids[encoding.output] = word
    return replace(encoding, ids=ids).without(0, prefix)


def _followed_by(encoding: Encoding, shown: Encoding, longest: int) -> Encoding:
    """One text behind another; what the model can't read any more is cut off."""
    return replace(
        encoding,
        ids=np.concatenate([encoding.ids, shown.ids])[:longest],
        types=np.concatenate([encoding.types, shown.types])[:longest],
        is_text=np.concatenate([encoding.is_text, np.zeros_like(shown.is_text)])[:longest],
    )

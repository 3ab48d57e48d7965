"""Checks of labelled examples before training: counts, and what looks like a mistake."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from cptuning.app.user_examples import Example, Label, Text, examples_and_labels
from cptuning.cleaning import SimilarLabels, same_texts, similar_labels
from cptuning.data import seems_joined
from cptuning.errors import CPTuningError

# A class with fewer examples is hard to learn.
FEW = 4


@dataclass(frozen=True)
class ExamplesCheck:
    """The result of checking labelled examples."""

    counts: dict[str, int]
    """The number of examples with each label, sorted by name."""
    repeated: int
    """How many examples repeat an earlier one, text and label."""
    contradictions: dict[Text, list[Label]]
    """Texts that are labelled differently in several places."""
    similar: list[SimilarLabels]
    """Pairs of labels that may mean the same class."""
    places: dict[Text, int] = field(default_factory=dict)
    """Where the texts that are labelled differently are first."""
    total: int = 0
    """The number of examples."""
    joined: tuple[str, str] | None = None
    """A label that looks like several joined ones, and what joins them."""
    bare: int = 0
    """How many texts have no label, where a text may have several."""

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "ExamplesCheck":
        """Check these examples.

        >>> check = ExamplesCheck.of([Example("a", "x"), Example("a", "x"), Example("a", "y")])
        >>> check.counts, check.repeated, check.contradictions
        ({'x': 2, 'y': 1}, 1, {'a': ['x', 'y']})
        """
        groups = _same_texts(examples)
        labels = {
            examples[rows[0]].text: sorted({examples[row].label for row in rows}) for rows in groups
        }
        counts = Counter(label for example in examples for label in example.labels)
        return cls(
            counts=dict(sorted(counts.items())),
            repeated=len(repeated_places(examples)),
            contradictions={text: under for text, under in labels.items() if len(under) > 1},
            similar=similar_labels(counts),
            places={examples[rows[0]].text: rows[0] for rows in groups},
            total=len(examples),
            joined=seems_joined(example.label for example in examples),
            bare=sum(not example.labels for example in examples),
        )

    @property
    def small(self) -> dict[str, int]:
        """The classes that have too few examples to be learned well, with their counts.

        >>> ExamplesCheck.of([Example("a", "x")]).small
        {'x': 1}
        """
        return {label: n for label, n in self.counts.items() if n < FEW}

    def require_trainable(self) -> None:
        """Raise an error that says what is missing if a model can't be trained on these examples.

        >>> ExamplesCheck.of([Example("a", "x")]).require_trainable()
        Traceback (most recent call last):
        ...
        cptuning.errors.CPTuningError: Add examples of another class: all of them are labelled 'x'.
        """
        if not self.counts:
            raise CPTuningError("Add examples first: paste some, upload a file or use a sample.")
        if len(self.counts) == 1 and not self.bare:
            raise CPTuningError(
                "Add examples of another class: all of them are labelled "
                f"{next(iter(self.counts))!r}."
            )
        if max(self.counts.values()) == 1:
            raise CPTuningError("Every class has only one example: add more to at least one.")


def repeated_places(examples: Sequence[Example]) -> list[int]:
    """The positions of examples that repeat an earlier one, text and label.

    >>> repeated_places([Example("a", "x"), Example("b", "x"), Example("a", "x")])
    [2]
    """
    places = []
    for rows in _same_texts(examples):
        seen: set[Label] = set()
        for row in rows:
            if examples[row].label in seen:
                places.append(row)
            seen.add(examples[row].label)
    return sorted(places)


def places_of(examples: Sequence[Example], text: Text) -> list[int]:
    """The positions of the examples with this text, or one that differs in case or punctuation.

    >>> places_of([Example("Hi!", "x"), Example("b", "x"), Example("hi", "y")], "hi")
    [0, 2]
    """
    for rows in _same_texts(examples):
        if any(examples[row].text == text for row in rows):
            return list(rows)
    return [row for row, example in enumerate(examples) if example.text == text]


def _same_texts(examples: Sequence[Example]) -> list[tuple[int, ...]]:
    """The places of examples whose texts are the same up to case and punctuation."""
    return [repeat.rows for repeat in same_texts(examples_and_labels(examples)[0])]

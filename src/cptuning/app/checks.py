"""Checks of labelled examples before training: counts, and what looks like a mistake."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cptuning.app.user_examples import Example, Text
from cptuning.errors import CPTuningError

# A class with fewer examples is hard to learn.
FEW = 4


@dataclass(frozen=True)
class ExamplesCheck:
    """The result of checking labelled examples."""

    counts: dict[str, int]
    """The number of examples of each class, sorted by name."""
    repeated: int
    """How many examples repeat an earlier one, text and label."""
    contradictions: dict[Text, list[str]]
    """Texts that have several labels."""

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "ExamplesCheck":
        """Check these examples.

        >>> check = ExamplesCheck.of([Example("a", "x"), Example("a", "x"), Example("a", "y")])
        >>> check.counts, check.repeated, check.contradictions
        ({'x': 2, 'y': 1}, 1, {'a': ['x', 'y']})
        """
        labels: dict[Text, set[str]] = {}
        for example in examples:
            labels.setdefault(example.text, set()).add(example.label)
        return cls(
            counts=dict(sorted(Counter(e.label for e in examples).items())),
            repeated=len(examples) - len(set(examples)),
            contradictions={t: sorted(under) for t, under in labels.items() if len(under) > 1},
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
        if len(self.counts) == 1:
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
    seen: set[Example] = set()
    places = []
    for place, example in enumerate(examples):
        if example in seen:
            places.append(place)
        seen.add(example)
    return places

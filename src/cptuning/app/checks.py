"""What can be said of labelled examples before training: counts, and what looks like a mistake."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cptuning.app.user_examples import Example, Text
from cptuning.errors import CPTuningError

# With fewer, a class's direction is that of a single example or two.
FEW = 4


@dataclass(frozen=True)
class ExamplesCheck:
    """Labelled examples, counted and looked through."""

    counts: dict[str, int]
    """Examples by class, in the order of the names."""
    repeated: int
    """How many repeat a text with its label."""
    contradictions: dict[Text, list[str]]
    """Texts that stand under several labels."""

    @classmethod
    def of(cls, examples: Sequence[Example]) -> "ExamplesCheck":
        """Count and look.

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
        """The classes that have too few examples to be learned well.

        >>> ExamplesCheck.of([Example("a", "x")]).small
        {'x': 1}
        """
        return {label: n for label, n in self.counts.items() if n < FEW}

    def refuse_too_little(self) -> None:
        """Say what is missing where there is nothing to train on yet.

        >>> ExamplesCheck.of([Example("a", "x")]).refuse_too_little()
        Traceback (most recent call last):
        ...
        cptuning.errors.CPTuningError: Add examples of another class: all there are now are
        labelled 'x'.
        """
        if not self.counts:
            raise CPTuningError("Add examples first: paste some, upload a file or take the sample.")
        if len(self.counts) == 1:
            raise CPTuningError(
                f"Add examples of another class: all there are now are labelled "
                f"{next(iter(self.counts))!r}."
            )
        if max(self.counts.values()) == 1:
            raise CPTuningError("Every class has a single example: add a second one to some.")


def repeats(examples: Sequence[Example]) -> list[int]:
    """The places of examples that repeat an earlier one, text and label.

    >>> repeats([Example("a", "x"), Example("b", "x"), Example("a", "x")])
    [2]
    """
    seen: set[Example] = set()
    places = []
    for place, example in enumerate(examples):
        if example in seen:
            places.append(place)
        seen.add(example)
    return places

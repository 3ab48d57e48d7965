"""Why a text got its answer: the nearest examples of the class, and what speaks against it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cptuning.data import LabelSpace, label_text
from cptuning.errors import CPTuningError
from cptuning.inference.support import FloatArray, IntArray, SupportSet

# How many more examples of any class are looked at than are wanted of the answer's.
_WIDER = 8

NO_CLASS = -1
"""Stands for the class of a text whose answer is "unknown"."""


@dataclass(frozen=True)
class Evidence:
    """A labelled example, or a description of a label, and how similar a text is to it.

    >>> Evidence("my parcel is late", "delivery", 0.8123)
    Evidence(text='my parcel is late', label='delivery', similarity=0.81)
    >>> Evidence("where goods are", "delivery", 0.8, is_description=True)
    Evidence(text='where goods are', label='delivery', similarity=0.80, is_description=True)
    """

    text: str | tuple[str, str]
    label: Any
    similarity: float
    is_description: bool = False

    @property
    def title(self) -> str:
        """Its label, or labels, as shown beside it; a description is marked as one.

        >>> Evidence("where goods are", "delivery", 0.8, is_description=True).title
        'delivery, description'
        """
        return f"{label_text(self.label)}{', description' if self.is_description else ''}"

    def __repr__(self) -> str:
        mark = ", is_description=True" if self.is_description else ""
        return (
            f"Evidence(text={self.text!r}, label={self.label!r}, similarity={self.similarity:.2f}"
            f"{mark})"
        )


class Reasons(list[Evidence]):
    """The labelled examples that an answer rests on, the nearest first.

    They are the nearest ones of the answered class: its direction is made of them, and among the k
    nearest neighbours they are the ones that won. To a text that is "unknown" they are the nearest
    of any class.

    >>> near = Evidence("my parcel is late", "delivery", 0.8)
    >>> reasons = Reasons([near], against=Evidence("refund my parcel", "refund", 0.9))
    >>> reasons[0].label, reasons.against.label
    ('delivery', 'refund')
    """

    against: Evidence | None
    """The nearest example of another class, if it is nearer than every one of these."""
    passage: str | None = None
    """Of a long text that is read in windows: the one that speaks most for the answer."""

    def __init__(self, examples: Iterable[Evidence] = (), against: Evidence | None = None) -> None:
        super().__init__(examples)
        self.against = against


def reasons_for(
    queries: FloatArray, answers: IntArray, support: SupportSet, label_space: LabelSpace, k: int
) -> list[Reasons]:
    """Up to k reasons for each query's answer, which is the number of a class or ``NO_CLASS``.

    >>> from cptuning.data import Examples
    >>> up, right = np.eye(2, dtype=np.float32)[::-1]
    >>> support = SupportSet(Examples(("up", "right")), np.stack([up, right]), np.array([0, 1]))
    >>> classes = LabelSpace(("vertical", "horizontal"))
    >>> [because] = reasons_for(right[None], np.array([0]), support, classes, k=3)
    >>> [e.text for e in because], because.against.text
    (['up'], 'right')
    """
    classes = label_space.classes
    return _reasons(queries, answers, support, lambda row: classes[support.labels[row]], k)


def reasons_for_label(
    queries: FloatArray, number: int, support: SupportSet, label_space: LabelSpace, k: int
) -> list[Reasons]:
    """Up to k reasons why each query has a label, or with ``NO_CLASS`` the nearest of all examples.

    The reasons' labels are tuples, and ``against`` is a nearer example without the label.
    """
    if number == NO_CLASS:
        column = replace(support, labels=np.zeros(len(support), np.int64))
    else:
        column = replace(support, labels=support.labels[:, number])

    def labels_of(row: int) -> Any:
        return label_space.decode(support.labels[[row]])[0]

    answer = NO_CLASS if number == NO_CLASS else 1
    return _reasons(queries, np.full(len(queries), answer), column, labels_of, k)


def _reasons(
    queries: FloatArray,
    answers: IntArray,
    support: SupportSet,
    label_of: Callable[[int], Any],
    k: int,
) -> list[Reasons]:
    if k < 1:
        raise CPTuningError(f"k is {k}: ask for at least one neighbour.")

    def evidence(row: int, similarity: float) -> Evidence:
        # Only the examples that are shown are looked up: there may be a million.
        [text] = support.examples.take([row])
        flags = support.is_description
        is_description = flags is not None and bool(flags[row])
        return Evidence(text, label_of(row), float(similarity), is_description)

    rows, similarities = support.nearest(queries, _WIDER * k)
    is_own = (support.labels[rows] == answers[:, None]) | (answers[:, None] == NO_CLASS)
    found = []
    for its_rows, values, own in zip(rows, similarities, is_own, strict=True):
        found.append(Reasons(map(evidence, its_rows[own][:k], values[own][:k])))
    # If the nearest ones are of other classes, all examples of the answer's class are searched.
    is_short = (is_own.sum(axis=1) < k) & (rows.shape[1] < len(support))
    for answer in np.unique(answers[is_short]):
        asked = np.flatnonzero(is_short & (answers == answer))
        members = np.flatnonzero(support.labels == answer)
        nearest, values = replace(support, index=None).take(members).nearest(queries[asked], k)
        for number, its_rows, its_values in zip(asked, members[nearest], values, strict=True):
            found[number][:] = map(evidence, its_rows, its_values)
    for place, because in enumerate(found):
        is_nearer = all(similarities[place, 0] > own_one.similarity for own_one in because)
        if is_nearer and not is_own[place, 0]:
            because.against = evidence(rows[place, 0], similarities[place, 0])
    return found

"""The classes in a stable order, and the conversion between labels and class indices."""

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from cptuning.data.value_checks import label_problem, plain, shortlist
from cptuning.errors import CPTuningError
from cptuning.input_limits import MOST_CLASSES

IntArray = npt.NDArray[np.int64]

SAVABLE = (str, int, float, bool)


@dataclass(frozen=True)
class LabelSpace:
    """The classes of a task; the index of a class is its position here and never changes.

    >>> space = LabelSpace.from_labels(["spam", "ham", "spam"])
    >>> space.classes, space.encode(["spam", "ham"]).tolist(), space.decode([1, 1]).tolist()
    (('ham', 'spam'), [1, 0], ['spam', 'spam'])
    """

    classes: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        if len(_distinct(self.classes)) < len(self.classes):
            raise CPTuningError(f"A class is listed twice, among {shortlist(self.classes)}.")
        if len(self.classes) > MOST_CLASSES.value():
            raise CPTuningError(
                f"There are {len(self.classes)} classes, and at most {MOST_CLASSES.value()} may "
                f"be: check the labels, or set {MOST_CLASSES.variable} to more."
            )

    @classmethod
    def from_labels(cls, y: Any) -> "LabelSpace":
        """The classes that occur: sorted if possible, else in order of first appearance.

        >>> LabelSpace.from_labels([2, "b", 1, "b"]).classes
        (2, 'b', 1)
        """
        return cls(_ordered(as_labels(y)))

    def __len__(self) -> int:
        return len(self.classes)

    def as_labels(self, y: Any, n_expected: int | None = None) -> list[Hashable]:
        """The labels of so many texts as a list, checked; they need not be among the classes."""
        return as_labels(y, n_expected)

    def occurring(self, labels: Sequence[Hashable]) -> "LabelSpace":
        """The classes of some labels alone."""
        return LabelSpace.from_labels(labels)

    def encode(self, y: Any) -> IntArray:
        """The index of each label's class.

        >>> LabelSpace(("ham", "spam")).encode(["spam", "eggs"])
        Traceback (most recent call last):
        ...
        cptuning.errors.CPTuningError: The label 'eggs' in row 2 is not one of the classes
        ('ham', 'spam').
        """
        labels = as_labels(y)
        indices = np.empty(len(labels), dtype=np.int64)
        for row, label in enumerate(labels):
            index = self._index.get(label)
            # A dictionary finds True under 1, which is equal but another class.
            if index is None or type(self.classes[index]) is not type(label):
                raise CPTuningError(
                    f"The label {label!r} in row {row + 1} is not one of the classes "
                    f"({shortlist(self.classes)})."
                )
            indices[row] = index
        return indices

    def decode(self, indices: Iterable[int] | np.ndarray) -> np.ndarray:
        """The label at each index: an array of strings, integers, floats or booleans.

        Classes of another type, or of several, give an array of objects.

        >>> LabelSpace((False, True)).decode([1, 0])
        array([ True, False])
        """
        wanted = np.asarray(indices if isinstance(indices, np.ndarray) else list(indices), int)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"There are {len(self)} classes, so no index {wanted.tolist()}.")
        labels: np.ndarray = self._array[wanted]
        return labels

    def extended(self, y: Any) -> "LabelSpace":
        """The same space with the new classes of ``y`` appended.

        >>> LabelSpace(("m", "z")).extended(["z", "b", "a"]).classes
        ('m', 'z', 'a', 'b')
        """
        labels = as_labels(y)
        _distinct([*self.classes, *labels])
        return LabelSpace(self.classes + _ordered(x for x in labels if x not in self._index))

    def to_json(self) -> list[str | int | float | bool]:
        """The classes as a JSON list that keeps their types.

        >>> LabelSpace((1, 2.5, "a")).to_json()
        [1, 2.5, 'a']
        """
        saved: list[str | int | float | bool] = []
        for label in self.classes:
            if not isinstance(label, SAVABLE) or type(label) not in SAVABLE:
                raise CPTuningError(
                    f"Labels of type {type(label).__name__} cannot be saved: "
                    "use strings or numbers."
                )
            if isinstance(label, float) and not isfinite(label):
                raise CPTuningError(f"The label {label} cannot be saved: use a finite number.")
            saved.append(label)
        return saved

    @classmethod
    def from_json(cls, saved: Any) -> "LabelSpace":
        """The inverse of ``to_json``.

        >>> LabelSpace.from_json(["ham", "spam"]).classes
        ('ham', 'spam')
        """
        if not isinstance(saved, list) or any(type(label) not in SAVABLE for label in saved):
            raise CPTuningError("Saved classes must be a list of strings, numbers or booleans.")
        return cls(tuple(saved))

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: index for index, label in enumerate(self.classes)}

    @cached_property
    def _array(self) -> np.ndarray:
        kinds = {type(label) for label in self.classes}
        if len(kinds) == 1 and kinds <= set(SAVABLE):
            array = np.array(self.classes)
            # numpy drops trailing NULs of strings; then an array of objects is needed.
            if tuple(array.tolist()) == self.classes:
                return array
        array = np.empty(len(self.classes), dtype=object)
        array[:] = self.classes
        return array


def as_labels(y: Any, n_expected: int | None = None) -> list[Hashable]:
    """The labels as a list of Python values, from a list, an array, a Series or a column.

    >>> as_labels(np.array([[1], [2]]))
    [1, 2]
    >>> as_labels(["a", "b"], n_expected=3)
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: There are 3 examples but 2 labels: give one label for each.
    """
    labels = [plain(label) for label in _label_values(y)]
    if n_expected is not None and len(labels) != n_expected:
        raise CPTuningError(
            f"There are {n_expected} examples but {len(labels)} labels: give one label for each."
        )
    if not labels:
        raise CPTuningError("There are no labels: give one for each example.")
    for row, label in enumerate(labels, start=1):
        problem = label_problem(label)
        if problem:
            raise CPTuningError(f"The label in row {row} {problem}.")
    _distinct(labels)  # Rejects 1 beside True, which are equal as dictionary keys.
    return labels


def aligned(labels: Sequence[Hashable], classes: Iterable[Hashable]) -> list[Hashable]:
    """The labels, or label sets, with the types of a model's classes: "1" may be the class 1.

    >>> aligned(["1", "new"], [0, 1]), aligned([("1", "0")], [0, 1])
    ([1, 'new'], [(1, 0)])
    """
    known = list(classes)
    by_name: dict[str, Hashable] = {}
    for label in known:
        # Two classes that are spelled the same are ambiguous: such labels stay unchanged.
        by_name[str(label)] = str(label) if str(label) in by_name else label

    def named(label: Hashable) -> Hashable:
        if isinstance(label, tuple):
            return tuple(named(part) for part in label)
        return label if label in known else by_name.get(str(label), label)

    return [named(label) for label in labels]


def _label_values(y: Any) -> Iterable[Any]:
    if isinstance(y, str | bytes | Mapping | Set) or not isinstance(y, Iterable):
        raise CPTuningError(f"Labels cannot be read from a {type(y).__name__}: give a list.")
    shape: tuple[int, ...] = getattr(y, "shape", (0,))
    if len(shape) == 2 and shape[1] == 1:
        y = np.asarray(y).ravel()
    elif len(shape) != 1:
        raise CPTuningError(f"The labels have shape {tuple(shape)}: give a single column.")
    # numpy's tolist would turn dates into integers; the items of a tensor must be converted,
    # because each would be a class of its own.
    return list(y if isinstance(y, np.ndarray) or not hasattr(y, "tolist") else y.tolist())


def _distinct(labels: Iterable[Hashable]) -> list[Hashable]:
    """Each label once, in order of appearance; equal labels of different types are an error."""
    seen: dict[Hashable, Hashable] = {}
    for label in labels:
        first = seen.setdefault(label, label)
        if type(first) is not type(label):
            raise CPTuningError(
                f"The labels {first!r} and {label!r} are equal in Python but of different types: "
                "use one type for all labels."
            )
    return list(seen)


def _ordered(labels: Iterable[Hashable]) -> tuple[Hashable, ...]:
    distinct: Sequence[Any] = _distinct(labels)
    try:
        ordered = sorted(distinct)
        # Sets can be compared but not ordered: the result must be strictly increasing.
        is_order = all(before < after for before, after in pairwise(ordered))
    except TypeError:
        is_order = False
    return tuple(ordered if is_order else distinct)

"""Label sets: what the texts of a multi-label task have, in the place of one label each."""

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from cptuning.data.labels import IntArray, LabelSpace, as_labels
from cptuning.data.value_checks import is_missing, label_problem, plain, shortlist
from cptuning.errors import CPTuningError

LabelSet = tuple[Hashable, ...]
"""The labels of one text, in the order of the classes."""

LabelFormat = Literal["lists", "matrix", "sparse"]
"""What label sets are given as, and answered as."""


@dataclass(frozen=True)
class MultiLabelSpace(LabelSpace):
    """The labels of a multi-label task; a text may have several of them, or none.

    >>> space = MultiLabelSpace.from_labels([["late", "rude"], [], ["late"]])
    >>> space.classes, space.encode([["rude"], []]).tolist()
    (('late', 'rude'), [[0, 1], [0, 0]])
    >>> space.decode(np.array([[1, 1], [0, 0]])).tolist()
    [('late', 'rude'), ()]
    """

    format: LabelFormat = "lists"

    @classmethod
    def from_labels(cls, y: Any) -> "MultiLabelSpace":
        """The labels of lists, sorted if possible; of a matrix, its columns.

        >>> MultiLabelSpace.from_labels(np.array([[0, 1], [1, 1]])).classes
        (0, 1)
        """
        if not _is_matrix(y):
            labels = [label for labels in _label_lists(y) for label in labels]
            if not labels:
                raise CPTuningError("No text has a label: give at least one text a label.")
            return cls(LabelSpace.from_labels(labels).classes)
        return cls(_columns(y), "sparse" if _is_sparse(y) else "matrix")

    def as_labels(self, y: Any, n_expected: int | None = None) -> list[Hashable]:
        """One tuple of labels per text, in the order of the classes, from lists or a matrix.

        >>> MultiLabelSpace(("a", "b")).as_labels([["b", "a", "new"]])
        [('a', 'b', 'new')]
        """
        return list(self._sets(y, n_expected))

    def encode(self, y: Any) -> IntArray:
        """A 0/1 matrix: one row per text and one column per label."""
        sets = self._sets(y)
        matrix = np.zeros((len(sets), len(self)), dtype=np.int64)
        for row, labels in enumerate(sets):
            for label in labels:
                column = self._index.get(label)
                if column is None or type(self.classes[column]) is not type(label):
                    raise CPTuningError(
                        f"The label {label!r} in row {row + 1} is not one of the classes "
                        f"({shortlist(self.classes)})."
                    )
                matrix[row, column] = 1
        return matrix

    def decode(self, indices: Iterable[int] | np.ndarray) -> np.ndarray:
        """The tuple of labels of each row of a 0/1 matrix; of indices, the labels themselves."""
        matrix = np.asarray(indices)
        if matrix.ndim != 2:
            return super().decode(indices)
        sets = np.empty(len(matrix), dtype=object)
        sets[:] = [tuple(self.classes[i] for i in np.flatnonzero(row)) for row in matrix]
        return sets

    def extended(self, y: Any) -> "MultiLabelSpace":
        """The same space with the new labels of ``y`` appended."""
        new = [label for labels in self._sets(y) for label in labels]
        classes = super().extended(new).classes if new else self.classes
        return MultiLabelSpace(classes, self.format)

    def occurring(self, labels: Sequence[Hashable]) -> "MultiLabelSpace":
        """Those of some label sets; the columns of a matrix stay."""
        if self.format != "lists":
            return self
        return MultiLabelSpace.from_labels(labels)

    def formatted(self, matrix: IntArray) -> Any:
        """Label sets in the format in which they were given: what comes out is what went in.

        >>> MultiLabelSpace(("a", "b")).formatted(np.array([[1, 0], [0, 0]]))
        [['a'], []]
        """
        if self.format == "lists":
            return [list(labels) for labels in self.decode(matrix)]
        if self.format == "matrix":
            return matrix
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

        return csr_matrix(matrix)

    def _sets(self, y: Any, n_expected: int | None = None) -> list[LabelSet]:
        sets = self._from_matrix(y) if _is_matrix(y) else _label_lists(y)
        if n_expected is not None and len(sets) != n_expected:
            raise CPTuningError(
                f"There are {n_expected} examples but {len(sets)} label sets: "
                "give one for each, an empty one for a text without labels."
            )
        last = len(self)
        return [
            tuple(sorted(dict.fromkeys(labels), key=lambda label: self._index.get(label, last)))
            for labels in sets
        ]

    def _from_matrix(self, y: Any) -> list[list[Hashable]]:
        columns, is_named = _columns(y), hasattr(y, "columns")
        if is_named:
            missing = [label for label in self.classes if label not in columns]
            if missing:
                raise CPTuningError(
                    f"The label matrix has no column {missing[0]!r}: give one for each label."
                )
        elif len(columns) == len(self):
            columns = self.classes
        elif len(columns) < len(self) or self.classes != tuple(range(len(self))):
            raise CPTuningError(
                f"The label matrix has {len(columns)} columns for {len(self)} labels: "
                "give one column for each."
            )
        return [[columns[i] for i in np.flatnonzero(row)] for row in _dense(y)]


def is_multi_label(y: Any) -> bool:
    """Whether labels are label sets: a matrix of several columns, or lists, tuples or sets.

    >>> is_multi_label([["a"], []]), is_multi_label(["a", "b"]), is_multi_label(np.eye(2))
    (True, False, True)
    """
    if _is_matrix(y):
        return True
    if isinstance(y, str | bytes | Mapping | Set) or not isinstance(y, Iterable):
        return False
    shape = getattr(y, "shape", (0,))
    return len(shape) == 1 and any(_is_labels(labels) for labels in y)


def label_space_of(y: Any) -> LabelSpace:
    """The classes of labels or of label sets.

    >>> label_space_of(["b", "a"]), label_space_of([["b"], ["a"]])
    (LabelSpace(classes=('a', 'b')), MultiLabelSpace(classes=('a', 'b'), format='lists'))
    """
    return MultiLabelSpace.from_labels(y) if is_multi_label(y) else LabelSpace.from_labels(y)


def label_space_from_json(classes: Any, format: Any) -> LabelSpace:
    """What was stored of a label space; the format is None if a text has one label.

    >>> label_space_from_json(["a"], "matrix")
    MultiLabelSpace(classes=('a',), format='matrix')
    """
    space = LabelSpace.from_json(classes)
    if format is None:
        return space
    if format not in get_args(LabelFormat):
        raise CPTuningError(f"The format of the label sets is {str(format)[:20]!r}.")
    return MultiLabelSpace(space.classes, format)


def strata(labels: IntArray) -> IntArray:
    """A class for each row, to draw and to split rows by: of a label set, its rarest label.

    Rows without a label are a class of their own.

    >>> strata(np.array([[1, 0], [1, 0], [1, 1], [0, 0]])).tolist(), strata(np.array([3])).tolist()
    ([0, 0, 1, 2], [3])
    """
    if labels.ndim == 1:
        return labels
    n_labels = labels.shape[1]
    frequency = np.where(labels == 1, labels.sum(axis=0), len(labels) + 1)
    return np.asarray(np.where(labels.any(axis=1), frequency.argmin(axis=1), n_labels))


def label_parts(label: Any) -> tuple[Hashable, ...]:
    """The labels of a label set, or the one label.

    >>> label_parts("late"), label_parts(("late", "rude")), label_parts(())
    (('late',), ('late', 'rude'), ())
    """
    return label if isinstance(label, tuple) else (label,)


def label_text(label: Any, separator: str = ", ") -> str:
    """A label as it is shown or, of a label set, all of them.

    >>> label_text("late"), label_text(("late", "rude")), label_text(())
    ('late', 'late, rude', '')
    """
    return separator.join(map(str, label)) if isinstance(label, tuple) else str(label)


def _is_sparse(y: Any) -> bool:
    # By its methods, so that scipy need not be imported.
    return hasattr(y, "toarray") and hasattr(y, "nnz")


def _is_matrix(y: Any) -> bool:
    shape: tuple[int, ...] = getattr(y, "shape", ())
    return _is_sparse(y) or (len(shape) == 2 and shape[1] > 1)


def _dense(y: Any) -> np.ndarray:
    """A matrix of 0 and 1, checked."""
    matrix = np.asarray(y.toarray() if _is_sparse(y) else y)
    if matrix.ndim != 2 or matrix.size == 0:
        raise CPTuningError(
            f"The label matrix has shape {matrix.shape}: give a row per text, a column per label."
        )
    is_binary = (matrix == 0) | (matrix == 1)
    if not is_binary.all():
        row, column = np.argwhere(~is_binary)[0]
        raise CPTuningError(
            f"The label matrix has {plain(matrix[row, column])!r} in row {row + 1}, column "
            f"{column + 1}: give 1 for a label that the text has, and 0 otherwise."
        )
    return np.asarray(matrix == 1)


def _columns(y: Any) -> tuple[Hashable, ...]:
    """The labels that a matrix has columns for: their names, or else their numbers."""
    n_columns = _dense(y).shape[1]
    names = getattr(y, "columns", None)
    return tuple(range(n_columns)) if names is None else tuple(plain(name) for name in names)


def _is_labels(value: object) -> bool:
    is_array = isinstance(value, np.ndarray) and value.ndim == 1
    return is_array or isinstance(value, list | tuple | Set)


def _label_lists(y: Any) -> list[list[Hashable]]:
    """The labels of each text, checked."""
    if isinstance(y, str | bytes | Mapping) or not isinstance(y, Iterable):
        raise CPTuningError(f"Label sets cannot be read from a {type(y).__name__}: give a list.")
    kind: type | None = None
    found = []
    for row, given in enumerate(y, start=1):
        if not _is_labels(given):
            what = "is missing" if is_missing(given) else f"is {given!r}, not a list of labels"
            raise CPTuningError(
                f"The label set in row {row} {what}: give a list for each text, "
                "an empty one for a text without labels."
            )
        labels = [plain(label) for label in given]
        for label in labels:
            problem = label_problem(label)
            if problem:
                raise CPTuningError(f"A label in row {row} {problem}.")
            kind = kind or type(label)
            if type(label) is not kind:
                raise CPTuningError(
                    f"The label {label!r} in row {row} is of type {type(label).__name__}, those "
                    f"before it are of type {kind.__name__}: use one type for all labels."
                )
        found.append(labels)
    if not found:
        as_labels([])  # which says so
    return found

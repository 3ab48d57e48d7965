"""Labels with levels, such as "billing > refund": probabilities that add up along the tree."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cptuning.errors import CPTuningError
from cptuning.inference.scoring import Scores

Path = tuple[str, ...]


@dataclass(frozen=True)
class Hierarchy:
    """A tree whose leaves are the classes; the names of classes are the ways to them.

    >>> tree = Hierarchy.of(["billing > refund", "billing > invoice", "praise"])
    >>> tree.nodes
    ('billing', 'billing > invoice', 'billing > refund', 'praise')
    >>> tree.answer(np.array([0.5, 0.4, 0.1]), min_confidence=0.8)
    ('billing', 0.9)
    """

    separator: str
    classes: tuple[str, ...]
    paths: tuple[Path, ...]
    """The levels of each class, in the order of the classes."""

    @classmethod
    def of(cls, classes: Sequence[Hashable], separator: str = " > ") -> "Hierarchy":
        """The tree of some classes, refused in one sentence if their names are none.

        Spaces around a level do not count. All classes must be leaves, of any depth.

        >>> Hierarchy.of(["billing", "billing > refund"])
        Traceback (most recent call last):
        ...
        cptuning.errors.CPTuningError: The label 'billing' is also the parent of 'billing > refund':
        give its texts a label of their own, such as 'billing > other'.
        """
        if not isinstance(separator, str) or not separator.strip():
            raise CPTuningError(
                f'The separator of the hierarchy is {separator!r}: give a sign, such as " > ".'
            )
        sign = separator.strip()
        by_path: dict[Path, Hashable] = {}
        for label in classes:
            path = _levels(label, sign)
            if path in by_path:
                raise CPTuningError(
                    f"The labels {by_path[path]!r} and {label!r} are the same place in the "
                    "hierarchy: spell them alike."
                )
            by_path[path] = label
        if max(map(len, by_path), default=0) < 2:
            raise CPTuningError(
                f"No label contains {sign!r}, so there is no hierarchy: name the sign that divides "
                'levels, as in "billing > refund".'
            )
        for path, label in by_path.items():
            for depth in range(1, len(path)):
                if path[:depth] in by_path:
                    parent = by_path[path[:depth]]
                    raise CPTuningError(
                        f"The label {parent!r} is also the parent of {label!r}: give its texts a "
                        f"label of their own, such as '{parent}{separator}other'."
                    )
        return cls(separator, tuple(map(str, classes)), tuple(by_path))

    @cached_property
    def depth(self) -> int:
        """How many levels the deepest class has."""
        return max(map(len, self.paths))

    @cached_property
    def node_paths(self) -> tuple[Path, ...]:
        """The levels of every node, a parent before its children."""
        return tuple(sorted({path[:d] for path in self.paths for d in range(1, len(path) + 1)}))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of the nodes, in the order of the columns of :meth:`probabilities`."""
        return tuple(map(self.name, self.node_paths))

    def name(self, path: Path) -> str:
        """How a node is written; a leaf is its class, as that is spelled."""
        return self._labels.get(path, self.separator.join(path))

    def probabilities(self, of_classes: Scores) -> Scores:
        """The probability of every node, the sum of those of its classes; one row per text."""
        return np.asarray(of_classes @ self._leaves_of)

    def answer(self, of_classes: Scores, min_confidence: float) -> tuple[str | None, float]:
        """The deepest node that is certain enough for one text, and its probability.

        The way leads from the root to the most probable child as long as that has at least the
        probability ``min_confidence``. If no node of the first level has, the answer is None, with
        the probability of the best of them.
        """
        shares = dict(zip(self.node_paths, self.probabilities(of_classes).tolist(), strict=True))
        at: Path = ()
        sure = 1.0
        while children := self._children.get(at):
            best = max(children, key=lambda node: shares[node])
            if shares[best] < min_confidence:
                return (self.name(at), sure) if at else (None, shares[best])
            at, sure = best, shares[best]
        return self.name(at), sure

    def levels(self, label: Hashable) -> Path:
        """The levels of a label or an answer."""
        return _levels(label, self.separator.strip())

    @cached_property
    def _labels(self) -> dict[Path, str]:
        return dict(zip(self.paths, self.classes, strict=True))

    @cached_property
    def _children(self) -> dict[Path, list[Path]]:
        children: dict[Path, list[Path]] = {}
        for node in self.node_paths:
            children.setdefault(node[:-1], []).append(node)
        return children

    @cached_property
    def _leaves_of(self) -> Scores:
        """One row per class and one column per node: 1 for the class itself and all above it."""
        return np.array(
            [[float(path[: len(node)] == node) for node in self.node_paths] for path in self.paths]
        )


def check_min_confidence(value: float) -> None:
    """Reject values that are not probabilities."""
    if not 0 <= value <= 1:
        raise CPTuningError(f"min_confidence is {value}: give a probability between 0 and 1.")


def _levels(label: Hashable, sign: str) -> Path:
    if not isinstance(label, str):
        raise CPTuningError(f"The label {label!r} is not a text, so it has no levels.")
    path = tuple(level.strip() for level in label.split(sign))
    if not all(path):
        raise CPTuningError(f"The label {label!r} has an empty level: remove a {sign!r} from it.")
    if len(set(path)) < len(path):
        twice = next(level for level in path if path.count(level) > 1)
        raise CPTuningError(
            f"The label {label!r} leads back to {twice!r}: a hierarchy has no loops, name each "
            "level once."
        )
    return path

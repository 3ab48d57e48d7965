"""How good answers are at each level of labels that have several."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from cptuning.inference import Hierarchy
from cptuning.inference.scoring import Scores


@dataclass(frozen=True)
class LevelScore:
    """The answers at one level, to the texts whose true label has it."""

    level: int
    """From 1, the highest."""
    texts: int
    accuracy: float
    """The share for which the most probable way down leads through the right node."""
    answered: int
    """How many are answered at this level or below with the least confidence that was asked for."""
    right: int
    """How many of those answers are right at this level."""


def scores_by_level(
    tree: Hierarchy, of_classes: Scores, truth: Sequence[Hashable], min_confidence: float
) -> list[LevelScore]:
    """The scores of each level, from probabilities of the classes and true labels.

    >>> import numpy as np
    >>> tree = Hierarchy.of(["a > x", "a > y", "b"])
    >>> for level in scores_by_level(tree, np.array([[0.5, 0.4, 0.1]]), ["a > y"], 0.8):
    ...     print(level)
    LevelScore(level=1, texts=1, accuracy=1.0, answered=1, right=1)
    LevelScore(level=2, texts=1, accuracy=0.0, answered=0, right=0)
    """
    wanted = [tree.levels(label) for label in truth]
    full = [_path(tree, row, 0.0) for row in of_classes]
    certain = [_path(tree, row, min_confidence) for row in of_classes]
    scores = []
    for level in range(1, tree.depth + 1):
        rows = [row for row, path in enumerate(wanted) if len(path) >= level]
        if not rows:
            continue
        answered = [row for row in rows if len(certain[row]) >= level]
        hits = sum(full[row][:level] == wanted[row][:level] for row in rows)
        right = sum(certain[row][:level] == wanted[row][:level] for row in answered)
        scores.append(LevelScore(level, len(rows), hits / len(rows), len(answered), right))
    return scores


def _path(tree: Hierarchy, of_classes: Scores, min_confidence: float) -> tuple[str, ...]:
    """The levels of the answer to one text; none if nothing is certain enough."""
    node, _ = tree.answer(of_classes, min_confidence)
    return () if node is None else tree.levels(node)

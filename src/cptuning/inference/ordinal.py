"""Labels with an order: the answer with the least expected distance, and how far it is off."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cptuning.data import LabelSpace
from cptuning.errors import CPTuningError

if TYPE_CHECKING:
    from cptuning.inference.scoring import Scores
    from cptuning.inference.support import IntArray

Order = tuple[Hashable, ...]
"""Labels from the least to the greatest."""


def order_of(ordinal: Any, label_space: LabelSpace) -> Order | None:
    """The order of the labels: by value if ``ordinal`` is true, else the list that it is.

    >>> order_of(True, LabelSpace(("10", "9", "1.5")))
    ('1.5', '9', '10')
    >>> order_of(["low", "high"], LabelSpace(("high", "low")))
    ('low', 'high')
    >>> order_of(True, LabelSpace(("low", "high")))
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The label 'low' is not a number: give ordinal the labels from the
    least to the greatest.
    """
    if ordinal is None or ordinal is False:
        return None
    if ordinal is True:
        return tuple(sorted(label_space.classes, key=_value))
    if isinstance(ordinal, str) or not hasattr(ordinal, "__iter__"):
        raise CPTuningError(
            f"ordinal is {ordinal!r}: give True, or the labels from the least to the greatest."
        )
    # A list in a command has texts where labels may be numbers.
    known = {str(label): label for label in label_space.classes}
    given = [str(label) for label in ordinal]
    for label in known:
        if given.count(label) != 1:
            times = "no place" if label not in given else "several places"
            raise CPTuningError(f"ordinal has {times} for the label {label!r}: name each one once.")
    for label in given:
        if label not in known:
            raise CPTuningError(f"ordinal names {label!r}, which no example has: leave it out.")
    return tuple(known[label] for label in given)


def extended(order: Order, label_space: LabelSpace) -> Order:
    """The order with labels that came later, if they are numbers."""
    new = [label for label in label_space.classes if label not in order]
    if not new:
        return order
    if all(_is_number(label) for label in (*order, *new)):
        return tuple(sorted((*order, *new), key=_value))
    raise CPTuningError(
        f"The label {new[0]!r} has no place in the order of the labels: fit the model again."
    )


def values_of(order: Order) -> NDArray[np.float64]:
    """The labels as numbers: their own, or their places.

    >>> values_of(("1", "2", "5")).tolist(), values_of(("low", "high")).tolist()
    ([1.0, 2.0, 5.0], [0.0, 1.0])
    """
    if all(map(_is_number, order)):
        return np.array([_value(label) for label in order])
    return np.arange(len(order), dtype=np.float64)


def medians(probabilities: "Scores", places: Sequence[int]) -> "IntArray":
    """The class of each row with the least expected distance, which is the median.

    ``places`` are the columns from the least class to the greatest. For any values v of the
    classes, Σ p_c |v_c − v| is least where the probabilities up to v first reach one half.

    >>> medians(np.array([[0.4, 0.25, 0.35], [0.6, 0.1, 0.3]]), [0, 1, 2]).tolist()
    [1, 0]
    """
    ordered = probabilities[:, list(places)].cumsum(axis=1)
    # The last sum is 1 but for rounding.
    reached = ordered >= 0.5 * ordered[:, -1:]
    classes: IntArray = np.array(places, np.int64)[reached.argmax(axis=1)]
    return classes


def mean_distance(
    truth: Sequence[Hashable], answers: Sequence[Hashable], order: Order
) -> float | None:
    """The mean absolute difference of answers and right labels; None if there are none.

    Rows with a label that has no place, such as "unknown", are left out.

    >>> mean_distance(["1", "5", "1"], ["2", "5", "unknown"], ("1", "2", "5"))
    0.5
    """
    values = dict(zip(order, values_of(order).tolist(), strict=True))
    distances = [
        abs(values[right] - values[answer])
        for right, answer in zip(truth, answers, strict=True)
        if right in values and answer in values
    ]
    return float(np.mean(distances)) if distances else None


def _value(label: Hashable) -> float:
    if not _is_number(label):
        raise CPTuningError(
            f"The label {label!r} is not a number: give ordinal the labels from the least to the "
            "greatest."
        )
    return float(label)  # type: ignore[arg-type]


def _is_number(label: Hashable) -> bool:
    try:
        return bool(np.isfinite(float(label)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False

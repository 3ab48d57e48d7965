"""The weights of examples and classes, and the expected class frequencies, as users give them."""

import sys
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cptuning.data.labels import IntArray, LabelSpace, aligned
from cptuning.errors import CPTuningError

Weights = NDArray[np.float64]

_LARGEST: Any = sys.float_info.max


def as_sample_weights(given: Any, n: int) -> Weights | None:
    """One number per example, none of them negative and not all zero.

    >>> as_sample_weights([1, 2.5], n=2)
    array([1. , 2.5])
    >>> as_sample_weights([1, -1], n=2)
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: sample_weight is -1.0 in row 2: give numbers of at least 0.
    """
    if given is None:
        return None
    try:
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CPTuningError(
            "sample_weight contains values that are not numbers: give one number per example."
        ) from None
    if weights.shape != (n,):
        raise CPTuningError(
            f"sample_weight has shape {weights.shape} for {n} examples: give one number for each."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise CPTuningError(
            f"sample_weight is {weights[wrong[0]]} in row {wrong[0] + 1}: "
            "give numbers of at least 0."
        )
    if not weights.any():
        raise CPTuningError("All weights of examples are 0: give at least one a positive weight.")
    return weights


def class_weights(
    given: Any, label_space: LabelSpace, labels: IntArray, sample_weights: Weights | None = None
) -> Weights | None:
    """The weight of each class, as scikit-learn has it; a class that is not named weighs 1.

    With "balanced" it is n / (C nc), with n the number of examples, C that of classes and nc that
    of the class's examples, so that all classes count alike. Examples count by their own weights.

    >>> space = LabelSpace(("ham", "spam"))
    >>> class_weights("balanced", space, np.array([0, 0, 0, 1]))
    array([0.66..., 2.        ])
    >>> class_weights({"spam": 3}, space, np.array([0, 0, 0, 1]))
    array([1., 3.])
    """
    if given is None:
        return None
    if isinstance(given, str) and given == "balanced":
        counts = np.bincount(labels, sample_weights, minlength=len(label_space))
        found = counts > 0  # A class may be described only.
        return np.where(found, counts.sum() / (found.sum() * np.where(found, counts, 1.0)), 1.0)
    if not isinstance(given, Mapping):
        raise CPTuningError(
            f'class_weight is {given!r}: give "balanced", or a dictionary from labels to numbers.'
        )
    weights = np.ones(len(label_space))
    for label, value in _by_label("class_weight", given, label_space).items():
        weights[label_space.classes.index(label)] = value
    if not (weights > 0).all():
        raise CPTuningError(f"class_weight is {weights.min():g} for a label: give numbers above 0.")
    return weights


def as_class_prior(given: Any, label_space: LabelSpace) -> Weights | None:
    """The share of each class among the texts to come: above 0, together 1.

    It may be a dictionary with every label, or as many numbers as there are classes, in their
    order.

    >>> as_class_prior({"spam": 0.1, "ham": 0.9}, LabelSpace(("ham", "spam")))
    array([0.9, 0.1])
    >>> as_class_prior([0.5, 0.6], LabelSpace(("ham", "spam")))
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The shares in class_prior add up to 1.1: they must add up to 1.
    """
    if given is None:
        return None
    n = len(label_space)
    if isinstance(given, Mapping):
        shares = _by_label("class_prior", given, label_space)
        missing = [label for label in label_space.classes if label not in shares]
        if missing:
            raise CPTuningError(
                f"class_prior has no share for the label {missing[0]!r}: give one for each label."
            )
        prior = np.array([shares[label] for label in label_space.classes])
    else:
        try:
            prior = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            prior = np.empty(0)
        if isinstance(given, str) or prior.shape != (n,):
            raise CPTuningError(
                f"class_prior is {given!r}: give a dictionary from labels to shares, or {n} "
                "numbers, one for each class."
            )
    if not (np.isfinite(prior).all() and (prior > 0).all()):
        raise CPTuningError(f"class_prior has the share {prior.min():g}: give numbers above 0.")
    if abs(prior.sum() - 1) > 1e-3:
        raise CPTuningError(
            f"The shares in class_prior add up to {prior.sum():g}: they must add up to 1."
        )
    return np.asarray(prior / prior.sum())


def _by_label(
    name: str, given: Mapping[Any, Any], label_space: LabelSpace
) -> dict[Hashable, float]:
    """The numbers by label; a label may be spelled as its text, as in a file."""
    classes: Sequence[Hashable] = label_space.classes
    found: dict[Hashable, float] = {}
    for label, value in zip(aligned(list(given), classes), given.values(), strict=True):
        if label not in classes:
            raise CPTuningError(f"{name} names {label!r}, which is not a label.")
        if isinstance(value, bool) or not (
            isinstance(value, Real) and -_LARGEST <= value <= _LARGEST
        ):
            raise CPTuningError(f"{name} is {value!r} for the label {label!r}: give a number.")
        found[label] = float(value)
    return found

"""The methods by name; every one is an estimator with the same interface."""

from typing import Any

from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningClassifier

_METHODS = {
    "cp-tuning": (
        CPTuningClassifier,
        "trainable prompt, contrastive loss on the output mask, nearest examples decide",
    ),
}


def list_methods() -> dict[str, str]:
    """The names of the methods, with a line on each.

    >>> list(list_methods())
    ['cp-tuning']
    """
    return {name: line for name, (_, line) in _METHODS.items()}


def make_classifier(method: str, **parameters: Any) -> CPTuningClassifier:
    """An unfitted classifier of a method, with its parameters.

    >>> make_classifier("cp-tuning", random_state=7).random_state
    7
    """
    if method not in _METHODS:
        raise CPTuningError(f"There is no method {method!r}: use one of {', '.join(_METHODS)}.")
    try:
        return _METHODS[method][0](**parameters)
    except TypeError as error:
        raise CPTuningError(f"{method} takes no such parameter: {error}.") from error

"""The methods by name; every one is an estimator with the same interface."""

from typing import Any

from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningClassifier, TextClassifier

_METHODS: dict[str, tuple[type[TextClassifier], str]] = {
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


def classifier_class(method: str) -> type[TextClassifier]:
    """The estimator of a method.

    >>> classifier_class("cp-tuning").__name__
    'CPTuningClassifier'
    """
    if method not in _METHODS:
        raise CPTuningError(f"There is no method {method!r}: use one of {', '.join(_METHODS)}.")
    return _METHODS[method][0]


def make_classifier(method: str, **parameters: Any) -> TextClassifier:
    """An unfitted classifier of a method, with its parameters.

    >>> make_classifier("cp-tuning", random_state=7).random_state
    7
    """
    try:
        return classifier_class(method)(**parameters)
    except TypeError as error:
        raise CPTuningError(f"{method} takes no such parameter: {error}.") from error

"""Constructors for classifiers: the parameters that all have, and the settings of the method."""

from dataclasses import fields
from inspect import Parameter, Signature
from typing import Any, TypeVar

from cptuning.estimator.base import TextClassifier

C = TypeVar("C", bound=TextClassifier)

_SHARED = {
    "backbone": "embedded",
    "preset": "default",
    "random_state": 0,
    "validation": "cross-fit",
    "folds": 2,
    "device": "auto",
    "precision": "auto",
    "verbose": True,
    "callbacks": None,
    "checkpoint_dir": None,
    "checkpoint_seconds": 30.0,
}
_POSITIONAL = ("backbone", "preset", "random_state")


def takes_settings(*more: str) -> Any:
    """A class decorator: every setting of the method is a parameter, None taking the preset's.

    The settings' own class is the one list of them; scikit-learn reads the signature made here.
    """

    def with_constructor(cls: type[C]) -> type[C]:
        settings = [field.name for field in fields(cls.settings_class)]
        defaults = _SHARED | dict.fromkeys((*more, *settings))
        signature = Signature(
            [
                Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
                *(_parameter(name, default) for name, default in defaults.items()),
            ]
        )

        def __init__(self: Any, *args: Any, **given: Any) -> None:  # noqa: N807
            bound = signature.bind(self, *args, **given)
            bound.apply_defaults()
            for name in defaults:
                setattr(self, name, bound.arguments[name])

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__ = __init__  # type: ignore[method-assign]
        return cls

    return with_constructor


def _parameter(name: str, default: Any) -> Parameter:
    kind = Parameter.POSITIONAL_OR_KEYWORD if name in _POSITIONAL else Parameter.KEYWORD_ONLY
    return Parameter(name, kind, default=default)

"""Few-shot text classification without prompts, label words or a classification head."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cptuning.cleaning import check
    from cptuning.estimator import CPTuningClassifier, CPTuningRanker, CPTuningTagger
    from cptuning.registry import list_methods, load, make_classifier

__all__ = [
    "CPTuningClassifier",
    "CPTuningRanker",
    "CPTuningTagger",
    "check",
    "list_methods",
    "load",
    "make_classifier",
]

# Looked up when first used: `import cptuning` costs nothing, and needs neither torch nor sklearn.
_HOMES = {
    "CPTuningClassifier": "cptuning.estimator",
    "CPTuningRanker": "cptuning.estimator",
    "CPTuningTagger": "cptuning.estimator",
    "check": "cptuning.cleaning",
    "list_methods": "cptuning.registry",
    "load": "cptuning.registry",
    "make_classifier": "cptuning.registry",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("cptuning")
    if name not in _HOMES:
        raise AttributeError(f"module 'cptuning' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})

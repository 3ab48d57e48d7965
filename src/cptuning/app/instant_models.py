"""Models without a step of training: answers as soon as there are examples."""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

from cptuning.app.checks import ExamplesCheck
from cptuning.app.user_examples import Example, examples_and_labels
from cptuning.estimator import CPTuningClassifier
from cptuning.estimator.cp_tuning import READ_SETTINGS

# More examples than this take too long to be read without being asked.
MOST_EXAMPLES = 1000
# So many classes need so many examples each.
_LEAST = 2


class InstantModels:
    """Fits the preset "instant" for all visitors on one copy of the backbone."""

    def __init__(self, backbone: str, method: Mapping[str, Any], unknown_threshold: Any) -> None:
        self._backbone = backbone
        self._lock = Lock()
        self._loaded: Any = None
        self._unknown_threshold = unknown_threshold
        self._parameters = {
            "preset": "instant",
            "verbose": False,
            **{name: value for name, value in method.items() if name in READ_SETTINGS},
        }

    def fit(self, examples: Sequence[Example], several: bool = False) -> CPTuningClassifier:
        """A model of these examples, with answers to each one as if it had not seen it.

        Where a text may have ``several`` labels, none is unknown: it has no label.
        """
        threshold = None if several else self._unknown_threshold
        return self.new(threshold).fit(*examples_and_labels(examples))

    def new(self, unknown_threshold: Any) -> CPTuningClassifier:
        """A classifier that is not fitted yet."""
        return CPTuningClassifier(
            self._shared_backbone(), unknown_threshold=unknown_threshold, **self._parameters
        )

    def _shared_backbone(self) -> Any:
        if self._backbone == "embedded":  # It is shared as it is, and read without torch.
            return self._backbone
        from cptuning.backbone import load_backbone

        with self._lock:
            if self._loaded is None:
                self._loaded = load_backbone(self._backbone, progress=False)
        return self._loaded


def can_be_instant(check: ExamplesCheck) -> bool:
    """Whether there are two classes of two examples, and not too many of all.

    >>> two = [Example("a", "x"), Example("b", "x"), Example("c", "y"), Example("d", "y")]
    >>> can_be_instant(ExamplesCheck.of(two)), can_be_instant(ExamplesCheck.of(two[:3]))
    (True, False)
    """
    large = [n for n in check.counts.values() if n >= _LEAST]
    return len(large) >= _LEAST and sum(check.counts.values()) <= MOST_EXAMPLES

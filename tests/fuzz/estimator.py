"""The estimator in any order of calls, beside a model of it that is a list and a few sets."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import cptuning
from cptuning import CPTuningClassifier
from cptuning.errors import CPTuningError
from tests.fuzz.targets import check_probabilities

TEXTS = st.text(max_size=12).filter(lambda text: text.isprintable() or not text)
LABELS = st.sampled_from(["red", "green", "blue", "", "ünï", "a,b"])
EXAMPLES = st.lists(st.tuples(TEXTS, LABELS), min_size=1, max_size=5)


class EstimatorMachine(RuleBasedStateMachine):
    """An instant classifier: fitted, taught, saved, exported, asked."""

    @initialize()
    def begin(self) -> None:
        """Nothing is fitted, and nothing known."""
        self.classifier = CPTuningClassifier(preset="instant", random_state=0, verbose=False)
        self.known: list[tuple[str, str]] | None = None
        self.classes: list[str] = []

    @property
    def is_fitted(self) -> bool:
        """Whether a fit has succeeded."""
        return self.known is not None

    @rule(examples=EXAMPLES)
    def fit(self, examples: list[tuple[str, str]]) -> None:
        """A fit forgets what was known; one class is refused, and changes nothing."""
        texts, labels = map(list, zip(*examples, strict=True))
        if len(set(labels)) < 2:
            with pytest.raises(CPTuningError, match="at least two classes"):
                self.classifier.fit(texts, labels)
            return
        assert self.classifier.fit(texts, labels) is self.classifier
        self.known, self.classes = examples, sorted(set(labels))

    @precondition(lambda self: self.is_fitted)
    @rule(examples=EXAMPLES)
    def add(self, examples: list[tuple[str, str]]) -> None:
        """Examples are added at the end; new classes too, in their order."""
        texts, labels = map(list, zip(*examples, strict=True))
        self.classifier.add_examples(texts, labels)
        assert self.known is not None
        self.known = self.known + examples
        self.classes = self.classes + sorted(set(labels) - set(self.classes))

    @precondition(lambda self: self.is_fitted)
    @rule(texts=st.lists(TEXTS, min_size=1, max_size=4))
    def predict(self, texts: list[str]) -> None:
        """Answers are classes, with probabilities and reasons that are known examples."""
        labels = self.classifier.predict(texts).tolist()
        assert set(labels) <= set(self.classes)
        probabilities = self.classifier.predict_proba(texts)
        check_probabilities(probabilities)
        best = probabilities.argmax(axis=1)
        assert labels == [self.classes[i] for i in best]
        for label, reasons in zip(labels, self.classifier.explain(texts, 2), strict=True):
            assert 1 <= len(reasons) <= 2
            for reason in reasons:
                assert reason.label == label
                assert (reason.text, label) in (self.known or [])

    @precondition(lambda self: self.is_fitted)
    @rule()
    def save_and_load(self) -> None:
        """What is loaded answers as what was saved."""
        with tempfile.TemporaryDirectory() as folder:
            expected = self.classifier.predict_proba(["a text", ""])
            self.classifier.save(Path(folder, "model"))
            self.classifier = cptuning.load(Path(folder, "model"))
            found = self.classifier.predict_proba(["a text", ""])
        assert abs(found - expected).max() < 1e-5

    @precondition(lambda self: self.is_fitted)
    @rule(wrong=st.sampled_from(["label", "number", "text", "k", "place", "lengths"]))
    def misuse(self, wrong: str) -> None:
        """What is refused changes nothing."""
        calls: dict[str, Any] = {
            "label": lambda: self.classifier.add_examples(["a"], [None]),
            "number": lambda: self.classifier.predict([3]),
            "text": lambda: self.classifier.predict("a text"),
            "k": lambda: self.classifier.explain(["a"], 0),
            "place": lambda: self.classifier.save(None),  # type: ignore[arg-type]
            "lengths": lambda: self.classifier.add_examples(["a", "b"], ["red"]),
        }
        with pytest.raises(CPTuningError):
            calls[wrong]()

    @rule()
    def copy(self) -> None:
        """A clone has learned nothing, and the original forgets nothing."""
        with pytest.raises(NotFittedError):
            clone(self.classifier).predict(["a"])

    @precondition(lambda self: not self.is_fitted)
    @rule()
    def ask_too_early(self) -> None:
        """Unfitted classifiers say so."""
        with pytest.raises(NotFittedError):
            self.classifier.predict(["a"])

    @invariant()
    def knows_what_the_model_knows(self) -> None:
        """Examples and classes are those of the list."""
        if self.known is None:
            return
        support = self.classifier.predictor_.support
        found = self.classifier.predictor_.label_space.decode(support.labels).tolist()
        assert list(zip(support.examples, found, strict=True)) == self.known
        assert self.classifier.classes_.tolist() == self.classes

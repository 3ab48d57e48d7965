"""The work of one visitor: the examples, the model, and what can be done with both."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

from cptuning.app.background_job import BackgroundJob, TrainingProgressCallback
from cptuning.app.checks import ExamplesCheck, repeated_places
from cptuning.app.review import EmbeddingMap, Review
from cptuning.app.user_examples import (
    AS_NAMED,
    Example,
    TableColumns,
    Text,
    examples_and_labels,
    tables_in,
    without_folder,
)
from cptuning.data import Examples, LabelledData, Table
from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningClassifier
from cptuning.inference import UNKNOWN, Reasons, Suggestion, suggestions
from cptuning.reporting.curve_measurement import default_sizes, largest_size, measure
from cptuning.reporting.learning_curve import LearningCurve

_CURVE_REPEATS = 3
_FOLDS = 2


@dataclass(frozen=True)
class AppSettings:
    """The settings of every model that the page trains."""

    backbone: str = "embedded"
    method: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the method that differ from the preset."""
    unknown_threshold: float | str = "auto"
    """A text whose similarity to every example is below it is answered "unknown"."""


@dataclass(frozen=True)
class ExplainedAnswer:
    """The prediction for one text, with its explanation."""

    text: Text
    label: str
    probabilities: dict[str, float]
    """By class, the most probable first."""
    reasons: Reasons

    @property
    def is_unknown(self) -> bool:
        """Whether the text is too dissimilar to every example.

        >>> ExplainedAnswer("?", "unknown", {"a": 1.0}, Reasons()).is_unknown
        True
        """
        return self.label == UNKNOWN  # No class has this name: see Session.add.


P = ParamSpec("P")
T = TypeVar("T")


def _exclusive(
    change: Callable[Concatenate["Session", P], T],
) -> Callable[Concatenate["Session", P], T]:
    """Let one thread at a time change a session: Gradio's threads and a job's may meet in it."""

    @wraps(change)
    def alone(session: "Session", /, *args: P.args, **kwargs: P.kwargs) -> T:
        with session.lock:
            return change(session, *args, **kwargs)

    return alone


class Session:
    """The examples of one visitor, and the model if there is one.

    A trained model knows exactly the listed examples, in their order: whatever is added, relabelled
    or deleted later it takes in at once, without training.

    >>> session = Session()
    >>> session.add([Example("hello", "greeting"), Example("bye", "farewell")])
    >>> session.check().counts, session.is_trained
    ({'farewell': 1, 'greeting': 1}, False)
    """

    def __init__(self, settings: AppSettings | None = None) -> None:
        self.settings = settings or AppSettings()
        self.lock = RLock()
        self.examples: list[Example] = []
        self.classifier: CPTuningClassifier | None = None
        self.review: Review | None = None
        self.curve: LearningCurve | None = None
        self.changes = 0
        """How many examples were added, relabelled or deleted since the last training."""
        self.is_training = False
        """Whether a training was requested and has not ended; it may still wait for its turn."""
        self.job: BackgroundJob[Any] | None = None
        self._map: tuple[list[Example], EmbeddingMap] | None = None
        self._files: TemporaryDirectory[str] | None = None

    def __deepcopy__(self, memo: Any) -> "Session":
        return Session(self.settings)  # Gradio copies the empty session; a lock can't be copied.

    # The examples.

    def check(self) -> ExamplesCheck:
        """The counts and likely mistakes of the examples."""
        return ExamplesCheck.of(self.examples)

    @_exclusive
    def add(self, more: Sequence[Example]) -> None:
        """Add examples, which may be of new classes."""
        examples_and_labels([*self.examples, *more])  # Refuses a mix of texts and pairs.
        if any(example.label == UNKNOWN for example in more):
            raise CPTuningError(
                f"No class may be called {UNKNOWN!r}, which is the answer to texts unlike every "
                "example: choose another name."
            )
        if self.classifier is not None and more:
            self.classifier.add_examples(*examples_and_labels(more))
        self.examples = [*self.examples, *more]
        self.changes += len(more)

    @_exclusive
    def delete(self, places: Iterable[int]) -> None:
        """Delete the examples at these positions."""
        gone = set(places)
        if self.classifier is not None and gone:
            without = self.classifier.predictor_.without_examples(sorted(gone))
            self.classifier.predictor_ = without
        self.examples = [e for place, e in enumerate(self.examples) if place not in gone]
        self.changes += len(gone)

    @_exclusive
    def delete_repeats(self) -> None:
        """Delete the examples that repeat an earlier one, text and label."""
        self.delete(repeated_places(self.examples))

    @_exclusive
    def relabel(self, place: int, label: str) -> None:
        """Give an example another label, and move it to the end."""
        old = self.examples[place]
        new = Example(old.text, label.strip())
        if not new.label:
            raise CPTuningError("The label is empty: enter one.")
        if new == old:
            return
        self.add([new])
        self.delete([place])
        self.changes -= 1  # It is one change, not two.

    @_exclusive
    def clear(self) -> None:
        """Delete the examples and the model."""
        self.cancel_training()
        self.examples, self.classifier, self.review, self.curve = [], None, None, None
        self.changes = 0

    @property
    def is_pair(self) -> bool:
        """Whether the examples are pairs of texts."""
        return bool(self.examples) and self.examples[0].is_pair

    @property
    def labels(self) -> list[str]:
        """The names of the classes."""
        return list(self.check().counts)

    # The model.

    @property
    def is_trained(self) -> bool:
        """Whether there is a model."""
        return self.classifier is not None

    def model(self) -> CPTuningClassifier:
        """The model; raises an error if there is none yet."""
        if self.classifier is None and self.is_training:
            raise CPTuningError("The model is being trained: try again when it is done.")
        if self.classifier is None:
            raise CPTuningError("There is no model yet: train one first.")
        return self.classifier

    def request_training(self) -> None:
        """Announce a training, unless the examples don't allow one."""
        self.check().require_trainable()
        self.is_training = True

    def train(self) -> BackgroundJob[bool]:
        """A job that trains a model; until it is done, or if it is cancelled, the old one stays."""
        self.check().require_trainable()
        examples = list(self.examples)

        def work(job: BackgroundJob[bool]) -> bool:
            job.report(0.0, "Reading the language model")
            watch = TrainingProgressCallback(job, trainings=_FOLDS + 1)
            classifier = self._new_classifier(
                [watch], folds=_FOLDS, unknown_threshold=self.settings.unknown_threshold
            )
            classifier.fit(*examples_and_labels(examples))
            classifier.callbacks = None
            job.report(1.0, "Reviewing the answers")
            review = Review.of(examples, classifier)
            with self.lock:
                job.report(1.0, "Done")  # Ends here if the visitor has started over meanwhile.
                self.review = review
                self._take(classifier, examples)
            return True

        return self._started(work)

    def _take(self, classifier: CPTuningClassifier, trained_on: list[Example]) -> None:
        """Use the new model, after applying to it what changed while it was trained."""
        unmatched, gone = Counter(self.examples), []
        for place, example in enumerate(trained_on):
            if unmatched[example] == 0:
                gone.append(place)
            else:
                unmatched[example] -= 1
        new = list(unmatched.elements())
        self.examples, self.classifier, self.curve, self.changes = trained_on, classifier, None, 0
        self.delete(gone)
        self.add(new)

    def measure_curve(self) -> BackgroundJob[LearningCurve]:
        """A job that measures the learning curve; if it is cancelled, what was measured stays."""
        steps = int(self.model().training_["best_step"])
        if max(self.check().counts.values()) < _CURVE_REPEATS:
            raise CPTuningError(
                f"The learning curve needs a class with at least {_CURVE_REPEATS} examples."
            )
        data = LabelledData(*examples_and_labels(self.examples))
        sizes = default_sizes(largest_size(data, None, _CURVE_REPEATS))
        trainings = len(sizes) * _CURVE_REPEATS

        def work(job: BackgroundJob[LearningCurve]) -> LearningCurve:
            done = 0

            def answer(examples: Examples, labels: list[Any], new: Examples, seed: int) -> Any:
                about = (done / trainings, (done + 1) / trainings)
                watch = TrainingProgressCallback(job, trainings=1, about=about)
                classifier = self._new_classifier(
                    [watch], validation="none", random_state=seed, steps=steps
                )
                return classifier.fit(examples, labels).predict(new).tolist()

            job.report(0.0, "Measuring")
            for curve in measure(
                data, None, sizes=sizes, repeats=_CURVE_REPEATS, seed=0, answer=answer
            ):
                done += 1
                self.curve = curve
                job.report(done / trainings, f"{done} of {trainings} trainings done", curve)
            return curve

        return self._started(work)

    def _started(self, work: Callable[[BackgroundJob[Any]], Any]) -> BackgroundJob[Any]:
        self.job = BackgroundJob(work)
        return self.job

    def cancel(self) -> None:
        """Cancel the running job, if there is one."""
        if self.job is not None:
            self.job.cancel()

    def cancel_training(self) -> None:
        """Cancel the training, also one that still waits for its turn."""
        self.is_training = False
        self.cancel()

    def _new_classifier(self, callbacks: list[Any], **changes: Any) -> CPTuningClassifier:
        parameters = {**self.settings.method, **changes}
        return CPTuningClassifier(
            self.settings.backbone, verbose=False, callbacks=callbacks, **parameters
        )

    # What the model is asked.

    def answer(self, text: str, second: str = "", k: int = 3) -> ExplainedAnswer:
        """The label of a text, its probability, and the examples that explain it."""
        predictor = self.model().predictor_  # Read once: it may be replaced at any time.
        if not text.strip() or (self.is_pair and not second.strip()):
            raise CPTuningError("Type both texts first." if self.is_pair else "Type a text first.")
        asked: Text = (text.strip(), second.strip()) if self.is_pair else text.strip()
        answered = predictor.answer([asked])
        [reasons] = predictor.reasons(answered.embeddings, answered.labels.tolist(), k)
        names = map(str, predictor.label_space.classes)
        shares = zip(names, answered.probabilities[0].tolist(), strict=True)
        return ExplainedAnswer(
            asked,
            str(answered.labels[0]),
            dict(sorted(shares, key=_share, reverse=True)),
            reasons,
        )

    @_exclusive
    def teach(self, text: Text, label: str) -> None:
        """Add a text with its right label, in place of any examples with the same text."""
        self.model()
        example = Example(text, label.strip())
        if not example.label:
            raise CPTuningError("Choose or enter the right label.")
        old = [place for place, known in enumerate(self.examples) if known.text == text]
        if example in self.examples and len(old) == 1:
            raise CPTuningError(f"The model already knows this text as {example.label!r}.")
        self.add([example])
        self.delete(old)
        self.changes -= len(old)

    @_exclusive
    def map(self) -> EmbeddingMap:
        """The examples in the plane, by their embeddings."""
        model = self.model()
        if self._map is None or self._map[0] != self.examples:
            self._map = list(self.examples), EmbeddingMap.of(model.predictor_.support.embeddings)
        return self._map[1]

    def suggest(
        self, pool: str | Path | None, n: int, columns: TableColumns = AS_NAMED
    ) -> tuple[Table, list[Suggestion]]:
        """The rows of a file, and which of its texts should be labelled next."""
        predictor = self.model().predictor_
        if pool is None:
            raise CPTuningError("Upload a file with unlabelled texts first.")
        [table] = tables_in(pool, columns)
        try:
            examples = predictor.examples(table.examples)
        except CPTuningError as error:
            raise without_folder(error, pool) from error
        return table, suggestions(predictor, examples, n)

    @_exclusive
    def file(self, name: str) -> Path:
        """The path for a file of this visitor."""
        if self._files is None:
            self._files = TemporaryDirectory(prefix="cptuning-app-", ignore_cleanup_errors=True)
        return Path(self._files.name, name)

    def close(self) -> None:
        """Cancel the running job and delete all files: the visitor has gone."""
        self.cancel()
        if self._files is not None:
            self._files.cleanup()


def _share(entry: tuple[str, float]) -> float:
    return entry[1]

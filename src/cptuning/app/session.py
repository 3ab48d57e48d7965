"""One visitor's work: the examples, the model that knows them, and all that is done with both."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cptuning.app.background_job import BackgroundJob, TrainingProgressCallback
from cptuning.app.checks import ExamplesCheck, repeats
from cptuning.app.review import EmbeddingMap, Review
from cptuning.app.user_examples import Example, Text, as_data, named_as_given
from cptuning.data import Examples, LabelledData, read_table
from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningClassifier
from cptuning.inference import UNKNOWN, Reasons, Suggestion, suggestions
from cptuning.reporting.curve_measurement import default_sizes, largest_size, measure
from cptuning.reporting.learning_curve import LearningCurve

_CURVE_REPEATS = 3
_FOLDS = 2


@dataclass(frozen=True)
class AppSettings:
    """What the command says about every model that the page trains."""

    backbone: str = "embedded"
    method: Mapping[str, Any] = field(default_factory=dict)
    """AppSettings of the method other than the preset's."""
    unknown_threshold: float | str = "auto"
    """The similarity to the nearest example below which a text is unknown."""


@dataclass(frozen=True)
class ExplainedAnswer:
    """What the model says of one text, and why."""

    text: Text
    label: str
    probabilities: dict[str, float]
    """By class, the likeliest first."""
    reasons: Reasons

    @property
    def is_unknown(self) -> bool:
        """Whether the text is too far from every example.

        >>> ExplainedAnswer("?", "unknown", {"a": 1.0}, Reasons()).is_unknown
        True
        """
        return self.label == UNKNOWN  # No class may be called so: the page always sets a threshold.


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
        self.examples: list[Example] = []
        self.classifier: CPTuningClassifier | None = None
        self.review: Review | None = None
        self.curve: LearningCurve | None = None
        self.changes = 0
        """How many examples were added, relabelled or deleted since the training."""
        self.is_training = False
        """Whether a training that was asked for has not ended yet; it may wait for its turn."""
        self.job: BackgroundJob[Any] | None = None
        self._map: tuple[list[Example], EmbeddingMap] | None = None
        self._files: TemporaryDirectory[str] | None = None

    # The examples.

    def check(self) -> ExamplesCheck:
        """The examples, counted and looked through."""
        return ExamplesCheck.of(self.examples)

    def add(self, more: Sequence[Example]) -> None:
        """More examples, also of new classes."""
        as_data([*self.examples, *more])  # Refuses a mix of texts and pairs.
        if any(example.label == UNKNOWN for example in more):
            raise CPTuningError(
                f"No class may be called {UNKNOWN!r}, the answer to texts far from every example: "
                "choose another name."
            )
        if self.classifier is not None and more:
            self.classifier.add_examples(*as_data(more))
        self.examples += more
        self.changes += len(more)

    def delete(self, places: Iterable[int]) -> None:
        """Forget these examples."""
        gone = set(places)
        if self.classifier is not None and gone:
            without = self.classifier.predictor_.without_examples(sorted(gone))
            self.classifier.predictor_ = without
        self.examples = [e for place, e in enumerate(self.examples) if place not in gone]
        self.changes += len(gone)

    def delete_repeats(self) -> None:
        """Forget what repeats a text with its label."""
        self.delete(repeats(self.examples))

    def relabel(self, place: int, label: str) -> None:
        """Give an example another label; it then stands last."""
        old = self.examples[place]
        new = Example(old.text, label.strip())
        if not new.label:
            raise CPTuningError("The label is empty: write one.")
        if new == old:
            return
        self.add([new])
        self.delete([place])
        self.changes -= 1  # It is one change, not two.

    def clear(self) -> None:
        """Begin anew."""
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
        """The model; one clear sentence where there is none yet."""
        if self.classifier is None and self.is_training:
            raise CPTuningError("The training is under way: try again when it is done.")
        if self.classifier is None:
            raise CPTuningError("There is no model yet: train one first.")
        return self.classifier

    def ask_for_training(self) -> None:
        """Let everybody know that there will be a training, unless it would be refused."""
        self.check().refuse_too_little()
        self.is_training = True

    def training(self) -> BackgroundJob[bool]:
        """Trains a model; until it is done, and if it is stopped, the old one stays."""
        self.check().refuse_too_little()
        examples = list(self.examples)

        def work(job: BackgroundJob[bool]) -> bool:
            job.report(0.0, "Reading the backbone")
            watch = TrainingProgressCallback(job, trainings=_FOLDS + 1)
            classifier = self._new_classifier(
                [watch], folds=_FOLDS, unknown_threshold=self.settings.unknown_threshold
            )
            classifier.fit(*as_data(examples))
            classifier.callbacks = None
            job.report(1.0, "Looking at the answers")
            review = Review.of(examples, classifier)
            job.report(1.0, "Done")  # Who started over meanwhile wants neither.
            self.review = review
            self._take(classifier, examples)
            return True

        return self._started(work)

    def _take(self, classifier: CPTuningClassifier, trained_on: list[Example]) -> None:
        """Have the new model, and let it know what changed while it was trained."""
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

    def curve_measuring(self) -> BackgroundJob[LearningCurve]:
        """Measures the learning curve; what was measured until it is stopped stays."""
        steps = int(self.model().training_["best_step"])
        if max(self.check().counts.values()) < _CURVE_REPEATS:
            raise CPTuningError(
                f"A class with at least {_CURVE_REPEATS} examples is needed for it."
            )
        data = LabelledData(*as_data(self.examples))
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
        """Stop what is running, if anything is."""
        if self.job is not None:
            self.job.cancel()

    def cancel_training(self) -> None:
        """Stop the training; from now on nothing says that there is one."""
        self.is_training = False
        self.cancel()

    def _new_classifier(self, callbacks: list[Any], **changes: Any) -> CPTuningClassifier:
        parameters = {**self.settings.method, **changes}
        return CPTuningClassifier(
            self.settings.backbone, verbose=False, callbacks=callbacks, **parameters
        )

    # What the model is asked.

    def answer(self, text: str, second: str = "", k: int = 3) -> ExplainedAnswer:
        """The label of a text, its probability, and the examples that are the reason."""
        model = self.model()
        if not text.strip() or (self.is_pair and not second.strip()):
            raise CPTuningError("Type both texts first." if self.is_pair else "Type a text first.")
        asked: Text = (text.strip(), second.strip()) if self.is_pair else text.strip()
        answered = model.predictor_.answer([asked])
        [reasons] = model.predictor_.reasons(answered.embeddings, answered.labels.tolist(), k)
        shares = zip(map(str, model.classes_), answered.probabilities[0].tolist(), strict=True)
        return ExplainedAnswer(
            asked,
            str(answered.labels[0]),
            dict(sorted(shares, key=_share, reverse=True)),
            reasons,
        )

    def teach(self, text: Text, label: str) -> None:
        """Learn the right label of a text at once; what was known of the same text is forgotten."""
        self.model()
        example = Example(text, label.strip())
        if not example.label:
            raise CPTuningError("Say what the right label is.")
        old = [place for place, known in enumerate(self.examples) if known.text == text]
        if example in self.examples and len(old) == 1:
            raise CPTuningError(f"The model knows this text as {example.label!r} already.")
        self.add([example])
        self.delete(old)
        self.changes -= len(old)

    def map(self) -> EmbeddingMap:
        """Where the model sees the examples."""
        model = self.model()
        if self._map is None or self._map[0] != self.examples:
            self._map = list(self.examples), EmbeddingMap.of(model.predictor_.support.embeddings)
        return self._map[1]

    def suggest(self, pool: str | Path | None, n: int) -> list[Suggestion]:
        """Which texts of a file to label next."""
        predictor = self.model().predictor_
        if pool is None:
            raise CPTuningError("Upload a file with unlabelled texts first.")
        try:
            examples = predictor.examples(read_table(pool).examples)
        except CPTuningError as error:
            raise named_as_given(error, pool) from error
        return suggestions(predictor, examples, n)

    def file(self, name: str) -> Path:
        """A place for a file of this visitor's."""
        if self._files is None:
            self._files = TemporaryDirectory(prefix="cptuning-app-", ignore_cleanup_errors=True)
        return Path(self._files.name, name)

    def close(self) -> None:
        """Stop what is running and leave no file behind: the visitor has gone."""
        self.cancel()
        if self._files is not None:
            self._files.cleanup()


def _share(entry: tuple[str, float]) -> float:
    return entry[1]

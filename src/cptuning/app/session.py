"""The work of one visitor: the examples, the model, and what can be done with both."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar

from cptuning.app.background_job import BackgroundJob, TrainingProgressCallback
from cptuning.app.checks import ExamplesCheck, places_of, repeated_places
from cptuning.app.file_access import folder_of
from cptuning.app.instant_models import InstantModels, can_be_instant
from cptuning.app.opened_models import opened_model
from cptuning.app.review import AnyReview, EmbeddingMap, review_of
from cptuning.app.span_workspace import SpanWorkspace
from cptuning.app.taught_texts import TaughtPredictor, taught
from cptuning.app.user_examples import (
    AS_NAMED,
    SEPARATOR,
    Example,
    Label,
    TableColumns,
    Text,
    examples_and_labels,
    label_name,
    label_set,
    quoted,
    tables_in,
    without_folder,
)
from cptuning.data import Examples, LabelledData, Table
from cptuning.errors import CPTuningError
from cptuning.estimator import CPTuningClassifier
from cptuning.inference import (
    UNKNOWN,
    MultiLabelPredictor,
    Reasons,
    Suggestion,
    suggestions,
)
from cptuning.reporting.curve_measurement import default_sizes, largest_size, measure
from cptuning.reporting.learning_curve import LearningCurve

_CURVE_REPEATS = 3
_FOLDS = 2
_MOST_UNDONE = 20


@dataclass(frozen=True)
class AppSettings:
    """The settings of every model that the page trains."""

    backbone: str = "embedded"
    method: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the method that differ from the preset."""
    unknown_threshold: float | str = "auto"
    """A text whose similarity to every example is below it is answered "unknown"."""

    @cached_property
    def instant(self) -> InstantModels:
        """The models that are not trained, for all visitors."""
        return InstantModels(self.backbone, self.method, self.unknown_threshold)


@dataclass(frozen=True)
class ExplainedAnswer:
    """The prediction for one text, with its explanation."""

    text: Text
    label: Label
    probabilities: dict[str, float]
    """By class, the most probable first."""
    reasons: Reasons
    is_taught: bool = False
    """Whether the text is one of the examples, and answered as labelled."""
    label_reasons: dict[str, Reasons] = field(default_factory=dict)
    """The reasons for each label, where a text may have several."""
    threshold: float | None = None
    """From which probability on a label is given, where a text may have several."""

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


@dataclass(frozen=True)
class _Before:
    """What an action changes, and undoing it brings back."""

    examples: list[Example]
    classifier: CPTuningClassifier | None
    predictor: Any
    review: AnyReview | None
    curve: LearningCurve | None
    changes: int
    is_trained: bool
    several: bool
    gain: tuple[float, float] | None


class Session:
    """The examples of one visitor, and the model if there is one.

    As soon as the examples allow it there is a model without training, which is made anew when they
    change. A trained model knows exactly the listed examples, in their order: whatever is added,
    relabelled or deleted later it takes in at once, without training.

    >>> session = Session()
    >>> session.add([Example("hello", "greeting"), Example("bye", "farewell")])
    >>> session.check().counts, session.has_model, session.done
    ({'farewell': 1, 'greeting': 1}, False, '2 examples added.')
    >>> session.undo()
    >>> session.examples
    []
    """

    def __init__(self, settings: AppSettings | None = None) -> None:
        self.settings = settings or AppSettings()
        self.key = ""
        """What the visitor's browser finds it by, once it is known; see Workspaces."""
        self.visitor = ""
        """What the visitor's browser has in its cookie; see FileAccessMiddleware."""
        self.lock = RLock()
        self.examples: list[Example] = []
        self.classifier: CPTuningClassifier | None = None
        self.spans = SpanWorkspace(self.settings.backbone)
        """Texts to mark spans in: work of its own, beside the examples."""
        self.review: AnyReview | None = None
        self.curve: LearningCurve | None = None
        self.changes = 0
        """How many examples were added, relabelled or deleted since the last training."""
        self.several = False
        """Whether a text may have several labels, or none."""
        self.gain: tuple[float, float] | None = None
        """What the check of a training found before its first step and at the step that was kept.

        Both are the accuracy (F1 of label sets) of models that saw only a part of the examples.
        """
        self.is_trained = False
        """Whether the model was trained; otherwise it is an instant one, if there is one."""
        self.is_training = False
        """Whether a training was requested and has not ended; it may still wait for its turn."""
        self.job: BackgroundJob[Any] | None = None
        self.news = ""
        """What was just done, until it is undone or dismissed."""
        self._past: list[tuple[str, _Before]] = []
        self._refused: list[Example] | None = None
        self._checked: tuple[list[Example], ExamplesCheck] | None = None
        self._map: tuple[Any, EmbeddingMap] | None = None
        self._files: TemporaryDirectory[str] | None = None
        self._opened = 0

    def __deepcopy__(self, memo: Any) -> "Session":
        return Session(self.settings)  # Gradio copies the empty session; a lock can't be copied.

    @property
    def has_work(self) -> bool:
        """Whether there is anything to come back to."""
        return bool(self.examples or self.done or self.spans.texts or self.spans.done)

    # The examples.

    def check(self) -> ExamplesCheck:
        """The counts and likely mistakes of the examples."""
        examples, known = self.examples, self._checked
        if known is None or known[0] is not examples:
            known = self._checked = examples, ExamplesCheck.of(examples)
        return known[1]

    def add(self, more: Sequence[Example]) -> None:
        """Add examples, which may be of new classes."""
        with self._action(f"{_examples(len(more))} added."):
            self._add(more)

    def delete(self, places: Iterable[int]) -> None:
        """Delete the examples at these positions."""
        with self._action("") as said:
            gone = sorted(set(places))
            one = f"Deleted: {quoted(self.examples[gone[0]].text)}" if len(gone) == 1 else ""
            said.append(one or f"{_examples(len(gone))} deleted.")
            self._delete(gone)

    def delete_repeats(self) -> None:
        """Delete the examples that repeat an earlier one, text and label."""
        self.delete(repeated_places(self.examples))

    def label_from(self, given: Label | list[str]) -> Label:
        """A label as a visitor writes or chooses it: where there may be several, a set of them.

        >>> Session().label_from(" late ")
        'late'
        """
        if self.several:
            return label_set(given)
        return (given if isinstance(given, str) else SEPARATOR.join(given)).strip()

    def relabel(self, place: int, label: Label | list[str]) -> None:
        """Give an example another label, and move it to the end."""
        old, new = self.examples[place], self.label_from(label)
        if not new and not self.several:
            raise CPTuningError("The label is empty: enter one.")
        if new != old.label:
            with self._action(f"Now {label_name(new) or 'without a label'}: {quoted(old.text)}"):
                self._relabel([place], [new])

    def merge(self, label: str, other: str) -> None:
        """Give all examples of another label this one."""
        places = [place for place, e in enumerate(self.examples) if other in e.labels]
        if places:
            with self._action(f"{other} is {label} now, in {_examples(len(places))}."):
                self._relabel(places, [self._renamed(place, other, label) for place in places])

    def _renamed(self, place: int, old: str, new: str) -> Label:
        """The label of an example in which one name has become another."""
        names = [new if name == old else name for name in self.examples[place].labels]
        return label_set(names) if self.several else new

    def settle(self, text: Text, label: Label) -> None:
        """Keep only one of the labels of a text that is labelled differently in several places."""
        kept = self.label_from(label)
        places = places_of(self.examples, text)
        wrong = [place for place in places if self.examples[place].label != kept]
        if 0 < len(wrong) < len(places):
            with self._action(f"Only {label_name(kept)} now: {quoted(text)}"):
                self._delete(wrong)

    def allow_several(self, several: bool, separator: str = SEPARATOR) -> None:
        """Let a text have several labels, which were joined, or one again."""
        if several != self.several:
            kind = "may have several labels" if several else "has one label"
            with self._action(f"Each text {kind} now."):
                self._allow_several(several, separator)

    def _allow_several(self, several: bool, separator: str = SEPARATOR) -> None:
        self._forget_model()
        self.is_trained, self.changes, self.several = False, 0, several
        self.examples = [
            Example(e.text, label_set(name, separator) if several else name)
            for e in self.examples
            if several or e.label
            for name in [label_name(e.label)]
        ]

    def clear(self) -> None:
        """Delete the examples and the model."""
        self.cancel_training()
        with self._action(f"Started over: {_examples(len(self.examples))} deleted."):
            self._forget_model()
            self.examples, self.is_trained, self.changes, self.several = [], False, 0, False

    def _add(self, more: Sequence[Example]) -> None:
        if any(isinstance(example.label, tuple) for example in more) and not self.several:
            self._allow_several(True)
        if self.several:
            more = [Example(e.text, label_set(e.label)) for e in more]
        examples_and_labels([*self.examples, *more])  # Refuses a mix of texts and pairs.
        if any(UNKNOWN in example.labels for example in more):
            raise CPTuningError(
                f"No class may be called {UNKNOWN!r}, which is the answer to texts unlike every "
                "example: choose another name."
            )
        if not more:
            return
        if self.is_trained and self.classifier is not None:
            self.classifier.add_examples(*examples_and_labels(more))
            self.changes += len(more)
        else:
            self._forget_model()
        self.examples = [*self.examples, *more]

    def _delete(self, places: Iterable[int]) -> None:
        gone = set(places)
        if not gone:
            return
        if self.is_trained and self.classifier is not None:
            without = self.classifier.predictor_.without_examples(sorted(gone))
            self.classifier.predictor_ = without
            self.changes += len(gone)
        else:
            self._forget_model()
        self.examples = [e for place, e in enumerate(self.examples) if place not in gone]

    def _relabel(self, places: Sequence[int], labels: Sequence[Label]) -> None:
        changes, texts = self.changes, [self.examples[place].text for place in places]
        self._add([Example(*both) for both in zip(texts, labels, strict=True)])
        self._delete(places)
        if self.is_trained:
            self.changes = changes + len(places)  # Each is one change, not two.

    def _forget_model(self) -> None:
        self.classifier = self.review = self.curve = self.gain = None

    # What was done, and how it is undone.

    @contextmanager
    def _action(self, done: str) -> Iterator[list[str]]:
        """A change that can be undone, and that leaves no trace if it fails.

        One thread at a time changes a session: Gradio's threads and a job's may meet in it.
        """
        with self.lock:
            before, said = self._state(), [done] if done else []
            try:
                yield said
            except BaseException:
                self._restore(before)
                raise
            if self.examples is not before.examples:
                self._past = [*self._past, (said[0], before)][-_MOST_UNDONE:]
                self.news = said[0]

    @property
    def done(self) -> str:
        """What was done last, if it can be undone."""
        return self._past[-1][0] if self._past else ""

    @_exclusive
    def undo(self) -> None:
        """Undo what was done last."""
        self.news = ""
        if self._past:
            self._restore(self._past.pop()[1])

    def dismiss(self) -> None:
        """What was done last has been read."""
        self.news = ""

    def _state(self) -> _Before:
        model = self.classifier
        return _Before(
            self.examples,
            model,
            model.predictor_ if model is not None else None,
            self.review,
            self.curve,
            self.changes,
            self.is_trained,
            self.several,
            self.gain,
        )

    def _restore(self, state: _Before) -> None:
        self.examples, self.classifier = state.examples, state.classifier
        if state.classifier is not None:
            state.classifier.predictor_ = state.predictor
        self.review, self.curve = state.review, state.curve
        self.changes, self.is_trained = state.changes, state.is_trained
        self.several, self.gain = state.several, state.gain

    @property
    def is_pair(self) -> bool:
        """Whether the examples are pairs of texts."""
        return bool(self.examples) and self.examples[0].is_pair

    @property
    def labels(self) -> list[str]:
        """All labels, by name."""
        return list(self.check().counts)

    # The model.

    @property
    def has_model(self) -> bool:
        """Whether there is a model, trained or not."""
        return self.classifier is not None

    @property
    def needs_reading(self) -> bool:
        """Whether the examples allow an instant model that has not been made yet."""
        return (
            self.classifier is None
            and self._refused is not self.examples
            and can_be_instant(self.check())
        )

    @_exclusive
    def read(self) -> None:
        """Make the instant model if it is missing; if it is refused, go on without one."""
        if not self.needs_reading:
            return
        try:
            classifier = self.settings.instant.fit(self.examples, self.several)
        except CPTuningError:
            self._refused = self.examples  # Training will say why.
            return
        self.classifier, self.review = classifier, review_of(self.examples, classifier)

    def model(self) -> CPTuningClassifier:
        """The model; raises an error if there is none yet."""
        self.read()
        if self.classifier is None and self.is_training:
            raise CPTuningError("The model is being trained: try again when it is done.")
        if self.classifier is None:
            raise CPTuningError(
                "There is no model yet: it takes two classes with two examples each."
            )
        return self.classifier

    @property
    def predictor(self) -> TaughtPredictor:
        """What answers: the model, and the labels of the examples themselves."""
        return taught(self.model().predictor_)

    def open_model(self, archive: str | Path) -> None:
        """Go on with a model that was downloaded here, and with its examples."""
        with self.lock:
            self._opened += 1
            folder = self.file(f"opened-{self._opened}")
        try:
            classifier, examples = opened_model(Path(archive), folder)
        except CPTuningError as error:
            raise without_folder(error, folder) from error
        self.cancel_training()
        with self._action(f"Opened {Path(archive).name}: {_examples(len(examples))}."):
            self._forget_model()
            self.examples, self.classifier, self.changes = examples, classifier, 0
            self.is_trained = True
            self.several = bool(examples) and isinstance(examples[0].label, tuple)

    def request_training(self) -> None:
        """Announce a training, unless the examples don't allow one."""
        self.check().require_trainable()
        self.is_training = True

    def train(self) -> BackgroundJob[bool]:
        """A job that trains a model; until it is done, or if it is cancelled, the old one stays."""
        self.check().require_trainable()
        examples, several = list(self.examples), self.several
        # Which texts are unlike all examples is told of one label per text only.
        threshold = None if several else self.settings.unknown_threshold

        def work(job: BackgroundJob[bool]) -> bool:
            job.report(0.0, "Reading the language model")
            watch = TrainingProgressCallback(job, trainings=_FOLDS + 1)
            classifier = self._new_classifier([watch], folds=_FOLDS, unknown_threshold=threshold)
            training = classifier.prepare(*examples_and_labels(examples))
            job.report(0.0, "Finding out how long it will take")
            job.expect(classifier.fit_seconds(training))
            job.report(0.0, "Training")
            classifier.fit_prepared(training)
            classifier.callbacks = None
            job.report(1.0, "Reviewing the answers")
            review = review_of(examples, classifier)
            with self.lock:
                # Ends here if the visitor has started over meanwhile.
                job.report(1.0, "Done")
                if self.several != several:
                    raise CPTuningError(
                        "The number of labels per text was changed meanwhile: train again."
                    )
                self.review, self.gain = review, _gain(classifier)
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
        self.is_trained = True
        self._delete(gone)
        self._add(new)
        self._past, self.news = [], ""  # They belong to the model of before.

    def measure_curve(self) -> BackgroundJob[LearningCurve]:
        """A job that measures the learning curve; if it is cancelled, what was measured stays."""
        model = self.model()
        steps = int(model.training_["best_step"]) if self.is_trained else 0
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
                classifier = (
                    self._new_classifier([watch], validation="none", random_state=seed, steps=steps)
                    if steps
                    else self.settings.instant.new(None)
                )
                answers = classifier.fit(examples, labels).predict(new)
                return [tuple(one) if isinstance(one, list) else one for one in answers]

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
        predictor = self.predictor  # Read once: it may be replaced at any time.
        if not text.strip() or (self.is_pair and not second.strip()):
            raise CPTuningError("Type both texts first." if self.is_pair else "Type a text first.")
        asked: Text = (text.strip(), second.strip()) if self.is_pair else text.strip()
        answered = predictor.answer([asked])
        labels = answered.labels.tolist()
        [reasons] = predictor.reasons(answered.embeddings, labels, k)
        names = map(str, predictor.label_space.classes)
        shares = zip(names, answered.probabilities[0].tolist(), strict=True)
        answer = ExplainedAnswer(
            asked,
            label_set(labels[0]) if self.several else str(labels[0]),
            dict(sorted(shares, key=_share, reverse=True)),
            reasons,
            is_taught=asked in predictor.taught,
        )
        if not isinstance(predictor, MultiLabelPredictor):
            return answer
        [by_label] = predictor.label_reasons(answered.embeddings, labels, k)
        return replace(answer, label_reasons=by_label, threshold=predictor.calibration.threshold)

    def teach(self, text: Text, label: Label | list[str]) -> None:
        """Add a text with its right label, in place of any examples with the same text."""
        self.model()
        example = Example(text, self.label_from(label))
        if not example.label and not self.several:
            raise CPTuningError("Choose or enter the right label.")
        old = [place for place, known in enumerate(self.examples) if known.text == text]
        if example in self.examples and len(old) == 1:
            raise CPTuningError(
                f"The model already knows this text as {label_name(example.label)!r}."
            )
        name = label_name(example.label) or "a text without a label"
        with self._action(f"Learned as {name}: {quoted(text)}"):
            changes = self.changes
            self._add([example])
            self._delete(old)
            if self.is_trained:
                self.changes = changes + 1

    @_exclusive
    def map(self) -> EmbeddingMap:
        """The examples in the plane, by their embeddings."""
        support = self.model().predictor_.support
        if self._map is None or self._map[0] is not support:  # Of this model, not one before.
            self._map = support, EmbeddingMap.of(support.embeddings)
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
            place = folder_of(self.visitor)
            place.mkdir(parents=True, exist_ok=True)
            self._files = TemporaryDirectory(dir=place, ignore_cleanup_errors=True)
        return Path(self._files.name, name)

    def close(self) -> None:
        """Cancel the running job and delete everything: the visitor has gone."""
        self.cancel_training()
        self.spans.close()
        with self.lock:
            self._forget_model()
            self.examples, self.is_trained, self.changes, self._past = [], False, 0, []
            if self._files is not None:
                self._files.cleanup()
            self._files = None


def _examples(n: int) -> str:
    return "1 example" if n == 1 else f"{n} examples"


def _gain(classifier: CPTuningClassifier) -> tuple[float, float] | None:
    """What cross-fitting found before the first step and at the step that was kept."""
    history = classifier.history_
    scores, kept = history.scores, history.best_step
    if 0 not in scores or kept not in scores:
        return None
    return scores[0].accuracy, scores[kept].accuracy


def _share(entry: tuple[str, float]) -> float:
    return entry[1]

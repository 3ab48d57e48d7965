"""What every classifier shares as a scikit-learn estimator: fit, predict, score, save."""

import logging
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin

from cptuning.data import (
    Examples,
    LabelDescriptions,
    LabelSpace,
    MultiLabelSpace,
    as_descriptions,
    as_examples,
    label_space_of,
)
from cptuning.data.weights import Weights, as_sample_weights, class_weights
from cptuning.errors import CPTuningError
from cptuning.estimator.text_model import TextModel, seed_of
from cptuning.extras import needed_for
from cptuning.files.places import as_path
from cptuning.inference import (
    Explanations,
    LabelExplanations,
    MultiLabelPredictor,
    Predictor,
)
from cptuning.inference.scoring import Scores
from cptuning.inference.support import IntArray
from cptuning.storage import CardFacts, LoadedModel, load_model, save_shared, upload_model

if TYPE_CHECKING:
    from cptuning.backbone import Backbone
    from cptuning.methods.evaluation_log import HeldOut
    from cptuning.methods.fit_result import FitResult, FittedTask
    from cptuning.methods.instant import InstantTraining
    from cptuning.methods.training import LabelledExamples, Split, Training

Array = np.ndarray[Any, Any]

_log = logging.getLogger("cptuning")

# Unit vectors whose mean squared distance to their mean is smaller differ by less than a degree.
_COLLAPSED = 1e-4


class TextClassifier(ClassifierMixin, TextModel):  # type: ignore[misc]
    """A classifier of texts, or of pairs of texts, from a few labelled examples."""

    uses_unlabeled: ClassVar[bool] = False
    uses_descriptions: ClassVar[bool] = False
    own_parameters: ClassVar[dict[str, tuple[str, str]]] = {
        "class_weight": (
            "dict, 'balanced' or None",
            "The weights of classes by label, as in scikit-learn, in the loss, in closed-form "
            'computations and in calibration. "balanced" is n / (C nc), with nc of n examples in a'
            " class and C classes; in the loss, balanced batches already have this effect.",
        )
    }
    class_weight: Any

    def fit(
        self,
        X: Any,
        y: Any,
        X_dev: Any = None,
        y_dev: Any = None,
        unlabeled: Any = None,
        init_from: "TextModel | str | Path | None" = None,
        sample_weight: Any = None,
        label_descriptions: Any = None,
    ) -> Self:
        """Learn from labelled texts, or pairs of texts.

        ``y`` has one label per text or, in a multi-label task, a list of labels per text or a 0/1
        matrix, dense or sparse, with one column per label.
        ``X_dev``, ``y_dev`` choose the weights and calibrate the probabilities. ``unlabeled``
        texts join the masked-LM loss, of methods that have one. ``init_from`` is a fitted
        model, or the folder of one, whose weights are the start (transfer).
        ``sample_weight`` has the weight of each example; those of weight 0 are left out.
        ``label_descriptions`` describes labels, if the method supports it: a dictionary from
        labels to texts (or lists of texts), or "names" to take the words of the labels themselves.
        Each text counts as an example of its class, with the weight that leave-one-out answers to
        the real examples prefer (``description_weight``). A class may have no examples; if none
        has any, ``X`` and ``y`` are empty, and a list of labels stands for their names.
        """
        began = time.monotonic()
        training = self.prepare(
            X, y, X_dev, y_dev, unlabeled, init_from, sample_weight, label_descriptions
        )
        self.fit_prepared(training)
        if self.verbose:
            from cptuning.training.progress import tell_fitted

            seconds = time.monotonic() - began
            tell_fitted(seconds, self.held_out_score_, self.training_["validation"])
        return self

    def estimate_seconds(
        self,
        X: Any,
        y: Any,
        X_dev: Any = None,
        y_dev: Any = None,
        unlabeled: Any = None,
        init_from: "TextModel | str | Path | None" = None,
        sample_weight: Any = None,
        label_descriptions: Any = None,
    ) -> float:
        """Estimate how long ``fit`` would take at most on this machine, from two steps."""
        training = self.prepare(
            X, y, X_dev, y_dev, unlabeled, init_from, sample_weight, label_descriptions
        )
        return self.fit_seconds(training)

    def prepare(
        self,
        X: Any,
        y: Any,
        X_dev: Any = None,
        y_dev: Any = None,
        unlabeled: Any = None,
        init_from: "TextModel | str | Path | None" = None,
        sample_weight: Any = None,
        label_descriptions: Any = None,
    ) -> "Training[Any] | InstantTraining":
        """What ``fit`` trains: the data, checked; the settings; the backbone, loaded.

        To know how long a fit will take without loading everything twice, pass the result to
        ``fit_seconds``, then to ``fit_prepared``.
        """
        label_space, split = self._data(
            X, y, X_dev, y_dev, unlabeled, sample_weight, label_descriptions
        )
        settings = self._settings(split.train.examples, label_space)
        split = self._with_class_weights(split, settings, label_space)
        if init_from is None and self._needs_no_torch(settings):
            from cptuning.methods.instant import InstantTraining

            return InstantTraining(settings, label_space, split, seed_of(self.random_state))
        with needed_for("Training"):
            from cptuning.training import Processes, ProgressBar
        from cptuning.methods.training import Training

        backbone, prompts = self._start(init_from, settings.template)
        settings = self._settings_on(backbone, settings, split.train.examples, label_space)
        cross_fits = (
            split.dev is None and self.validation == "cross-fit" and not settings.leaves_one_out
        )
        return Training(
            backbone,
            settings,
            label_space,
            split,
            Processes.find(self.device),
            folds=self.folds if cross_fits else 0,
            prompts=prompts,
            seed=seed_of(self.random_state),
            precision=self.precision,
            callbacks=[*([ProgressBar()] if self.verbose else []), *(self.callbacks or [])],
            checkpoints=self._checkpoints(),
            checkpoint_seconds=self.checkpoint_seconds,
            instant=self._instant_settings(backbone, settings, split.train.examples, label_space),
        )

    def _instant_settings(
        self, backbone: "Backbone", settings: Any, examples: Examples, label_space: LabelSpace
    ) -> Any:
        """The settings of a model that is not trained, for methods that compare with one."""
        return None

    def fit_seconds(self, training: "Training[Any] | InstantTraining") -> float:
        """Estimate how many seconds ``fit_prepared`` takes at most for a result of ``prepare``."""
        from cptuning.methods.instant import InstantTraining

        if isinstance(training, InstantTraining):
            return training.fit_seconds()
        return self.learner_class().fit_seconds(training)

    def fit_prepared(self, training: "Training[Any] | InstantTraining") -> Self:
        """Fit the result of ``prepare``."""
        from cptuning.methods.instant import InstantTraining

        if isinstance(training, InstantTraining):
            fitted: FitResult[Any] = training.fit()
        else:
            fitted = self.learner_class().fit_result(training)
        label_space, split = training.label_space, training.split
        _warn_of_shortened(fitted.task)
        self._keep(fitted, label_space)
        self._warn_of_collapse(fitted)
        dev, more = split.dev, split.unlabeled
        self.training_ = {
            "examples": _counts(label_space, split.train.labels),
            "dev_examples": _counts(label_space, dev.labels) if dev else None,
            "unlabeled": len(more) if more else 0,
            **_of_descriptions(split.descriptions, fitted.task.settings),
            **({"texts": len(split.train.labels)} if split.train.labels.ndim == 2 else {}),
            "validation": self._validated_by(fitted, dev),
            "held_out_accuracy": self.held_out_score_,
            "best_step": fitted.history.best_step,
            "seed": training.seed,
            "backbone": training.backbone_facts,
            **fitted.facts,
        }
        return self

    def _warn_of_collapse(self, fitted: "FitResult[Any]") -> None:
        """Say so if training has made the embeddings of different texts one and the same."""
        support = self.predictor_.support
        if support is None or not fitted.history.best_step or len(set(support.examples)) < 2:
            return
        # The mean squared distance of unit vectors to their mean μ is 1 - |μ|².
        centre = support.embeddings.mean(axis=0, dtype=np.float64)
        if 1 - centre @ centre < _COLLAPSED:
            _log.warning(
                "The training has collapsed: all examples have nearly the same embedding, so "
                "answers are hardly better than chance. Lower learning_rate, which is %g, or try "
                "another random_state.",
                self.settings_.learning_rate,
            )

    def _settings_on(
        self, backbone: "Backbone", settings: Any, examples: Examples, label_space: LabelSpace
    ) -> Any:
        """The settings once the backbone is known."""
        return settings

    def _needs_no_torch(self, settings: Any) -> bool:
        """Whether nothing is trained, on a backbone that is read without torch."""
        return False

    def _settings(self, examples: Examples, label_space: LabelSpace) -> Any:
        return self.settings_for(examples, len(label_space))

    def _data(
        self,
        X: Any,
        y: Any,
        X_dev: Any,
        y_dev: Any,
        unlabeled: Any,
        sample_weight: Any,
        label_descriptions: Any = None,
    ) -> "tuple[LabelSpace, Split]":
        """What is trained on, checked: the classes, the labelled, dev and unlabelled examples."""
        from cptuning.methods.training import LabelledExamples, Split

        weights: Weights | None = None
        if _is_given(label_descriptions) and _is_empty(X) and _is_empty(y):
            examples, labels, label_space = Examples(()), [], LabelSpace(())
        else:
            examples = as_examples(X)
            label_space = label_space_of(y)
            labels = label_space.as_labels(y, len(examples))
            weights = as_sample_weights(sample_weight, len(examples))
        if weights is not None and not weights.all():
            counted = np.flatnonzero(weights)
            examples, weights = examples.take(counted), weights[counted]
            labels = [labels[row] for row in counted]
            label_space = label_space.occurring(labels)
        described = None
        if _is_given(label_descriptions):
            self._check_described(examples, label_space)
            described = as_descriptions(label_descriptions, labels)
        if described is not None:
            label_space = LabelSpace.from_labels([*labels, *described.labels])
        self._check(label_space, labels, described)
        dev = _dev_data(X_dev, y_dev, examples.is_pair, label_space)
        more = None if unlabeled is None else as_examples(unlabeled, pair=examples.is_pair)
        if more is not None and not self.uses_unlabeled:
            _log.warning("The method %s does not use texts without labels.", self.method)
        numbers = label_space.encode(labels) if labels else np.empty(0, np.int64)
        train = LabelledExamples(examples, numbers, weights, weights)
        descriptions = None
        if described is not None:
            in_classes = label_space.encode(described.labels)
            descriptions = LabelledExamples(described.examples, in_classes)
        return label_space, Split(train, dev, more, descriptions)

    def _check_described(self, examples: Examples, label_space: LabelSpace) -> None:
        """Refuse descriptions of labels where they can't be examples."""
        if not self.uses_descriptions:
            raise CPTuningError(
                f"The method {self.method} does not read descriptions of labels: leave "
                "label_descriptions out, or use method cp-tuning."
            )
        if examples.is_pair:
            raise CPTuningError(
                "label_descriptions are examples of single texts, but pairs of texts were given: "
                "leave label_descriptions out."
            )
        if isinstance(label_space, MultiLabelSpace):
            raise CPTuningError(
                "label_descriptions are for one label per text, but label sets were given: "
                "leave label_descriptions out."
            )

    def _with_class_weights(
        self, split: "Split", settings: Any, label_space: LabelSpace
    ) -> "Split":
        """The examples with the weights of their classes; no weights if all are 1."""
        train, dev, descriptions = split.train, split.dev, split.descriptions
        of_classes = class_weights(self.class_weight, label_space, train.labels, train.weights)
        if of_classes is not None:
            own = np.ones(len(train.labels)) if train.weights is None else train.weights
            weights = own * of_classes[train.labels]
            # Balanced batches have as many of each class already.
            balances = isinstance(self.class_weight, str) and settings.batches == "balanced"
            train = replace(train, weights=weights, loss_weights=own if balances else weights)
            dev = dev and replace(dev, weights=of_classes[dev.labels])
            descriptions = descriptions and replace(
                descriptions, weights=of_classes[descriptions.labels]
            )
        return replace(
            split,
            train=train.without_ones(),
            dev=dev and dev.without_ones(),
            descriptions=descriptions,
        )

    def _check(
        self,
        label_space: LabelSpace,
        labels: Sequence[Any],
        described: LabelDescriptions | None = None,
    ) -> None:
        is_multi_label = isinstance(label_space, MultiLabelSpace)
        if is_multi_label:
            self._check_label_sets(label_space, labels)
        elif len(label_space.classes) < 2 and not labels:
            raise CPTuningError(
                f"Only the label {label_space.classes[0]!r} is described, and there are no "
                "examples: a classifier needs at least two classes."
            )
        elif len(label_space.classes) < 2:
            raise CPTuningError(
                f"All {len(labels)} examples are labelled {label_space.classes[0]!r}: "
                "a classifier needs examples of at least two classes."
            )
        choices = ("cross-fit", "none")
        if self.validation not in choices:
            raise CPTuningError(f"validation is {self.validation!r}: choose one of {choices}.")
        if self.validation == "cross-fit" and not (
            isinstance(self.folds, Integral) and self.folds >= 2
        ):
            raise CPTuningError(f"folds is {self.folds!r}: cross-fitting needs at least two.")
        from cptuning.training import Callback

        if self.callbacks is not None and not isinstance(self.callbacks, Collection):
            raise CPTuningError(
                f"callbacks is {self.callbacks!r}: give a list of cptuning.training.Callback."
            )
        for callback in self.callbacks or ():
            if not isinstance(callback, Callback):
                raise CPTuningError(
                    f"callbacks has {callback!r}, which is not a cptuning.training.Callback: "
                    "make its class a subclass of that."
                )
        precisions = ("auto", "float32", "bfloat16")
        if self.precision not in precisions:
            raise CPTuningError(f"precision is {self.precision!r}: choose one of {precisions}.")
        if not (isinstance(self.checkpoint_seconds, Real) and self.checkpoint_seconds >= 0):
            raise CPTuningError(
                f"checkpoint_seconds is {self.checkpoint_seconds!r}: give a number of seconds."
            )
        if is_multi_label:
            return
        if not labels:
            _log.warning(
                "There are no examples: answers rest on the descriptions of labels alone, and no "
                "leave-one-out accuracy can be told."
            )
            return
        counts = Counter(labels)
        in_words = set(described.labels) if described else set()
        for label in label_space.classes:
            if counts[label] == 0:
                _log.warning(
                    "The class %r has no examples: it is answered by its description alone.", label
                )
            elif counts[label] == 1 and label not in in_words:
                _log.warning(
                    "The class %r has a single example: it can be predicted, "
                    "but there is no pair to learn it from.",
                    label,
                )

    def _check_label_sets(self, label_space: LabelSpace, labels: Sequence[Any]) -> None:
        """Refuse label sets, or what can't be done with them."""
        raise CPTuningError(
            f"The method {self.method} answers one label per text, but label sets were given: "
            "use method cp-tuning."
        )

    def _keep(self, fitted: "FitResult[Any]", label_space: LabelSpace) -> None:
        held_out, settings = fitted.held_out, fitted.task.settings
        self.settings_ = settings
        self.history_ = fitted.history
        self.held_out_ = held_out
        self.held_out_rows_ = fitted.held_out_rows
        self.held_out_score_ = held_out.score().accuracy if held_out else None
        self.predictor_: Predictor = fitted.task.predictor(
            label_space,
            held_out.temperature if held_out else settings.temperature,
            self._threshold(held_out),
        )
        if held_out is not None and held_out.labels.ndim == 1:
            self.predictor_ = self.predictor_.with_conformal(held_out.conformal)

    def _validated_by(self, fitted: "FitResult[Any]", dev: "LabelledExamples | None") -> str:
        """Where the held-out answers come from."""
        if dev is not None:
            return "dev"
        if not self.settings_.leaves_one_out:
            return self.validation
        return "none" if fitted.held_out is None else "leave-one-out"

    def _threshold(self, held_out: "HeldOut | None") -> float | None:
        """The similarity below which a text is unknown."""
        return None

    def predict(self, X: Any) -> Any:
        """The label of each text; label sets come as they were given: lists or a 0/1 matrix."""
        return self._fitted().predict(X)

    def predict_proba(self, X: Any) -> Scores:
        """The probability of each class, one row per text, columns as in ``classes_``."""
        return self._fitted().predict_proba(X)

    def predict_levels(
        self, X: Any, min_confidence: float = 0.5, separator: str = " > "
    ) -> np.ndarray[Any, Any]:
        """For labels with levels, such as "billing > refund", what is certain enough of each text.

        The probability of "billing" is the sum of those of all labels that begin with it. The
        answer is the deepest node whose probability is at least ``min_confidence`` on the way of
        the most probable children; it is None if no node of the first level is certain enough.
        """
        return self._fitted().predict_levels(X, min_confidence, separator)

    def predict_set(self, X: Any, coverage: float = 0.9) -> list[list[Any]]:
        """For each text, a list of labels that has the right one with this probability.

        The lists are as short as the held-out answers of ``fit`` allow (conformal prediction); the
        likeliest label comes first. The guarantee holds for texts like the training examples.
        """
        return self._fitted().predict_set(X, coverage)

    def decision_function(self, X: Any) -> Scores:
        """The class scores before calibration: votes, similarities or logits, a column per class.

        For two classes, the second one's score minus the first one's, as scikit-learn has it. Of
        label sets it is how far each label's score is above its threshold.
        """
        predictor = self._fitted()
        scores = predictor.decision_scores(X)
        if isinstance(predictor, MultiLabelPredictor):
            return predictor.calibration.margins(scores)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def explain(self, X: Any, k: int = 3) -> Explanations | LabelExplanations:
        """The reasons for each prediction, of a method that predicts by similar examples.

        One list per text: the k nearest labelled examples of the predicted class, best first, each
        with its ``text``, ``label`` and ``similarity``. The list's attribute ``against`` is the
        nearest example of another class if that is nearer than all of them, else None. All of it
        prints as a table, and shows as one in a notebook. With label sets, each text has a
        dictionary of such lists, one for each label that it is given.
        """
        return self._fitted().explain(X, k)

    def add_examples(self, X: Any, y: Any, label_descriptions: Any = None) -> Self:
        """Add labelled examples or classes without training, if the method predicts by examples.

        ``label_descriptions`` are given as to ``fit``, also of new classes. Each has the
        weight that the fit chose, or 1 if the fit had none or left them out.
        """
        predictor = self._fitted()
        if not (_is_given(label_descriptions) and _is_empty(X) and _is_empty(y)):
            predictor = predictor.with_examples(X, y)
        if _is_given(label_descriptions):
            weight = getattr(self.settings_, "description_weight", None)
            predictor = predictor.with_descriptions(label_descriptions, weight or 1.0)
        self.predictor_ = predictor
        return self

    def save_pretrained(
        self,
        folder: str | Path,
        *,
        include_texts: bool = True,
        language: str | Sequence[str] | None = None,
        license: str | None = None,
        widget: Sequence[str] = (),
        hub_id: str | None = None,
    ) -> None:
        """Write the folder that ``push_to_hub`` uploads.

        It is the folder of ``save``, without any path of this machine. With ``include_texts=False``
        it does not contain the training texts, and reasons show only labels and similarities.
        The other arguments are for the model card: a language such as "en", a licence such as
        "mit", texts to try on the model's page, and the model's name on the hub.
        """
        predictor = self._fitted()
        if not include_texts:
            predictor = predictor.without_texts()
        card_facts = CardFacts(hub_id, language, license, tuple(widget))
        save_shared(self.model_facts(predictor), predictor, as_path(folder, "folder"), card_facts)

    def push_to_hub(
        self,
        hub_id: str,
        *,
        private: bool = True,
        include_texts: bool = True,
        revision: str = "main",
        commit_message: str = "Upload a CP-Tuning model",
        language: str | Sequence[str] | None = None,
        license: str | None = None,
        widget: Sequence[str] = (),
    ) -> str:
        """Upload the model to the Hugging Face hub, and return the URL of the commit.

        A new repository is private unless ``private`` is False, because the model contains its
        training texts unless ``include_texts`` is False. ``revision`` is the branch; the other
        arguments are those of ``save_pretrained``.
        """
        with TemporaryDirectory() as place:
            folder = Path(place, "model")
            self.save_pretrained(
                folder,
                include_texts=include_texts,
                language=language,
                license=license,
                widget=widget,
                hub_id=hub_id,
            )
            return upload_model(
                folder, hub_id, private=private, branch=revision, message=commit_message
            )

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, revision: str | None = None, device: str = "auto"
    ) -> Self:
        """The model in a folder, or on the hub, if it is of this class; see ``cptuning.load``."""
        model = load_model(name, device, trainable=True, revision=revision)
        if model.facts.method != cls.method:
            raise CPTuningError(
                f"{name} is of the method {model.facts.method}, not {cls.method}: "
                "cptuning.load loads a model of any method."
            )
        return cls.of_loaded(model, name)

    @classmethod
    def of_loaded(cls, model: LoadedModel, name: str | Path) -> Self:
        """The estimator of a model that was loaded, from a place of this name."""
        facts = model.facts
        try:
            estimator = cls(**facts.parameters)
        except TypeError as error:
            raise CPTuningError(
                f"The model folder {name} is damaged ({cls.method} does not take this parameter: "
                f"{error}.): save or copy it again."
            ) from error
        estimator.settings_ = facts.settings
        estimator.training_ = facts.training
        estimator.held_out_score_ = facts.training["held_out_accuracy"]
        estimator.predictor_ = model.predictor
        return estimator

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of texts that get their right label, or exactly their labels."""
        predictor = self._fitted()
        answers = predictor.answer(X).labels
        truth = predictor.label_space.as_labels(y, len(answers))
        right = [p == t for p, t in zip(answers, truth, strict=True)]
        return float(np.average(right, weights=sample_weight))

    @property
    def classes_(self) -> Array:
        """The classes, in the order of the columns of ``predict_proba``."""
        return self._fitted().classes_

    @property
    def n_features_in_(self) -> int:
        """The number of texts in an example: 1, or 2 for pairs."""
        return 2 if self._fitted().is_pair else 1


def _dev_data(
    X_dev: Any, y_dev: Any, pair: bool, label_space: LabelSpace
) -> "LabelledExamples | None":
    from cptuning.methods.training import LabelledExamples

    if (X_dev is None) != (y_dev is None):
        raise CPTuningError("Give X_dev and y_dev together, or neither.")
    if X_dev is None:
        return None
    examples = as_examples(X_dev, pair=pair)
    return LabelledExamples(
        examples, label_space.encode(label_space.as_labels(y_dev, len(examples)))
    )


def _is_given(label_descriptions: Any) -> bool:
    return label_descriptions is not None and label_descriptions is not False


def _is_empty(given: Any) -> bool:
    """Whether no texts or labels are given."""
    return given is None or (hasattr(given, "__len__") and len(given) == 0)


def _of_descriptions(
    descriptions: "LabelledExamples | None", settings: Any
) -> dict[str, dict[str, float]]:
    """What a model card says about descriptions: how many there are, and what each counts."""
    if descriptions is None:
        return {}
    weight = settings.description_weight
    return {"descriptions": {"texts": len(descriptions.labels), "weight": weight}}


def _warn_of_shortened(task: "FittedTask") -> None:
    shortened, layout = sum(encoding.shortened for encoding in task.encodings), task.layout
    if shortened:
        could = getattr(task.settings, "long_texts", "") == "truncate"
        _log.warning(
            "%d of %d texts are longer than %smax_length=%d tokens: their ends are not read%s.",
            shortened,
            len(task.encodings),
            f"{layout.windows} windows of " if layout.windows > 1 else "",
            layout.max_length,
            ', long_texts="windows" reads them' if could and not layout.template.is_pair else "",
        )


def _counts(label_space: LabelSpace, labels: IntArray) -> dict[str, int]:
    n_classes = len(label_space.classes)
    is_matrix = labels.ndim == 2
    counts = labels.sum(axis=0) if is_matrix else np.bincount(labels, minlength=n_classes)
    return {str(c): int(n) for c, n in zip(label_space.classes, counts, strict=True)}

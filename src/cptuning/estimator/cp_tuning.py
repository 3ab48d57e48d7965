"""The scikit-learn face of CP-Tuning: fit, predict, explain, add examples, save."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from sklearn.base import TransformerMixin

from cptuning.data import Examples, LabelDescriptions, LabelSpace, MultiLabelSpace
from cptuning.data.weights import as_class_prior
from cptuning.errors import CPTuningError
from cptuning.estimator.base import TextClassifier
from cptuning.estimator.parameters import ATTRIBUTES, described
from cptuning.inference import (
    UNKNOWN,
    EmbeddingPredictor,
    MultiLabelPredictor,
    Rejection,
    error_target,
    order_of,
    threshold_for,
)
from cptuning.inference.predictor import PRIOR_AND_TARGET
from cptuning.methods.cp_tuning_settings import PRESETS, CPTuningSettings, settings_for

if TYPE_CHECKING:
    from cptuning.backbone import Backbone
    from cptuning.methods.evaluation_log import HeldOut
    from cptuning.methods.fit_result import FitResult
    from cptuning.methods.instant import InstantTraining
    from cptuning.methods.training import Split, Training
    from cptuning.training import Callback


_log = logging.getLogger("cptuning")

# The largest similarity that a model folder may say, too.
_LARGEST = 10
# What of a model that is not trained can be set.
READ_SETTINGS = (
    "template",
    "max_length",
    "features",
    "pooling",
    "sentence_weight",
    "index",
    "description_weight",
    "long_texts",
    "most_windows",
)


@described
class CPTuningClassifier(TransformerMixin, TextClassifier):  # type: ignore[misc]
    """A text classifier from a few labelled examples: no prompt, no label words, no head.

    The preset "default" had the best measured accuracy, "instant" does not train and takes seconds,
    "paper" has the settings printed in the paper, and "released" is the variant in the code that
    its authors released.

    Examples
    --------
    >>> texts = ["great film", "i loved it", "what a joy", "wonderful acting",
    ...          "a dull mess", "i hated it", "so boring", "terrible acting"]
    >>> labels = ["good"] * 4 + ["bad"] * 4
    >>> clf = CPTuningClassifier(steps=3, validation="none", verbose=False)
    >>> clf.fit(texts, labels).predict(["it was awful"])
    array(['bad'], dtype='<U4')
    >>> [reasons] = clf.explain(["it was awful"], k=2)
    >>> [example.label for example in reasons]
    ['bad', 'bad']
    >>> clf.add_examples(["where is my parcel?"], ["delivery"]).classes_.tolist()
    ['bad', 'good', 'delivery']

    """

    method = "cp-tuning"
    learner = "cptuning.methods.cp_tuning:CPTuning"
    settings_class = CPTuningSettings
    presets = PRESETS
    attributes: ClassVar[dict[str, tuple[str, str]]] = ATTRIBUTES | {
        "rejection_": (
            "Rejection or None",
            'What ``unknown_threshold="error<=SHARE"`` found: the threshold, and how many held-out '
            "examples it answers, right and wrong.",
        ),
    }
    own_parameters: ClassVar[dict[str, tuple[str, str]]] = TextClassifier.own_parameters | {
        "unknown_threshold": (
            "float, 'auto', 'error<=SHARE' or None",
            'A similarity between -1 and 1 below which a text is "unknown"; "auto", the one that '
            "refuses one in twenty of the held-out examples; a target such as "
            '"error<=0.05", by which as many texts are answered as held-out answers allow if at '
            "most this share of the answers may be wrong, with 90 % certainty; or None, which "
            "refuses nothing.",
        ),
        "class_prior": (
            "dict, array-like or None",
            "The expected share of each class, by label or in the order of ``classes_``. The "
            "probabilities are corrected for it by Bayes' rule. None assumes equal shares or, with"
            ' ``inference="knn"``, those of the examples. ``set_class_prior`` changes it without a'
            " new fit.",
        ),
        "ordinal": (
            "bool, list or None",
            "Whether the labels have an order: True if they are numbers, or the labels from the "
            "lowest to the highest. The answer is then the median of the probabilities, which has "
            "the smallest expected distance to the correct label.",
        ),
    }
    uses_unlabeled = True
    uses_descriptions = True
    predictor_: EmbeddingPredictor

    def __init__(
        self,
        backbone: "str | Backbone" = "embedded",
        preset: str = "default",
        random_state: Any = 0,
        *,
        validation: Literal["cross-fit", "none"] = "cross-fit",
        folds: int = 2,
        unknown_threshold: float | str | None = None,
        device: str = "auto",
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        verbose: bool = True,
        callbacks: "Sequence[Callback] | None" = None,
        class_weight: "dict[Any, float] | Literal['balanced'] | None" = None,
        class_prior: "dict[Any, float] | Sequence[float] | None" = None,
        ordinal: "bool | Sequence[Any] | None" = None,
        checkpoint_dir: str | Path | None = None,
        checkpoint_seconds: float = 30.0,
        template: str | None = None,
        max_length: int | None = None,
        loss: str | None = None,
        margin: float | None = None,
        tau_n: float | None = None,
        xi: float | None = None,
        reduction: str | None = None,
        relaxation: bool | None = None,
        detach_relaxation: bool | None = None,
        form: str | None = None,
        contrastive_weight: float | None = None,
        mlm_rate: float | None = None,
        features: str | None = None,
        pooling: str | None = None,
        sentence_weight: float | None = None,
        centred: bool | None = None,
        optimizer: str | None = None,
        learning_rate: float | None = None,
        prompt_learning_rate: float | None = None,
        weight_decay: float | None = None,
        warmup: float | None = None,
        clip_norm: float | None = None,
        batch_size: int | None = None,
        batches: str | None = None,
        accumulate: int | None = None,
        steps: int | None = None,
        epochs: int | None = None,
        most_steps: int | None = None,
        evaluate_every: int | None = None,
        patience: int | None = None,
        selection: str | None = None,
        frozen_share: float | None = None,
        inference: str | None = None,
        k: int | None = None,
        index: str | None = None,
        description_weight: float | None = None,
        instant_first: bool | None = None,
        chunk_size: int | None = None,
        long_texts: str | None = None,
        most_windows: int | None = None,
        temperature: float | None = None,
    ) -> None:
        # scikit-learn's rule: store what was given under its own name, and look at it in fit.
        given = locals()
        for name in self.parameter_names():
            setattr(self, name, given[name])

    def set_class_prior(self, class_prior: Any) -> Self:
        """Correct the answers for texts in which the classes have these shares; None undoes it.

        They are a dictionary from labels to numbers, or numbers in the order of ``classes_``, that
        add up to 1.
        """
        self._fitted()
        self.predictor_ = self.predictor_.with_class_prior(class_prior)
        self.class_prior = class_prior
        return self

    def _keep(self, fitted: "FitResult[Any]", label_space: LabelSpace) -> None:
        order = order_of(self.ordinal, label_space)
        if order is not None and fitted.held_out is not None:
            places = tuple(label_space.classes.index(label) for label in order)
            fitted = replace(fitted, held_out=replace(fitted.held_out, places=places))
        super()._keep(fitted, label_space)
        self.rejection_: Rejection | None = None
        if isinstance(self.predictor_, MultiLabelPredictor):
            if fitted.held_out is not None:
                self.predictor_ = self.predictor_.calibrated(fitted.held_out.calibration)
            return
        self.predictor_ = replace(self.predictor_, order=order)
        self.predictor_ = self.predictor_.with_class_prior(self.class_prior)
        if (target := error_target(self.unknown_threshold)) is not None:
            assert fitted.held_out is not None  # _threshold saw to it.
            found = fitted.held_out.rejection(target)
            self.rejection_ = found
            self.predictor_ = replace(self.predictor_, least_confidence=found.threshold)
            if found.answered == 0:
                _log.warning(found.sentence())

    def fit_prepared(self, training: "Training[Any] | InstantTraining") -> Self:
        """Fit the result of ``prepare``."""
        super().fit_prepared(training)
        if self.rejection_ is not None:
            self.training_["rejection"] = asdict(self.rejection_)
        return self

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
        label_space, split = super()._data(
            X, y, X_dev, y_dev, unlabeled, sample_weight, label_descriptions
        )
        if self._needs_held_out and split.dev is None and not len(split.train.examples):
            raise CPTuningError(
                f'unknown_threshold="{self.unknown_threshold}" needs held-out examples, and there '
                "are no examples: give a dev set, or a similarity."
            )
        if (
            self._needs_held_out
            and split.dev is None
            and self.validation == "none"
            and not self._settings(split.train.examples, label_space).leaves_one_out
        ):
            raise CPTuningError(
                f'unknown_threshold="{self.unknown_threshold}" needs held-out examples: '
                'give a dev set, or leave validation at "cross-fit".'
            )
        return label_space, split

    @property
    def _needs_held_out(self) -> bool:
        """Whether held-out examples choose the threshold."""
        threshold = self.unknown_threshold
        return threshold == "auto" or error_target(threshold) is not None

    def _settings_on(
        self, backbone: "Backbone", settings: Any, examples: Examples, label_space: LabelSpace
    ) -> Any:
        reads_mask, _ = backbone.views(settings.pooling, settings.sentence_weight)
        if reads_mask:
            return settings
        if self.template is not None:
            raise CPTuningError(
                f"{backbone.name} is read without a template, by pooling the tokens of a text: "
                'leave template out, or choose pooling="mask".'
            )
        if not len(examples):
            return self._instant(examples, label_space, pooled=True)
        return _answering(self.settings_for(examples, len(label_space), pooled=True), label_space)

    def _needs_no_torch(self, settings: Any) -> bool:
        from cptuning.methods.instant import reads_instantly

        is_embedded = self.backbone == "embedded" and self.device in ("auto", "cpu")
        return is_embedded and reads_instantly(settings)

    def _instant_settings(
        self, backbone: "Backbone", settings: Any, examples: Examples, label_space: LabelSpace
    ) -> Any:
        """The preset "instant", with the parameters that say what is read and compared."""
        if not settings.instant_first or settings.steps == 0:
            return None
        reads_mask, _ = backbone.views(settings.pooling, self.sentence_weight)
        return self._instant(examples, label_space, pooled=not reads_mask)

    def _instant(self, examples: Examples, label_space: LabelSpace, *, pooled: bool) -> Any:
        return settings_for(
            "instant",
            pair=examples.is_pair,
            classes=len(label_space),
            pooled=pooled,
            **{name: value for name in READ_SETTINGS if (value := getattr(self, name)) is not None},
        )

    def _check(
        self,
        label_space: LabelSpace,
        labels: Sequence[Any],
        described: LabelDescriptions | None = None,
    ) -> None:
        super()._check(label_space, labels, described)
        as_class_prior(self.class_prior, label_space)
        order_of(self.ordinal, label_space)
        threshold: Any = self.unknown_threshold
        is_similarity = isinstance(self.unknown_threshold, Real) and abs(threshold) <= _LARGEST
        if not (threshold is None or self._needs_held_out or is_similarity):
            raise CPTuningError(
                f'unknown_threshold is {threshold!r}: give a similarity, a number, "auto", a '
                'target such as "error<=0.05", or None.'
            )
        if self.class_prior is not None and error_target(threshold) is not None:
            raise CPTuningError(PRIOR_AND_TARGET)
        if self.unknown_threshold is not None and UNKNOWN in label_space.classes:
            raise CPTuningError(
                f"A class is called {UNKNOWN!r}, which is the answer to texts far from everything: "
                "rename it, or leave unknown_threshold out."
            )

    def _check_label_sets(self, label_space: LabelSpace, labels: Sequence[Any]) -> None:
        unfit = {
            "class_weight": "weight examples with sample_weight instead",
            "class_prior": "leave it out",
            "ordinal": "leave it out",
            "unknown_threshold": "a text that is like no label gets none, so leave it out",
        }
        for name, hint in unfit.items():
            if getattr(self, name) not in (None, False):
                raise CPTuningError(f"{name} is for one label per text: {hint}.")
        if self.inference not in (None, "lda"):
            raise CPTuningError(
                f"inference is {self.inference!r}, which answers one label per text: leave it out, "
                "label sets are answered in closed form."
            )

    def _settings(self, examples: Examples, label_space: LabelSpace) -> Any:
        if self.long_texts == "windows" and examples.is_pair:
            raise CPTuningError(
                'long_texts is "windows", which is for single texts: leave it out for pairs.'
            )
        settings = _answering(super()._settings(examples, label_space), label_space)
        if len(examples) or settings.steps == 0:
            return settings
        if not settings.instant_first:
            raise CPTuningError(
                f"The preset {self.preset!r} trains on examples, and there are none: "
                'use preset="instant" with descriptions alone.'
            )
        return self._instant(examples, label_space, pooled=False)

    def _threshold(self, held_out: "HeldOut | None") -> float | None:
        threshold: Any = self.unknown_threshold
        if not self._needs_held_out:
            return None if threshold is None else float(threshold)
        if held_out is None:  # _data saw to it that there could be answers.
            raise CPTuningError(
                "Every class has a single example, so none can be left out to find "
                f'unknown_threshold="{threshold}": add examples, give a dev set, or a similarity.'
            )
        return None if threshold != "auto" else threshold_for(held_out.familiarity)


def _answering(settings: CPTuningSettings, label_space: LabelSpace) -> CPTuningSettings:
    """The settings for these classes; label sets are compared by PCCL, and answered one way."""
    if not isinstance(label_space, MultiLabelSpace):
        return settings
    if settings.loss != "pccl":
        raise CPTuningError(
            f"The loss is {settings.loss!r}, which compares single labels: with label sets use "
            '"pccl", which weights pairs by how far they overlap.'
        )
    return replace(settings, inference="lda")

"""The scikit-learn face of CP-Tuning: fit, predict, explain, add examples, save."""

import inspect
import logging
from collections.abc import Sequence
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from cptuning.data import Examples, LabelSpace, as_examples, as_labels
from cptuning.errors import CPTuningError
from cptuning.inference import UNKNOWN, Evidence, Predictor, threshold_for
from cptuning.inference.scoring import Scores
from cptuning.inference.support import FloatArray, IntArray
from cptuning.methods.settings import Settings, settings_for

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
    from sklearn.exceptions import NotFittedError
except ImportError:  # The base install predicts without scikit-learn.
    # Three of them: no class can have the same base twice.
    BaseEstimator, ClassifierMixin, TransformerMixin = (type("Base", (), {}) for _ in range(3))
    NotFittedError = CPTuningError

if TYPE_CHECKING:
    from cptuning.methods.fitting import Fitted
    from cptuning.training import Callback

Array = np.ndarray[Any, Any]

_log = logging.getLogger("cptuning")

_SETTINGS = tuple(field.name for field in fields(Settings))


class CPTuningClassifier(ClassifierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier from a few labelled examples: no prompt, no label words, no head.

    Parameters
    ----------
    backbone : "embedded" (shipped with the package), a folder, or an id on the hub.
    preset : "default", what measured best, or "paper", the paper's settings as printed.
    random_state : the seed; the same one gives the same model on a CPU, bit for bit, for the
        same number of threads. None draws one, a numpy generator is asked for one.
    validation : how the weights are chosen and the probabilities calibrated when ``fit`` gets no
        dev set. "cross-fit" trains ``folds`` more models that each leave a part of the examples
        out; "none" trains once, for the preset's number of steps, and trusts the preset.
    folds : how many parts cross-fitting makes.
    unknown_threshold : None; or a similarity between -1 and 1 below which a text is "unknown";
        or "auto", the one that refuses one in twenty of the held-out examples.
    device : "auto", "cpu", "cuda" ...
    precision : "auto" (bfloat16 on a GPU that has it), "float32" or "bfloat16".
    verbose : show a progress bar (on a terminal only).
    callbacks : objects that watch the training, see ``cptuning.training.Callback``.
    checkpoint_dir : a folder for the state of a run; a run that was killed goes on from there.
        Saving the model clears it.
    checkpoint_seconds : the least time between two such states.

    The others are the settings of the method; None takes the preset's value. They are described
    in ``cptuning.methods.settings.Settings``.

    Examples
    --------
    >>> texts = ["great film", "i loved it", "what a joy", "wonderful acting",
    ...          "a dull mess", "i hated it", "so boring", "terrible acting"]
    >>> labels = ["good"] * 4 + ["bad"] * 4
    >>> clf = CPTuningClassifier(steps=3, validation="none", verbose=False)
    >>> clf.fit(texts, labels).predict(["it was awful"])
    array(['bad'], dtype='<U4')
    >>> clf.explain(["it was awful"], k=1)[0][0].label
    'bad'
    >>> clf.add_examples(["where is my parcel?"], ["delivery"]).classes_.tolist()
    ['bad', 'good', 'delivery']

    """

    def __init__(
        self,
        backbone: str = "embedded",
        preset: str = "default",
        random_state: Any = 0,
        *,
        validation: Literal["cross-fit", "none"] = "cross-fit",
        folds: int = 2,
        unknown_threshold: float | Literal["auto"] | None = None,
        device: str = "auto",
        precision: Literal["auto", "float32", "bfloat16"] = "auto",
        verbose: bool = True,
        callbacks: "Sequence[Callback] | None" = None,
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
        evaluate_every: int | None = None,
        patience: int | None = None,
        frozen_layers: int | None = None,
        inference: str | None = None,
        k: int | None = None,
        temperature: float | None = None,
    ) -> None:
        # scikit-learn's rule: store what was given under its own name, and look at it in fit.
        given = locals()
        for name in parameter_names():
            setattr(self, name, given[name])

    def fit(
        self,
        X: Any,
        y: Any,
        X_dev: Any = None,
        y_dev: Any = None,
        unlabeled: Any = None,
        init_from: "CPTuningClassifier | str | Path | None" = None,
    ) -> Self:
        """Learn from labelled texts, or pairs of texts.

        ``X_dev``, ``y_dev`` choose the weights and calibrate the probabilities. ``unlabeled``
        texts join the masked-LM loss. ``init_from`` is a fitted classifier, or the folder of one,
        whose weights are the start (transfer).
        """
        label_space, data, dev, more = self._data(X, y, X_dev, y_dev, unlabeled)
        fitter = self._fitter(self.settings_for(data.examples), init_from)
        layout = fitter.encoder.layout
        _warn_of_shortened(layout.encode(data.examples), layout.max_length)
        fitted = fitter.fit(data, dev=dev, unlabeled=more, folds=self._folds(dev))
        self._keep(fitted, fitter.settings, label_space)
        self.training_ = {
            "examples": _counts(label_space, data.labels),
            "dev_examples": _counts(label_space, dev.labels) if dev else None,
            "unlabeled": len(more) if more else 0,
            "validation": "dev" if dev else self.validation,
            "held_out_accuracy": self.held_out_score_,
            "best_step": fitted.history.best_step,
            "seed": fitter.seed,
        }
        return self

    def estimate_seconds(
        self,
        X: Any,
        y: Any,
        X_dev: Any = None,
        y_dev: Any = None,
        unlabeled: Any = None,
        init_from: "CPTuningClassifier | str | Path | None" = None,
    ) -> float:
        """How long ``fit`` would take on this machine at most; two steps are made to find out.

        >>> clf = CPTuningClassifier(steps=10, validation="none", verbose=False)
        >>> clf.estimate_seconds(["great", "a joy", "dull", "a mess"], [1, 1, 0, 0]) > 0
        True
        """
        _, data, dev, more = self._data(X, y, X_dev, y_dev, unlabeled)
        fitter = self._fitter(self.settings_for(data.examples), init_from)
        seconds: float = fitter.estimate_seconds(
            data, dev=dev, unlabeled=more, folds=self._folds(dev)
        )
        return seconds

    def _data(self, X: Any, y: Any, X_dev: Any, y_dev: Any, unlabeled: Any) -> Any:
        """What is trained on, checked: the classes, the labelled, dev and unlabelled examples."""
        _require_training()
        from cptuning.methods.fitting import Labelled

        examples = as_examples(X)
        labels = as_labels(y, len(examples))
        label_space = LabelSpace.from_labels(labels)
        self._check(label_space, labels)
        data = Labelled(examples, label_space.encode(labels))
        dev = _dev_data(X_dev, y_dev, examples.is_pair, label_space)
        if self.unknown_threshold == "auto" and dev is None and self.validation == "none":
            raise CPTuningError(
                'unknown_threshold="auto" needs held-out examples: '
                'give a dev set, or leave validation at "cross-fit".'
            )
        more = None if unlabeled is None else as_examples(unlabeled, pair=examples.is_pair)
        return label_space, data, dev, more

    def _folds(self, dev: Any) -> int:
        return self.folds if dev is None and self.validation == "cross-fit" else 0

    def settings_for(self, examples: Examples) -> Settings:
        """The preset's settings for such examples, with those that were given in their place."""
        given = {name: getattr(self, name) for name in _SETTINGS}
        changes = {name: value for name, value in given.items() if value is not None}
        settings = settings_for(self.preset, pair=examples.is_pair, **changes)
        return settings.stretched(len(examples))

    def predict(self, X: Any) -> Array:
        """The label of each text; "unknown" where ``unknown_threshold`` says so."""
        return self._fitted().predict(X)

    def predict_proba(self, X: Any) -> Scores:
        """The probability of each class, one row a text, columns as in ``classes_``."""
        return self._fitted().predict_proba(X)

    def decision_function(self, X: Any) -> Scores:
        """The class scores before calibration: votes or similarities, one column a class.

        For two classes, the second one's score minus the first one's, as scikit-learn has it.
        """
        predictor = self._fitted()
        scores = predictor.scores(predictor.transform(X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def transform(self, X: Any) -> FloatArray:
        """The L2-normalised [OMSK] embeddings, float32."""
        return self._fitted().transform(X)

    def explain(self, X: Any, k: int = 3) -> list[list[Evidence]]:
        """The k nearest labelled examples of each text, best first: the reason for its label."""
        return self._fitted().explain(X, k)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of texts whose label is right."""
        right = [p == t for p, t in zip(self.predict(X), as_labels(y, len(X)), strict=True)]
        return float(np.average(right, weights=sample_weight))

    def add_examples(self, X: Any, y: Any) -> Self:
        """Know more examples, of old classes or of new ones, at once and without training."""
        self.predictor_ = self._fitted().with_examples(X, y)
        return self

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder: safetensors, JSON, the tokenizer and a model card."""
        from cptuning.storage import save

        self._fitted()
        save(self, Path(folder))
        if self.checkpoint_dir is not None:  # The model is safe: its state in training can go.
            for left in Path(self.checkpoint_dir).glob("*.safetensors"):
                left.unlink()

    @property
    def classes_(self) -> Array:
        """The classes, in the order of the columns of ``predict_proba``."""
        return self._fitted().classes_

    @property
    def n_features_in_(self) -> int:
        """How many texts an example has: 1, or 2 for pairs."""
        return 2 if self._fitted().support.examples.is_pair else 1

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "predictor_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _fitted(self) -> Predictor:
        predictor: Predictor | None = getattr(self, "predictor_", None)
        if predictor is None:
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet: "
                "call fit, or take one from cptuning.load."
            )
        return predictor

    def _check(self, label_space: LabelSpace, labels: Sequence[Any]) -> None:
        if len(label_space.classes) < 2:
            raise CPTuningError(
                f"All {len(labels)} examples are labelled {label_space.classes[0]!r}: "
                "a classifier needs examples of at least two classes."
            )
        if self.unknown_threshold is not None and UNKNOWN in label_space.classes:
            raise CPTuningError(
                f"A class is called {UNKNOWN!r}, which is the answer to texts far from everything: "
                "rename it, or leave unknown_threshold out."
            )
        choices = ("cross-fit", "none")
        if self.validation not in choices:
            raise CPTuningError(f"validation is {self.validation!r}: choose one of {choices}.")
        if self.validation == "cross-fit" and self.folds < 2:
            raise CPTuningError(f"folds is {self.folds}: cross-fitting needs at least two.")
        counts = np.bincount(label_space.encode(labels))
        for label in (c for c, n in zip(label_space.classes, counts, strict=True) if n == 1):
            _log.warning(
                "The class %r has a single example: it can be predicted, "
                "but there is no pair to learn it from.",
                label,
            )

    def _fitter(self, settings: Settings, init_from: Any) -> Any:
        from cptuning.backbone import load_backbone
        from cptuning.methods.fitting import Fitter
        from cptuning.training import Processes, ProgressBar

        processes = Processes.find(self.device)
        if init_from is None:
            backbone, prompts = load_backbone(self.backbone), None
        else:
            backbone, prompts = _start(init_from, settings)
        return Fitter(
            backbone,
            settings,
            processes,
            seed=_seed(self.random_state),
            precision=self.precision,
            callbacks=[*([ProgressBar()] if self.verbose else []), *(self.callbacks or [])],
            checkpoint_folder=Path(self.checkpoint_dir) if self.checkpoint_dir else None,
            checkpoint_seconds=self.checkpoint_seconds,
            prompts=prompts,
        )

    def _keep(self, fitted: "Fitted", settings: Settings, label_space: LabelSpace) -> None:
        held_out = fitted.held_out
        threshold = self.unknown_threshold
        if threshold == "auto":
            assert held_out is not None
            threshold = threshold_for(held_out.familiarity)
        self.settings_ = settings
        self.history_ = fitted.history
        self.held_out_score_ = held_out.score().accuracy if held_out else None
        self.predictor_ = Predictor(
            fitted.encoder,
            fitted.support,
            label_space,
            inference=settings.inference,
            k=settings.k,
            temperature=held_out.temperature if held_out else settings.temperature,
            unknown_threshold=threshold,
        )


def parameter_names() -> tuple[str, ...]:
    """The names of the classifier's parameters.

    >>> "backbone" in parameter_names()
    True
    """
    return tuple(inspect.signature(CPTuningClassifier.__init__).parameters)[1:]


def _seed(random_state: Any) -> int:
    """A seed from whatever scikit-learn takes for one.

    >>> _seed(7), _seed(np.random.RandomState(0)) == _seed(np.random.RandomState(0))
    (7, True)
    """
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31 - 1))
    if int(random_state) < 0:
        raise CPTuningError(f"random_state is {random_state}: a seed is not negative.")
    return int(random_state)


def _require_training() -> None:
    try:
        import_module("cptuning.methods.fitting")
    except ImportError as error:
        raise CPTuningError(
            f'Training needs {error.name}: pip install "cptuning[train]".'
        ) from error


def _dev_data(X_dev: Any, y_dev: Any, pair: bool, label_space: LabelSpace) -> Any:
    from cptuning.methods.fitting import Labelled

    if (X_dev is None) != (y_dev is None):
        raise CPTuningError("Give X_dev and y_dev together, or neither.")
    if X_dev is None:
        return None
    examples = as_examples(X_dev, pair=pair)
    return Labelled(examples, label_space.encode(as_labels(y_dev, len(examples))))


def _start(init_from: Any, settings: Settings) -> Any:
    """Backbone and prompt vectors of another fitted model, which itself stays as it is."""
    from copy import deepcopy

    from cptuning.backbone import TextEncoder
    from cptuning.storage import load

    source = init_from if isinstance(init_from, CPTuningClassifier) else load(Path(init_from))
    encoder = source._fitted().encoder
    if not isinstance(encoder, TextEncoder):
        raise CPTuningError("init_from is an exported model: give the folder it was exported from.")
    same_prompt = encoder.layout.template.source == settings.template
    prompts = encoder.module.prompts.detach().clone() if same_prompt else None
    return replace(encoder.backbone, model=deepcopy(encoder.module.model)), prompts


def _warn_of_shortened(encodings: Any, max_length: int) -> None:
    shortened = sum(encoding.shortened for encoding in encodings)
    if shortened:
        _log.warning(
            "%d of %d texts are longer than max_length=%d tokens: their ends are not read.",
            shortened,
            len(encodings),
            max_length,
        )


def _counts(label_space: LabelSpace, labels: IntArray) -> dict[str, int]:
    counts = np.bincount(labels, minlength=len(label_space.classes))
    return {str(c): int(n) for c, n in zip(label_space.classes, counts, strict=True)}

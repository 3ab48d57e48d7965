"""The scikit-learn face of CP-Tuning: fit, predict, explain, add examples, save."""

from collections.abc import Sequence
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cptuning.data import LabelSpace
from cptuning.errors import CPTuningError
from cptuning.estimator.base import TextClassifier, Training
from cptuning.inference import UNKNOWN, EmbeddingPredictor, threshold_for
from cptuning.methods.settings import PRESETS, CPTuningSettings

try:
    from sklearn.base import TransformerMixin
except ImportError:  # The base install predicts without scikit-learn.
    TransformerMixin = type("Base", (), {})

if TYPE_CHECKING:
    from cptuning.backbone import Backbone
    from cptuning.methods.cp_tuning import CPTuningTask
    from cptuning.methods.evaluation_log import HeldOut
    from cptuning.methods.fitting import Fitter
    from cptuning.methods.task import Split
    from cptuning.training import Callback


class CPTuningClassifier(TransformerMixin, TextClassifier):  # type: ignore[misc]
    """A text classifier from a few labelled examples: no prompt, no label words, no head.

    Parameters
    ----------
    backbone : "embedded" (shipped with the package), a folder, or an id on the hub; or what
        ``load_backbone`` gave, which ``fit`` then trains in place, for who fits many times and
        puts the weights back himself.
    preset : "default", what measured best; "paper", the paper's settings as printed; or
        "released", the variant in the code that its authors released.
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
    in ``cptuning.methods.settings.CPTuningSettings``.

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
    settings_class = CPTuningSettings
    presets = PRESETS
    uses_unlabeled = True
    predictor_: EmbeddingPredictor

    def __init__(
        self,
        backbone: "str | Backbone" = "embedded",
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
        selection: str | None = None,
        frozen_share: float | None = None,
        inference: str | None = None,
        k: int | None = None,
        index: str | None = None,
        chunk_size: int | None = None,
        temperature: float | None = None,
    ) -> None:
        # scikit-learn's rule: store what was given under its own name, and look at it in fit.
        given = locals()
        for name in self.parameter_names():
            setattr(self, name, given[name])

    def _data(
        self, X: Any, y: Any, X_dev: Any, y_dev: Any, unlabeled: Any
    ) -> "tuple[LabelSpace, Split]":
        label_space, split = super()._data(X, y, X_dev, y_dev, unlabeled)
        if self.unknown_threshold == "auto" and split.dev is None and self.validation == "none":
            raise CPTuningError(
                'unknown_threshold="auto" needs held-out examples: '
                'give a dev set, or leave validation at "cross-fit".'
            )
        return label_space, split

    def _check(self, label_space: LabelSpace, labels: Sequence[Any]) -> None:
        super()._check(label_space, labels)
        threshold: Any = self.unknown_threshold
        is_similarity = isinstance(threshold, Real) and isfinite(float(threshold))
        if not (threshold is None or threshold == "auto" or is_similarity):
            raise CPTuningError(
                f'unknown_threshold is {threshold!r}: give a similarity, a number, "auto" or None.'
            )
        if self.unknown_threshold is not None and UNKNOWN in label_space.classes:
            raise CPTuningError(
                f"A class is called {UNKNOWN!r}, which is the answer to texts far from everything: "
                "rename it, or leave unknown_threshold out."
            )

    def _fitter(self, training: Training) -> "Fitter[CPTuningTask]":
        from cptuning.methods.cp_tuning import CPTuning
        from cptuning.methods.fitting import Fitter

        start = training.start
        prompts = start.prompts if start.template == training.settings.template else None
        return Fitter(CPTuning(*training.essentials, prompts), training.run)

    def _threshold(self, held_out: "HeldOut | None") -> float | None:
        threshold: float | Literal["auto"] | None = self.unknown_threshold
        if threshold != "auto":
            return threshold
        assert held_out is not None  # _data saw to it
        return threshold_for(held_out.familiarity)

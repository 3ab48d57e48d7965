"""What all models share as estimators: parameters, backbone and folder."""

import inspect
from dataclasses import fields, replace
from numbers import Integral
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.extras import needed_for
from cptuning.files.places import as_path
from cptuning.inference import Predictor
from cptuning.inference.support import FloatArray
from cptuning.settings import LARGEST_SEED, Presets, TrainingSettings, resolve_preset
from cptuning.storage import (
    OF_ONE_MACHINE,
    ModelFacts,
    load_model,
    save_model,
)

if TYPE_CHECKING:
    from torch import Tensor

    from cptuning.backbone import Backbone
    from cptuning.methods.learner import Learner
    from cptuning.training import CheckpointFolder


class TextModel(BaseEstimator):  # type: ignore[misc]
    """A model of texts that is fitted from a few examples, whatever it answers.

    A method's own class names its learner, settings and presets; see ``rivals.py``.
    """

    method: ClassVar[str]
    learner: ClassVar[str]
    """The class that is fitted, as "module:name": it is imported with torch, when it is needed."""
    settings_class: ClassVar[type[TrainingSettings]]
    presets: ClassVar[Presets[Any]]
    own_parameters: ClassVar[dict[str, tuple[str, str]]] = {}
    """Parameters that are neither shared by all methods nor settings: their type and meaning."""

    attributes: ClassVar[dict[str, tuple[str, str]]] = {}
    """What a fit leaves, if not what it leaves of a classifier: type and meaning."""

    # The parameters that every method has; a subclass takes them in its __init__.
    backbone: "str | Backbone"
    preset: str
    random_state: Any
    validation: str
    folds: int
    device: str
    precision: Any
    verbose: bool
    callbacks: Any
    checkpoint_dir: str | Path | None = None
    checkpoint_seconds: float

    settings_: Any
    training_: dict[str, Any]
    predictor_: Predictor

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """The names of the classifier's parameters."""
        return tuple(inspect.signature(cls.__init__).parameters)[1:]

    def settings_for(self, examples: Examples, classes: int, *, pooled: bool = False) -> Any:
        """The settings for a number of classes: those given, and otherwise the preset's.

        ``pooled`` examples are read without a template, as sentence encoders do.
        """
        names = {field.name for field in fields(self.settings_class)}
        given = {name: getattr(self, name) for name in self.parameter_names() if name in names}
        changes = self._changes(examples.is_pair)
        changes |= {name: value for name, value in given.items() if value is not None}
        settings = resolve_preset(
            self.presets,
            self.preset,
            pair=examples.is_pair,
            classes=classes,
            pooled=pooled,
            **changes,
        )
        return settings.scaled_to(len(examples))

    def _changes(self, pair: bool) -> dict[str, Any]:
        """What parameters that are not settings change in the settings."""
        return {}

    @classmethod
    def learner_class(cls) -> "type[Learner[Any, Any]]":
        """The class that is fitted."""
        found: type[Learner[Any, Any]] = resolve_name(cls.learner)
        return found

    def _start(
        self, init_from: "TextModel | str | Path | None", template: str
    ) -> "tuple[Backbone, Tensor | None]":
        """The backbone and, from a model with the same template, where prompt vectors start.

        A model that is started from stays as it is.
        """
        from copy import deepcopy

        from cptuning.backbone import Backbone, TextEncoder, load_backbone
        from cptuning.inference.embedded_encoder import EmbeddedEncoder
        from cptuning.inference.ranked_documents import SentenceEncoder

        if init_from is None:
            if isinstance(self.backbone, Backbone):
                return self.backbone, None
            return load_backbone(self.backbone, progress=self.verbose), None
        if isinstance(init_from, TextModel):
            encoder, training = init_from._fitted().encoder, init_from.training_
        else:
            model = load_model(as_path(init_from, "init_from"), trainable=True)
            encoder, training = model.predictor.encoder, model.facts.training
        if isinstance(encoder, SentenceEncoder):
            encoder = encoder.encoder
        if isinstance(encoder, EmbeddedEncoder):
            encoder = encoder.with_torch()
        if not isinstance(encoder, TextEncoder):
            raise CPTuningError(
                "init_from is an exported model: give the folder it was exported from."
            )
        backbone = replace(
            encoder.backbone,
            model=deepcopy(encoder.module.model),
            own_pooling=deepcopy(encoder.backbone.own_pooling),
        )
        if found := training.get("backbone"):  # Not the folder that it was saved to in between.
            backbone = replace(backbone, name=found["name"], revision=found.get("revision"))
        is_same = encoder.layout.template.source == template
        return backbone, encoder.module.prompts.detach().clone() if is_same else None

    def transform(self, X: Any) -> FloatArray:
        """The L2-normalised embeddings, float32, of a method that compares them."""
        return self._fitted().transform(X)

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder: safetensors, JSON, the tokenizer and a model card."""
        predictor = self._fitted()
        place = as_path(folder, "folder")
        checkpoints = self._checkpoints()
        if checkpoints and checkpoints.is_within(place):
            checkpoints.clear()  # They would be in the model's way.
        save_model(self.model_facts(predictor), predictor, place)
        if checkpoints:  # The model is safe: the state of its training is not needed any more.
            checkpoints.clear()

    def export(self, folder: str | Path, *, int8: bool = False, second_look: bool = True) -> None:
        """Write the model as ONNX, to a folder that predicts without torch.

        ``int8`` makes it faster: texts whose class rounding may have decided are read again by an
        exact graph, unless there is no ``second_look``. It can't be trained further.
        """
        from cptuning.export import export_onnx

        self._fitted()
        with needed_for("An export"):
            export_onnx(self, folder, int8=int8, second_look=second_look)

    def model_facts(self, predictor: Predictor) -> ModelFacts:
        """The facts that a folder of this model contains, for one of its predictors."""
        left_out = set(OF_ONE_MACHINE)
        if isinstance(self.random_state, np.random.RandomState | np.random.Generator):
            left_out.add("random_state")  # The seed that was drawn from it is in the facts.
        names = [name for name in self.parameter_names() if name not in left_out]
        parameters = {name: getattr(self, name) for name in names}
        if not isinstance(self.backbone, str | Path):  # It was loaded already.
            parameters["backbone"] = self.backbone.name
        return ModelFacts.of(
            self.method,
            predictor,
            parameters=parameters,
            settings=self.settings_,
            training=self.training_,
        )

    def _checkpoints(self) -> "CheckpointFolder | None":
        if self.checkpoint_dir is None:
            return None
        from cptuning.training import CheckpointFolder

        return CheckpointFolder(as_path(self.checkpoint_dir, "checkpoint_dir"))

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


def seed_of(random_state: Any) -> int:
    """A seed from whatever scikit-learn takes for one.

    >>> seed_of(7), seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
    (7, True)
    """
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31 - 1))
    if not isinstance(random_state, Integral) or not 0 <= int(random_state) <= LARGEST_SEED:
        raise CPTuningError(
            f"random_state is {random_state!r}: give a whole number from 0 to {LARGEST_SEED}."
        )
    return int(random_state)

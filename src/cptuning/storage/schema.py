"""What ``cptuning.json`` may say: one description of its fields, checked when it is read."""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from cptuning.data import LabelCells, LabelSpace, label_space_from_json
from cptuning.data.weights import as_class_prior
from cptuning.errors import CPTuningError
from cptuning.inference import LabelCalibration, MultiLabelPredictor, Predictor, order_of
from cptuning.methods.all_settings import SETTINGS
from cptuning.methods.cp_tuning_settings import MOST_STEPS
from cptuning.prompting import Layout, SpecialTokens, Template
from cptuning.settings import TrainingSettings, check_settings

FORMAT = 2
FACTS_FILE = "cptuning.json"
TAGGER = "tagger"
"""The method of a folder that holds no classifier but a tagger."""
SEARCH_FACTS = {
    "search": "Searched for",
    "candidates": "Candidates",
    "candidate_steps": "Steps a candidate",
    "pattern_weights": "Patterns and their weights",
}
"""What a method that searches, or trains several models, states in every result."""
OF_ONE_MACHINE = frozenset(
    ["callbacks", "checkpoint_dir", "checkpoint_seconds", "device", "verbose"]
)
"""Parameters that are not stored, and that a model folder may not set."""
_PACKAGES = ("cptuning", "numpy", "torch", "transformers", "tokenizers", "scikit-learn")

# Far above anything sensible, far below what takes long or does not fit in memory.
_MOST_TOKENS = 1 << 20
_MOST_IDS = 1 << 24
_TEMPERATURES = (1e-6, 1e6)
_MOST_LEAD = 1e6
_MOST_WINDOWS = 1024
_MOST_BIAS = 1e9


@dataclass(frozen=True)
class LayoutFacts:
    """How texts are laid out for the model."""

    special: SpecialTokens
    template: Template
    vocabulary: int
    max_length: int
    trainable_words: bool
    masks: int
    text_prefix: str = ""
    sentences: bool = False
    windows: int = 1

    @classmethod
    def of(cls, layout: Layout) -> "LayoutFacts":
        """The facts of a layout."""
        return cls(
            layout.special,
            layout.template,
            layout.vocabulary,
            layout.max_length,
            layout.trainable_words,
            layout.masks,
            layout.text_prefix,
            layout.sentences,
            layout.windows,
        )

    @classmethod
    def from_json(cls, stored: Any) -> "LayoutFacts":
        """The inverse of :meth:`to_json`."""
        stored = {
            "text_prefix": "",
            "sentences": False,
            "windows": 1,
            **stored,
        }  # Older models have none.
        facts = JsonObject("layout", stored, field_names(cls))
        vocabulary = facts.whole_number("vocabulary", 1, _MOST_IDS)
        special = JsonObject("layout.special", stored["special"], field_names(SpecialTokens))
        most = vocabulary - 1
        return cls(
            SpecialTokens(
                prefix=special.ids("prefix", most),
                between=special.ids("between", most),
                suffix=special.ids("suffix", most),
                mask=special.whole_number("mask", 0, most),
                pad=special.whole_number("pad", 0, most),
            ),
            Template.parse(facts.text("template"), needs_output=False),
            vocabulary,
            facts.whole_number("max_length", 1, _MOST_TOKENS),
            facts.flag("trainable_words"),
            facts.whole_number("masks", 1, 100),
            facts.text("text_prefix"),
            facts.flag("sentences"),
            facts.whole_number("windows", 1, _MOST_WINDOWS),
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            **asdict(self),
            "special": self.special.to_json(),
            "template": self.template.source,
        }


@dataclass(frozen=True)
class LabelSetFacts:
    """How a multi-label model answers; its temperature is stored as that of any model."""

    format: str
    biases: tuple[float, ...]
    threshold: float

    @classmethod
    def of(cls, predictor: Predictor) -> "LabelSetFacts | None":
        """The facts of a multi-label model; None for any other."""
        if not isinstance(predictor, MultiLabelPredictor):
            return None
        calibration = predictor.calibration
        biases = tuple(calibration.biases.tolist())
        return cls(predictor.label_space.format, biases, calibration.threshold)

    @classmethod
    def from_json(cls, stored: Any, n_labels: int) -> "LabelSetFacts":
        """The inverse of what is stored, checked."""
        facts = JsonObject("label_sets", stored, field_names(cls))
        biases = stored["biases"]
        if not isinstance(biases, list) or len(biases) != n_labels:
            raise CPTuningError("label_sets.biases is not a list with a number for each label")
        if not all(type(b) in (int, float) and abs(b) < _MOST_BIAS for b in biases):
            raise CPTuningError("label_sets.biases contains values that are not numbers")
        return cls(facts.text("format"), tuple(biases), facts.number("threshold", 0, 1))

    def calibration(self, temperature: float) -> LabelCalibration:
        """What turns scores into label sets."""
        return LabelCalibration(temperature, np.array(self.biases), self.threshold)


@dataclass(frozen=True)
class ModelFacts:
    """What a model folder says about its model."""

    method: str
    label_space: LabelSpace
    parameters: dict[str, Any]
    """Of the estimator, as far as they were given and are not of one machine alone."""
    settings: TrainingSettings
    layout: LayoutFacts
    temperature: float
    unknown_threshold: float | None
    least_confidence: float | None
    """The confidence up to which a text is "unknown"."""
    clear_lead: float | None
    """Of a model that looks again at close calls."""
    class_prior: tuple[float, ...] | None
    """The shares that the probabilities are corrected for, in the order of the classes."""
    order: tuple[Any, ...] | None
    """The labels from the least to the greatest, if they have an order."""
    label_sets: "LabelSetFacts | None"
    """Of a multi-label model."""
    training: dict[str, Any]
    versions: dict[str, str]

    @classmethod
    def of(
        cls,
        method: str,
        predictor: Predictor,
        *,
        parameters: Mapping[str, Any],
        settings: TrainingSettings,
        training: dict[str, Any],
    ) -> "ModelFacts":
        """The facts of a model that was fitted here."""
        look, prior = predictor.second_look, predictor.class_prior
        return cls(
            method,
            predictor.label_space,
            {name: as_json(value) for name, value in parameters.items() if value is not None},
            settings,
            LayoutFacts.of(predictor.encoder.layout),
            predictor.temperature,
            predictor.unknown_threshold,
            predictor.least_confidence,
            None if look is None else look.clear_lead,
            None if prior is None else tuple(prior.tolist()),
            predictor.order,
            LabelSetFacts.of(predictor),
            training,
            versions(),
        )

    @classmethod
    def from_json(cls, stored: Any) -> "ModelFacts":
        """The inverse of :meth:`to_json`; ``CPTuningError`` if anything can't be."""
        if isinstance(stored, dict) and stored.get("format") == 1:
            stored = _from_format_1(stored)
        if isinstance(stored, dict):
            none = dict.fromkeys(("class_prior", "label_sets", "least_confidence", "order"))
            stored = none | stored  # Older models have none.
        facts = JsonObject("", stored, field_names(cls) - {"label_space"} | {"format", "classes"})
        method = facts.text("method")
        if method not in SETTINGS:
            raise CPTuningError(f"method is {_shown(method)}: use one of {', '.join(SETTINGS)}")
        kind = SETTINGS[method]
        threshold, lead = facts.values["unknown_threshold"], facts.values["clear_lead"]
        sure, sets = facts.values["least_confidence"], facts.values["label_sets"]
        label_space = _label_space(facts.values["classes"], sets)
        return cls(
            method,
            label_space,
            parameters_from_json(facts.object("parameters")),
            settings_from_json(kind, field_names(kind), facts.object("settings")),
            LayoutFacts.from_json(facts.object("layout")),
            facts.number("temperature", *_TEMPERATURES),
            None if threshold is None else facts.number("unknown_threshold", -10, 10),
            None if sure is None else facts.number("least_confidence", 0, 1),
            None if lead is None else facts.number("clear_lead", 0, _MOST_LEAD),
            _class_prior(facts.values["class_prior"], label_space),
            _order(facts.values["order"], label_space),
            None if sets is None else LabelSetFacts.from_json(sets, len(label_space)),
            _training(facts.object("training")),
            texts_from_json("versions", facts.object("versions")),
        )

    @property
    def label_cells(self) -> LabelCells | None:
        """How the training file held label sets, if it did and they were not lists."""
        stored = self.training.get("label_cells")
        return None if stored is None else LabelCells.from_json(stored)

    @property
    def backbone(self) -> str:
        """What the model was trained from: its id and revision on the hub, or its folder's name."""
        found = self.training.get("backbone")
        if found is None:  # The folder was written before this was noted.
            return str(self.parameters.get("backbone", "embedded"))
        return ", revision ".join(found[name] for name in ("name", "revision") if name in found)

    def without_paths(self) -> "ModelFacts":
        """The same for strangers: a backbone that was a folder here is called by its last part."""
        found = self.training.get("backbone", {})
        if "revision" in found or "backbone" not in self.parameters:
            return self
        name = found.get("name", Path(self.parameters["backbone"]).name)
        return replace(self, parameters=self.parameters | {"backbone": name})

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "format": FORMAT,
            "method": self.method,
            "classes": self.label_space.to_json(),
            "parameters": self.parameters,
            "settings": as_json(asdict(self.settings)),
            "layout": self.layout.to_json(),
            "temperature": self.temperature,
            "unknown_threshold": self.unknown_threshold,
            "least_confidence": self.least_confidence,
            "clear_lead": self.clear_lead,
            "class_prior": self.class_prior,
            "order": None if self.order is None else list(self.order),
            "label_sets": None if self.label_sets is None else asdict(self.label_sets),
            "training": self.training,
            "versions": self.versions,
        }


class JsonObject:
    """A JSON object whose fields are read with checks; the errors name them."""

    def __init__(self, name: str, values: Any, needed: Iterable[str]) -> None:
        self._name = name
        if not isinstance(values, dict):
            raise CPTuningError(f"{name or 'what it holds'} is not an object")
        self.values: dict[str, Any] = values
        missing = sorted(set(needed) - set(values))
        if missing:
            raise CPTuningError(f"{', '.join(map(self._full, missing))} is missing")

    def object(self, name: str) -> dict[str, Any]:
        """A field that is an object itself."""
        return JsonObject(self._full(name), self.values[name], ()).values

    def text(self, name: str) -> str:
        """A field that is a string."""
        value = self.values[name]
        if not isinstance(value, str) or len(value) > 10_000:
            raise self._wrong(name, "a text")
        return value

    def flag(self, name: str) -> bool:
        """A field that is true or false."""
        value = self.values[name]
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def whole_number(self, name: str, least: int, most: int) -> int:
        """A field that is a whole number between two others."""
        value = self.values[name]
        if not _is_whole_number(value, least, most):
            raise self._wrong(name, f"a whole number between {least} and {most}")
        return int(value)

    def number(self, name: str, least: float, most: float) -> float:
        """A field that is a number between two others."""
        value = self.values[name]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a number")
        if not least <= value <= most:  # NaN is not.
            raise self._wrong(name, f"a number between {least:g} and {most:g}")
        return value

    def ids(self, name: str, most: int) -> tuple[int, ...]:
        """A field that is a short list of token ids."""
        value = self.values[name]
        if (
            not isinstance(value, list)
            or len(value) > 100
            or not all(_is_whole_number(one, 0, most) for one in value)
        ):
            raise self._wrong(name, f"a short list of whole numbers up to {most}")
        return tuple(value)

    def _wrong(self, name: str, wanted: str) -> CPTuningError:
        return CPTuningError(f"{self._full(name)} is {_shown(self.values[name])}, not {wanted}")

    def _full(self, name: str) -> str:
        return f"{self._name}.{name}" if self._name else name


def field_names(kind: type) -> set[str]:
    """The names of a dataclass's fields."""
    return set(kind.__dataclass_fields__)  # type: ignore[attr-defined]


def _without_default(kind: Any) -> set[str]:
    return {field.name for field in fields(kind) if field.default is MISSING}


def _is_whole_number(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _label_space(classes: Any, label_sets: Any) -> LabelSpace:
    format = label_sets.get("format") if isinstance(label_sets, dict) else label_sets
    space = label_space_from_json(classes, format)
    space.to_json()  # It refuses labels that are not finite.
    return space


def _class_prior(stored: Any, label_space: LabelSpace) -> tuple[float, ...] | None:
    if stored is None:
        return None
    # A model that was given classes later may have more of them.
    if not isinstance(stored, list) or len(stored) > len(label_space):
        raise CPTuningError(f"class_prior is {_shown(stored)}, not a share for each class")
    known = LabelSpace(label_space.classes[: len(stored)])
    prior = as_class_prior(stored, known)
    return None if prior is None else tuple(prior.tolist())


def _order(stored: Any, label_space: LabelSpace) -> tuple[Any, ...] | None:
    if stored is None:
        return None
    if not isinstance(stored, list) or any(label not in label_space.classes for label in stored):
        raise CPTuningError(f"order is {_shown(stored)}, not the classes in an order")
    return order_of(stored, label_space)


def parameters_from_json(stored: dict[str, Any]) -> dict[str, Any]:
    """An estimator's parameters, checked."""
    foreign = sorted(OF_ONE_MACHINE & set(stored))
    if foreign:
        raise CPTuningError(
            f"it sets the parameter {foreign[0]}, which is for whoever runs the model to choose"
        )
    if not isinstance(stored.get("backbone", ""), str):
        raise CPTuningError("parameters.backbone is not a text")
    return stored


def settings_from_json(
    kind: Callable[..., TrainingSettings], names: set[str], stored: dict[str, Any]
) -> TrainingSettings:
    """The settings of a method, checked."""
    unknown = sorted(set(stored) - names)
    if unknown:
        raise CPTuningError(f"there is no setting {_shown(unknown[0])}")
    if "sentence_weight" in names:
        # Models from before these settings read no other place.
        stored = {"pooling": "mask", "sentence_weight": None, **stored}
    stored = {"most_steps": MOST_STEPS, **stored}  # As it was for all.
    missing = sorted(_without_default(kind) - set(stored))
    if missing:
        raise CPTuningError(f"settings.{missing[0]} is missing")
    values = {n: tuple(v) if isinstance(v, list) else v for n, v in stored.items()}
    try:
        settings = kind(**values)
        check_settings(settings)
    except (TypeError, ValueError) as error:  # A setting is missing, or is of an odd kind.
        raise CPTuningError(f"its settings can't be: {_one_line(error)}") from error
    return settings


def _training(stored: dict[str, Any]) -> dict[str, Any]:
    facts = JsonObject(
        "training", stored, ["examples", "validation", "held_out_accuracy", "best_step", "seed"]
    )
    facts.text("validation")
    for name in ("best_step", "seed"):
        facts.whole_number(name, 0, 2**64)
    if stored["held_out_accuracy"] is not None:
        facts.number("held_out_accuracy", 0, 1)
    for n in facts.object("examples").values():
        if not _is_whole_number(n, 0, 2**64):
            raise CPTuningError(f"training.examples has {_shown(n)}, not a number of examples")
    if "descriptions" in stored:
        described = stored["descriptions"]
        descriptions = JsonObject("training.descriptions", described, ["texts", "weight"])
        descriptions.whole_number("texts", 1, 2**64)
        descriptions.number("weight", 0, 100)
    if stored.get("label_cells") is not None:
        LabelCells.from_json(stored["label_cells"])
    if "backbone" in stored:
        backbone = JsonObject("training.backbone", stored["backbone"], ["name"])
        for name in {"name", "revision"} & set(backbone.values):
            backbone.text(name)
    return stored


def texts_from_json(name: str, stored: dict[str, Any]) -> dict[str, str]:
    """An object of texts, checked."""
    for value in stored.values():
        if not isinstance(value, str):
            raise CPTuningError(f"{name} has {_shown(value)}, not a text")
    return stored


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()).removesuffix(".")
    return text if len(text) <= 300 else f"{text[:300]}…"


def _from_format_1(stored: dict[str, Any]) -> dict[str, Any]:
    """The facts of format 1 under the names that they have today."""

    def renamed(values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = dict(values)
        if "words_a_class" in values:
            values["words_per_class"] = values.pop("words_a_class")
        if values.get("selection") == "one-error":
            values["selection"] = "one-standard-error"
        return values

    layout = stored.get("layout")
    if isinstance(layout, dict):
        layout = {"trainable_words": True, "masks": 1, **layout}
    return {
        "clear_lead": None,
        **stored,
        "format": FORMAT,
        "settings": renamed(stored.get("settings")),
        "parameters": renamed(stored.get("parameters")),
        "layout": layout,
    }


def as_json(value: Any) -> Any:
    """A parameter as JSON has it: grids are often of numpy's numbers.

    >>> as_json(np.int64(3)), as_json((np.float32(0.5), Path("a")))
    (3, [0.5, 'a'])
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | list | tuple):
        return [as_json(one) for one in value]
    if isinstance(value, dict):
        return {key: as_json(one) for key, one in value.items()}
    return str(value) if isinstance(value, Path) else value


def versions() -> dict[str, str]:
    """The versions of the packages that a result depends on, as far as they are installed.

    >>> "numpy" in versions()
    True
    """
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    # On a machine that only trains the sources may be there without having been installed.
    project = Path(__file__).parents[3] / "pyproject.toml"
    if "cptuning" not in found and project.is_file():
        found["cptuning"] = tomllib.loads(project.read_text("utf-8"))["project"]["version"]
    return found

"""The JSON of requests and responses, with descriptions for the OpenAPI page."""

from collections.abc import Hashable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from cptuning.data import Examples, MultiLabelSpace, as_examples, as_labels
from cptuning.data.labels import SAVABLE
from cptuning.errors import CPTuningError

_LONGEST_LABEL = 1000
# Every JSON parser represents integers up to this one exactly.
_LARGEST_NUMBER = 2**53

_TEXT = {"type": "string"}
_PAIR = {"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 2}
_LABEL = {
    "type": ["string", "number", "boolean"],
    "minLength": 1,
    "maxLength": _LONGEST_LABEL,
    "pattern": r"\S",
    "minimum": -_LARGEST_NUMBER,
    "maximum": _LARGEST_NUMBER,
}


def read_texts(value: Any) -> Examples:
    """The examples in a request: one text, a list of texts, or a list of pairs.

    >>> read_texts("one text").first
    ('one text',)
    >>> read_texts(["a", ["b", "c"]])
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: Row 1 is a single text but row 2 is a pair of texts: ...
    """
    if not isinstance(value, str | list):
        raise CPTuningError("The value of texts is neither a text nor a list of texts or pairs.")
    return as_examples([value] if isinstance(value, str) else value)


def read_labels(value: Any) -> list[Hashable]:
    """The labels in a request: one, a list of them, or a list of label sets.

    >>> read_labels(["spam", 3]), read_labels(True), read_labels([["late", "rude"], []])
    (['spam', 3], [True], [('late', 'rude'), ()])
    """
    labels = value if isinstance(value, list) else [value]
    are_sets = bool(labels) and isinstance(labels[0], list)
    for row, label in enumerate(labels, start=1):
        parts = label if are_sets and isinstance(label, list) else [label]
        if not all(map(_is_label, parts)):
            raise CPTuningError(
                f"The label in row {row} must be a text of 1 to {_LONGEST_LABEL} characters, "
                "a number up to 2^53 or a boolean."
            )
    return MultiLabelSpace(()).as_labels(labels) if are_sets else as_labels(labels)


def _is_label(value: Any) -> bool:
    if type(value) not in SAVABLE:
        return False
    if isinstance(value, str):
        is_valid = not any("\ud800" <= c <= "\udfff" for c in value)
        return is_valid and bool(value.strip()) and len(value) <= _LONGEST_LABEL
    return bool(abs(value) <= _LARGEST_NUMBER)  # Neither infinite nor NaN.


def _number(value: Any) -> Any:
    """Accept a number, also 3.0, which is 3 in JSON, but neither "3" nor true."""
    if isinstance(value, str | bool):
        raise CPTuningError("The value of explain must be a whole number from 0 to 100.")
    return value


def _share(value: Any) -> Any:
    if isinstance(value, str | bool):
        raise CPTuningError("The value of coverage must be a number between 0 and 1.")
    return value


Texts = Annotated[
    Examples,
    PlainValidator(read_texts),
    WithJsonSchema(
        {
            "anyOf": [
                _TEXT,
                {"type": "array", "items": _TEXT, "minItems": 1},
                {"type": "array", "items": _PAIR, "minItems": 1},
            ],
            "description": "A text, a list of texts, or a list of pairs of texts.",
        }
    ),
]
Labels = Annotated[
    list[Any],
    PlainValidator(read_labels),
    WithJsonSchema(
        {
            "anyOf": [
                _LABEL,
                {"type": "array", "items": _LABEL, "minItems": 1},
                {"type": "array", "items": {"type": "array", "items": _LABEL}, "minItems": 1},
            ],
            "description": "One label per text, or a list of labels for each; a new label creates "
            "a new class.",
        }
    ),
]
Label = str | bool | int | float


class _RequestBody(BaseModel):
    """A request body; unknown fields are rejected."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class EmbedRequest(_RequestBody):
    """Texts to embed."""

    texts: Texts


class PredictRequest(EmbedRequest):
    """Texts to classify."""

    explain: Annotated[int, BeforeValidator(_number)] = Field(
        0, ge=0, le=100, description="How many nearest examples to return as the explanation."
    )
    coverage: Annotated[float | None, BeforeValidator(_share)] = Field(
        None,
        gt=0,
        lt=1,
        description="Also return a set of labels that has the right one with this probability.",
    )


class ExamplesRequest(_RequestBody):
    """Labelled examples to add."""

    texts: Texts
    labels: Labels


class Neighbour(BaseModel):
    """A labelled example or a description of a label, and how similar the text is to it."""

    text: str | tuple[str, str]
    label: Label | list[Label]
    similarity: float
    is_description: bool = False


class LabelReasons(BaseModel):
    """Why a text was given one of several labels."""

    neighbours: list[Neighbour] = Field(description="The nearest examples with the label.")
    against: Annotated[
        Neighbour | None,
        Field(description="The nearest example without the label, if it is nearer than those."),
    ] = None
    passage: Annotated[
        str | None,
        Field(description="Of a long text that is read in windows: the one that decided."),
    ] = None


class Prediction(BaseModel):
    """The prediction for one text."""

    label: Label | list[Label] = Field(
        description="A list, possibly empty, if texts may have several labels."
    )
    confidence: float | None = Field(
        description='Null if the label is "unknown". Of several labels, the least probability.'
    )
    probabilities: dict[str, float]
    label_set: Annotated[
        list[Label] | None,
        Field(description="Labels of which one is right with the probability `coverage`."),
    ] = None
    neighbours: Annotated[
        list[Neighbour] | None,
        Field(description="The nearest examples of the predicted class: the explanation."),
    ] = None
    against: Annotated[
        Neighbour | None,
        Field(description="The nearest example of another class, if it is nearer than those."),
    ] = None
    passage: Annotated[
        str | None,
        Field(description="Of a long text that is read in windows: the one that decided."),
    ] = None
    reasons: Annotated[
        dict[str, LabelReasons] | None,
        Field(description="The explanation of each label, if texts may have several labels."),
    ] = None


class PredictResponse(BaseModel):
    """The predictions, in the order of the texts."""

    model: str
    predictions: list[Prediction]


class EmbedResponse(BaseModel):
    """Unit vectors, in the order of the texts."""

    model: str
    embeddings: list[list[float]]


class ExamplesResponse(BaseModel):
    """The result of adding examples."""

    model: str
    added: int
    known_already: int
    new_classes: list[Label]
    classes: list[Label]
    examples: int = Field(description="How many examples the model has now.")


class ModelInfo(BaseModel):
    """A description of a model."""

    name: str
    method: str
    classes: list[Label]
    pairs: bool = Field(description="Whether the model takes pairs of texts.")
    label_sets: bool = Field(description="Whether a text may have several labels, or none.")
    examples: int | None = Field(
        description="How many examples it compares texts with; null if its method uses none."
    )


class TaggerInfo(BaseModel):
    """A tagger of this server."""

    name: str
    types: list[str]
    sentences: int = Field(description="How many labelled sentences it compares with.")


class ModelList(BaseModel):
    """The models of this server."""

    default: str | None = Field(description="The model that /predict uses.")
    models: list[ModelInfo]
    taggers: list[TaggerInfo] = Field(description="The models that /tag uses.")


class HealthStatus(BaseModel):
    """The state of the server."""

    status: str


class ErrorBody(BaseModel):
    """Why a request was rejected, in one sentence."""

    error: str

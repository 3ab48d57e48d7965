"""What goes in and out as JSON, with its descriptions for the OpenAPI page."""

from collections.abc import Hashable
from math import isfinite
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from cptuning.data import Examples, as_examples, as_labels
from cptuning.data.labels import SAVABLE
from cptuning.errors import CPTuningError

_LONGEST_LABEL = 1000
# The integers that every reader of JSON keeps exactly.
_LARGEST_NUMBER = 2**53

_TEXT = {"type": "string"}
_PAIR = {"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 2}
_LABEL = {
    "type": ["string", "number", "boolean"],
    "maxLength": _LONGEST_LABEL,
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
        raise CPTuningError("What is called texts is neither a text nor a list of texts or pairs.")
    return as_examples([value] if isinstance(value, str) else value)


def read_labels(value: Any) -> list[Hashable]:
    """The labels in a request: one, or a list of them.

    >>> read_labels(["spam", 3]), read_labels(True)
    (['spam', 3], [True])
    """
    labels = value if isinstance(value, list) else [value]
    for row, label in enumerate(labels, start=1):
        if not _is_label(label):
            raise CPTuningError(
                f"The label in row {row} is no text of up to {_LONGEST_LABEL} characters, "
                "no number up to 2^53 and no boolean."
            )
    return as_labels(labels)


def _is_label(value: Any) -> bool:
    if type(value) not in SAVABLE:
        return False
    if isinstance(value, str):
        return len(value) <= _LONGEST_LABEL and not any("\ud800" <= c <= "\udfff" for c in value)
    return isfinite(value) and abs(value) <= _LARGEST_NUMBER


def _number(value: Any) -> Any:
    """Only a number: neither "3" nor true; but 3.0, which is 3 in JSON."""
    if isinstance(value, str | bool):
        raise CPTuningError("What is called explain is no whole number from 0 to 100.")
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
            "anyOf": [_LABEL, {"type": "array", "items": _LABEL, "minItems": 1}],
            "description": "A label for each text; one that is new makes a new class.",
        }
    ),
]
Label = str | bool | int | float


class _RequestBody(BaseModel):
    """What a client says: nothing that is not understood."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class EmbedRequest(_RequestBody):
    """Texts to be embedded."""

    texts: Texts


class PredictRequest(EmbedRequest):
    """Texts to be labelled."""

    explain: Annotated[int, BeforeValidator(_number)] = Field(
        0, ge=0, le=100, description="How many examples to give as reasons."
    )


class ExamplesRequest(_RequestBody):
    """Labelled examples to be learned."""

    texts: Texts
    labels: Labels


class Neighbour(BaseModel):
    """A labelled example, and how similar the text is to it."""

    text: str | tuple[str, str]
    label: Label
    similarity: float


class Prediction(BaseModel):
    """The answer to one text."""

    label: Label
    confidence: float | None = Field(description='None for the answer "unknown".')
    probabilities: dict[str, float]
    neighbours: Annotated[
        list[Neighbour] | None,
        Field(description="The nearest examples of the answered class, which are the reasons."),
    ] = None
    against: Annotated[
        Neighbour | None,
        Field(description="The nearest example of another class, if it is nearer than these."),
    ] = None


class PredictResponse(BaseModel):
    """The answers, in the order of the texts."""

    model: str
    predictions: list[Prediction]


class EmbedResponse(BaseModel):
    """Unit vectors, in the order of the texts."""

    model: str
    embeddings: list[list[float]]


class ExamplesResponse(BaseModel):
    """What became of the examples."""

    model: str
    added: int
    known_already: int
    new_classes: list[Label]
    classes: list[Label]
    examples: int = Field(description="How many the model knows now.")


class ModelInfo(BaseModel):
    """What a model is."""

    name: str
    method: str
    classes: list[Label]
    pairs: bool = Field(description="Whether it takes pairs of texts.")
    examples: int | None = Field(description="How many it compares with; null if it does not.")


class ModelList(BaseModel):
    """The models of this server."""

    default: str | None = Field(description="The one that /predict asks.")
    models: list[ModelInfo]


class HealthStatus(BaseModel):
    """How the server is."""

    status: str


class ErrorBody(BaseModel):
    """Why a request was not answered, in one sentence."""

    error: str

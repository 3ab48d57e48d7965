"""Names and descriptions of labels, which count as examples of their classes."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cptuning.data.examples import Examples
from cptuning.data.files import read_table
from cptuning.data.formats import file_name
from cptuning.data.labels import aligned, as_labels
from cptuning.data.value_checks import text_problem
from cptuning.errors import CPTuningError

# Where a name is divided: between "fooBar", between "HTTPError", and at whatever is no letter or
# digit; apostrophes are part of words.
_BOUNDARIES = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^\w']+|_+")


@dataclass(frozen=True)
class LabelDescriptions:
    """Texts that say what labels mean, one label for each; a label may have several."""

    examples: Examples
    labels: list[Hashable]


def as_descriptions(given: Any, labels: Sequence[Hashable] = ()) -> LabelDescriptions | None:
    """The descriptions in what a user gives; None for None and False.

    A dictionary has a text, or a list of texts, for each label. True or ``"names"`` takes the names
    of the classes of ``labels``; a list of labels takes theirs.

    >>> as_descriptions({"refund": "wants money back"}).examples.first
    ('wants money back',)
    >>> as_descriptions("names", ["card_lost", "topUp", "card_lost"]).examples.first
    ('card lost', 'top up')
    >>> as_descriptions({"refund": ""})
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The description of the label 'refund' is empty: write a few
    words, or leave the label out of label_descriptions.
    """
    if given is None or given is False:
        return None
    if isinstance(given, Mapping):
        described = [
            (label, text)
            for label, texts in zip(_labels(given, labels), given.values(), strict=True)
            for text in _texts(label, texts)
        ]
    elif given is True or (isinstance(given, str) and given == "names"):
        if not labels:
            raise CPTuningError(
                "There are no examples to take the names of labels from: give label_descriptions "
                "a list of the labels, or a dictionary from labels to texts."
            )
        described = _named(labels)
    elif isinstance(given, str) or not isinstance(given, Iterable):
        raise CPTuningError(
            f"label_descriptions is {given!r}: give a dictionary from labels to texts, a list of "
            'labels with informative names, or "names".'
        )
    else:
        described = _named(_labels(given, labels))
    if not described:
        raise CPTuningError("label_descriptions is empty: describe some labels, or leave it out.")
    return LabelDescriptions(
        Examples(tuple(text for _, text in described)), [label for label, _ in described]
    )


def words_of(label: Hashable) -> str:
    """The words in the name of a label, in small letters; none if it has no letters.

    >>> [words_of(name) for name in ("card_payment_fee", "topUpByCard", "comp.sys.mac")]
    ['card payment fee', 'top up by card', 'comp sys mac']
    >>> words_of("HTTPError"), words_of("LOC:city"), words_of("don't know"), words_of(3)
    ('http error', 'loc city', "don't know", '')
    """
    if not isinstance(label, str) or not any(character.isalpha() for character in label):
        return ""
    return " ".join(_BOUNDARIES.sub(" ", label).split()).lower()


def read_descriptions(path: str | Path) -> dict[Hashable, list[str]] | list[Hashable]:
    """The descriptions in a JSON file or in a table with the columns label and description.

    The JSON file holds an object from labels to texts (or lists of texts), or a list of labels,
    whose names are taken. In a table a label may have several rows.
    """
    if Path(path).suffix.lower() != ".json":
        table = read_table(path, text="description", need_label=True)
        found: dict[Hashable, list[str]] = {}
        for label, text, where in zip(
            table.labels or [], table.examples.first, table.where, strict=True
        ):
            if not text.strip():
                raise CPTuningError(f"{where}: the description of {label!r} is empty.")
            found.setdefault(label, []).append(text)
        return found
    try:
        stored = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CPTuningError(f"{file_name(path)} can't be read as JSON: {why}.") from error
    if not isinstance(stored, dict | list):
        raise CPTuningError(
            f"{file_name(path)} holds neither an object from labels to descriptions nor a list "
            "of labels."
        )
    return stored


def _labels(given: Iterable[Any], known: Sequence[Hashable]) -> list[Hashable]:
    """The labels that are described, spelled as those of the examples where there are any."""
    labels = list(given)
    return aligned(as_labels(labels), dict.fromkeys(known)) if labels else []


def _named(labels: Sequence[Hashable]) -> list[tuple[Hashable, str]]:
    named = []
    for label in dict.fromkeys(labels):
        words = words_of(label)
        if not words:
            raise CPTuningError(
                f"The name of the label {label!r} says nothing: describe it in words, "
                f"as in label_descriptions={{{label!r}: '…'}}."
            )
        named.append((label, words))
    return named


def _texts(label: Hashable, given: Any) -> list[str]:
    """The descriptions of one label, checked."""
    texts = list(given) if isinstance(given, list | tuple) else [given]
    for text in texts:
        problem = text_problem(text)
        if problem:
            raise CPTuningError(f"The description of the label {label!r} {problem}.")
    if not texts or not all(text.strip() for text in texts):
        raise CPTuningError(
            f"The description of the label {label!r} is empty: write a few words, or leave the "
            "label out of label_descriptions."
        )
    return [str.__str__(text) for text in texts]

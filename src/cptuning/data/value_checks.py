"""Checks of single values, for lists, tables and files alike, and the words for errors."""

import math
from typing import Any

import numpy as np


def is_missing(value: object) -> bool:
    """Whether a value is missing: ``None``, NaN, or pandas' ``NA`` and ``NaT``.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    # Recognised by name, so that pandas need not be imported.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def plain(value: Any) -> Any:
    """The Python value of a numpy scalar; any other value unchanged.

    >>> plain(np.int64(3)), plain(np.str_("a")), plain("b")
    (3, 'a', 'b')
    """
    # A date in nanoseconds would become an integer.
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64):
        return value.item()
    return value


def text_problem(value: object) -> str | None:
    """Why a value is not a text, as the end of a sentence; ``None`` if it is one.

    >>> text_problem("fine"), text_problem("")
    (None, None)
    >>> text_problem(3.5)
    'is a number (float), not a text'
    """
    if isinstance(value, str):
        return "contains half of a surrogate pair, which is not valid" if _broken(value) else None
    if is_missing(value):
        return "is missing (None or NaN)"
    if isinstance(value, bytes | bytearray):
        return "is bytes, not a text: decode it first"
    if isinstance(value, int | float | complex | np.number | np.bool_):
        return f"is a number ({type(value).__name__}), not a text"
    return f"is of type {type(value).__name__}, not a text"


def label_problem(value: object) -> str | None:
    """Why a value is not a label, as the end of a sentence; ``None`` if it is one.

    >>> label_problem("spam"), label_problem(("a", 1))
    (None, None)
    >>> label_problem(["spam"])
    'is of type list, which is not hashable: use a text or a number'
    """
    if is_missing(value):
        return "is missing (None or NaN)"
    try:
        hash(value)
    except TypeError:
        kind = type(value).__name__
        return f"is of type {kind}, which is not hashable: use a text or a number"
    return text_problem(value) if isinstance(value, str) else None


def shortlist(values: Any, limit: int = 12) -> str:
    """The values for an error message, truncated if there are many.

    >>> shortlist(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    values = list(values)
    shown = ", ".join(_short(repr(value)) for value in values[:limit])
    return f"{shown} and {len(values) - limit} more" if len(values) > limit else shown


def _short(word: str, limit: int = 60) -> str:
    return word if len(word) <= limit else word[:limit] + "…"


def _broken(text: str) -> bool:
    """Whether a text can't be encoded as UTF-8, and so neither tokenised nor written to a file."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False

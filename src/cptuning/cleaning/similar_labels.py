"""Labels that may mean the same class: "Booking" beside "booking", or "refnud" beside "refund"."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from unicodedata import normalize

_LEAST_RATIO = 0.8
_SHORTEST = 5
# A misspelled label is rarer than the right one: at most this share of its count.
_MOST_OFTEN = 0.25


@dataclass(frozen=True)
class SimilarLabels:
    """Two labels that look like spellings of the same one."""

    label: str
    """The one that occurs more often."""
    other: str
    is_exact: bool
    """Whether they are the same up to case, spaces and hyphens."""


def similar_labels(counts: Mapping[str, int]) -> list[SimilarLabels]:
    """The pairs of labels that may mean the same class, given how often each occurs.

    Labels are alike if they differ only in case, spaces, hyphens and underscores. A rare label is
    also reported beside one that occurs at least four times as often if a few letters differ.
    Labels that differ in their digits are different.

    >>> for found in similar_labels({"booking": 5, "Booking": 4, "refund": 8, "refnud": 1}):
    ...     print(found.label, found.other, found.is_exact)
    booking Booking True
    refund refnud False
    """
    ordered = sorted(counts, key=lambda label: (-counts[label], label))
    found = []
    for label, other in combinations(ordered, 2):
        one, two = _key(label), _key(other)
        if one == two:
            found.append(SimilarLabels(label, other, is_exact=True))
        elif counts[other] <= _MOST_OFTEN * counts[label] and _is_misspelled(one, two):
            found.append(SimilarLabels(label, other, is_exact=False))
    return sorted(found, key=_is_uncertain)


def _key(label: str) -> str:
    """A label without case, and without separators beside a letter: "-1" and "1.5" keep theirs.

    >>> _key("Check-in"), _key("check_in"), _key("-1"), _key("1.5"), _key("C++")
    ('checkin', 'checkin', '-1', '1.5', 'c++')
    """
    folded = " ".join(normalize("NFKC", label).casefold().split())
    letter, sign = r"[^\W\d_]", r"[^\W_]"
    return re.sub(rf"(?<={letter})[\s_./-]+(?={sign})|(?<={sign})[\s_./-]+(?={letter})", "", folded)


def _is_misspelled(one: str, other: str) -> bool:
    if min(len(one), len(other)) < _SHORTEST or one[0] != other[0]:
        return False
    if re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _LEAST_RATIO


def _is_uncertain(found: SimilarLabels) -> bool:
    return not found.is_exact

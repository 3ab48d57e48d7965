"""Texts that occur more than once, also if they differ in case, punctuation or a few letters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from cptuning.data import Examples
from cptuning.inference.support import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped]

Text = str | tuple[str, str]

LEAST_OVERLAP = 0.8
"""Of the character trigrams that occur in either of two near-duplicates, this share is in both."""

_SHINGLE = 3
# Texts and candidates that are compared at a time.
_ROWS, _CANDIDATES = 1024, 65_536
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Repeat:
    """Rows with the same text, or with nearly the same text."""

    rows: tuple[int, ...]
    is_exact: bool
    """Whether the texts are the same up to case, punctuation and spaces."""


@dataclass(frozen=True)
class Leak:
    """A row of the test data whose text is also, or nearly, in the training data."""

    test_row: int
    train_row: int
    """The row of the most similar text; of equally similar ones, the first."""
    is_exact: bool
    """Whether the texts are the same up to case, punctuation and spaces."""


def same_texts(examples: Examples) -> list[Repeat]:
    """The rows whose texts are the same up to case, punctuation and spaces, by their first row.

    Rows without text are left out.

    >>> same_texts(Examples(("Where is it?", "bye", "where is  it")))
    [Repeat(rows=(0, 2), is_exact=True)]
    """
    groups = _rows_by_text(examples).values()
    return [Repeat(tuple(rows), is_exact=True) for rows in groups if len(rows) > 1]


def similar_texts(examples: Examples) -> list[Repeat]:
    """The rows whose texts are nearly the same, by their first row.

    The different texts are compared with each other; the first row of each is grouped with those
    of its near-duplicates, and of theirs in turn. Rows without text are left out.

    >>> similar_texts(Examples(("Cancel all of my orders now", "cancel all of my order now")))
    [Repeat(rows=(0, 1), is_exact=False)]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    rows_of = _rows_by_text(examples)
    texts = list(rows_of)
    one, other, _ = near_duplicates(texts, texts)
    links = coo_array((np.ones(len(one)), (one, other)), shape=(len(texts), len(texts)))
    n, group_of = connected_components(links, directed=False)
    groups: list[list[int]] = [[] for _ in range(n)]
    for rows, group in zip(rows_of.values(), group_of, strict=True):
        groups[group].append(rows[0])
    found = (tuple(sorted(rows)) for rows in groups if len(rows) > 1)
    return [Repeat(rows, is_exact=False) for rows in sorted(found)]


def leaks(train: Examples, test: Examples) -> list[Leak]:
    """The rows of the test data that repeat a text of the training data.

    >>> leaks(Examples(("bye", "Where is it?")), Examples(("so long", "where is it")))
    [Leak(test_row=1, train_row=1, is_exact=True)]
    """
    known, asked = _rows_by_text(train), _rows_by_text(test)
    found = [
        Leak(row, known[text][0], is_exact=True)
        for text, rows in asked.items()
        if text in known
        for row in rows
    ]
    texts, known_texts = [text for text in asked if text not in known], list(known)
    best: dict[int, tuple[float, int]] = {}
    for place, known_place, overlap in zip(*near_duplicates(texts, known_texts), strict=True):
        candidate = (-float(overlap), known[known_texts[known_place]][0])
        best[place] = min(best.get(place, candidate), candidate)
    for place, (_, train_row) in best.items():
        found += [Leak(row, train_row, is_exact=False) for row in asked[texts[place]]]
    return sorted(found, key=_test_row)


def plain(text: str) -> str:
    """A text without case, punctuation and repeated spaces.

    If it has neither letters nor digits, only the spaces around it are removed.

    >>> plain(" Where is my parcel?! "), plain(" :-) ")
    ('where is my parcel', ':-)')
    """
    folded = normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[^\w\s+#%]|_", " ", folded).split()) or folded.strip()


def near_duplicates(
    texts: Sequence[Text], others: Sequence[Text]
) -> tuple[IntArray, IntArray, FloatArray]:
    """The pairs of near-duplicates: positions in ``texts``, in ``others``, and their overlaps.

    The overlap of two texts is the Jaccard index of their character trigrams. If it is at least t,
    at most n - ⌈t n⌉ of n trigrams are not shared, so that the rarest n - ⌈t n⌉ + m of both texts
    have at least m in common. Only pairs of which this is true are compared, with m = 1 + ⌊n / 20⌋
    of the text that has fewer. Equal texts are not near-duplicates.

    >>> one, other, overlap = near_duplicates(["cancel my orders"], ["bye", "cancel my order"])
    >>> one.tolist(), other.tolist(), overlap.tolist()
    ([0], [1], [0.82...])
    """
    trigrams = _trigrams([*texts, *others])
    sizes = np.diff(trigrams.indptr)
    in_common = 1 + sizes // 20
    rare = _rarest(trigrams, in_common)
    rare_others = rare[len(texts) :].T.tocsr()
    found: list[tuple[Any, Any, Any]] = []
    for start in range(0, len(texts), _ROWS):
        rows = slice(start, min(start + _ROWS, len(texts)))
        shared_rare = (rare[rows] @ rare_others).tocoo()
        one, place = shared_rare.row + start, shared_rare.col
        other = place + len(texts)
        least, most = np.minimum(sizes[one], sizes[other]), np.maximum(sizes[one], sizes[other])
        enough = shared_rare.data >= np.minimum(in_common[one], in_common[other])
        alike = np.flatnonzero(enough & (least >= LEAST_OVERLAP * most - _ROUNDING))
        for first in range(0, len(alike), _CANDIDATES):
            some = alike[first : first + _CANDIDATES]
            shared = trigrams[one[some]].multiply(trigrams[other[some]]).sum(axis=1)
            overlap = shared / (sizes[one[some]] + sizes[other[some]] - shared)
            kept = overlap >= LEAST_OVERLAP - _ROUNDING
            found.append((one[some][kept], place[some][kept], overlap[kept]))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    one, place, overlap = (np.concatenate(parts) for parts in zip(*found, strict=True))
    differ = np.array([texts[i] != others[j] for i, j in zip(one, place, strict=True)], dtype=bool)
    return one[differ], place[differ], overlap[differ].astype(np.float32)


def _rows_by_text(examples: Examples) -> dict[Text, list[int]]:
    """The rows of each text without case and punctuation; those without text are left out."""
    rows: dict[Text, list[int]] = {}
    for row, text in enumerate(examples):
        key = plain(text) if isinstance(text, str) else (plain(text[0]), plain(text[1]))
        if "".join(key):
            rows.setdefault(key, []).append(row)
    return rows


def _trigrams(texts: Sequence[Text]) -> "csr_array":
    """Which trigrams each text has: one row per text, one column per trigram, the rarest first."""
    from scipy.sparse import csr_array

    number: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for text in texts:
        parts = (text,) if isinstance(text, str) else text
        found = {
            # The same trigram in the other text of a pair is another one.
            f"{place}{padded[start : start + _SHINGLE]}"
            for place, padded in enumerate(f" {part} " for part in parts)
            for start in range(max(len(padded) - _SHINGLE + 1, 1))
        }
        columns += [number.setdefault(trigram, len(number)) for trigram in found]
        ends.append(len(columns))
    counts = np.bincount(columns, minlength=len(number))
    rank = np.empty(len(number), dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(len(number))
    matrix = csr_array(
        (np.ones(len(columns), np.int32), rank[columns], np.array(ends)),
        shape=(len(texts), len(number)),
    )
    matrix.sort_indices()
    return matrix


def _rarest(trigrams: "csr_array", in_common: IntArray) -> "csr_array":
    """Only the rarest trigrams of each text: near-duplicates have so many of them in common."""
    from scipy.sparse import csr_array

    sizes = np.diff(trigrams.indptr)
    kept = (sizes - np.ceil(LEAST_OVERLAP * sizes - _ROUNDING) + in_common).astype(np.int64)
    place = np.arange(len(trigrams.indices)) - np.repeat(trigrams.indptr[:-1], sizes)
    is_rare = place < np.repeat(kept, sizes)
    ends = np.concatenate([[0], np.cumsum(kept)])
    return csr_array(
        (trigrams.data[is_rare], trigrams.indices[is_rare], ends), shape=trigrams.shape
    )


def _test_row(leak: Leak) -> int:
    return leak.test_row

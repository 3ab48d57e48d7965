"""The files of a ranking task: texts with ids, judgements (qrels), and runs as TREC has them."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from cptuning.data.files import read_table
from cptuning.data.formats import file_name
from cptuning.data.judgements import IdentifiedTexts
from cptuning.errors import CPTuningError

# Columns that usually hold the id of a text, the preferred one first.
_ID_COLUMNS = ("id", "_id", "doc_id", "docno", "docid", "query_id", "qid")

Triple = tuple[str, str, float]


def read_identified(
    path: str | Path, *, id: str | None = None, text: str | None = None
) -> IdentifiedTexts:
    r"""The texts of a table file with the ids in one of its columns; ids are read as text.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "documents.tsv")
    ...     _ = path.write_text("id\ttext\n7\thello\n")
    ...     read_identified(path).ids
    ('7',)
    """
    table = read_table(path, text=text)
    if table.examples.is_pair:
        raise CPTuningError(
            f"{file_name(path)} has pairs of texts: name the one column with --text."
        )
    columns = list(table.rows[0])
    chosen = id or next((name for name in _ID_COLUMNS if name in columns), None)
    if chosen is None or chosen not in columns:
        named = "no id column" if chosen is None else f"no column {chosen!r}"
        raise CPTuningError(
            f"{file_name(path)} has {named} (its columns are {', '.join(map(repr, columns))}): "
            "name the column of the ids with --id."
        )
    places: dict[str, str] = {}
    for row, where in zip(table.rows, table.where, strict=True):
        name = "" if row.get(chosen) is None else str(row[chosen]).strip()
        if not name or name.split() != [name]:
            raise CPTuningError(f"{where}: the id {name!r} is empty or has a space in it.")
        if name in places:
            raise CPTuningError(f"{where}: the id {name!r} is that of {places[name]} already.")
        places[name] = where
    return IdentifiedTexts(tuple(places), table.examples)


def read_qrels(path: str | Path) -> list[Triple]:
    r"""The judgements in a TREC qrels file: query, 0, document and grade on each line.

    The second column, which nothing uses, may be missing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "qrels.txt")
    ...     _ = path.write_text("1 0 d7 2\n1 d8 0\n")
    ...     read_qrels(path)
    [('1', 'd7', 2.0), ('1', 'd8', 0.0)]
    """
    judged = []
    for where, words in _words(path):
        if len(words) not in (3, 4):
            raise CPTuningError(
                f"{where} has {len(words)} columns: a qrels file has query, 0, document, grade."
            )
        grade = _number(words[-1])
        if grade is None:
            raise CPTuningError(
                f"{where}: the grade {words[-1]!r} is not a number (query, 0, document, grade)."
            )
        judged.append((words[0], words[-2], grade))
    if not judged:
        raise CPTuningError(f"{file_name(path)} is empty: it needs a judgement on each line.")
    return judged


def read_run(path: str | Path) -> dict[str, list[str]]:
    r"""The rankings in a TREC run file: query, Q0, document, rank, score and tag on each line.

    As trec_eval does, it goes by the scores, and of equal ones by the documents' ids, last first.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "run.txt")
    ...     _ = path.write_text("1 Q0 a 1 0.5 x\n1 Q0 b 2 0.7 x\n1 Q0 c 3 0.5 x\n")
    ...     read_run(path)
    {'1': ['b', 'c', 'a']}
    """
    scores: dict[str, dict[str, float]] = {}
    for where, words in _words(path):
        score = _number(words[4]) if len(words) == 6 else None
        if score is None:
            raise CPTuningError(
                f"{where} is not a line of a run: it has query, Q0, document, rank, score and tag."
            )
        found = scores.setdefault(words[0], {})
        if words[2] in found:
            raise CPTuningError(
                f"{where}: the document {words[2]!r} is ranked twice for the query {words[0]!r}."
            )
        found[words[2]] = score
    if not scores:
        raise CPTuningError(f"{file_name(path)} is empty: it needs a document on each line.")
    return {query: in_order(found) for query, found in scores.items()}


def in_order(scores: Mapping[str, float]) -> list[str]:
    """Documents by their scores, as trec_eval orders them."""
    return [name for name, _ in sorted(scores.items(), key=lambda one: one[::-1], reverse=True)]


def run_lines(
    rankings: Mapping[Hashable, Sequence[tuple[Hashable, float]]], tag: str = "cptuning"
) -> Iterator[str]:
    r"""Rankings as the lines of a TREC run file.

    >>> list(run_lines({"1": [("d7", 0.5)]}))
    ['1 Q0 d7 1 0.500000 cptuning\n']
    """
    for query, ranking in rankings.items():
        for rank, (document, score) in enumerate(ranking, start=1):
            yield f"{query} Q0 {document} {rank} {score:.6f} {tag}\n"


def _words(path: str | Path) -> Iterable[tuple[str, list[str]]]:
    """The words of each line that is not empty, with its place."""
    name = file_name(path)
    try:
        text = Path(path).read_text("utf-8-sig")
    except FileNotFoundError:
        raise CPTuningError(f"{path} does not exist: check the name and the folder.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise CPTuningError(f"{name} can't be read: {why}.") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if words := line.split():
            yield f"{name}, line {number}", words


def _number(word: Any) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if isfinite(number) else None

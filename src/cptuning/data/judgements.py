"""The input of a ranker: texts by their ids, and the documents that answer each query."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from cptuning.data.examples import Examples, as_examples
from cptuning.data.value_checks import shortlist
from cptuning.errors import CPTuningError


@dataclass(frozen=True)
class IdentifiedTexts:
    """Texts, each with an id of its own.

    >>> IdentifiedTexts.of({"d7": "a text"}, "documents").ids
    ('d7',)
    >>> IdentifiedTexts.of(["one text", "another"], "documents").ids
    (0, 1)
    """

    ids: tuple[Hashable, ...]
    examples: Examples

    @classmethod
    def of(cls, texts: Any, what: str) -> "IdentifiedTexts":
        """A mapping from ids to texts, or texts whose ids are their places, from 0 on."""
        if isinstance(texts, IdentifiedTexts):
            return texts
        if not isinstance(texts, Mapping):
            examples = _singles(texts, what)
            return cls(tuple(range(len(examples))), examples)
        examples = _singles(list(texts.values()), what)
        for name in texts:
            if type(name) not in (str, int):
                raise CPTuningError(
                    f"The id {name!r} among the {what} is of type {type(name).__name__}: "
                    "use texts or whole numbers."
                )
        return cls(tuple(texts), examples)

    def __len__(self) -> int:
        return len(self.ids)


def _singles(texts: Any, what: str) -> Examples:
    if isinstance(texts, str | bytes):
        raise CPTuningError(
            f"The {what} are a single text: give a list, or a mapping from ids to texts."
        )
    if hasattr(texts, "__len__") and len(texts) == 0:
        return Examples(())
    examples = as_examples(texts)
    if examples.is_pair:
        raise CPTuningError(f"The {what} are pairs of texts: give one text for each.")
    return examples


Relevance = tuple[dict[int, float], ...]
"""For each query, the grades of the documents that were judged, by their places."""


def as_relevance(relevance: Any, queries: IdentifiedTexts, documents: IdentifiedTexts) -> Relevance:
    """The judgements by the places of queries and documents.

    They are a mapping from a query's id to its documents, ``{doc: grade}`` or a list of relevant
    ones, or triples ``(query, doc, grade)``, the rows of a qrels file. A document with a grade
    above 0 is relevant.

    >>> queries = IdentifiedTexts.of({"q": "where?"}, "queries")
    >>> documents = IdentifiedTexts.of(["here", "there"], "documents")
    >>> as_relevance({"q": {1: 2}}, queries, documents)
    ({1: 2.0},)
    >>> as_relevance([("q", 0, 1), ("q", 1, 0)], queries, documents)
    ({0: 1.0, 1: 0.0},)
    >>> as_relevance({"q": {"x": 1}}, queries, documents)
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: The document 'x', judged for the query 'q', is not among the
    documents (0, 1).
    """
    query_places = {name: place for place, name in enumerate(queries.ids)}
    document_places = {name: place for place, name in enumerate(documents.ids)}
    judged: Relevance = tuple({} for _ in queries.ids)
    for query, document, grade in _triples(relevance):
        if query not in query_places:
            raise CPTuningError(
                f"The judged query {query!r} is not among the queries ({_shown(queries.ids)})."
            )
        if document not in document_places:
            raise CPTuningError(
                f"The document {document!r}, judged for the query {query!r}, is not among the "
                f"documents ({_shown(documents.ids)})."
            )
        if isinstance(grade, bool) or not isinstance(grade, Real) or not abs(float(grade)) < 1e6:
            raise CPTuningError(
                f"The grade of the document {document!r} for the query {query!r} is {grade!r}: "
                "give a number, above 0 if it is relevant."
            )
        grades, place = judged[query_places[query]], document_places[document]
        if grades.setdefault(place, float(grade)) != float(grade):
            raise CPTuningError(
                f"The document {document!r} has two grades for the query {query!r}: "
                f"{grades[place]:g} and {float(grade):g}."
            )
    return judged


def _triples(relevance: Any) -> Iterable[tuple[Hashable, Hashable, Any]]:
    if isinstance(relevance, Mapping):
        for query, documents in relevance.items():
            if isinstance(documents, Mapping):
                yield from ((query, document, grade) for document, grade in documents.items())
            elif isinstance(documents, Sequence | set) and not isinstance(documents, str | bytes):
                yield from ((query, document, 1) for document in documents)
            else:
                raise CPTuningError(
                    f"The judgements of the query {query!r} are of type "
                    f"{type(documents).__name__}: give {{document: grade}}, or a list of relevant "
                    "documents."
                )
        return
    if isinstance(relevance, str | bytes) or not isinstance(relevance, Iterable):
        raise CPTuningError(
            f"relevance is of type {type(relevance).__name__}: give "
            "{query: {document: grade}}, or triples (query, document, grade)."
        )
    for number, row in enumerate(relevance, start=1):
        if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != 3:
            raise CPTuningError(
                f"The judgement in row {number} is {row!r}: give (query, document, grade)."
            )
        yield row[0], row[1], row[2]


def _shown(ids: Sequence[Hashable]) -> str:
    return shortlist(ids) if ids else "there are none"

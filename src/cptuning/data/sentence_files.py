"""Files of sentences: CoNLL columns, JSON lines with marked spans or tags, and plain lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cptuning.data.formats import STANDARD_STREAM, is_gzip
from cptuning.data.parsing import records, text_lines
from cptuning.data.sentences import Sentence, TaggedSentences, as_sentences, as_tagged
from cptuning.data.tag_schemes import OUTSIDE, iob2_of, spans_of
from cptuning.errors import CPTuningError

COLUMN_SUFFIXES = ("conll", "bio", "iob", "iob2", "bioes")
SENTENCE_FORMATS = ("conll", "jsonl", "txt")


@dataclass(frozen=True)
class SentenceFile:
    """The sentences of a file and the place of each, with their spans if all of them have some."""

    sentences: tuple[Sentence, ...]
    where: tuple[str, ...]
    tagged: TaggedSentences | None


def sentence_format(path: str | Path, format: str | None = None) -> str:
    """The format of a file of sentences: the one named, else by its suffix; a stream is JSONL.

    >>> sentence_format("train.conll"), sentence_format("train.jsonl.gz"), sentence_format("-")
    ('conll', 'jsonl', 'jsonl')
    """
    if format is not None:
        if format not in SENTENCE_FORMATS:
            raise CPTuningError(
                f"Unknown format {format!r}: use one of {', '.join(SENTENCE_FORMATS)}."
            )
        return format
    if str(path) == STANDARD_STREAM:
        return "jsonl"
    if Path(path).is_dir():
        raise CPTuningError(f"{path} is a folder: name a file in it.")
    name = Path(path).name.lower()
    suffix = (name.removesuffix(".gz") if is_gzip(path) else name).rpartition(".")[2]
    if suffix in COLUMN_SUFFIXES:
        return "conll"
    if suffix in SENTENCE_FORMATS:
        return suffix
    raise CPTuningError(
        f"{path}: unknown kind of file, use .conll (a word and its tag per line), .jsonl (text and "
        "spans) or .txt (a text per line)."
    )


def read_sentences(
    path: str | Path, *, need_tags: bool = False, format: str | None = None
) -> SentenceFile:
    r"""The sentences of a file; with ``need_tags`` a file without them is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.conll")
    ...     _ = path.write_text("to\tO\nSt.\tB-city\nGallen\tI-city\n\nhello\tO\n")
    ...     found = read_sentences(path)
    >>> [sentence.text for sentence in found.sentences], found.tagged.spans[0]
    (['to St. Gallen', 'hello'], (WordSpan(start=1, stop=3, label='city'),))
    """
    kind = sentence_format(path, format)
    rows = {"conll": _conll_rows, "jsonl": _jsonl_rows, "txt": _plain_rows}[kind](path)
    found = list(rows)
    where = tuple(place for place, _, _ in found)
    texts = [one for _, one, _ in found]
    answers = [answer for _, _, answer in found]
    if need_tags:
        for place, answer in zip(where, answers, strict=True):
            if answer is None:
                raise CPTuningError(f"{place} has no tags: {_HOW_TAGGED[kind]}.")
    if not found:
        raise CPTuningError(f"{path} has no sentences.")
    if all(answer is not None for answer in answers):
        tagged = as_tagged(texts, answers, where)
        return SentenceFile(tagged.sentences, where, tagged)
    return SentenceFile(as_sentences(texts), where, None)


_HOW_TAGGED = {
    "conll": "give each line a word and, in the last column, its tag",
    "jsonl": 'give each object "spans" beside its "text", or "tags" beside its "tokens"',
    "txt": "use a .conll or .jsonl file",
}


def conll_text(sentence: Sentence, tags: Sequence[str]) -> str:
    r"""A sentence as columns, with an empty line behind it.

    >>> conll_text(Sentence.of_text("to Rome"), ["O", "B-city"])
    'to\tO\nRome\tB-city\n\n'
    """
    lines = (f"{word}\t{tag}\n" for word, tag in zip(sentence.words, tags, strict=True))
    return "".join(lines) + "\n"


Row = tuple[str, Any, Any]


def _conll_rows(path: str | Path) -> Iterator[Row]:
    """Blocks of lines: the first column is the word, the last one the tag if there are several."""
    words: list[str] = []
    tags: list[str] = []
    begun = ""
    for where, line in text_lines(path):
        line = line.rstrip("\r\n")
        cells = line.split("\t") if "\t" in line else line.split()
        cells = [cell.strip() for cell in cells]
        if not any(cells):
            if words:
                yield begun, words, tags if tags else None
            words, tags = [], []
            continue
        if cells[0] == "-DOCSTART-" or (cells[0].startswith("#") and not _is_tag(cells)):
            continue
        if not cells[0]:
            raise CPTuningError(f"{where} has no word in its first column.")
        if not words:
            begun = where
        words.append(cells[0])
        if len(cells) > 1:
            tags.append(cells[-1])
        if len(tags) not in (0, len(words)):
            raise CPTuningError(
                f"{where} has {len(cells)} column{'s' * (len(cells) > 1)}, unlike the line before: "
                "each line needs a word and its tag, and an empty line ends a sentence."
            )
        if tags and cells[1:]:
            spans_of([OUTSIDE] * (len(tags) - 1) + tags[-1:], where)
    if words:
        yield begun, words, tags if tags else None


def _is_tag(cells: list[str]) -> bool:
    """Whether the last of several cells is a tag."""
    return len(cells) > 1 and (cells[-1] == OUTSIDE or cells[-1][1:2] == "-")


def _jsonl_rows(path: str | Path) -> Iterator[Row]:
    for where, row in records(path, "jsonl"):
        if "tokens" in row:
            if not isinstance(row["tokens"], list) or not row["tokens"]:
                raise CPTuningError(f"{where}: tokens is not a list of words.")
            tags = row.get("tags")
            if tags is not None and not (
                isinstance(tags, list) and len(tags) == len(row["tokens"])
            ):
                raise CPTuningError(
                    f"{where}: tags is not a list with a tag for each of the tokens."
                )
            yield where, row["tokens"], tags
        elif isinstance(row.get("text"), str):
            yield where, row["text"], row.get("spans")
        else:
            raise CPTuningError(
                f'{where} has neither a "text" nor "tokens": write one object per line, like '
                '{"text": "to Rome", "spans": [{"start": 3, "end": 7, "label": "city"}]}.'
            )


def _plain_rows(path: str | Path) -> Iterator[Row]:
    for where, line in text_lines(path):
        if line.strip():
            yield where, line.strip(), None


def iob2_tags(tagged: TaggedSentences) -> list[list[str]]:
    """The tags of sentences, in IOB2."""
    pairs = zip(tagged.sentences, tagged.spans, strict=True)
    return [iob2_of(spans, len(sentence)) for sentence, spans in pairs]

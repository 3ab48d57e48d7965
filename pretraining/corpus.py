"""Raw text to training text: cleaned, deduplicated, free of the test sets, a part held out.

    python -m pretraining.corpus RAW_FOLDER OUTPUT_FOLDER --tests DATA_FOLDER

RAW_FOLDER holds a ``SOURCE.txt.zst`` (or ``.txt``) a source, one document a line. Written are
``train-00.txt.xz``, ``train-01.txt.xz`` ..., ``heldout.jsonl`` (the frozen file that models are
compared on) and ``report.json`` (what was read, removed and kept, source by source).
"""

import argparse
import gzip
import html
import io
import json
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b, sha256
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.uint64]

# A document with fewer words teaches little, and one with fewer letters is a table or not English.
FEWEST_WORDS = 8
LEAST_LETTERS = 0.7
# What a text shares with a test sentence: a run of eight words, or the whole of a shorter sentence.
# A sentence of up to four words is a phrase of the language ("a great film").
RUN = 8
SHORTEST = 5
# One run of words in sixteen is remembered; a document with half of them seen before is a copy.
SAMPLED = 16
COPY = 0.5
HELD_OUT_ONE_IN = 250
# Shards that compress to some 25 MB each.
SHARD_CHARACTERS = 80_000_000

_WORD = re.compile(r"[^\W_]+")
_DIRT = re.compile(
    r"<[^<>]{1,200}>|https?://\S+|\burlLink\b|\bnbsp\b|[\x00-\x08\x0b-\x1f\x7f\ufeff\ufffd]"
)
_BRACKETS = re.compile(r"\(\s*[;,:]*\s*\)|(?<=\()\s*[;,]\s*")
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """One document without mark-up, addresses, control characters and doubled spaces.

    >>> clean("I <br />loved  it &amp; (; so) did http://a.b/c she")
    'I loved it & (so) did she'
    """
    text = _DIRT.sub(" ", html.unescape(text))
    return _SPACE.sub(" ", _BRACKETS.sub("", text)).strip()


def is_prose(text: str, fewest_words: int = FEWEST_WORDS) -> bool:
    """Whether there are enough words, and enough letters of the alphabet, to learn English from.

    >>> is_prose("It rained all day and all night long."), is_prose("1 2 3 4 5 6 7 8 9 10")
    (True, False)
    """
    spaces = text.count(" ")
    letters = len(re.findall("[A-Za-z]", text))
    return spaces + 1 >= fewest_words and letters >= LEAST_LETTERS * (len(text) - spaces)


class WordCodes(dict[str, int]):
    """A 64-bit number a word, the same in every process; a word is hashed once."""

    def __missing__(self, word: str) -> int:
        digest = blake2b(word.encode(), digest_size=8).digest()
        self[word] = int.from_bytes(digest, "little")
        return self[word]


_CODES = WordCodes()


def word_codes(text: str) -> Codes:
    """The words as numbers; case and punctuation don't count."""
    return np.array([_CODES[w] for w in _WORD.findall(text.lower())], dtype=np.uint64)


def runs(codes: Codes, length: int) -> Codes:
    """A number for each run of so many words.

    >>> numbers = runs(word_codes("so it was, so it was not"), 3)
    >>> bool(numbers[0] == numbers[3]), len(set(numbers.tolist())), len(numbers)
    (True, 4, 5)
    """
    total = np.zeros(max(0, len(codes) - length + 1), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for place in range(length):
            total = total * np.uint64(6364136223846793005) + codes[place : place + len(total)]
            total ^= total >> np.uint64(29)
    return total


@dataclass(frozen=True)
class TestSentences:
    """What must not be trained on: runs of words of the test sets, sorted, by their length."""

    by_length: dict[int, Codes]

    @classmethod
    def of(cls, sentences: Iterable[str]) -> "TestSentences":
        """The runs of these sentences."""
        found: dict[int, list[Codes]] = {n: [] for n in range(SHORTEST, RUN + 1)}
        for sentence in sentences:
            codes = word_codes(sentence)
            if len(codes) >= SHORTEST:
                length = min(RUN, len(codes))
                found[length].append(runs(codes, length))
        return cls({n: np.unique(np.concatenate(some)) for n, some in found.items() if some})

    def cut_from(self, text: str) -> tuple[str, int]:
        """The text without the words that a test sentence has too, and how many they were.

        >>> tests = TestSentences.of(["A gripping, well-made thriller."])
        >>> tests.cut_from("See it! A gripping well made thriller, they said.")
        ('See it! , they said.', 5)
        """
        codes = word_codes(text)
        shared = np.zeros(len(codes), dtype=bool)
        for length, known in self.by_length.items():
            numbers = runs(codes, length)
            at = np.searchsorted(known, numbers).clip(max=len(known) - 1)
            for start in np.flatnonzero(known[at] == numbers):
                shared[start : start + length] = True
        if not shared.any():
            return text, 0
        return _SPACE.sub(" ", _without(text, shared)).strip(), int(shared.sum())


def _without(text: str, shared: NDArray[np.bool_]) -> str:
    # Lower case can change the length of a text ("İ"): look for the words where they were compared.
    lower = text.lower()
    text = text if len(lower) == len(text) else lower
    words = list(_WORD.finditer(lower))
    kept, end = [], 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], shared, [0]])))
    for first, after in edges.reshape(-1, 2):
        kept.append(text[end : words[first].start()])
        end = words[after - 1].end()
    return "".join([*kept, text[end:]])


@dataclass(frozen=True)
class Document:
    """A cleaned document and what is known of it; no text: why it was left out."""

    text: str
    dropped: str = ""
    cut_words: int = 0
    fingerprint: Codes = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))


def prepared(raw: str, tests: TestSentences, fewest_words: int = FEWEST_WORDS) -> Document:
    """A document ready to train on, or the reason why it is not."""
    text, cut = tests.cut_from(clean(raw))
    if not is_prose(text, fewest_words):
        return Document("", "no prose", cut)
    codes = word_codes(text)
    numbers = runs(codes, min(RUN, len(codes)))
    # Which runs are remembered depends on the runs alone, so that copies are seen anywhere.
    sampled = np.unique(numbers[numbers % np.uint64(SAMPLED) == 0])
    return Document(text, "", cut, sampled if len(sampled) else numbers[:1])


class Copies:
    """Tells documents that were there before, whole or for the most part."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def has(self, fingerprint: Codes) -> bool:
        """Whether this is a copy; from now on it is known itself."""
        numbers = fingerprint.tolist()
        known = sum(number in self._seen for number in numbers)
        self._seen.update(numbers)
        return known > COPY * len(numbers)


def read_documents(path: Path) -> Iterator[str]:
    """The lines of a text file, compressed or not."""
    if path.suffix == ".zst":
        import zstandard

        with path.open("rb") as raw:
            stream = zstandard.ZstdDecompressor().stream_reader(raw)
            yield from io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="\n")
    elif path.suffix == ".xz":
        with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
            yield from file
    else:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            yield from file


def test_sentences(folder: Path) -> TestSentences:
    """All texts of the test files of a folder of data sets."""
    files = sorted([*folder.glob("*/test.jsonl.gz"), *folder.glob("*/heldout_from_train.jsonl.gz")])
    if not files:
        raise SystemExit(f"{folder} has no NAME/test.jsonl.gz: name the folder of the data sets.")
    texts = []
    for path in files:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                # Tagging sets hold words instead of a text.
                texts.append(row["text_a"] if "text_a" in row else " ".join(row["tokens"]))
                texts += [row["text_b"]] if "text_b" in row else []
    return TestSentences.of(texts)


def prepare(
    raw: Path,
    output: Path,
    tests: TestSentences,
    workers: int = 2,
    fewest_words: int = FEWEST_WORDS,
) -> dict[str, object]:
    """Write the training shards, the held-out file and the report."""
    output.mkdir(parents=True, exist_ok=True)
    sources = sorted([*raw.glob("*.txt.zst"), *raw.glob("*.txt")])
    if not sources:
        raise SystemExit(f"{raw} has no .txt.zst or .txt file.")
    counts: dict[str, Counter[str]] = {}
    copies, shards = Copies(), Shards(output)
    work = partial(prepared, tests=tests, fewest_words=fewest_words)
    with ProcessPoolExecutor(workers) as pool, (output / "heldout.jsonl").open("w") as held_out:
        for path in sources:
            name = path.name.split(".")[0]
            count = counts[name] = Counter()
            for document in _in_chunks(pool, read_documents(path), work):
                count["read"] += 1
                count["words cut as test text"] += document.cut_words
                count["documents with test text"] += document.cut_words > 0
                reason = document.dropped or ("copy" if copies.has(document.fingerprint) else "")
                if reason:
                    count[reason] += 1
                elif _is_held_out(document.text):
                    count["held out"] += 1
                    held_out.write(json.dumps({"source": name, "text": document.text}) + "\n")
                else:
                    count["kept"] += 1
                    count["characters kept"] += len(document.text)
                    shards.write(document.text)
            print(name, dict(count), flush=True)
    shards.close()
    frozen = sha256((output / "heldout.jsonl").read_bytes()).hexdigest()
    report = {"sources": counts, "shards": shards.count, "heldout.jsonl sha256": frozen}
    (output / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    return report


def _in_chunks(
    pool: ProcessPoolExecutor, documents: Iterator[str], work: Callable[[str], Document]
) -> Iterator[Document]:
    # Some at a time: the pool would otherwise read a whole source into memory.
    while some := list(islice(documents, 20_000)):
        yield from pool.map(work, some, chunksize=500)


def _is_held_out(text: str) -> bool:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") % HELD_OUT_ONE_IN == 0


class Shards:
    """Writes documents to files of a limited size."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self._file: io.TextIOBase | None = None
        self._characters = 0

    def write(self, text: str) -> None:
        """Add a document."""
        if self._file is None or self._characters > SHARD_CHARACTERS:
            self.close()
            path = self.folder / f"train-{self.count:02}.txt.xz"
            self._file = lzma.open(path, "wt", preset=6)  # noqa: SIM115
            self.count, self._characters = self.count + 1, 0
        self._file.write(text + "\n")
        self._characters += len(text) + 1

    def close(self) -> None:
        """Finish the last file."""
        if self._file is not None:
            self._file.close()


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("raw", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--tests", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--fewest-words", type=int, default=FEWEST_WORDS, help="drop documents with fewer words"
    )
    chosen = parser.parse_args()
    tests = test_sentences(chosen.tests)
    prepare(chosen.raw, chosen.output, tests, chosen.workers, chosen.fewest_words)


if __name__ == "__main__":
    main()

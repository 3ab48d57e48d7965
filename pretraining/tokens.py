"""Training text as one long row of token ids, and where its sentences and documents begin.

python -m pretraining.tokens CORPUS_FOLDER TOKENIZER_FOLDER OUTPUT_FOLDER [--workers 16]
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from pretraining.corpus import read_documents
from pretraining.vocabulary import SEP

# A full stop, question or exclamation mark, perhaps a closing quote, then what begins a sentence.
_BOUNDARY = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")


def sentences_of(text: str) -> list[str]:
    """The sentences of a document, by its punctuation.

    >>> sentences_of('It rained. "Why?" he asked. e.g. this.')
    ['It rained.', '"Why?" he asked. e.g. this.']
    """
    ends = [match.end() for match in _BOUNDARY.finditer(text)]
    cuts = zip([0, *ends], [*ends, len(text)], strict=True)
    return [sentence for a, b in cuts if (sentence := text[a:b].strip())]


@dataclass(frozen=True)
class Tokens:
    """All documents one after the other, each followed by [SEP]; ``starts`` are the sentences'."""

    ids: NDArray[np.uint16]
    starts: NDArray[np.int64]
    documents: NDArray[np.int32]
    """The number of each sentence's document."""

    def save(self, folder: Path) -> None:
        """Write the three arrays."""
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("ids", "starts", "documents"):
            np.save(folder / f"{name}.npy", getattr(self, name))

    @classmethod
    def load(cls, folder: Path) -> "Tokens":
        """Read the three arrays."""
        return cls(*(np.load(folder / f"{n}.npy") for n in ("ids", "starts", "documents")))

    @classmethod
    def joined(cls, parts: Iterable["Tokens"]) -> "Tokens":
        """Join several of them."""
        ids, starts, documents = [], [], []
        at = first = 0
        for part in parts:
            ids.append(part.ids)
            starts.append(part.starts + at)
            documents.append(part.documents + first)
            at += len(part.ids)
            first += int(part.documents[-1]) + 1 if len(part.documents) else 0
        return cls(np.concatenate(ids), np.concatenate(starts), np.concatenate(documents))


def tokenize(texts: Sequence[str], tokenizer: Tokenizer) -> Tokens:
    """The tokens of some documents."""
    ids: list[int] = []
    starts, documents = [], []
    for number, text in enumerate(texts):
        encodings = tokenizer.encode_batch_fast(sentences_of(text), add_special_tokens=False)
        for encoding in encodings:
            if encoding.ids:
                starts.append(len(ids))
                documents.append(number)
                ids += encoding.ids
        ids.append(SEP)
    return Tokens(
        np.array(ids, dtype=np.uint16), np.array(starts, dtype=np.int64), np.array(documents, "i4")
    )


def _tokenize_with(folder: Path, texts: Sequence[str]) -> Tokens:
    return tokenize(texts, Tokenizer.from_file(str(folder / "tokenizer.json")))


def _chunks(texts: Iterator[str], size: int) -> Iterator[list[str]]:
    while some := list(islice(texts, size)):
        yield some


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    shards = sorted(chosen.corpus.glob("train-*.txt.xz"))
    with ProcessPoolExecutor(chosen.workers) as pool:
        texts = chain.from_iterable(map(list, pool.map(_read, shards)))
        work = partial(_tokenize_with, chosen.tokenizer)
        tokens = Tokens.joined(pool.map(work, _chunks(iter(texts), 4000)))
    tokens.save(chosen.output)
    print(f"{len(tokens.ids):,} tokens, {len(tokens.starts):,} sentences in {chosen.output}")


def _read(path: Path) -> list[str]:
    return list(read_documents(path))


if __name__ == "__main__":
    main()

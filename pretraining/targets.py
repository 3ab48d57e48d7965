"""Texts of a few sentences and a sentence encoder's vectors of them: the targets of distillation.

    python -m pretraining.targets CORPUS [CORPUS ...] --tokenizer TOKENIZER \
        [--teacher FOLDER] --output OUTPUT [--workers 16]

A CORPUS is a folder that ``pretraining.corpus`` wrote, TOKENIZER the student's. The teacher is a
BERT-style sentence encoder with mean pooling; its vectors are centred on their mean. Without a
teacher only the texts are written: the training's reference will be it.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from transformers import BertConfig, BertModel

from cptuning.backbone.packing import unpack
from pretraining.corpus import read_documents
from pretraining.tokens import sentences_of

LONGEST = 118
"""The most tokens of a text, in the student's word pieces."""
TEACHER_LONGEST = 160
# Texts of one to four sentences: most things that people classify are that long.
SENTENCES_PER_TEXT = (1, 1, 1, 1, 1, 1, 2, 2, 3, 4)
TOKENS_PER_BATCH = 1 << 17
SENTENCE_WEIGHTS = "2_Dense/model.safetensors"
_WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class Rows:
    """Rows of token ids of different lengths, one after another."""

    ids: NDArray[np.uint16]
    lengths: NDArray[np.int32]

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> "Rows":
        """Join the rows.

        >>> Rows.of([[5, 6], [7]]).starts.tolist()
        [0, 2]
        """
        arrays = [np.asarray(row, dtype=np.uint16) for row in rows]
        joined = np.concatenate([np.zeros(0, dtype=np.uint16), *arrays])
        return cls(joined, np.array([len(row) for row in arrays], dtype=np.int32))

    @classmethod
    def joined(cls, parts: Sequence["Rows"]) -> "Rows":
        """Several blocks of rows as one."""
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each row begins."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths


def texts_of(document: str, rng: np.random.Generator) -> Iterator[str]:
    """The sentences of a document in groups of one to four, in order."""
    sentences = sentences_of(document)
    at = 0
    while at < len(sentences):
        count = SENTENCES_PER_TEXT[rng.integers(len(SENTENCES_PER_TEXT))]
        yield " ".join(sentences[at : at + count])
        at += count


def tokenized(
    numbered: tuple[int, Sequence[str]], student: Path, teacher: Path | None
) -> tuple[Rows, Rows]:
    """The texts of some documents in the word pieces of the student and of the teacher."""
    number, documents = numbered
    rng = np.random.default_rng(number)
    texts = [text for document in documents for text in texts_of(document, rng)]
    ours = _tokenizer(student).encode_batch_fast(texts, add_special_tokens=False)
    theirs = _tokenizer(teacher or student).encode_batch_fast(texts, add_special_tokens=True)
    kept = [
        (a.ids, b.ids)
        for a, b in zip(ours, theirs, strict=True)
        if 1 < len(a.ids) <= LONGEST and len(b.ids) <= TEACHER_LONGEST
    ]
    return Rows.of(a for a, _ in kept), Rows.of(b for _, b in kept)


def _tokenizer(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The weights in a folder, plain or packed as those in our package are.

    Those of a sentence head, if the folder has one, are called ``sentence.dense.…``.
    """
    packed = folder / "model.packed.safetensors"
    if packed.is_file():
        return unpack(load_file(packed))
    weights = load_file(folder / _WEIGHTS)
    if (folder / SENTENCE_WEIGHTS).is_file():
        head = load_file(folder / SENTENCE_WEIGHTS)
        weights |= {name.replace("linear", "sentence.dense"): w for name, w in head.items()}
    return weights


def load_teacher(folder: Path, device: str) -> BertModel:
    """A teacher's encoder."""
    model = BertModel(BertConfig.from_pretrained(folder), add_pooling_layer=False)
    weights = read_weights(folder)
    model.load_state_dict({n: w for n, w in weights.items() if n in model.state_dict()})
    model.requires_grad_(False).eval()
    torch.nn.Module.to(model, device)
    return model


@torch.no_grad()
def embedded(model: BertModel, rows: Rows, device: str) -> Tensor:
    """The mean of each row's last hidden states, of unit length, in float16."""
    out = torch.empty(len(rows.lengths), model.config.hidden_size, dtype=torch.half, device=device)
    ids = torch.from_numpy(rows.ids.astype(np.int32)).to(device)
    starts = torch.from_numpy(rows.starts).to(device)
    lengths = torch.from_numpy(rows.lengths.astype(np.int64)).to(device)
    order = torch.argsort(lengths)
    ordered = lengths[order].cpu()
    at = 0
    while at < len(order):
        # Few different lengths: the batch's rows are padded to the next multiple of eight.
        guess = min(len(order), at + max(1, TOKENS_PER_BATCH // int(ordered[at])))
        width = -(-int(ordered[guess - 1]) // 8) * 8
        upto = min(guess, at + max(1, TOKENS_PER_BATCH // width))
        chosen = order[at:upto]
        columns = torch.arange(width, device=device)
        attended = columns < lengths[chosen, None]
        places = (starts[chosen, None] + columns).clamp(max=len(ids) - 1)
        batch = torch.where(attended, ids[places], 0).long()
        with torch.autocast(device.split(":")[0], torch.bfloat16):
            hidden = model(batch, attention_mask=attended.long()).last_hidden_state
        weights = attended[..., None].float()
        mean = (hidden.float() * weights).sum(1) / weights.sum(1)
        out[chosen] = functional.normalize(mean, dim=1).half()
        at = upto
    return out


def centred(vectors: Tensor) -> Tensor:
    """The vectors less their mean, of unit length: all cosines of some encoders are above 0.7."""
    mean = vectors.float().mean(0)
    for rows in vectors.split(1 << 20):
        rows.copy_(functional.normalize(rows.float() - mean, dim=1))
    return vectors


def _numbered_chunks(texts: Iterator[str], size: int) -> Iterator[tuple[int, list[str]]]:
    number = 0
    while some := list(islice(texts, size)):
        yield number, some
        number += 1


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", type=Path, nargs="+")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args()
    begun = perf_counter()
    shards = [path for folder in chosen.corpora for path in sorted(folder.glob("train-*.txt.xz"))]
    work = partial(tokenized, student=chosen.tokenizer, teacher=chosen.teacher)
    with ProcessPoolExecutor(chosen.workers) as pool:
        texts = chain.from_iterable(pool.map(_read, shards))
        parts = list(pool.map(work, _numbered_chunks(iter(texts), 4000)))
    ours, theirs = (Rows.joined([part[i] for part in parts]) for i in (0, 1))
    print(f"{len(ours.lengths):,} texts tokenized, {perf_counter() - begun:.0f} s", flush=True)
    chosen.output.mkdir(parents=True, exist_ok=True)
    np.save(chosen.output / "ids.npy", ours.ids)
    np.save(chosen.output / "lengths.npy", ours.lengths)
    if chosen.teacher:
        vectors = embedded(load_teacher(chosen.teacher, chosen.device), theirs, chosen.device)
        np.save(chosen.output / "targets.npy", centred(vectors).cpu().numpy())
    print(f"{chosen.output}: {perf_counter() - begun:.0f} s", flush=True)


def _read(path: Path) -> list[str]:
    return list(read_documents(path))


if __name__ == "__main__":
    main()

"""Frozen sentence encoders from their folders, and a cache of their embeddings."""

import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from cptuning.errors import CPTuningError

BATCH = 32
_MOST_ASKED = 500  # of one query to the database


def weights_hash(folder: Path) -> str:
    """A hash of the weights in a folder: the name of an encoder on every machine."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise CPTuningError(f"{folder} has no weights: name a folder with a .safetensors file.")
    digest = sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class SentenceEncoder:
    """A sentence-transformers folder with mean or cls pooling, in bfloat16 autocast.

    Embeddings have unit length.
    """

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        from cptuning.backbone.loading import quiet_transformers

        self.pooling = _pooling(folder)
        with quiet_transformers():
            self.model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
            self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.max_length = _read(folder / "sentence_bert_config.json")["max_seq_length"]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """The embeddings of a batch of texts."""
        import torch

        inputs = self.tokenizer(
            list(texts),
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        )
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            hidden = self.model(**inputs).last_hidden_state
        hidden = hidden.float()
        if self.pooling == "cls":
            pooled = hidden[:, 0]
        else:
            mask = inputs["attention_mask"].unsqueeze(-1).float()
            pooled = (hidden * mask).sum(1) / mask.sum(1)
        return torch.nn.functional.normalize(pooled, dim=1).numpy()


def _pooling(folder: Path) -> str:
    """Mean or cls, if the folder's modules are an encoder, this pooling and a normalisation."""
    modules = {
        module["type"].rpartition(".")[2]: module for module in _read(folder / "modules.json")
    }
    if unknown := modules.keys() - {"Transformer", "Pooling", "Normalize"}:
        raise CPTuningError(f"{folder} has a module that is not known here: {min(unknown)}.")
    pooling = _read(folder / modules["Pooling"]["path"] / "config.json")
    modes = [name for name, is_on in pooling.items() if is_on is True and "mode" in name]
    known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    if len(modes) != 1 or modes[0] not in known:
        raise CPTuningError(f"{folder} has another pooling than mean or cls.")
    return known[modes[0]]


def _read(path: Path) -> Any:
    if not path.is_file():
        raise CPTuningError(f"{path} is missing: name a folder of sentence-transformers.")
    return json.loads(path.read_text("utf-8"))


@dataclass(frozen=True)
class Embeddings:
    """Vectors, and the CPU seconds that it took to compute them when they were computed."""

    vectors: np.ndarray
    seconds: float


@dataclass(frozen=True)
class CachedEncoder:
    """An encoder that embeds a text once, and then reads its embedding from a file."""

    folder: Path
    cache: Path

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        encoder = SentenceEncoder(self.folder)
        encoder.encode(["The first batch takes longer."])  # and is not measured
        return encoder

    @cached_property
    def _file(self) -> Path:
        self.cache.mkdir(parents=True, exist_ok=True)
        return self.cache / f"{weights_hash(self.folder)}.sqlite"

    def embed(self, texts: Sequence[str]) -> Embeddings:
        """The embeddings of texts, in their order; those that are new are computed and kept."""
        with self._database() as database:
            known = _known(database, texts)
            # Texts of a length together: little padding.
            new = sorted(set(texts) - known.keys(), key=lambda text: (len(text), text))
            if new:
                encoder = self._encoder  # Loading it is not measured.
            for start in range(0, len(new), BATCH):
                batch = new[start : start + BATCH]
                began = time.process_time()
                vectors = encoder.encode(batch)
                seconds = (time.process_time() - began) / len(batch)
                rows = [
                    (text, vector.astype(np.float32).tobytes(), seconds)
                    for text, vector in zip(batch, vectors, strict=True)
                ]
                with database:  # A batch is kept as a whole.
                    database.executemany("INSERT OR IGNORE INTO embedding VALUES (?, ?, ?)", rows)
            known |= _known(database, new)
        vectors = np.stack([np.frombuffer(known[text][0], np.float32) for text in texts])
        return Embeddings(vectors, sum(known[text][1] for text in texts))

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, timeout=60)) as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS embedding "
                "(text TEXT PRIMARY KEY, vector BLOB, seconds REAL)"
            )
            yield database


def _known(database: sqlite3.Connection, texts: Sequence[str]) -> dict[str, tuple[bytes, float]]:
    found: dict[str, tuple[bytes, float]] = {}
    for start in range(0, len(texts), _MOST_ASKED):
        asked = texts[start : start + _MOST_ASKED]
        places = ", ".join("?" * len(asked))
        rows = database.execute(
            f"SELECT text, vector, seconds FROM embedding WHERE text IN ({places})", asked
        )
        found |= {text: (vector, seconds) for text, vector, seconds in rows}
    return found

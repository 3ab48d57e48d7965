"""Sentences to one vector per word with torch, by the encoder that classifiers use."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from cptuning.backbone.adapter import PromptedEncoder
from cptuning.backbone.encoder import TextEncoder
from cptuning.data.sentences import Sentence
from cptuning.prompting import Layout
from cptuning.prompting.collate import collate
from cptuning.prompting.word_layout import Window, windows_for

Pieces = Literal["mean", "first"]
FloatArray = NDArray[np.float32]


@dataclass
class WordEncoder:
    """The trained half of a tagger: sentences go in, unit vectors of their words come out."""

    encoder: TextEncoder
    pieces: Pieces

    @property
    def layout(self) -> Layout:
        """How sentences are laid out."""
        return self.encoder.layout

    def save(self, folder: Path) -> None:
        """Write the encoder into a model's folder."""
        self.encoder.save(folder)

    def windows(self, sentences: Sequence[Sentence]) -> list[Window]:
        """The sentences as the model reads them, with the pieces that count."""
        return windows_for(self.layout, sentences, self.pieces)

    def embed(self, sentences: Sequence[Sentence]) -> list[FloatArray]:
        """One array per sentence: a unit vector for each of its words."""
        windows = self.windows(sentences)
        vectors = normalize(self._read(windows), dim=-1).cpu().numpy()
        return by_sentence(windows, vectors, len(sentences))

    def centre_on(self, sentences: Sequence[Sentence]) -> None:
        """Make the mean vector of the words of some sentences the origin."""
        centre = self.encoder.module.centre
        centre.zero_()
        centre.copy_(self._read(self.windows(sentences)).mean(dim=0))

    def _read(self, windows: Sequence[Window]) -> Tensor:
        """The vectors of all words, window by window."""
        module, pad = self.encoder.module, self.layout.special.pad

        def compute(rows: Sequence[int]) -> Tensor:
            return word_features(module, [windows[row] for row in rows], pad)

        encodings = [window.encoding for window in windows]
        if not windows:
            return module.centre.new_empty(0, len(module.centre))
        parts, rows = self.encoder.by_batch(encodings, compute)
        lengths = [len(np.unique(windows[row].words)) for row in rows]
        split = torch.cat(parts).float().split(lengths)
        order = np.argsort(rows)
        return torch.cat([split[place] for place in order])


def word_features(module: PromptedEncoder, windows: Sequence[Window], pad: int) -> Tensor:
    """The centred vectors of the words of some windows: the mean of each word's pieces."""
    arguments = word_inputs(module, windows, pad)
    owner = arguments.pop("owner")
    features, _ = module(**arguments)
    return mean_by_word(features, owner) - module.centre


def word_inputs(
    module: PromptedEncoder, windows: Sequence[Window], pad: int, length: int = 0
) -> dict[str, Tensor]:
    """The arguments of the adapter for some windows, and which word each position belongs to."""
    batch = collate([window.encoding for window in windows], pad, length)
    rows = np.repeat(np.arange(len(windows)), [len(window.pieces) for window in windows])
    columns = np.concatenate([window.pieces for window in windows])
    words = np.concatenate([window.words for window in windows])
    is_new = np.r_[True, (np.diff(words) != 0) | (np.diff(rows) != 0)]
    positions = {"rows": rows, "columns": columns, "owner": np.cumsum(is_new) - 1}
    device = module.centre.device
    return module.tensors(batch) | {
        name: torch.as_tensor(array).to(device, non_blocking=True)
        for name, array in positions.items()
    }


def mean_by_word(features: Tensor, owner: Tensor) -> Tensor:
    """The mean of the vectors of each word's pieces.

    >>> mean_by_word(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1])).tolist()
    [[2.0], [5.0]]
    """
    features = features.float()
    n = int(owner[-1]) + 1
    sums = features.new_zeros(n, features.shape[1]).index_add(0, owner, features)
    return sums / torch.bincount(owner, minlength=n)[:, None]


def by_sentence(windows: Sequence[Window], vectors: FloatArray, n: int) -> list[FloatArray]:
    """The vectors of words, which are in the order of the windows, for each sentence."""
    counts = np.zeros(n, dtype=np.int64)
    for window in windows:
        counts[window.sentence] += len(np.unique(window.words))
    return np.split(vectors, np.cumsum(counts)[:-1]) if n else []

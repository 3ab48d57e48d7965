"""Sentences to one vector per word with ONNX Runtime: what an exported tagger uses."""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cptuning.data.sentences import Sentence
from cptuning.errors import CPTuningError
from cptuning.inference.onnx_encoder import (
    TOKEN_BUDGET,
    available_threads,
    check_interface,
    run,
    session,
)
from cptuning.inference.onnx_file import read_graph
from cptuning.inference.support import FloatArray, IntArray
from cptuning.prompting import Layout, token_budget_batches
from cptuning.prompting.word_layout import Window, mean_of_pieces, windows_for

WORDS = "words"
"""The output of a tagger's graph: a centred vector for each token."""


class OnnxWordEncoder:
    """Encodes the words of sentences by a graph, several sentences at a time."""

    def __init__(self, layout: Layout, session: Any, pieces: str, path: Path | None = None) -> None:
        self.layout = layout
        self.pieces = pieces
        self._session, self._path = session, path
        check_interface(session, path or "The graph")
        if session.get_outputs()[0].name != WORDS:
            raise CPTuningError(f"{path} is not the graph of a tagger: export the tagger again.")
        self._pool = ThreadPoolExecutor(available_threads(), thread_name_prefix="onnx")

    @classmethod
    def load(cls, layout: Layout, path: Path, pieces: str) -> "OnnxWordEncoder":
        """The encoder in a file."""
        return cls(layout, session(read_graph(path), path), pieces, path)

    def save(self, folder: Path) -> None:
        """Copy the graph into a model's folder."""
        assert self._path is not None
        shutil.copyfile(self._path, folder / self._path.name)

    def embed(self, sentences: Sequence[Sentence]) -> list[FloatArray]:
        """One array per sentence: a unit vector for each of its words."""
        windows = windows_for(self.layout, sentences, self.pieces)
        lengths = [len(window.encoding) for window in windows]
        width = self._session.get_outputs()[0].shape[2]
        found: list[list[FloatArray]] = [[] for _ in sentences]
        if windows:
            batches = token_budget_batches(lengths, TOKEN_BUDGET, padding=False)
            parts = self._pool.map(lambda rows: self._compute(windows, rows), batches)
            by_window: dict[int, FloatArray] = {}
            for rows, part in zip(batches, parts, strict=True):
                by_window |= dict(zip(rows.tolist(), part, strict=True))
            for number, window in enumerate(windows):
                found[window.sentence].append(by_window[number])
        empty = np.empty((0, width if isinstance(width, int) else 0), np.float32)
        return [np.concatenate(parts) if parts else empty for parts in found]

    def _compute(self, windows: Sequence[Window], rows: IntArray) -> list[FloatArray]:
        """The unit vectors of the words of windows of one length."""
        try:
            (tokens,) = run(self._session, [windows[row].encoding for row in rows])
        except Exception as error:  # ONNX Runtime's own share no class but this
            raise CPTuningError(
                f"{self._path} can't compute vectors of these words: export the tagger again."
            ) from error
        if tokens.ndim != 3 or tokens.shape[0] != len(rows):
            raise CPTuningError(
                f"{self._path} does not give one vector per token: export the tagger again."
            )
        return [mean_of_pieces(t, windows[row]) for t, row in zip(tokens, rows, strict=True)]

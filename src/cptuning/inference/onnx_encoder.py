"""Texts to unit vectors with ONNX Runtime: what an exported model uses, without torch."""

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference.support import FloatArray, IntArray
from cptuning.prompting import Encoding, Layout, collate, token_budget_batches

ONNX_FILE = "encoder.onnx"
EXACT_FILE = "exact.onnx"
"""Beside an encoder in 8 bits: the same unrounded, for a second look at close calls."""
# Enough for the weights to be read from memory seldom; few enough for the cores to end together.
_TOKEN_BUDGET = 512


class OnnxEncoder:
    """An exported encoder: token ids in, normalised [OMSK] embeddings out.

    Texts of one length are computed together, so that there is no padding, and nothing in a
    text's answer comes from its neighbours. Each core computes batches of its own: cores that
    share a matrix product wait for each other, many times a layer.
    """

    def __init__(self, layout: Layout, path: Path) -> None:
        self.layout = layout
        self.path = path
        self.threads = available_threads()
        self._session = session(path)
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="onnx")

    def save(self, folder: Path) -> None:
        """Copy the graph into a model folder."""
        shutil.copyfile(self.path, folder / self.path.name)

    def embed(self, examples: Examples) -> FloatArray:
        """L2-normalised [OMSK] embeddings, one row an example, in their order."""
        encodings = self.layout.encode(examples)
        return self.in_batches(
            [len(encoding) for encoding in encodings],
            lambda rows: run(self._session, [encodings[i] for i in rows])[0],
        )

    def in_batches(
        self, lengths: Sequence[int], compute: Callable[[IntArray], FloatArray]
    ) -> FloatArray:
        """What is computed of batches of examples of one length, one row each, in their order."""
        batches = token_budget_batches(lengths, _TOKEN_BUDGET, padding=False)
        batches.reverse()  # Long ones first: no core is left with one when the others are done.
        gathered = np.concatenate(list(self._pool.map(compute, batches)))
        ordered = np.empty_like(gathered)
        ordered[np.concatenate(batches)] = gathered
        return ordered


def available_threads() -> int:
    """The number of threads to compute with: OMP_NUM_THREADS, as for torch, or all cores.

    >>> available_threads() >= 1
    True
    """
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_8_bit_dot_products() -> bool:
    """Whether the processor sums 8-bit products in 32 bits; no, where that can't be told.

    >>> has_8_bit_dot_products() in (True, False)
    True
    """
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def session(graph: Path | bytes) -> Any:
    """A session of ONNX Runtime that computes in the thread that calls it, and tells nobody."""
    # It is read once, at the import: without it the runtime reports its use to its makers.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if not has_8_bit_dot_products():
        # Sums of two products could overflow 16 bits: let it take the slower, wider way.
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(
            graph if isinstance(graph, bytes) else str(graph),
            options,
            providers=["CPUExecutionProvider"],
        )
    except Exception as error:
        what = graph if isinstance(graph, Path) else "The graph"
        raise CPTuningError(f"{what} is no readable ONNX model: export it again.") from error


def run(
    session: Any, encodings: Sequence[Encoding], wanted: Sequence[str] | None = None
) -> list[FloatArray]:
    """What a graph gives for examples of one length: the embeddings, or the values wanted."""
    batch = collate(encodings, pad=0)
    arrays = {
        "input_ids": batch.input_ids,
        "token_type_ids": batch.token_type_ids,
        "outputs": batch.outputs[:, None, None],
    }
    taken = {value.name for value in session.get_inputs()}
    found: list[FloatArray] = session.run(
        wanted, {name: array for name, array in arrays.items() if name in taken}
    )
    return found

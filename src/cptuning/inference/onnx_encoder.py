"""Texts to unit vectors with ONNX Runtime: what an exported model uses, without torch."""

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference.onnx_file import check_graph, read_graph, unreadable
from cptuning.inference.support import FloatArray, IntArray
from cptuning.prompting import Encoding, Layout, collate, token_budget_batches

ONNX_FILE = "encoder.onnx"
EXACT_FILE = "exact.onnx"
"""Beside an encoder in 8 bits: the same unrounded, for a second look at close calls."""
_INPUTS = ("input_ids", "token_type_ids", "outputs")
# Enough for weights to be read from memory seldom; few enough for the cores to finish together.
_TOKEN_BUDGET = 512
# More than the longest texts of the largest encoders need; a stranger's graph may ask for anything.
_MAX_MEMORY = 8 * 2**30


class OnnxEncoder:
    """An exported encoder: token ids in, normalised [OMSK] embeddings out.

    Texts of one length are computed together, so that there is no padding, and nothing in a
    text's answer comes from its neighbours. Each core computes batches of its own: cores that
    share a matrix product wait for each other many times per layer. Several threads may use one
    encoder at a time.
    """

    def __init__(self, layout: Layout, path: Path) -> None:
        self.layout = layout
        self.path = path
        self.threads = available_threads()
        self._session = session(read_graph(path), path)
        _check_interface(self._session, path)
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="onnx")

    def save(self, folder: Path) -> None:
        """Copy the graph into a model folder."""
        shutil.copyfile(self.path, folder / self.path.name)

    def embed(self, examples: Examples) -> FloatArray:
        """L2-normalised [OMSK] embeddings, one row per example, in their order."""
        encodings = self.layout.encode(examples)

        def compute(rows: IntArray) -> FloatArray:
            try:
                (embeddings,) = run(self._session, [encodings[i] for i in rows])
            except Exception as error:  # ONNX Runtime's own share no class but this
                raise CPTuningError(
                    f"{self.path} can't compute embeddings of these texts: export the model again."
                ) from error
            if embeddings.ndim != 2 or len(embeddings) != len(rows):
                raise CPTuningError(
                    f"{self.path} does not give one embedding per text: export the model again."
                )
            return embeddings

        return self.in_batches([len(encoding) for encoding in encodings], compute)

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
    """The number of threads to compute with: OMP_NUM_THREADS, as for torch, or all cores."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def has_8_bit_dot_products() -> bool:
    """Whether the processor sums 8-bit products in 32 bits; no, where that can't be told."""
    try:
        return "vnni" in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


def session(graph: bytes, name: Path | str = "The graph") -> Any:
    """A session of ONNX Runtime that computes in the calling thread and reports to nobody.

    It reads no other file: ``graph`` is checked to hold everything it needs.
    """
    check_graph(graph, name)
    # Read once, on import: without it the runtime reports its use to its makers.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # What fails is raised: it need not be printed as well.
    options.add_session_config_entry("session.load_model_format", "ONNX")
    _limit_memory(options)
    if not has_8_bit_dot_products():
        # Sums of two products could overflow 16 bits: use the slower, wider instructions.
        options.add_session_config_entry("session.x64quantprecision", "1")
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise unreadable(name) from error


def _limit_memory(options: Any) -> None:
    """Let activations of all sessions together use at most ``_MAX_MEMORY``; weights don't count."""
    _register_bounded_allocator()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")


@cache
def _register_bounded_allocator() -> None:
    import onnxruntime as ort

    memory = ort.OrtMemoryInfo(
        "Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT
    )
    ort.create_and_register_allocator(memory, ort.OrtArenaCfg({"max_mem": _MAX_MEMORY}))


def _check_interface(session: Any, path: Path) -> None:
    """Refuse a graph whose inputs and output are not those of an encoder."""
    inputs = {value.name: value.type for value in session.get_inputs()}
    outputs = [value.type for value in session.get_outputs()]
    known = inputs.keys() <= set(_INPUTS) and set(inputs.values()) == {"tensor(int64)"}
    if not known or outputs != ["tensor(float)"]:
        raise CPTuningError(
            f"{path} is not an encoder: it must turn {', '.join(_INPUTS)} into one array of "
            "floats. Export the model again."
        )


def run(
    session: Any, encodings: Sequence[Encoding], wanted: Sequence[str] | None = None
) -> list[FloatArray]:
    """What a graph computes for examples of one length: the embeddings, or the values wanted."""
    batch = collate(encodings, pad=0)
    arrays = zip(
        _INPUTS, (batch.input_ids, batch.token_type_ids, batch.outputs[:, None, None]), strict=True
    )
    taken = {value.name for value in session.get_inputs()}
    found: list[FloatArray] = session.run(
        wanted, {name: array for name, array in arrays if name in taken}
    )
    return found

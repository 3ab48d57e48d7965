"""Texts to unit vectors with ONNX Runtime: what an exported model uses, without torch."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cptuning.backbone.joined_views import VIEWS_FILE, Views
from cptuning.data import Examples
from cptuning.errors import CPTuningError
from cptuning.inference.onnx_file import check_graph, declared, read_graph, unreadable
from cptuning.inference.support import FloatArray, IntArray
from cptuning.prompting import (
    Encoding,
    Layout,
    all_windows,
    collate,
    pooled,
    token_budget_batches,
)

ONNX_FILE = "encoder.onnx"
EXACT_FILE = "exact.onnx"
"""Beside an encoder in 8 bits: the same unrounded, for a second look at close calls."""
FEATURES = "features"
"""The output of a graph whose views are joined outside; of others it is the unit vector."""
_INPUTS = ("input_ids", "token_type_ids", "outputs", "is_text")
# Enough for weights to be read from memory seldom; few enough for the cores to finish together.
TOKEN_BUDGET = 512
# More than the longest texts of the largest encoders need; a stranger's graph may ask for anything.
_MAX_MEMORY = 8 * 2**30


class GraphEncoder:
    """Encodes texts by a session of ONNX Runtime.

    The graph takes sequences of token ids and gives either unit vectors, or the features that
    ``views`` join: those of the mask view first, then those of the sentence view.

    Sequences of one length are computed together, so that there is no padding, and nothing in a
    text's answer comes from its neighbours. Each core computes batches of its own: cores that
    share a matrix product wait for each other many times per layer. Several threads may use one
    encoder at a time.
    """

    def __init__(
        self, layout: Layout, session: Any, name: Path | str, views: Views | None = None
    ) -> None:
        self.layout = layout
        self.views: Views | None = views
        self.threads = available_threads()
        self._name = name
        self._session = session
        check_interface(session, name)
        if (session.get_outputs()[0].name == FEATURES) != (views is not None):
            raise CPTuningError(
                f"{name} and the file {VIEWS_FILE} do not belong together: export the model again."
            )
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="onnx")

    def embed(self, examples: Examples) -> FloatArray:
        """L2-normalised embeddings, one row per example, in their order."""
        return self.embed_encodings(self.layout.encode(examples))

    def embed_encodings(self, encodings: Sequence[Encoding]) -> FloatArray:
        """The same for examples that are laid out already."""
        read = self.read_encodings(encodings)
        if self.views is not None and read.shape[-1] == len(self.views.centre):
            return self.views.embeddings(read)
        if self.views is None and read.shape[1] == 1:
            return read[:, 0]
        raise CPTuningError(
            f"{self._name} does not give one embedding per text: export the model again."
        )

    def read_encodings(self, encodings: Sequence[Encoding]) -> FloatArray:
        """What is read for each example, before it is joined: (examples, sequences, numbers).

        Of a long text it is the mean over its windows.
        """
        windows, first = all_windows(encodings)
        sequences = [sequence for window in windows for sequence in window.sequences]
        places: dict[tuple[object, ...], int] = {}
        order = [places.setdefault(sequence.key, len(places)) for sequence in sequences]
        distinct = [sequences[i] for i in np.unique(order, return_index=True)[1]]

        def compute(rows: IntArray) -> FloatArray:
            try:
                (features,) = run(self._session, [distinct[i] for i in rows])
            except Exception as error:  # ONNX Runtime's own share no class but this
                raise CPTuningError(
                    f"{self._name} can't compute embeddings of these texts: export the model again."
                ) from error
            if features.ndim != 2 or len(features) != len(rows):
                raise CPTuningError(
                    f"{self._name} does not give one embedding per text: export the model again."
                )
            return features

        features = self.in_batches([len(sequence) for sequence in distinct], compute)
        return pooled(features[order].reshape(len(windows), -1, features.shape[1]), first)

    def in_batches(
        self, lengths: Sequence[int], compute: Callable[[IntArray], FloatArray]
    ) -> FloatArray:
        """What is computed of batches of examples of one length, one row each, in their order."""
        batches = token_budget_batches(lengths, TOKEN_BUDGET, padding=False)
        batches.reverse()  # Long ones first: no core is left with one when the others are done.
        gathered = np.concatenate(list(self._pool.map(compute, batches)))
        ordered = np.empty_like(gathered)
        ordered[np.concatenate(batches)] = gathered
        return ordered


class OnnxEncoder(GraphEncoder):
    """An exported encoder, in a file."""

    def __init__(self, layout: Layout, path: Path, views: Views | None = None) -> None:
        super().__init__(layout, session(read_graph(path), path), path, views)
        self.path = path

    def save(self, folder: Path) -> None:
        """Copy the graph into a model folder, with how its views are joined."""
        shutil.copyfile(self.path, folder / self.path.name)
        if self.views is not None:
            self.views.save(folder)


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


def session(
    graph: bytes, name: Path | str = "The graph", weights: Mapping[str, FloatArray] | None = None
) -> Any:
    """A session of ONNX Runtime that computes in the calling thread and reports to nobody.

    It reads no other file: ``graph`` is checked to hold everything it needs but the ``weights``,
    whose memory the session shares.
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
    if weights is not None:
        values = map(onnxruntime.OrtValue.ortvalue_from_numpy, weights.values())
        options.add_external_initializers(list(weights), list(values))
        graph += declared({name: array.shape for name, array in weights.items()})
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


def check_interface(session: Any, name: Path | str) -> None:
    """Refuse a graph whose inputs and output are not those of an encoder."""
    inputs = {value.name: value.type for value in session.get_inputs()}
    outputs = [value.type for value in session.get_outputs()]
    known = inputs.keys() <= set(_INPUTS) and set(inputs.values()) == {"tensor(int64)"}
    if not known or outputs != ["tensor(float)"]:
        raise CPTuningError(
            f"{name} is not an encoder: it must turn {', '.join(_INPUTS)} into one array of "
            "floats. Export the model again."
        )


def run(
    session: Any, encodings: Sequence[Encoding], wanted: Sequence[str] | None = None
) -> list[FloatArray]:
    """What a graph computes for sequences of one length: its output, or the values wanted."""
    batch = collate(encodings, pad=0)
    arrays = zip(
        _INPUTS,
        (batch.input_ids, batch.token_type_ids, batch.outputs[:, None, None], batch.is_text),
        strict=True,
    )
    taken = {value.name for value in session.get_inputs()}
    found: list[FloatArray] = session.run(
        wanted, {name: array for name, array in arrays if name in taken}
    )
    return found

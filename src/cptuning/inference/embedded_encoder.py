"""Texts to unit vectors by the embedded architecture, without torch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from safetensors.numpy import load_file

from cptuning.backbone.encoder_files import EncoderFiles
from cptuning.backbone.joined_views import Views
from cptuning.backbone.packed import EMBEDDED, GRAPH_FILE, WORDS, PackedBackbone, graph_weights
from cptuning.backbone.text_layout import layout_for
from cptuning.errors import CPTuningError
from cptuning.inference.onnx_encoder import GraphEncoder, session
from cptuning.inference.support import FloatArray
from cptuning.prompting import Encoding, Layout, Template


@dataclass(frozen=True)
class FilledGraph:
    """A session with the weights of some files; encoders with the same weights share it."""

    session: Any
    centre: FloatArray | None
    digest: str


_graphs: "WeakValueDictionary[str, FilledGraph]" = WeakValueDictionary()
_one_at_a_time = Lock()


def filled_graph(files: EncoderFiles, layout: Layout) -> FilledGraph:
    """The embedded graph with the weights of some files."""
    with _one_at_a_time:
        digest = files.digest
        found = _graphs.get(digest)
        if found is None:
            found = _graphs[digest] = _fill(files, layout, digest)
    return found


def _fill(files: EncoderFiles, layout: Layout, digest: str) -> FilledGraph:
    weights = graph_weights(files.backbone, layout.vocabulary)
    centre = None
    if files.own is not None:
        own = load_file(files.own)
        prompts, centre = own["prompts"], own["centre"]
        if prompts.shape != (len(layout.prompt_ids), weights[WORDS].shape[1]):
            raise ValueError("its prompts have another shape")
        if not prompts.dtype == centre.dtype == np.float32:
            raise ValueError("its prompts have numbers of another kind")
        # Prompt vectors are the rows past the vocabulary's end, as their ids say.
        weights[WORDS] = np.concatenate([weights[WORDS], prompts])
    graph = (EMBEDDED / GRAPH_FILE).read_bytes()
    return FilledGraph(session(graph, files.backbone, weights), centre, digest)


class EmbeddedEncoder(GraphEncoder):
    """The embedded backbone, or one that was trained from it, in ONNX Runtime."""

    views: Views

    def __init__(self, layout: Layout, files: EncoderFiles, sentence_weight: float | None) -> None:
        self._files = files
        self._graph = filled_graph(files, layout)
        width = self._graph.session.get_outputs()[0].shape[1]
        mask_width = width // 2
        expected = mask_width if sentence_weight == 0 else width
        centre = self._graph.centre
        if centre is None:
            centre = np.zeros(expected, np.float32)
        if centre.shape != (expected,):
            raise ValueError("its centre has another shape")
        views = Views(centre, mask_width, 1.0 if sentence_weight is None else sentence_weight)
        super().__init__(layout, self._graph.session, files.backbone, views)

    @classmethod
    def untrained(
        cls, template: Template, max_length: int, sentence_weight: float
    ) -> "EmbeddedEncoder":
        """The package's own backbone."""
        backbone = PackedBackbone()
        layout = layout_for(backbone, template, max_length, sentences=sentence_weight != 0)
        return cls(layout, EncoderFiles(backbone.folder), sentence_weight)

    @classmethod
    def load(
        cls, folder: Path, layout: Layout, pooling: str, sentence_weight: float | None
    ) -> "EmbeddedEncoder":
        """The encoder of a model's folder."""
        files = EncoderFiles.of(folder)
        backbone = PackedBackbone(files.backbone)
        if layout.max_length > backbone.max_length or layout.text_prefix:
            raise ValueError("its layout is made for another backbone")
        return cls(layout, files, 0.0 if pooling == "mask" else sentence_weight)

    def save(self, folder: Path) -> None:
        """Copy the files into a model's folder."""
        if self._files.copy(folder).digest != self._graph.digest:
            raise CPTuningError(
                f"{self._files.backbone} has changed since it was loaded: load the model again."
            )

    def read_encodings(self, encodings: Sequence[Encoding]) -> FloatArray:
        """What is read for each example, before it is joined: (examples, sequences, numbers)."""
        if self._files.own is None:
            encodings = [self._without_prompts(encoding) for encoding in encodings]
        return super().read_encodings(encodings)[..., : len(self.views.centre)]

    def _without_prompts(self, encoding: Encoding) -> Encoding:
        """The same with the words that untrained prompt vectors are copies of."""
        prompts = np.maximum(encoding.ids - self.layout.vocabulary, 0)
        is_prompt = encoding.ids >= self.layout.vocabulary
        return replace(
            encoding, ids=np.where(is_prompt, self.layout.prompt_ids[prompts], encoding.ids)
        )

"""Texts to unit vectors by the embedded architecture, without torch."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from safetensors.numpy import load_file

from cptuning.backbone.packed import (
    BACKBONE_FILES,
    EMBEDDED,
    GRAPH_FILE,
    PACKED_WEIGHTS,
    WORDS,
    PackedBackbone,
    graph_weights,
)
from cptuning.backbone.text_layout import layout_for
from cptuning.errors import CPTuningError
from cptuning.inference.onnx_encoder import GraphEncoder, session
from cptuning.inference.support import FloatArray
from cptuning.inference.views import Views
from cptuning.prompting import Encoding, Layout, Template

BACKBONE_FOLDER = "backbone"
OWN_FILE = "prompts.safetensors"
"""In a model's folder: the backbone, and the prompt vectors and centre of a trained encoder."""


@dataclass(frozen=True)
class EncoderFiles:
    """The files that an encoder is made of: of the package, or of a model's folder."""

    backbone: Path
    own: Path | None = None

    @classmethod
    def of(cls, folder: Path) -> "EncoderFiles":
        """The files of a model; if its weights are packed, it was not trained."""
        backbone = folder / BACKBONE_FOLDER
        is_packed = (backbone / PACKED_WEIGHTS).is_file()
        return cls(backbone, None if is_packed else folder / OWN_FILE)

    @property
    def digest(self) -> str:
        """A hash of all weights."""
        paths = sorted(self.backbone.rglob("*.safetensors"))
        digest = hashlib.sha256()
        for path in (*paths, *([self.own] if self.own else [])):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    def copy(self, folder: Path) -> "EncoderFiles":
        """Copy them into a model's folder."""
        backbone = folder / BACKBONE_FOLDER
        if self.own is not None:
            shutil.copytree(self.backbone, backbone)
            shutil.copyfile(self.own, folder / OWN_FILE)
            return EncoderFiles(backbone, folder / OWN_FILE)
        backbone.mkdir()
        for name in BACKBONE_FILES:
            shutil.copyfile(self.backbone / name, backbone / name)
        return EncoderFiles(backbone)


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

"""Texts to unit vectors by the embedded architecture, without torch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
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

if TYPE_CHECKING:
    from cptuning.backbone import TextEncoder
    from cptuning.backbone.loading import Pooling


@dataclass(frozen=True)
class FilledGraph:
    """A session with the weights of some files; encoders with the same weights share it."""

    digest: str
    session: Any
    vocabulary: int
    prompts: int | None
    """How many prompt vectors there are; None if they are copies of words."""
    centre: FloatArray | None


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
    prompts = centre = None
    if files.own is not None:
        own = load_file(files.own)
        prompts, centre = own["prompts"], own["centre"]
        if not prompts.dtype == centre.dtype == np.float32:
            raise ValueError("its prompts have numbers of another kind")
        # Prompt vectors are the rows past the vocabulary's end, as their ids say.
        weights[WORDS] = np.concatenate([weights[WORDS], prompts])
    filled = session((EMBEDDED / GRAPH_FILE).read_bytes(), files.backbone, weights)
    n_prompts = None if prompts is None else len(prompts)
    return FilledGraph(digest, filled, layout.vocabulary, n_prompts, centre)


class EmbeddedEncoder(GraphEncoder):
    """The embedded backbone, or one that was trained from it, in ONNX Runtime."""

    views: Views

    def __init__(self, layout: Layout, files: EncoderFiles, sentence_weight: float | None) -> None:
        self._files = files
        self._graph = filled_graph(files, layout)
        if self._graph.vocabulary != layout.vocabulary or self._graph.prompts not in (
            None,
            len(layout.prompt_ids),
        ):
            raise ValueError("its layout is made for other weights")
        # Prompt vectors that were not trained are those of the words that they stand for.
        self._words = np.r_[: layout.vocabulary, layout.prompt_ids]
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
        cls, template: Template, max_length: int, sentence_weight: float | None, windows: int = 1
    ) -> "EmbeddedEncoder":
        """The package's own backbone."""
        backbone = PackedBackbone()
        layout = layout_for(
            backbone, template, max_length, sentences=sentence_weight != 0, windows=windows
        )
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

    def __reduce__(self) -> Any:
        weight = self.views.sentence_weight if self.layout.sentences else 0.0
        return EmbeddedEncoder, (self.layout, self._files, weight)

    def with_torch(self) -> "TextEncoder":
        """The same encoder as torch computes it, to be trained or exported."""
        from torch import device

        from cptuning.backbone import TextEncoder

        pooling: Pooling = "auto" if self.layout.sentences else "mask"
        return TextEncoder.load(
            self._files, self.layout, "head", device("cpu"), pooling, self.views.sentence_weight
        )

    def save(self, folder: Path) -> None:
        """Copy the files into a model's folder."""
        if self._files.copy(folder).digest != self._graph.digest:
            raise CPTuningError(
                f"{self._files.backbone} has changed since it was loaded: load the model again."
            )

    def _in_words(self, encoding: Encoding) -> Encoding:
        """The same with the words that prompt vectors stand for."""
        return replace(encoding, ids=self._words[encoding.ids])

    def read_encodings(self, encodings: Sequence[Encoding]) -> FloatArray:
        """What is read for each example, before it is joined: (examples, sequences, numbers)."""
        if self._graph.prompts is None:
            encodings = [
                replace(self._in_words(encoding), windows=tuple(map(self._in_words, more)))
                for encoding in encodings
                for more in (encoding.windows,)
            ]
        return super().read_encodings(encodings)[..., : len(self.views.centre)]

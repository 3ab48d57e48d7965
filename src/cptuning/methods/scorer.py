"""A trained rival: texts in, class scores out; saved as safetensors and JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open

from cptuning.backbone import TextEncoder
from cptuning.backbone.encoder_files import EncoderFiles
from cptuning.data import Examples
from cptuning.files.tensors import save_tensors
from cptuning.inference.predictor import HEAD_FILE
from cptuning.inference.scoring import Scores
from cptuning.methods.demonstrations import Demonstrations
from cptuning.methods.heads import ClsHead, Head, VectorHead
from cptuning.methods.words import WordHead
from cptuning.prompting import Encoding, Layout

_HEADS: dict[str, type[Head]] = {head.kind: head for head in (ClsHead, VectorHead, WordHead)}


@dataclass
class TextScorer:
    """An encoder with a head, and the examples that it reads along with a text, if it does."""

    encoder: TextEncoder
    head: Head
    demonstrations: Demonstrations | None = None

    @classmethod
    def load(cls, folder: Path, layout: Layout, device: torch.device) -> "TextScorer":
        """The scorer that :meth:`save` wrote."""
        with safe_open(folder / HEAD_FILE, framework="pt") as file:
            kind = _HEADS[file.metadata()["kind"]]
            head = kind.from_state({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        encoder = TextEncoder.load(EncoderFiles.of(folder), layout, kind.features, device)
        return cls(encoder, head.to(device), Demonstrations.load(folder, encoder, head))

    def save(self, folder: Path) -> None:
        """Write the backbone, the prompt vectors and the head."""
        self.encoder.save(folder)
        state = {name: t.detach().cpu().numpy() for name, t in self.head.state_dict().items()}
        save_tensors(folder / HEAD_FILE, state, metadata={"kind": self.head.kind})
        if self.demonstrations is not None:
            self.demonstrations.save(folder)

    def score(self, examples: Examples) -> Scores:
        """The class scores, one row per example, in their order."""
        return self.score_encodings(self.encoder.layout.encode(examples))

    def score_encodings(self, encodings: Sequence[Encoding]) -> Scores:
        """The same for examples that are laid out already; the mean over demonstrations."""
        draws = [encodings]
        if self.demonstrations is not None:
            draws = self.demonstrations.draws(encodings)
        scores = [self.head.scores(self.encoder, draw).double().cpu().numpy() for draw in draws]
        return np.asarray(np.mean(scores, axis=0))

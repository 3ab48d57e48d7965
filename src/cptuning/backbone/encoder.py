"""Texts to unit vectors with torch: the layout, the model, batches by token budget."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import normalize

from cptuning.backbone.adapter import Features, PromptedEncoder
from cptuning.backbone.checking import weight_files
from cptuning.backbone.encoder_files import BACKBONE_FOLDER, OWN_FILE, EncoderFiles
from cptuning.backbone.joined_views import Views
from cptuning.backbone.loading import Backbone, Pooling, load_backbone, quiet_transformers
from cptuning.backbone.sentence_folder import write_sentence_modules
from cptuning.data import Examples
from cptuning.files.tensors import save_tensors, verify_tensors
from cptuning.prompting import (
    Batch,
    Encoding,
    Layout,
    all_windows,
    collate,
    token_budget_batches,
)

# The tokens of a batch, padding included: enough to fill two cores, or a GPU.
TOKEN_BUDGET = {"cpu": 512, "cuda": 65536}


@dataclass
class TextEncoder:
    """The trained half of a classifier: an example goes in, its embedding comes out."""

    layout: Layout
    module: PromptedEncoder
    backbone: Backbone

    @classmethod
    def load(
        cls,
        files: EncoderFiles,
        layout: Layout,
        features: Features,
        device: torch.device,
        pooling: Pooling = "mask",
        sentence_weight: float | None = None,
    ) -> "TextEncoder":
        """The encoder whose files :meth:`save` wrote."""
        backbone = load_backbone(files.backbone)
        mask, sentence = backbone.views(pooling, sentence_weight)
        module = PromptedEncoder(backbone, layout.prompt_ids, features, sentence, mask=mask)
        module.sentence_weight = 1.0 if sentence_weight is None else sentence_weight
        if (
            layout.vocabulary != module.vocabulary
            or layout.max_length > backbone.max_length
            or layout.text_prefix != (sentence.text_prefix if sentence else "")
        ):
            raise ValueError("its layout is made for another backbone")
        if files.own is not None:
            _fill(module, load_file(files.own))
        return cls(layout, module.to(device).eval(), backbone)

    def save(self, folder: Path) -> None:
        """Write the backbone as transformers does, together with CP-Tuning's own files."""
        with quiet_transformers():
            self.backbone.tokenizer.save_pretrained(folder / BACKBONE_FOLDER)
            self.module.model.save_pretrained(folder / BACKBONE_FOLDER)
        if self.backbone.own_pooling is not None:
            write_sentence_modules(self.backbone.own_pooling, folder / BACKBONE_FOLDER)
        weights = self.module.model.state_dict().values()
        verify_tensors(weight_files(folder / BACKBONE_FOLDER), map(_array, weights))
        own = {"prompts": self.module.prompts, "centre": self.module.centre}
        save_tensors(folder / OWN_FILE, {name: _array(tensor) for name, tensor in own.items()})

    @property
    def views(self) -> Views:
        """How what is read becomes one vector."""
        return self.module.views

    def embed(self, examples: Examples) -> NDArray[np.float32]:
        """L2-normalised embeddings, one row per example, in their order."""
        return self.embed_encodings(self.layout.encode(examples))

    def embed_encodings(self, encodings: Sequence[Encoding]) -> NDArray[np.float32]:
        """The same for examples that are laid out already."""
        features = self._features(encodings)
        embeddings: NDArray[np.float32] = normalize(features, dim=-1).cpu().numpy()
        return embeddings

    def centre_on(self, encodings: Sequence[Encoding]) -> None:
        """Make the mean feature vector of some examples the origin.

        The vectors of a language model share a large common part. It makes every
        similarity close to one, far from the margins of the loss.
        """
        self.module.centre.copy_(self.module.mean_read(self._read(encodings)))

    def read_encodings(self, encodings: Sequence[Encoding]) -> NDArray[np.float32]:
        """What is read for each example, before it is joined: (examples, sequences, features)."""
        read: NDArray[np.float32] = self._read(encodings).cpu().numpy()
        return read

    def _read(self, encodings: Sequence[Encoding]) -> Tensor:
        """The features of each example's sequences; of a long text, the mean over its windows."""
        windows, first = all_windows(encodings)
        read = self.in_batches(windows, self.module.read)
        if len(windows) == len(encodings):
            return read
        counts = np.diff([*first, len(windows)])
        places = torch.as_tensor(np.repeat(np.arange(len(first)), counts)).to(read.device)
        sums = read.new_zeros(len(first), *read.shape[1:]).index_add_(0, places, read)
        return sums / torch.as_tensor(counts).to(sums)[:, None, None]

    def _features(self, encodings: Sequence[Encoding]) -> Tensor:
        """The features, one row per example, in their order."""
        if any(encoding.windows for encoding in encodings):
            with torch.no_grad():
                return self.module.joined(self._read(encodings))
        return self.in_batches(encodings, self.module.outputs)

    def in_batches(
        self, encodings: Sequence[Encoding], compute: Callable[[Batch], Tensor]
    ) -> Tensor:
        """What ``compute`` gives for batches of the encodings: float32 rows in their order."""
        pieces, rows = self.by_batch(
            encodings,
            lambda chosen: compute(
                collate([encodings[i] for i in chosen], self.layout.special.pad)
            ),
        )
        gathered = torch.cat(pieces).float()
        order = torch.as_tensor(rows).to(gathered.device)
        return torch.empty_like(gathered).index_copy_(0, order, gathered)

    def by_batch(
        self, encodings: Sequence[Encoding], compute: Callable[[Sequence[int]], Tensor]
    ) -> tuple[list[Tensor], NDArray[np.int64]]:
        """What ``compute`` gives for the numbers of encodings, batch by batch, and those numbers.

        Nothing is trained meanwhile.
        """
        device = self.module.centre.device
        budget = TOKEN_BUDGET.get(device.type, TOKEN_BUDGET["cpu"])
        was_training = self.module.training
        # Others may share the model, and switching every module takes as long as a small batch.
        if was_training or self.module.model.training:
            self.module.eval()
        batches = token_budget_batches([encoding.length for encoding in encodings], budget)
        with torch.no_grad():
            pieces = [compute(batch.tolist()) for batch in batches]
        if was_training:
            self.module.train()
        return pieces, np.concatenate(batches)


def _fill(module: PromptedEncoder, own: dict[str, Tensor]) -> None:
    """Put stored prompt vectors and a stored centre into their places."""
    for name, mine in {"prompts": module.prompts, "centre": module.centre}.items():
        if own[name].shape != mine.shape:  # A copy would broadcast a single row.
            raise ValueError(f"its {name} have another shape")
        with torch.no_grad():
            mine.copy_(own[name])


def _array(tensor: Tensor) -> NDArray[np.generic]:
    array: NDArray[np.generic] = tensor.detach().cpu().numpy()
    return array

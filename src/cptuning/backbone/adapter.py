"""One adapter for every architecture: prompt vectors in, features at the wanted positions out."""

import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import embedding, normalize
from transformers import PreTrainedModel

from cptuning.backbone.joined_views import Views
from cptuning.backbone.loading import Backbone, first_position
from cptuning.backbone.pooling import SentencePooling
from cptuning.backbone.shared_rows import ROW_TOKENS, SharedRows
from cptuning.errors import CPTuningError
from cptuning.prompting import Batch

Features = Literal["head", "hidden"]
IntArray = NDArray[np.int64]


class PromptedEncoder(nn.Module):
    """A backbone with trainable prompt vectors of its own.

    An input id past the vocabulary's end is a prompt vector; the others are rows of the model's
    embedding table. The vocabulary is never resized, so prompts cannot leak into the decoder
    that shares its rows. ``features`` says what is read at a position: the input of the
    masked-LM decoder (``"head"``, what feeds the softmax) or the last hidden state. With
    ``pooling`` it is the pooled vector of the position's text; with ``mask`` as well, both, one
    after the other. ``centre``, zero at first, is subtracted before vectors are joined.
    """

    centre: Tensor

    def __init__(
        self,
        backbone: Backbone,
        prompt_ids: np.ndarray[Any, Any],
        features: Features = "head",
        pooling: SentencePooling | None = None,
        *,
        mask: bool | None = None,
    ) -> None:
        super().__init__()
        self.reads_mask = pooling is None if mask is None else mask
        self.sentence_weight = 1.0
        self.model = backbone.model
        self.features: Features = features if backbone.has_head else "hidden"
        self.has_head = backbone.has_head
        self.pooling = pooling
        table = self.model.get_input_embeddings()
        assert isinstance(table, nn.Embedding)
        self.vocabulary = table.num_embeddings
        rows = table.weight.detach()[torch.as_tensor(prompt_ids, device=table.weight.device)]
        self.prompts = nn.Parameter(rows.clone())
        self.register_buffer("centre", torch.zeros(self._width(), device=rows.device))
        self.takes_types = getattr(self.model.config, "type_vocab_size", 0) > 1
        if self.has_head:
            _install_hooks(self.model)
            _refuse_unreadable_heads(self.model)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        token_type_ids: Tensor,
        rows: Tensor,
        columns: Tensor,
        is_text: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The features and the decoder's inputs at the positions (rows[i], columns[i]).

        Texts of equal length need no ``attention_mask``; ``is_text`` is for poolings that are of
        the text only.
        """
        inputs = {"inputs_embeds": self.embed(input_ids)}
        if self.takes_types:
            inputs["token_type_ids"] = token_type_ids
        read = self._read
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
            # On a GPU padding costs little, and reading the lengths makes the host wait for it.
            if self.training and input_ids.device.type == "cpu" and self._can_share_rows:
                read = self._read_in_shared_rows
        hidden, decoder_inputs, tokens = read(inputs, rows, columns)
        features = decoder_inputs if self.features == "head" else hidden
        if self.pooling is not None:
            pooled = self.pooling(tokens, is_text if self.pooling.text_only else attention_mask)
            about = pooled[rows]
            features = torch.cat([features, about], dim=-1) if self.reads_mask else about
        return features, decoder_inputs

    def joined(self, read: Tensor) -> Tensor:
        """One vector per example of what was read for it: (examples, sequences, features).

        ``joined_views.py`` has the equations.
        """
        read = read - self.centre
        if self.pooling is None:
            return Tensor(read[:, 0])
        sentence = read[..., self._mask_width :]
        texts = sentence[:, 1:] if self.reads_mask and sentence.shape[1] > 1 else sentence
        about = texts[:, 0] if texts.shape[1] == 1 else relation(texts[:, 0], texts[:, 1])
        if not self.reads_mask:
            return Tensor(about)
        mask = normalize(read[:, 0, : self._mask_width].float(), dim=-1)
        return torch.cat([mask, self.sentence_weight * normalize(about.float(), dim=-1)], dim=-1)

    def mean_read(self, read: Tensor) -> Tensor:
        """The mean vector of each view over what was read."""
        mask, sentence = read[:, 0, : self._mask_width], read[..., self._mask_width :]
        texts = sentence[:, 1:] if self.reads_mask and sentence.shape[1] > 1 else sentence
        means = [mask.mean(dim=0)] if self.reads_mask else []
        if self.pooling is not None:
            means.append(texts.flatten(0, 1).mean(dim=0))
        return torch.cat(means)

    @property
    def views(self) -> Views:
        """The same as numpy knows it."""
        centre: NDArray[np.float32] = self.centre.cpu().numpy()
        return Views(centre, self._mask_width, self.sentence_weight)

    def _read(
        self, inputs: dict[str, Tensor], rows: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states and decoder inputs at the wanted positions, and all hidden states."""
        if not self.has_head:
            tokens: Tensor = self.model(**inputs)[0]
            hidden = tokens[rows, columns]
            return hidden, hidden, tokens
        return _pass_up_to_decoder(self.model, inputs, rows, columns)

    def _read_in_shared_rows(
        self, inputs: dict[str, Tensor], rows: Tensor, columns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same with almost no padding, which is otherwise up to half the work in training."""
        shared = SharedRows(inputs["attention_mask"])
        moved = {name: shared.spread(value) for name, value in inputs.items()}
        moved["attention_mask"] = shared.attention
        moved["position_ids"] = shared.positions + first_position(self.model)
        hidden, decoder_inputs, tokens = self._read(moved, *shared.moved(rows, columns))
        if self.pooling is not None:  # Nothing else reads all of them.
            tokens = shared.gathered(tokens)
        return hidden, decoder_inputs, tokens

    @cached_property
    def _can_share_rows(self) -> bool:
        """Whether the model keeps the texts of a row apart: tried, as no configuration says it."""
        if "position_ids" not in inspect.signature(self.model.forward).parameters:
            return False
        # One text is as long as a row may be, so that a model with a short window is detected.
        length = min(ROW_TOKENS, self.model.config.max_position_embeddings - 2)
        mask = torch.ones(3, length, dtype=torch.long)
        mask[1:, length // 4 :] = 0
        rows, columns = mask.nonzero(as_tuple=True)
        with torch.no_grad(), _quiet(self):
            inputs = {"inputs_embeds": self.embed(mask.cumsum(dim=1)), "attention_mask": mask}
            if self.takes_types:
                inputs["token_type_ids"] = torch.zeros_like(mask)
            try:
                _, expected, _ = self._read(inputs, rows, columns)
                _, found, _ = self._read_in_shared_rows(inputs, rows, columns)
            except (AttributeError, TypeError, ValueError, RuntimeError, IndexError):
                return False
        return bool((found - expected).abs().max() <= 1e-3 * expected.abs().max())

    def _width(self) -> int:
        """The length of a feature vector."""
        return self._mask_width + (0 if self.pooling is None else self.pooling.width)

    @property
    def _mask_width(self) -> int:
        """How many of its numbers are of the mask view."""
        if not self.reads_mask:
            return 0
        if self.features == "hidden":
            return int(self.model.config.hidden_size)
        return int(self.model.get_output_embeddings().weight.shape[1])

    def embed(self, input_ids: Tensor) -> Tensor:
        """Rows of the embedding table, and prompt vectors where an id is past its end."""
        is_prompt = input_ids >= self.vocabulary
        words = self.model.get_input_embeddings()(input_ids.masked_fill(is_prompt, 0))
        prompts = self.prompts  # once: P-tuning recomputes them each time
        if len(prompts) == 0:
            return Tensor(words)
        # Not by indexing: threads would add up its gradient in any order.
        chosen = embedding((input_ids - self.vocabulary).clamp_min(0), prompts)
        return torch.where(is_prompt.unsqueeze(-1), chosen.to(words.dtype), words)

    def decode(self, decoder_inputs: Tensor) -> Tensor:
        """Vocabulary logits of decoder inputs."""
        logits: Tensor = self.model.get_output_embeddings()(decoder_inputs)
        return logits

    def outputs(self, batch: Batch) -> Tensor:
        """The vector of each example, not normalised."""
        return self.joined(self.read(batch))

    def read(self, batch: Batch) -> Tensor:
        """The features of all sequences of each example: (examples, sequences, features)."""
        n, device = len(batch), self.centre.device
        rows = torch.arange(len(batch.input_ids), device=device)
        columns = torch.zeros_like(rows)
        columns[:n] = torch.as_tensor(batch.outputs).to(device, non_blocking=True)
        features, _ = self(**self.tensors(batch), rows=rows, columns=columns)
        read: Tensor = features.unflatten(0, (-1, n)).transpose(0, 1)
        return read

    def tensors(self, batch: Batch) -> dict[str, Tensor]:
        """The arrays of a batch as arguments."""
        device = self.centre.device
        tensors = to_device(batch, device)
        if self.pooling is not None and self.pooling.text_only:
            tensors["is_text"] = torch.as_tensor(batch.is_text).to(device, non_blocking=True)
        return tensors

    def at_outputs(self, batch: Batch, masks: int = 1) -> tuple[Tensor, Tensor]:
        """Features and decoder inputs at [OMSK], and at the masks that follow it."""
        device = self.centre.device
        rows, columns = output_positions(batch, masks)
        positions = {
            name: torch.as_tensor(array).to(device, non_blocking=True)
            for name, array in (("rows", rows), ("columns", columns))
        }
        found: tuple[Tensor, Tensor] = self(**self.tensors(batch), **positions)
        return found


def relation(first: Tensor, second: Tensor) -> Tensor:
    """How two texts are related: their cosine, and the difference of their unit vectors.

    >>> relation(torch.tensor([[0.0, 2.0]]), torch.tensor([[0.0, 5.0]]))
    tensor([[1., 0., 0.]])
    """
    first, second = (normalize(vectors.float(), dim=-1) for vectors in (first, second))
    cosine = (first * second).sum(dim=-1, keepdim=True)
    return torch.cat([cosine, (first - second).abs()], dim=-1)


def output_positions(batch: Batch, masks: int = 1) -> tuple[IntArray, IntArray]:
    """Rows and columns of the output masks, those of one example after another.

    >>> ids = np.zeros((2, 6), dtype=np.int64)
    >>> batch = Batch(ids, ids, ids, outputs=np.array([4, 1]), is_text=ids)
    >>> [places.tolist() for places in output_positions(batch, masks=2)]
    [[0, 0, 1, 1], [4, 5, 1, 2]]
    """
    rows = np.repeat(np.arange(len(batch)), masks)
    columns = (batch.outputs[:, None] + np.arange(masks)).ravel()
    return rows, columns


def to_device(batch: Batch, device: torch.device) -> dict[str, Tensor]:
    """The arrays of a batch as the model's arguments."""
    return {
        name: torch.as_tensor(getattr(batch, name)).to(device, non_blocking=True)
        for name in ("input_ids", "attention_mask", "token_type_ids")
    }


@dataclass
class _Pass:
    """A forward pass of which only some positions are wanted, up to the decoder's input."""

    rows: Tensor
    columns: Tensor
    tokens: Tensor | None = None
    hidden: Tensor | None = None
    decoder_inputs: Tensor | None = None


class _ThisThread(threading.local):
    """The pass that a thread is in: several may run through one model at the same time."""

    current: _Pass | None = None


_this_thread = _ThisThread()


def _install_hooks(model: PreTrainedModel) -> None:
    """Let the model leave out what a pass does not want; all other calls of it stay as they are.

    The hooks are the same for every model and every call, so the model is never changed while it
    runs, and copies of it have them too.
    """
    if _keep_wanted not in model.base_model._forward_hooks.values():
        model.base_model.register_forward_hook(_keep_wanted)
    decoder = model.get_output_embeddings()
    if _skip_decoder not in decoder._forward_pre_hooks.values():
        decoder.register_forward_pre_hook(_skip_decoder)


def _keep_wanted(_module: nn.Module, _inputs: Any, output: Any) -> Any:
    """Behind the encoder: the head sees the wanted positions alone."""
    current = _this_thread.current
    if current is not None:
        current.tokens = output.last_hidden_state
        current.hidden = current.tokens[current.rows, current.columns]
        output.last_hidden_state = current.hidden
    return output


def _skip_decoder(_module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """In front of the decoder: keep its input, and leave it none to work on."""
    current = _this_thread.current
    if current is None:
        return inputs
    current.decoder_inputs = inputs[0]
    return (inputs[0][:0],)


def _pass_up_to_decoder(
    model: PreTrainedModel, inputs: dict[str, Tensor], rows: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states and decoder inputs at the wanted positions, and all hidden states."""
    _this_thread.current = current = _Pass(rows, columns)
    try:
        model(**inputs)
    finally:
        _this_thread.current = None
    if current.tokens is None or current.hidden is None or current.decoder_inputs is None:
        raise ValueError("The head does not run its encoder and its decoder.")
    return current.hidden, current.decoder_inputs, current.tokens


def _refuse_unreadable_heads(model: PreTrainedModel) -> None:
    """Some heads do not end in the decoder that the model names (MobileBERT's)."""
    table, decoder = model.get_input_embeddings(), model.get_output_embeddings()
    zero = torch.zeros(1, 1, dtype=torch.long, device=model.device)
    cause = None
    with torch.no_grad(), _quiet(model):
        try:
            inputs = {"inputs_embeds": table(zero), "attention_mask": zero + 1}
            whole = model(**inputs).logits[0]
            _, decoder_inputs, _ = _pass_up_to_decoder(model, inputs, zero[0], zero[0])
            gap = (decoder(decoder_inputs) - whole).abs().max()
            if gap <= 1e-3 * whole.abs().max():
                return
        except (AttributeError, TypeError, ValueError, RuntimeError, IndexError) as error:
            cause = error
    raise CPTuningError(
        f"The head of {type(model).__name__} can't be taken apart from its decoder: "
        "use another backbone, such as a BERT, RoBERTa, ALBERT or DeBERTa model."
    ) from cause


@contextmanager
def _quiet(model: nn.Module) -> Iterator[None]:
    """Dropout off for a moment, so that looking at the model draws no random numbers."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)

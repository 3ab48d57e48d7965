"""Any BERT-style encoder, with or without its head, from the package, a folder or the hub."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer, normalizers
from torch import Tensor
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoModelForMaskedLM,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from cptuning.backbone.checking import check_backbone_files, check_size
from cptuning.backbone.hub import find_files
from cptuning.backbone.packed import (
    EMBEDDED,
    PACKED_WEIGHTS,
    has_embedded_architecture,
    packed_weights,
)
from cptuning.backbone.pooling import Dense, SentencePooling
from cptuning.backbone.sentence_folder import (
    MODULES_FILE,
    SentenceFolder,
    read_sentence_folder,
)
from cptuning.errors import CPTuningError
from cptuning.files.places import as_path
from cptuning.prompting import SpecialTokens

_SENTENCE_HEAD = "sentence.dense."

Pooling = Literal["auto", "mask", "mean", "cls"]

_log = logging.getLogger("cptuning")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Inside, transformers loads and saves without bars and reports of its own."""
    shown = transformers_logging.is_progress_bar_enabled()
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if shown:
            transformers_logging.enable_progress_bar()


@dataclass
class Backbone:
    """A pre-trained model and its tokenizer."""

    name: str
    """``"embedded"``, the folder it was loaded from, or its id on the hub."""
    model: PreTrainedModel
    """A masked LM with its head; the bare encoder if there is no head."""
    tokenizer: PreTrainedTokenizerBase
    has_head: bool
    revision: str | None = None
    """The commit on the hub, if it came from there."""
    own_pooling: SentencePooling | None = None
    """What stands behind the model of a sentence encoder."""

    def views(
        self, pooling: Pooling, sentence_weight: float | None = None
    ) -> tuple[bool, SentencePooling | None]:
        """Whether a text is read at [OMSK], and what makes one vector of its tokens, if anything.

        "auto" is both if the backbone is made for both and the sentence view has a weight;
        else a sentence encoder's own pooling, [OMSK] for a masked LM, or the mean.

        >>> embedded = load_backbone("embedded")
        >>> [embedded.views("auto", weight)[1] is not None for weight in (1.0, 0.0)]
        [True, False]
        """
        if pooling == "auto":
            if self.own_pooling is None:
                pooling = "mask" if self.has_head else "mean"
            elif not (self.has_head and self.own_pooling.text_only):
                return False, self.own_pooling
            else:
                return True, None if sentence_weight == 0 else self.own_pooling
        if pooling == "mask":
            return True, None
        return False, SentencePooling([pooling], int(self.model.config.hidden_size))

    def state_dict(self) -> dict[str, Tensor]:
        """All its weights: the model's, and those of its own pooling."""
        state = dict(self.model.state_dict())
        if self.own_pooling is not None:
            state |= self.own_pooling.state_dict(prefix="own_pooling.")
        return state

    @property
    def fast_tokenizer(self) -> Tokenizer:
        """The tokenizer as the ``tokenizers`` library knows it."""
        tokenizer: Tokenizer = self.tokenizer.backend_tokenizer
        return tokenizer

    @property
    def special(self) -> SpecialTokens:
        """The tokenizer's special tokens."""
        return SpecialTokens.of(
            self.fast_tokenizer, self.tokenizer.mask_token_id, self.tokenizer.pad_token_id
        )

    @property
    def vocabulary(self) -> int:
        """The number of rows of the embedding table; some tokenizers use fewer of them."""
        weight = self.model.get_input_embeddings().weight
        assert isinstance(weight, torch.Tensor)
        return len(weight)

    @property
    def max_length(self) -> int:
        """The maximum number of tokens that the model can read."""
        config = self.model.config
        positions = getattr(config, "max_position_embeddings", None) or 1 << 30
        position_table = _position_table(self.model)
        if position_table is not None:
            positions = position_table.num_embeddings - first_position(self.model)
        return min(int(self.tokenizer.model_max_length), int(positions))


def first_position(model: PreTrainedModel) -> int:
    """The number of a text's first position: RoBERTa counts from padding_idx + 1."""
    table = _position_table(model)
    return 0 if table is None or table.padding_idx is None else table.padding_idx + 1


def _position_table(model: PreTrainedModel) -> torch.nn.Embedding | None:
    for module in model.modules():
        table = getattr(module, "position_embeddings", None)
        if isinstance(table, torch.nn.Embedding):
            return table
    return None


def load_backbone(name: str | Path = "embedded", progress: bool = True) -> Backbone:
    """Load the model that a name stands for.

    The name is a short name (``"embedded"``, ``"small"``, ``"base"``, ``"multilingual"``,
    ``"paper"``: see ``cptuning backbones``), a folder, or an id on the hub. Models that are not on
    this machine are downloaded once; ``progress`` shows a bar in a terminal.

    It may be a masked LM, an encoder without a head, or a sentence encoder in the format of
    sentence-transformers.

    Weights are read from safetensors only, and no code from outside is run. They are converted to
    float32: half precision is slow on a CPU, and overflows.

    >>> backbone = load_backbone("embedded")
    >>> backbone.has_head, backbone.tokenizer.mask_token
    (True, '[MASK]')
    """
    if name == "embedded":
        return _load_packed(EMBEDDED, "embedded")
    if not isinstance(name, str):
        name = as_path(name, "backbone")
    files = find_files(name, progress)
    sentence = None
    folder = files.folder
    if (folder / PACKED_WEIGHTS).is_file():
        return _load_packed(folder, files.name)
    if (folder / MODULES_FILE).is_file():
        sentence = read_sentence_folder(folder)
        folder = sentence.transformer
    if not (folder / "config.json").is_file():
        raise CPTuningError(
            f"The folder {folder} holds no model (it has no config.json): "
            "name a folder written by save_pretrained."
        )
    check_backbone_files(folder)
    try:
        with quiet_transformers():
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
            _require_encoder(files.name, config)
            tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
            model, has_head = _load_masked_lm(folder, files.name, config)
    except CPTuningError:
        raise
    except Exception as error:  # Safetensors and tokenizers raise bare ones of their own.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        kind = "folder" if files.revision is None else "model"
        raise CPTuningError(
            f"The {kind} {files.name} could not be loaded as a masked language model: {reason}"
        ) from error
    backbone = _checked(Backbone(files.name, model, tokenizer, has_head, files.revision))
    if sentence is not None:
        _complete(backbone, sentence)
    elif not has_head:
        _log.warning(
            "%s has no masked-LM head: a text's vector is the mean of its tokens' (pooling), and "
            "there is no masked-LM loss.",
            files.name,
        )
    return backbone


def _complete(backbone: Backbone, sentence: SentenceFolder) -> None:
    """Give a backbone what its folder says besides the model: the modules behind it, and limits."""
    tokenizer = backbone.tokenizer
    if sentence.token_width != backbone.model.config.hidden_size:
        raise CPTuningError(
            f"The pooling of {backbone.name} is for vectors of {sentence.token_width} numbers, and "
            f"its model gives {backbone.model.config.hidden_size}: save or copy the model again."
        )
    if sentence.max_length is not None:
        tokenizer.model_max_length = sentence.max_length
    if sentence.lower_case:
        fast = backbone.fast_tokenizer
        kept = [] if fast.normalizer is None else [fast.normalizer]
        fast.normalizer = normalizers.Sequence([normalizers.Lowercase(), *kept])
    special = backbone.special
    prompt = backbone.fast_tokenizer.encode(sentence.prompt, add_special_tokens=False)
    backbone.own_pooling = sentence.pooling(len(special.prefix) + len(prompt.ids)).eval()


def _require_encoder(name: str, config: PretrainedConfig) -> None:
    """Refuse models that don't read a text as a whole."""
    if type(config) in MODEL_FOR_MASKED_LM_MAPPING:
        return
    kind = "an encoder-decoder" if config.is_encoder_decoder else "not an encoder of BERT's kind"
    if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
        kind = "a decoder-only model, which reads from left to right"
    raise CPTuningError(
        f"The backbone {name} is {kind} ({config.model_type}): use a BERT-style masked language "
        "model or a sentence encoder that is built on one."
    )


def _load_packed(folder: Path, name: str) -> Backbone:
    """A backbone of the embedded architecture from its packed weights."""
    if not has_embedded_architecture(folder):
        raise CPTuningError(f"The packed weights in {folder} are of an unknown architecture.")
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    try:
        arrays = packed_weights(folder)
    except (OSError, SafetensorError, ValueError) as error:
        again = "install the package" if folder == EMBEDDED else "save or copy the model"
        raise CPTuningError(f"The weights in {folder} are damaged: {again} again.") from error
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    with torch.device("meta"):  # No time is spent on random weights that are replaced at once.
        model = AutoModelForMaskedLM.from_config(config, dtype=torch.float32)
    head = {name: weights.pop(name) for name in list(weights) if name.startswith(_SENTENCE_HEAD)}
    model.to_empty(device="cpu")
    missing, unexpected = model.load_state_dict(weights, strict=False, assign=True)
    model.tie_weights()
    tied = set(model.all_tied_weights_keys)
    if unexpected or set(missing) - tied:
        raise CPTuningError(
            f"The configuration in {folder} is damaged: it describes another model."
        )
    _restore_buffers(model)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    pooling = _sentence_head(head)
    return _checked(Backbone(name, model, tokenizer, has_head=True, own_pooling=pooling))


def _sentence_head(weights: dict[str, Tensor]) -> SentencePooling:
    """The embedded backbone's sentence view."""
    width = len(weights[f"{_SENTENCE_HEAD}bias"])
    dense = Dense(width, width, bias=True, activation="Identity")
    dense.load_state_dict(
        {name.replace(_SENTENCE_HEAD, "linear."): tensor for name, tensor in weights.items()}
    )
    return SentencePooling(["mean"], width, [dense], text_only=True).eval()


def _restore_buffers(model: PreTrainedModel) -> None:
    """Fill the buffers that a model computes instead of storing: position numbers, token types."""
    for name, buffer in model.named_buffers():
        if name.endswith("position_ids"):
            buffer.copy_(torch.arange(buffer.shape[-1]).expand_as(buffer))
        elif name.endswith("token_type_ids"):
            buffer.zero_()
        else:
            raise CPTuningError(f"The embedded model has an unknown buffer {name}.")


def _load_masked_lm(
    folder: Path, name: str, config: PretrainedConfig
) -> tuple[PreTrainedModel, bool]:
    """The masked LM, or the encoder alone if the file holds no head."""
    # A name of it may stand for code on the hub: the choice is left to transformers.
    config._attn_implementation = None
    if getattr(config, "quantization_config", None) is not None:
        raise CPTuningError(f"The model {name} is quantized: use its original weights.")
    check_size(folder, config)
    model, info = AutoModelForMaskedLM.from_pretrained(
        folder,
        config=config,
        dtype=torch.float32,
        use_safetensors=True,
        trust_remote_code=False,
        output_loading_info=True,
    )
    inside = model.base_model_prefix + "."
    missing = {str(key) for key in info["missing_keys"]}
    if any(key.startswith(inside) and "pooler" not in key for key in missing):
        raise CPTuningError(f"The model {name} lacks weights of its encoder: it is damaged.")
    if missing - set(model.all_tied_weights_keys):
        return model.base_model, False
    return model, True


def _checked(backbone: Backbone) -> Backbone:
    if not getattr(backbone.tokenizer, "is_fast", False):
        raise CPTuningError(
            f"The tokenizer of {backbone.name} is not a fast one: convert it to a tokenizer.json."
        )
    if backbone.tokenizer.mask_token_id is None or backbone.tokenizer.pad_token_id is None:
        raise CPTuningError(
            f"The tokenizer of {backbone.name} has no mask or padding token: "
            "CP-Tuning needs a BERT-style masked language model."
        )
    # Without its files a tokenizer still loads, but knows no words.
    table = backbone.model.get_input_embeddings()
    assert isinstance(table, torch.nn.Embedding)
    known, rows = len(backbone.tokenizer), table.num_embeddings
    if not rows / 2 < known <= rows:
        raise CPTuningError(
            f"The tokenizer of {backbone.name} knows {known} tokens and the model {rows}: "
            "they don't belong together, or the tokenizer's files are missing."
        )
    backbone.model.eval()
    return backbone


def describe(backbone: Backbone) -> dict[str, Any]:
    """What records and model cards say about the backbone; for a folder its name, not its path.

    >>> describe(load_backbone("embedded"))["parameters"] > 1_000_000
    True
    """
    from_hub = backbone.revision is not None
    facts = {
        "name": backbone.name if from_hub else Path(backbone.name).absolute().name,
        "architecture": type(backbone.model).__name__,
        "parameters": sum(p.numel() for p in backbone.model.parameters()),
    }
    return facts | {"revision": backbone.revision} if from_hub else facts

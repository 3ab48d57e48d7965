"""The layers of a backbone: which are trained, and which are read."""

from torch import nn
from transformers import PreTrainedModel

from cptuning.backbone import PromptedEncoder


def freeze_lower_layers(module: PromptedEncoder, share: float) -> None:
    """Freeze the embedding table and a share of the layers, but not the prompt vectors.

    If all layers share their weights (ALBERT), or can't be told apart, it is the table alone.
    """
    if share == 0:
        return
    stack = _layers(module.model)
    layers = [] if stack is None else list(stack)[: round(share * len(stack))]
    for part in (module.model.get_input_embeddings(), *layers):
        part.requires_grad_(False)


def keep_lower_layers(model: PreTrainedModel, share: float) -> None:
    """Take all layers above this share, at least one is kept, out of a model.

    If layers share their weights (ALBERT), they are run less often.
    """
    depth = model.config.num_hidden_layers
    kept = max(1, round(share * depth))
    stack = _layers(model)
    if stack is not None:
        del stack[kept:]
    if stack is not None or getattr(model.config, "num_hidden_groups", 0) == 1:
        model.config.num_hidden_layers = kept


def _layers(model: PreTrainedModel) -> nn.ModuleList | None:
    """The stack of layers, if it can be told which it is."""
    depth = model.config.num_hidden_layers
    stacks = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    return stacks[0] if stacks else None

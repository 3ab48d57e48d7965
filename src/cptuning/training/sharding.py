"""Large models over several processes: weights, gradients and moments in shards (FSDP)."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

Groups = list[dict[str, object]]


class Sharded:
    """A copy of the objective that is trained in shards; the objective itself stays whole.

    Code that evaluates, keeps or saves the objective need not know of shards: :meth:`pull` brings
    it the weights of the copy. Of the sixteen bytes a weight takes in training (itself, its
    gradient, two moments) a process then holds four, and its share of sixteen.
    """

    def __init__(self, objective: nn.Module, device: torch.device) -> None:
        self.objective = objective
        self.module = deepcopy(objective)
        mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
        for layer in _layers(self.module):
            fully_shard(layer, mesh=mesh)
        fully_shard(self.module, mesh=mesh)

    def groups(self, groups: Sequence[dict[str, object]]) -> Groups:
        """The optimiser's groups of the objective, with the copy's parameters in their places."""
        name_of = {id(parameter): n for n, parameter in self.objective.named_parameters()}
        copies = dict(self.module.named_parameters())

        def copied(group: dict[str, object]) -> dict[str, object]:
            parameters = group["params"]
            assert isinstance(parameters, list)
            return group | {"params": [copies[name_of[id(p)]] for p in parameters]}

        return [copied(group) for group in groups]

    @torch.no_grad()
    def pull(self) -> None:
        """Give the objective the weights of the copy; every process has to take part."""
        own = dict(self.objective.named_parameters())
        for name, shard in self.module.named_parameters():
            assert isinstance(shard, DTensor)
            if own[name].requires_grad:
                own[name].copy_(shard.full_tensor())


def _layers(module: nn.Module) -> Sequence[nn.Module]:
    """The layers of the encoder: the longest list of modules; what shares its weights has none."""
    lists = [list(part) for part in module.modules() if isinstance(part, nn.ModuleList)]
    return max(lists, key=len, default=[])

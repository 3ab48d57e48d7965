"""Chunks: the rows of the whole, with little of it kept in memory."""

import torch
from torch import nn

from cptuning.training import in_chunks, recomputed


class Wide(nn.Module):
    """Makes much of little: its inner activations are what memory goes to."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 4096), nn.Linear(4096, 4)

    def forward(self, inputs, rows, columns):
        out = self.down(self.up(inputs).tanh())[rows, columns]
        return out, out


def kept_for_backward(size):
    """How many numbers the graph of a forward pass holds."""
    kept = []

    def pack(tensor):
        kept.append(tensor.numel())
        return tensor

    module, inputs = Wide(), torch.randn(32, 2, 4)
    rows, columns = torch.arange(32), torch.zeros(32, dtype=torch.long)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        in_chunks(module, size, (inputs,), rows, columns)
    return sum(kept)


def test_only_what_the_loss_is_made_of_is_kept_until_the_backward_pass():
    assert kept_for_backward(size=4) < kept_for_backward(size=0) / 10


def test_rows_come_back_in_their_order():
    rows = torch.randn(7, 3)
    assert torch.equal(recomputed(lambda x, y: x + y, 3, rows, rows), 2 * rows)

"""Every loss at the ends of what training can bring about: finite, with a finite gradient."""

import pytest
import torch
from tests.losses.test_every_loss import every_mean
from torch.nn.functional import normalize


def unit(*shape):
    return normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(0)), dim=1)


def alike(n, spread=0.0):
    """Embeddings that have collapsed into one direction."""
    return normalize(unit(1, 8) + spread * unit(n, 8), dim=1)


BATCHES = {
    "identical texts of one class": (alike(6), [0] * 6),
    "identical texts of several classes": (alike(6), [0, 0, 1, 1, 2, 2]),
    "collapsed but for rounding": (alike(6, 1e-7), [0, 0, 1, 1, 2, 2]),
    "collapsed but for a little": (alike(6, 1e-3), [0, 0, 1, 1, 2, 2]),
    "opposite directions": (torch.cat([alike(3), -alike(3)]), [0, 1, 0, 1, 0, 1]),
    "classes in opposite directions": (torch.cat([alike(3), -alike(3)]), [0, 0, 0, 1, 1, 1]),
    "one example per class": (unit(6, 8), list(range(6))),
    "one example alone": (unit(1, 8), [0]),
    "one pair among single examples": (unit(6, 8), [0, 0, 1, 2, 3, 4]),
    "2000 classes": (unit(4000, 8), list(range(2000)) * 2),
    "2000 examples of a class, one of another": (unit(2001, 8), [0] * 2000 + [1]),
    "one dimension": (torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]), [0, 0, 1, 1]),
    "vectors of zeros": (torch.zeros(4, 8), [0, 0, 1, 1]),
}


@every_mean
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("batch", BATCHES)
def test_the_loss_and_its_gradient_are_finite(mean, batch, dtype):
    rows, labels = BATCHES[batch]
    z = rows.to(dtype).requires_grad_()
    value = mean(z, torch.tensor(labels))
    assert value.isfinite()
    assert value.dtype == torch.float32
    assert value >= -1e-6
    [gradient] = torch.autograd.grad(value, z)
    assert gradient.isfinite().all()

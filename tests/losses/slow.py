"""Every loss written out as explicit loops over plain numbers: slow, and easy to check by eye."""

import math

import torch
from hypothesis import strategies as st
from torch import Tensor


def unit(*shape, seed=0, dtype=torch.float64):
    """Random rows of unit norm."""
    z = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(z, dim=-1).to(dtype)


@st.composite
def batches(draw, min_size=1, max_size=7):
    """Embeddings and labels of a small batch: any mixture of classes, lone examples too."""
    labels = draw(st.lists(st.integers(0, 2), min_size=min_size, max_size=max_size))
    z = unit(len(labels), draw(st.integers(2, 5)), seed=draw(st.integers(0, 10_000)))
    return z, torch.tensor(labels)


def dot(u, v):
    return sum(a * b for a, b in zip(u, v, strict=True))


def positive_set(y, i):
    return [j for j in range(len(y)) if j != i and y[j] == y[i]]


def negative_set(y, i):
    return [j for j in range(len(y)) if y[j] != y[i]]


def over_anchors(one_anchor, z: Tensor, labels: Tensor):
    """(n,) from one_anchor(s, P, N), with s the similarities of that anchor to all."""
    rows, y = z.double().tolist(), labels.tolist()
    values = [
        one_anchor([dot(a, b) for b in rows], positive_set(y, i), negative_set(y, i))
        for i, a in enumerate(rows)
    ]
    return torch.tensor(values, dtype=torch.float64)


def alphas(s, P, N, margin):
    """The relaxation factors of one anchor, by index."""
    return {p: max(0, 1 + margin - s[p]) for p in P} | {n: max(0, s[n] + margin) for n in N}


def pccl(
    z,
    labels,
    *,
    margin,
    tau_n,
    xi,
    reduction="sum",
    relaxation=True,
    form="sum_log",
    frozen_at=None,
):
    """L_PCCL(i); ``frozen_at`` are the embeddings that α is taken from, if not ``z``."""
    tau_p = xi * tau_n
    base = (z if frozen_at is None else frozen_at).double().tolist()
    rows, y = z.double().tolist(), labels.tolist()
    values = []
    for i in range(len(rows)):
        P, N = positive_set(y, i), negative_set(y, i)
        s = [dot(rows[i], b) for b in rows]
        alpha = alphas([dot(base[i], b) for b in base], P, N, margin)
        if not relaxation:
            alpha = dict.fromkeys(alpha, 1.0)
        e = {p: math.exp(alpha[p] * s[p] / tau_p) for p in P}
        e |= {n: math.exp(alpha[n] * s[n] / tau_n) for n in N}
        Z = sum(e.values())
        if not P:
            values.append(0.0)
        elif form == "log_sum":
            values.append(-math.log(sum(e[p] for p in P) / Z))
        else:
            terms = [-math.log(e[p] / Z) for p in P]
            values.append(sum(terms) / (len(P) if reduction == "mean" else 1))
    return torch.tensor(values, dtype=torch.float64)


def supcon(z, labels, *, tau, form="sum_log"):
    def one_anchor(s, P, N):
        Z = sum(math.exp(s[a] / tau) for a in P + N)
        shares = [math.exp(s[p] / tau) / Z for p in P]
        if not P:
            return 0.0
        if form == "log_sum":
            return -math.log(sum(shares))
        return sum(-math.log(share) for share in shares) / len(P)

    return over_anchors(one_anchor, z, labels)


def triplet(z, labels, *, margin):
    rows, y = z.double().tolist(), labels.tolist()

    def distance(i, j):
        return sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True))

    values = []
    for i in range(len(rows)):
        hinges = [
            max(0.0, distance(i, p) - distance(i, n) + margin)
            for p in positive_set(y, i)
            for n in negative_set(y, i)
        ]
        values.append(sum(hinges) / max(1, len(hinges)))
    return torch.tensor(values, dtype=torch.float64)


def n_pair(z, labels):
    def one_anchor(s, P, N):
        terms = [math.log(1 + sum(math.exp(s[n] - s[p]) for n in N)) for p in P]
        return sum(terms) / max(1, len(terms))

    return over_anchors(one_anchor, z, labels)


def circle(z, labels, *, margin, gamma, frozen_at=None):
    base = (z if frozen_at is None else frozen_at).double().tolist()
    rows, y = z.double().tolist(), labels.tolist()
    values = []
    for i in range(len(rows)):
        P, N = positive_set(y, i), negative_set(y, i)
        s = [dot(rows[i], b) for b in rows]
        alpha = alphas([dot(base[i], b) for b in base], P, N, margin)
        pull = sum(math.exp(-gamma * alpha[p] * (s[p] - (1 - margin))) for p in P)
        push = sum(math.exp(gamma * alpha[n] * (s[n] - margin)) for n in N)
        values.append(math.log(1 + pull * push))
    return torch.tensor(values, dtype=torch.float64)


def finite_differences(scalar, z: Tensor, step=1e-6):
    """The gradient of scalar(z) by central differences."""
    gradient = torch.zeros_like(z)
    for i in range(z.shape[0]):
        for k in range(z.shape[1]):
            change = torch.zeros_like(z)
            change[i, k] = step
            gradient[i, k] = (float(scalar(z + change)) - float(scalar(z - change))) / (2 * step)
    return gradient


def autograd(scalar, z: Tensor):
    """The gradient of scalar(z) by back propagation."""
    leaf = z.detach().clone().requires_grad_()
    scalar(leaf).backward()
    return leaf.grad


def close(a: Tensor, b: Tensor, rtol=1e-8, atol=1e-9):
    """Fail with both tensors shown unless they agree."""
    torch.testing.assert_close(a, b, rtol=rtol, atol=atol, check_dtype=False)

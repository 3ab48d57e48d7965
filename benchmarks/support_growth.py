"""What a growing support set costs: exact and approximate neighbours, and prototypes.

    python -m benchmarks.support_growth [--sizes 1000 10000 100000 1000000]

Made-up unit vectors of 384 floats around a hundred class centres; within a class two of them have
a similarity of about 0.8. Every way of answering has a process of its own and answers the same
queries, 256 per call; prints a Markdown section and draws docs/images/support-growth.png.
"""

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cptuning.data import Examples
from cptuning.inference import SupportSet, class_scores

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "support-growth.png"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
WAYS = ("exact kNN", "approximate kNN", "prototypes")
WIDTH, CLASSES, NOISE, QUERIES, K, REPEATS = 384, 100, 0.5, 256, 10, 5


@dataclass(frozen=True)
class SupportCost:
    """What one way of answering costs with ``n`` labelled embeddings."""

    way: str
    n: int
    preparing: float
    """Seconds, once: the index, or the class means."""
    milliseconds: float
    """Per query, the median of some calls."""
    megabytes: float
    """Peak memory, without the embeddings themselves."""
    recall: float
    """The share of the true ten nearest that was found; not a number for prototypes."""
    right: float
    """The share of the queries whose class was found."""


def clustered(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around the classes' centres, and their classes."""
    centres = np.random.default_rng(7).standard_normal((CLASSES, WIDTH), dtype=np.float32)
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=n)
    rows = rng.standard_normal((n, WIDTH), dtype=np.float32)
    for start in range(0, n, 65_536):  # in place, so that this is not the measured peak
        block = rows[start : start + 65_536]
        block *= NOISE
        block += centres[labels[start : start + 65_536]]
        block /= np.linalg.norm(block, axis=1, keepdims=True)
    return rows, labels


def cost(way: str, n: int) -> SupportCost:
    """Measure one way in this process."""
    embeddings, labels = clustered(n, seed=0)
    queries, wanted = clustered(QUERIES, seed=1)
    support = SupportSet(Examples(("",) * n), embeddings, labels)
    _forget_peak()
    before, began = _memory("VmRSS"), time.perf_counter()
    if way == "approximate kNN":
        support = support.searched("approximate")
    elif way == "prototypes":
        _ = support.class_means
    preparing = time.perf_counter() - began
    inference = "unit-prototype" if way == "prototypes" else "knn"
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        scores = class_scores(queries, support, CLASSES, inference, K)
        seconds.append(time.perf_counter() - began)
    megabytes = _memory("VmHWM") - before
    return SupportCost(
        way,
        n,
        preparing,
        1000 * float(np.median(seconds)) / QUERIES,
        megabytes,
        float("nan") if way == "prototypes" else _recall(support, queries),
        float((scores.argmax(axis=1) == wanted).mean()),
    )


def _recall(support: SupportSet, queries: np.ndarray) -> float:
    found, _ = support.nearest(queries, K)
    true, _ = support.searched("exact").nearest(queries, K)
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(found, true, strict=True)]))


def _memory(name: str) -> float:
    """Resident memory of this process in MB, now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1000


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def costs(sizes: Sequence[int]) -> list[SupportCost]:
    """All of them, each in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        return list(pool.map(cost, *zip(*((way, n) for n in sizes for way in WAYS), strict=True)))


def draw(found: Sequence[SupportCost], picture: Path) -> None:
    """Time and memory against the number of embeddings."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for way, marker in zip(WAYS, "os^", strict=True):
        own = [c for c in found if c.way == way]
        axes[0].plot([c.n for c in own], [c.milliseconds for c in own], marker=marker, label=way)
        # Below a megabyte, differences are a matter of memory pages.
        held = [max(1.0, c.megabytes) for c in own]
        axes[1].plot([c.n for c in own], held, marker=marker, label=way)
    sizes = sorted({c.n for c in found})
    held = [4e-6 * WIDTH * n for n in sizes]
    axes[1].plot(sizes, held, "--", color="gray", label="the embeddings themselves")
    for axis, what in zip(axes, ("milliseconds per query", "MB at the peak"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="labelled embeddings", ylabel=what)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
    figure.savefig(picture, dpi=120)
    plt.close(figure)


def table(found: Sequence[SupportCost]) -> str:
    """The costs as Markdown."""
    lines = [
        "| Labelled embeddings | | once, s | ms per query | MB beyond the embeddings "
        f"| recall of the nearest {K} | class right |",
        "|---|---|---|---|---|---|---|",
    ]
    for c in found:
        recall = "" if np.isnan(c.recall) else f"{c.recall:.3f}"
        lines.append(
            f"| {c.n:,} ({4e-6 * WIDTH * c.n:,.0f} MB) | {c.way} | {c.preparing:.2f} "
            f"| {c.milliseconds:.3f} | {max(0.0, c.megabytes):,.0f} | {recall} "
            f"| {100 * c.right:.1f} % |"
        )
    return "\n".join(lines)


def section(sizes: Sequence[int] = SIZES, picture: Path = PICTURE) -> str:
    """Measure, draw, and give the result as Markdown."""
    found = costs(sizes)
    draw(found, picture)
    return (
        "## Growing support sets\n\n"
        f"Unit vectors of {WIDTH} floats in {CLASSES} classes, {QUERIES} queries per call, the "
        f"median of {REPEATS} calls; k = {K}.\n\n"
        f"{table(found)}\n\n"
        "![Time and memory against the number of embeddings](../docs/images/support-growth.png)\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    chosen = parser.parse_args()
    print(section(chosen.sizes, chosen.picture))


if __name__ == "__main__":
    main()

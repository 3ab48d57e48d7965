"""Training sets that grow: what a step costs with 10 to 100,000 examples, beside SetFit's pairs.

    CPTUNING_DATA=folder python -m benchmarks.growth [--sizes 10 100 1000 10000 100000]

SST-2's training sentences, over and over where they are too few. Every size has a process of its
own, in which ``fit`` is begun and left after some steps, and begun again with cross-fitting and
left after its first evaluation. SetFit's pairs are made by its own sampler up to 1,000 examples,
and are arithmetic beyond. Prints a Markdown section and draws docs/images/training-growth.png.
"""

import argparse
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "training-growth.png"
SIZES = (10, 100, 1_000, 10_000, 100_000)
MOST_PAIRED = 1_000
STEPS = 10


@dataclass(frozen=True)
class Cost:
    """What training on so many examples costs us."""

    n: int
    steps: int
    """Of one whole training."""
    batch_size: int
    setting_up: float
    """Seconds, from the call of ``fit`` to the first step."""
    step: float
    """Seconds, the median."""
    evaluation: float
    """Seconds, of one in cross-fitting."""
    megabytes: float
    """Of the process, at the peak of the steps, beyond what the texts took before."""


@dataclass(frozen=True)
class Pairs:
    """The pairs that SetFit trains on."""

    n: int
    count: int
    megabytes: float | None
    """That they take, where they were made."""


def examples(n: int) -> tuple[list[str], list[str]]:
    """So many sentences and their labels, as many of each class."""
    from cptuning.data import full_train

    pool, labels = full_train("SST-2")
    rows = []
    for label in sorted(set(labels)):
        texts = [text for text, own in zip(pool.first, labels, strict=True) if own == label]
        rows += [(text, label) for text in islice(cycle(texts), n // 2)]
    # A space more: repeated sentences are not to share their memory.
    return [f"{text} " for text, _ in rows], [label for _, label in rows]


class Enough(BaseException):
    """Thrown out of ``fit`` when all is measured."""


class Watch:
    """Notes when training starts, evaluates and steps, and leaves it after so many steps."""

    def __init__(self, steps: int) -> None:
        self.most = steps
        self.started = self.evaluated = 0.0
        self.steps: list[float] = []

    def on_start(self, stage: str, step: int, last: int) -> None:
        """All is set up."""
        self.started = perf_counter()

    def on_evaluate(self, step: int, score: object) -> None:
        """An evaluation is over."""
        self.evaluated = perf_counter()

    def on_step(self, step: int, losses: object) -> None:
        """A step is over; perhaps it was the last one wanted."""
        self.steps.append(perf_counter())
        if step == self.most:
            raise Enough

    def on_end(self, step: int) -> None:
        """Nothing to note."""


def cost(n: int) -> Cost:
    """Measure ours in this process."""
    from cptuning import CPTuningClassifier
    from cptuning.data import as_examples

    texts, labels = examples(n)

    def begin(steps: int, **options: Any) -> tuple[float, Watch]:
        watch, began = Watch(steps), perf_counter()
        try:
            CPTuningClassifier(random_state=0, verbose=False, callbacks=[watch], **options).fit(
                texts, labels
            )
        except Enough:
            return began, watch
        raise AssertionError("The training ended before it was measured.")

    before = megabytes("VmRSS")
    began, stepped = begin(STEPS, validation="none")
    peak = megabytes("VmHWM")
    _, crossed = begin(1)
    settings = CPTuningClassifier().settings_for(as_examples(texts), classes=2)
    return Cost(
        n,
        settings.steps,
        min(settings.batch_size, n),
        stepped.started - began,
        float(np.median(np.diff(stepped.steps))),
        crossed.evaluated - crossed.started,
        peak - before,
    )


def pairs(n: int) -> Pairs:
    """Make SetFit's pairs in this process, or count them where they would be too many."""
    # Two equal classes: each text with each of its class, itself too, and of the other one; the
    # fewer kind is drawn again.
    half = n // 2
    count = 2 * max(half * (half + 1), half * half)
    if n > MOST_PAIRED:
        return Pairs(n, count, None)
    from setfit.sampler import ContrastiveDataset

    texts, labels = examples(n)
    before = megabytes("VmRSS")
    made = list(ContrastiveDataset(texts, labels, multilabel=False))
    if len(made) != count:
        raise AssertionError(f"SetFit made {len(made)} pairs of {n} examples, not {count}.")
    return Pairs(n, count, megabytes("VmRSS") - before)


def megabytes(name: str) -> float:
    """Resident memory of this process, now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1000


def each_alone(measure: Callable[[int], Any], sizes: Sequence[int]) -> list[Any]:
    """Of each size, measured in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        return list(pool.map(measure, sizes))


def draw(costs: Sequence[Cost], made: Sequence[Pairs], picture: Path) -> None:
    """Time a step, memory, and the texts that are read to the end, against the examples."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (step, memory, texts) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    sizes = [c.n for c in costs]
    step.plot(sizes, [c.step for c in costs], marker="o", label="ours")
    step.set(ylabel="seconds a step", ylim=(0, 2 * max(c.step for c in costs)))
    memory.plot(sizes, [c.megabytes for c in costs], marker="o", label="ours, all of training")
    counted = [p for p in made if p.megabytes is not None]
    memory.plot(
        [p.n for p in counted],
        [max(1.0, p.megabytes) for p in counted],
        marker="s",
        label="SetFit's list of pairs alone",
    )
    largest = counted[-1]
    beyond = [p for p in made if p.n >= largest.n]
    a_pair = largest.megabytes / largest.count
    memory.plot(
        [p.n for p in beyond],
        [a_pair * p.count for p in beyond],
        "--",
        color="C1",
        label="computed",
    )
    memory.set(yscale="log", ylabel="MB")
    texts.plot(sizes, [c.steps * c.batch_size for c in costs], marker="o", label="ours")
    texts.plot([p.n for p in made], [2 * p.count for p in made], "s--", label="SetFit, one epoch")
    texts.set(yscale="log", ylabel="texts read in one training")
    for axis in (step, memory, texts):
        axis.set(xscale="log", xlabel="labelled examples")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
    figure.savefig(picture, dpi=120)
    plt.close(figure)


def table(costs: Sequence[Cost], made: Sequence[Pairs]) -> str:
    """Ours and SetFit's as Markdown."""
    lines = [
        "| Examples | our steps | s a step | s an evaluation | s before the first step "
        "| our MB | SetFit's pairs | their MB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c, p in zip(costs, made, strict=True):
        taken = "not made" if p.megabytes is None else f"{p.megabytes:,.0f}"
        lines.append(
            f"| {c.n:,} | {c.steps} | {c.step:.2f} | {c.evaluation:.1f} | {c.setting_up:.1f} "
            f"| {c.megabytes:,.0f} | {p.count:,} | {taken} |"
        )
    return "\n".join(lines)


def section(
    quick: bool = False, sizes: Sequence[int] = SIZES, picture: Path | None = PICTURE
) -> str:
    """Measure, draw, and say it in Markdown; the picture is of the whole measurement only."""
    sizes = sizes[:2] if quick else sizes
    costs, made = each_alone(cost, sizes), each_alone(pairs, sizes)
    if picture is not None and not quick:
        draw(costs, made, picture)
    return (
        "## Training sets that grow\n\n"
        "SST-2's training sentences, repeated where they are too few, in two classes; the "
        f"default preset on the embedded backbone, medians of {STEPS - 1} steps. An evaluation "
        "is one of cross-fitting; from some thousand examples on it reads a sample of them. "
        f"SetFit's pairs are its own sampler's up to {MOST_PAIRED:,} examples and computed beyond."
        f"\n\n{table(costs, made)}\n\n"
        "![Time a step, memory and texts read against the number of examples]"
        "(../docs/images/training-growth.png)\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    print(section(sizes=parser.parse_args().sizes))


if __name__ == "__main__":
    main()

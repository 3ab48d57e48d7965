"""Growing training sets: what a step costs with 10 to 100,000 examples, and SetFit's pairs.

    CPTUNING_DATA=folder python -m benchmarks.training_growth [--sizes 10 100 1000 10000 100000]

SST-2's training sentences, repeated where they are too few. Every size has a process of its
own, in which ``fit`` is started and stopped after some steps, then started again with cross-fitting
and stopped after its first evaluation. SetFit's pairs are made by its own sampler up to 1,000
examples, and computed beyond. Prints a Markdown section and draws docs/images/training-growth.png.
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

from cptuning.training import Callback

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "training-growth.png"
SIZES = (10, 100, 1_000, 10_000, 100_000)
MOST_PAIRED = 1_000
STEPS = 10


@dataclass(frozen=True)
class TrainingCost:
    """What our training costs with ``n`` examples."""

    n: int
    steps: int
    """In one whole training."""
    batch_size: int
    setting_up: float
    """Seconds from the call of ``fit`` to the first step."""
    step: float
    """Seconds per step, the median."""
    evaluation: float
    """Seconds per evaluation in cross-fitting."""
    megabytes: float
    """Peak memory of the process during the steps, without what the texts took before."""


@dataclass(frozen=True)
class SetFitPairs:
    """The pairs that SetFit trains on."""

    n: int
    count: int
    megabytes: float | None
    """Their memory, if they were made."""


def examples(n: int) -> tuple[list[str], list[str]]:
    """``n`` sentences and their labels, equally many of each class."""
    from cptuning.data import full_train

    pool, labels = full_train("SST-2")
    rows = []
    for label in sorted(set(labels)):
        texts = [text for text, own in zip(pool.first, labels, strict=True) if own == label]
        rows += [(text, label) for text in islice(cycle(texts), n // 2)]
    # One more space, so that repeated sentences do not share memory.
    return [f"{text} " for text, _ in rows], [label for _, label in rows]


class Enough(BaseException):
    """Raised to leave ``fit`` when everything is measured."""


class Watch(Callback):
    """Records when training starts, evaluates and steps, and stops it after some steps."""

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


def cost(n: int) -> TrainingCost:
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
    return TrainingCost(
        n,
        settings.steps,
        min(settings.batch_size, n),
        stepped.started - began,
        float(np.median(np.diff(stepped.steps))),
        crossed.evaluated - crossed.started,
        peak - before,
    )


def pairs(n: int) -> SetFitPairs:
    """Make SetFit's pairs in this process, or count them where they would be too many."""
    # Two equal classes: each text with each text of its own class, itself included, and with each
    # of the other; the rarer kind is repeated.
    half = n // 2
    count = 2 * max(half * (half + 1), half * half)
    if n > MOST_PAIRED:
        return SetFitPairs(n, count, None)
    from setfit.sampler import ContrastiveDataset

    texts, labels = examples(n)
    before = megabytes("VmRSS")
    made = list(ContrastiveDataset(texts, labels, multilabel=False))
    if len(made) != count:
        raise AssertionError(f"SetFit made {len(made)} pairs of {n} examples, not {count}.")
    return SetFitPairs(n, count, megabytes("VmRSS") - before)


def megabytes(name: str) -> float:
    """Resident memory of this process, now (VmRSS) or at its peak (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1000


def each_alone(measure: Callable[[int], Any], sizes: Sequence[int]) -> list[Any]:
    """Measure each size in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as pool:
        return list(pool.map(measure, sizes))


def draw(costs: Sequence[TrainingCost], made: Sequence[SetFitPairs], picture: Path) -> None:
    """Draw time per step, memory, and the texts of a whole training against the examples."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (step, memory, texts) = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    sizes = [c.n for c in costs]
    step.plot(sizes, [c.step for c in costs], marker="o", label="ours")
    step.set(ylabel="seconds per step", ylim=(0, 2 * max(c.step for c in costs)))
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


def table(costs: Sequence[TrainingCost], made: Sequence[SetFitPairs]) -> str:
    """Ours and SetFit's as Markdown."""
    lines = [
        "| Examples | our steps | s per step | s per evaluation | s before the first step "
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
    """Measure, draw, and give the result as Markdown; a quick measurement is not drawn."""
    sizes = sizes[:2] if quick else sizes
    costs, made = each_alone(cost, sizes), each_alone(pairs, sizes)
    if picture is not None and not quick:
        draw(costs, made, picture)
    return (
        "## Growing training sets\n\n"
        "SST-2's training sentences, repeated where they are too few, in two classes; the "
        f"default preset on the embedded backbone, medians of {STEPS - 1} steps. The "
        "evaluation is that of cross-fitting, which from some thousand examples on uses a sample. "
        f"SetFit's pairs are its own sampler's up to {MOST_PAIRED:,} examples and computed beyond."
        f"\n\n{table(costs, made)}\n\n"
        "![Time per step, memory and texts read against the number of examples]"
        "(../docs/images/training-growth.png)\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    print(section(sizes=parser.parse_args().sizes))


if __name__ == "__main__":
    main()

"""Training compared with SetFit: 16 examples per class of SST-2, the same backbone.

    CPTUNING_DATA=folder python -m benchmarks.training [--seeds 13 21 42 87 100] [--device cuda]

Both are trained to the end. SetFit uses its default recipe: one epoch of all unique pairs, the
rarer kind repeated until there are equally many of both, in batches of 16. Ours is measured as a
user gets it, with the two additional models of cross-fitting that choose the step and calibrate,
and again without them. Every training includes loading the backbone; the test set is scored
afterwards, untimed. Fails if the texts, labels, weights, lengths or threads of the two sides
differ, as their trainers report them, or if SetFit's steps are not those of its recipe.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.alternating import Times, alternate
from benchmarks.setfit_side import (
    encoder_hash,
    require_same,
    saved_backbone,
    setfit_model,
    steps_of_all_pairs,
    train_setfit,
)
from cptuning import CPTuningClassifier
from cptuning.backbone import load_backbone
from cptuning.data import SEEDS, load_dataset_split

THEIRS = "SetFit"
OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    'ours, `validation="none"`': {"validation": "none"},
}


@dataclass(frozen=True)
class TrainedSide:
    """A trained model, and what must be the same on both sides."""

    predict: Callable[[list[str]], Any]
    work: dict[str, Any]


@dataclass(frozen=True)
class TestScore:
    """How good a training was, and what must be the same on both sides."""

    accuracy: float
    work: dict[str, Any]


@dataclass(frozen=True)
class SetFitComparison:
    """What is compared on: the splits of a data set, with fewer test texts if all take too long."""

    dataset: str = "SST-2"
    backbone: str = "embedded"
    k: int = 16
    most_test: int | None = None
    device: str = "cpu"
    settings: tuple[tuple[str, Any], ...] = ()
    """Of our side, in place of the preset's."""

    def sides(self, folder: Path) -> dict[str, Callable[[int], TrainedSide]]:
        """What is timed, by name; each function takes the seed of a split."""
        backbone = load_backbone(self.backbone)
        saved = saved_backbone(folder / "backbone", backbone)
        parts = set(backbone.model.base_model.state_dict())
        classifier = CPTuningClassifier(self.backbone, **dict(self.settings))
        max_length = classifier.settings_for(self._split(SEEDS[0]).train, classes=2).max_length

        def work(pairs: Any, encoder: nn.Module, length: int) -> dict[str, Any]:
            return {
                "texts and labels": sorted(pairs),
                "weights at the start": encoder_hash(encoder, parts),
                "longest input": length,
                "threads": torch.get_num_threads(),
            }

        def theirs(seed: int) -> TrainedSide:
            split = self._split(seed)
            model = setfit_model(saved, max_length, self.device)
            body = model.model_body
            start = work((), body[0].auto_model, body.max_seq_length)
            had, steps = train_setfit(
                model, list(split.train.first), split.train_labels, seed, folder / "checkpoints"
            )
            require_same("SetFit's steps", steps_of_all_pairs(split.train_labels), steps)
            return TrainedSide(model.predict, start | {"texts and labels": sorted(had)})

        def ours(**options: Any) -> Callable[[int], TrainedSide]:
            def side(seed: int) -> TrainedSide:
                split = self._split(seed)
                loaded = load_backbone(self.backbone)
                start = encoder_hash(loaded.model.base_model, parts)
                fitted = CPTuningClassifier(
                    loaded,
                    random_state=seed,
                    device=self.device,
                    verbose=False,
                    **dict(self.settings) | options,
                ).fit(split.train, split.train_labels)
                support = fitted.predictor_.support
                labels = fitted.classes_[support.labels]
                done = work(
                    zip(support.examples.first, labels.tolist(), strict=True),
                    loaded.model.base_model,
                    fitted.predictor_.encoder.layout.max_length,
                )
                return TrainedSide(fitted.predict, done | {"weights at the start": start})

            return side

        return {THEIRS: theirs} | {name: ours(**options) for name, options in OURS.items()}

    def score(self, trained: TrainedSide) -> TestScore:
        """The accuracy on the test set."""
        split = self._split(SEEDS[0])  # all splits have the same test set
        texts, truth = split.test.first, split.test_labels
        answers = trained.predict(list(texts[: self.most_test]))
        right = [a == b for a, b in zip(answers, truth[: self.most_test], strict=True)]
        return TestScore(float(np.mean(right)), trained.work)

    def _split(self, seed: int) -> Any:
        return load_dataset_split(self.dataset, k=self.k, seed=seed)


def measure(comparison: SetFitComparison, seeds: Sequence[int]) -> Times:
    """Time the sides on each split in turns, after a warm-up with two examples per class."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def warm() -> None:
            for side in replace(comparison, k=2).sides(folder).values():
                side(seeds[0])

        times = alternate(comparison.sides(folder), list(seeds), warm=warm, after=comparison.score)
    for theirs, *ours in zip(*times.results.values(), strict=True):
        for what in theirs.work:
            for side in ours:
                require_same(what, side.work[what], theirs.work[what])
    return times


def table(times: Times) -> str:
    """Seconds, ratios and accuracies as Markdown."""
    lines = [
        "| | seconds, median | share of SetFit's time (least to most) | accuracy, % |",
        "|---|---|---|---|",
    ]
    for name in times.seconds:
        accuracies = [100 * score.accuracy for score in times.results[name]]
        spread = f" ± {np.std(accuracies, ddof=1):.1f}" if len(accuracies) > 1 else ""
        share = "1" if name == THEIRS else f"{times.ratio(name, THEIRS)}"
        lines.append(
            f"| {name} | {times.median(name):.1f} | {share} | {np.mean(accuracies):.1f}{spread} |"
        )
    return "\n".join(lines)


def section(quick: bool = False, seeds: Sequence[int] = SEEDS, device: str = "cpu") -> str:
    """Measure, and give the result as Markdown."""
    seeds = seeds[:1] if quick else seeds
    times = measure(SetFitComparison(device=device), seeds)
    where = f"{torch.get_num_threads()} threads"
    if torch.device(device).type == "cuda":
        where = f"one {torch.cuda.get_device_name(device)}"
    return (
        "## Training, 16 examples per class of SST-2\n\n"
        "SetFit's default recipe and ours on the embedded backbone, both to the end, loading "
        f"included, {where}; splits {', '.join(map(str, seeds))}; "
        f"accuracy on the whole test set.\n\n{table(times)}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--device", default="cpu")
    chosen = parser.parse_args()
    print(section(seeds=chosen.seeds, device=chosen.device))


if __name__ == "__main__":
    main()

"""Training beside SetFit: 16 examples a class of SST-2, the same backbone, each to its own end.

    CPTUNING_DATA=folder python -m benchmarks.training [--seeds 13 21 42 87 100] [--device cuda]

SetFit has its default recipe: one epoch of all unique pairs, the rarer kind drawn again until both
kinds are as many, in batches of 16. Ours is measured as a user gets it, with the two more models
of cross-fitting that choose the step and calibrate, and again without them. Every training
includes the loading of the backbone; the test set is scored afterwards, untimed. Fails where the
sides had other texts, labels, weights, lengths or threads, as their trainers have them, or where
SetFit made other than the steps of its recipe.
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
class Trained:
    """A trained model, and what must be the same on both sides."""

    predict: Callable[[list[str]], Any]
    work: dict[str, Any]


@dataclass(frozen=True)
class Score:
    """How good a training was, and what must be the same on both sides."""

    accuracy: float
    work: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """The work: a data set's splits, cut to a number of texts where all would take too long."""

    dataset: str = "SST-2"
    backbone: str = "embedded"
    k: int = 16
    most_test: int | None = None
    device: str = "cpu"
    settings: tuple[tuple[str, Any], ...] = ()
    """Of ours, in place of the preset's."""

    def sides(self, folder: Path) -> dict[str, Callable[[int], Trained]]:
        """What is timed, by its name: each takes the seed of a split."""
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

        def theirs(seed: int) -> Trained:
            split = self._split(seed)
            model = setfit_model(saved, max_length, self.device)
            body = model.model_body
            start = work((), body[0].auto_model, body.max_seq_length)
            had, steps = train_setfit(
                model, list(split.train.first), split.train_labels, seed, folder / "checkpoints"
            )
            require_same("SetFit's steps", steps_of_all_pairs(split.train_labels), steps)
            return Trained(model.predict, start | {"texts and labels": sorted(had)})

        def ours(**options: Any) -> Callable[[int], Trained]:
            def side(seed: int) -> Trained:
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
                return Trained(fitted.predict, done | {"weights at the start": start})

            return side

        return {THEIRS: theirs} | {name: ours(**options) for name, options in OURS.items()}

    def score(self, trained: Trained) -> Score:
        """The accuracy on the test set."""
        split = self._split(SEEDS[0])  # all splits have the same test set
        texts, truth = split.test.first, split.test_labels
        answers = trained.predict(list(texts[: self.most_test]))
        right = [a == b for a, b in zip(answers, truth[: self.most_test], strict=True)]
        return Score(float(np.mean(right)), trained.work)

    def _split(self, seed: int) -> Any:
        return load_dataset_split(self.dataset, k=self.k, seed=seed)


def measure(task: Task, seeds: Sequence[int]) -> Times:
    """Time the sides on each split in turns, after each has warmed up with two examples a class."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def warm() -> None:
            for side in replace(task, k=2).sides(folder).values():
                side(seeds[0])

        times = alternate(task.sides(folder), list(seeds), warm=warm, after=task.score)
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
    """Measure, and say it in Markdown."""
    seeds = seeds[:1] if quick else seeds
    times = measure(Task(device=device), seeds)
    where = f"{torch.get_num_threads()} threads"
    if torch.device(device).type == "cuda":
        where = f"one {torch.cuda.get_device_name(device)}"
    return (
        "## Training, 16 examples a class of SST-2\n\n"
        "SetFit's default recipe and ours on the embedded backbone, each to its own end, loading "
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

"""Whether exported models give the same labels as torch, on the paper's test sets.

    CPTUNING_DATA=folder python -m benchmarks.agreement [--datasets SST-2] [--rows N] [--steps N]
                                                        [--seed 13] [--no-second-look]

For each data set, trains on a 16-shot split (``--steps 0``: not at all), exports in float32 and in
8 bits, and compares the labels on the test set. Answers whose two best scores differ by less than
1e-4 in torch are counted separately: there, rounding decides.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import cptuning
from cptuning import CPTuningClassifier
from cptuning.data import PAPER_DATASETS, Examples, load_dataset_split
from cptuning.export import export_onnx

TIE = 1e-4
HEAD = (
    "| | | texts | ties | other labels | the same | mean cosine |",
    "|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Agreement:
    """How the answers of an exported model compare with torch's."""

    texts: int
    ties: int
    other_labels: int
    """Among the texts that are not a tie in torch."""
    cosine: float
    """The mean similarity of the embeddings."""

    @property
    def share(self) -> float:
        """The share of the same answers, without ties."""
        return 1 - self.other_labels / max(self.texts - self.ties, 1)


def agreements(
    original: CPTuningClassifier, test: Examples, folder: Path, second_look: bool = True
) -> Iterator[tuple[str, Agreement]]:
    """By precision, how the model answers when it is loaded from its exported folder."""
    expected = original.transform(test)
    labels = original.predictor_.labels_of(expected)
    scores = np.sort(original.predictor_.scores(expected), axis=1)
    ties = scores[:, -1] - scores[:, -2] < TIE
    for precision, int8 in (("float32", False), ("int8", True)):
        export_onnx(original, folder / precision, int8=int8, second_look=second_look)
        exported = cptuning.load(folder / precision)
        answered = exported.predictor_.answer(test)
        yield (
            precision,
            Agreement(
                texts=len(test),
                ties=int(ties.sum()),
                other_labels=int(((labels != answered.labels) & ~ties).sum()),
                cosine=float((expected * answered.embeddings).sum(axis=1).mean()),
            ),
        )


def rows(
    datasets: Sequence[str] = PAPER_DATASETS,
    most: int | None = None,
    steps: int | None = None,
    seed: int = 13,
    second_look: bool = True,
) -> Iterator[str]:
    """One row of the table per data set and precision."""
    for name in datasets:
        split = load_dataset_split(name, seed=seed)
        chosen = np.random.default_rng(0).permutation(len(split.test))[:most]
        classifier = CPTuningClassifier(
            steps=steps, validation="none", random_state=seed, verbose=False
        ).fit(split.train, split.train_labels)
        with tempfile.TemporaryDirectory() as folder:
            test = split.test.take(chosen)
            for precision, found in agreements(classifier, test, Path(folder), second_look):
                yield (
                    f"| {name} | {precision} | {found.texts} | {found.ties} | {found.other_labels} "
                    f"| {100 * found.share:.2f} % | {found.cosine:.5f} |"
                )


def section(quick: bool = False) -> str:
    """Measure, and give the result as Markdown."""
    found = list(rows(most=100 if quick else None))
    return "\n".join(
        [
            "## Labels of exported models",
            "",
            "Torch's label or another, from the models of split 13; ties are texts whose two best "
            "scores differ by less than 1e-4 in torch.",
            "",
            *HEAD,
            *found,
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="*", default=list(PAPER_DATASETS))
    parser.add_argument("--rows", type=int, help="at most this many of each test set")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--no-second-look", action="store_true")
    chosen = parser.parse_args()
    print(*HEAD, sep="\n")
    second_look = not chosen.no_second_look
    for row in rows(chosen.datasets, chosen.rows, chosen.steps, chosen.seed, second_look):
        print(row, flush=True)


if __name__ == "__main__":
    main()

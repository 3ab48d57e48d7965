"""What names and descriptions of labels are worth, from no example to sixteen per class.

    CPTUNING_DATA=folder python -m benchmarks.descriptions [--sets TREC HWU64] [--shots 0 1 2] \
        [--splits 13] [--backbones embedded FOLDER]

The sets, draws and test texts are those of ``benchmarks.everyday``, at most 300 test texts of each
set; the examples of fewer shots are the first ones of each class among those of more. The preset is
"instant". ``none`` are examples alone; ``names`` adds the words of the labels themselves;
``descriptions`` adds the sentences in benchmarks/label_descriptions.json, which were written from
the meaning of the labels before the first run. ``forced`` are names of weight 1 whatever held-out
answers say of them, and ``shuffled`` are the names of other classes: what choosing the weight is
worth when names mislead. Every run adds one line to the output file; when started again, the
command skips these runs.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.everyday.data import SETS, SPLITS, Task, TaskData, load_task, stratified_rows
from benchmarks.everyday.encoders import weights_hash
from benchmarks.runs import Job, run_all
from cptuning import CPTuningClassifier
from cptuning.backbone import load_backbone
from cptuning.data import LabelledData, words_of

RECORDS = Path("benchmarks/descriptions.jsonl")
SENTENCES = Path(__file__).with_name("label_descriptions.json")
SHOTS = (0, 1, 2, 4, 8, 16)
WORDS = ("none", "names", "descriptions", "forced", "shuffled")
MOST_TEST = 300
EMBEDDED = "embedded"


@lru_cache(maxsize=1)
def data_of(name: str, split: int) -> TaskData:
    """Sixteen examples of each class, and the test texts."""
    data = load_task(Task(name, max(SHOTS), split))
    rows = stratified_rows(data.test.labels, MOST_TEST, seed=0)
    return TaskData(data.train, data.test.take(rows), data.outside)


def first_of_each(train: LabelledData, shots: int) -> LabelledData:
    """The first examples of each class.

    >>> from cptuning.data import Examples
    >>> first_of_each(LabelledData(Examples(("x", "y", "z")), ["a", "a", "b"]), 1).labels
    ['a', 'b']
    """
    seen: Counter[Any] = Counter()
    rows = []
    for row, label in enumerate(train.labels):
        seen[label] += 1
        if seen[label] <= shots:
            rows.append(row)
    return train.take(rows)


def descriptions(words: str, name: str, labels: Sequence[str]) -> Any:
    """What says what the labels mean, as ``fit`` takes it.

    >>> descriptions("shuffled", "TREC", ["card_lost", "top_up"])
    {'card_lost': 'top up', 'top_up': 'card lost'}
    """
    classes = sorted(set(labels))
    if words == "none":
        return None
    if words == "descriptions":
        return json.loads(SENTENCES.read_text("utf-8"))[name]
    if words == "shuffled":  # Each class has the name of the next one.
        return dict(zip(classes, map(words_of, [*classes[1:], classes[0]]), strict=True))
    return classes


def one_run(job: Job) -> Job:
    """The accuracy of one fit on the test texts, and what leave-one-out said and chose."""
    data = data_of(job["set"], job["split"])
    train = first_of_each(data.train, job["shots"])
    classifier = CPTuningClassifier(
        loaded(job["backbone"]),
        preset="instant",
        verbose=False,
        description_weight=1.0 if job["words"] == "forced" else None,
    )
    classifier.fit(
        train.examples,
        train.labels,
        label_descriptions=descriptions(job["words"], job["set"], data.train.labels),
    )
    answers = classifier.predict(data.test.examples)
    truth = np.array(data.test.labels)
    recalls = [np.mean(answers[truth == label] == label) for label in np.unique(truth)]
    return {
        "accuracy": round(float(np.mean(answers == truth)), 5),
        "mean_recall": round(float(np.mean(recalls)), 5),
        "held_out": classifier.held_out_score_,
        "weight": classifier.settings_.description_weight,
        "sentence_weight": classifier.settings_.sentence_weight,
        "test_texts": len(truth),
        "classes": len(classifier.classes_),
    }


@lru_cache
def loaded(backbone: str) -> Any:
    """A backbone: the embedded one, or that of a folder."""
    return backbone if backbone == EMBEDDED else load_backbone(backbone)


def planned(sets: Sequence[str], shots: Sequence[int], splits: Sequence[int]) -> list[Job]:
    """All runs, those of a set's data together."""
    described = json.loads(SENTENCES.read_text("utf-8"))
    return [
        {"set": name, "split": split, "shots": k, "words": words}
        for split in splits
        for name in sets
        for k in shots
        for words in WORDS
        if (words != "descriptions" or name in described)
        and (k > 0 or words in ("names", "descriptions"))
    ]


def table(records: Sequence[Job]) -> str:
    """Accuracy in % by set, words and shots: the mean over the splits; and the weights chosen."""
    lines = [
        "| set | labels | " + " | ".join(map(str, SHOTS)) + " | weights |",
        "|---|---|" + "---|" * (len(SHOTS) + 1),
    ]
    whole: dict[str, list[list[float]]] = {words: [] for words in WORDS}
    sets = [name for name in SETS if any(r["set"] == name for r in records)]
    for name in sets:
        for words in WORDS:
            cells, weights = [], []
            for shots in SHOTS:
                key = (name, words, shots)
                found = [r for r in records if (r["set"], r["words"], r["shots"]) == key]
                cells.append(np.mean([r["accuracy"] for r in found]) if found else np.nan)
                weights += ["/".join(f"{r['weight']:g}" for r in found if r["weight"] is not None)]
            if np.isnan(cells).all():
                continue
            if words != "descriptions":
                whole[words].append(cells)
            chosen = (
                ", ".join(weights[1:]) if words in ("names", "descriptions", "shuffled") else ""
            )
            lines.append(f"| {name} | {words} | {_row(cells)} | {chosen} |")
    for words, rows in whole.items():
        if rows:
            lines.append(f"| **mean of {len(rows)} sets** | {words} | {_row(_means(rows))} | |")
    return "\n".join(lines)


def _means(rows: Sequence[Sequence[float]]) -> list[float]:
    """The mean of each column, if no set is missing in it."""
    return [float(np.mean(column)) for column in np.array(rows).T]


def _row(cells: Sequence[float]) -> str:
    return " | ".join("-" if np.isnan(cell) else f"{100 * cell:.1f}" for cell in cells)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is left, and print the table of each backbone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--shots", nargs="+", type=int, default=list(SHOTS), choices=SHOTS)
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--words", nargs="+", default=list(WORDS), choices=WORDS)
    parser.add_argument("--backbones", nargs="+", default=[EMBEDDED], metavar="NAME")
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args(arguments)
    for backbone in chosen.backbones:
        # A folder's name is not the same on every machine; its weights are.
        own = backbone if backbone == EMBEDDED else weights_hash(Path(backbone))
        jobs = [
            {**job, "encoder": own}
            for job in planned(chosen.sets, chosen.shots, chosen.splits)
            if job["words"] in chosen.words
        ]
        records = run_all(
            jobs, lambda job, name=backbone: one_run(job | {"backbone": name}), chosen.output
        )
        print(f"\n{Path(backbone).name}\n", table(records), sep="\n")


if __name__ == "__main__":
    main()

"""Long texts in windows, truncated, and as bags of words: 20Newsgroups.

    CPTUNING_DATA=folder python -m benchmarks.long_texts [--shots 8 16] [--test 500] \
        [--presets instant default]

A preset with ``long_texts="truncate"`` and ``"windows"``, and TF-IDF (unigrams and bigrams,
sublinear) with logistic regression, which reads the whole text. For each draw the command prints
the accuracy of held-out answers to the training examples (leave-one-out with the preset "instant"),
by which ``long_texts`` is chosen, and the accuracy on a stratified sample of the test texts: of
all, and of those that do not fit into one window. Every run adds one line to the output file; when
started again, the command skips these runs.

The rule, written down before the first run: the presets take "windows" if, over the draws, the
leave-one-out accuracy is higher on average by more than its standard error; otherwise "truncate".
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.everyday.data import SPLITS, Task, load_task, stratified_rows
from benchmarks.runs import Job, run_all
from cptuning import CPTuningClassifier
from cptuning.data import LabelledData

RECORDS = Path("benchmarks/long_texts.jsonl")
NAME = "20Newsgroups"
WAYS = ("truncate", "windows", "tf-idf")
SHOTS = (8, 16)
INSTANT = "instant"
"""The preset of runs that name none."""


def one_run(job: Job) -> Job:
    """Fit one way to one draw, and answer the test texts."""
    data = load_task(Task(job["dataset"], job["shots"], job["split"]))
    test = data.test.take(stratified_rows(data.test.labels, job["test"], seed=0))
    result = with_words(data.train, test) if job["way"] == "tf-idf" else embedded(job, data, test)
    answers = result.pop("answers")
    right = np.array(answers) == np.array(test.labels)
    long = windows_of_each(job, test) > 1
    return {
        "accuracy": round(float(right.mean()), 5),
        "long": round(float(right[long].mean()), 5) if long.any() else None,
        "share_of_long": round(float(long.mean()), 5),
        **result,
    }


def embedded(job: Job, data: object, test: LabelledData) -> Job:
    """The answers of a model, the accuracy of its held-out answers, and its seconds."""
    preset = job.get("preset", INSTANT)
    classifier = CPTuningClassifier(preset=preset, long_texts=job["way"], verbose=False)
    began = time.perf_counter()
    classifier.fit(*data.train)
    fitted = time.perf_counter()
    answers = classifier.predict(test.examples)
    return {
        "answers": answers.tolist(),
        "left_out": round(classifier.held_out_score_, 5),
        "fit_seconds": round(fitted - began, 2),
        "texts_per_second": round(len(test.labels) / (time.perf_counter() - fitted), 1),
    }


def with_words(train: LabelledData, test: LabelledData) -> Job:
    """The answers of logistic regression on TF-IDF."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    model = make_pipeline(words, LogisticRegression(max_iter=1000, C=10))
    model.fit(train.examples.first, train.labels)
    return {"answers": model.predict(test.examples.first).tolist(), "left_out": None}


def windows_of_each(job: Job, data: LabelledData) -> np.ndarray:
    """In how many windows each text is read."""
    from cptuning.inference.embedded_encoder import EmbeddedEncoder
    from cptuning.methods.cp_tuning_settings import settings_for
    from cptuning.prompting import Template

    settings = settings_for("instant", pair=False, long_texts="windows")
    template = Template.parse(settings.template, needs_output=True)
    encoder = EmbeddedEncoder.untrained(template, settings.max_length, None, settings.windows)
    return np.array([1 + len(e.windows) for e in encoder.layout.encode(data.examples)])


def table(records: Sequence[Job]) -> str:
    """One row per way and number of examples: means over the draws ± standard deviation, in %."""
    lines = [
        "| 20Newsgroups | examples per class | draws | held-out | test | long test texts "
        "| texts per second |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = {(r["shots"], r.get("preset", INSTANT), r["way"]): [] for r in records}
    for record in records:
        rows[record["shots"], record.get("preset", INSTANT), record["way"]].append(record)
    for shots, preset, way in sorted(rows, key=_place):
        runs = rows[shots, preset, way]
        figures = [_shown(runs, name) for name in ("left_out", "accuracy", "long")]
        speeds = [r["texts_per_second"] for r in runs if "texts_per_second" in r]
        speed = f"{np.median(speeds):.0f}" if speeds else "–"
        title = way if way == "tf-idf" else f"{preset}, {way}"
        lines.append(f"| {title} | {shots} | {len(runs)} | {' | '.join(figures)} | {speed} |")
    return "\n".join(lines)


def _place(row: tuple[int, str, str]) -> tuple[int, bool, bool, int]:
    """Fewer examples first; then bags of words last, the preset "instant" first."""
    shots, preset, way = row
    return shots, way == "tf-idf", preset != INSTANT, WAYS.index(way)


def _shown(runs: Sequence[Job], name: str) -> str:
    values = [100 * r[name] for r in runs if r[name] is not None]
    return f"{np.mean(values):.1f} ± {np.std(values):.1f}" if values else "–"


def choice(records: Sequence[Job]) -> str:
    """What the rule says, which is about the preset "instant"."""
    records = [r for r in records if r.get("preset", INSTANT) == INSTANT]
    by_way = {
        way: {(r["shots"], r["split"]): r["left_out"] for r in records if r["way"] == way}
        for way in ("truncate", "windows")
    }
    draws = sorted(set(by_way["truncate"]) & set(by_way["windows"]))
    if len(draws) < 2:
        return "There are too few draws to choose by."
    gains = 100 * np.array([by_way["windows"][d] - by_way["truncate"][d] for d in draws])
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    better = "windows" if gains.mean() > error else "truncate"
    return (
        f"Windows gain {gains.mean():+.1f} ± {error:.1f} points in leave-one-out answers over "
        f'{len(draws)} draws: the rule takes "{better}".'
    )


def main() -> None:
    """Run what is left, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shots", nargs="+", type=int, default=list(SHOTS))
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS))
    parser.add_argument("--presets", nargs="+", default=[INSTANT])
    parser.add_argument("--test", type=int, default=500)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args()
    jobs = [
        {"dataset": NAME, "way": way, "shots": shots, "split": split, "test": chosen.test}
        | ({} if preset == INSTANT else {"preset": preset})
        for shots in chosen.shots
        for preset in chosen.presets
        for split in chosen.splits
        for way in WAYS
        if preset == INSTANT or way != "tf-idf"
    ]
    records = run_all(jobs, one_run, chosen.output, chosen.workers)
    print(table(records), choice(records), sep="\n\n")


if __name__ == "__main__":
    main()

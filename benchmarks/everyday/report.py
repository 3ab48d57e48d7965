"""What the records of the everyday benchmark say: tables, and one picture."""

from collections.abc import Iterable, Sequence
from statistics import mean, stdev

from benchmarks.everyday.data import (
    MOST_TEST,
    PUBLISHED,
    PUBLISHED_SETS,
    PUBLISHED_SHOTS,
    SETS,
    SHOTS,
    SPLITS,
    TASKS,
    TEST_SEED,
)
from benchmarks.everyday.rows import (
    ROWS,
    SETFIT_SECONDS,
    SETFIT_SETS,
    SETFIT_SPLITS,
    Row,
)
from benchmarks.runs import Job
from cptuning.errors import CPTuningError
from cptuning.reporting.figures import accuracy_by_seconds_png

# Accuracy in % on the published splits, as the repository lists it that published them.
PUBLISHED_SOURCE = "jianguoz/Few-Shot-Intent-Detection"
PUBLISHED_FIGURES = {
    "RoBERTa, fine-tuned": {("CLINC150", 5): 88.0, ("HWU64", 5): 75.6}
    | {("CLINC150", 10): 91.6, ("HWU64", 10): 82.9},
    "DNNC": {("CLINC150", 5): 91.0, ("HWU64", 5): 80.5},
    "CPFT": {("CLINC150", 5): 92.3, ("HWU64", 5): 82.0},
    "ICDA": {("CLINC150", 5): 92.6, ("HWU64", 5): 82.5}
    | {("CLINC150", 10): 94.8, ("HWU64", 10): 87.4},
}


class Records:
    """The latest record of every task and row."""

    def __init__(self, records: Iterable[Job]) -> None:
        self._latest = {
            (r["row"], r["encoder"], r["set"], r["shots"], r["split"]): r for r in records
        }

    def of(
        self, row: Row, sets: Sequence[str], shots: int, splits: Sequence[int | str]
    ) -> dict[str, list[Job]]:
        """A row's records by data set; a set without any is left out."""
        found = {
            name: [
                self._latest[key]
                for split in splits
                if (key := (row.kind, row.encoder, name, shots, split)) in self._latest
            ]
            for name in sets
        }
        return {name: records for name, records in found.items() if records}

    def missing(self, row: Row) -> int:
        """On how many of its tasks a row was not run."""
        return sum(
            (row.kind, row.encoder, task.name, task.shots, task.split) not in self._latest
            for task in TASKS
            if row.covers(task)
        )


def mean_over_sets(by_set: dict[str, list[Job]], value: str) -> float:
    """The mean over sets of the mean over splits: each set counts the same."""
    return mean(mean(record[value] for record in records) for records in by_set.values())


def timed(by_set: dict[str, list[Job]]) -> dict[str, list[Job]]:
    """The records whose seconds are a CPU's; a set without any is left out."""
    found = {n: [r for r in own if "on_gpu" not in r] for n, own in by_set.items()}
    return {name: own for name, own in found.items() if own}


def accuracy_table(
    records: Records,
    rows: Sequence[Row],
    sets: Sequence[str],
    shots: int,
    splits: Sequence[int | str],
) -> str:
    """Accuracy and seconds beside each other: the means over the sets, then every set."""
    head = ["", "accuracy", "macro F1", "fit, s", "1,000 texts, s", *sets]
    lines = [_line(head), "|---" * len(head) + "|"]
    for row in rows:
        by_set = records.of(row, sets, shots, splits)
        if not by_set:
            continue
        lines.append(
            _line(
                [
                    row.title + _gaps(by_set, sets, splits),
                    f"{100 * mean_over_sets(by_set, 'accuracy'):.1f}",
                    f"{100 * mean_over_sets(by_set, 'macro_f1'):.1f}",
                    _mean_seconds(by_set, "fit_seconds"),
                    _mean_seconds(by_set, "seconds_per_1000"),
                    *(_accuracy(by_set.get(name, [])) for name in sets),
                ]
            )
        )
    return "\n".join(lines)


def published_table(records: Records) -> str:
    """The published splits, ours above and other systems' figures below."""
    columns = [(name, shots) for name in PUBLISHED_SETS for shots in PUBLISHED_SHOTS]
    head = ["", *(f"{name}, {shots}-shot" for name, shots in columns)]
    lines = [_line(head), "|---" * len(head) + "|"]
    for row in ROWS:
        cells = []
        for name, shots in columns:
            found = records.of(row, [name], shots, [PUBLISHED]).get(name, [])
            cells += [
                f"{100 * r['accuracy']:.1f}"
                + f" ({_seconds(r['fit_seconds'])} s)" * ("on_gpu" not in r)
                for r in found
            ] or ["-"]
        if set(cells) != {"-"}:
            lines.append(_line([row.title, *cells]))
    for system, figures in PUBLISHED_FIGURES.items():
        shown = [f"{figures[c]:.1f}" if c in figures else "-" for c in columns]
        lines.append(_line([f"*{system}*", *shown]))
    return "\n".join(lines)


def out_of_scope_table(records: Records) -> str:
    """AUROC with which a row tells CLINC150's out-of-scope queries from the others."""
    head = ["", *(f"{shots} per class" for shots in SHOTS)]
    lines = [_line(head), "|---" * len(head) + "|"]
    for row in ROWS:
        cells = []
        for shots in SHOTS:
            found = records.of(row, ["CLINC150"], shots, SPLITS).get("CLINC150", [])
            values = [r["oos_auroc"] for r in found if r["oos_auroc"] is not None]
            cells.append(_spread(values, "{:.3f}") if values else "-")
        if set(cells) != {"-"}:
            lines.append(_line([row.title, *cells]))
    return "\n".join(lines)


def report(all_records: Iterable[Job]) -> str:
    """The whole page, from all records."""
    found = list(all_records)
    records = Records(found)
    seeds = ", ".join(map(str, SPLITS))
    machines = ", ".join(sorted({record["machine"] for record in found})) or "nothing"
    parts = [
        "# Everyday benchmark",
        "Written by `python -m benchmarks.everyday` from "
        "[everyday.jsonl](everyday.jsonl). Accuracy in %, mean (± standard deviation) over the "
        f"splits with seeds {seeds}. A set has at most {MOST_TEST:,} test texts, drawn with seed "
        f"{TEST_SEED}; a class with too few training texts gives those it has. CLINC150 is without "
        "its out-of-scope queries. The first four columns are means over the sets. Seconds are CPU "
        "seconds of one thread, after everything is imported; a frozen encoder's are those of "
        "embedding (bfloat16, batches of 32) and of the regression, and our own contain loading "
        "the backbone; runs on a GPU have none. Our own read the first 128 tokens of a text "
        '(`long_texts="truncate"`), which only matters for 20Newsgroups, where whole texts are '
        f"[better](../docs/long-texts.md). Measured on: {machines}.",
        *_notes(found),
    ]
    for shots in SHOTS:
        others = [row for row in ROWS if row.kind != "setfit"]
        parts += [
            f"## {shots} examples per class",
            accuracy_table(records, others, SETS, shots, SPLITS),
        ]
    if any(records.of(row, SETFIT_SETS, 8, SETFIT_SPLITS) for row in ROWS if row.kind == "setfit"):
        parts += [
            "## Beside SetFit, 8 examples per class",
            f"SetFit 1.2's default recipe, ended after {SETFIT_SECONDS // 60} minutes "
            f"(`max_steps`); {_setfit_steps(records)}. Six sets, splits "
            f"{', '.join(map(str, SETFIT_SPLITS))}, for all rows.",
            accuracy_table(records, ROWS, SETFIT_SETS, 8, SETFIT_SPLITS),
        ]
    parts += [
        "## Published splits",
        "The published training examples and the whole test set, accuracy and seconds to fit. In "
        f"italics: figures of other systems, not run here ({PUBLISHED_SOURCE}).",
        published_table(records),
        "## Out-of-scope queries of CLINC150",
        "AUROC with which a row's own confidence separates the 1,000 out-of-scope queries from "
        "test texts in scope: the highest probability, and for ours the similarity to the nearest "
        "training example.",
        out_of_scope_table(records),
    ]
    missing = [(row, n) for row in ROWS if (n := records.missing(row))]
    if missing:
        parts += [
            "## Not run yet",
            "\n".join(f"- {row.title}: {n} {'task' if n == 1 else 'tasks'}" for row, n in missing),
        ]
    return "\n\n".join(parts) + "\n"


def picture(all_records: Iterable[Job]) -> bytes:
    """Accuracy against seconds to fit, 8 examples per class, as PNG.

    The means are over the tasks that all drawn rows have in common, so they can be compared;
    those of seconds over the ones that every row was fitted to on a CPU. A row is drawn if it was
    run on at least half of SetFit's tasks, and on a CPU on one of them.
    """
    records = Records(all_records)
    measured = {
        row: _places(records.of(row, SETS, 8, SPLITS)) for row in ROWS if row.kind != "majority"
    }
    compared = set().union(*(found for row, found in measured.items() if row.kind == "setfit"))
    compared = compared or {(name, split) for name in SETS for split in SPLITS}
    on_cpu = {row: _places(timed(records.of(row, SETS, 8, SPLITS))) & compared for row in measured}
    rows = [
        row
        for row, found in measured.items()
        if on_cpu[row] and 2 * len(found & compared) >= len(compared)
    ]
    if len(rows) < 2:
        raise CPTuningError("No two rows have tasks in common: run them on the same ones.")
    shared = compared.intersection(*(measured[row] for row in rows))
    timed_by_all = shared.intersection(*(on_cpu[row] for row in rows))
    if not timed_by_all:
        raise CPTuningError("No task was run on a CPU by all rows: the picture has no seconds.")
    points = {}
    for row in rows:
        accuracy = mean_over_sets(_of_tasks(records, row, sorted(shared)), "accuracy")
        seconds = mean_over_sets(_of_tasks(records, row, sorted(timed_by_all)), "fit_seconds")
        points[_METHODS[row.kind], row.encoder or ""] = (seconds, 100 * accuracy)
    sets = len({name for name, _ in shared})
    note = f"8 examples per class, mean over {sets} data sets ({len(shared)} tasks)"
    return accuracy_by_seconds_png(points, note)


def _places(by_set: dict[str, list[Job]]) -> set[tuple[str, int]]:
    """The tasks of records."""
    return {(name, record["split"]) for name, records in by_set.items() for record in records}


def _of_tasks(records: Records, row: Row, tasks: Sequence[tuple[str, int]]) -> dict[str, list[Job]]:
    """A row's records of 8 examples per class on some tasks, by data set."""
    by_set: dict[str, list[Job]] = {}
    for name, split in tasks:
        by_set.setdefault(name, []).extend(records.of(row, [name], 8, [split])[name])
    return by_set


_METHODS = {
    "tfidf": "TF-IDF + LR",
    "frozen": "frozen + LR",
    "setfit": "SetFit",
    "instant": "CP-Tuning, instant",
    "default": "CP-Tuning, default",
}


def _notes(records: Iterable[Job]) -> list[str]:
    """What is to be held against some of the records, each remark once."""
    return list(dict.fromkeys(r["note"] for r in records if "note" in r))


def _setfit_steps(records: Records) -> str:
    """What share of its own steps SetFit made."""
    shares = {
        name: mean(r["steps"] / r["all_steps"] for r in own)
        for row in ROWS
        if row.kind == "setfit"
        for name, own in records.of(row, SETFIT_SETS, 8, SETFIT_SPLITS).items()
    }
    cut = [f"{name} {100 * share:.0f} %" for name, share in shares.items() if share < 1]
    return "of its steps it made " + ", ".join(cut) if cut else "it made all of its steps"


def _gaps(by_set: dict[str, list[Job]], sets: Sequence[str], splits: Sequence[int | str]) -> str:
    """What a row lacks, in brackets."""
    gaps = []
    if len(by_set) < len(sets):
        gaps.append(f"{len(by_set)} of {len(sets)} sets")
    fewest = min(map(len, by_set.values()))
    if fewest < len(splits):
        gaps.append(f"from {fewest} of {len(splits)} splits")
    return f" ({', '.join(gaps)})" if gaps else ""


def _accuracy(records: Sequence[Job]) -> str:
    return _spread([100 * r["accuracy"] for r in records], "{:.1f}") if records else "-"


def _spread(values: Sequence[float], form: str) -> str:
    """Mean ± standard deviation, if there is any.

    >>> _spread([1, 2, 3], "{:.1f}"), _spread([2, 2], "{:.1f}")
    ('2.0 ± 1.0', '2.0')
    """
    spread = stdev(values) if len(values) > 1 else 0.0
    return form.format(mean(values)) + (f" ± {form.format(spread)}" if spread else "")


def _mean_seconds(by_set: dict[str, list[Job]], value: str) -> str:
    """The mean over sets of what was measured on a CPU."""
    on_cpu = timed(by_set)
    return _seconds(mean_over_sets(on_cpu, value)) if on_cpu else "-"


def _seconds(value: float) -> str:
    """Two digits.

    >>> _seconds(0.0), _seconds(0.123), _seconds(4.56), _seconds(123.4)
    ('0', '0.12', '4.6', '123')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"

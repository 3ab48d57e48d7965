"""What the records of the benchmark of label sets say, as a table."""

from collections.abc import Sequence
from statistics import mean, stdev

from benchmarks.label_sets.rows import ROWS, SetsRow
from benchmarks.runs import Job

VALUES = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "sample_f1": "sample F1",
    "subset_accuracy": "exact sets",
    "average_precision": "average precision",
}


def table(records: Sequence[Job]) -> str:
    """One row per method that was run: means over its splits in %, and seconds to fit.

    >>> record = {"row": "tfidf", "encoder": None, "split": 13, "fit_seconds": 2.0}
    >>> print(table([record | dict.fromkeys(VALUES, 0.25)]).splitlines()[-1])
    | TF-IDF + LR, one-vs-rest | 1 | 25.0 | 25.0 | 25.0 | 25.0 | 25.0 | 2 |
    """
    header = ["", "splits", *VALUES.values(), "seconds to fit"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    latest = {(r["row"], r["encoder"], r["split"]): r for r in records}
    for row in ROWS:
        own = [r for (kind, encoder, _), r in latest.items() if SetsRow(kind, encoder) == row]
        if not own:
            continue
        cells = [row.title, str(len(own))]
        cells += [_mean([100 * r[value] for r in own]) for value in VALUES]
        cells.append(f"{mean(r['fit_seconds'] for r in own):.0f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _mean(values: Sequence[float]) -> str:
    """The mean, with the standard deviation of several.

    >>> _mean([1.0, 2.0]), _mean([1.5])
    ('1.5 ± 0.7', '1.5')
    """
    spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{spread}"


def report(records: Sequence[Job]) -> str:
    """The page with the table."""
    machines = sorted({str(r["machine"]) for r in records})
    return f"""# Label sets

GoEmotions, 28 labels, 16 texts per label or as many as there are, 1,000 test texts; mean and
standard deviation over the splits in %. Made by `python -m benchmarks.label_sets` from
`label_sets.jsonl`; its help says how texts are drawn. Seconds are CPU seconds of one thread on
{", ".join(machines)}.

{table(records)}
"""

"""How the default preset was chosen: by answers to dev examples, never by a test set.

    CPTUNING_DATA=folder python -m benchmarks.presets [--kind single pair] [--workers 8]

Every variant changes one thing of the settings at the start. It is trained on a 16-shot training
split and answers its dev split and the training and dev examples of the other four splits, some 280
in all, for five splits of each data set; test files are not read. What counts is the mean accuracy
after the last step over all data sets. Every run adds one line to the output file; when started
again, the command skips these runs.

``--prompts`` compares the prompt at the start with every combination of a few words, places and
signs, a list that follows from a rule and not from earlier scores.

With many variants some are ahead by chance. So ``--final`` takes the start, all that was ahead of
it in the two lists, and combinations of those, and trains them again with four other seeds. The
best of these that has the method's own loss is the preset.

The paper's data sets all have two classes. What is best for more of them is chosen with TREC's six
(``--final --kind many``), by another seed, among the same finalists for single texts and all that
trains harder and takes no longer.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.runs import Job, run_all
from cptuning import CPTuningClassifier
from cptuning.data import PAIR_DATASETS, PAPER_DATASETS, SEEDS, LabelledData, load_few_shot

DATASETS = {
    "single": tuple(n for n in PAPER_DATASETS if n not in PAIR_DATASETS),
    "pair": tuple(n for n in PAPER_DATASETS if n in PAIR_DATASETS),
    "many": ("TREC",),
}
# The kinds with lists of their own; single texts of many classes use the finalists of the others.
LISTED = ("single", "pair")

SWEEP, PROMPTS, FINAL = (
    Path("benchmarks/presets.jsonl"),
    Path("benchmarks/prompts.jsonl"),
    Path("benchmarks/presets_final.jsonl"),
)

# The seeds of the trainings that decide; those of the two lists are 0.
FINAL_DRAWS = {"single": [1, 2, 3, 4], "pair": [1, 2, 3, 4], "many": [1]}

# The training examples of a two-class split, to which the numbers of steps refer.
EXAMPLES = 32

# Where the search started, whatever the preset is now: everything that a variant may change.
_START: dict[str, object] = {
    "steps": 20,
    "learning_rate": 2e-5,
    "frozen_share": 0.5,
    "batch_size": 16,
    "centred": True,
    "loss": "pccl",
    "tau_n": 1 / 8,
    "xi": 2.0,
    "margin": 0.3,
    "contrastive_weight": 0.5,
    "inference": "unit-prototype",
    "template": "{a} it is [MASK] .",
}
START = {
    "single": _START,
    "pair": _START | {"steps": 40, "tau_n": 1 / 4, "template": "{a} [SEP] {b} these are [MASK] ."},
}

VARIANTS: dict[str, dict[str, object]] = {
    "start": {},
    "untrained": {"steps": 0},
    "10 steps": {"steps": 10},
    "10 steps, rate 4e-5": {"steps": 10, "learning_rate": 4e-5},
    "20 steps": {"steps": 20},
    "20 steps, rate 3e-5": {"steps": 20, "learning_rate": 3e-5},
    "20 steps, rate 4e-5": {"steps": 20, "learning_rate": 4e-5},
    "20 steps, rate 6e-5": {"steps": 20, "learning_rate": 6e-5},
    "40 steps": {"steps": 40},
    "40 steps, rate 1e-5": {"steps": 40, "learning_rate": 1e-5},
    "80 steps": {"steps": 80},
    "80 steps, rate 1e-5": {"steps": 80, "learning_rate": 1e-5},
    "160 steps": {"steps": 160},
    "160 steps, nothing frozen": {"steps": 160, "frozen_share": 0.0},
    "rate 5e-6": {"learning_rate": 5e-6},
    "rate 1e-5": {"learning_rate": 1e-5},
    "rate 2e-5": {"learning_rate": 2e-5},
    "rate 5e-5": {"learning_rate": 5e-5},
    "rate 1e-4": {"learning_rate": 1e-4},
    "nothing frozen": {"frozen_share": 0.0},
    "a quarter frozen": {"frozen_share": 0.25},
    "three quarters frozen": {"frozen_share": 0.75},
    "batches of 32": {"batch_size": 32},
    "not centred": {"centred": False},
    "tau_n 1/16": {"tau_n": 1 / 16},
    "tau_n 1/4": {"tau_n": 1 / 4},
    "tau_n 1/2": {"tau_n": 1 / 2},
    "tau_n 1/2, not centred": {"tau_n": 1 / 2, "centred": False},
    "xi 4": {"xi": 4.0},
    "margin 0.2": {"margin": 0.2},
    "lambda 0.3": {"contrastive_weight": 0.3},
    "lambda 0.8": {"contrastive_weight": 0.8},
    "lambda 1": {"contrastive_weight": 1.0},
    "supcon": {"loss": "supcon"},
    "supcon, not centred": {"loss": "supcon", "centred": False},
    "knn": {"inference": "knn"},
    "prototype": {"inference": "prototype"},
}
TEMPLATES = {
    "single": (
        "{a} it is [MASK]",
        "{a} it was [MASK] .",
        "{a} it is so [MASK] .",
        "{a} this is [MASK] .",
    ),
    "pair": ("{a} ? [MASK] {b}", "{a} ? [MASK] , {b}", "{a} [SEP] {b} [MASK]"),
}

# Changes of the loss that were each ahead, together.
COMBINED: dict[str, dict[str, dict[str, object]]] = {
    "single": {
        "tau_n 1/4, lambda 0.3": {"tau_n": 1 / 4, "contrastive_weight": 0.3},
        "tau_n 1/4, xi 4": {"tau_n": 1 / 4, "xi": 4.0},
        "lambda 0.3, xi 4": {"contrastive_weight": 0.3, "xi": 4.0},
        "tau_n 1/4, lambda 0.3, xi 4": {"tau_n": 1 / 4, "contrastive_weight": 0.3, "xi": 4.0},
    },
    "pair": {
        "tau_n 1/2, lambda 0.3": {"tau_n": 1 / 2, "contrastive_weight": 0.3},
        "tau_n 1/2, xi 4": {"tau_n": 1 / 2, "xi": 4.0},
        "lambda 0.3, xi 4": {"contrastive_weight": 0.3, "xi": 4.0},
        "tau_n 1/2, lambda 0.3, xi 4": {"tau_n": 1 / 2, "contrastive_weight": 0.3, "xi": 4.0},
    },
}

# Too hard for two classes.
HARDER = (
    *("20 steps, rate 3e-5", "20 steps, rate 4e-5", "20 steps, rate 6e-5", "rate 1e-4"),
    *("tau_n 1/16", "lambda 0.8", "lambda 1"),
)

# Before or after a text, between or after a pair: words, the mask, a sign or none.
_RULES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "single": (
        ("{{a}} {words} [MASK]{sign}", "{words} [MASK]{sign} {{a}}"),
        ("it is", "it was", "this is", "this was", "that is", "that was"),
        ("", " .", " !"),
    ),
    "pair": (
        ("{{a}} {words} [MASK]{sign} {{b}}", "{{a}} [SEP] {{b}} {words} [MASK]{sign}"),
        ("?", "it is", "this is", "these are", "they are", "both are"),
        ("", " .", " ,"),
    ),
}


def prompts_of(kind: str) -> list[str]:
    """Every prompt of the rule.

    >>> len(prompts_of("single")), prompts_of("single")[0], prompts_of("pair")[-1]
    (36, '{a} it is [MASK]', '{a} [SEP] {b} both are [MASK] ,')
    """
    return [place.format(words=words, sign=sign) for place, words, sign in product(*_RULES[kind])]


def variants_of(kind: str, *, prompts: bool = False) -> dict[str, dict[str, object]]:
    """The sweep's variants by name, or the start and the prompts of the rule."""
    templates = {
        f"prompt {t}": {"template": t} for t in (prompts_of(kind) if prompts else TEMPLATES[kind])
    }
    return ({"start": {}} if prompts else VARIANTS) | templates


def settings_of(kind: str, variant: str) -> dict[str, object]:
    """Everything that a variant sets.

    >>> settings_of("single", "tau_n 1/4")["tau_n"]
    0.25
    """
    kind = _listed(kind)
    changes = variants_of(kind, prompts=True) | variants_of(kind) | COMBINED[kind]
    return START[kind] | changes[variant]


def _listed(kind: str) -> str:
    """The kind whose lists and finalists these are."""
    return "single" if kind == "many" else kind


def held_out(name: str, train: LabelledData) -> tuple[list[object], list[str]]:
    """The few-shot examples of all splits that are not in this training split, each once."""
    found: dict[object, str] = {}
    for seed in SEEDS:
        for part in load_few_shot(name, seed=seed):
            found |= zip(part.examples, part.labels, strict=True)
    for example in train.examples:
        found.pop(example, None)
    return list(found), list(found.values())


def one_run(job: Job) -> Job:
    settings = settings_of(job["kind"], job["variant"])
    train, _ = load_few_shot(job["dataset"], seed=job["seed"])
    # More examples are passed over equally often, as with ``epochs`` in the preset.
    steps = settings["steps"] * len(train.examples) // EXAMPLES
    classifier = CPTuningClassifier(
        job["backbone"],
        random_state=job["seed"] + 1000 * job["draw"],
        verbose=False,
        evaluate_every=max(1, steps),  # only the last step counts
        **settings | {"steps": steps},
    )
    classifier.fit(train.examples, train.labels, *held_out(job["dataset"], train))
    scores = classifier.history_.scores
    return {
        "accuracy": {str(step): round(score.accuracy, 5) for step, score in scores.items()},
        "log_loss": {str(step): round(-s.negative_log_loss, 5) for step, s in scores.items()},
    }


def table(records: Sequence[Job], kind: str) -> str:
    """One row per variant, best first: accuracy after the last step by data set, mean, log-loss."""
    names = DATASETS[kind]
    rows = []
    start = [r for r in records if (r["variant"], r["kind"]) == ("start", kind)]
    for variant in dict.fromkeys(r["variant"] for r in records if r["kind"] == kind):
        mine = [r for r in records if (r["variant"], r["kind"]) == (variant, kind)]
        cells = []
        for name in names:
            last = [(r["accuracy"], r["log_loss"]) for r in mine if r["dataset"] == name]
            cells.append([(list(a.values())[-1], list(n.values())[-1]) for a, n in last])
        if all(cells):
            accuracies = [100 * np.mean([a for a, _ in cell]) for cell in cells]
            loss = np.mean([np.mean([n for _, n in cell]) for cell in cells])
            rows.append((np.mean(accuracies), variant, accuracies, loss, more_than(start, mine)))
    head = f"| {kind} | " + " | ".join(names) + " | mean | more than the start | log-loss |"
    lines = [head, "|---" * (len(names) + 4) + "|"]
    for mean, variant, accuracies, loss, more in sorted(rows, key=lambda row: -row[0]):
        shown = " | ".join(f"{a:.1f}" for a in accuracies)
        lines.append(f"| {variant} | {shown} | {mean:.1f} | {more} | {loss:.3f} |")
    return "\n".join(lines)


def best(records: Sequence[Job], kind: str) -> str:
    """The variant of the first row that has PCCL, the loss of the method."""
    rows = table(records, kind).splitlines()[2:]
    names = [row.split(" | ")[0].removeprefix("| ") for row in rows]
    return next(name for name in names if settings_of(kind, name)["loss"] == "pccl")


def more_than(others: Sequence[Job], mine: Sequence[Job]) -> str:
    """The mean difference in accuracy on the same split, and its standard error over splits."""
    gap = _gap(others, mine)
    return "-" if gap is None else f"{gap[0]:+.2f} ± {gap[1]:.2f}"


def _gap(others: Sequence[Job], mine: Sequence[Job]) -> tuple[float, float] | None:
    ours, theirs = _by_split(mine), _by_split(others)
    gaps = [ours[split] - theirs[split] for split in ours if split in theirs]
    if len(gaps) < 2:
        return None
    return float(np.mean(gaps)), float(np.std(gaps, ddof=1) / len(gaps) ** 0.5)


def ahead(records: Sequence[Job], kind: str) -> list[str]:
    """The variants that are better than the start."""
    mine = [r for r in records if r["kind"] == kind]
    start = [r for r in mine if r["variant"] == "start"]
    found = []
    for variant in dict.fromkeys(r["variant"] for r in mine):
        gap = _gap(start, [r for r in mine if r["variant"] == variant])
        if gap is not None and gap[0] > 0:
            found.append(variant)
    return found


def finalists(kind: str) -> list[str]:
    """The start, what was ahead of it in the sweep or among the prompts, and combinations.

    For many classes also what trains harder.
    """
    harder = HARDER if kind == "many" else ()
    kind = _listed(kind)
    found = [v for file in (SWEEP, PROMPTS) for v in ahead(read(file), kind)]
    return list(dict.fromkeys(["start", *found, *COMBINED[kind], *harder]))


def read(file: Path) -> list[Job]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def _by_split(records: Sequence[Job]) -> dict[tuple[str, int], float]:
    """Accuracy on each split, the mean over its draws: those share what they are trained on."""
    found: dict[tuple[str, int], list[float]] = {}
    for record in records:
        split = record["dataset"], record["seed"]
        found.setdefault(split, []).append(_last_accuracy(record))
    return {split: float(np.mean(accuracies)) for split, accuracies in found.items()}


def _last_accuracy(record: Job) -> float:
    return 100 * list(record["accuracy"].values())[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", nargs="*", default=list(LISTED), choices=list(DATASETS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--workers", type=int, default=1)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--prompts", action="store_true", help="The prompts of the rule.")
    which.add_argument("--final", action="store_true", help="What was ahead, with other seeds.")
    parser.add_argument("--output", type=Path, default=None)
    chosen = parser.parse_args()
    if "many" in chosen.kind and not chosen.final:
        parser.error("single texts of many classes have no list of their own: add --final")
    jobs = [
        {
            "backbone": chosen.backbone,
            "kind": kind,
            "variant": variant,
            "dataset": name,
            "seed": seed,
            "draw": draw,
        }
        for kind in chosen.kind
        for variant in (
            finalists(kind) if chosen.final else variants_of(kind, prompts=chosen.prompts)
        )
        for seed in chosen.seeds
        for draw in (FINAL_DRAWS[kind] if chosen.final else [0])
        for name in DATASETS[kind]
    ]
    output = FINAL if chosen.final else PROMPTS if chosen.prompts else SWEEP
    records = run_all(jobs, one_run, chosen.output or output, chosen.workers)
    for kind in chosen.kind:
        print(table(records, kind))


if __name__ == "__main__":
    main()

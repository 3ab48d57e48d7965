r"""How the default preset of the embedded backbone's two views was chosen, never by a test set.

    CPTUNING_DATA=folder python -m benchmarks.views [--kind single many pair] [--workers 8]
    CPTUNING_DATA=folder python -m benchmarks.views --kind sentence sentence-pair --seeds 1 2 \
        --encoder minilm=FOLDER --encoder gte-small=FOLDER

A few examples per class of a training file are learned (16, or 8 where there are more than twenty
classes), and 300 others of that file are answered, by the class directions and by LDA. Test files
are not read. Every run adds one line to the output file; when started again, the command skips
these runs.

The rule, written down before the first run: per kind of task (single texts of two classes, of more,
pairs) the preset has the variant and the answer with the highest mean accuracy; but what is within
one standard error of it, over the splits in pairs, counts as equal, and of equals the one is taken
that stands first in the list, which begins with the cheapest and simplest. LDA is the answer of a
kind if its mean over all variants is at least that of the class directions.

``--kind sentence`` is about sentence encoders, which are read by pooling, and single texts;
``sentence-pair`` is about them and pairs. Two encoders each; training is in bfloat16. The same
rule, with encoders, data sets and splits in pairs, over all rows of the list, also the one that
trains nothing: if it is chosen, the default preset of that kind does not train. (First, one preset
was to serve both. After 29 of its runs it was plain that pairs lose by the rates that single texts
gain by, so they were parted, before any other run.)
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from benchmarks.everyday.data import _root, stratified_rows
from benchmarks.everyday.rows import encoder_folder
from benchmarks.runs import Job, run_all
from cptuning import CPTuningClassifier
from cptuning.data import LabelledData, read_table, unbalanced_split

RECORDS = Path("benchmarks/views.jsonl")
SETS = {
    "single": ("SST-2", "MR", "CR", "SUBJ"),
    "many": ("TREC", "tweeteval_emotion", "SST5", "Airline_tweets", "HWU64", "StackOverflow20"),
    "pair": ("MRPC", "QQP", "QNLI", "RTE"),
    "sentence": ("CR", "TREC", "HWU64", "tweeteval_emotion"),
    "sentence-pair": ("MRPC", "QQP", "QNLI", "RTE"),
}
ENCODERS = ("minilm", "gte-small")
SEEDS = (1, 2, 3)
SHOTS, MANY_CLASSES, SHOTS_OF_MANY = 16, 20, 8
HELD_OUT = 300
ANSWERS = ("unit-prototype", "lda")

_PAIR, _SINGLE = "{a} [SEP] {b} these are [MASK] .", "{a} it is [MASK] ."
_BASE: dict[str, object] = {
    "tau_n": 1 / 8,
    "contrastive_weight": 0.5,
    "centred": True,
    "learning_rate": 5e-5,
    "frozen_share": 0.5,
    "steps": 20,
    "epochs": 10,
}
_EXCLAIMED = {"template": "{a} all in all , [MASK] !"}
_FROZEN = {"steps": 0, "epochs": 0}
VARIANTS: dict[str, dict[str, object]] = {
    "frozen": _FROZEN,
    "frozen, not centred": _FROZEN | {"centred": False},
    "frozen, all in all": _FROZEN | _EXCLAIMED,
    "frozen, all in all, not centred": _FROZEN | _EXCLAIMED | {"centred": False},
    "frozen, mask view": _FROZEN | {"sentence_weight": 0.0},
    "frozen, weight 1": _FROZEN | {"sentence_weight": 1.0},
    "frozen, weight 2": _FROZEN | {"sentence_weight": 2.0},
    "base": {},
    "rate 2e-5": {"learning_rate": 2e-5},
    "rate 1e-4": {"learning_rate": 1e-4},
    "rate 2e-4": {"learning_rate": 2e-4},
    "tau_n 1/2": {"tau_n": 1 / 2},
    "not centred": {"centred": False},
    "lambda 1": {"contrastive_weight": 1.0},
    "nothing frozen": {"frozen_share": 0.0},
    "all in all": _EXCLAIMED,
    "all in all, rate 1e-4": _EXCLAIMED | {"learning_rate": 1e-4},
    "weight 1": {"sentence_weight": 1.0},
    "rate 1e-4, nothing frozen": {"learning_rate": 1e-4, "frozen_share": 0.0},
    "rate 1e-4, lambda 1": {"learning_rate": 1e-4, "contrastive_weight": 1.0},
}
# No template is read, and there is no masked LM.
_SENTENCE_BASE = _BASE | {"contrastive_weight": 1.0, "frozen_share": 0.0}
SENTENCE_VARIANTS: dict[str, dict[str, dict[str, object]]] = {
    "sentence": {
        "frozen": _FROZEN,
        "rate 5e-5": {},
        "rate 2e-5": {"learning_rate": 2e-5},
        "rate 1e-4": {"learning_rate": 1e-4},
        "rate 1e-4, half frozen": {"learning_rate": 1e-4, "frozen_share": 0.5},
    },
    "sentence-pair": {
        "frozen": _FROZEN,
        "rate 2e-5": {"learning_rate": 2e-5},
        "rate 1e-5": {"learning_rate": 1e-5},
        "rate 5e-6": {"learning_rate": 5e-6},
    },
}


def variants_of(kind: str) -> list[str]:
    """The variants that make sense for a kind of task: those of pairs have one prompt."""
    if kind in SENTENCE_VARIANTS:
        return list(SENTENCE_VARIANTS[kind])
    return [v for v in VARIANTS if not (kind == "pair" and "all in all" in v)]


@lru_cache(maxsize=1)
def _pool(name: str) -> LabelledData:
    table = read_table(_root() / name / "train.jsonl.gz", need_label=True)
    first = dict.fromkeys(table.examples)
    rows = {example: row for row, example in reversed(list(enumerate(table.examples)))}
    kept = [rows[example] for example in first]
    labels = [str(label) for label in table.labels or []]
    return LabelledData(table.examples.take(kept), [labels[row] for row in kept])


def split(name: str, seed: int) -> tuple[LabelledData, LabelledData]:
    """Some examples to learn, and others to answer."""
    pool = _pool(name)
    classes = set(pool.labels)
    shots = SHOTS_OF_MANY if len(classes) > MANY_CLASSES else SHOTS
    counts = {c: min(shots, pool.labels.count(c)) for c in classes}
    rows, _ = unbalanced_split(pool.labels, counts, seed)
    known = set(rows)
    rest = pool.take([row for row in range(len(pool.labels)) if row not in known])
    return pool.take(rows), rest.take(stratified_rows(rest.labels, HELD_OUT, seed))


def settings_of(job: Job) -> dict[str, object]:
    """What the job's variant sets, in the place of the preset."""
    if changes := SENTENCE_VARIANTS.get(job["kind"]):
        return _SENTENCE_BASE | changes[job["variant"]] | {"precision": "bfloat16"}
    template = _PAIR if job["kind"] == "pair" else _SINGLE
    return _BASE | {"template": template} | VARIANTS[job["variant"]]


def one_run(job: Job, encoders: Mapping[str, Path] | None = None) -> Job:
    """The accuracies of a variant on one split, by either answer."""
    from cptuning.inference import class_scores

    train, held_out = split(job["dataset"], job["seed"])
    backbone = str((encoders or {}).get(job["backbone"], job["backbone"]))
    classifier = CPTuningClassifier(
        backbone, random_state=job["seed"], verbose=False, validation="none", **settings_of(job)
    )
    classifier.fit(train.examples, train.labels)
    predictor = classifier.predictor_
    embeddings = predictor.transform(held_out.examples)
    truth = predictor.label_space.encode(held_out.labels)
    n = len(predictor.label_space.classes)
    found = {}
    for answer in ANSWERS:
        scores = class_scores(embeddings, predictor.support, n, answer, 3)
        found[answer] = round(float(np.mean(scores.argmax(axis=1) == truth)), 5)
    return {"accuracy": found, "sentence_weight": classifier.settings_.sentence_weight}


def table(records: Sequence[Job], kind: str) -> str:
    """One row per variant and answer, in the order of the list."""
    names = SETS[kind]
    lines = [f"| {kind} | answer | " + " | ".join(names) + " | mean | less than the best |"]
    lines.append("|---" * (len(names) + 4) + "|")
    found = {
        (variant, answer): {
            (r["dataset"], r["seed"], r["backbone"]): 100 * r["accuracy"][answer]
            for r in records
            if (r["kind"], r["variant"]) == (kind, variant) and r["dataset"] in names
        }
        for variant in variants_of(kind)
        for answer in ANSWERS
    }
    whole = max(map(len, found.values()), default=0)
    found = {key: runs for key, runs in found.items() if whole and len(runs) == whole}
    if not found:
        return "\n".join(lines)
    best = max(found.values(), key=lambda runs: np.mean(list(runs.values())))
    for (variant, answer), runs in found.items():
        means = [np.mean([a for (n, *_), a in runs.items() if n == name]) for name in names]
        gaps = [best[key] - runs[key] for key in best]
        error = np.std(gaps, ddof=1) / len(gaps) ** 0.5
        lines.append(
            f"| {variant} | {answer} | "
            + " | ".join(f"{mean:.1f}" for mean in means)
            + f" | {np.mean(means):.1f} | {np.mean(gaps):.2f} ± {error:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what is left, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = [kind for kind in SETS if kind not in SENTENCE_VARIANTS]
    parser.add_argument("--kind", nargs="+", default=kinds, choices=list(SETS))
    named = list(dict.fromkeys(name for kind in SETS for name in variants_of(kind)))
    parser.add_argument("--variants", nargs="+", default=named, choices=named)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--encoder", action="append", type=encoder_folder, default=[])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RECORDS)
    chosen = parser.parse_args()
    encoders = dict(chosen.encoder)
    if set(chosen.kind) & set(SENTENCE_VARIANTS) and set(encoders) != set(ENCODERS):
        parser.error(f"sentence encoders: --encoder NAME=FOLDER for {' and '.join(ENCODERS)}")
    jobs = [
        {
            "backbone": backbone,
            "kind": kind,
            "variant": variant,
            "dataset": name,
            "seed": seed,
        }
        for seed in chosen.seeds
        for kind in chosen.kind
        for variant in variants_of(kind)
        if variant in chosen.variants
        for name in SETS[kind]
        for backbone in (ENCODERS if kind in SENTENCE_VARIANTS else (chosen.backbone,))
    ]
    records = run_all(jobs, partial(one_run, encoders=encoders), chosen.output, chosen.workers)
    for kind in chosen.kind:
        print(table(records, kind), end="\n\n")


if __name__ == "__main__":
    main()

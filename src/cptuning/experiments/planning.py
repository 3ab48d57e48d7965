"""From a request to its cells: each place of a table with the configurations to choose from."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from cptuning.data import Examples, LabelledData, full_train, load_few_shot, unbalanced_split
from cptuning.errors import CPTuningError
from cptuning.experiments.cells import Candidate, Cell, PlannedCell
from cptuning.experiments.hyperparameters import tuning_trials
from cptuning.experiments.request import Request
from cptuning.experiments.run_keys import key_of
from cptuning.experiments.studies import METHOD_ROWS, Row, Study
from cptuning.registry import classifier_class, make_classifier

SHOTS = 16
# A backbone with fewer parameters needs other rates, and the presets made for small ones.
SMALL_BACKBONE = 50_000_000
FAST_SEEDS = 2
USUAL_BATCH = 16
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Grid:
    """The learning rates and batch sizes that dev chooses among; they belong to the backbone."""

    rates: tuple[float, ...]
    batch_sizes: tuple[int, ...] = (4, 8, 16, 32)
    preset: str = "paper"


PAPER_GRID = Grid(rates=(1e-5, 3e-5, 5e-5))
SMALL_GRID = Grid(rates=(1e-5, 3e-5, 1e-4), preset="default")

# What a backbone can be trained with that is read without a prompt, as sentence encoders are.
_PROMPTLESS_METHODS = ("cp-tuning", "fine-tuning")
_SETTINGS_OF_PROMPTS = {"template", "contrastive_weight"}


def grid_for(parameters: int, *, pooled: bool = False) -> Grid:
    """The paper's grid; for small backbones and sentence encoders wider rates and other presets.

    >>> grid_for(355_000_000).rates, grid_for(28_000_000).rates
    ((1e-05, 3e-05, 5e-05), (1e-05, 3e-05, 0.0001))
    """
    return SMALL_GRID if pooled or parameters < SMALL_BACKBONE else PAPER_GRID


def plan(request: Request, backbone: dict[str, Any]) -> list[PlannedCell]:
    """Every cell of the request; ``backbone`` holds a name, the weights' hash and a size.

    If it is ``"pooled"``, it is read without a prompt; see :func:`left_out`. The cells are ordered
    by seed, so that whole tables can be read early.
    """
    _check(request, backbone)
    seeds = request.seeds[:FAST_SEEDS] if request.fast else request.seeds
    planned = [
        one
        for seed in seeds
        for study in request.studies()
        if seed in (seeds if not study.one_seed else seeds[:1])
        for name in _datasets(request, study)
        for one in _cells(request, study, name, seed, backbone)
    ]
    if not planned and request.methods:
        raise CPTuningError(
            f"The study {request.study} has none of the methods {', '.join(request.methods)}."
        )
    if not planned:
        raise CPTuningError(
            f"The study {request.study} is about prompts, and {backbone['name']} is read without "
            "one: use a masked language model."
        )
    return planned


def _datasets(request: Request, study: Study) -> tuple[str, ...]:
    """The data sets of a study that are asked for."""
    usual = study.fast_datasets if request.fast and study.fast_datasets else study.datasets
    return request.datasets or usual


def left_out(request: Request, backbone: dict[str, Any]) -> list[str]:
    """The rows of the studies that a backbone without a prompt can't have.

    These are methods that read a [MASK], and changes to the prompt or to the masked-LM loss.
    """
    names = {
        row.name: None
        for study in request.studies()
        for dataset in request.datasets or study.datasets
        for row in study.rows(dataset, request.methods)
        if not _applies(row, backbone)
    }
    return list(names)


def _applies(row: Row, backbone: dict[str, Any]) -> bool:
    if not backbone.get("pooled"):
        return True
    return row.method in _PROMPTLESS_METHODS and not _SETTINGS_OF_PROMPTS & row.changes.keys()


def _check(request: Request, backbone: dict[str, Any]) -> None:
    for method in request.methods:
        if method not in METHOD_ROWS:
            raise CPTuningError(
                f"There is no method {method!r}: use some of {', '.join(METHOD_ROWS)}."
            )
        if backbone.get("pooled") and METHOD_ROWS[method][0] not in _PROMPTLESS_METHODS:
            raise CPTuningError(
                f"{method} reads a [MASK], and {backbone['name']} is read without a prompt, as "
                "sentence encoders are: leave it out of --methods, or use a masked language model."
            )
    if request.precision not in PRECISIONS:
        raise CPTuningError(
            f"There is no precision {request.precision!r}: use one of {', '.join(PRECISIONS)}."
        )
    if not request.seeds:
        raise CPTuningError("No seeds are given: name at least one.")
    if request.workers < 1:
        raise CPTuningError(f"--workers is {request.workers}: it must be at least 1.")


def _cells(
    request: Request, study: Study, dataset: str, seed: int, backbone: dict[str, Any]
) -> Iterator[PlannedCell]:
    pooled = backbone.get("pooled", False)
    grid = grid_for(backbone["parameters"], pooled=pooled)
    rows = [row for row in study.rows(dataset, request.methods) if _applies(row, backbone)]
    for row in rows:
        for counts in _counts(study, dataset, request.data):
            train, dev = load_split(dataset, seed, counts, request.data, row.shots)
            others = tuple(name for name in _datasets(request, study) if name != dataset)
            sources = others if row.transfers else ()
            if row.transfers and not sources:
                raise CPTuningError(
                    f"The study {study.name} trains on other data sets first: name two at least."
                )
            fixed = _fixed(request, row, dataset, grid)
            is_compared = pooled and train.examples.is_pair and row.method == "cp-tuning"
            if is_compared and "steps" not in fixed:
                fixed |= _TRAINED
            common = {
                "backbone": {n: backbone[n] for n in ("name", "weights")},
                "dataset": dataset,
                "split": {"seed": seed, "counts": dict(counts) or row.shots},
                "train": _facts(train),
                "dev": _facts(dev),
                **({"sources": source_facts(sources, seed, request.data)} if sources else {}),
            }
            candidates = tuple(
                _candidate(row.method, fixed | point, train, common, pooled=pooled)
                for point in _points(request, study, row, fixed, grid)
            )
            cell = Cell(
                study.name,
                row.name,
                dataset,
                seed,
                row.method,
                tuple(candidate.key for candidate in candidates),
                variant=row.variant or _way(counts),
                counts=counts,
                keeps_embeddings=study.keeps_embeddings,
                fast=request.fast,
                shots=row.shots,
                sources=sources,
            )
            yield PlannedCell(cell, candidates)


# The studies compare trainings; by default a sentence encoder is not trained on pairs.
_TRAINED = {"steps": 20, "epochs": 10}


def _fixed(request: Request, row: Row, dataset: str, grid: Grid) -> dict[str, Any]:
    """What all points of a cell's grid have in common.

    Dev chooses the step by the same rule for every method, as in the paper: a preset's own would
    favour those that have one. For the same reason no model without training takes part, and
    every method reads the beginning of a long text.
    """
    fixed: dict[str, Any] = {"preset": grid.preset, "selection": "best"}
    parameters = classifier_class(row.method).parameter_names()
    if "task" in parameters:
        fixed["task"] = dataset
    if "instant_first" in parameters:
        fixed["instant_first"] = False
    if "long_texts" in parameters:
        fixed["long_texts"] = "truncate"
    if request.steps is not None:
        fixed |= {"steps": request.steps, "evaluate_every": max(1, request.steps // 10)}
    return fixed | row.changes


def _points(
    request: Request, study: Study, row: Row, fixed: dict[str, Any], grid: Grid
) -> list[dict[str, Any]]:
    """The grid, and the trials of the tuning, which never vary what the row is about."""
    if fixed.get("steps") == 0 or study.own_rate:
        return [{}]
    rates = _rates(row.method, fixed["preset"], grid)[1 if request.fast else 0 :]
    sizes = grid.batch_sizes
    if study.rates_only or request.fast:
        sizes = (fixed.get("batch_size", USUAL_BATCH),)
    points = [{"learning_rate": r, "batch_size": n} for r, n in product(rates, sizes)]
    if request.tune and row.method == "cp-tuning":
        middle = {"learning_rate": rates[len(rates) // 2], "batch_size": USUAL_BATCH}
        points += [middle | trial | row.changes for trial in tuning_trials()]
    return points


def _rates(method: str, preset: str, grid: Grid) -> tuple[float, ...]:
    """The grid's rates; where the language model is frozen (WARP), rates around its own."""
    if method != "warp":
        return grid.rates
    own = classifier_class(method).presets[preset]["single"].learning_rate
    return own / 3, own, 3 * own


def _candidate(
    method: str,
    parameters: dict[str, Any],
    train: LabelledData,
    common: dict[str, Any],
    *,
    pooled: bool,
) -> Candidate:
    classifier = make_classifier(method, **parameters)
    settings = classifier.settings_for(
        train.examples,
        len(set(train.labels)),
        pooled=pooled and "pooling" in classifier.parameter_names(),
    )
    # Through JSON, so that a configuration is the same before and after it is stored.
    configuration = json.loads(
        json.dumps({"method": method, "settings": asdict(settings), **common})
    )
    return Candidate(key_of(configuration), parameters, configuration)


def _counts(study: Study, dataset: str, data: Path | None) -> list[tuple[tuple[str, int], ...]]:
    """The number of examples of each class: equal (empty), or few of one and many of the other."""
    if not study.unbalanced:
        return [()]
    classes = sorted(set(_pool(dataset, data).labels))
    if len(classes) != 2:
        raise CPTuningError(
            f"{dataset} has {len(classes)} classes: the study unbalanced needs two."
        )
    few, many = study.unbalanced
    first, second = classes
    return [((first, few), (second, many)), ((first, many), (second, few))]


def _way(counts: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{n} {label}" for label, n in counts)


def load_split(
    dataset: str,
    seed: int,
    counts: tuple[tuple[str, int], ...],
    data: Path | None,
    shots: int = SHOTS,
) -> tuple[LabelledData, LabelledData]:
    """The training and dev examples of a cell; no test file is opened."""
    if not counts:
        return _few_shot(dataset, seed, data, shots)
    pool = _pool(dataset, data)
    rows = unbalanced_split(pool.labels, dict(counts), seed)
    train, dev = (
        LabelledData(pool.examples.take(part), [pool.labels[i] for i in part]) for part in rows
    )
    return train, dev


@cache
def _few_shot(
    dataset: str, seed: int, data: Path | None, shots: int
) -> tuple[LabelledData, LabelledData]:
    return load_few_shot(dataset, data, shots, seed)


@cache
def source_data(sources: tuple[str, ...], seed: int, data: Path | None) -> LabelledData:
    """The training examples of several data sets as one, whose classes keep their data set's name.

    Each class has at most as many as in a usual split.
    """
    parts = [_some_of_each(_pool(name, data), seed) for name in sources]
    examples, labels = Examples(()), []
    for name, part in zip(sources, parts, strict=True):
        if part.examples.is_pair:
            raise CPTuningError(f"{name} has pairs of texts, and the others don't: leave it out.")
        examples += part.examples
        labels += [f"{name}: {label}" for label in part.labels]
    return LabelledData(examples, labels)


def _some_of_each(pool: LabelledData, seed: int) -> LabelledData:
    sizes = Counter(pool.labels)
    rows, _ = unbalanced_split(pool.labels, {c: min(SHOTS, n) for c, n in sizes.items()}, seed)
    return pool.take(rows)


def source_facts(sources: tuple[str, ...], seed: int, data: Path | None) -> dict[str, Any]:
    """What records say about the data sets that a model was trained on before."""
    return {"datasets": list(sources), **_facts(source_data(sources, seed, data))}


@cache
def _pool(dataset: str, data: Path | None) -> LabelledData:
    return full_train(dataset, data)


def data_hash(data: LabelledData) -> str:
    """The hash of examples and labels, in their order.

    >>> from cptuning.data import Examples
    >>> one, other = (LabelledData(Examples((text,)), ["x"]) for text in "ab")
    >>> data_hash(one) == data_hash(other)
    False
    """
    words = json.dumps([list(data.examples), data.labels], ensure_ascii=False)
    return sha256(words.encode("utf-8")).hexdigest()


def _facts(data: LabelledData) -> dict[str, Any]:
    return {"rows": len(data.labels), "sha256": data_hash(data)}

"""From a request to its cells: every place of a table, and the configurations dev chooses among."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

from cptuning.data import SEEDS, LabelledData, full_train, load_few_shot, unbalanced_split
from cptuning.errors import CPTuningError
from cptuning.experiments.keys import key_of
from cptuning.experiments.studies import METHOD_ROWS, STUDIES, Row, Study
from cptuning.extras import needed_for
from cptuning.registry import classifier_class, make_classifier

SHOTS = 16
# Below so many parameters a backbone needs other rates, and the presets made for small ones.
SMALL_BACKBONE = 50_000_000
FAST_SEEDS = 2
USUAL_BATCH = 16
TUNING_TRIALS = 24
PRECISIONS = ("auto", "float32", "bfloat16")


@dataclass(frozen=True)
class Request:
    """What is to be reproduced, with what, and where the results go."""

    what: str = field(metadata={"help": "one of main, ablation, ... or all"})
    output: Path = field(default=Path("results"), metadata={"help": "the result directory"})
    backbone: str = field(
        default="embedded", metadata={"help": "embedded, a folder of a masked LM, or a hub id"}
    )
    datasets: tuple[str, ...] = field(
        default=(), metadata={"help": "data sets, in place of the study's own"}
    )
    seeds: tuple[int, ...] = field(default=SEEDS, metadata={"help": "seeds of the splits"})
    methods: tuple[str, ...] = field(
        default=(), metadata={"help": "methods, in place of the study's own"}
    )
    steps: int | None = field(
        default=None, metadata={"help": "training steps, in place of the presets'"}
    )
    device: str = field(default="auto", metadata={"help": "auto, cpu, cuda ..."})
    precision: str = field(
        default="auto", metadata={"help": "auto (bfloat16 on a GPU that has it), float32, bfloat16"}
    )
    workers: int = field(default=1, metadata={"help": "processes that share the runs"})
    runner: str = field(default="local", metadata={"help": "local or ray"})
    publish: Path | None = field(
        default=None, metadata={"help": "also write records, packed, and report to this folder"}
    )
    data: Path | None = field(
        default=None, metadata={"help": "folder of the data sets; else $CPTUNING_DATA or the hub"}
    )
    tune: bool = field(
        default=False, metadata={"help": "choose m, τn, ξ, λ and k on dev too (needs optuna)"}
    )
    fast: bool = field(default=False, metadata={"help": "two seeds and two grid points only"})
    dry_run: bool = field(
        default=False, metadata={"help": "only print how many runs there are and the hours left"}
    )
    report_only: bool = field(
        default=False, metadata={"help": "train nothing; report what is finished"}
    )

    def studies(self) -> list[Study]:
        """The studies that the request names.

        >>> [study.name for study in Request("tsne").studies()]
        ['tsne']
        """
        if self.what != "all" and self.what not in STUDIES:
            raise CPTuningError(
                f"There is no study {self.what!r}: use one of {', '.join(STUDIES)} or all."
            )
        return list(STUDIES.values()) if self.what == "all" else [STUDIES[self.what]]


@dataclass(frozen=True)
class Grid:
    """The learning rates and batch sizes that dev chooses among; they belong to the backbone."""

    rates: tuple[float, ...]
    batch_sizes: tuple[int, ...] = (4, 8, 16, 32)
    preset: str = "paper"


PAPER_GRID = Grid(rates=(1e-5, 3e-5, 5e-5))
SMALL_GRID = Grid(rates=(1e-5, 3e-5, 1e-4), preset="default")


def grid_for(parameters: int) -> Grid:
    """The paper's grid; rates further apart, and presets of their own, for small backbones.

    >>> grid_for(355_000_000).rates, grid_for(28_000_000).rates
    ((1e-05, 3e-05, 5e-05), (1e-05, 3e-05, 0.0001))
    """
    return SMALL_GRID if parameters < SMALL_BACKBONE else PAPER_GRID


@dataclass(frozen=True)
class Candidate:
    """One configuration that dev may choose."""

    key: str
    parameters: dict[str, Any]
    """What the classifier of the method is made with."""
    configuration: dict[str, Any]
    """All that decides what comes out; the key is its hash."""


@dataclass(frozen=True)
class Cell:
    """One place of a table for one seed; the best candidate on dev is its result."""

    study: str
    row: str
    dataset: str
    seed: int
    method: str
    keys: tuple[str, ...]
    variant: str = ""
    """Which of several that the row pools: a prompt, a way round."""
    counts: tuple[tuple[str, int], ...] = ()
    """Training examples of each class; empty: 16 of each."""
    keeps_embeddings: bool = False
    fast: bool = False

    @property
    def place(self) -> tuple[str, str, str, str, int]:
        """What tells it from every other cell of a directory."""
        return self.study, self.row, self.variant, self.dataset, self.seed

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Cell":
        """What ``asdict`` and JSON made of a cell."""
        counts = tuple((str(label), int(n)) for label, n in values["counts"])
        return cls(**values | {"keys": tuple(values["keys"]), "counts": counts})


@dataclass(frozen=True)
class Task:
    """A cell with all that is needed to train its candidates."""

    cell: Cell
    candidates: tuple[Candidate, ...]


def plan(request: Request, backbone: dict[str, Any]) -> list[Task]:
    """Every cell of the request; ``backbone`` holds its name, weights' hash and parameters.

    Seed by seed, so that whole tables can be read early.
    """
    _check(request)
    seeds = request.seeds[:FAST_SEEDS] if request.fast else request.seeds
    tasks = [
        task
        for seed in seeds
        for study in request.studies()
        if seed in (seeds if not study.one_seed else seeds[:1])
        for name in request.datasets or study.datasets
        for task in _tasks(request, study, name, seed, backbone)
    ]
    if not tasks:
        raise CPTuningError(
            f"The study {request.what} has none of the methods {', '.join(request.methods)}."
        )
    return tasks


def _check(request: Request) -> None:
    for method in request.methods:
        if method not in METHOD_ROWS:
            raise CPTuningError(
                f"There is no method {method!r}: use some of {', '.join(METHOD_ROWS)}."
            )
    if request.precision not in PRECISIONS:
        raise CPTuningError(
            f"There is no precision {request.precision!r}: use one of {', '.join(PRECISIONS)}."
        )
    if not request.seeds:
        raise CPTuningError("No seeds are given: name at least one.")
    if request.workers < 1:
        raise CPTuningError(f"--workers is {request.workers}: it must be at least 1.")


def _tasks(
    request: Request, study: Study, dataset: str, seed: int, backbone: dict[str, Any]
) -> Iterator[Task]:
    grid = grid_for(backbone["parameters"])
    for row in study.rows(dataset, request.methods):
        for counts in _counts(study, dataset, request.data):
            train, dev = load_split(dataset, seed, counts, request.data)
            fixed = _fixed(request, row, dataset, grid)
            common = {
                "backbone": {n: backbone[n] for n in ("name", "weights")},
                "dataset": dataset,
                "split": {"seed": seed, "counts": dict(counts) or SHOTS},
                "train": _facts(train),
                "dev": _facts(dev),
            }
            candidates = tuple(
                _candidate(row.method, fixed | point, train, common)
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
            )
            yield Task(cell, candidates)


def _fixed(request: Request, row: Row, dataset: str, grid: Grid) -> dict[str, Any]:
    """What all points of a cell's grid have in common.

    Dev chooses the step by the same rule for every method, as in the paper: a preset's own would
    favour those that have one.
    """
    fixed: dict[str, Any] = {"preset": grid.preset, "selection": "best"}
    if "task" in classifier_class(row.method).parameter_names():
        fixed["task"] = dataset
    if request.steps is not None:
        fixed |= {"steps": request.steps, "evaluate_every": max(1, request.steps // 10)}
    return fixed | row.changes


def _points(
    request: Request, study: Study, row: Row, fixed: dict[str, Any], grid: Grid
) -> list[dict[str, Any]]:
    """The grid, and the trials of the tuning; what a row is about is never tuned."""
    if fixed.get("steps") == 0:
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
    """The grid's; where the language model is frozen (WARP), around the method's own."""
    if method != "warp":
        return grid.rates
    own = classifier_class(method).presets[preset]["single"].learning_rate
    return own / 3, own, 3 * own


@cache
def tuning_trials() -> list[dict[str, Any]]:
    """Values of m, τn, ξ, λ and k to try, from the ranges of the paper's figure.

    They are drawn evenly and beforehand, and do not follow from results: so workers can share
    them, and a killed sweep goes on with the same ones.
    """
    with needed_for("--tune"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {
        "margin": optuna.distributions.FloatDistribution(0.0, 0.5),
        "tau_n": optuna.distributions.FloatDistribution(1 / 64, 1.0, log=True),
        "xi": optuna.distributions.FloatDistribution(1.0, 8.0, log=True),
        "contrastive_weight": optuna.distributions.FloatDistribution(0.1, 1.0),
        "k": optuna.distributions.IntDistribution(1, 15, step=2),
    }
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    return [study.ask(space).params | {"inference": "knn"} for _ in range(TUNING_TRIALS)]


def _candidate(
    method: str, parameters: dict[str, Any], train: LabelledData, common: dict[str, Any]
) -> Candidate:
    classifier = make_classifier(method, **parameters)
    settings = classifier.settings_for(train.examples, len(set(train.labels)))
    # Through JSON, so that a configuration looks the same before and after it is stored.
    configuration = json.loads(
        json.dumps({"method": method, "settings": asdict(settings), **common})
    )
    return Candidate(key_of(configuration), parameters, configuration)


def _counts(study: Study, dataset: str, data: Path | None) -> list[tuple[tuple[str, int], ...]]:
    """How many examples of each class: the same, or few of one and many of the other."""
    if not study.unbalanced:
        return [()]
    classes = sorted(set(_pool(dataset, data).labels))
    if len(classes) != 2:
        raise CPTuningError(f"{dataset} has {len(classes)} classes: unbalanced takes two.")
    few, many = study.unbalanced
    first, second = classes
    return [((first, few), (second, many)), ((first, many), (second, few))]


def _way(counts: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{n} {label}" for label, n in counts)


def load_split(
    dataset: str, seed: int, counts: tuple[tuple[str, int], ...], data: Path | None
) -> tuple[LabelledData, LabelledData]:
    """What a cell trains on and chooses by; no test file is opened."""
    if not counts:
        return _few_shot(dataset, seed, data)
    pool = _pool(dataset, data)
    rows = unbalanced_split(pool.labels, dict(counts), seed)
    train, dev = (
        LabelledData(pool.examples.take(part), [pool.labels[i] for i in part]) for part in rows
    )
    return train, dev


@cache
def _few_shot(dataset: str, seed: int, data: Path | None) -> tuple[LabelledData, LabelledData]:
    return load_few_shot(dataset, data, SHOTS, seed)


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

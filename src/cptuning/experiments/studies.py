"""The paper's studies: which rows, on which data sets, and what is tuned in each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cptuning.data import PAPER_DATASETS
from cptuning.prompting.catalog import study_prompts

PILOT = ("SST-2", "MR", "MRPC", "QQP")

# A row of the main table: the method, and what is set for it. The paper has the first eight.
METHOD_ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "fine-tuning": ("fine-tuning", {}),
    "pet": ("pet", {}),
    "lm-bff-t": ("lm-bff-t", {}),
    "lm-bff-l": ("lm-bff-l", {}),
    "lm-bff-tl": ("lm-bff-tl", {}),
    "p-tuning": ("p-tuning", {}),
    "warp": ("warp", {}),
    "cp-tuning": ("cp-tuning", {}),
    "zero-shot": ("pet", {"steps": 0}),
    "warp-random": ("warp", {"class_vectors": "random"}),
    "cp-tuning-released": ("cp-tuning", {"preset": "released"}),
}
PAPER_METHODS = tuple(METHOD_ROWS)[:8]
_MAIN_ROWS = (*PAPER_METHODS, "zero-shot", "warp-random")
_TITLES = {
    "fine-tuning": "Fine-tuning",
    "pet": "PET",
    # Templates by the backbone's own masks, where the paper has a T5's: under their own names.
    "lm-bff-t": "LM-BFF (Auto-T, MLM)",
    "lm-bff-l": "LM-BFF (Auto-L)",
    "lm-bff-tl": "LM-BFF (Auto-T+L, MLM)",
    "p-tuning": "P-tuning",
    "warp": "WARP",
    "cp-tuning": "CP-Tuning",
    "zero-shot": "PET, zero-shot",
    "warp-random": "WARP, random class vectors",
    "cp-tuning-released": "CP-Tuning, as released",
}
# The paper compares with "LM-BFF" where it has one: here the one that searches for everything.
UNBALANCED_METHODS = ("pet", "lm-bff-tl", "p-tuning", "cp-tuning")

# What the four plots vary, over the ranges of the paper.
PARAMETERS: dict[str, tuple[str, dict[float, float]]] = {
    "m": ("margin", {m: m for m in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)}),
    "1/τn": ("tau_n", {float(n): 1 / n for n in (1, 2, 4, 8, 16, 32, 64)}),
    "ξ": ("xi", {float(xi): float(xi) for xi in (1, 2, 3, 4, 5, 6, 8)}),
    "λ": ("contrastive_weight", {w: w for w in (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)}),
}

# What --tune chooses: the symbol, and the setting's name.
TUNED = {symbol: setting for symbol, (setting, _) in PARAMETERS.items()} | {"k": "k"}

# How the step is chosen, and what its rows are called.
SELECTIONS = {"best": "best step", "one-standard-error": "last step"}


def title_of(row: str) -> str:
    """A row's name as a paper has it; the names of methods are those of the command otherwise.

    >>> title_of("pet, uniform batches"), title_of("without MLM")
    ('PET, uniform batches', 'without MLM')
    """
    method, comma, rest = row.partition(", ")
    return _TITLES.get(method, method) + comma + rest


@dataclass(frozen=True)
class Row:
    """A row of a table, or a part of one that is pooled with others of the same name."""

    name: str
    method: str
    changes: dict[str, Any] = field(default_factory=dict)
    variant: str = ""


@dataclass(frozen=True)
class Study:
    """One of the paper's tables or figures."""

    name: str
    title: str
    question: str
    """What it is for, in a sentence or two."""
    make_rows: Callable[[str], list[Row]]
    """The rows for a data set."""
    datasets: tuple[str, ...] = PILOT
    rates_only: bool = False
    """Dev chooses the learning rate alone: the batch size is the study's, or 16."""
    unbalanced: tuple[int, int] | None = None
    keeps_embeddings: bool = False
    one_seed: bool = False

    def rows(self, dataset: str, methods: Sequence[str] = ()) -> list[Row]:
        """The rows for a data set, or those of some methods.

        >>> [row.name for row in STUDIES["main"].rows("MR", ["zero-shot"])]
        ['zero-shot']
        >>> [row.name for row in STUDIES["main"].rows("MR")][-3:]
        ['cp-tuning', 'zero-shot', 'warp-random']
        """
        rows = self.make_rows(dataset)
        if self.name == "main":
            return [row for row in rows if row.name in (methods or _MAIN_ROWS)]
        return [row for row in rows if not methods or row.method in methods]


def _main(_dataset: str) -> list[Row]:
    return [Row(name, method, dict(changes)) for name, (method, changes) in METHOD_ROWS.items()]


def _ablation(_dataset: str) -> list[Row]:
    changes: dict[str, dict[str, Any]] = {
        "full": {},
        "without MLM": {"contrastive_weight": 1.0},
        "with α, log Σ": {"form": "log_sum"},
        "without α, Σ log": {"relaxation": False},
        "without α, log Σ": {"relaxation": False, "form": "log_sum"},
        "without similarity averaging": {"loss": "sampled-pccl"},
    }
    return [Row(name, "cp-tuning", changed) for name, changed in changes.items()]


def _parameters(_dataset: str) -> list[Row]:
    return [
        Row(f"{symbol} = {shown:g}", "cp-tuning", {setting: value})
        for symbol, (setting, values) in PARAMETERS.items()
        for shown, value in values.items()
    ]


def _batch_size(_dataset: str) -> list[Row]:
    return [Row(f"batch size {n}", "cp-tuning", {"batch_size": n}) for n in (4, 8, 16, 32)]


def _unbalanced(_dataset: str) -> list[Row]:
    return [
        Row(f"{method}, {kind} batches", method, {"batches": kind})
        for kind in ("uniform", "balanced")
        for method in UNBALANCED_METHODS
    ]


def _prompts(dataset: str) -> list[Row]:
    prompts = study_prompts(dataset)
    own = [
        Row("cp-tuning", "cp-tuning", {"template": prompt.template}, prompt.template)
        for prompt in prompts
    ]
    pet = [
        Row(
            "pet",
            "pet",
            {"template": prompt.template, "label_words": prompt.label_words},
            prompt.template,
        )
        for prompt in prompts
    ]
    return own + pet


def _tsne(_dataset: str) -> list[Row]:
    return [Row("cp-tuning", "cp-tuning")]


def _inference(_dataset: str) -> list[Row]:
    neighbours = [
        Row(f"k = {k} nearest", "cp-tuning", {"inference": "knn", "k": k})
        for k in (1, 3, 5, 7, 9, 15)
    ]
    return [
        *neighbours,
        Row("prototypes", "cp-tuning", {"inference": "prototype"}),
        Row("prototypes of unit length", "cp-tuning", {"inference": "unit-prototype"}),
    ]


def _selection(_dataset: str) -> list[Row]:
    return [
        Row(f"{method}, {kept}", method, {"selection": rule})
        for method in PAPER_METHODS
        for rule, kept in SELECTIONS.items()
    ]


STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            "main",
            "The methods on every data set",
            "Is CP-Tuning better than its seven rivals with 16 examples a class? PET has one "
            "pattern here and no unlabelled texts; LM-BFF's templates are filled in by the "
            "backbone itself (MLM), where the paper has a T5's. Dev chooses the step, too, by the "
            "same rule for all: the best one.",
            _main,
            PAPER_DATASETS,
        ),
        Study(
            "ablation",
            "Ablation",
            "What does each part of CP-Tuning contribute? The paper's “without α” drops α and "
            "turns Σ log into log Σ at once: here both are also changed one at a time.",
            _ablation,
        ),
        Study(
            "parameters",
            "Parameters",
            "How much do the margin m, the temperature τn, ξ = τp/τn and the weight λ matter?",
            _parameters,
            rates_only=True,
        ),
        Study(
            "batch-size",
            "Batch size",
            "Does contrastive learning need large batches here?",
            _batch_size,
            rates_only=True,
        ),
        Study(
            "unbalanced",
            "Unbalanced classes",
            "8 examples of one class and 24 of the other, in dev too, both ways round; with "
            "batches drawn uniformly, and with batches that hold as many of each class.",
            _unbalanced,
            rates_only=True,
            unbalanced=(8, 24),
        ),
        Study(
            "prompts",
            "Prompts",
            "How much does the prompt matter? Five prompts; PET also takes each one's words.",
            _prompts,
            rates_only=True,
        ),
        Study(
            "tsne",
            "Embeddings",
            "Are the classes apart in the space of [OMSK] embeddings?",
            _tsne,
            ("SST-2", "CR", "SUBJ"),
            keeps_embeddings=True,
            one_seed=True,
        ),
        Study(
            "inference",
            "Inference",
            "Do class prototypes do as well as the nearest examples?",
            _inference,
            rates_only=True,
        ),
        Study(
            "selection",
            "Which step is kept",
            "Is it better to keep the step that is best on dev, or the last one unless the best is "
            "better by more than a standard error (“one-standard-error”), as CP-Tuning's default "
            "preset does? For every method; the paper has no such study.",
            _selection,
            PAPER_DATASETS,
            rates_only=True,
        ),
    )
}

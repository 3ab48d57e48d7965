"""What a study is: its rows, its data sets, how dev chooses, and its own tables and pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cptuning.experiments.report.common_tables import StudyResults, standard_tables
from cptuning.experiments.report.parts import Picture, ResultTable

# The paper's pilot tasks.
PILOT = ("SST-2", "MR", "MRPC", "QQP")


@dataclass(frozen=True)
class Row:
    """A row of a table, or a variant that is pooled with others of the same name."""

    name: str
    method: str
    changes: dict[str, Any] = field(default_factory=dict)
    variant: str = ""
    shots: int = 16
    """How many training examples of each class there are."""
    transfers: bool = False
    """Whether it starts from a model that was trained on the study's other data sets."""


def rows_of_methods(rows: list[Row], methods: Sequence[str]) -> list[Row]:
    """The rows of these methods; all of them if none is named."""
    return [row for row in rows if not methods or row.method in methods]


def no_pictures(_results: StudyResults) -> list[Picture]:
    """What most studies show besides their tables."""
    return []


@dataclass(frozen=True)
class Study:
    """One of the paper's tables or figures, or one of our own."""

    name: str
    title: str
    question: str
    """What it is for, in a sentence or two."""
    make_rows: Callable[[str], list[Row]]
    """All rows for a data set."""
    datasets: tuple[str, ...] = PILOT
    choose_rows: Callable[[list[Row], Sequence[str]], list[Row]] = rows_of_methods
    """Those rows that ``--methods`` names."""
    in_all: bool = True
    """Whether "all" includes it; not if it needs other data sets than the paper's."""
    own_rate: bool = False
    """Every row has the learning rate and the batch size of its preset: dev chooses the step."""
    fast_datasets: tuple[str, ...] = ()
    """The data sets of the fast version, if not all."""
    rates_only: bool = False
    """Dev chooses the learning rate alone: the batch size is the study's, or 16."""
    unbalanced: tuple[int, int] | None = None
    """How many examples the rare and the frequent class have."""
    keeps_embeddings: bool = False
    one_seed: bool = False
    reference: str | None = None
    """The row that the others are tested against."""
    variants: str = ""
    """What a row pools besides the splits."""
    tables: Callable[[StudyResults], list[ResultTable]] = standard_tables
    pictures: Callable[[StudyResults], list[Picture]] = no_pictures

    def rows(self, dataset: str, methods: Sequence[str] = ()) -> list[Row]:
        """The rows for a data set; where methods are named, only theirs."""
        return self.choose_rows(self.make_rows(dataset), methods)

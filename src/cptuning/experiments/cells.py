"""A cell: one place of a table for one split, and the configurations that dev chooses among."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Candidate:
    """One configuration that dev may choose."""

    key: str
    parameters: dict[str, Any]
    """The parameters of the method's classifier."""
    configuration: dict[str, Any]
    """Everything that decides the outcome; the key is its hash."""


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
    """Which of the variants that the row pools: a prompt, or which class is rare."""
    counts: tuple[tuple[str, int], ...] = ()
    """The number of training examples of each class; empty: ``shots`` of each."""
    keeps_embeddings: bool = False
    fast: bool = False
    shots: int = 16
    """How many training examples each class has, if ``counts`` does not say."""
    sources: tuple[str, ...] = ()
    """The data sets that the model was trained on before."""

    @property
    def place(self) -> tuple[str, str, str, str, int]:
        """What tells it from every other cell of a directory."""
        return self.study, self.row, self.variant, self.dataset, self.seed

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Cell":
        """Make a cell from what ``asdict`` and JSON made of it."""
        counts = tuple((str(label), int(n)) for label, n in values["counts"])
        sources = tuple(values.get("sources", ()))
        return cls(**values | {"keys": tuple(values["keys"]), "counts": counts, "sources": sources})


@dataclass(frozen=True)
class PlannedCell:
    """A cell with everything that is needed to train its candidates."""

    cell: Cell
    candidates: tuple[Candidate, ...]

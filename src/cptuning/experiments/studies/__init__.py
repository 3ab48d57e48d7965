"""The paper's studies by name, and two of our own; each has a module of its own."""

from collections.abc import Iterable

from cptuning.experiments.directory import Outcome
from cptuning.experiments.studies.ablation import ABLATION
from cptuning.experiments.studies.batch_size import BATCH_SIZE
from cptuning.experiments.studies.inference import INFERENCE
from cptuning.experiments.studies.loss_parameters import PARAMETERS
from cptuning.experiments.studies.main import MAIN, METHOD_ROWS, PAPER_METHODS
from cptuning.experiments.studies.prompts import PROMPTS
from cptuning.experiments.studies.selection import SELECTION
from cptuning.experiments.studies.study import Row, Study
from cptuning.experiments.studies.transfer import TRANSFER
from cptuning.experiments.studies.tsne import TSNE
from cptuning.experiments.studies.unbalanced import UNBALANCED

__all__ = ["METHOD_ROWS", "PAPER_METHODS", "STUDIES", "Row", "Study", "in_study_order"]

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        MAIN,
        ABLATION,
        PARAMETERS,
        BATCH_SIZE,
        UNBALANCED,
        PROMPTS,
        TSNE,
        INFERENCE,
        SELECTION,
        TRANSFER,
    )
}


def in_study_order(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Outcomes by study, then by row, whenever they were added to their directory."""

    def rank(outcome: Outcome) -> tuple[int, int]:
        cell = outcome.cell
        rows = [row.name for row in STUDIES[cell.study].make_rows(cell.dataset)]
        place = rows.index(cell.row) if cell.row in rows else len(rows)
        return list(STUDIES).index(cell.study), place

    return sorted(outcomes, key=rank)

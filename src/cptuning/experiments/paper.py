"""The paper's own numbers, from ``paper.toml``, with averages recomputed from the rows."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

MAIN_BACKBONE, OTHER_BACKBONE = "RoBERTa-large", "ALBERT-large"


def paper_scores(
    study: str, row: str, backbone: str = MAIN_BACKBONE, table: str = "rows"
) -> dict[str, float]:
    """The accuracy in % on each data set; empty where the paper has no such row.

    >>> paper_scores("ablation", "without MLM")
    {'SST-2': 91.35, 'MR': 86.67, 'MRPC': 71.96, 'QQP': 72.47}
    >>> paper_scores("prompts", "pet", table="deviations")["QQP"]
    5.22
    """
    section = paper().get(study, {})
    values = section.get(table, {}).get(backbone, {}).get(row, [])
    return dict(zip(section.get("datasets", []), values, strict=False))


def paper_backbone(study: str, backbone: str) -> str:
    """The paper's backbone whose numbers stand beside those of this one.

    >>> paper_backbone("main", "albert/albert-large-v2"), paper_backbone("ablation", "albert")
    ('ALBERT-large', 'RoBERTa-large')
    """
    named = OTHER_BACKBONE if "albert" in backbone.lower() else MAIN_BACKBONE
    return named if named in paper().get(study, {}).get("rows", {}) else MAIN_BACKBONE


def is_paper_backbone(backbone: str, theirs: str) -> bool:
    """Whether a backbone is the paper's, by its name.

    >>> is_paper_backbone("FacebookAI/roberta-large", "RoBERTa-large")
    True
    >>> is_paper_backbone("embedded", "RoBERTa-large")
    False
    """
    own = backbone.lower().rpartition("/")[2].removesuffix("-v1").removesuffix("-v2")
    return own == theirs.lower()


@cache
def paper() -> dict[str, Any]:
    """The whole of ``paper.toml``.

    >>> paper()["sizes"]["MRPC"]
    [3668, 408]
    """
    return tomllib.loads((files("cptuning.experiments") / "paper.toml").read_text("utf-8"))

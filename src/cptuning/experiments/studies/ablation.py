"""The paper's ablation: CP-Tuning without one of its parts."""

from typing import Any

from cptuning.experiments.studies.study import Row, Study

_CHANGES: dict[str, dict[str, Any]] = {
    "full": {},
    "without MLM": {"contrastive_weight": 1.0},
    "with α, log Σ": {"form": "log_sum"},
    "without α, Σ log": {"relaxation": False},
    "without α, log Σ": {"relaxation": False, "form": "log_sum"},
    "without similarity averaging": {"loss": "sampled-pccl"},
}


def _rows(_dataset: str) -> list[Row]:
    return [Row(name, "cp-tuning", changes) for name, changes in _CHANGES.items()]


ABLATION = Study(
    "ablation",
    "Ablation",
    "What does each part of CP-Tuning contribute? The paper's “without α” drops α and turns "
    "Σ log into log Σ at once: here they are also changed one at a time.",
    _rows,
    reference="full",
)

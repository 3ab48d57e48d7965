"""The settings classes of the methods and the ranker, without estimators, training or torch."""

from cptuning.methods.cp_tuning_settings import CPTuningSettings
from cptuning.methods.ranking_settings import RankingSettings
from cptuning.methods.rival_settings import (
    LMBFFSettings,
    PETSettings,
    PTuningSettings,
    WARPSettings,
)
from cptuning.settings import TrainingSettings

SETTINGS: dict[str, type[TrainingSettings]] = {
    "cp-tuning": CPTuningSettings,
    "fine-tuning": TrainingSettings,
    "pet": PETSettings,
    "lm-bff-t": LMBFFSettings,
    "lm-bff-l": LMBFFSettings,
    "lm-bff-tl": LMBFFSettings,
    "p-tuning": PTuningSettings,
    "warp": WARPSettings,
    "ranking": RankingSettings,
}

"""One loop for every method: optimiser, schedule, best weights, checkpoints, progress."""

from cptuning.training.checkpoint import Checkpointer, CheckpointFolder
from cptuning.training.chunks import chunk_count, in_chunks, recomputed
from cptuning.training.loop import (
    Callback,
    History,
    Score,
    SearchCallback,
    TrainingTask,
    kept_step,
    train,
)
from cptuning.training.plan import TrainingPlan
from cptuning.training.processes import Processes, gather
from cptuning.training.progress import ProgressBar

__all__ = [
    "Callback",
    "CheckpointFolder",
    "Checkpointer",
    "History",
    "Processes",
    "ProgressBar",
    "Score",
    "SearchCallback",
    "TrainingPlan",
    "TrainingTask",
    "chunk_count",
    "gather",
    "in_chunks",
    "kept_step",
    "recomputed",
    "train",
]

"""One loop for every method: optimiser, schedule, best weights, checkpoints, progress."""

from cptuning.training.callbacks import Callback
from cptuning.training.checkpoint import Checkpointer, CheckpointFolder
from cptuning.training.chunks import chunk_count, in_chunks, recomputed
from cptuning.training.history import History, Score, kept_step
from cptuning.training.loop import Precision, TrainingTask, train
from cptuning.training.processes import Processes, gather
from cptuning.training.progress import ProgressBar

__all__ = [
    "Callback",
    "CheckpointFolder",
    "Checkpointer",
    "History",
    "Precision",
    "Processes",
    "ProgressBar",
    "Score",
    "TrainingTask",
    "chunk_count",
    "gather",
    "in_chunks",
    "kept_step",
    "recomputed",
    "train",
]

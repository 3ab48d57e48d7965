"""One loop for every method: optimiser, schedule, best weights, checkpoints, progress."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cptuning.training.callbacks import Callback
from cptuning.training.checkpoint_folder import CheckpointFolder
from cptuning.training.history import History, Score, kept_step

if TYPE_CHECKING:
    from cptuning.training.checkpoint import Checkpointer
    from cptuning.training.chunks import chunk_count, in_chunks, recomputed
    from cptuning.training.loop import Precision, TrainingTask, train
    from cptuning.training.processes import Processes, gather
    from cptuning.training.progress import ProgressBar
    from cptuning.training.trackers import (
        MLflowTracker,
        TensorBoardTracker,
        Tracker,
        TrackioTracker,
        WandbTracker,
    )

__all__ = [
    "Callback",
    "CheckpointFolder",
    "Checkpointer",
    "History",
    "MLflowTracker",
    "Precision",
    "Processes",
    "ProgressBar",
    "Score",
    "TensorBoardTracker",
    "Tracker",
    "TrackioTracker",
    "TrainingTask",
    "WandbTracker",
    "chunk_count",
    "gather",
    "in_chunks",
    "kept_step",
    "recomputed",
    "train",
]

# Looked up when first used: what is above needs no torch.
_HOMES = {
    "Checkpointer": "checkpoint",
    "MLflowTracker": "trackers",
    "Precision": "loop",
    "Processes": "processes",
    "ProgressBar": "progress",
    "TensorBoardTracker": "trackers",
    "Tracker": "trackers",
    "TrackioTracker": "trackers",
    "TrainingTask": "loop",
    "WandbTracker": "trackers",
    "chunk_count": "chunks",
    "gather": "processes",
    "in_chunks": "chunks",
    "recomputed": "chunks",
    "train": "loop",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cptuning.training' has no attribute {name!r}")
    return getattr(import_module(f"cptuning.training.{_HOMES[name]}"), name)

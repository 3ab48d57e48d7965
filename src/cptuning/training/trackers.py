"""Callbacks that log a run with a tracking tool: TensorBoard, MLflow, Weights & Biases, trackio."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cptuning.extras import needed_for
from cptuning.training.callbacks import Callback

if TYPE_CHECKING:
    from torch import Tensor

    from cptuning.training.history import Score


class Tracker(Callback):
    """Logs losses and held-out accuracies; a subclass passes them on to a tool.

    The name of a number begins with the stage of the fit: "fold 1 of 2/loss". A loss is logged
    every few steps, since reading it waits for the device.
    """

    def __init__(self, every: int = 10) -> None:
        self.every = every
        self._stage = "training"

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Send the numbers of a step to the tool."""
        raise NotImplementedError

    def finish(self) -> None:
        """Flush what has not been written yet, after a training."""

    def on_instant(self, score: "Score") -> None:
        """Log the accuracy without any training."""
        self.log({"instant/accuracy": score.accuracy}, 0)

    def on_start(self, stage: str, step: int, last: int) -> None:
        """Remember the stage, for the names."""
        self._stage = stage

    def on_step(self, step: int, losses: "dict[str, Tensor]") -> None:
        """Log the losses."""
        if step % self.every == 0:
            self.log({f"{self._stage}/{n}": float(loss) for n, loss in losses.items()}, step)

    def on_evaluate(self, step: int, score: "Score") -> None:
        """Log the accuracy and the log-loss on held-out examples."""
        found = {"accuracy": score.accuracy, "log_loss": -score.negative_log_loss}
        self.log({f"{self._stage}/{name}": value for name, value in found.items()}, step)

    def on_end(self, step: int) -> None:
        """Flush what has not been written yet."""
        self.finish()


class TensorBoardTracker(Tracker):
    """Writes the events of a fit to a folder, for ``tensorboard --logdir folder``."""

    def __init__(self, folder: str | Path, every: int = 10) -> None:
        super().__init__(every)
        self.folder = folder
        self._writer: Any = None

    def __getstate__(self) -> dict[str, Any]:
        # scikit-learn copies the parameters of an estimator, and a writer can't be copied.
        return self.__dict__ | {"_writer": None}

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Write the numbers."""
        if self._writer is None:
            with needed_for("TensorBoardTracker"):
                from torch.utils.tensorboard import SummaryWriter
            self._writer = SummaryWriter(str(self.folder))
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, step)

    def finish(self) -> None:
        """Close the file; what comes later goes to another one of the folder."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class MLflowTracker(Tracker):
    """Logs to MLflow's active run, or to a new one if there is none."""

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Log the numbers."""
        with needed_for("MLflowTracker"):
            import mlflow
        mlflow.log_metrics(dict(numbers), step=step)


class WandbTracker(Tracker):
    """Logs to the run that ``wandb.init`` began, or to a new one."""

    _package = "wandb"

    def __init__(self, project: str = "cptuning", every: int = 10) -> None:
        super().__init__(every)
        self.project = project
        self._began = False

    def log(self, numbers: Mapping[str, float], step: int) -> None:
        """Log the numbers, with the step as one of them: every stage begins at step 0 again."""
        with needed_for(type(self).__name__):
            tool = import_module(self._package)
        if not self._began and getattr(tool, "run", None) is None:
            tool.init(project=self.project)
        self._began = True
        tool.log({**numbers, f"{self._stage}/step": step})


class TrackioTracker(WandbTracker):
    """Logs with trackio, which has the interface of Weights & Biases: to a new run."""

    _package = "trackio"

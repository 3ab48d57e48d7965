"""A progress bar with loss, dev accuracy and time left, in a terminal and in a notebook."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cptuning.training.callbacks import Callback
from cptuning.training.history import Score

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from torch import Tensor


class ProgressBar(Callback):
    """Shows a run on standard error if that is a terminal, or below the cell of a notebook."""

    def __init__(self, console: "Console | None" = None) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._every = 1

    def on_search(self, what: str, done: int, last: int) -> None:
        """Show how far the search is."""
        if self._progress is None:
            self._show("{task.completed}/{task.total} readings", description=what, total=last)
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done)

    def on_start(self, stage: str, step: int, last: int) -> None:
        """Show the empty bar."""
        # Reading a loss makes the host wait for the device, so it is not done at every step.
        self._every = max(1, last // 50)
        self._show(
            "{task.completed}/{task.total} steps",
            "loss {task.fields[loss]}",
            "dev {task.fields[dev]}",
            description=stage,
            total=last,
            completed=step,
            loss="-",
            dev="-",
        )

    def _show(self, *columns: str, description: str, **task: Any) -> None:
        # Imported here, so that training without a progress bar works without rich.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        console = self._console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            *map(TextColumn, columns),
            TimeRemainingColumn(),
            console=console,
            disable=not (console.is_terminal or _has_widgets(console)),
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task(description[:1].upper() + description[1:], **task)

    def on_step(self, step: int, losses: "dict[str, Tensor]") -> None:
        """Move the bar."""
        if self._progress is None or self._task is None:
            return
        if step % self._every == 0:
            self._progress.update(self._task, loss=f"{float(losses['loss']):.3f}")
        self._progress.update(self._task, completed=step)

    def on_evaluate(self, step: int, score: Score) -> None:
        """Show the newest dev accuracy."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, dev=f"{100 * score.accuracy:.1f} %")

    def on_end(self, step: int) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def tell_fitted(
    seconds: float, accuracy: float | None, validation: str, console: "Console | None" = None
) -> None:
    """Print the closing line of a fit, where there is a bar, too."""
    from rich.console import Console

    console = console or Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        return
    known = "not measured" if accuracy is None else f"{100 * accuracy:.1f} % ({validation})"
    # In a notebook rich would draw it as a figure with colours of its own.
    print(f"Fitted in {seconds:.1f} s; held-out accuracy: {known}.", file=console.file)


def _has_widgets(console: "Console") -> bool:
    """Whether this is a notebook that can show a bar, for which rich needs ipywidgets."""
    return console.is_jupyter and find_spec("ipywidgets") is not None

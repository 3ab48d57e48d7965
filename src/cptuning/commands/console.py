"""Output of the commands: messages on standard error, results on standard output."""

import json
import logging
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

import cptuning


def say(message: str) -> None:
    """Print a message to standard error."""
    typer.echo(message, err=True)


def warn(message: str) -> None:
    """Print a warning to standard error."""
    say(f"warning: {message}")


def print_json(answer: Any) -> None:
    """Print a result for programs: one line of JSON."""
    typer.echo(json.dumps(answer, ensure_ascii=False, allow_nan=False, default=str))


def output_console() -> Console:
    """A console on standard output that prints text as it is: no markup, no emoji codes."""
    return Console(markup=False, emoji=False, highlight=False)


def print_table(
    rows: Iterable[Sequence[str]], header: Sequence[str] = (), numbers: int = 0
) -> None:
    """Print a result for people; the last ``numbers`` columns are right-aligned."""
    table = Table(show_header=bool(header), box=None, pad_edge=False)
    listed = [list(row) for row in rows]
    width = len(header) or len(listed[0])
    for place in range(width):
        table.add_column(
            header[place] if header else "",
            justify="right" if place >= width - numbers else "left",
            overflow="fold",
        )
    for row in listed:
        table.add_row(*row)
    output_console().print(table)


def rounded(share: float | None) -> float | None:
    """A share for JSON, rounded; None stays None.

    >>> rounded(1 / 3), rounded(None)
    (0.333333, None)
    """
    return None if share is None else round(share, 6)


class _OneLine(logging.Handler):
    """Shows each warning of the library once, on one line."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message not in self._shown:
            self._shown.add(message)
            warn(message)


def prepare_libraries() -> None:
    """Silence log lines and Python warnings of other packages.

    Also let torch's threads sleep while they wait for each other: on a busy machine, threads that
    spin make training several times slower.
    """
    # The packages read these when they are imported, which is later.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("HF_HUB_VERBOSITY", "critical")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    if not sys.warnoptions:  # Not requested with python -W.
        warnings.simplefilter("ignore")
    logger = logging.getLogger(cptuning.__name__)
    logger.handlers = [h for h in logger.handlers if not isinstance(h, _OneLine)]
    logger.addHandler(_OneLine())

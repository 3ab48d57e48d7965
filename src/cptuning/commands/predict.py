"""cptuning predict: a file of texts in, the same rows with their labels out."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from cptuning.commands import options
from cptuning.commands.console import print_json, say
from cptuning.data import check_kind, iter_tables, open_writer
from cptuning.data.formats import STANDARD_STREAM, TEXT_FORMATS, table_format
from cptuning.errors import CPTuningError
from cptuning.reporting.durations import format_duration
from cptuning.reporting.prediction_columns import PredictionColumns

if TYPE_CHECKING:
    from cptuning.cluster.prediction import PredictionJob

# Enough to fill batches of one length; little enough to see answers come.
_CHUNK = 256


def predict(
    model: options.Model,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A file with texts; - is stdin. With --runner ray, a folder."
        ),
    ],
    output: Annotated[
        str, typer.Option(metavar="FILE", help="The file to write; - is stdout.")
    ] = STANDARD_STREAM,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="A column for each class's probability.")
    ] = False,
    neighbours: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=0,
            help="Columns for the K nearest examples of the class it gets.",
        ),
    ] = 0,
    format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Of stdin and stdout: csv, tsv or jsonl.")
    ] = None,
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    runner: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="local; ray: a folder of Parquet files, on the cluster of $RAY_ADDRESS or here.",
        ),
    ] = "local",
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many workers of Ray share the folder.")
    ] = 1,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Label texts: adds the columns prediction and confidence.

    With --neighbours there are also columns for an example against the answer: one of another class
    that is nearer than all of these. The rows are read, answered and written piece by piece, so a
    file may be of any size. The confidence is empty where the answer is "unknown". --json prints a
    summary, not the rows.

    With --runner ray, FILE and --output are folders that every machine sees. Each row group of
    a Parquet file becomes a file of answers; a run that was stopped goes on where it was when it
    is started again.
    """
    if runner == "ray":
        from cptuning.cluster.prediction import PredictionJob

        _require_folders(file, output, format)
        # Workers have folders of their own to be in.
        folders = model.absolute(), Path(file).absolute(), Path(output).absolute()
        job = PredictionJob(*folders, probabilities, neighbours, text, text_b)
        _predict_on_ray(job, workers, quiet, as_json)
        return
    if runner != "local" or workers > 1:
        raise CPTuningError("--runner is local, or ray; --workers is for ray.")
    from cptuning.storage import load

    if as_json and output == STANDARD_STREAM:
        raise CPTuningError(
            "--json prints a summary where the rows go already: "
            "name a file with --output, or use --format jsonl for rows as JSON."
        )
    into, outof = _formats(file, output, format)
    began = time.monotonic()
    predictor = load(model).predictor_
    answers = PredictionColumns(predictor, probabilities, neighbours)
    tables = iter_tables(file, chunk=_CHUNK, text=text, text_b=text_b, format=into)
    counts: Counter[str] = Counter()
    with open_writer(output, outof) as writer, _counter(quiet) as advance:
        for table in tables:
            check_kind(table.examples, pairs=predictor.is_pair, path=file)
            rows = answers.rows(table, file)
            writer.write(rows)
            counts.update(str(row["prediction"]) for row in rows)
            advance(len(rows))
    if as_json:
        print_json({"rows": counts.total(), "output": output, "predictions": dict(counts)})
    elif not quiet:
        where = "standard output" if output == STANDARD_STREAM else output
        spent = format_duration(time.monotonic() - began)
        say(f"{counts.total()} rows written to {where} in {spent}.")


def _require_folders(file: str, output: str, format: str | None) -> None:
    if STANDARD_STREAM in (file, output) or format is not None:
        raise CPTuningError(
            "--runner ray goes from a folder of Parquet files to another: name both, the second "
            "one with --output, and no --format."
        )


def _predict_on_ray(job: "PredictionJob", workers: int, quiet: bool, as_json: bool) -> None:
    from cptuning.cluster.prediction import predict_on_ray

    began = time.monotonic()
    # Ray tells of workers that died on standard output, where our answer goes.
    with _counter(quiet) as advance, redirect_stdout(sys.stderr):
        summary = predict_on_ray(job, workers, advance)
    counts = summary.predictions
    if as_json:
        print_json(
            {
                "rows": counts.total(),
                "output": str(job.output),
                "predictions": dict(counts),
                "blocks": summary.blocks,
                "skipped": summary.skipped,
            }
        )
    elif not quiet:
        spent = format_duration(time.monotonic() - began)
        say(
            f"{counts.total()} rows written to {job.output} in {spent}; {summary.skipped} of "
            f"{summary.blocks} blocks were finished before."
        )


def _formats(file: str, output: str, format: str | None) -> tuple[str | None, str | None]:
    """The formats of what is read and of what is written, where the names don't tell."""
    streams = [path for path in (file, output) if path == STANDARD_STREAM]
    if format is not None and not streams:
        raise CPTuningError(
            "--format is for standard input and output: a file's kind is known by its ending."
        )
    into = format if file == STANDARD_STREAM else None
    if output != STANDARD_STREAM:
        return into, None
    # Out comes what went in, if it can pass through a pipe.
    kind = format or table_format(file, into)
    return into, kind if kind in TEXT_FORMATS else None


@contextmanager
def _counter(quiet: bool) -> Iterator[Any]:
    """Shows how many rows are done, on a terminal."""
    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.completed} rows"),
        TaskProgressColumn(show_speed=True),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task("", total=None)
        yield lambda n: progress.advance(task, n)

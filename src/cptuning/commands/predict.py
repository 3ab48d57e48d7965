"""cptuning predict: classify the texts of a file, and write its rows with the labels."""

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
from cptuning.data import check_kind, iter_tables, open_writer, separator_for
from cptuning.data.formats import STANDARD_STREAM, TEXT_FORMATS, table_format
from cptuning.errors import CPTuningError
from cptuning.reporting.formatting import format_duration
from cptuning.reporting.prediction_columns import PredictionColumns

if TYPE_CHECKING:
    from cptuning.cluster.prediction import PredictionJob
    from cptuning.storage import LoadedModel

# Enough rows for batches of texts of similar length, few enough for frequent output.
_CHUNK = 256


def predict(
    model: options.Model,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A file of texts; - is stdin. With --runner ray, a folder."
        ),
    ],
    output: Annotated[
        str, typer.Option(metavar="FILE", help="The output file; - is stdout.")
    ] = STANDARD_STREAM,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column with each class's probability.")
    ] = False,
    neighbours: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=0,
            help="Add columns with the K nearest examples of the predicted class.",
        ),
    ] = 0,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Add a column with a set of labels that has the right one with this probability, "
            "such as 0.9.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The format of stdin and stdout: csv, tsv or jsonl."),
    ] = None,
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    label_separator: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What joins the labels of a text that has several; without it, as in the training "
            "file, and lists in JSONL and Parquet.",
        ),
    ] = None,
    class_prior: options.ClassPrior = None,
    hierarchy: options.Hierarchy = None,
    min_confidence: options.MinConfidence = None,
    runner: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="local, or ray for a folder of Parquet files, on the cluster at $RAY_ADDRESS.",
        ),
    ] = "local",
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many Ray workers share the folder.")
    ] = 1,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Classify the texts of a file: adds the columns prediction and confidence.

    With --hierarchy the prediction is the deepest level that is certain enough; it is empty where
    not even the first one is, and --probabilities has a column for every level.

    --neighbours also adds columns for an example against the prediction: one of another class that
    is even nearer. Rows are read and written in chunks, so a file may have any size. The confidence
    is empty where the prediction is "unknown". Where texts may have several labels, the prediction
    is all of them. --json prints a summary instead of the rows.

    With --runner ray, FILE and --output are folders that every machine can access. Each row group
    of a Parquet file becomes one output file; a run that was stopped continues when it is started
    again.
    """
    least = options.parse_min_confidence(min_confidence, hierarchy)
    if runner == "ray":
        if hierarchy is not None:
            raise CPTuningError("--hierarchy is not for --runner ray: leave it out.")
        if class_prior is not None:
            raise CPTuningError(
                "--class-prior is not for --runner ray: "
                "fit the model with it, and it is a part of the model."
            )
        from cptuning.cluster.prediction import PredictionJob
        from cptuning.storage import find_model

        _require_folders(file, output, format)
        # Workers have their own working directories.
        folders = find_model(model).absolute(), Path(file).absolute(), Path(output).absolute()
        job = PredictionJob(
            *folders, probabilities, neighbours, text, text_b, coverage, label_separator
        )
        _predict_on_ray(job, workers, quiet, as_json)
        return
    if runner != "local" or workers > 1:
        raise CPTuningError("--runner must be local or ray, and --workers needs --runner ray.")
    from cptuning.storage import load_model

    if as_json and output == STANDARD_STREAM:
        raise CPTuningError(
            "--json prints its summary to stdout, where the rows go: "
            "name a file with --output, or use --format jsonl for rows as JSON."
        )
    into, outof = _formats(file, output, format)
    began = time.monotonic()
    loaded = load_model(model)
    predictor = loaded.predictor
    if class_prior is not None:
        shares = options.parse_by_label("--class-prior", class_prior)
        predictor = predictor.with_class_prior(shares)
    tree = None if hierarchy is None else predictor.hierarchy(hierarchy)
    separator = _separator(loaded, label_separator, table_format(output, outof))
    answers = PredictionColumns(
        predictor, probabilities, neighbours, coverage, separator, tree, least
    )
    tables = iter_tables(file, chunk=_CHUNK, text=text, text_b=text_b, format=into)
    counts: Counter[str] = Counter()
    n_rows = 0
    with open_writer(output, outof) as writer, _counter(quiet) as advance:
        for table in tables:
            check_kind(table.examples, pairs=predictor.is_pair, path=file)
            rows = answers.rows(table, file)
            writer.write(rows)
            counts.update(label for row in rows for label in answers.counted(row))
            n_rows += len(rows)
            advance(len(rows))
    if as_json:
        print_json({"rows": n_rows, "output": output, "predictions": dict(counts)})
    elif not quiet:
        where = "standard output" if output == STANDARD_STREAM else output
        spent = format_duration(time.monotonic() - began)
        say(f"{n_rows} rows written to {where} in {spent}.")


def _separator(model: "LoadedModel", given: str | None, format: str) -> str | None:
    """What joins the labels of a text in the output; None for lists, and for single labels."""
    facts = model.facts
    if given is not None or facts.label_sets is None or format in ("jsonl", "parquet"):
        return given
    known = None if facts.label_cells is None else facts.label_cells.separator
    return separator_for(model.predictor.label_space.classes, known)


def _require_folders(file: str, output: str, format: str | None) -> None:
    if STANDARD_STREAM in (file, output) or format is not None:
        raise CPTuningError(
            "--runner ray reads a folder of Parquet files and writes another: name both, the "
            "second with --output, and omit --format."
        )


def _predict_on_ray(job: "PredictionJob", workers: int, quiet: bool, as_json: bool) -> None:
    from cptuning.cluster.prediction import predict_on_ray

    began = time.monotonic()
    # Ray reports workers that died on standard output, where our result goes.
    with _counter(quiet) as advance, redirect_stdout(sys.stderr):
        summary = predict_on_ray(job, workers, advance)
    counts = summary.predictions
    if as_json:
        print_json(
            {
                "rows": summary.rows,
                "output": str(job.output),
                "predictions": dict(counts),
                "blocks": summary.blocks,
                "skipped": summary.skipped,
            }
        )
    elif not quiet:
        spent = format_duration(time.monotonic() - began)
        say(
            f"{summary.rows} rows written to {job.output} in {spent}; {summary.skipped} of "
            f"{summary.blocks} blocks were already finished."
        )


def _formats(file: str, output: str, format: str | None) -> tuple[str | None, str | None]:
    """The formats to read and to write, where the file names don't determine them."""
    streams = [path for path in (file, output) if path == STANDARD_STREAM]
    if format is not None and not streams:
        raise CPTuningError(
            "--format is only for stdin and stdout: the format of a file is known by its suffix."
        )
    into = format if file == STANDARD_STREAM else None
    if output != STANDARD_STREAM:
        return into, None
    # The output has the format of the input, if it can be written to a stream.
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

"""cptuning evaluate: how good a model is on labelled texts, as metrics and as a report."""

from pathlib import Path
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, print_table, say, warn
from cptuning.commands.tables import ColumnOptions, folder_name, labels_of
from cptuning.data import aligned, check_kind
from cptuning.data.formats import file_name
from cptuning.files.atomic import write_whole
from cptuning.reporting.evaluation import Evaluation
from cptuning.reporting.evaluation_report import report_html, verdict
from cptuning.reporting.formatting import format_interval, format_percent
from cptuning.reporting.html import check_writable


def evaluate(
    model: options.Model,
    test: Annotated[
        str, typer.Argument(metavar="TEST", help="A file of labelled texts; - is stdin.")
    ],
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a report as an HTML file.")
    ] = None,
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    label: options.LabelColumn = None,
    as_json: options.Json = False,
) -> None:
    """Measure a model on labelled texts that it has not seen."""
    from cptuning.storage import load_model

    if report is not None:
        check_writable(report)
    table = ColumnOptions(text, text_b, label).read_labelled(test)
    loaded = load_model(model)
    predictor = loaded.predictor
    check_kind(table.examples, pairs=predictor.is_pair, path=test)
    labels = aligned(labels_of(table), predictor.label_space.classes)
    evaluation = Evaluation.of(predictor, table.examples, labels)
    for line in evaluation.cautions():
        warn(line)
    if report is not None:
        name = file_name(test) if test == "-" else Path(test).name
        page = report_html(evaluation, loaded.facts.to_json(), model=folder_name(model), test=name)
        write_whole(report, page)
        say(f"The report is in {report}.")
    if as_json:
        print_json(evaluation.summary())
    else:
        print_evaluation(evaluation)


def print_evaluation(evaluation: Evaluation) -> None:
    """Print the metrics for people."""
    confusion = evaluation.confusion
    error = evaluation.calibration_error
    rows = [
        (
            "accuracy",
            format_percent(confusion.accuracy),
            f"95 % interval {format_interval(*evaluation.interval)}",
        ),
        ("macro-F1", format_percent(confusion.macro_f1), f"over {len(confusion.classes)} classes"),
        ("majority", format_percent(confusion.majority), "always the most frequent class"),
        ("texts", str(confusion.n), f"{confusion.right} answered correctly"),
    ]
    if evaluation.mean_distance is not None:
        distance = f"{evaluation.mean_distance:.3f}"
        rows.append(("mean error", distance, "mean distance to the right label"))
    if error is not None:
        rows.append(
            ("calibration", format_percent(error), "mean gap between confidence and accuracy")
        )
    unknown = int((~evaluation.answered).sum())
    if unknown:
        is_unsure = evaluation.predictor.least_confidence is not None
        why = "the answer is not sure enough" if is_unsure else "texts unlike every example"
        rows.append(("unknown", str(unknown), why))
    print_table(rows)
    typer.echo()
    print_table(
        [
            (
                str(s.label),
                format_percent(s.f1),
                format_percent(s.precision),
                format_percent(s.recall),
                str(s.support),
            )
            for s in confusion.by_class()
        ],
        header=("class", "F1", "precision", "recall", "texts"),
        numbers=4,
    )
    typer.echo(f"\n{verdict(evaluation)}")

"""cptuning evaluate: how good a model is on labelled texts, as metrics and as a report."""

from collections.abc import Sequence
from dataclasses import asdict
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
from cptuning.reporting.levels import LevelScore, scores_by_level


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
    hierarchy: options.Hierarchy = None,
    min_confidence: options.MinConfidence = None,
    as_json: options.Json = False,
) -> None:
    """Measure a model on labelled texts that it has not seen.

    With --hierarchy, also level by level.
    """
    from cptuning.storage import load_model

    least = options.parse_min_confidence(min_confidence, hierarchy)
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
    levels = []
    if hierarchy is not None:
        tree = predictor.hierarchy(hierarchy)
        levels = scores_by_level(tree, predictor.predict_proba(table.examples), labels, least)
    if as_json:
        by_level = {"levels": [asdict(level) for level in levels]} if levels else {}
        print_json(evaluation.summary() | by_level)
    else:
        print_evaluation(evaluation)
        if levels:
            print_levels(levels, least)


def print_levels(levels: Sequence[LevelScore], min_confidence: float) -> None:
    """Print how good a model is at each level of its labels."""
    typer.echo()
    print_table(
        [
            (
                str(one.level),
                str(one.texts),
                format_percent(one.accuracy),
                format_percent(one.answered / one.texts),
                "-" if one.answered == 0 else format_percent(one.right / one.answered),
            )
            for one in levels
        ],
        header=(
            "level",
            "texts",
            "accuracy",
            f"answered with {format_percent(min_confidence)}",
            "of these right",
        ),
        numbers=5,
    )


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
    if error is not None:
        rows.append(
            ("calibration", format_percent(error), "mean gap between confidence and accuracy")
        )
    unknown = int((~evaluation.answered).sum())
    if unknown:
        rows.append(("unknown", str(unknown), "texts unlike every example"))
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

"""cptuning evaluate: how good a model is on labelled texts, as metrics and as a report."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, print_table, say, warn
from cptuning.commands.tables import ColumnOptions, check_label_sets, folder_name, labels_of
from cptuning.data import aligned, check_kind
from cptuning.data.formats import file_name
from cptuning.files.atomic import write_whole
from cptuning.inference import MultiLabelPredictor
from cptuning.reporting.evaluation import Evaluation
from cptuning.reporting.evaluation_report import report_html, verdict
from cptuning.reporting.formatting import format_interval, format_percent
from cptuning.reporting.html import check_writable
from cptuning.reporting.label_evaluation import LabelSetEvaluation, f1_verdict
from cptuning.reporting.label_report import label_report_html
from cptuning.reporting.levels import LevelScore, scores_by_level
from cptuning.reporting.metrics import ClassScore


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
    label_separator: options.LabelSeparator = None,
    label_columns: options.LabelColumns = None,
    hierarchy: options.Hierarchy = None,
    min_confidence: options.MinConfidence = None,
    as_json: options.Json = False,
) -> None:
    """Measure a model on labelled texts that it has not seen.

    With --hierarchy, also level by level.
    """
    from cptuning.storage import find_model, load_model, read_facts

    least = options.parse_min_confidence(min_confidence, hierarchy)
    if report is not None:
        check_writable(report)
    columns = ColumnOptions.of(text, text_b, label, label_separator, label_columns)
    folder = find_model(model)
    facts = read_facts(folder)
    table = columns.remembering(facts.label_cells).read_labelled(test)
    check_label_sets(table, facts.label_sets is not None, test, "the model")
    loaded = load_model(folder)
    predictor = loaded.predictor
    check_kind(table.examples, pairs=predictor.is_pair, path=test)
    labels = aligned(labels_of(table), predictor.label_space.classes)
    evaluation: Evaluation | LabelSetEvaluation
    if isinstance(predictor, MultiLabelPredictor):
        evaluation = LabelSetEvaluation.of(predictor, table.examples, labels)
    else:
        evaluation = Evaluation.of(predictor, table.examples, labels)
    for line in evaluation.cautions():
        warn(line)
    if report is not None:
        name = file_name(test) if test == "-" else Path(test).name
        known, names = loaded.facts.to_json(), {"model": folder_name(model), "test": name}
        if isinstance(evaluation, LabelSetEvaluation):
            page = label_report_html(evaluation, known, **names)
        else:
            page = report_html(evaluation, known, **names)
        write_whole(report, page)
        say(f"The report is in {report}.")
    levels = []
    if hierarchy is not None:
        tree = predictor.hierarchy(hierarchy)
        levels = scores_by_level(tree, predictor.predict_proba(table.examples), labels, least)
    if as_json:
        by_level = {"levels": [asdict(level) for level in levels]} if levels else {}
        print_json(evaluation.summary() | by_level)
    elif isinstance(evaluation, LabelSetEvaluation):
        _print_label_sets(evaluation)
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


def _print_label_sets(evaluation: LabelSetEvaluation) -> None:
    scores = evaluation.scores
    low, high = scores.micro_f1_interval
    print_table(
        [
            (
                "micro-F1",
                format_percent(scores.micro_f1),
                f"over all labels, 95 % interval {format_interval(low, high)}",
            ),
            ("macro-F1", format_percent(scores.macro_f1), f"over {len(scores.labels)} labels"),
            ("sample F1", format_percent(scores.sample_f1), f"over {scores.n} texts"),
            (
                "accuracy",
                format_percent(scores.subset_accuracy),
                f"exactly their labels, 95 % interval {format_interval(*evaluation.interval)}",
            ),
            ("baseline", format_percent(scores.constant_f1), "micro-F1 of the same labels for all"),
            (
                "calibration",
                format_percent(evaluation.calibration_error),
                "mean gap between probability and truth",
            ),
        ]
    )
    typer.echo()
    _print_scores("label", scores.by_label())
    typer.echo(f"\n{f1_verdict(scores)}")


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
    _print_scores("class", confusion.by_class())
    typer.echo(f"\n{verdict(evaluation)}")


def _print_scores(kind: str, scores: Sequence[ClassScore]) -> None:
    print_table(
        [
            (
                str(s.label),
                format_percent(s.f1),
                format_percent(s.precision),
                format_percent(s.recall),
                str(s.support),
            )
            for s in scores
        ],
        header=(kind, "F1", "precision", "recall", "texts"),
        numbers=4,
    )

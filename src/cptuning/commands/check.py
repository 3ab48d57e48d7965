"""cptuning check: what looks like a mistake in labelled data."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, say
from cptuning.commands.tables import ColumnOptions, check_label_sets, described, labels_of
from cptuning.data import check_kind
from cptuning.files.atomic import write_whole
from cptuning.reporting.formatting import format_percent
from cptuning.reporting.html import check_writable

_FOUND = 1


def check(
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="A file of labelled texts; - is stdin.")
    ],
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A file of labelled test texts, to find leaks."),
    ] = None,
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    label_columns: options.LabelColumns = None,
    backbone: options.Backbone = "embedded",
    most: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many findings of a kind to print.")
    ] = 10,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all findings to an HTML file.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 if there is any finding.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Check labelled texts for wrong labels, repeated texts and leaks.

    The exit code is 0 whatever is found, unless --strict is given.
    """
    from cptuning.cleaning import check as check_data
    from cptuning.cleaning.check_report import check_report_html

    if report is not None:
        check_writable(report)
    columns = ColumnOptions.of(text, text_b, label, label_separator, label_columns)
    known = columns.read_examples(train)
    say(described(known, train))
    tested: dict[str, Any] = {}
    if test is not None:
        asked = columns.read_labelled(test)
        check_kind(asked.examples, pairs=known.examples.is_pair, path=test)
        check_label_sets(asked, known.has_label_sets, test, train)
        say(described(asked, test))
        tested = {
            "X_test": asked.examples,
            "y_test": labels_of(asked),
            "test_names": asked.where,
        }
    found = check_data(
        known.examples, labels_of(known), backbone=backbone, names=known.where, **tested
    )
    if report is not None:
        write_whole(report, check_report_html(found, Path(train).name, test and Path(test).name))
        say(f"The report is in {report}.")
    if as_json:
        print_json(found.to_json())
    else:
        typer.echo(found.text(most))
        for note in found.notes:
            typer.echo(f"\n{note}")
        if found.error_share is not None:
            share = format_percent(found.error_share)
            typer.echo(f"\nAbout {share} of the labels are probably wrong, by an estimate.")
    if strict and found.findings:
        raise typer.Exit(_FOUND)

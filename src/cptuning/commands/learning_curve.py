"""cptuning learning-curve: whether more labels would help."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cptuning.commands import options
from cptuning.commands.console import print_json, print_table, say
from cptuning.commands.tables import ColumnOptions, check_label_sets, described, labels_of
from cptuning.data import Examples, LabelledData, aligned, check_kind, is_multi_label, label_parts
from cptuning.errors import CPTuningError
from cptuning.files.atomic import write_whole
from cptuning.reporting.curve_measurement import default_sizes, largest_size, measure
from cptuning.reporting.formatting import format_duration, format_percent
from cptuning.reporting.html import check_writable
from cptuning.reporting.learning_curve import RULE, LearningCurve

_BAR = 30


def learning_curve(
    train: Annotated[
        str, typer.Argument(metavar="TRAIN", help="A file of labelled examples; - is stdin.")
    ],
    test: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A file of labelled texts to test on; else cross-fits."),
    ] = None,
    sizes: Annotated[
        str,
        typer.Option(
            metavar="NUMBERS",
            help="Examples per class, such as 2,4,8; auto doubles from 2 up to all examples.",
        ),
    ] = "auto",
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many times to sample and train.")
    ] = 3,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the curve as an .html or .png file.")
    ] = None,
    method: options.Method = "cp-tuning",
    backbone: options.Backbone = "embedded",
    preset: options.Preset = "default",
    task: options.Task = None,
    template: options.Template = None,
    label_words: options.LabelWords = None,
    seed: options.Seed = 0,
    settings: options.Settings = None,
    device: options.Device = "auto",
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    label_columns: options.LabelColumns = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Measure whether more labels would help: accuracy by examples per class.

    Where texts have several labels, it is the mean F1 of their label sets by texts per label.
    Each repeat trains on growing subsets of the data, each contained in the next. Ctrl-C stops
    and shows what was measured so far.
    """
    from cptuning.registry import make_classifier

    if output is not None:
        if output.suffix not in (".html", ".png"):
            raise CPTuningError(f"{output}: name a file that ends in .html or .png.")
        check_writable(output)
    columns = ColumnOptions.of(text, text_b, label, label_separator, label_columns)
    table = columns.read_examples(train)
    data = LabelledData(table.examples, labels_of(table))
    held_out = _test_data(test, columns, data, train)
    wanted = _sizes(sizes, largest_size(data, held_out, repeats))

    def classifier(seed: int) -> Any:
        return make_classifier(
            method,
            backbone=backbone,
            preset=preset,
            random_state=seed,
            validation="none",
            device=device,
            verbose=not quiet,
            **options.parse_settings(settings, method)
            | options.parse_prompt(task, template, label_words),
        )

    def answer(
        examples: Examples, labels: list[Hashable], new: Examples, seed: int
    ) -> Sequence[Hashable]:
        model = classifier(seed)
        model.fit_prepared(model.prepare(examples, labels))  # fit would print a line each time.
        answers: list[Hashable] = model.predictor_.answer(new).labels.tolist()
        return answers

    if not quiet:
        say(described(table, train))
        trainings = len(wanted) * repeats
        seconds = trainings * classifier(seed).estimate_seconds(data.examples, data.labels)
        say(f"{trainings} trainings will take about {format_duration(seconds)}.")
    curve: LearningCurve | None = None
    try:
        for number, curve in enumerate(
            measure(data, held_out, sizes=wanted, repeats=repeats, seed=seed, answer=answer)
        ):
            if not quiet:
                repeat, place = divmod(number, len(wanted))
                accuracy = curve.accuracies[wanted[place]][-1]
                say(
                    f"repeat {repeat + 1} of {repeats}, {wanted[place]} examples per {curve.per}: "
                    f"{format_percent(accuracy)}"
                )
        stopped = False
    except KeyboardInterrupt:
        stopped = True
    if curve is None:
        raise KeyboardInterrupt
    if output is not None:
        page = curve.png() if output.suffix == ".png" else curve.html(Path(train).name)
        write_whole(output, page)
        say(f"The curve is in {output}.")
    if as_json:
        print_json(curve.summary() | {"complete": not stopped})
    else:
        _print(curve)
    if stopped:
        say("Stopped: this is what was measured so far.")
        raise typer.Exit(130)


def _test_data(
    test: str | None, columns: ColumnOptions, data: LabelledData, train: str
) -> LabelledData | None:
    if test is None:
        return None
    table = columns.read_labelled(test)
    check_kind(table.examples, pairs=data.examples.is_pair, path=test)
    check_label_sets(table, is_multi_label(data.labels), test, train)
    known = {part for label in data.labels for part in label_parts(label)}
    return LabelledData(table.examples, aligned(labels_of(table), known))


def _sizes(words: str, largest: int) -> list[int]:
    """The requested sizes for which there are enough examples."""
    if words == "auto":
        return default_sizes(largest)
    try:
        sizes = sorted({int(word) for word in words.split(",")})
    except ValueError:
        sizes = [0]
    if sizes[0] < 1:
        raise CPTuningError(f"--sizes is {words!r}: give positive numbers, such as 2,4,8.")
    possible = [size for size in sizes if size <= largest]
    if not possible:
        raise CPTuningError(
            f"--sizes is {words!r}, but no class has more than {largest} examples to train on."
        )
    if len(possible) < len(sizes):
        left = ", ".join(str(size) for size in sizes if size > largest)
        say(f"Skipped: {left} (no class has more than {largest} examples to train on).")
    return possible


def _print(curve: LearningCurve) -> None:
    rows = [
        (str(p.size), format_percent(p.mean), p.interval_text, "█" * round(_BAR * p.mean))
        for p in curve.points()
    ]
    rows.append(
        ("", format_percent(curve.majority), curve.baseline, "░" * round(_BAR * curve.majority))
    )
    print_table(rows, header=(f"examples per {curve.per}", curve.metric, "95 % interval", ""))
    typer.echo(f"\n{curve.verdict}\n{RULE}")

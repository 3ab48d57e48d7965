"""cptuning fit: labelled examples in, a model folder out."""

import time
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from cptuning.backbone import CATALOGUE, cached_folder, is_folder
from cptuning.commands import options
from cptuning.commands.console import print_json, say, warn
from cptuning.commands.tables import (
    ColumnOptions,
    check_label_sets,
    described,
    labels_of,
    oddities,
)
from cptuning.data import (
    Examples,
    NoRowsError,
    Table,
    aligned,
    check_kind,
    label_parts,
    read_descriptions,
    read_table,
)
from cptuning.errors import CPTuningError
from cptuning.extras import needed_for
from cptuning.inference import Rejection
from cptuning.reporting.evaluation import overlap
from cptuning.reporting.formatting import format_duration, format_interval, format_percent
from cptuning.reporting.metrics import wilson_interval

if TYPE_CHECKING:
    from cptuning.estimator import TextClassifier
    from cptuning.training import Callback, Score


def fit(
    output: Annotated[Path, typer.Option(metavar="MODEL", help="The folder for the model.")],
    train: Annotated[
        str | None,
        typer.Argument(
            metavar="TRAIN",
            help="A file of labelled examples; - is stdin. It may be left out, or have a header "
            "only, with --label-descriptions.",
        ),
    ] = None,
    dev: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of labelled examples for validation.")
    ] = None,
    unlabeled: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file of unlabelled texts.")
    ] = None,
    method: options.Method = "cp-tuning",
    backbone: options.Backbone = "embedded",
    preset: options.Preset = "default",
    task: options.Task = None,
    template: options.Template = None,
    label_words: options.LabelWords = None,
    seed: options.Seed = 0,
    validation: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Without --dev: cross-fit, or none (half the time, but nothing is measured).",
        ),
    ] = "cross-fit",
    folds: Annotated[
        int, typer.Option(metavar="N", help="The number of folds for cross-fitting.")
    ] = 2,
    unknown_threshold: options.UnknownThreshold = None,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="balanced|WEIGHTS",
            help="The weight of each class's examples: balanced, or for example spam=5,ham=1.",
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column with the weight of each example."),
    ] = None,
    class_prior: options.ClassPrior = None,
    label_descriptions: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="What labels mean: a JSON object from labels to texts, a JSON list of labels, or "
            "a table with the columns label and description.",
        ),
    ] = None,
    label_names: Annotated[
        bool,
        typer.Option("--label-names", help="Use the names of the labels as their descriptions."),
    ] = False,
    ordinal: options.Ordinal = None,
    settings: options.Settings = None,
    init_from: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Start from another model's weights.")
    ] = None,
    device: options.Device = "auto",
    text: options.TextColumn = None,
    text_b: options.SecondTextColumn = None,
    label: options.LabelColumn = None,
    label_separator: options.LabelSeparator = None,
    label_columns: options.LabelColumns = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Train a model on labelled examples.

    A fit that was stopped resumes when the same command is given again.
    """
    from cptuning.registry import make_classifier
    from cptuning.storage import check_place

    if class_prior is not None and method != "cp-tuning":
        raise CPTuningError(
            f"--class-prior is for the method cp-tuning: leave it out with {method}."
        )
    if ordinal is not None and method != "cp-tuning":
        raise CPTuningError(f"--ordinal is for the method cp-tuning: leave it out with {method}.")
    for option, given in {"--task": task, "--label-words": label_words}.items():
        if given is not None and method == "cp-tuning":
            raise CPTuningError(
                f"{option} is for methods with label words, and cp-tuning has none: "
                "leave it out, or choose another --method."
            )
    began = time.monotonic()
    checkpoints = Path(f"{output}.checkpoint")
    classifier = make_classifier(
        method,
        backbone=backbone,
        preset=preset,
        random_state=seed,
        validation=validation,
        folds=folds,
        device=device,
        verbose=not quiet,
        checkpoint_dir=checkpoints,
        **options.parse_threshold(unknown_threshold),
        **options.parse_weights(class_weight, class_prior),
        **options.parse_ordinal(ordinal),
        **options.parse_settings(settings, method)
        | options.parse_prompt(task, template, label_words),
    )
    check_place(output)
    columns = ColumnOptions.of(text, text_b, label, label_separator, label_columns)
    data = _Data.read(
        train, dev, unlabeled, columns, _descriptions(label_descriptions, label_names)
    )
    for line in data.warnings():
        warn(line)
    if not quiet:
        for line in data.lines():
            say(line)
        if init_from is None and (notice := _download_notice(backbone)):
            say(notice)
        classifier.set_params(callbacks=[_notices(data.train.has_label_sets)])
    try:
        training = classifier.prepare(
            **data.arguments(), init_from=init_from, sample_weight=data.weights(weight)
        )
        if not quiet and training.settings.steps > 0:
            seconds = classifier.fit_seconds(training)
            say(f"Training will take about {format_duration(seconds)}.")
        classifier.fit_prepared(training)
        if columns.label_cells is not None:
            classifier.training_["label_cells"] = columns.label_cells.to_json()
        classifier.save(output)
    except (KeyboardInterrupt, SystemExit) as stop:  # Ctrl-C, or SIGTERM during the training.
        say(_stopped(checkpoints))
        raise typer.Exit(130 if isinstance(stop, KeyboardInterrupt) else 143) from None
    result = _result(classifier, output, time.monotonic() - began)
    if data.train.has_label_sets and (held_out := classifier.held_out_) is not None:
        result["held_out"] = {"sample_f1": held_out.score().accuracy, "n": len(held_out.labels)}
    if as_json:
        print_json(result)
    elif not quiet:
        _print(result)


def _download_notice(backbone: str) -> str | None:
    """What is said before a backbone is downloaded."""
    row = CATALOGUE.get(backbone)
    if row is None and not is_folder(backbone):
        return f"Loading the backbone {backbone}, downloading it if necessary …"
    if row is not None and row.hub_id and cached_folder(row) is None:
        return f"Downloading the backbone {row.hub_id} ({row.megabytes} MB) …"
    return None


def _descriptions(path: str | None, names: bool) -> Any:
    """What says what labels mean, as the classifier takes it."""
    if path is not None and names:
        raise CPTuningError(
            "Give either --label-descriptions or --label-names: a description may contain the name."
        )
    return read_descriptions(path) if path is not None else "names" if names else None


def _read_train(train: str | None, columns: ColumnOptions, descriptions: Any) -> tuple[str, Table]:
    """The training file, and its name; without rows if labels are described instead."""
    nothing = Table([], Examples(()), [], [])
    if train is None:
        if descriptions is None:
            raise CPTuningError(
                "There is nothing to learn from: give a file of labelled examples, or say with "
                "--label-descriptions what the labels mean."
            )
        return "TRAIN", _without_examples(nothing, descriptions)
    try:
        return train, columns.read_examples(train)
    except NoRowsError:
        if descriptions is None:
            raise
        return train, _without_examples(nothing, descriptions)


def _without_examples(nothing: Table, descriptions: Any) -> Table:
    if descriptions == "names":
        raise CPTuningError(
            "--label-names takes the names of the labels in TRAIN, and there are none: give "
            '--label-descriptions FILE, which may be a JSON list of labels such as ["a", "b"].'
        )
    return nothing


class _Data:
    """The files of a fit, read and checked."""

    def __init__(self, train: tuple[str, Table], descriptions: Any) -> None:
        self.path, self.train = train
        self.descriptions = descriptions
        self.dev_path: str | None = None
        self.dev: Table | None = None
        self.dev_labels: list[Hashable] | None = None
        self.unlabeled: Table | None = None

    @classmethod
    def read(
        cls,
        train: str | None,
        dev: str | None,
        unlabeled: str | None,
        columns: ColumnOptions,
        descriptions: Any,
    ) -> "_Data":
        data = cls(_read_train(train, columns, descriptions), descriptions)
        pairs = data.train.examples.is_pair
        if dev is not None:
            data.dev_path, data.dev = dev, columns.read_labelled(dev)
            check_kind(data.dev.examples, pairs=pairs, path=dev)
            check_label_sets(data.dev, data.train.has_label_sets, dev, data.path)
            data.dev_labels = data._checked_dev_labels(data.dev)
        if unlabeled is not None:
            data.unlabeled = read_table(unlabeled, text=columns.text, text_b=columns.text_b)
            check_kind(data.unlabeled.examples, pairs=pairs, path=unlabeled)
        return data

    def _checked_dev_labels(self, dev: Table) -> list[Hashable]:
        known = {part for label in labels_of(self.train) for part in label_parts(label)}
        if not isinstance(self.descriptions, str | None):
            known |= set(aligned(list(self.descriptions), known))
        labels = aligned(labels_of(dev), known)
        for label, where in zip(labels, dev.where, strict=True):
            for part in label_parts(label):
                if part not in known:
                    raise CPTuningError(
                        f"{where}: the label {part!r} does not occur in {self.path}, "
                        "add examples of it there or remove the row."
                    )
        return labels

    def arguments(self) -> dict[str, Any]:
        """What the classifier's fit takes."""
        return {
            "X": self.train.examples,
            "y": labels_of(self.train),
            "X_dev": self.dev.examples if self.dev else None,
            "y_dev": self.dev_labels,
            "unlabeled": self.unlabeled.examples if self.unlabeled else None,
            "label_descriptions": self.descriptions,
        }

    def weights(self, column: str | None) -> list[float] | None:
        """What each example counts, from a column of the training file."""
        if column is None:
            return None
        weights = []
        for row, where in zip(self.train.rows, self.train.where, strict=True):
            if column not in row:
                raise CPTuningError(f"{self.path} has no column {column!r}: see --weight.")
            try:
                weights.append(float(row[column]))
            except (TypeError, ValueError):
                raise CPTuningError(
                    f"{where}: the weight {row[column]!r} is not a number."
                ) from None
        return weights

    def lines(self) -> list[str]:
        lines = [described(self.train, self.path)] if len(self.train.examples) else []
        if self.dev is not None:
            lines.append(described(self.dev, str(self.dev_path)))
        if self.unlabeled is not None:
            lines.append(f"{len(self.unlabeled.examples)} texts without labels.")
        return lines

    def warnings(self) -> list[str]:
        lines = oddities(self.train, self.path)
        if self.dev is not None:
            common = overlap(self.dev.examples, self.train.examples)
            if common:
                lines.append(
                    f"{common} of the {len(self.dev.examples)} dev texts are in the training file "
                    "too: the held-out accuracy will be too high."
                )
        return lines


def _notices(label_sets: bool) -> "Callback":
    """A callback that says what is known before the training, and when one is resumed."""
    with needed_for("Training"):
        from cptuning.training import Callback

    class Notices(Callback):
        def on_instant(self, score: "Score") -> None:
            found, n = format_percent(score.accuracy), score.examples
            if label_sets:
                say(f"Without training: F1 {found}, the mean over {n} held-out examples.")
            else:
                say(f"Without training: {found} of {n} held-out examples right.")

        def on_start(self, stage: str, step: int, last: int) -> None:
            if step > 0:
                say(f"Resuming {stage} at step {step} of {last}, where it was stopped.")

    return Notices()


def _stopped(checkpoints: Path) -> str:
    from cptuning.training import CheckpointFolder

    if CheckpointFolder(checkpoints).holds_state:
        return (
            f"Stopped: the state is in {checkpoints}, "
            "give the same command again to resume from there."
        )
    return "Stopped before the first checkpoint: nothing was written."


# What a fit states that began without training, or has a target for its errors.
_COMPARED = ("instant_accuracy", "kept", "rejection")


def _result(classifier: "TextClassifier", output: Path, seconds: float) -> dict[str, Any]:
    from cptuning.storage import SEARCH_FACTS

    training = classifier.training_
    accuracy = training["held_out_accuracy"]
    held_out = None
    if accuracy is not None:
        # Without a dev set every example is held out once, if its class has another.
        counts = training["dev_examples"] or {
            label: n for label, n in training["examples"].items() if n > 1
        }
        if "descriptions" in training and classifier.held_out_ is not None:
            # Then examples that are alone in their class are, too.
            counts = dict(enumerate(np.bincount(classifier.held_out_.labels).tolist()))
        n = sum(counts.values())
        held_out = {
            "accuracy": accuracy,
            "interval": list(wilson_interval(round(accuracy * n), n)),
            "majority": max(counts.values()) / n,
            "n": n,
        }
    return {
        "model": str(output),
        "examples": training["examples"],
        "validation": training["validation"],
        "held_out": held_out,
        "steps": training["best_step"],
        "seconds": round(seconds, 1),
        **{
            name: training[name]
            for name in (*SEARCH_FACTS, *_COMPARED, "descriptions")
            if name in training
        },
    }


def _of_descriptions(described: dict[str, Any]) -> str:
    n, weight = described["texts"], described["weight"]
    texts = "1 description of a label" if n == 1 else f"{n} descriptions of labels"
    if weight == 0:
        return f"{texts}: held-out answers are better without them, so they are left out."
    examples = "an example" if weight == 1 else f"{weight:g} examples"
    return f"{texts}: each counts as {examples}."


def _print(result: dict[str, Any]) -> None:
    held_out = result["held_out"]
    if held_out is None:
        typer.echo("The accuracy was not measured: nothing was held out.")
    elif "sample_f1" in held_out:
        typer.echo(
            f"Held-out F1 {format_percent(held_out['sample_f1'])} "
            f"(the mean over {held_out['n']} texts, {result['validation']})."
        )
    else:
        typer.echo(
            f"Held-out accuracy {format_percent(held_out['accuracy'])} "
            f"(95 % interval {format_interval(*held_out['interval'])}, {held_out['n']} texts, "
            f"{result['validation']}; always the most frequent class: "
            f"{format_percent(held_out['majority'])})."
        )
    if described := result.get("descriptions"):
        typer.echo(_of_descriptions(described))
    if result.get("rejection") is not None:
        typer.echo(Rejection(**result["rejection"]).sentence())
    if result.get("kept") == "instant":
        typer.echo("Held-out answers prefer the model without training: it was kept.")
    if "search" in result:
        steps = result["candidate_steps"]
        how = f"tuned for {steps} steps each" if steps else "the one that was found first is taken"
        typer.echo(f"{result['search']}: {result['candidates']} candidates, {how}.")
    model = result["model"]
    typer.echo(
        f"The model is in {model} ({result['steps']} steps, {format_duration(result['seconds'])})."
    )
    typer.echo(f"Next: cptuning evaluate {model} TEST.csv --report report.html")

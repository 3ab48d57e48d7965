"""cptuning demo: train and try models on the package's sample data, in about a minute."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from cptuning.commands.console import print_table
from cptuning.commands.explain import print_explanations
from cptuning.data import Examples, Table
from cptuning.data.sample_data import read_sample
from cptuning.files.atomic import write_whole
from cptuning.reporting.evaluation import Evaluation
from cptuning.reporting.evaluation_report import report_html, verdict
from cptuning.reporting.formatting import format_duration, format_interval, format_percent

_FAST_STEPS = 3

_NEW_CLASS = "job_application"
_NEW_EXAMPLES = (
    "Are you hiring drivers at the moment? I have a licence and could start next week.",
    "Please find my CV attached, I'd love to work in your shop.",
    "Do you take students for a summer job in the warehouse?",
)
_NEW_TEXTS = (
    "Do you have any jobs for students? I could start in July.",
    "Is the position in the warehouse still open? I can start at once.",
    "I'd like to apply as a cashier.",
)


def demo(
    output: Annotated[
        Path, typer.Option(metavar="FOLDER", help="The folder for the models and the report.")
    ] = Path("demo-output"),
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Train for three steps only: it runs, but hardly learns."),
    ] = False,
) -> None:
    """Train on sample customer messages, and show what the model can do."""
    from cptuning.storage import check_place, read_facts

    steps = _FAST_STEPS if fast else None
    messages, pairs = output / "messages-model", output / "same-question-model"
    for place in (messages, pairs):
        check_place(place)

    typer.echo("1. Customer messages: which of six departments should handle them?")
    classifier, evaluation = _task("messages", steps, messages)
    typer.echo("\n2. Some correct answers, with the examples that explain them")
    shown = _some_right_answers(evaluation)
    typer.echo()
    print_explanations(classifier.explain(evaluation.examples.take(shown), 2))
    typer.echo(f"\n3. A new class, {_NEW_CLASS}, from three examples, without training")
    _show_new_class(classifier)
    typer.echo("\n4. Pairs: do two customers ask the same question?")
    _task("same_question", steps, pairs)
    typer.echo("   Pairs are hard for the small embedded backbone: use a larger one for them.")

    report = output / "report.html"
    page = report_html(
        evaluation, read_facts(messages).to_json(), model="messages", test="messages_test.csv"
    )
    write_whole(report, page)
    typer.echo(f"\nThe models are in {messages} and {pairs}, the report is in {report}.")
    typer.echo(f'Try: cptuning explain {messages} "I want my money back"')


def _task(name: str, steps: int | None, place: Path) -> tuple[Any, Evaluation]:
    """Answer without training, train on one of the data sets, and save the model."""
    from cptuning import CPTuningClassifier

    train, test = read_sample(f"{name}_train"), read_sample(f"{name}_test")
    began = time.monotonic()
    instant = CPTuningClassifier(preset="instant", verbose=False)
    accuracy = instant.fit(train.examples, train.labels).score(test.examples, test.labels)
    typer.echo(
        f"   {len(train.examples)} examples, {len(test.examples)} new ones answered after "
        f"{format_duration(time.monotonic() - began)}, without training:"
    )
    _row("CP-Tuning, instant", accuracy)
    began = time.monotonic()
    classifier = CPTuningClassifier(steps=steps, validation="none")
    classifier.fit_prepared(classifier.prepare(train.examples, train.labels))
    seconds = time.monotonic() - began
    evaluation = Evaluation.of(classifier.predictor_, test.examples, list(test.labels or []))
    typer.echo(f"   trained in {format_duration(seconds)}:")
    _row("CP-Tuning, trained", evaluation.confusion.accuracy)
    typer.echo("   for comparison:")
    _row("always the most frequent class", evaluation.confusion.majority)
    _row("TF-IDF + logistic regression", _baseline(train, test))
    typer.echo(f"   95 % interval {format_interval(*evaluation.interval)}. {verdict(evaluation)}")
    classifier.save(place)
    return classifier, evaluation


def _row(title: str, accuracy: float) -> None:
    typer.echo(f"   {title:<32}{format_percent(accuracy):>8}")


def _baseline(train: Table, test: Table) -> float:
    """The accuracy of a bag of words, which any method should be compared with."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(C=10))
    model.fit(_joined(train.examples), train.labels)
    return float(model.score(_joined(test.examples), test.labels))


def _joined(examples: Examples) -> list[str]:
    return [text if isinstance(text, str) else " ".join(text) for text in examples]


def _some_right_answers(evaluation: Evaluation, count: int = 3) -> list[int]:
    """The first test texts of different classes that were answered correctly."""
    chosen: dict[Any, int] = {}
    for row, right in enumerate(evaluation.right):
        if right and len(chosen) < count:
            chosen.setdefault(evaluation.truth[row], row)
    return list(chosen.values())


def _show_new_class(classifier: Any) -> None:
    before = classifier.predict(list(_NEW_TEXTS))
    classifier.add_examples(list(_NEW_EXAMPLES), [_NEW_CLASS] * len(_NEW_EXAMPLES))
    after = classifier.predict(list(_NEW_TEXTS))
    print_table(
        [(f"   {old}", str(new), t) for t, old, new in zip(_NEW_TEXTS, before, after, strict=True)],
        header=("   before", "after", ""),
    )

"""The report on a model as one HTML file: how good it is, where it fails, and why."""

import csv
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from html import escape
from importlib.resources import files
from io import StringIO
from typing import Any

import numpy as np

import cptuning
from cptuning.data import label_text
from cptuning.inference import Evidence, Reasons
from cptuning.inference.support import FloatArray, IntArray
from cptuning.reporting.evaluation import ConfidentError, Evaluation
from cptuning.reporting.figures import (
    class_colour,
    confusion_svg,
    embedding_svg,
    reliability_svg,
)
from cptuning.reporting.formatting import format_interval, format_percent
from cptuning.reporting.html import download_html, html_page, table_html, text_html
from cptuning.reporting.metrics import reliability
from cptuning.reporting.projection import project, subsample

_MOST_POINTS = 1500
_MOST_TRAIN_POINTS = 500
MOST_CONFUSIONS = 8
_MOST_LEGEND = 30
UNFOLDED_ERRORS = 5


def report_html(evaluation: Evaluation, facts: Mapping[str, Any], *, model: str, test: str) -> str:
    """The report; ``facts`` describe the model, ``model`` and ``test`` are names to show."""
    parts = [
        _headline(evaluation),
        *_warnings(evaluation),
        '<div class="two">',
        _classes(evaluation),
        _confusion(evaluation),
        "</div>",
        '<div class="two">',
        _calibration(evaluation),
        _embeddings(evaluation),
        "</div>",
        _errors(evaluation),
    ]
    has_filter = len(evaluation.errors) > 0
    return page_html(parts, facts, model=model, test=test, has_filter=has_filter)


def page_html(
    parts: Sequence[str], facts: Mapping[str, Any], *, model: str, test: str, has_filter: bool
) -> str:
    """The whole page: a head, the parts of a report, and how the model was trained."""
    title = f"Evaluation of {model} on {test}"
    body = "\n".join(
        [
            f"<header><h1>{escape(title)}</h1>{_training_line(facts)}</header>",
            *parts,
            _settings(facts),
            f"<footer>Created by cptuning {escape(cptuning.__version__)}. This file loads "
            "nothing; it contains texts of the training and test data.</footer>",
        ]
    )
    script = (files("cptuning.reporting") / "filter.js").read_text("utf-8")
    return html_page(title, body, script if has_filter else "")


def verdict(evaluation: Evaluation) -> str:
    """Whether the model is better than always predicting the most frequent class."""
    low, high = evaluation.interval
    majority = evaluation.confusion.majority
    if low > majority:
        return "It is clearly better than always predicting the most frequent class."
    if high < majority:
        return "It is clearly worse than always predicting the most frequent class."
    return (
        f"On {evaluation.confusion.n} texts it is not clearly different from always predicting the "
        "most frequent class: the interval contains that baseline."
    )


def _training_line(facts: Mapping[str, Any]) -> str:
    training = facts["training"]
    # A text with several labels is an example of each.
    n = training.get("texts", sum(training["examples"].values()))
    kind = "classes" if facts.get("label_sets") is None else "labels"
    backbone = str(facts["parameters"].get("backbone", "embedded"))
    return (
        f'<p class="muted">{len(facts["classes"])} {kind}, trained on {n} examples '
        f"with the backbone {escape(backbone)}.</p>"
    )


def _headline(evaluation: Evaluation) -> str:
    confusion = evaluation.confusion
    low, high = evaluation.interval
    error = evaluation.calibration_error
    tiles = [
        (format_percent(confusion.macro_f1), "macro-F1"),
        (format_percent(confusion.majority), "majority baseline"),
        ("–" if error is None else format_percent(error), "calibration error (ECE)"),
        (f"{confusion.right} of {confusion.n}", "correct answers"),
    ]
    unknown = int((~evaluation.answered).sum())
    if unknown:
        tiles.append((str(unknown), "answered “unknown”"))
    tiles_html = "".join(f'<div class="tile"><b>{b}</b><span>{s}</span></div>' for b, s in tiles)
    side = (
        "left" if confusion.majority < 0.15 else "right" if confusion.majority > 0.85 else "middle"
    )
    return f"""<div class="headline">
<div class="figure">{format_percent(confusion.accuracy)}
<span class="muted">accuracy, 95 % interval {format_interval(low, high)}</span></div>
<div class="scale" role="img" aria-label="Accuracy {format_percent(confusion.accuracy)},
 majority baseline {format_percent(confusion.majority)}">
<div class="band" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></div>
<div class="mark base" style="left:{100 * confusion.majority:.2f}%"></div>
<div class="mark" style="left:{100 * confusion.accuracy:.2f}%"></div>
<div class="name {side}" style="left:{100 * confusion.majority:.2f}%">majority
 {format_percent(confusion.majority)}</div>
</div>
<p>{verdict(evaluation)}</p>
</div>
<div class="tiles">{tiles_html}</div>"""


def _warnings(evaluation: Evaluation) -> list[str]:
    return [f'<p class="warning">{escape(line)}</p>' for line in evaluation.cautions()]


def _classes(evaluation: Evaluation) -> str:
    rows = [
        [
            f'<td class="name">{text_html(str(score.label), 60)}</td>',
            f'<td class="bar"><i style="width:{100 * score.f1:.1f}%"></i></td>',
            f"{100 * score.f1:.1f}",
            f"{100 * score.precision:.1f}",
            f"{100 * score.recall:.1f}",
            str(score.support),
        ]
        for score in evaluation.confusion.by_class()
    ]
    table = table_html(["class", "", "F1", "precision", "recall", "texts"], rows, numbers=4)
    mistakes = [
        [label_html(truth), label_html(answer), str(n)]
        for truth, answer, n in evaluation.confusion.mistakes()[:MOST_CONFUSIONS]
    ]
    listed = table_html(["true class", "answer", "errors"], mistakes, numbers=1) if mistakes else ""
    return f"<section><h2>Results by class</h2>{table}{listed}</section>"


def _confusion(evaluation: Evaluation) -> str:
    return f"""<section><h2>Confusion matrix</h2>
<p class="muted small">Each row is a true class, each column an answer; the darker a cell, the
larger its share of the row.</p>
<div class="picture">{confusion_svg(evaluation.confusion)}</div></section>"""


def _calibration(evaluation: Evaluation) -> str:
    answered = evaluation.answered
    error = evaluation.calibration_error
    if error is None:
        return "<section><h2>Is its confidence reliable?</h2><p>No text was answered.</p></section>"
    confidence, right = evaluation.confidence[answered], evaluation.right[answered]
    gap = float(confidence.mean() - right.mean())
    if abs(gap) < 0.03:
        manner = "well calibrated on average"
    else:
        manner = "overconfident" if gap > 0 else "underconfident"
    return f"""<section><h2>Is its confidence reliable?</h2>
<p class="muted small">Answers grouped by confidence; on the dashed line, answers with a confidence
of 80 % are correct in 80 % of cases. Larger dots stand for more answers.</p>
<div class="picture">{reliability_svg(reliability(confidence, right))}</div>
<p>It is {manner}: mean confidence {format_percent(float(confidence.mean()))}, accuracy
{format_percent(float(right.mean()))}, expected calibration error
{format_percent(error)}.</p></section>"""


def _embeddings(evaluation: Evaluation) -> str:
    support = evaluation.predictor.support
    if support is None or evaluation.embeddings is None:
        return ""
    numbers = {label: i for i, label in enumerate(evaluation.predictor.label_space.classes)}
    test_classes = np.array([numbers.get(label, -1) for label in evaluation.truth], dtype=np.int64)
    hint = (
        "Texts that are close to each other are similar to the model. Colours are the true "
        "classes; a test text among diamonds of another colour is likely to be misclassified."
    )
    legend = legend_html(evaluation.predictor.label_space.classes)
    return map_html(
        support.embeddings, evaluation.embeddings, support.labels, test_classes, hint, legend
    )


def map_html(
    train_embeddings: FloatArray,
    test_embeddings: FloatArray,
    train_classes: IntArray,
    test_classes: IntArray,
    hint: str,
    legend: str,
) -> str:
    """A section with a map of training and test texts, coloured by the numbers of classes."""
    train = subsample(len(train_classes), _MOST_TRAIN_POINTS)
    test = subsample(len(test_classes), _MOST_POINTS - len(train))
    points, method = project(np.concatenate([train_embeddings[train], test_embeddings[test]]))
    picture = embedding_svg(
        points,
        np.concatenate([train_classes[train], test_classes[test]]),
        np.arange(len(points)) < len(train),
    )
    n_texts = len(train_classes) + len(test_classes)
    shown = f" {len(points)} of {n_texts} texts are shown." if len(points) < n_texts else ""
    return f"""<section><h2>Map of the texts ({method})</h2>
<p class="muted small">{hint}{shown}</p>
<div class="picture wide">{picture}</div>
{legend}</section>"""


def legend_html(classes: Sequence[Hashable]) -> str:
    """The colours of the classes."""
    items = ['<li><i class="train"></i>training</li>', '<li><i class="test"></i>test</li>']
    for number, label in enumerate(classes[:_MOST_LEGEND]):
        colour = class_colour(number)
        items.append(f'<li><i style="background:{colour}"></i>{text_html(str(label), 40)}</li>')
    if len(classes) > _MOST_LEGEND:
        items.append(f"<li>and {len(classes) - _MOST_LEGEND} more</li>")
    return f'<ul class="legend">{"".join(items)}</ul>'


def _errors(evaluation: Evaluation) -> str:
    errors = evaluation.most_confident_errors()
    if not errors:
        return "<section><h2>Most confident errors</h2><p>There are none.</p></section>"
    cards = [_error(error) for error in errors]
    shown, folded = "\n".join(cards[:UNFOLDED_ERRORS]), cards[UNFOLDED_ERRORS:]
    if folded:
        more = "1 more error" if len(folded) == 1 else f"{len(folded)} more errors"
        shown += f'<details id="more"><summary>{more}</summary>{"".join(folded)}</details>'
    total = len(evaluation.errors)
    listed = f"{total} wrong answers" if total > 1 else "The wrong answer"
    if len(errors) < total:
        listed = f"The {len(errors)} most confident of {total} wrong answers"
    table = download_html("errors.csv", errors_csv(evaluation), "All wrong answers as a CSV file")
    return f"""<section><h2>Most confident errors</h2>
<p class="muted small">{listed}, the most confident first, with the nearest labelled examples of the
predicted class, if the method compares with examples. Often the cause is a mislabelled or a missing
example. {table}</p>
{_filter(errors)}
{shown}</section>"""


def _filter(errors: Sequence[ConfidentError]) -> str:
    """What the page's script shows and reads."""
    kinds = Counter(map(_kind, errors))
    options = "".join(
        f'<option value="{escape(kind)}">{escape(kind)} ({n})</option>'
        for kind, n in kinds.most_common()
    )
    return f"""<form id="find" hidden>
<label>Search <input type="search" name="text" placeholder="a word of the text"></label>
<label>Show <select name="kind"><option value="">all of them</option>{options}</select></label>
<output name="count" class="muted"></output></form>"""


def _kind(error: ConfidentError) -> str:
    return f"{error.truth} → {error.answer}"


def errors_csv(evaluation: Evaluation) -> str:
    """All wrong answers as CSV, the most confident first."""
    texts = list(evaluation.examples)
    names = ["text_a", "text_b"] if evaluation.examples.is_pair else ["text"]
    stream = StringIO()
    # Carriage returns in texts are quoted only if they are in the line terminator.
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([*names, "label", "prediction", "confidence"])
    for row in evaluation.errors:
        text = texts[row]
        answer = [evaluation.truth[row], evaluation.answers[row]]
        parts = [text] if isinstance(text, str) else text
        writer.writerow([*parts, *answer, f"{evaluation.confidence[row]:.4f}"])
    return stream.getvalue()


def _error(error: ConfidentError) -> str:
    reasons = reasons_html(error.reasons, "because it is similar to")
    return f"""<div class="error" data-kind="{escape(_kind(error))}">
<blockquote>{example_html(error.text)}</blockquote>
<p class="verdict">answered <span class="wrong">{label_html(error.answer)}</span>
with {format_percent(error.confidence)},
true class <span class="truth">{label_html(error.truth)}</span></p>
{reasons}</div>"""


def reasons_html(reasons: Reasons, title: str) -> str:
    """The labelled examples that speak for an answer, and the one against it."""
    shown = _examples(title, reasons)
    if reasons.against is not None:
        shown += _examples("although this is even nearer", [reasons.against])
    return shown


def _examples(title: str, examples: Sequence[Evidence]) -> str:
    rows = [
        [
            f'<td class="label">{label_html(example.title)}<br>'
            f'<span class="muted small">{example.similarity:.2f}</span></td>',
            example_html(example.text),
        ]
        for example in examples
    ]
    return table_html(["label, similarity", escape(title)], rows) if rows else ""


def example_html(text: str | tuple[str, str]) -> str:
    """A text, or both texts of a pair below each other, escaped.

    >>> example_html(("a", "b"))
    '<span dir="auto">a</span><br><span dir="auto">b</span>'
    """
    if isinstance(text, str):
        return text_html(text) if text.strip() else '<span class="muted">(empty text)</span>'
    return "<br>".join(example_html(part) for part in text)


def label_html(label: Hashable) -> str:
    """A label or a label set, escaped.

    >>> label_html(("late", "rude"))
    '<span dir="auto">late, rude</span>'
    """
    return text_html(label_text(label), 60)


def _settings(facts: Mapping[str, Any]) -> str:
    training = facts["training"]
    rows = {
        "method": facts["method"],
        "prompt": facts["layout"]["template"],
        "training examples": ", ".join(f"{c}: {n}" for c, n in training["examples"].items()),
        "validation": training["validation"],
        "training steps": training["best_step"],
        "seed": training["seed"],
        "temperature of the probabilities": f"{facts['temperature']:.4f}",
        "unknown threshold": facts["unknown_threshold"],
        "unknown up to the confidence": facts["least_confidence"],
        **facts["settings"],
    }
    settings = [[escape(name), f"<code>{escape(str(v))}</code>"] for name, v in rows.items()]
    versions = [[escape(p), f"<code>{escape(v)}</code>"] for p, v in facts["versions"].items()]
    return f"""<section><h2>How it was trained</h2>
<details><summary>Settings</summary>{table_html(["setting", "value"], settings)}</details>
<details><summary>Versions at training</summary>
{table_html(["package", "version"], versions)}</details></section>"""

"""The report on a model of label sets as one HTML file: how good each label is, and why."""

import csv
from collections.abc import Mapping, Sequence
from html import escape
from io import StringIO
from typing import Any

import numpy as np

from cptuning.data import label_text, strata
from cptuning.data.label_cells import SEPARATORS, separator_for
from cptuning.errors import CPTuningError
from cptuning.inference import Reasons
from cptuning.reporting.evaluation_report import (
    MOST_CONFUSIONS,
    UNFOLDED_ERRORS,
    example_html,
    label_html,
    legend_html,
    map_html,
    page_html,
    reasons_html,
)
from cptuning.reporting.figures import reliability_svg
from cptuning.reporting.formatting import format_interval, format_percent
from cptuning.reporting.html import download_html, table_html, text_html
from cptuning.reporting.label_evaluation import LabelSetError, LabelSetEvaluation, f1_verdict
from cptuning.reporting.metrics import reliability


def label_report_html(
    evaluation: LabelSetEvaluation, facts: Mapping[str, Any], *, model: str, test: str
) -> str:
    """The report; ``facts`` describe the model, ``model`` and ``test`` are names to show."""
    parts = [
        _headline(evaluation),
        *(f'<p class="warning">{escape(line)}</p>' for line in evaluation.cautions()),
        '<div class="two">',
        _labels(evaluation),
        _mistakes(evaluation),
        "</div>",
        '<div class="two">',
        _calibration(evaluation),
        _map(evaluation),
        "</div>",
        _errors(evaluation),
    ]
    has_filter = len(evaluation.errors) > 0
    return page_html(parts, facts, model=model, test=test, has_filter=has_filter)


def _headline(evaluation: LabelSetEvaluation) -> str:
    scores = evaluation.scores
    low, high = scores.micro_f1_interval
    tiles = [
        (format_percent(scores.macro_f1), "macro-F1, the mean over labels"),
        (format_percent(scores.sample_f1), "sample F1, the mean over texts"),
        (format_percent(scores.subset_accuracy), "texts with exactly their labels"),
        (format_percent(evaluation.calibration_error), "calibration error (ECE)"),
        (str(scores.n), "texts"),
    ]
    shown = "".join(f'<div class="tile"><b>{b}</b><span>{s}</span></div>' for b, s in tiles)
    base = scores.constant_f1
    side = "left" if base < 0.15 else "right" if base > 0.85 else "middle"
    return f"""<div class="headline">
<div class="figure">{format_percent(scores.micro_f1)}
<span class="muted">micro-F1, 95 % interval {format_interval(low, high)}</span></div>
<div class="scale" role="img" aria-label="Micro-F1 {format_percent(scores.micro_f1)},
 the same labels for every text {format_percent(base)}">
<div class="band" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></div>
<div class="mark base" style="left:{100 * base:.2f}%"></div>
<div class="mark" style="left:{100 * scores.micro_f1:.2f}%"></div>
<div class="name {side}" style="left:{100 * base:.2f}%">same labels for all
 {format_percent(base)}</div>
</div>
<p>{f1_verdict(scores)}</p>
</div>
<div class="tiles">{shown}</div>"""


def _labels(evaluation: LabelSetEvaluation) -> str:
    rows = [
        [
            f'<td class="name">{text_html(str(score.label), 60)}</td>',
            f'<td class="bar"><i style="width:{100 * score.f1:.1f}%"></i></td>',
            f"{100 * score.f1:.1f}",
            f"{100 * score.precision:.1f}",
            f"{100 * score.recall:.1f}",
            str(score.support),
            str(score.answered),
        ]
        for score in evaluation.scores.by_label()
    ]
    header = ["label", "", "F1", "precision", "recall", "texts", "given"]
    bare = sum(not own for own in evaluation.truth)
    given = sum(not own for own in evaluation.answers)
    return f"""<section><h2>Results by label</h2>{table_html(header, rows, numbers=5)}
<p class="muted small">{bare} of the texts have no label, {given} are given none.</p></section>"""


def _mistakes(evaluation: LabelSetEvaluation) -> str:
    mistakes = [
        [label_html(missing), label_html(extra), str(n)]
        for missing, extra, n in evaluation.scores.mistakes()[:MOST_CONFUSIONS]
    ]
    table = table_html(["missing label", "given label", "texts"], mistakes, numbers=1)
    return f"""<section><h2>Labels that are taken for others</h2>
<p class="muted small">A label that a text has but was not given, and one that it was given but does
not have.</p>{table if mistakes else "<p>There are none.</p>"}</section>"""


def _calibration(evaluation: LabelSetEvaluation) -> str:
    shares, truth = evaluation.probabilities.ravel(), evaluation.has_label.ravel()
    return f"""<section><h2>Are its probabilities reliable?</h2>
<p class="muted small">All labels of all texts grouped by probability; on the dashed line, labels
with a probability of 80 % are true in 80 % of cases. Larger dots stand for more of them.</p>
<div class="picture">{reliability_svg(reliability(shares, truth.astype(bool)))}</div>
<p>Mean probability {format_percent(float(shares.mean()))}, share of true labels
{format_percent(float(truth.mean()))}, expected calibration error
{format_percent(evaluation.calibration_error)}.</p></section>"""


def _map(evaluation: LabelSetEvaluation) -> str:
    support = evaluation.predictor.support
    known = evaluation.has_label
    classes = strata(np.concatenate([support.labels, known]))
    n_labels = len(evaluation.predictor.label_space.classes)
    classes = np.where(classes == n_labels, -1, classes)  # A text without labels has no colour.
    hint = (
        "Texts that are close to each other are similar to the model. A colour is the rarest label "
        "of a text; texts without labels have none."
    )
    return map_html(
        support.embeddings,
        evaluation.embeddings,
        classes[: len(support)],
        classes[len(support) :],
        hint,
        legend_html(evaluation.predictor.label_space.classes),
    )


def _errors(evaluation: LabelSetEvaluation) -> str:
    errors = evaluation.most_confident_errors()
    if not errors:
        return "<section><h2>Most confident errors</h2><p>There are none.</p></section>"
    cards = [_error(error) for error in errors]
    shown, folded = "\n".join(cards[:UNFOLDED_ERRORS]), cards[UNFOLDED_ERRORS:]
    if folded:
        more = "1 more error" if len(folded) == 1 else f"{len(folded)} more errors"
        shown += f'<details id="more"><summary>{more}</summary>{"".join(folded)}</details>'
    total = len(evaluation.errors)
    listed = f"{len(errors)} of {total} texts" if len(errors) < total else f"{total} texts"
    table = download_html("errors.csv", label_errors_csv(evaluation), "All of them as a CSV file")
    return f"""<section><h2>Most confident errors</h2>
<p class="muted small">{listed} that were not given exactly their labels, the most confident first,
with the nearest labelled examples of each label that is wrong. {table}</p>
{_filter(errors)}
{shown}</section>"""


def _filter(errors: Sequence[LabelSetError]) -> str:
    """What the page's script shows and reads."""
    kinds: dict[str, int] = {}
    for error in errors:
        kinds[_kind(error)] = kinds.get(_kind(error), 0) + 1
    options = "".join(
        f'<option value="{escape(kind)}">{escape(kind)} ({n})</option>'
        for kind, n in sorted(kinds.items(), key=lambda item: -item[1])
    )
    return f"""<form id="find" hidden>
<label>Search <input type="search" name="text" placeholder="a word of the text"></label>
<label>Show <select name="kind"><option value="">all of them</option>{options}</select></label>
<output name="count" class="muted"></output></form>"""


def _kind(error: LabelSetError) -> str:
    parts = [f"without {label_text(error.missing)}"] if error.missing else []
    parts += [f"with {label_text(error.extra)}"] if error.extra else []
    return ", ".join(parts)


def _error(error: LabelSetError) -> str:
    right = [label for label in error.answer if label in error.truth]
    parts = [
        *(f'<span class="wrong">{label_html(label)}</span>, wrongly' for label in error.extra),
        *(f'<span class="truth">{label_html(label)}</span>, missed' for label in error.missing),
        *(f"{label_html(label)}, rightly" for label in right),
    ]
    if not error.answer:
        parts.insert(0, "given no label")
    because = "".join(_because(label, reasons) for label, reasons in error.reasons.items())
    return f"""<div class="error" data-kind="{escape(_kind(error))}">
<blockquote>{example_html(error.text)}</blockquote>
<p class="verdict">{"; ".join(parts)}.
Confidence in the whole set: {format_percent(error.confidence)}.</p>
{because}</div>"""


def _because(label: Any, reasons: Reasons) -> str:
    return reasons_html(reasons, f"{label}, because it is similar to")


def label_errors_csv(evaluation: LabelSetEvaluation) -> str:
    """All texts that were not given exactly their labels as CSV, the most confident first."""
    texts = list(evaluation.examples)
    try:
        separator = separator_for(evaluation.scores.labels)
    except CPTuningError:  # The labels contain every separator: better ambiguous than no report.
        separator = SEPARATORS[0]
    stream = StringIO()
    # Carriage returns in texts are quoted only if they are in the line terminator.
    writer = csv.writer(stream, lineterminator="\r\n")
    names = ["text_a", "text_b"] if evaluation.examples.is_pair else ["text"]
    writer.writerow([*names, "label", "prediction", "confidence"])
    for row in evaluation.errors:
        text = texts[row]
        answer = [label_text(x[row], separator) for x in (evaluation.truth, evaluation.answers)]
        parts = [text] if isinstance(text, str) else text
        writer.writerow([*parts, *answer, f"{evaluation.confidence[row]:.4f}"])
    return stream.getvalue()

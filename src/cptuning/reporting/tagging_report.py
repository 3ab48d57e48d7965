"""The report on a tagger as one HTML file: how much it finds, and texts with coloured spans."""

from collections.abc import Sequence
from html import escape

import cptuning
from cptuning.data.sentences import Sentence
from cptuning.data.tag_schemes import WordSpan
from cptuning.reporting.figures import class_colour
from cptuning.reporting.formatting import format_interval, format_percent
from cptuning.reporting.html import html_page, table_html, text_html
from cptuning.reporting.span_metrics import SpanScores

_MOST_SHOWN = 60
_UNFOLDED = 15


def tagging_report_html(
    sentences: Sequence[Sentence],
    scores: SpanScores,
    types: Sequence[str],
    *,
    model: str,
    test: str,
) -> str:
    """The report; ``model`` and ``test`` are names to show."""
    title = f"Evaluation of {model} on {test}"
    labels = list(dict.fromkeys([*types, *(str(score.label) for score in scores.by_type())]))
    body = "\n".join(
        [
            f"<header><h1>{escape(title)}</h1></header>",
            _headline(scores, len(sentences)),
            _by_type(scores, labels),
            _texts(sentences, scores, labels),
            f"<footer>Created by cptuning {escape(cptuning.__version__)}. This file loads "
            "nothing; it contains texts of the test data.</footer>",
        ]
    )
    return html_page(title, body)


def marked_html(sentence: Sentence, spans: Sequence[WordSpan], labels: Sequence[str]) -> str:
    """A text as HTML with its spans in colours, each with the name of its type.

    >>> html = marked_html(Sentence.of_text("to <b>"), [WordSpan(1, 4, "tag")], ["tag"])
    >>> "&lt;b&gt;<small>tag</small></mark>" in html and "<b>" not in html
    True
    """
    parts, at = [], 0
    for span in spans:
        start, end = sentence.places[span.start][0], sentence.places[span.stop - 1][1]
        colour = class_colour(labels.index(span.label))
        parts.append(escape(sentence.text[at:start]))
        parts.append(
            f'<mark style="border-color:{colour}">{escape(sentence.text[start:end])}'
            f"<small>{escape(span.label)}</small></mark>"
        )
        at = end
    parts.append(escape(sentence.text[at:]))
    return f'<span dir="auto" class="marked">{"".join(parts)}</span>'


def _headline(scores: SpanScores, n: int) -> str:
    overall = scores.overall
    tiles = [
        (format_percent(overall.precision), "precision"),
        (format_percent(overall.recall), "recall"),
        (f"{overall.right} of {overall.support}", "spans found"),
        (str(n), "texts"),
    ]
    tiles_html = "".join(f'<div class="tile"><b>{b}</b><span>{s}</span></div>' for b, s in tiles)
    return f"""<div class="headline">
<div class="figure">{format_percent(scores.f1)}
<span class="muted">span F1, 95 % interval {format_interval(*scores.interval)}</span></div>
<p>A span counts as found if its type, its beginning and its end are right.</p>
</div>
<div class="tiles">{tiles_html}</div>"""


def _by_type(scores: SpanScores, labels: Sequence[str]) -> str:
    rows = [
        [
            f'<td class="name">{text_html(str(score.label), 60)}</td>',
            f'<td class="bar"><i style="width:{100 * score.f1:.1f}%;'
            f'background:{class_colour(labels.index(str(score.label)))}"></i></td>',
            f"{100 * score.f1:.1f}",
            f"{100 * score.precision:.1f}",
            f"{100 * score.recall:.1f}",
            str(score.support),
            str(score.answered),
        ]
        for score in scores.by_type()
    ]
    header = ["type", "", "F1", "precision", "recall", "in the data", "found"]
    return f"<section><h2>Results by type</h2>{table_html(header, rows, numbers=5)}</section>"


def _texts(sentences: Sequence[Sentence], scores: SpanScores, labels: Sequence[str]) -> str:
    rows = list(zip(sentences, scores.truth, scores.found, strict=True))
    # Texts with most that is missed or wrongly found come first.
    rows.sort(key=lambda row: -len(set(row[1]) ^ set(row[2])))
    wrong = sum(set(truth) != set(found) for _, truth, found in rows)
    cards = []
    for sentence, truth, found in rows[:_MOST_SHOWN]:
        right = set(truth) == set(found)
        expected = "" if right else f"<p>{marked_html(sentence, truth, labels)} (as labelled)</p>"
        name = "right" if right else "found"
        cards.append(
            f'<div class="card"><p>{marked_html(sentence, found, labels)} ({name})</p>'
            f"{expected}</div>"
        )
    shown = "\n".join(cards[:_UNFOLDED])
    if cards[_UNFOLDED:]:
        more = "\n".join(cards[_UNFOLDED:])
        n = len(cards) - _UNFOLDED
        shown += f"<details><summary>{n} more text{'s' * (n > 1)}</summary>{more}</details>"
    listed = f"{wrong} of {len(rows)} texts have a span that is missed or wrongly found"
    if len(cards) < len(rows):
        listed += f"; {len(cards)} texts are shown"
    return f"""<section><h2>Texts</h2>
<p class="muted small">{listed}, those with most errors first.</p>
{shown}</section>"""

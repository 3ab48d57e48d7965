"""What the tab for spans shows, as HTML; every text of a visitor is escaped here."""

from collections.abc import Sequence
from html import escape
from typing import Any

from cptuning.app.marked_texts import MarkedText
from cptuning.app.session import Session
from cptuning.app.span_work import MOST_TEXTS, SpanWork
from cptuning.app.views import many, note
from cptuning.reporting.figures import class_colour
from cptuning.reporting.html import table_html, text_html
from cptuning.reporting.span_metrics import SpanScores

_WIDE = 0.4
_MOST_LISTED = 500


def marked_view(one: MarkedText, types: Sequence[str]) -> str:
    """A text with its spans in colours.

    >>> "<mark" in marked_view(MarkedText.parse("to [<b>](tag)"), ["tag"])
    True
    """
    parts, at = [], 0
    for span in one.spans:
        colour = class_colour(types.index(span.label)) if span.label in types else "gray"
        parts.append(
            f'{escape(one.text[at : span.start])}<mark style="border-color:{colour}">'
            f"{escape(one.text[span.start : span.end])}<small>{escape(span.label)}</small></mark>"
        )
        at = span.end
    parts.append(escape(one.text[at:]))
    return f'<span dir="auto" class="marked">{"".join(parts)}</span>'


def state_view(session: Session) -> str:
    """How many spans are marked, and how well such spans are found."""
    work = session.spans
    if not work.texts:
        return note("No texts yet. Mark some, or use the sample.")
    most = max(work.counts.values(), default=1)
    bars = "".join(
        f'<div class="count"><span class="name" dir="auto"><i class="dot" '
        f'style="background:{class_colour(number)}"></i>{escape(label)}</span>'
        f'<span class="track"><span style="width:{100 * n / most:.0f}%;'
        f'background:{class_colour(number)}"></span></span><span class="n">{n}</span></div>'
        for number, (label, n) in enumerate(work.counts.items())
    )
    spans = many(sum(work.counts.values()), "span")
    head = f"<p class='headline'>{spans} in {many(len(work.texts), 'text')}</p>"
    return f'{head}<div class="counts">{bars}</div>{_quality(session)}'


def _quality(session: Session) -> str:
    work = session.spans
    if session.needs_span_reading:
        return note(f"Reading {many(len(work.texts), 'text')} …")
    if work.tagger is None:
        problem = len(work.texts) > MOST_TEXTS
        return note(
            "So many texts are not read at once: press Improve it."
            if problem
            else "Mark something in two texts, and the page finds more."
        )
    if work.scores is None:
        return note("An opened model brings no figures: improve it to have them measured.")
    said = _scores(work.scores, work.is_trained)
    if work.is_trained and work.tagger.training_.get("kept") == "instant":
        said += note("Training did not help: the answers without training were kept.")
    if work.changes:
        said += note(
            "The texts have changed since the training. The model already uses them, but these "
            "figures do not reflect them."
        )
    return said


def _scores(scores: SpanScores, is_trained: bool) -> str:
    low, high = scores.interval
    overall = scores.overall
    without = "" if is_trained else ", without training"
    fact = (
        f"<p class='headline'>{100 * scores.f1:.0f} % F1 in texts it had not seen{without}</p>"
        f"<p class='muted'>95 % interval {100 * low:.0f} to {100 * high:.0f} %. It found "
        f"{overall.right} of {overall.support} spans exactly, and "
        f"{many(overall.answered - overall.right, 'span')} that nobody had marked like that.</p>"
    )
    if high - low > _WIDE:
        fact += note("So few texts promise nothing yet: mark more to know better.")
    return fact


def texts_view(work: SpanWork) -> str:
    """All marked texts, the last one first, to mark anew or delete."""
    if not work.texts:
        return ""
    types = list(work.counts)
    rows = [
        f"<li>{marked_view(one, types)}"
        f'<span class="offers">{_button("Edit", "edit", one)}{_button("Delete", "delete", one)}'
        "</span></li>"
        for one in reversed(work.texts[-_MOST_LISTED:])
    ]
    more = len(work.texts) - len(rows)
    left_out = f" {many(more, 'more text')} not listed." if more else ""
    return (
        f'<h2>Your texts</h2><p class="muted">The last one first.{left_out}</p>'
        f'<ul class="doubts">{"".join(rows)}</ul>'
    )


def _button(said: str, what: str, one: MarkedText) -> str:
    return (
        f'<button type="button" data-do="{what}" data-text="{escape(one.text)}" '
        f'aria-label="{said}: {escape(one.text[:60])}">{said}</button>'
    )


def answer_view(one: MarkedText, spans: Sequence[dict[str, Any]], types: Sequence[str]) -> str:
    """A text with the spans that were found, and the marked ones that they are like."""
    head = f'<p class="found">{marked_view(one, types)}</p>'
    if not spans:
        return head + note("Nothing was found in it.")
    rows = [
        [
            f"{text_html(span['text'], 80)} <b>{escape(span['label'])}</b>",
            f"{100 * span['score']:.0f} %",
            ", ".join(text_html(near["text"], 60) for near in span["nearest"]),
        ]
        for span in spans
    ]
    return head + table_html(["found", "sure", "because it is similar to"], rows)

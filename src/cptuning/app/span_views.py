"""Texts with marked spans as HTML: to mark, to check and to read; all of it is escaped here."""

from collections.abc import Sequence
from html import escape
from typing import Any

from cptuning.app.span_workspace import ON_A_PAGE, SpanWorkspace
from cptuning.app.views import many, note
from cptuning.data.sentences import Sentence
from cptuning.data.tag_schemes import WordSpan
from cptuning.reporting.figures import class_colour
from cptuning.reporting.html import table_html, text_html
from cptuning.reporting.span_metrics import SpanScores
from cptuning.reporting.tagging_report import marked_html

# A score from fewer marked spans promises nothing.
_FEW_SPANS = 20


def types_view(work: SpanWorkspace) -> str:
    """The types to choose from, in their colours, with the numbers of their marks.

    >>> work = SpanWorkspace()
    >>> work.choose_type("<b>")
    >>> "&lt;b&gt; <small>0</small>" in types_view(work)
    True
    """
    if not work.types:
        return note("Name what you want to find, such as city, and mark it in the texts.")
    counts = dict.fromkeys(work.types, 0)
    for text in work.texts:
        for span in text.spans:
            counts[span.label] += 1
    chips = "".join(
        f'<button type="button" class="type" data-do="type" data-label="{escape(label)}" '
        f'aria-pressed="{str(label == work.type).lower()}" style="border-color:'
        f'{class_colour(number)}"><span dir="auto">{escape(label)} <small>{n}</small></span>'
        "</button>"
        for number, (label, n) in enumerate(counts.items())
    )
    return f'<div class="types" role="group" aria-label="The type that is marked">{chips}</div>'


def texts_view(work: SpanWorkspace) -> str:
    """A page of the texts, word by word, so that words can be marked; see mark.js."""
    if not work.texts:
        return ""
    first = work.page * ON_A_PAGE
    places = range(first, min(first + ON_A_PAGE, len(work.texts)))
    rows = "".join(_row(work, place) for place in places)
    return f'<ol class="to-mark">{rows}</ol>{_pages(work, places)}'


def _row(work: SpanWorkspace, place: int) -> str:
    text, guesses = work.texts[place], work.guesses(place)
    scores = {guess.span: guess.score for guess in guesses}
    words = _words(text.sentence, work.shown(place), work.types, scores)
    if text.is_checked:
        said = "" if text.spans else '<span class="muted">Nothing to find in it.</span>'
        offers = _button("delete", place, "Delete")
    else:
        said = '<span class="muted">Found, not checked.</span>' if guesses else ""
        right = "That is right" if guesses else "Nothing to find in it"
        offers = _button("accept", place, right) + _button("delete", place, "Delete")
    name = f"Text {place + 1}: mark words with the mouse, or with the arrow keys and Enter"
    return (
        f'<li class="{"checked" if text.is_checked else "open"}">'
        f'<div class="words" dir="auto" tabindex="0" role="group" data-place="{place}" '
        f'aria-label="{name}">{words}</div>'
        f'<div class="offers">{said}{offers}</div></li>'
    )


def _words(
    sentence: Sentence,
    spans: Sequence[WordSpan],
    types: Sequence[str],
    scores: dict[WordSpan, float],
) -> str:
    opening = {span.start: span for span in spans}
    closing = {span.stop - 1: span for span in spans}
    parts, at = [], 0
    for word, (start, end) in enumerate(sentence.places):
        parts.append(escape(sentence.text[at:start]))
        if (span := opening.get(word)) is not None:
            colour = class_colour(types.index(span.label))
            kind = ' class="guess"' if span in scores else ""
            parts.append(f'<mark{kind} style="border-color:{colour}">')
        parts.append(f'<span data-word="{word}">{escape(sentence.text[start:end])}</span>')
        if (span := closing.get(word)) is not None:
            score = f" {100 * scores[span]:.0f} %" if span in scores else ""
            parts.append(
                f"<small>{escape(span.label)}{score}</small>"
                f'<button type="button" data-do="unmark" data-at="{span.start}" '
                f'aria-label="Remove this mark: {escape(span.label)}">×</button></mark>'
            )
        at = end
    parts.append(escape(sentence.text[at:]))
    return "".join(parts)


def _button(what: str, place: int, said: str) -> str:
    return f'<button type="button" data-do="{what}" data-at="{place}">{escape(said)}</button>'


def _pages(work: SpanWorkspace, places: range) -> str:
    if not work.last_page:
        return ""
    turns = [("Previous", work.page - 1), ("Next", work.page + 1)]
    buttons = "".join(
        _button("page", page, said) for said, page in turns if 0 <= page <= work.last_page
    )
    where = f"Texts {places.start + 1} to {places.stop} of {len(work.texts)}"
    return f'<div class="offers pages"><span class="muted">{where}</span>{buttons}</div>'


def learned_view(work: SpanWorkspace) -> str:
    """What was learned from, and how well left-out texts were read.

    >>> learned_view(SpanWorkspace())
    ''
    """
    checked = work.checked
    if work.tagger is None:
        n = len(checked)
        return note(f"{many(n, 'text')} checked of {len(work.texts)}.") if work.texts else ""
    facts = work.tagger.training_
    n_spans = sum(facts["spans"].values())
    how = "trained on" if work.is_trained else "learned, without training, from"
    said = f"<p>{how.capitalize()} {many(facts['sentences'], 'text')} with "
    said += f"{many(n_spans, 'span')}.</p>"
    f1 = facts["held_out_f1"]
    held_out = work.tagger.held_out_
    if f1 is not None and held_out is not None:
        low, high = SpanScores(held_out.truth, held_out.found).interval
        # Resampling can't tell how uncertain answers are if none of them is wrong.
        interval = f"95 % interval {100 * low:.0f} to {100 * high:.0f} %." if low < high else ""
        said = (
            f"<p class='headline'>{100 * f1:.0f} % F1 in texts that were left out</p>"
            f"<p class='muted'>{interval}</p>{said}"
            "<p class='muted'>A span counts if its type, its beginning and its end are right. "
            "How to answer was chosen by the same texts, so it is a little too good.</p>"
        )
        if n_spans < _FEW_SPANS:
            said += note("So few spans promise nothing yet: mark more to know better.")
    if work.is_trained and facts["kept"] != "trained":
        said += note("The answers without training were better, so they were kept.")
    if work.is_outdated:
        said += note("Texts were marked or deleted since: learn again to use that.")
    return said


def found_view(sentence: Sentence, spans: Sequence[dict[str, Any]], types: Sequence[str]) -> str:
    """A text with the spans that were found, and the marked ones that explain them."""
    text = sentence.text
    first = {start: word for word, (start, _) in enumerate(sentence.places)}
    last = {end: word for word, (_, end) in enumerate(sentence.places)}
    labels = list(dict.fromkeys([*types, *(span["label"] for span in spans)]))
    marks = [WordSpan(first[s["start"]], last[s["end"]] + 1, s["label"]) for s in spans]
    shown = f'<p class="found">{marked_html(sentence, marks, labels)}</p>'
    if not spans:
        return shown + note("Nothing was found in this text.")
    rows = [
        [
            f"<b>{text_html(text[span['start'] : span['end']], 80)}</b>",
            text_html(span["label"], 60),
            _nearest(span["nearest"]),
            f"{100 * span['score']:.0f} %",
        ]
        for span in spans
    ]
    return shown + table_html(["found", "type", "because it is like", "sure"], rows, numbers=1)


def _nearest(reasons: Sequence[dict[str, Any]]) -> str:
    return "<br>".join(
        f"<b>{text_html(r['text'], 60)}</b> in {text_html(r['sentence'], 100)} "
        f"({r['similarity']:.2f})"
        for r in reasons
    )

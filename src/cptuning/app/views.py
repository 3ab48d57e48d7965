"""What the page shows, as HTML; every text of a visitor is escaped here."""

from collections.abc import Sequence
from html import escape
from typing import Any

from cptuning.app.background_job import Progress
from cptuning.app.checks import FEW, ExamplesCheck
from cptuning.app.instant_models import MOST_EXAMPLES
from cptuning.app.review import EmbeddingMap, HeldOutAnswer, Review
from cptuning.app.session import ExplainedAnswer, Session
from cptuning.app.user_examples import Example, TableColumns, Text
from cptuning.cleaning import SimilarLabels
from cptuning.inference import Evidence, Suggestion
from cptuning.reporting.figures import class_colour, confusion_svg, curve_svg
from cptuning.reporting.formatting import format_duration
from cptuning.reporting.html import table_html, text_html
from cptuning.reporting.learning_curve import LearningCurve

_MOST_NAMED = 3
_MOST_ROWS_SHOWN = 10
_ROWS_PREVIEWED = 4
_MOST_LISTED = 1000
# An interval of the accuracy that is wider promises nothing.
_WIDE = 0.4


def text_view(text: Text, longest: int = 300) -> str:
    """A text, or both of a pair, escaped.

    >>> text_view(("<a>", "b"))
    '<span dir="auto">&lt;a&gt;</span> <span class="bar">|</span> <span dir="auto">b</span>'
    """
    if isinstance(text, str):
        return text_html(text, longest)
    return ' <span class="bar">|</span> '.join(text_html(part, longest) for part in text)


def plain_view(text: Text) -> str:
    """A text, or both of a pair, as plain text.

    >>> plain_view(("a", "b"))
    'a | b'
    """
    return text if isinstance(text, str) else " | ".join(text)


def many(n: int, thing: str) -> str:
    """A number of things in words.

    >>> many(1, "example"), many(2, "example")
    ('1 example', '2 examples')
    """
    return f"1 {thing}" if n == 1 else f"{n} {thing}s"


def note(message: str, kind: str = "info") -> str:
    """A sentence for the visitor; ``kind`` is info, good or warn.

    >>> note("1 < 2")
    '<p class="note info">1 &lt; 2</p>'
    """
    return f'<p class="note {kind}">{escape(message)}</p>'


def check_view(check: ExamplesCheck) -> str:
    """The classes with their counts, and what looks like a mistake."""
    if not check.counts:
        return note("No examples yet. Paste some, upload a table, or use a sample.")
    total = sum(check.counts.values())
    most = max(check.counts.values())
    bars = "".join(
        f'<div class="count"><span class="name" dir="auto">{_dot(number)}{escape(label)}</span>'
        f'<span class="track"><span style="width:{100 * n / most:.0f}%;'
        f'background:{class_colour(number)}"></span></span><span class="n">{n}</span></div>'
        for number, (label, n) in enumerate(check.counts.items())
    )
    headline = f"<p class='headline'>{many(total, 'example')} in {_classes(len(check.counts))}</p>"
    return headline + f'<div class="counts">{bars}</div>' + "".join(_findings(check))


def _findings(check: ExamplesCheck) -> list[str]:
    found = []
    if check.repeated:
        verb = "repeats" if check.repeated == 1 else "repeat"
        found.append(
            note(f"{many(check.repeated, 'example')} {verb} another, text and label.", "warn")
        )
    for text, labels in list(check.contradictions.items())[:_MOST_NAMED]:
        under = " and ".join(f"<b>{escape(label)}</b>" for label in labels)
        keep = "".join(
            _offer(f"Keep {label}", "settle", check.places[text], label) for label in labels
        )
        found.append(
            f'<div class="note warn">{text_view(text, 120)} has the labels {under}.'
            f'<span class="offers">{keep}</span></div>'
        )
    more = len(check.contradictions) - _MOST_NAMED
    if more > 0:
        found.append(note(f"{many(more, 'more text')} with several labels.", "warn"))
    found += [same_class_view(pair) for pair in check.similar[:_MOST_NAMED]]
    if len(check.counts) == 1:
        found.append(note("There is only one class: add examples of another.", "warn"))
    if check.small:
        names = ", ".join(f"{label} ({n})" for label, n in list(check.small.items())[:8])
        found.append(note(f"Fewer than {FEW} examples, hard to learn: {names}.", "warn"))
    return found or [note("Nothing looks like a mistake.", "good")]


def same_class_view(pair: SimilarLabels) -> str:
    """The question whether two labels mean the same class, with a button for yes.

    >>> same_class_view(SimilarLabels("booking", "Booking", True)).count("Call both booking")
    1
    """
    yes = _offer(f"Call both {pair.label}", "merge", 0, pair.label, pair.other)
    return (
        f'<div class="note warn">Are <b>{escape(pair.label)}</b> and <b>{escape(pair.other)}</b> '
        f'the same class?<span class="offers">{yes}</span></div>'
    )


def learned_view(session: Session, label: str) -> str:
    """That the model knows examples of a class now, and whether the class is a new one at all."""
    alike = [pair for pair in session.check().similar if label in (pair.label, pair.other)]
    return note(f"Learned: {label}.", "good") + "".join(map(same_class_view, alike[:1]))


def done_view(news: str) -> str:
    """What was just done."""
    return f'<span role="status">{escape(news)}</span>' if news else ""


def _offer(said: str, what: str, place: int, label: str, other: str = "") -> str:
    """A button that does something to the example at a place; see pick.js."""
    return (
        f'<button type="button" data-do="{what}" data-place="{place}" '
        f'data-label="{escape(label)}" data-other="{escape(other)}">{escape(said)}</button>'
    )


def progress_view(progress: Progress) -> str:
    """A progress bar, what is being done, and about how long it will take.

    >>> 'aria-valuenow="50"' in progress_view(Progress(0.5, "Fold 1", 12.0))
    True
    >>> progress_view(Progress(0, "Yours is next", 8.2, is_waiting=True))
    '<p class="note info" role="status">Yours is next (about 8 s).</p>'
    """
    seconds = progress.seconds_left
    if progress.is_waiting:
        when = "" if seconds is None else f" (about {format_duration(seconds)})"
        return f'<p class="note info" role="status">{escape(progress.doing)}{when}.</p>'
    percent = round(100 * progress.share)
    left = "" if seconds is None else f", about {format_duration(seconds)} left"
    return (
        f'<div class="progress" role="progressbar" aria-label="Progress" aria-valuenow="{percent}" '
        f'aria-valuemin="0" aria-valuemax="100"><span style="width:{percent}%"></span></div>'
        f'<p class="muted" aria-live="polite">{escape(progress.doing)}{left}</p>'
    )


def review_view(session: Session) -> str:
    """The accuracy with its interval, where it comes from, and what it does not reflect yet.

    >>> review_view(Session())
    '<p class="note info">There is no model yet: add two examples each of two classes.</p>'
    """
    review = session.review
    if session.needs_reading:
        return note(f"Reading {many(len(session.examples), 'example')} …")
    if not session.has_model and session.is_training:
        return note("The model is being trained: the review appears here when it is done.")
    if not session.has_model:
        return note(_NO_MODEL)
    if review is None:
        fact = note("An opened model brings no figures: improve it to have them measured.")
    else:
        fact = _accuracy(review, session.is_trained)
    if session.is_training:
        fact += note("A new model is being trained: until it is done, this is the previous one.")
    elif session.changes:
        fact += note(
            f"{many(session.changes, 'example')} changed since the training. The model already "
            "uses them, but these figures do not reflect them. Train again to update both.",
        )
    return fact


_TOO_MANY = "So many examples are not read at once: train a model."
_NO_MODEL = "There is no model yet: add two examples each of two classes."


def _accuracy(review: Review, is_trained: bool) -> str:
    confusion = review.confusion
    low, high = review.interval
    without = "" if is_trained else ", without training"
    fact = (
        f"<p class='headline'>{100 * confusion.accuracy:.0f} % accuracy on examples it had not "
        f"seen{without}</p><p class='muted'>95 % interval {100 * low:.0f} to {100 * high:.0f} %, "
        f"from {many(confusion.n, 'answer')} to examples it had not seen; always answering the "
        f"most frequent class would give {100 * confusion.majority:.0f} %.</p>"
    )
    if high - low > _WIDE:
        fact += note("So few examples promise nothing yet: add more to know better.")
    return fact


def instant_view(session: Session) -> str:
    """What the examples are good for already, beside their list."""
    if not session.examples:
        return ""
    if not session.needs_reading and not session.has_model:
        problem = len(session.examples) > MOST_EXAMPLES
        return note(
            "So many examples are not read at once: train a model." if problem else _NO_MODEL
        )
    return review_view(session)


def examples_view(examples: Sequence[Example]) -> str:
    """All examples, to search in and to pick from."""
    if not examples:
        return ""
    classes = sorted({example.label for example in examples})
    colour = {label: class_colour(number) for number, label in enumerate(classes)}
    by_label = _by_label(examples)
    rows = [_row(place, e, colour, False) for place, e in by_label[:_MOST_LISTED]]
    more = len(examples) - len(rows)
    left_out = f" {many(more, 'more example')} not listed." if more else ""
    return (
        '<h2>Your examples</h2><p class="muted">Ordered by class. Pick one to relabel or delete '
        f'it.{left_out}</p><input type="search" class="search" placeholder="Search" '
        f'aria-label="Search the examples">{_listbox("All examples", rows)}'
    )


def confusion_view(review: Review | None) -> str:
    """The confusion matrix."""
    return "" if review is None else f'<div class="picture">{confusion_svg(review.confusion)}</div>'


def curve_view(curve: LearningCurve | None) -> str:
    """The learning curve and its verdict."""
    if curve is None or not curve.points():
        return ""
    picture = curve_svg(curve.points(), curve.majority)
    return f'{note(curve.verdict)}<div class="picture">{picture}</div>'


def map_view(
    examples: Sequence[Example], places: EmbeddingMap, doubtful: Sequence[HeldOutAnswer]
) -> str:
    """A map of the examples with a list beside it; an example can be picked in both."""
    classes = sorted({example.label for example in examples})
    colour = {label: class_colour(number) for number, label in enumerate(classes)}
    doubted = {answer.example for answer in doubtful}
    dots = []
    for place, (example, (x, y)) in enumerate(zip(examples, places.points, strict=True)):
        ring = ' class="doubted"' if example in doubted else ""
        tip = escape(f"{example.label}: {plain_view(example.text)}"[:300], quote=True)
        dots.append(
            f'<circle{ring} data-place="{place}" data-tip="{tip}" cx="{4 + 92 * x:.2f}" '
            f'cy="{4 + 92 * (1 - y):.2f}" r="1.5" fill="{colour[example.label]}"/>'
        )
    names = "".join(
        f'<span>{_dot(number)}<span dir="auto">{escape(label)}</span></span>'
        for number, label in enumerate(classes)
    )
    rows = [_row(place, e, colour, e in doubted) for place, e in _by_label(examples)]
    return (
        '<div class="review"><div class="map">'
        '<svg viewBox="0 0 100 100" role="img" aria-label="Map of the examples">'
        f"{''.join(dots)}</svg>"
        f'<div class="legend">{names}</div>'
        '<p class="muted">Examples that the model sees as similar are near each other; ringed: '
        "doubtful. Hover to read, click to pick. The list is ordered by class.</p></div>"
        f'{_listbox("Examples", rows)}</div><div class="tip" hidden></div>'
    )


def _by_label(examples: Sequence[Example]) -> list[tuple[int, Example]]:
    return sorted(enumerate(examples), key=_label_and_place)


def _label_and_place(entry: tuple[int, Example]) -> tuple[str, int]:
    return entry[1].label, entry[0]


def _row(place: int, example: Example, colour: dict[str, str], doubted: bool) -> tuple[int, str]:
    mark = '<span class="mark" title="The model doubts this label">?</span>' if doubted else ""
    return place, (
        f'<span class="label" dir="auto"><i class="dot" style="background:{colour[example.label]}">'
        f"</i>{escape(example.label)}{mark}</span>"
        f'<span class="text">{text_view(example.text, 160)}</span>'
    )


def doubtful_view(doubtful: Sequence[HeldOutAnswer], examples: Sequence[Example]) -> str:
    """A list of the examples that the model would have labelled differently, to mend at once."""
    if not doubtful:
        return note("The model doubts none of the labels.", "good")
    rows = []
    for answer in doubtful:
        place = examples.index(answer.example)
        mend = _offer(f"Make it {answer.answer}", "relabel", place, answer.answer)
        rows.append(
            f'<li><span class="text">{text_view(answer.example.text, 200)}</span>'
            f'<span class="label" dir="auto">labelled {escape(answer.example.label)}, the model '
            f"says {escape(answer.answer)} ({100 * answer.probability:.0f} %)</span>"
            f'<span class="offers">{mend}<button type="button" data-place="{place}">Edit</button>'
            "</span></li>"
        )
    return (
        '<p class="muted">The most probable mistakes first.</p>'
        f'<ul class="doubts">{"".join(rows)}</ul>'
    )


def _listbox(name: str, rows: Sequence[tuple[int, str]]) -> str:
    """A list to pick examples from; the tab key reaches the first, the arrow keys the others."""
    options = "".join(
        f'<div role="option" aria-selected="false" data-place="{place}" '
        f'tabindex="{-1 if number else 0}">{content}</div>'
        for number, (place, content) in enumerate(rows)
    )
    return f'<div class="list" role="listbox" aria-label="{name}">{options}</div>'


def answer_view(answer: ExplainedAnswer) -> str:
    """The label, the probabilities, and the examples that explain them."""
    likeliest, share = next(iter(answer.probabilities.items()))
    if answer.is_unknown:
        head = (
            '<p class="answer unknown">unknown</p><p class="muted">It is unlike every example, '
            f"or hard to tell; the nearest class would be <b>{escape(likeliest)}</b>.</p>"
        )
    else:
        head = (
            f'<p class="answer" dir="auto">{escape(answer.label)} '
            f'<span class="muted">{100 * share:.0f} %</span></p>'
        )
        if answer.is_taught:
            head += '<p class="muted">It is one of your examples, and answered as labelled.</p>'
    bars = "".join(
        f'<div class="count"><span class="name" dir="auto">{escape(label)}</span>'
        f'<span class="track"><span style="width:{100 * p:.0f}%"></span></span>'
        f'<span class="n">{100 * p:.0f} %</span></div>'
        for label, p in list(answer.probabilities.items())[:8]
    )
    title = "nearest examples" if answer.is_unknown else "because it is similar to"
    reasons = _examples_view(title, answer.reasons)
    if answer.reasons.against is not None:
        reasons += _examples_view("although this is even nearer", [answer.reasons.against])
    return f'{head}<div class="counts">{bars}</div>{reasons}'


def _examples_view(title: str, examples: Sequence[Evidence]) -> str:
    rows = [
        [f"<b>{escape(e.title)}</b>", text_view(e.text, 200), f"{e.similarity:.2f}"]
        for e in examples
    ]
    return table_html(["label", title, "similarity"], rows, numbers=1)


def rows_view(rows: Sequence[dict[str, Any]]) -> str:
    """The first rows of a table."""
    if not rows:
        return ""
    columns = list(rows[0])
    percent = {"confidence": _percent}
    shown = [
        [text_html(percent.get(c, _cell)(row[c]), 120) for c in columns]
        for row in rows[:_MOST_ROWS_SHOWN]
    ]
    more = "" if len(rows) <= _MOST_ROWS_SHOWN else "<p class='muted'>The first rows.</p>"
    return table_html([escape(column) for column in columns], shown) + more


def preview_view(rows: Sequence[dict[str, Any]], columns: TableColumns) -> str:
    r"""The first rows of an uploaded table, with the use that is made of each column.

    >>> preview_view([{"Message": "hi", "Team": "x"}], TableColumns("Message", None, "Team"))[:60]
    '<div class="scroll"><table>\n<thead><tr><th>Message <b>text</'
    """
    use = {columns.text: "text", columns.second: "second text", columns.label: "label"}
    names = list(rows[0])
    header = [
        f"{escape(name)} <b>{use[name]}</b>" if name in use else escape(name) for name in names
    ]
    shown = [[text_html(_cell(row.get(n)), 80) for n in names] for row in rows[:_ROWS_PREVIEWED]]
    return table_html(header, shown)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else str(value)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def suggestions_view(found: Sequence[Suggestion]) -> str:
    """The texts to label next."""
    rows = [[text_view(s.text), f"<b>{escape(str(s.guess))}</b>"] for s in found]
    return (
        '<p class="muted">The one to begin with first: the model is unsure of them, and they are '
        f"unlike each other.</p>{table_html(['label next', 'guess'], rows)}"
    )


def _dot(number: int) -> str:
    return f'<i class="dot" style="background:{class_colour(number)}"></i>'


def _classes(n: int) -> str:
    return "1 class" if n == 1 else f"{n} classes"

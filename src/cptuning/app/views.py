"""What the page shows, as HTML; every text of a visitor is escaped here."""

from collections.abc import Sequence
from html import escape
from typing import Any

from cptuning.app.background_job import Progress
from cptuning.app.checks import FEW, ExamplesCheck
from cptuning.app.review import EmbeddingMap, HeldOutAnswer, Review
from cptuning.app.session import ExplainedAnswer
from cptuning.app.user_examples import Example, TableColumns, Text
from cptuning.inference import Evidence, Suggestion
from cptuning.reporting.figures import class_colour, confusion_svg, curve_svg
from cptuning.reporting.formatting import format_duration
from cptuning.reporting.html import table_html, text_html
from cptuning.reporting.learning_curve import LearningCurve

_MOST_NAMED = 3
_MOST_ROWS_SHOWN = 10
_ROWS_PREVIEWED = 4


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
        return note("No examples yet. Paste some, upload a file, or use a sample.")
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
        found.append(f'<p class="note warn">{text_view(text, 120)} has the labels {under}.</p>')
    more = len(check.contradictions) - _MOST_NAMED
    if more > 0:
        found.append(note(f"{many(more, 'more text')} with several labels.", "warn"))
    for pair in check.similar[:_MOST_NAMED]:
        found.append(note(f"Are {pair.label} and {pair.other} the same class?", "warn"))
    if len(check.counts) == 1:
        found.append(note("There is only one class: add examples of another.", "warn"))
    if check.small:
        names = ", ".join(f"{label} ({n})" for label, n in list(check.small.items())[:8])
        found.append(note(f"Fewer than {FEW} examples, hard to learn: {names}.", "warn"))
    return found or [note("Nothing looks like a mistake.", "good")]


def progress_view(progress: Progress) -> str:
    """A progress bar, what is being done, and about how long it will take.

    >>> 'aria-valuenow="50"' in progress_view(Progress(0.5, "Fold 1", 12.0))
    True
    """
    percent = round(100 * progress.share)
    left = (
        ""
        if progress.seconds_left is None
        else f", about {format_duration(progress.seconds_left)} left"
    )
    return (
        f'<div class="progress" role="progressbar" aria-label="Progress" aria-valuenow="{percent}" '
        f'aria-valuemin="0" aria-valuemax="100"><span style="width:{percent}%"></span></div>'
        f'<p class="muted" aria-live="polite">{escape(progress.doing)}{left}</p>'
    )


def review_view(review: Review | None, changes: int = 0, training: bool = False) -> str:
    """The cross-fitted accuracy with its interval.

    >>> review_view(None, training=True)
    '<p class="note info">The model is being trained: the review appears here when it is done.</p>'
    """
    if review is None and training:
        return note("The model is being trained: the review appears here when it is done.")
    if review is None:
        return note("There is no model yet: train one first.")
    confusion = review.confusion
    low, high = review.interval
    share = 100 * confusion.accuracy
    fact = (
        f"<p class='headline'>{share:.0f} % accuracy on examples it had not seen</p>"
        f"<p class='muted'>95 % interval {100 * low:.0f} to {100 * high:.0f} %, from "
        f"{many(confusion.n, 'answer')} to examples it had not seen; always answering the most "
        f"frequent class would give {100 * confusion.majority:.0f} %.</p>"
    )
    if training:
        fact += note("A new model is being trained: until it is done, this is the previous one.")
    elif changes:
        fact += note(
            f"{many(changes, 'example')} changed since the training. The model already uses "
            "them, but these figures do not reflect them. Train again to update both.",
        )
    return fact


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
        "doubtful. Hover to read, click to pick.</p></div>"
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
    """A list of the examples that the model would have labelled differently, to pick from."""
    if not doubtful:
        return note("The model doubts none of the labels.", "good")
    rows = [
        (
            examples.index(a.example),
            f'<span class="label" dir="auto">{escape(a.example.label)} → {escape(a.answer)} '
            f"({100 * a.probability:.0f} %)</span>"
            f'<span class="text">{text_view(a.example.text, 200)}</span>',
        )
        for a in doubtful
    ]
    return _listbox("Doubtful examples", rows)


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
    shown = [[text_html(_cell(row[c]), 120) for c in columns] for row in rows[:_MOST_ROWS_SHOWN]]
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


def suggestions_view(found: Sequence[Suggestion]) -> str:
    """The texts to label next."""
    rows = [
        [text_view(s.text), f"<b>{escape(str(s.guess))}</b>", f"{100 * s.uncertainty:.0f} %"]
        for s in found
    ]
    return table_html(["label next", "guess", "uncertainty"], rows, numbers=1)


def _dot(number: int) -> str:
    return f'<i class="dot" style="background:{class_colour(number)}"></i>'


def _classes(n: int) -> str:
    return "1 class" if n == 1 else f"{n} classes"

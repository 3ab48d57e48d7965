"""What the page shows, as HTML; every text of a visitor is escaped here."""

from collections.abc import Sequence
from html import escape
from typing import Any

from cptuning.app.background_job import Progress
from cptuning.app.checks import FEW, ExamplesCheck
from cptuning.app.instant_models import MOST_EXAMPLES
from cptuning.app.review import AnyReview, EmbeddingMap, HeldOutAnswer, LabelSetReview, Review
from cptuning.app.session import ExplainedAnswer, Session
from cptuning.app.user_examples import (
    Example,
    Label,
    TableColumns,
    Text,
    label_name,
)
from cptuning.cleaning import SimilarLabels
from cptuning.inference import Evidence, Suggestion
from cptuning.reporting.figures import class_colour, confusion_svg, curve_svg
from cptuning.reporting.formatting import format_duration
from cptuning.reporting.html import table_html, text_html
from cptuning.reporting.learning_curve import LearningCurve

_MOST_NAMED = 3
_MOST_ROWS_SHOWN = 10
_ROWS_PREVIEWED = 4
_MOST_BARS = 8
# The colour of a text without a label, where a text may have several.
_NO_LABEL = "#8a8a8a"
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


def shown(label: Label) -> str:
    """The name of a label, or the names of all labels of a text.

    >>> shown("late"), shown(("late", "rude")), shown(())
    ('late', 'late; rude', 'no label')
    """
    return label_name(label) or "no label"


def many(n: int, thing: str) -> str:
    """A number of things in words.

    >>> many(1, "example"), many(2, "class")
    ('1 example', '2 classes')
    """
    ending = "es" if thing.endswith("s") else "s"
    return f"1 {thing}" if n == 1 else f"{n} {thing}{ending}"


def note(message: str, kind: str = "info") -> str:
    """A sentence for the visitor; ``kind`` is info, good or warn.

    >>> note("1 < 2")
    '<p class="note info">1 &lt; 2</p>'
    """
    return f'<p class="note {kind}">{escape(message)}</p>'


def check_view(check: ExamplesCheck, several: bool = False) -> str:
    """The labels with their counts, and what looks like a mistake."""
    if not check.total:
        return note("No examples yet. Paste some, upload a table, or use a sample.")
    most = max(check.counts.values(), default=1)
    bars = "".join(
        f'<div class="count"><span class="name" dir="auto">{_dot(number)}{escape(label)}</span>'
        f'<span class="track"><span style="width:{100 * n / most:.0f}%;'
        f'background:{class_colour(number)}"></span></span><span class="n">{n}</span></div>'
        for number, (label, n) in enumerate(check.counts.items())
    )
    of = f"with {many(len(check.counts), 'label')}"
    if not several:
        of = f"in {many(len(check.counts), 'class')}"
    headline = f"<p class='headline'>{many(check.total, 'example')} {of}</p>"
    if check.bare:
        headline += f"<p class='muted'>{check.bare} of them without a label.</p>"
    return headline + f'<div class="counts">{bars}</div>' + "".join(_findings(check, several))


def _findings(check: ExamplesCheck, several: bool) -> list[str]:
    found = []
    if check.joined is not None:
        label, separator = check.joined
        yes = _offer("Yes, several labels", "several", 0, separator)
        found.append(
            f'<div class="note">Is <b>{escape(label)}</b> several labels, joined by '
            f'<b>{escape(separator)}</b>?<span class="offers">{yes}</span></div>'
        )
    if check.repeated:
        verb = "repeats" if check.repeated == 1 else "repeat"
        found.append(
            note(f"{many(check.repeated, 'example')} {verb} another, text and label.", "warn")
        )
    for text, labels in list(check.contradictions.items())[:_MOST_NAMED]:
        under = " and ".join(f"<b>{escape(shown(label))}</b>" for label in labels)
        keep = "".join(
            _offer(f"Keep {shown(label)}", "settle", check.places[text], label_name(label))
            for label in labels
        )
        found.append(
            f'<div class="note warn">{text_view(text, 120)} has the labels {under}.'
            f'<span class="offers">{keep}</span></div>'
        )
    more = len(check.contradictions) - _MOST_NAMED
    if more > 0:
        found.append(note(f"{many(more, 'more text')} labelled in different ways.", "warn"))
    found += [same_class_view(pair) for pair in check.similar[:_MOST_NAMED]]
    if len(check.counts) == 1 and not several:
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


def learned_view(session: Session, label: Label | list[str]) -> str:
    """That the model knows examples of a class now, and whether the class is a new one at all."""
    name = session.label_from(label)
    names = name if isinstance(name, tuple) else (name,)
    alike = [pair for pair in session.check().similar if {pair.label, pair.other} & set(names)]
    return note(f"Learned: {shown(name)}.", "good") + "".join(map(same_class_view, alike[:1]))


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
    elif isinstance(review, LabelSetReview):
        fact = _label_set_accuracy(review, session.is_trained)
    else:
        fact = _accuracy(review, session.is_trained)
    if session.is_trained and session.gain is not None and not session.changes:
        fact += _gain_view(session.gain, session.several)
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


def _label_set_accuracy(review: LabelSetReview, is_trained: bool) -> str:
    scores = review.scores
    low, high = scores.micro_f1_interval
    without = "" if is_trained else ", without training"
    fact = (
        f"<p class='headline'>{100 * scores.micro_f1:.0f} % F1 on examples it had not seen"
        f"{without}</p><p class='muted'>95 % interval {100 * low:.0f} to {100 * high:.0f} %. Of "
        f"the labels that it gives, {100 * scores.micro_precision:.0f} % are right; of those that "
        f"it should give, it finds {100 * scores.micro_recall:.0f} %. "
        f"{100 * scores.subset_accuracy:.0f} % of {many(scores.n, 'text')} get exactly their "
        f"labels. The same labels for every text would give {100 * scores.constant_f1:.0f} % F1."
        "</p>"
    )
    if high - low > _WIDE:
        fact += note("So few examples promise nothing yet: add more to know better.")
    return fact


def _gain_view(gain: tuple[float, float], several: bool) -> str:
    """What the training was good for, by one and the same check.

    >>> _gain_view((0.5, 0.75), several=False)[:57]
    '<p class="muted">Checked by models that saw only half of '
    """
    before, after = (f"{100 * share:.0f} %" for share in gain)
    if gain[0] >= gain[1]:
        found = f"Training did not help: {before} before, {after} after it."
    else:
        found = f"Training helped: {before} before, {after} after it."
    return (
        '<p class="muted">Checked by models that saw only half of your examples; the one that '
        f"answers has seen all of them, and should do better. {found}</p>"
    )


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
    colour = _colours(examples)
    by_label = _by_label(examples)
    rows = [_row(place, e, colour, False) for place, e in by_label[:_MOST_LISTED]]
    more = len(examples) - len(rows)
    left_out = f" {many(more, 'more example')} not listed." if more else ""
    return (
        '<h2>Your examples</h2><p class="muted">Ordered by label. Pick one to relabel or delete '
        f'it.{left_out}</p><input type="search" class="search" placeholder="Search" '
        f'aria-label="Search the examples">{_listbox("All examples", rows)}'
    )


def confusion_view(review: AnyReview | None) -> str:
    """The confusion matrix; of label sets, a table of the labels."""
    if review is None:
        return ""
    if isinstance(review, Review):
        return f'<div class="picture">{confusion_svg(review.confusion)}</div>'
    rows = [
        [
            text_html(str(score.label), 60),
            f"{100 * score.precision:.0f} %",
            f"{100 * score.recall:.0f} %",
            str(score.support),
        ]
        for score in review.scores.by_label()
    ]
    mistakes = [
        [text_html(str(missing), 60), text_html(str(extra), 60), str(n)]
        for missing, extra, n in review.scores.mistakes()[:_MOST_ROWS_SHOWN]
    ]
    table = table_html(["label", "right when given", "found", "texts"], rows, numbers=3)
    if mistakes:
        table += table_html(["missing", "given instead", "texts"], mistakes, numbers=1)
    return table


def curve_view(curve: LearningCurve | None) -> str:
    """The learning curve and its verdict."""
    if curve is None or not curve.points():
        return ""
    picture = curve_svg(curve.points(), curve.majority, curve.metric, curve.per)
    return f'{note(curve.verdict)}<div class="picture">{picture}</div>'


def map_view(
    examples: Sequence[Example], places: EmbeddingMap, doubtful: Sequence[HeldOutAnswer]
) -> str:
    """A map of the examples with a list beside it; an example can be picked in both."""
    colour = _colours(examples)
    several = any(isinstance(example.label, tuple) for example in examples)
    doubted = {answer.example for answer in doubtful}
    dots = []
    for place, (example, (x, y)) in enumerate(zip(examples, places.points, strict=True)):
        ring = ' class="doubted"' if example in doubted else ""
        tip = escape(f"{shown(example.label)}: {plain_view(example.text)}"[:300], quote=True)
        fill = colour[example.labels[0]] if example.labels else _NO_LABEL
        dots.append(
            f'<circle{ring} data-place="{place}" data-tip="{tip}" cx="{4 + 92 * x:.2f}" '
            f'cy="{4 + 92 * (1 - y):.2f}" r="1.5" fill="{fill}"/>'
        )
    names = "".join(
        f'<span>{_dot(number)}<span dir="auto">{escape(label)}</span></span>'
        for number, label in enumerate(colour)
    )
    first = " A point has the colour of the first of its labels." if several else ""
    rows = [_row(place, e, colour, e in doubted) for place, e in _by_label(examples)]
    return (
        '<div class="review"><div class="map">'
        '<svg viewBox="0 0 100 100" role="img" aria-label="Map of the examples">'
        f"{''.join(dots)}</svg>"
        f'<div class="legend">{names}</div>'
        '<p class="muted">Examples that the model sees as similar are near each other; ringed: '
        f"doubtful. Point at one to read it, pick it to change it.{first} The list is ordered by "
        "label.</p></div>"
        f'{_listbox("Examples", rows)}</div><div class="tip" hidden></div>'
    )


def _colours(examples: Sequence[Example]) -> dict[str, str]:
    """The colour of each label, in their order."""
    labels = sorted({label for example in examples for label in example.labels})
    return {label: class_colour(number) for number, label in enumerate(labels)}


def _by_label(examples: Sequence[Example]) -> list[tuple[int, Example]]:
    return sorted(enumerate(examples), key=_label_and_place)


def _label_and_place(entry: tuple[int, Example]) -> tuple[str, int]:
    return label_name(entry[1].label), entry[0]


def _row(place: int, example: Example, colour: dict[str, str], doubted: bool) -> tuple[int, str]:
    mark = '<span class="mark" title="The model doubts this label">?</span>' if doubted else ""
    names = "".join(
        f'<span class="one"><i class="dot" style="background:{colour[label]}"></i>{escape(label)}'
        "</span>"
        for label in example.labels
    )
    return place, (
        f'<span class="label" dir="auto">{names or shown(())}{mark}</span>'
        f'<span class="text">{text_view(example.text, 160)}</span>'
    )


def doubtful_view(doubtful: Sequence[HeldOutAnswer], examples: Sequence[Example]) -> str:
    """A list of the examples that the model would have labelled differently, to mend at once."""
    if not doubtful:
        return note("The model doubts none of the labels.", "good")
    rows = []
    for answer in doubtful:
        place = examples.index(answer.example)
        mend = _offer(
            f"Make it {shown(answer.answer)}", "relabel", place, label_name(answer.answer)
        )
        rows.append(
            f'<li><span class="text">{text_view(answer.example.text, 200)}</span>'
            f'<span class="label" dir="auto">labelled {escape(shown(answer.example.label))}, the '
            f"model says {escape(shown(answer.answer))} ({100 * answer.probability:.0f} %)</span>"
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
    if isinstance(answer.label, tuple):
        return _label_set_answer(answer, answer.label)
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
    title = "nearest examples" if answer.is_unknown else "because it is similar to"
    reasons = _examples_view(title, answer.reasons)
    if answer.reasons.against is not None:
        reasons += _examples_view("although this is even nearer", [answer.reasons.against])
    return head + _bars(answer) + reasons


def _label_set_answer(answer: ExplainedAnswer, labels: tuple[str, ...]) -> str:
    """All labels of a text, each with the examples that explain it."""
    head = f'<p class="answer" dir="auto">{escape(shown(labels))}</p>'
    if answer.is_taught:
        head += '<p class="muted">It is one of your examples, and answered as labelled.</p>'
    elif answer.threshold is not None:
        head += (
            f'<p class="muted">Each label is answered by itself, and given from '
            f"{100 * answer.threshold:.0f} % on.</p>"
        )
    reasons = "".join(
        _examples_view(f"{label}, because it is similar to", found)
        for label, found in answer.label_reasons.items()
    )
    return head + _bars(answer) + (reasons or _examples_view("nearest examples", answer.reasons))


def _bars(answer: ExplainedAnswer) -> str:
    """The probabilities of the likeliest labels."""
    bars = "".join(
        f'<div class="count"><span class="name" dir="auto">{escape(label)}</span>'
        f'<span class="track"><span style="width:{100 * p:.0f}%"></span></span>'
        f'<span class="n">{100 * p:.0f} %</span></div>'
        for label, p in list(answer.probabilities.items())[:_MOST_BARS]
    )
    return f'<div class="counts">{bars}</div>'


def _examples_view(title: str, examples: Sequence[Evidence]) -> str:
    rows = [
        [f"<b>{escape(e.title)}</b>", text_view(e.text, 200), f"{e.similarity:.2f}"]
        for e in examples
    ]
    return table_html(["label", escape(title), "similarity"], rows, numbers=1)


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
    if isinstance(value, list | tuple):
        return label_name(tuple(map(str, value)))
    return "" if value is None else str(value)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def suggestions_view(found: Sequence[Suggestion]) -> str:
    """The texts to label next."""
    rows = [[text_view(s.text), f"<b>{escape(shown(s.guess))}</b>"] for s in found]
    return (
        '<p class="muted">The one to begin with first: the model is unsure of them, and they are '
        f"unlike each other.</p>{table_html(['label next', 'guess'], rows)}"
    )


def _dot(number: int) -> str:
    return f'<i class="dot" style="background:{class_colour(number)}"></i>'

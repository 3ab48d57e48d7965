"""Answers with their reasons, shown as tables in a terminal and in a notebook."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from cptuning.data import Examples
from cptuning.data.examples import one_line
from cptuning.inference.reasons import Evidence, Reasons

_LONGEST = 120
_LONGEST_PASSAGE = 500


class Explanations(list[Reasons]):
    """The reasons for the answers to some texts, in the order of the texts.

    >>> near = Evidence("my parcel is late", "delivery", 0.8)
    >>> against = Evidence("refund my parcel", "refund", 0.9)
    >>> Explanations([Reasons([near], against)], Examples(("no parcel",)), ["delivery"], [0.75])
    no parcel
      delivery (75.0 %), because it is similar to
        0.80  delivery  my parcel is late
      although this is even nearer
        0.90  refund    refund my parcel
    """

    texts: list[str | tuple[str, str]]
    """The texts, or pairs of texts, that were answered."""
    labels: list[Any]
    """The answers."""
    confidences: list[float | None]
    """The probability of each answer; None for an answer "unknown"."""

    def __init__(
        self,
        reasons: Iterable[Reasons],
        examples: Examples,
        labels: Sequence[Any],
        confidences: Sequence[float | None],
    ) -> None:
        super().__init__(reasons)
        self.texts, self.labels = list(examples), list(labels)
        self.confidences = list(confidences)

    def __repr__(self) -> str:
        return _printed(self)

    def because(self, number: int) -> list[str]:
        """Lines that tell one answer and its reasons."""
        return _because(self.labels[number], self.confidences[number], self[number])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return "".join(self._html(number) for number in range(len(self)))

    def _html(self, number: int) -> str:
        confidence, reasons = self.confidences[number], self[number]
        sure = "" if confidence is None else f" ({100 * confidence:.1f} %)"
        return (
            f'<p dir="auto">{escape(one_line(self.texts[number]))} → '
            f"<b>{escape(str(self.labels[number]))}</b>{sure}</p>{_table(reasons)}"
        )


class LabelExplanations(list[dict[Any, Reasons]]):
    """The reasons for the labels that some texts are given: a dictionary by label for each text.

    >>> near = Evidence("the songs are bad", ("complaint", "music"), 0.8)
    >>> LabelExplanations([{"music": Reasons([near])}], Examples(("bad songs",)), [{"music": 0.9}])
    bad songs
      music (90.0 %), because it is similar to
        0.80  complaint, music  the songs are bad
    """

    texts: list[str | tuple[str, str]]
    """The texts, or pairs of texts, that were answered."""
    confidences: list[dict[Any, float]]
    """The probability of each label that a text is given."""

    def __init__(
        self,
        reasons: Iterable[dict[Any, Reasons]],
        examples: Examples,
        confidences: Sequence[dict[Any, float]],
    ) -> None:
        super().__init__(reasons)
        self.texts, self.confidences = list(examples), list(confidences)

    def __repr__(self) -> str:
        return _printed(self)

    def because(self, number: int) -> list[str]:
        """Lines that tell the labels of one text, each with its reasons."""
        if not self[number]:
            return ["  no label"]
        return [
            line
            for label, reasons in self[number].items()
            for line in _because(label, self.confidences[number][label], reasons)
        ]

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return "".join(self._html(number) for number in range(len(self)))

    def _html(self, number: int) -> str:
        parts = [f'<p dir="auto">{escape(one_line(self.texts[number]))} → ']
        if not self[number]:
            return f"{parts[0]}no label</p>"
        for label, reasons in self[number].items():
            sure = f"{100 * self.confidences[number][label]:.1f} %"
            parts.append(f"<b>{escape(str(label))}</b> ({sure})</p>{_table(reasons)}<p>")
        return "".join(parts).removesuffix("<p>")


def _printed(explanations: Explanations | LabelExplanations) -> str:
    return "\n\n".join(
        "\n".join([one_line(text), *explanations.because(number)])
        for number, text in enumerate(explanations.texts)
    )


def _because(label: Any, confidence: float | None, reasons: Reasons) -> list[str]:
    if confidence is None:
        head = f"  {label}; the nearest examples are"
    else:
        head = f"  {label} ({100 * confidence:.1f} %), because it is similar to"
    shown = reasons if reasons.against is None else [*reasons, reasons.against]
    width = max((len(example.title) for example in shown), default=0)
    lines = [
        f"    {example.similarity:5.2f}  {example.title.ljust(width)}  "
        f"{one_line(example.text, _LONGEST)}"
        for example in shown
    ]
    if reasons.against is not None:
        lines.insert(-1, "  although this is even nearer")
    if reasons.passage is not None:
        lines.append(f"  decided by the passage: {one_line(reasons.passage, _LONGEST_PASSAGE)}")
    return [head, *lines]


def _table(reasons: Reasons) -> str:
    rows = [_row(example) for example in reasons]
    if reasons.against is not None:
        rows += [
            '<tr><td colspan="3" style="text-align:left"><i>although this is even nearer</i>'
            "</td></tr>",
            _row(reasons.against),
        ]
    decided = ""
    if reasons.passage is not None:
        passage = escape(one_line(reasons.passage, _LONGEST_PASSAGE))
        decided = f'<p dir="auto">decided by the passage: <i>{passage}</i></p>'
    return (
        "<table><thead><tr><th>similarity</th><th>label</th><th>example</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>{decided}"
    )


def _row(example: Evidence) -> str:
    text = escape(one_line(example.text, _LONGEST))
    return (
        f"<tr><td>{example.similarity:.2f}</td><td>{escape(example.title)}</td>"
        f'<td dir="auto" style="text-align:left">{text}</td></tr>'
    )

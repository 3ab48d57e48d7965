"""Answers with their reasons, shown as tables in a terminal and in a notebook."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from cptuning.data import Examples
from cptuning.data.examples import one_line
from cptuning.inference.reasons import Evidence, Reasons

_LONGEST = 120


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
        parts = [
            "\n".join([one_line(text), *self.because(number)])
            for number, text in enumerate(self.texts)
        ]
        return "\n\n".join(parts)

    def because(self, number: int) -> list[str]:
        """Lines that tell one answer and its reasons."""
        label, confidence, reasons = self.labels[number], self.confidences[number], self[number]
        if confidence is None:
            head = f"  {label}; the nearest examples are"
        else:
            head = f"  {label} ({100 * confidence:.1f} %), because it is similar to"
        shown = reasons if reasons.against is None else [*reasons, reasons.against]
        width = max((len(str(example.label)) for example in shown), default=0)
        lines = [
            f"    {example.similarity:5.2f}  {str(example.label).ljust(width)}  "
            f"{one_line(example.text, _LONGEST)}"
            for example in shown
        ]
        if reasons.against is not None:
            lines.insert(-1, "  although this is even nearer")
        return [head, *lines]

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return "".join(self._html(number) for number in range(len(self)))

    def _html(self, number: int) -> str:
        confidence, reasons = self.confidences[number], self[number]
        sure = "" if confidence is None else f" ({100 * confidence:.1f} %)"
        rows = [_row(example) for example in reasons]
        if reasons.against is not None:
            rows += [
                '<tr><td colspan="3" style="text-align:left"><i>although this is even nearer</i>'
                "</td></tr>",
                _row(reasons.against),
            ]
        return (
            f'<p dir="auto">{escape(one_line(self.texts[number]))} → '
            f"<b>{escape(str(self.labels[number]))}</b>{sure}</p>"
            "<table><thead><tr><th>similarity</th><th>label</th><th>example</th></tr></thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )


def _row(example: Evidence) -> str:
    text = escape(one_line(example.text, _LONGEST))
    return (
        f"<tr><td>{example.similarity:.2f}</td><td>{escape(str(example.label))}</td>"
        f'<td dir="auto" style="text-align:left">{text}</td></tr>'
    )

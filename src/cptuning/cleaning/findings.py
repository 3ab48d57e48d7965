"""What a check of labelled data found: rows, with a sentence that gives the reason."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from cptuning.data import label_text

KINDS = {
    "conflict": "The same text under different labels",
    "label-error": "Labels that are probably wrong",
    "similar-labels": "Labels that may mean the same class",
    "leak": "Test texts that are also in the training data",
    "unknown-label": "Test labels that no training example has",
    "duplicate": "Texts that occur more than once",
    "near-duplicate": "Texts that are nearly the same",
    "empty-text": "Rows without text",
}
"""The kinds of findings in the order of their importance, each with its title."""

_LONGEST = 90


@dataclass(frozen=True)
class CheckedRow:
    """A row of the data that was checked."""

    part: str
    """"train" or "test"."""
    number: int
    """Its position, from 0."""
    where: str
    """Its name in a sentence, such as "train.csv, line 7"."""
    text: str | tuple[str, str]
    label: Hashable

    def __str__(self) -> str:
        return f"{self.where}: {quoted(self.text)} ({label_text(self.label)})"

    def to_json(self) -> dict[str, Any]:
        """The row as a JSON object."""
        return {
            "part": self.part,
            "row": self.number,
            "where": self.where,
            "text": self.text,
            "label": self.label,
        }


@dataclass(frozen=True)
class Finding:
    """What looks like a mistake, and why."""

    kind: str
    """One of ``KINDS``."""
    reason: str
    """A sentence."""
    rows: tuple[CheckedRow, ...]
    """The rows that it is about."""
    evidence: tuple[CheckedRow, ...] = ()
    """Other rows that speak for it, such as the nearest examples of another label."""
    suggestion: Hashable = None
    """The label that fits better, of a label that is probably wrong."""
    probability: float | None = None
    """The probability that the label is wrong."""

    def __str__(self) -> str:
        return "\n".join([self.reason, *(f"    {row}" for row in self.evidence)])

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object."""
        return {
            "kind": self.kind,
            "reason": self.reason,
            "rows": [row.to_json() for row in self.rows],
            "evidence": [row.to_json() for row in self.evidence],
            "suggestion": self.suggestion,
            "probability": None if self.probability is None else round(self.probability, 4),
        }


@dataclass(frozen=True)
class DataCheck:
    """The result of a check of labelled data; printed, it is a list of all findings.

    >>> row = CheckedRow("train", 1, "X[1]", " ", "greeting")
    >>> print(DataCheck([Finding("empty-text", "X[1] has no text.", (row,))], n_train=2))
    Rows without text (1)
      X[1] has no text.
    """

    findings: list[Finding]
    """The most important ones first, in the order of ``KINDS``."""
    n_train: int
    n_test: int = 0
    error_share: float | None = None
    """The estimated share of training labels that are wrong; None if it can't be estimated."""
    notes: tuple[str, ...] = ()
    """What could not be checked, and why."""

    def of_kind(self, kind: str) -> list[Finding]:
        """The findings of one of the ``KINDS``."""
        return [finding for finding in self.findings if finding.kind == kind]

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of each kind that there is."""
        counts = {kind: len(self.of_kind(kind)) for kind in KINDS}
        return {kind: n for kind, n in counts.items() if n}

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<DataCheck of {self.n_train + self.n_test} rows: {self.counts or 'no findings'}>"

    def text(self, most: int | None = None) -> str:
        """The list of findings, with at most so many of each kind."""
        parts = []
        for kind, n in self.counts.items():
            shown = [_indented(str(finding)) for finding in self.of_kind(kind)[:most]]
            if len(shown) < n:
                shown.append(f"  … and {n - len(shown)} more.")
            parts.append("\n".join([f"{KINDS[kind]} ({n})", *shown]))
        return "\n\n".join(parts) or "Nothing looks like a mistake."

    def to_json(self) -> dict[str, Any]:
        """The check as a JSON object."""
        share = self.error_share
        return {
            "n_train": self.n_train,
            "n_test": self.n_test,
            "error_share": None if share is None else round(share, 4),
            "counts": self.counts,
            "findings": [finding.to_json() for finding in self.findings],
            "notes": list(self.notes),
        }


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings in the order of their kinds; those of one kind keep theirs."""
    places = list(KINDS)
    return sorted(findings, key=lambda finding: places.index(finding.kind))


def quoted(text: str | tuple[str, str]) -> str:
    """A text, or both of a pair, in quotes on one line, truncated if it is long.

    >>> quoted(("where  is it?", "here"))
    '"where is it?" | "here"'
    """
    if not isinstance(text, str):
        return " | ".join(quoted(part) for part in text)
    line = " ".join(text.split())
    return f'"{line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"}"'


def _indented(lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines.splitlines())

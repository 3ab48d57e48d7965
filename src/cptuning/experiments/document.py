"""A report before it is Markdown, LaTeX or HTML: sections of sentences, tables and pictures."""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["majority", "ours", "paper", "difference"]


@dataclass(frozen=True)
class Value:
    """What stands in a place of a table."""

    text: str
    is_best: bool = False
    mark: str = ""
    detail: str = ""
    """What stands in brackets behind it, or under it where there is room."""

    @property
    def whole(self) -> str:
        """On one line.

        >>> Value("+1.2", detail="p 0.03, n 5").whole
        '+1.2 (p 0.03, n 5)'
        """
        return f"{self.text} ({self.detail})" if self.detail else self.text


@dataclass(frozen=True)
class Line:
    """A line of a table; its kind says whose numbers they are."""

    name: str
    values: list[Value]
    kind: Kind = "ours"


@dataclass(frozen=True)
class Table:
    """A table with its caption; the first column holds names."""

    caption: str
    header: list[str]
    lines: list[Line]
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture for a page, and as a file where there is one; ``legend`` maps names to colours."""

    name: str
    caption: str
    svg: str
    png: bytes | None = None
    legend: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """One study."""

    name: str
    title: str
    question: str
    facts: list[str]
    """What a reader must know: how it was chosen, how many seeds, what is missing."""
    warnings: list[str]
    tables: list[Table]
    pictures: list[Picture] = field(default_factory=list)


@dataclass(frozen=True)
class Document:
    """A report: what all of it is about, and a section a study."""

    title: str
    facts: list[str]
    warnings: list[str]
    sections: list[Section]

"""A report before it is Markdown, LaTeX or HTML: sections of sentences, tables and pictures."""

from dataclasses import dataclass, field
from typing import Literal

LineKind = Literal["majority", "ours", "paper", "difference"]


@dataclass(frozen=True)
class Value:
    """One entry of a table."""

    text: str
    is_best: bool = False
    mark: str = ""
    detail: str = ""
    """Shown in brackets after the text, or below it where there is room."""

    @property
    def whole(self) -> str:
        """Text and detail on one line.

        >>> Value("+1.2", detail="p 0.03, n 5").whole
        '+1.2 (p 0.03, n 5)'
        """
        return f"{self.text} ({self.detail})" if self.detail else self.text


@dataclass(frozen=True)
class Line:
    """A line of a table; its kind says whose numbers they are."""

    name: str
    values: list[Value]
    kind: LineKind = "ours"


@dataclass(frozen=True)
class ResultTable:
    """A table with its caption; the first column holds names."""

    caption: str
    header: list[str]
    lines: list[Line]
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture for the web page, and as files; ``legend`` maps names to colours."""

    name: str
    caption: str
    svg: str
    files: dict[str, bytes] = field(default_factory=dict)
    """By format: svg, pdf, and png if Markdown shows it."""
    legend: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """The part on one study."""

    name: str
    title: str
    question: str
    facts: list[str]
    """What a reader must know: the splits, how dev chose, and test sets of another size."""
    warnings: list[str]
    tables: list[ResultTable]
    pictures: list[Picture] = field(default_factory=list)
    splits: list[Picture] = field(default_factory=list)
    """A picture per data set, with a dot per split."""

    @property
    def has_paper_numbers(self) -> bool:
        """Whether any of the paper's numbers stand in its tables."""
        return any(line.kind == "paper" for table in self.tables for line in table.lines)


@dataclass(frozen=True)
class Report:
    """What the whole report is about, and one section per study."""

    title: str
    facts: list[str]
    warnings: list[str]
    sections: list[Section]

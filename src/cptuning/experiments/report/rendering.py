"""A report as files: Markdown, LaTeX, CSV, one self-contained web page, and the figures."""

import csv
from collections.abc import Sequence
from html import escape
from io import StringIO
from pathlib import Path

from cptuning.experiments.directory import Outcome, ResultDirectory
from cptuning.experiments.hyperparameters import TUNED
from cptuning.experiments.report.builder import build_report
from cptuning.experiments.report.parts import Line, Picture, Report, ResultTable, Section, Value
from cptuning.experiments.studies import STUDIES, Study, in_study_order
from cptuning.files.atomic import write_whole
from cptuning.reporting.html import html_page, table_html

FIGURES, INDEX = "figures", "index.html"

COLUMNS = (
    "study",
    "row",
    "variant",
    "dataset",
    "seed",
    "accuracy",
    "macro_f1",
    "f1",
    "majority",
    "test_rows",
    "dev_accuracy",
    "learning_rate",
    "batch_size",
    *TUNED.values(),
    "inference",
    "best_step",
    "seconds",
    "key",
)


def write_report(directory: ResultDirectory, studies: Sequence[Study], name: str) -> list[Path]:
    """Write ``NAME.md``, ``.tex``, ``.csv``, ``.html``, ``figures/`` and ``index.html``.

    Gives the files.
    """
    names = [study.name for study in studies]
    outcomes = in_study_order(one for one in directory.outcomes() if one.cell.study in names)
    report = build_report(directory, studies)
    files: dict[str, str | bytes] = {
        f"{name}.md": markdown(report),
        f"{name}.tex": latex(report),
        f"{name}.csv": seeds_csv(outcomes),
        f"{name}.html": html(report),
    }
    pictures = [p for section in report.sections for p in (*section.pictures, *section.splits)]
    if pictures:
        (directory.folder / FIGURES).mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        for kind, content in picture.files.items():
            files[f"{FIGURES}/{picture.name}.{kind}"] = content
    for file, text in files.items():
        write_whole(directory.folder / file, text)
    write_whole(directory.folder / INDEX, index_html(directory))
    return [directory.folder / file for file in (*files, INDEX)]


def index_html(directory: ResultDirectory) -> str:
    """A page that links every report of the directory."""
    planned = directory.planned()
    parts = []
    for study in STUDIES.values():
        if not (directory.folder / f"{study.name}.html").is_file():
            continue
        cells = [cell for cell in planned if cell.study == study.name]
        done = sum(directory.is_done(cell) for cell in cells)
        finished = "finished" if done == len(cells) else f"{done} of {len(cells)} cells finished"
        parts.append(
            f'<section><h2><a href="{study.name}.html">{escape(study.title)}</a></h2>'
            f'<p>{escape(study.question)}</p><p class="muted small">{finished} · '
            f"{_links(directory, study.name)}</p></section>"
        )
    if (directory.folder / "all.html").is_file():
        links = _links(directory, "all")
        parts.append(
            f'<section><h2><a href="all.html">All on one page</a></h2><p>{links}</p></section>'
        )
    backbone = directory.backbone
    body = f"""<h1>Studies</h1>
<p class="muted">Backbone: {escape(str(backbone["name"]))}, {backbone["parameters"] / 1e6:.1f} M
parameters.</p>
{"".join(parts)}
<footer><p>Written by <code>cptuning reproduce</code>.</p></footer>"""
    return html_page("Studies", body)


def _links(directory: ResultDirectory, name: str) -> str:
    kinds = {"md": "Markdown", "tex": "LaTeX", "csv": "CSV"}
    return " · ".join(
        f'<a href="{name}.{kind}">{title}</a>'
        for kind, title in kinds.items()
        if (directory.folder / f"{name}.{kind}").is_file()
    )


def seeds_csv(outcomes: Sequence[Outcome]) -> str:
    """CSV with one row per cell; scores are between 0 and 1.

    >>> seeds_csv([]).strip()
    'study,row,variant,dataset,seed,accuracy,...,key'
    """
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in outcomes:
        settings = one.run["configuration"]["settings"]
        values = {
            **{name: getattr(one.cell, name) for name in COLUMNS[:5]},
            **one.test,
            "test_rows": one.test["rows"],
            **{name: settings[name] for name in COLUMNS if name in settings},
            "best_step": one.run["best_step"],
            "seconds": one.run["seconds"],
        }
        writer.writerow([values.get(name, "") for name in COLUMNS])
    return stream.getvalue()


def markdown(report: Report) -> str:
    """The report as Markdown, for a README or a terminal.

    >>> print(markdown(Report("Title", ["A fact."], ["Careful."], [])).strip())
    # Title
    <BLANKLINE>
    A fact.
    <BLANKLINE>
    **Careful.**
    """
    parts = [f"# {report.title}", *report.facts, *(f"**{said}**" for said in report.warnings)]
    for section in report.sections:
        if len(report.sections) > 1:
            parts.append(f"## {section.title}")
        parts += [section.question, *section.facts, *(f"**{w}**" for w in section.warnings)]
        parts += [_markdown_table(table) for table in section.tables]
        parts += [_markdown_picture(picture) for picture in section.pictures]
        if section.splits:
            parts.append(f"The score of every split is on the web page, and in `{FIGURES}/`.")
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: ResultTable) -> str:
    def value(one: Value) -> str:
        text = f"**{one.whole}**" if one.is_best else one.whole
        return text + one.mark

    def name(line: Line) -> str:
        return f"*{line.name}*" if line.kind in ("paper", "difference") else line.name

    lines = [
        f"{table.caption}:\n",
        "| " + " | ".join(table.header) + " |",
        "|---" + "|---:" * (len(table.header) - 1) + "|",
        *(
            f"| {name(line)} | " + " | ".join(map(value, line.values)) + " |"
            for line in table.lines
        ),
    ]
    return "\n".join(lines) + (f"\n\n{table.note}" if table.note else "")


def _markdown_picture(picture: Picture) -> str:
    return f"![{picture.caption}]({FIGURES}/{picture.name}.png)"


_LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "±": r"$\pm$", "−": "$-$"}
_LATEX |= {"†": r"$^\dagger$", "α": r"$\alpha$", "Σ": r"$\Sigma$", "τ": r"$\tau$", "ξ": r"$\xi$"}
_LATEX |= {"λ": r"$\lambda$", "“": "``", "”": "''", "–": "--", "<": "$<$", "$": r"\$"}
_LATEX |= {"{": r"\{", "}": r"\}", "\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\~{}"}


def latex(report: Report) -> str:
    """The tables as LaTeX, for a paper; they need the package booktabs."""
    head = "% Written by cptuning reproduce. Needs \\usepackage{booktabs}.\n"
    said = "".join(f"% {sentence}\n" for sentence in (*report.facts, *report.warnings))
    tables = [
        _latex_table(section, table, f"tab:{section.name}-{number}")
        for section in report.sections
        for number, table in enumerate(section.tables, start=1)
    ]
    return head + said + "\n" + "\n".join(tables)


def _latex_table(section: Section, table: ResultTable, label: str) -> str:
    # Where rows are followed by the paper's, a little space separates the groups.
    has_groups = any(line.kind == "paper" for line in table.lines)

    def value(one: Value) -> str:
        text = _latex_text(one.whole)
        return (rf"\textbf{{{text}}}" if one.is_best else text) + _latex_text(one.mark)

    def line(one: Line) -> str:
        name = _latex_text(one.name)
        if one.kind in ("paper", "difference"):
            name = rf"\quad\emph{{{name}}}"
        elif has_groups and one is not table.lines[0]:
            name = "\\addlinespace\n" + name
        return " & ".join([name, *map(value, one.values)]) + r" \\"

    body = "\n".join(line(one) for one in table.lines)
    return rf"""\begin{{table*}}
\centering
\small
\begin{{tabular}}{{l{"r" * (len(table.header) - 1)}}}
\toprule
{" & ".join(map(_latex_text, table.header))} \\
\midrule
{body}
\bottomrule
\end{{tabular}}
\caption{{{_latex_text(f"{section.title}: {table.caption}. {table.note}".strip())}}}
\label{{{label}}}
\end{{table*}}
"""


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


def html(report: Report) -> str:
    """The report as one self-contained web page."""
    facts = "".join(f"<p>{escape(fact)}</p>" for fact in report.facts)
    warnings = "".join(f'<p class="warning">{escape(said)}</p>' for said in report.warnings)
    is_only = len(report.sections) == 1  # Then the page has its title.
    sections = "\n".join(
        _html_section(section, "" if is_only else f"<h2>{escape(section.title)}</h2>")
        for section in report.sections
    )
    has_paper = any(section.has_paper_numbers for section in report.sections)
    scope = (
        "Our results compared with the paper's."
        if has_paper
        else "Our results; the paper has none."
    )
    body = f"""<h1>{escape(report.title)}</h1>
<p class="muted">{scope} <a href="{INDEX}">All studies</a></p>
{_contents(report)}
{warnings}
{sections}
<footer>{facts}<p>Written by <code>cptuning reproduce</code>.</p></footer>"""
    return html_page(report.title, body)


def _contents(report: Report) -> str:
    """Links to the sections, where there are several."""
    if len(report.sections) < 2:
        return ""
    links = [f'<a href="#{escape(s.name)}">{escape(s.title)}</a>' for s in report.sections]
    return f"<p>{' · '.join(links)}</p>"


def _html_section(section: Section, heading: str) -> str:
    facts = "".join(f'<p class="muted small">{escape(fact)}</p>' for fact in section.facts)
    warnings = "".join(f'<p class="warning">{escape(said)}</p>' for said in section.warnings)
    tables = "".join(_html_table(table) for table in section.tables)
    pictures, splits = (
        "".join(map(_html_picture, shown)) for shown in (section.pictures, section.splits)
    )
    if splits:
        splits = f'<h3>Split by split</h3><div class="two">{splits}</div>'
    return f"""<section id="{escape(section.name)}">{heading}
<p>{escape(section.question)}</p>{facts}{warnings}
{f'<div class="two">{pictures}</div>' if pictures else ""}
{tables}
{splits}</section>"""


def _html_table(table: ResultTable) -> str:
    def value(line: Line, one: Value) -> str:
        text = f"<b>{escape(one.text)}</b>" if one.is_best else escape(one.text)
        mark = f"<sup>{escape(one.mark)}</sup>" if one.mark else ""
        detail = f'<br><span class="muted small">{escape(one.detail)}</span>' if one.detail else ""
        return f'<td class="number {line.kind}">{text}{mark}{detail}</td>'

    rows = [
        [
            f'<td class="name {line.kind}">{escape(line.name)}</td>',
            *(value(line, one) for one in line.values),
        ]
        for line in table.lines
    ]
    header = [escape(name) for name in table.header]
    note = f'<p class="muted small">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="results"><h3>{escape(table.caption)}</h3>'
        f"{table_html(header, rows, numbers=len(header) - 1)}{note}</div>"
    )


def _html_picture(picture: Picture) -> str:
    legend = "".join(
        f'<li><i style="background:{colour}"></i>{escape(name)}</li>'
        for name, colour in picture.legend.items()
    )
    listed = f'<ul class="legend">{legend}</ul>' if legend else ""
    return (
        f'<figure class="picture">{picture.svg}{listed}'
        f'<figcaption class="muted small">{escape(picture.caption)}</figcaption></figure>'
    )

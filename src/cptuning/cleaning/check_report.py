"""The findings of a check as one HTML page."""

from collections.abc import Sequence
from html import escape

import cptuning
from cptuning.cleaning.findings import KINDS, CheckedRow, DataCheck, Finding
from cptuning.data import label_text
from cptuning.reporting.formatting import format_percent
from cptuning.reporting.html import html_page, table_html, text_html

# Findings of a kind that are shown at once; the others are folded.
_SHOWN = 10


def check_report_html(check: DataCheck, train: str, test: str | None = None) -> str:
    """The page; ``train`` and ``test`` are the names of the data."""
    title = f"Check of {train}" + (f" and {test}" if test else "")
    body = [
        f"<header><h1>{escape(title)}</h1>{_summary(check)}</header>",
        *(f'<p class="warn">{escape(note)}</p>' for note in check.notes),
        *(_section(kind, check.of_kind(kind)) for kind in check.counts),
        f"<footer>Created by cptuning {escape(cptuning.__version__)}. This file loads nothing "
        "and runs no scripts; it contains texts of the data.</footer>",
    ]
    return html_page(title, "\n".join(body))


def _summary(check: DataCheck) -> str:
    rows = f"{check.n_train:,} rows" + (f" and {check.n_test:,} test rows" if check.n_test else "")
    if check.findings:
        summary = f"{rows}, {len(check.findings):,} findings."
    else:
        summary = f"{rows}. Nothing looks like a mistake."
    if check.error_share is not None:
        summary += f" About {format_percent(check.error_share)} of the labels are probably wrong."
    return f'<p class="muted">{escape(summary)}</p>'


def _section(kind: str, findings: Sequence[Finding]) -> str:
    parts = [f"<section><h2>{escape(KINDS[kind])} ({len(findings):,})</h2>"]
    parts.append(_table(findings[:_SHOWN]))
    if len(findings) > _SHOWN:
        more = len(findings) - _SHOWN
        parts.append(f"<details><summary>{more:,} more</summary>{_table(findings[_SHOWN:])}")
        parts.append("</details>")
    return "\n".join([*parts, "</section>"])


def _table(findings: Sequence[Finding]) -> str:
    rows = []
    for finding in findings:
        reason = f'<span dir="auto">{escape(finding.reason)}</span>'
        others = "".join(f"<li>{_row(row)}</li>" for row in finding.evidence)
        rows.append([reason + (f"<ul>{others}</ul>" if others else "")])
    return table_html(["Finding"], rows)


def _row(row: CheckedRow) -> str:
    texts = (row.text,) if isinstance(row.text, str) else row.text
    shown = " | ".join(text_html(text, 200) for text in texts)
    return f"{escape(row.where)}: {shown} <b>{escape(label_text(row.label))}</b>"

"""Self-contained HTML pages: styles, figures and the script of a page, if any, are inline."""

import os
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path

from cptuning.errors import CPTuningError

# Nothing external, even if a text should be left unescaped; see ``html_page`` for scripts.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def html_page(title: str, body: str, script: str = "") -> str:
    """A whole HTML document; ``body`` is HTML, ``title`` is plain text.

    ``script`` runs at the end of the page. The browser refuses any other, since only the hash of
    this one is in the page's policy.

    >>> "<title>a &lt; b</title>" in html_page("a < b", "<p>Hello</p>")
    True
    """
    style = (files("cptuning.reporting") / "page.css").read_text("utf-8")
    policy = _POLICY
    if script:
        body += f"\n<script>{script}</script>"
        digest = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
        policy += f"; script-src 'sha256-{digest}'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def download_html(name: str, content: str, said: str) -> str:
    """A link that saves ``content``, which is in the page, as a CSV file.

    >>> download_html("a.csv", "x", "Save")
    '<a download="a.csv" href="data:text/csv;charset=utf-8;base64,eA==">Save</a>'
    """
    data = b64encode(content.encode("utf-8")).decode("ascii")
    address = f"data:text/csv;charset=utf-8;base64,{data}"
    return f'<a download="{escape(name)}" href="{address}">{escape(said)}</a>'


def text_html(text: str, longest: int = 600) -> str:
    """A text, escaped, truncated if it is long, in its own writing direction.

    >>> text_html("<b>")
    '<span dir="auto">&lt;b&gt;</span>'
    """
    shown = text if len(text) <= longest else text[:longest].rstrip() + " …"
    return f'<span dir="auto">{escape(shown)}</span>'


def table_html(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """A table; its cells are HTML, and its last ``numbers`` columns are right-aligned.

    >>> table_html(["class", "n"], [["a", "3"]], numbers=1).count('class="number"')
    2
    """
    first_number = len(header) - numbers

    def line(tag: str, cells: Sequence[str]) -> str:
        parts = [
            cell if cell.startswith(f"<{tag}") else _cell(tag, cell, place >= first_number)
            for place, cell in enumerate(cells)
        ]
        return "<tr>" + "".join(parts) + "</tr>"

    body = "\n".join(line("td", row) for row in rows)
    return (
        f'<div class="scroll"><table>\n<thead>{line("th", header)}</thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _cell(tag: str, content: str, is_number: bool) -> str:
    return f'<{tag} class="number">{content}</{tag}>' if is_number else f"<{tag}>{content}</{tag}>"


def check_writable(path: str | Path) -> None:
    """Raise an error if a file can't be written, before the work for it is done.

    >>> check_writable("no/such/folder/report.html")
    Traceback (most recent call last):
    ...
    cptuning.errors.CPTuningError: no/such/folder/report.html can't be written: there is no such
    folder.
    """
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise CPTuningError(f"{path} can't be written: there is no such folder.")
    if not os.access(folder, os.W_OK) or Path(path).is_dir():
        raise CPTuningError(f"{path} can't be written: choose another path.")

"""Write docs/errors.md from the table that the tests go through."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.cli.bad_inputs import SECTIONS, Case  # noqa: E402

from cptuning.input_limits import LIMITS  # noqa: E402

_HEAD = """# Error messages

One sentence says what is wrong, where, and what to do. A command exits with code 2, a function
raises `cptuning.errors.CPTuningError` (a `ValueError`), and the service responds with a 4xx status
and `{"error": "one sentence"}`. Nothing is left half-written, and existing files are not changed.

The tables list the cases that `tests/cli/test_bad_inputs.py` checks, with the part of the message
that does not depend on file names. `python docs/make_errors_page.py` generates this page from the
same table.

A full disk, a name that is too long or a folder without write permission are one sentence as well.
Ctrl-C exits with 130 and SIGTERM with 143; a fit writes its checkpoint first, and the same command
resumes it. If a reader closes the pipe, a command exits with 141. A traceback is a bug: please
report it.

## Limits

| What | Limit | Changed by |
|---|---|---|
LIMITS| files in a model folder | 1,000 | |
| bytes of its `cptuning.json` | 16 million | |
| seeds | 0 to 4,294,967,295 | |
| bytes of a request | 1 MiB | `serve --max-body` |
| texts in a request | 256 | `serve --max-texts` |
| characters of a text in a request | 20,000 | `serve --max-characters` |
| texts that wait for a model | 256 | `serve --queue` |
| connections of a server | 900 | `serve --connections` |
| connections of one address | 600 | `serve --client-connections` |
| seconds for the headers of a request | 10 | |
| examples of a served model | 100,000 | |
"""


def page() -> str:
    """The text of the page."""
    rows = [f"| {one.unit} {one.of} | {one.usual:,} | `{one.variable}` |\n" for one in LIMITS]
    head = _HEAD.replace("LIMITS", "".join(rows))
    return head + "".join(_section(title, cases) for title, cases in SECTIONS.items())


def _section(title: str, cases: list[Case]) -> str:
    is_http = any(case.request for case in cases)
    rows = [("What is wrong", *(["Status"] if is_http else []), "Message")]
    rows.append(("---",) * len(rows[0]))
    rows += [
        (case.when, *([str(case.status)] if is_http else []), _quoted(case.says)) for case in cases
    ]
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return f"\n## {title}\n\n" + "\n".join(lines) + "\n"


def _quoted(part: str) -> str:
    return f"… {part}" if part.endswith(".") else f"… {part} …"


def _cell(text: str) -> str:
    escaped = text if "`" in text else text.replace("[", "\\[").replace("<", "&lt;")
    return escaped.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    (ROOT / "docs" / "errors.md").write_text(page(), "utf-8")

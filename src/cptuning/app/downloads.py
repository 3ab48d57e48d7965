"""Files to download: predictions, tables to fill in, and the model with the code to use it.

In all tables, cells that a spreadsheet would run as formulas are made harmless.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cptuning.app.session import Session
from cptuning.app.user_examples import (
    AS_NAMED,
    SEPARATOR,
    TableColumns,
    Text,
    label_name,
    tables_in,
    without_folder,
)
from cptuning.data import Table, open_writer
from cptuning.data.formats import table_format
from cptuning.errors import CPTuningError
from cptuning.inference import Suggestion
from cptuning.reporting.prediction_columns import PredictionColumns

_CHUNK = 256
# Formats whose cells can't hold lists, so that the labels of a text are joined.
_JOINED = ("csv", "tsv", "xlsx")


def classified_file(
    session: Session, path: str | Path, columns: TableColumns = AS_NAMED
) -> tuple[Path, list[dict[str, Any]]]:
    """A copy of the file, in its format, with predictions for its texts; and the first rows."""
    predictor = session.predictor
    source = Path(path)
    stem, _, suffix = source.name.partition(".")
    target = session.file(f"{stem}-classified.{suffix}")
    joins = session.several and table_format(target) in _JOINED
    answers = PredictionColumns(predictor, separator=f"{SEPARATOR} " if joins else None)
    first: list[dict[str, Any]] = []
    try:
        with open_writer(target, safe_cells=True) as writer:
            for table in tables_in(source, columns, chunk=_CHUNK):
                predictor.examples(table.examples)  # Checks that they are texts, or pairs.
                rows = answers.rows(table, source.name)
                writer.write(rows)
                first = first or rows
    except CPTuningError as error:
        raise without_folder(error, path) from error
    return target, first


def suggestions_file(session: Session, pool: Table, found: Sequence[Suggestion]) -> Path:
    """The rows of these texts, with all their columns, and a label column to fill in."""
    rows = []
    for suggestion in found:
        row = pool.rows[suggestion.row]
        label, guess = _free("label", row), _free("guess", row)
        rows.append({**row, label: "", guess: label_name(suggestion.guess)})
    return _table(session.file("label-next.csv"), rows)


def _free(name: str, row: dict[str, Any]) -> str:
    """A name for a new column of a row: the given one, or one like it.

    >>> _free("label", {"text": "a", "label": "b"})
    'new label'
    """
    while name in row:
        name = f"new {name}"
    return name


def examples_file(session: Session) -> Path:
    """The labelled examples as a table."""
    if not session.examples:
        raise CPTuningError("There are no examples yet.")
    rows = [{**_columns(e.text), "label": label_name(e.label)} for e in session.examples]
    return _table(session.file("examples.csv"), rows)


def model_file(session: Session) -> Path:
    """The model folder, zipped."""
    folder = session.file("model")
    session.model().save(folder)
    archive = str(session.file("cptuning-model"))
    return Path(shutil.make_archive(archive, "zip", folder.parent, folder.name))


def spans_file(
    session: Session, path: str | Path, columns: TableColumns = AS_NAMED
) -> tuple[Path, list[dict[str, Any]]]:
    """A copy of the file with a column for each type of spans; and the first rows."""
    types, source = session.spans.found_types, Path(path)
    stem, _, suffix = source.name.partition(".")
    target = session.file(f"{stem}-spans.{suffix}")
    first: list[dict[str, Any]] = []
    try:
        with open_writer(target, safe_cells=True) as writer:
            for table in tables_in(source, columns, chunk=_CHUNK):
                if table.examples.is_pair:
                    raise CPTuningError("Spans are found in single texts: choose one column.")
                found = session.spans.spans_in(table.examples.first)
                rows = [
                    row | _by_type(row, spans, types)
                    for row, spans in zip(table.rows, found, strict=True)
                ]
                writer.write(rows)
                first = first or rows
    except CPTuningError as error:
        raise without_folder(error, path) from error
    return target, first


def _by_type(
    row: dict[str, Any], spans: Sequence[dict[str, Any]], types: Sequence[str]
) -> dict[str, str]:
    """New columns of a row: the spans of each type, joined.

    >>> spans = [{"text": "Oslo", "label": "city"}, {"text": "Rome", "label": "city"}]
    >>> _by_type({"text": "Oslo or Rome"}, spans, ["city", "day"])
    {'city': 'Oslo; Rome', 'day': ''}
    """
    return {
        _free(label, row): label_name(tuple(s["text"] for s in spans if s["label"] == label))
        for label in types
    }


def python_code(session: Session) -> str:
    """The five lines of Python that use the model.

    >>> print(python_code(Session()))
    import cptuning
    model = cptuning.load("model")  # the folder in the zip file
    texts = ['a new text']
    print(model.predict(texts), model.predict_proba(texts))
    print(model.explain(texts))  # the reasons: the nearest examples of that class
    """
    texts = [example.text for example in session.examples]
    text: Text = min(texts, key=_length) if texts else "a new text"
    return (
        "import cptuning\n"
        'model = cptuning.load("model")  # the folder in the zip file\n'
        f"texts = [{text!r}]\n"
        "print(model.predict(texts), model.predict_proba(texts))\n"
        "print(model.explain(texts))  # the reasons: the nearest examples of that class"
    )


def _length(text: Text) -> int:
    return len(text if isinstance(text, str) else "".join(text))


def _table(target: Path, rows: list[dict[str, Any]]) -> Path:
    with open_writer(target, safe_cells=True) as writer:
        writer.write(rows)
    return target


def _columns(text: Text) -> dict[str, str]:
    return {"text": text} if isinstance(text, str) else {"text_a": text[0], "text_b": text[1]}

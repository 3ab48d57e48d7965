"""Files to download: predictions, tables to fill in, and the model with the code to use it.

In all tables, cells that a spreadsheet would run as formulas are made harmless.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cptuning.app.session import Session
from cptuning.app.user_examples import Text, without_folder
from cptuning.data import iter_tables, open_writer
from cptuning.errors import CPTuningError
from cptuning.inference import Suggestion
from cptuning.reporting.prediction_columns import PredictionColumns

_CHUNK = 256


def classified_file(session: Session, path: str | Path) -> tuple[Path, list[dict[str, Any]]]:
    """A copy of the file, in its format, with predictions for its texts; and the first rows."""
    predictor = session.model().predictor_
    source = Path(path)
    stem, _, suffix = source.name.partition(".")
    target = session.file(f"{stem}-classified.{suffix}")
    answers = PredictionColumns(predictor)
    first: list[dict[str, Any]] = []
    try:
        with open_writer(target, safe_cells=True) as writer:
            for table in iter_tables(source, chunk=_CHUNK):
                predictor.examples(table.examples)  # Checks that they are texts, or pairs.
                rows = answers.rows(table, source.name)
                writer.write(rows)
                first = first or rows
    except CPTuningError as error:
        raise without_folder(error, path) from error
    return target, first


def suggestions_file(session: Session, found: Sequence[Suggestion]) -> Path:
    """A table of these texts with an empty label column to fill in."""
    rows = [{**_columns(s.text), "label": "", "guess": s.guess} for s in found]
    return _table(session.file("label-next.csv"), rows)


def examples_file(session: Session) -> Path:
    """The labelled examples as a table."""
    if not session.examples:
        raise CPTuningError("There are no examples yet.")
    rows = [{**_columns(e.text), "label": e.label} for e in session.examples]
    return _table(session.file("examples.csv"), rows)


def model_file(session: Session) -> Path:
    """The model folder, zipped."""
    folder = session.file("model")
    session.model().save(folder)
    archive = str(session.file("cptuning-model"))
    return Path(shutil.make_archive(archive, "zip", folder.parent, folder.name))


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

"""An uploaded table: a preview of its first rows, and the columns to read from it."""

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import html_block
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.user_examples import TableColumns, preview_file
from cptuning.errors import CPTuningError

FILE_TYPES = [".csv", ".tsv", ".jsonl", ".gz", ".parquet", ".xlsx"]

_NONE = ""


class TableUpload:
    """A place for a file; once there is one, its first rows and a picker for each column.

    The columns are guessed. Errors stay below the file until another one is uploaded.
    ``results`` are components that show something of the file: a new one clears them.
    """

    def __init__(self, label: str, *, name: str, action: str, with_labels: bool = False) -> None:
        self._with_labels = with_labels
        self.file = gr.File(label=label, file_types=FILE_TYPES, height=150, elem_id=name)
        self.problem = html_block(elem_id=f"{name}-problem")
        with gr.Column(visible=False, elem_id=f"{name}-columns") as self._body:
            self._preview = html_block(elem_id=f"{name}-preview")
            with gr.Row(elem_classes="pickers"):
                self._text = gr.Dropdown(label="Text", elem_id=f"{name}-text", min_width=120)
                self._second = gr.Dropdown(
                    label="Second text, of pairs", elem_id=f"{name}-second", min_width=120
                )
                self._label = gr.Dropdown(
                    label="Label", visible=with_labels, elem_id=f"{name}-label", min_width=120
                )
            self._header = gr.Checkbox(
                label="The first row names the columns", elem_id=f"{name}-header"
            )
            self._go = gr.Button(action, variant="primary", elem_id=f"{name}-go")

    def connect(
        self,
        wiring: PageWiring,
        action: Callable[..., tuple[Any, ...]],
        inputs: Sequence[Any] = (),
        results: Sequence[Any] = (),
    ) -> None:
        """Let the button call ``action`` with the session, the file, its columns and the inputs.

        It returns the results. Another file, or none, empties them, and so does an error, which is
        shown in place. Without results the file is done with, and a note is returned instead.
        """
        own = [self.file, self._text, self._second, self._label, self._header]
        pickers = [self._text, self._second, self._label]
        shown = [self.problem, self._body, self._preview, *pickers]

        def uploaded(session: Session, path: str) -> tuple[Any, ...]:
            return *self._shown(path, None), *_emptied(results)

        def reread(session: Session, path: str | None, header: bool) -> tuple[Any, ...]:
            return self._shown(path, header)[:-1]

        def marked(session: Session, *chosen: Any) -> str:
            path, columns = _chosen(*chosen)
            return views.preview_view(preview_file(path, columns.header).rows, columns)

        def removed(session: Session) -> tuple[Any, ...]:
            return "", gr.update(visible=False), *_emptied(results)

        def done(session: Session, *values: Any) -> tuple[Any, ...]:
            try:
                found = action(session, *_chosen(*values[: len(own)]), *values[len(own) :])
            except CPTuningError as error:
                return gr.skip(), gr.skip(), views.note(str(error), "warn"), *_emptied(results)
            if results:
                return gr.skip(), gr.skip(), "", *found
            return None, gr.update(visible=False), views.note(*found)

        wiring.on(
            self._go.click,
            done,
            [*own, *inputs],
            [self.file, self._body, self.problem, *results],
        )
        # Not wiring.on: nothing of the session changes.
        wiring.listen(self.file.upload, uploaded, [self.file], [*shown, self._header, *results])
        wiring.listen(self._header.input, reread, [self.file, self._header], shown)
        wiring.listen(self.file.clear, removed, [], [self.problem, self._body, *results])
        for picker in pickers:
            wiring.listen(picker.input, marked, own, [self._preview])

    def _shown(self, path: str | None, header: bool | None) -> tuple[Any, ...]:
        """Updates of the problem, the body, the preview, the pickers and the tick for a header."""
        unchanged = (gr.skip(),) * 5
        if path is None:
            return "", gr.update(visible=False), *unchanged
        try:
            preview = preview_file(path, header)
        except CPTuningError as error:
            return views.note(str(error), "warn"), gr.update(visible=False), *unchanged
        guess, columns = preview.guess, list(preview.rows[0])
        texts = (*guess.texts, _NONE, _NONE)[:2]
        label = guess.label if self._with_labels else None
        chosen = TableColumns(texts[0] or None, texts[1] or None, label)
        return (
            "",
            gr.update(visible=True),
            views.preview_view(preview.rows, chosen),
            gr.update(choices=columns, value=texts[0] or None),
            gr.update(
                choices=[("none", _NONE), *columns], value=texts[1], visible=len(columns) > 2
            ),
            gr.update(choices=columns, value=label),
            gr.update(value=preview.has_header, visible=preview.can_lack_header),
        )


def _chosen(
    path: str, text: str | None, second: str | None, label: str | None, header: bool
) -> tuple[str, TableColumns]:
    """The uploaded file and the columns to read from it, from the values of the components."""
    return path, TableColumns(text or None, second or None, label or None, header)


def _emptied(results: Sequence[Any]) -> list[Any]:
    """Updates that empty results: no text, or no file."""
    no_file = gr.update(value=None, visible=False)
    return [no_file if isinstance(result, gr.File) else "" for result in results]

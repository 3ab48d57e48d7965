"""The first tab: add examples and see them counted and checked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import html_block
from cptuning.app.editor import ExampleEditor
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.table_upload import TableUpload
from cptuning.app.user_examples import (
    SAMPLES,
    TableColumns,
    labelled_rows,
    parse_pasted,
    sample_examples,
)
from cptuning.errors import CPTuningError

_HINT = "Where is my parcel? | delivery\nI want my money back | refund"


def build(wiring: PageWiring, editor: ExampleEditor) -> None:
    """Create the components and connect their events."""
    with gr.Row():
        with gr.Column(scale=3):
            lines = gr.Textbox(
                label="Paste examples",
                info="One per line: the text, a tab or |, and its label. Two texts make a pair.",
                placeholder=_HINT,
                lines=8,
                max_lines=14,
                elem_id="lines",
            )
            add = gr.Button("Add these lines", variant="primary", elem_id="add")
            wrong = html_block(elem_id="lines-problem")
            several = gr.Checkbox(
                label="A text may have several labels, joined by ;", elem_id="several"
            )
            upload = TableUpload(
                "Or a table", name="examples-file", action="Add these rows", with_labels=True
            )
            with gr.Row():
                messages = gr.Button("Sample: customer messages", elem_id="sample")
                questions = gr.Button("Sample: pairs of questions", elem_id="sample-pairs")
            with gr.Accordion("Open a model that was downloaded here", open=False, elem_id="open"):
                archive = gr.File(
                    label="A zip file with a model",
                    file_types=[".zip"],
                    height=150,
                    elem_id="open-model",
                )
                refused = html_block(elem_id="open-model-problem")
        with gr.Column(scale=2):
            counted = editor.block(elem_id="check", min_height=150)
            instant = html_block(elem_id="instant")
            with gr.Row():
                tidy = gr.Button("Remove repeats", visible=False, elem_id="tidy")
                undo = gr.Button("Undo", visible=False, elem_id="undo-last")
                clear = gr.Button("Start over", visible=False, elem_id="clear")
    listed = editor.block(elem_id="examples")
    wiring.bind(several, lambda session: gr.update(value=session.several))
    wiring.bind(counted, lambda session: views.check_view(session.check(), session.several))
    wiring.bind(instant, views.instant_view)
    wiring.bind(listed, lambda session: views.examples_view(session.examples))
    wiring.bind(undo, lambda session: gr.update(visible=bool(session.done)))
    wiring.bind(tidy, lambda session: gr.update(visible=session.check().repeated > 0))
    wiring.bind(clear, lambda session: gr.update(visible=bool(session.examples)))
    wiring.on(several.input, Session.allow_several, [several])
    wiring.on(add.click, _add_lines, [lines], [lines, wrong])
    upload.connect(wiring, _add_file)
    for button, name in zip((messages, questions), SAMPLES, strict=True):
        wiring.on(button.click, _adding_sample(name))
    wiring.on(tidy.click, Session.delete_repeats)
    wiring.on(clear.click, Session.clear)
    wiring.on(undo.click, Session.undo)
    wiring.on(archive.upload, _open_model, [archive], [archive, refused])


def _add_lines(session: Session, lines: str) -> tuple[Any, str]:
    try:
        session.add(parse_pasted(lines, session.several))
    except CPTuningError as error:
        return gr.skip(), views.note(str(error), "warn")
    return "", ""


def _add_file(session: Session, path: str, columns: TableColumns) -> tuple[str, str]:
    examples, unlabelled = labelled_rows(path, columns)
    session.add(examples)
    said = f"{views.many(len(examples), 'example')} added from {Path(path).name}."
    if unlabelled:
        said += f" {views.many(unlabelled, 'row')} without a label left out."
    return said, "good"


def _open_model(session: Session, path: str) -> tuple[None, str]:
    try:
        session.open_model(path)
    except CPTuningError as error:
        return None, views.note(str(error), "warn")
    return None, ""


def _adding_sample(name: str) -> Callable[[Session], None]:
    def add(session: Session) -> None:
        session.add([e for e in sample_examples(name) if e not in session.examples])

    return add

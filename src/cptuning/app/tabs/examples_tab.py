"""The first tab: add examples and see them counted and checked."""

from collections.abc import Callable
from pathlib import Path

import gradio as gr

from cptuning.app import views
from cptuning.app.components import html_block
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.table_upload import TableUpload
from cptuning.app.user_examples import (
    SAMPLES,
    TableColumns,
    examples_from_file,
    parse_pasted,
    sample_examples,
)

_HINT = "Where is my parcel? | delivery\nI want my money back | refund"


def build(wiring: PageWiring) -> None:
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
            upload = TableUpload(
                "Or a table", name="examples-file", action="Add these rows", with_labels=True
            )
            with gr.Row():
                messages = gr.Button("Sample: customer messages", elem_id="sample")
                questions = gr.Button("Sample: pairs of questions", elem_id="sample-pairs")
        with gr.Column(scale=2):
            counted = html_block(elem_id="check", min_height=150)
            with gr.Row():
                tidy = gr.Button("Remove repeats", visible=False, elem_id="tidy")
                clear = gr.Button("Start over", visible=False, elem_id="clear")
    wiring.bind(counted, lambda session: views.check_view(session.check()))
    wiring.bind(tidy, lambda session: gr.update(visible=session.check().repeated > 0))
    wiring.bind(clear, lambda session: gr.update(visible=bool(session.examples)))
    wiring.on(add.click, _add_lines, [lines], [lines])
    upload.connect(wiring, _add_file)
    for button, name in zip((messages, questions), SAMPLES, strict=True):
        wiring.on(button.click, _adding_sample(name))
    wiring.on(tidy.click, Session.delete_repeats)
    wiring.on(clear.click, Session.clear)


def _add_lines(session: Session, lines: str) -> str:
    session.add(parse_pasted(lines))
    return ""


def _add_file(session: Session, path: str, columns: TableColumns) -> tuple[str, str]:
    examples = examples_from_file(path, columns)
    session.add(examples)
    return f"{views.many(len(examples), 'example')} added from {Path(path).name}.", "good"


def _adding_sample(name: str) -> Callable[[Session], None]:
    def add(session: Session) -> None:
        session.add([e for e in sample_examples(name) if e not in session.examples])

    return add

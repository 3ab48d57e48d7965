"""The tab to mark spans in texts, and to see what a tagger finds in the others."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import gradio as gr

from cptuning.app import downloads, span_views, views
from cptuning.app.components import heading, html_block
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.table_upload import TableUpload
from cptuning.app.tabs.train_tab import AT_ONCE, STOPPING, running
from cptuning.app.user_examples import TableColumns
from cptuning.errors import CPTuningError

_ABOUT = (
    "Find names, dates, dishes or the slots of a request inside of texts. Mark some, let the page "
    "learn, and correct what it finds in the others."
)
_HOW = (
    "Drag over the words of a span, or click one; × removes a mark. A text counts as checked once "
    "you have marked something in it, or said that there is nothing to find."
)
_HINT = "a table for two in Rome on Friday\nfly me to Oslo on Monday"


def build(wiring: PageWiring) -> None:
    """Create the components and connect their events."""
    html_block(f'<p class="muted">{_ABOUT}</p>')
    with gr.Row():
        with gr.Column(scale=2):
            lines = gr.Textbox(
                label="Texts, one per line",
                placeholder=_HINT,
                lines=4,
                max_lines=10,
                elem_id="span-lines",
            )
            with gr.Row():
                add = gr.Button("Add these texts", variant="primary", elem_id="add-spans")
                sample = gr.Button("Sample: travel requests", elem_id="sample-spans")
            with gr.Accordion("Or a file", open=False, elem_id="span-file"):
                upload = gr.File(
                    label="Texts (.txt), or marked ones (.jsonl, .conll)",
                    file_types=[".txt", ".jsonl", ".conll", ".bio", ".iob", ".iob2", ".bioes"],
                    height=120,
                    elem_id="open-spans",
                )
            wrong = html_block(elem_id="spans-problem")
        with gr.Column(scale=1):
            with gr.Row():
                learn = gr.Button("Learn", variant="primary", elem_id="learn-spans")
                train = gr.Button("Improve it", elem_id="train-spans")
                cancel = gr.Button(
                    "Cancel", variant="stop", interactive=False, elem_id="cancel-spans"
                )
            progress = html_block(elem_id="spans-progress")
            learned = html_block(elem_id="spans-learned")
    heading("Mark")
    html_block(f'<p class="muted">{_HOW}</p>')
    with gr.Row(elem_classes="new-type"):
        name = gr.Textbox(label="A new type", placeholder="city", elem_id="span-type")
        create = gr.Button("Add the type", scale=0, min_width=120, elem_id="add-type")
        undo = gr.Button("Undo", scale=0, min_width=80, interactive=False, elem_id="undo-span")
    script = (files("cptuning.app") / "mark.js").read_text("utf-8")
    types = html_block(script=script, elem_id="span-types")
    texts = html_block(script=script, elem_id="span-texts")
    heading("Try it")
    with gr.Row():
        with gr.Column():
            asked = gr.Textbox(label="A new text", max_lines=8, elem_id="span-asked")
            ask = gr.Button("Find spans", variant="primary", elem_id="find-spans")
        with gr.Column():
            answer = html_block(
                views.note("Type a text to see its spans here."), elem_id="spans-found"
            )
    heading("Use it")
    table = TableUpload("A table with texts", name="to-mark", action="Find spans in this table")
    rows = html_block(elem_id="marked-rows")
    with_spans = gr.File(label="With spans", visible=False, elem_id="with-spans")
    with gr.Row():
        model = gr.Button("Create the tagger's file", elem_id="make-tagger")
        marked = gr.Button("Create a file of the marked texts", elem_id="make-marked")
    taken = gr.File(label="Download", visible=False, elem_id="spans-taken")

    wiring.bind(types, lambda session: span_views.types_view(session.spans))
    wiring.bind(texts, lambda session: span_views.texts_view(session.spans))
    wiring.bind(learned, lambda session: span_views.learned_view(session.spans))
    wiring.bind(undo, lambda session: gr.update(interactive=bool(session.spans.done)))
    wiring.on(add.click, _add_lines, [lines], [lines, wrong])
    wiring.on(sample.click, _add_sample, outputs=[wrong])
    wiring.on(upload.upload, _add_file, [upload], [upload, wrong])
    for trigger in (create.click, name.submit):
        wiring.on(trigger, _choose_type, [name], [name])
    for block in (types, texts):
        wiring.on(block.select, _edited, show_progress="hidden")
    wiring.on(undo.click, _undo)
    for button, training in ((learn, False), (train, True)):
        wiring.on(
            button.click,
            _learning(wiring, training),
            outputs=[progress, learn, cancel],
            show_progress="hidden",
            **AT_ONCE,
        )
    wiring.on(cancel.click, _cancel, outputs=[progress, cancel], show_progress="hidden")
    for trigger in (ask.click, asked.submit):
        wiring.on(trigger, _ask, [asked], [answer])
    table.connect(wiring, _in_table, results=[rows, with_spans])
    wiring.on(model.click, _take_model, outputs=[taken])
    wiring.on(marked.click, _take_marked, outputs=[taken])


def _add_lines(session: Session, lines: str) -> tuple[Any, str]:
    try:
        session.spans.add_lines(lines)
    except CPTuningError as error:
        return gr.skip(), views.note(str(error), "warn")
    return "", ""


def _add_sample(session: Session) -> str:
    session.spans.add_sample()
    return ""


def _add_file(session: Session, path: str) -> tuple[None, str]:
    try:
        session.spans.add_file(path)
    except CPTuningError as error:
        return None, views.note(str(error), "warn")
    return None, views.note(f"Added: {Path(path).name}.", "good")


def _choose_type(session: Session, name: str) -> str:
    session.spans.choose_type(name)
    return ""


def _edited(session: Session, event: gr.SelectData) -> None:
    """Do what was asked for with the mouse or the keyboard."""
    chosen = event.value if isinstance(event.value, dict) else {}
    place, work = int(event.index), session.spans
    match chosen.get("do"):
        case "type":
            work.choose_type(str(chosen.get("label", "")))
        case "mark":
            work.mark(place, int(chosen.get("first", -1)), int(chosen.get("last", -1)))
        case "unmark":
            work.unmark(place, int(chosen.get("word", -1)))
        case "accept":
            work.accept(place)
        case "delete":
            work.delete(place)
        case "page":
            work.turn_to(place)


def _undo(session: Session) -> None:
    session.spans.undo()


def _learning(wiring: PageWiring, training: bool) -> Any:
    def learn(session: Session) -> Iterator[tuple[Any, ...]]:
        yield from running(wiring.queue, session, lambda one: one.spans.learn(training=training))

    return learn


def _cancel(session: Session) -> tuple[Any, ...]:
    session.spans.cancel()
    return STOPPING


def _ask(session: Session, text: str) -> str:
    return span_views.found_view(*session.spans.found(text), session.spans.types)


def _in_table(session: Session, path: str, columns: TableColumns) -> tuple[str, Any]:
    target, rows = downloads.spans_file(session, path, columns)
    return views.rows_view(rows), gr.update(value=str(target), visible=True)


def _take_model(session: Session) -> Any:
    target = session.spans.model_file(session.file("tagger"))
    return gr.update(value=str(target), visible=True)


def _take_marked(session: Session) -> Any:
    target = session.spans.marked_file(session.file("marked.jsonl"))
    return gr.update(value=str(target), visible=True)

"""The tab for spans: mark words in a few texts, and find more of their kind in others."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from cptuning.app import downloads, span_views, views
from cptuning.app.components import heading, html_block
from cptuning.app.marked_texts import MarkedText, parse_marked, sample_texts
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.table_upload import TableUpload
from cptuning.app.tabs.train_tab import AT_ONCE, STOPPING, running
from cptuning.app.user_examples import TableColumns
from cptuning.errors import CPTuningError

_ABOUT = (
    "Find words in texts: names, places, dates, whatever you mark in a few of them. This is a task "
    "of its own, with its own texts and its own model."
)
_HINT = "fly me to [Oslo](city) on [Monday](day)\na table in [Rome](city), please"

# A button of a row puts its text into the box for marks, or deletes it.
_SCRIPT = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-text]");
  if (button) trigger("select", { index: 0, value: { ...button.dataset } });
});
"""


def build(wiring: PageWiring) -> None:
    """Create the components and connect their events."""
    asked = gr.State(None)
    html_block(f'<p class="muted">{_ABOUT}</p>')
    with gr.Row():
        with gr.Column():
            lines = gr.Textbox(
                label="Mark some texts",
                info="One per line: put [ ] around the words, and what they are in ( ) behind.",
                placeholder=_HINT,
                lines=5,
                max_lines=12,
                elem_id="marked-lines",
            )
            with gr.Row():
                add = gr.Button("Add these texts", variant="primary", elem_id="add-marked")
                sample = gr.Button("Sample: requests", elem_id="sample-marked")
            wrong = html_block(elem_id="marked-problem")
        with gr.Column():
            state = html_block(elem_id="span-state", min_height=120)
            with gr.Row():
                train = gr.Button("Improve it", elem_id="train-spans", visible=False)
                stop = gr.Button("Cancel", variant="stop", interactive=False, elem_id="stop-spans")
                clear = gr.Button("Start over", elem_id="clear-spans", visible=False)
            progress = html_block(elem_id="span-progress")
    with gr.Row():
        with gr.Column():
            heading("Try it")
            text = gr.Textbox(label="Text", max_lines=8, elem_id="span-text")
            find = gr.Button("Find", variant="primary", elem_id="find-spans")
        with gr.Column():
            answer = html_block(elem_id="found-spans")
            with gr.Column(visible=False, elem_id="correct-spans") as correction:
                right = gr.Textbox(
                    label="Not right? Correct the marks",
                    max_lines=8,
                    elem_id="right-marks",
                )
                teach = gr.Button("Learn this at once", elem_id="teach-spans")
    with gr.Row():
        with gr.Column():
            listed = html_block(elem_id="marked-texts", script=_SCRIPT)
        with gr.Column():
            heading("Use it")
            table = TableUpload("A table with texts", name="to-mark", action="Find in this table")
            rows = html_block(elem_id="marked-rows")
            marked = gr.File(label="With spans", visible=False, elem_id="marked-file")
            with gr.Row():
                model = gr.Button("Create the model file", elem_id="make-tagger")
                texts = gr.Button("Create a file of the texts", elem_id="make-marked")
            taken = gr.File(label="Download", visible=False, elem_id="span-download")
    wiring.bind(state, span_views.state_view)
    wiring.bind(listed, lambda session: span_views.texts_view(session.spans))
    for button in (train, clear):
        wiring.bind(button, lambda session: gr.update(visible=bool(session.spans.texts)))
    wiring.on(add.click, _add, [lines], [lines, wrong])
    wiring.on(sample.click, lambda session: session.add_marked(sample_texts()))
    wiring.on(clear.click, Session.clear_marked)
    wiring.on(listed.select, _picked, outputs=[lines])
    for trigger in (find.click, text.submit):
        wiring.on(trigger, _find, [text], [answer, asked, right, correction])
    wiring.on(teach.click, _teach, [right], [answer, right])
    wiring.on(
        train.click,
        _training(wiring),
        outputs=[progress, train, stop],
        show_progress="hidden",
        **AT_ONCE,
    )
    wiring.on(stop.click, _stop, outputs=[progress, stop], show_progress="hidden")
    table.connect(wiring, _in_table, results=[rows, marked])
    wiring.on(model.click, _download(downloads.tagger_file), outputs=[taken])
    wiring.on(texts.click, _download(downloads.marked_file), outputs=[taken])


def _add(session: Session, lines: str) -> tuple[Any, str]:
    try:
        session.add_marked(parse_marked(lines))
    except CPTuningError as error:
        return gr.skip(), views.note(str(error), "warn")
    return "", ""


def _picked(session: Session, event: gr.SelectData) -> Any:
    """Delete a text, or put it into the box to mark it anew."""
    chosen = event.value if isinstance(event.value, dict) else {}
    known = {one.text: one for one in session.spans.texts}
    one = known.get(str(chosen.get("text", "")))
    if one is None:
        raise CPTuningError("The texts have changed meanwhile: try again.")
    if chosen.get("do") == "delete":
        session.delete_marked(one.text)
        return gr.skip()
    return one.written


def _find(session: Session, text: str) -> tuple[str, str, Any, Any]:
    session.read_spans()
    spans = session.spans.found(text.strip())
    found = MarkedText.of(text.strip(), spans)
    types = list(session.spans.counts)
    return (
        span_views.answer_view(found, spans, types),
        found.text,
        found.written,
        gr.update(visible=True),
    )


def _teach(session: Session, marks: str) -> tuple[str, str]:
    [one] = parse_marked(" ".join(marks.split()))
    session.add_marked([one])
    session.read_spans()
    return views.note("Learned.", "good") + span_views.marked_view(
        one, list(session.spans.counts)
    ), one.written


def _training(wiring: PageWiring) -> Callable[[Session], Iterator[tuple[Any, ...]]]:
    def training(session: Session) -> Iterator[tuple[Any, ...]]:
        yield from running(wiring.queue, session, Session.train_spans)

    return training


def _stop(session: Session) -> tuple[Any, ...]:
    session.cancel()
    return STOPPING


def _in_table(session: Session, path: str, columns: TableColumns) -> tuple[str, Any]:
    session.read_spans()
    target, rows = downloads.spans_file(session, path, columns)
    return views.rows_view(rows), gr.update(value=str(target), visible=True)


def _download(make: Callable[[Session], Path]) -> Callable[[Session], Any]:
    def download(session: Session) -> Any:
        session.read_spans()
        return gr.update(value=str(make(session)), visible=True)

    return download

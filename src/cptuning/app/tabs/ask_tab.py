"""The fourth tab: classify a text, see the explanation, and correct the model if it is wrong."""

from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import heading, html_block, labels_update
from cptuning.app.editor import ExampleEditor
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.user_examples import Text, parse_pasted
from cptuning.errors import CPTuningError


def build(wiring: PageWiring, editor: ExampleEditor) -> None:
    """Create the components and connect their events."""
    asked = gr.State(None)
    with gr.Row():
        with gr.Column():
            first = gr.Textbox(label="Text", max_lines=8, elem_id="text")
            second = gr.Textbox(label="Second text", max_lines=8, visible=False, elem_id="second")
            ask = gr.Button("Classify", variant="primary", elem_id="classify")
        with gr.Column():
            answer = html_block(
                views.note("Type a text to see its label here."), elem_id="answer", min_height=160
            )
            learned = editor.block(elem_id="learned")
    with gr.Row():
        with gr.Column():
            heading("Not right?")
            right = gr.Dropdown(
                label="The right label",
                info="Choose it, or type a new one and press Enter.",
                allow_custom_value=True,
                elem_id="right-label",
            )
            teach = gr.Button("Learn this at once", elem_id="teach")
        with gr.Column():
            heading("Another class?")
            with gr.Accordion("Add a class", open=False, elem_id="new-class"):
                name = gr.Textbox(label="Its name", elem_id="class-name")
                texts = gr.Textbox(
                    label="Some texts of it, one per line",
                    info="For a pair, put a tab or | between the two texts.",
                    lines=4,
                    elem_id="class-texts",
                )
                add = gr.Button("Add the class", elem_id="add-class")
    wiring.bind(second, lambda session: gr.update(visible=session.is_pair))
    wiring.bind(right, labels_update)
    for trigger in (ask.click, first.submit, second.submit):
        wiring.on(trigger, _ask, [first, second], [answer, asked, learned])
    wiring.on(teach.click, _teach, [asked, right], [answer, right, learned])
    wiring.on(add.click, _add_class, [name, texts, asked], [name, texts, answer, learned])
    editor.after(learned, _again, [asked], [answer, learned])


def _ask(session: Session, first: str, second: str) -> tuple[str, Any, str]:
    answer = session.answer(first, second)
    return views.answer_view(answer), answer.text, ""


def _teach(session: Session, asked: Any, label: Any) -> tuple[str, Any, str]:
    if asked is None:
        raise CPTuningError("Classify a text first.")
    session.teach(asked, label or "")
    empty: list[str] | None = [] if session.several else None
    said = views.learned_view(session, label or "")
    return _answer(session, asked), gr.update(value=empty), said


def _add_class(session: Session, name: str, texts: str, asked: Any) -> tuple[str, str, Any, str]:
    session.model()
    label = name.strip()
    if not label:
        raise CPTuningError("Enter a name for the class.")
    lines = [line for line in texts.splitlines() if line.strip()]
    session.add(parse_pasted("\n".join(f"{line}\t{label}" for line in lines)))
    again = gr.skip() if asked is None else _answer(session, asked)
    return "", "", again, views.learned_view(session, label)


def _again(session: Session, asked: Any) -> tuple[Any, str]:
    """What was asked, after two names were made one class."""
    return gr.skip() if asked is None else _answer(session, asked), ""


def _answer(session: Session, asked: Text) -> str:
    first, second = (asked, "") if isinstance(asked, str) else asked
    return views.answer_view(session.answer(first, second))

"""The fourth tab: a text in, its label and the reason out; and what to do when it is wrong."""

from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import heading, shown
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.user_examples import Text, pasted
from cptuning.errors import CPTuningError


def build(frame: PageWiring) -> None:
    """Lay it out and wire it."""
    asked = gr.State(None)
    with gr.Row():
        with gr.Column():
            first = gr.Textbox(label="Text", lines=3, elem_id="text")
            second = gr.Textbox(label="Second text", lines=3, visible=False, elem_id="second")
            ask = gr.Button("Classify", variant="primary", elem_id="classify")
        with gr.Column():
            answer = shown(
                views.note("Type a text to see its label here."), elem_id="answer", min_height=160
            )
    with gr.Row():
        with gr.Column():
            heading("Not right?")
            right = gr.Dropdown(
                label="The right label",
                info="Choose one, or write the name of a new class.",
                allow_custom_value=True,
                elem_id="right-label",
            )
            teach = gr.Button("Learn this at once", elem_id="teach")
        with gr.Column():
            heading("Another class?")
            with gr.Accordion("Add a class", open=False, elem_id="new-class"):
                name = gr.Textbox(label="Its name", elem_id="class-name")
                texts = gr.Textbox(
                    label="Some texts of it, one a line",
                    info="Pairs: both texts with a tab or a | between them.",
                    lines=4,
                    elem_id="class-texts",
                )
                add = gr.Button("Add the class", elem_id="add-class")
    frame.shows(second, lambda session: gr.update(visible=session.is_pair))
    frame.shows(right, lambda session: gr.update(choices=session.labels))
    for trigger in (ask.click, first.submit, second.submit):
        frame.does(trigger, _ask, [first, second], [answer, asked])
    frame.does(teach.click, _teach, [asked, right], [answer, right])
    frame.does(add.click, _add_class, [name, texts, asked], [name, texts, answer])


def _ask(session: Session, first: str, second: str) -> tuple[str, Any]:
    answer = session.answer(first, second)
    return views.answer_view(answer), answer.text


def _teach(session: Session, asked: Any, label: str | None) -> tuple[str, Any]:
    if asked is None:
        raise CPTuningError("Classify a text first.")
    session.teach(asked, label or "")
    return _answer_again(session, asked) + views.note("Learned.", "good"), gr.update(value=None)


def _add_class(session: Session, name: str, texts: str, asked: Any) -> tuple[str, str, str]:
    session.model()
    label = name.strip()
    if not label:
        raise CPTuningError("Give the class a name.")
    lines = [line for line in texts.splitlines() if line.strip()]
    session.add(pasted("\n".join(f"{line}\t{label}" for line in lines)))
    again = "" if asked is None else _answer_again(session, asked)
    return "", "", again + views.note(f"The model knows {label} now.", "good")


def _answer_again(session: Session, asked: Text) -> str:
    first, second = (asked, "") if isinstance(asked, str) else asked
    return views.answer_view(session.answer(first, second))

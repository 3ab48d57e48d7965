"""The fourth tab: classify a text, see the explanation, and correct the model if it is wrong."""

from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import heading, html_block
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.user_examples import Text, parse_pasted
from cptuning.errors import CPTuningError


def build(wiring: PageWiring) -> None:
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
    with gr.Row():
        with gr.Column():
            heading("Not right?")
            right = gr.Dropdown(
                label="The right label",
                info="Choose one, or type the name of a new class.",
                allow_custom_value=True,
                elem_id="right-label",
            )
            teach = gr.Button("Learn this at once", elem_id="teach")
        with gr.Column():
            heading("Another class?")
            with gr.Accordion("Add a class", open=False, elem_id="new-class"):
                name = gr.Textbox(label="Its name", elem_id="class-name")
                texts = gr.Textbox(
                    label="Some texts of this class, one per line",
                    info="For a pair, put a tab or | between the two texts.",
                    lines=4,
                    elem_id="class-texts",
                )
                add = gr.Button("Add the class", elem_id="add-class")
    wiring.bind(second, lambda session: gr.update(visible=session.is_pair))
    wiring.bind(right, lambda session: gr.update(choices=session.labels))
    for trigger in (ask.click, first.submit, second.submit):
        wiring.on(trigger, _ask, [first, second], [answer, asked])
    wiring.on(teach.click, _teach, [asked, right], [answer, right])
    wiring.on(add.click, _add_class, [name, texts, asked], [name, texts, answer])


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
        raise CPTuningError("Enter a name for the class.")
    lines = [line for line in texts.splitlines() if line.strip()]
    session.add(parse_pasted("\n".join(f"{line}\t{label}" for line in lines)))
    again = "" if asked is None else _answer_again(session, asked)
    return "", "", again + views.note(f"The model knows {label} now.", "good")


def _answer_again(session: Session, asked: Text) -> str:
    first, second = (asked, "") if isinstance(asked, str) else asked
    return views.answer_view(session.answer(first, second))

"""The third tab: the accuracy of the model, a map of the examples, and doubtful labels."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import heading, html_block
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.tabs.train_tab import ONE_AT_A_TIME, running
from cptuning.app.user_examples import Example
from cptuning.errors import CPTuningError


def build(wiring: PageWiring) -> None:
    """Create the components and connect their events."""
    script = (files("cptuning.app") / "pick.js").read_text("utf-8")
    picked = gr.State(None)
    wiring.bind(
        html_block(elem_id="accuracy"),
        lambda session: views.review_view(session.review, session.changes, session.is_training),
    )
    with gr.Column(visible=False) as body:
        plane = html_block(elem_id="map", script=script)
        with gr.Row(equal_height=True, elem_id="editor"):
            text = gr.Textbox(
                label="Picked example",
                placeholder="Pick one in the map or in the list.",
                interactive=False,
                lines=2,
                scale=4,
                elem_id="picked",
            )
            label = gr.Dropdown(
                label="Label", allow_custom_value=True, scale=2, elem_id="picked-label"
            )
            with gr.Column(scale=1, min_width=140):
                relabel = gr.Button("Relabel", elem_id="relabel")
                delete = gr.Button("Delete", variant="stop", elem_id="delete")
        heading("Doubtful examples")
        doubtful = html_block(elem_id="doubtful", script=script)
        with gr.Row():
            with gr.Column():
                heading("What gets mistaken for what")
                confusion = html_block(elem_id="confusion")
            with gr.Column():
                heading("Would more labels help?")
                with gr.Row():
                    measure = gr.Button("Find out", elem_id="measure")
                    stop = gr.Button(
                        "Cancel", variant="stop", interactive=False, elem_id="stop-measuring"
                    )
                progress = html_block(elem_id="curve-progress")
                curve = html_block(elem_id="curve")

    wiring.bind(body, lambda session: gr.update(visible=session.is_trained))
    wiring.bind(plane, _map)
    wiring.bind(doubtful, _doubtful)
    wiring.bind(confusion, lambda session: views.confusion_view(session.review))
    wiring.bind(curve, lambda session: views.curve_view(session.curve))
    for part in (plane, doubtful):
        part.select(
            _pick,
            wiring.session,
            [picked, text, label],
            show_progress="hidden",
            api_visibility="private",
        )
    nothing = [picked, text, label]
    wiring.on(relabel.click, _relabel, [picked, label], nothing)
    wiring.on(delete.click, _delete, [picked], nothing)
    wiring.on(
        measure.click,
        _measuring,
        outputs=[progress, measure, stop, curve],
        show_progress="minimal",
        **ONE_AT_A_TIME,
    )
    wiring.on(stop.click, Session.cancel)


def _map(session: Session) -> str:
    if session.review is None:
        return ""
    doubted = session.review.doubtful(session.examples)
    return views.map_view(session.examples, session.map(), doubted)


def _doubtful(session: Session) -> str:
    if session.review is None:
        return ""
    return views.doubtful_view(session.review.doubtful(session.examples), session.examples)


def _pick(session: Session, event: gr.SelectData) -> tuple[Any, ...]:
    place = int(event.index)
    if not 0 <= place < len(session.examples):
        return None, "", gr.update(value=None)
    example = session.examples[place]
    return (
        example,
        views.plain_view(example.text),
        gr.update(choices=session.labels, value=example.label),
    )


def _place(session: Session, picked: Example | None) -> int:
    """The current position of the picked example."""
    if picked is None or picked not in session.examples:
        raise CPTuningError("Pick an example first, in the map or in the list.")
    return session.examples.index(picked)


def _relabel(session: Session, picked: Example | None, label: str | None) -> tuple[Any, ...]:
    session.relabel(_place(session, picked), label or "")
    return None, "", gr.update(value=None)


def _delete(session: Session, picked: Example | None) -> tuple[Any, ...]:
    session.delete([_place(session, picked)])
    return None, "", gr.update(value=None)


def _measuring(session: Session) -> Iterator[tuple[Any, ...]]:
    for update in running(session, Session.measure_curve):
        yield *update, views.curve_view(session.curve)

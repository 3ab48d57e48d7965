"""The third tab: the accuracy of the model, a map of the examples, and doubtful labels."""

from collections.abc import Iterator
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import heading, html_block
from cptuning.app.editor import ExampleEditor
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.tabs.train_tab import AT_ONCE, STOPPING, running


def build(wiring: PageWiring, editor: ExampleEditor) -> None:
    """Create the components and connect their events."""
    wiring.bind(html_block(elem_id="accuracy"), views.review_view)
    with gr.Column(visible=False) as body:
        plane = editor.block(elem_id="map")
        heading("Doubtful examples")
        doubtful = editor.block(elem_id="doubtful")
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

    def measuring(session: Session) -> Iterator[tuple[Any, ...]]:
        for update in running(wiring.queue, session, Session.measure_curve):
            yield *update, views.curve_view(session.curve)

    wiring.bind(body, lambda session: gr.update(visible=session.has_model))
    wiring.bind(plane, _map)
    wiring.bind(doubtful, _doubtful)
    wiring.bind(confusion, lambda session: views.confusion_view(session.review))
    wiring.bind(curve, lambda session: views.curve_view(session.curve))
    wiring.on(
        measure.click,
        measuring,
        outputs=[progress, measure, stop, curve],
        show_progress="hidden",
        **AT_ONCE,
    )
    wiring.on(stop.click, _stop, outputs=[progress, stop], show_progress="hidden")


def _map(session: Session) -> str:
    if not session.has_model:
        return ""
    doubted = session.review.doubtful(session.examples) if session.review else []
    return views.map_view(session.examples, session.map(), doubted)


def _doubtful(session: Session) -> str:
    if session.review is None:
        return ""
    return views.doubtful_view(session.review.doubtful(session.examples), session.examples)


def _stop(session: Session) -> tuple[Any, ...]:
    session.cancel()
    return STOPPING

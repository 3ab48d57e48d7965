"""The third tab: the map of the examples, how good the model is, what it doubts."""

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.components import heading, shown
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.tabs.train_tab import ONE_AT_A_TIME, running
from cptuning.app.user_examples import Example
from cptuning.errors import CPTuningError


def build(frame: PageWiring) -> None:
    """Lay it out and wire it."""
    script = (files("cptuning.app") / "pick.js").read_text("utf-8")
    picked = gr.State(None)
    frame.shows(
        shown(elem_id="accuracy"),
        lambda session: views.review_view(session.review, session.changes, session.is_training),
    )
    with gr.Column(visible=False) as body:
        plane = shown(elem_id="map", script=script)
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
        doubtful = shown(elem_id="doubtful", script=script)
        with gr.Row():
            with gr.Column():
                heading("What is taken for what")
                confusion = shown(elem_id="confusion")
            with gr.Column():
                heading("Would more labels help?")
                with gr.Row():
                    measure = gr.Button("Find out", elem_id="measure")
                    stop = gr.Button(
                        "Cancel", variant="stop", interactive=False, elem_id="stop-measuring"
                    )
                progress = shown(elem_id="curve-progress")
                curve = shown(elem_id="curve")

    frame.shows(body, lambda session: gr.update(visible=session.is_trained))
    frame.shows(plane, _map)
    frame.shows(doubtful, _doubtful)
    frame.shows(confusion, lambda session: views.confusion_view(session.review))
    frame.shows(curve, lambda session: views.curve_view(session.curve))
    for part in (plane, doubtful):
        part.select(
            _pick,
            frame.session,
            [picked, text, label],
            show_progress="hidden",
            api_visibility="private",
        )
    nothing = [picked, text, label]
    frame.does(relabel.click, _relabel, [picked, label], nothing)
    frame.does(delete.click, _delete, [picked], nothing)
    frame.does(
        measure.click,
        _measuring,
        outputs=[progress, measure, stop, curve],
        show_progress="minimal",
        **ONE_AT_A_TIME,
    )
    frame.does(stop.click, Session.cancel)


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
    """Where the picked example stands now."""
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
    for update in running(session, Session.curve_measuring):
        yield *update, views.curve_view(session.curve)

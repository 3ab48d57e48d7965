"""The second tab: training, with a bar that moves and a button that stops it."""

from collections.abc import Iterator
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.background_job import BackgroundJob, CancelledError
from cptuning.app.components import shown
from cptuning.app.page import PageWiring, tell
from cptuning.app.session import Session
from cptuning.errors import CPTuningError

_ABOUT = (
    "Three models are trained: two that each leave half of your examples out, to find out how long "
    "to train and how good it will be, and then the one you keep."
)

# One training at a time, whoever asks: it fills the processor, and draws from one random generator.
ONE_AT_A_TIME: dict[str, Any] = {"concurrency_id": "training", "concurrency_limit": 1}


def build(frame: PageWiring) -> None:
    """Lay it out and wire it."""
    shown(f'<p class="muted">{_ABOUT}</p>')
    with gr.Row():
        start = gr.Button("Train", variant="primary", elem_id="train")
        cancel = gr.Button("Cancel", variant="stop", interactive=False, elem_id="cancel")
    progress = shown(elem_id="progress")
    state = shown(elem_id="trained")
    frame.shows(state, _state)
    # In two steps: after the first all tabs know of it, also while it waits for its turn.
    asked = frame.does(start.click, _ask, outputs=[start], show_progress="hidden")
    frame.does(
        asked.then,
        _training,
        outputs=[progress, start, cancel],
        show_progress="minimal",
        **ONE_AT_A_TIME,
    )
    frame.does(cancel.click, Session.cancel_training)


def _ask(session: Session) -> Any:
    session.ask_for_training()
    return gr.update(interactive=False)  # A second click would ask for a second training.


def _training(session: Session) -> Iterator[tuple[Any, ...]]:
    if not session.is_training:  # It was refused, or taken back while it waited.
        yield "", gr.update(interactive=True), gr.update(interactive=False)
        return
    try:
        yield from running(session, Session.training)
    finally:  # Done, cancelled or failed: what the tabs show next must not speak of it.
        session.is_training = False


def running(session: Session, begin: Any) -> Iterator[tuple[Any, ...]]:
    """The updates of a bar, a start and a cancel button while a job of the session's runs."""
    idle = gr.update(interactive=True), gr.update(interactive=False)
    busy = gr.update(interactive=False), gr.update(interactive=True)
    try:
        job: BackgroundJob[Any] = begin(session)
        for report in job.run():
            yield views.progress_view(report), *busy
    except CancelledError as stopped:
        gr.Info(str(stopped))
    except CPTuningError as error:
        tell(error)
    except Exception:
        yield "", *idle  # Whatever it was, the buttons work again.
        raise
    yield "", *idle


def _state(session: Session) -> str:
    if not session.examples:
        return views.note("Add examples first.")
    if session.review is None:
        return views.note("Not trained yet. This takes seconds to minutes, by number and length.")
    review = views.review_view(session.review, session.changes, session.is_training)
    if session.is_training:
        return review
    return review + views.note(
        "Trained. See the review, ask it something, or take it with you.", "good"
    )

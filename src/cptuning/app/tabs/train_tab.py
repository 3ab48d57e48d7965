"""The second tab: training, with a progress bar and a button to cancel it."""

from collections.abc import Iterator
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.background_job import BackgroundJob, CancelledError
from cptuning.app.components import html_block
from cptuning.app.page import PageWiring, show_error
from cptuning.app.session import Session
from cptuning.errors import CPTuningError

_ABOUT = (
    "Three models are trained: two on half of your examples each, to find out how long to train "
    "and how accurate the model will be, and then the one that you keep."
)

# One training at a time for all visitors: it uses all cores and the global random generator.
ONE_AT_A_TIME: dict[str, Any] = {"concurrency_id": "training", "concurrency_limit": 1}


def build(wiring: PageWiring) -> None:
    """Create the components and connect their events."""
    html_block(f'<p class="muted">{_ABOUT}</p>')
    with gr.Row():
        start = gr.Button("Train", variant="primary", elem_id="train")
        cancel = gr.Button("Cancel", variant="stop", interactive=False, elem_id="cancel")
    progress = html_block(elem_id="progress")
    state = html_block(elem_id="trained")
    wiring.bind(state, _state)
    # In two steps: after the first, all tabs show that a training is coming, even while it waits.
    asked = wiring.on(start.click, _ask, outputs=[start], show_progress="hidden")
    wiring.on(
        asked.then,
        _training,
        outputs=[progress, start, cancel],
        show_progress="minimal",
        **ONE_AT_A_TIME,
    )
    wiring.on(cancel.click, Session.cancel_training)


def _ask(session: Session) -> Any:
    session.request_training()
    return gr.update(interactive=False)  # A second click would request a second training.


def _training(session: Session) -> Iterator[tuple[Any, ...]]:
    if not session.is_training:  # It was rejected, or cancelled while it waited.
        yield "", gr.update(interactive=True), gr.update(interactive=False)
        return
    try:
        yield from running(session, Session.train)
    finally:  # Done, cancelled or failed: the tabs must no longer say that it is running.
        session.is_training = False


def running(session: Session, begin: Any) -> Iterator[tuple[Any, ...]]:
    """Updates of a progress bar, a start button and a cancel button while a job runs."""
    idle = gr.update(interactive=True), gr.update(interactive=False)
    busy = gr.update(interactive=False), gr.update(interactive=True)
    try:
        job: BackgroundJob[Any] = begin(session)
        for report in job.run():
            yield views.progress_view(report), *busy
    except CancelledError as stopped:
        gr.Info(str(stopped))
    except CPTuningError as error:
        show_error(error)
    except Exception:
        yield "", *idle  # Make the buttons work again.
        raise
    yield "", *idle


def _state(session: Session) -> str:
    if not session.examples:
        return views.note("Add examples first.")
    if session.review is None:
        return views.note(
            "Not trained yet. Training takes seconds to minutes, depending on the number and "
            "length of the texts."
        )
    review = views.review_view(session.review, session.changes, session.is_training)
    if session.is_training:
        return review
    return review + views.note(
        "Trained. Review the model, try it on a text, or download it.", "good"
    )

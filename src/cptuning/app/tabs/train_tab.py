"""The second tab: training, with a progress bar and a button to cancel it."""

from collections.abc import Iterator
from typing import Any

import gradio as gr

from cptuning.app import views
from cptuning.app.background_job import BackgroundJob, CancelledError
from cptuning.app.components import html_block
from cptuning.app.editor import ExampleEditor
from cptuning.app.page import PageWiring, show_error
from cptuning.app.session import Session
from cptuning.app.training_queue import TrainingQueue
from cptuning.errors import CPTuningError

_ABOUT = (
    "The page answers without training as soon as there are two examples each of two classes. "
    "Training improves on that: three models are trained, two on half of your examples each, to "
    "find out how long to train and how accurate the model will be, and then the one that you "
    "keep, unless the answers without training were better."
)

# They wait for their turn themselves, so that they can say so.
AT_ONCE: dict[str, Any] = {"concurrency_limit": None}


def build(wiring: PageWiring, editor: ExampleEditor) -> None:
    """Create the components and connect their events."""
    html_block(f'<p class="muted">{_ABOUT}</p>')
    with gr.Row():
        start = gr.Button("Improve it", variant="primary", elem_id="train")
        cancel = gr.Button("Cancel", variant="stop", interactive=False, elem_id="cancel")
    progress = html_block(elem_id="progress")
    state = html_block(elem_id="trained")
    wiring.bind(state, _state)

    def training(session: Session) -> Iterator[tuple[Any, ...]]:
        if not session.is_training:  # It was rejected, or cancelled while it waited.
            yield "", gr.update(interactive=True), gr.update(interactive=False)
            return
        try:
            yield from running(wiring.queue, session, Session.train)
        finally:  # Done, cancelled or failed: the tabs must no longer say that it is running.
            session.is_training = False

    # In two steps: after the first, all tabs show that a training is coming, even while it waits.
    asked = wiring.on(start.click, _ask, outputs=[start], show_progress="hidden")
    wiring.on(
        asked.then,
        training,
        outputs=[progress, start, cancel],
        show_progress="hidden",
        **AT_ONCE,
    )
    wiring.on(cancel.click, _cancel, outputs=[progress, cancel], show_progress="hidden")


def _ask(session: Session) -> Any:
    session.request_training()
    return gr.update(interactive=False)  # A second click would request a second training.


def _cancel(session: Session) -> tuple[Any, ...]:
    session.cancel_training()
    return STOPPING


STOPPING = views.note("Stopping …"), gr.update(interactive=False)
"""What the progress and the button say from a click on Cancel to the end."""


def running(queue: TrainingQueue, session: Session, begin: Any) -> Iterator[tuple[Any, ...]]:
    """Updates of a progress bar, a start button and a cancel button while a job runs."""
    idle = gr.update(interactive=True), gr.update(interactive=False)
    busy = gr.update(interactive=False), gr.update(interactive=True)
    try:
        job: BackgroundJob[Any] = begin(session)
        for report in queue.run(job):
            if not job.is_cancelled:
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
    review = views.review_view(session)
    if not session.is_trained or session.is_training or session.review is None:
        return review
    return review + views.note(
        "Trained. Review the model, try it on a text, or download it.", "good"
    )

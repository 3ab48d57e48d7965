"""The last tab: files to classify, texts to label next, and the model to take away."""

from typing import Any

import gradio as gr

from cptuning.app import downloads, views
from cptuning.app.components import heading, shown
from cptuning.app.page import PageWiring
from cptuning.app.session import Session


def build(frame: PageWiring) -> None:
    """Lay it out and wire it."""
    with gr.Row():
        with gr.Column():
            heading("Classify a file")
            file = gr.File(label="A file with texts", height=150, elem_id="to-classify")
            rows = shown(elem_id="classified-rows")
            classified = gr.File(label="Classified", visible=False, elem_id="classified")
        with gr.Column():
            heading("What to label next")
            pool = gr.File(label="A file with unlabelled texts", height=150, elem_id="pool")
            n = gr.Slider(1, 100, value=20, step=1, label="How many", elem_id="how-many")
            suggest = gr.Button("Suggest", elem_id="suggest")
            found = shown(elem_id="suggestions")
            to_fill = gr.File(label="To fill in", visible=False, elem_id="to-fill")
    heading("Take it with you")
    with gr.Row():
        with gr.Column():
            model = gr.Button("Make the model file", variant="primary", elem_id="make-model")
            examples = gr.Button("Make a table of the examples", elem_id="make-examples")
            taken = gr.File(label="Download", visible=False, elem_id="taken")
        with gr.Column():
            code = gr.Code(label="Use it", language="python", interactive=False, elem_id="code")
    frame.shows(code, downloads.python_code)
    frame.does(file.upload, _classify, [file], [rows, classified])
    frame.does(suggest.click, _suggest, [pool, n], [found, to_fill])
    frame.does(model.click, _download(downloads.model_file), outputs=[taken])
    frame.does(examples.click, _download(downloads.examples_file), outputs=[taken])


def _classify(session: Session, path: str) -> tuple[str, Any]:
    target, rows = downloads.classified_file(session, path)
    return views.rows_view(rows), gr.update(value=str(target), visible=True)


def _suggest(session: Session, pool: str | None, n: int) -> tuple[str, Any]:
    found = session.suggest(pool, int(n))
    target = downloads.suggestions_file(session, found)
    return views.suggestions_view(found), gr.update(value=str(target), visible=True)


def _download(make: Any) -> Any:
    def download(session: Session) -> Any:
        return gr.update(value=str(make(session)), visible=True)

    return download

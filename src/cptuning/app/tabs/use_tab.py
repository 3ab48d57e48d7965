"""The last tab: classify a file, find texts to label next, and download the model."""

from typing import Any

import gradio as gr

from cptuning.app import downloads, views
from cptuning.app.components import heading, html_block
from cptuning.app.editor import ExampleEditor
from cptuning.app.page import PageWiring
from cptuning.app.session import Session
from cptuning.app.table_upload import TableUpload
from cptuning.app.user_examples import TableColumns


def build(wiring: PageWiring, editor: ExampleEditor) -> None:
    """Create the components and connect their events."""
    with gr.Row():
        with gr.Column():
            heading("Classify a file")
            file = TableUpload(
                "A table with texts", name="to-classify", action="Classify this table"
            )
            rows = html_block(elem_id="classified-rows")
            classified = gr.File(label="Classified", visible=False, elem_id="classified")
        with gr.Column():
            heading("What to label next")
            n = gr.Slider(1, 100, value=20, step=1, label="How many", elem_id="how-many")
            pool = TableUpload("A table with unlabelled texts", name="pool", action="Suggest")
            found = html_block(elem_id="suggestions")
            to_fill = gr.File(label="To fill in", visible=False, elem_id="to-fill")
    heading("Download")
    with gr.Row():
        with gr.Column():
            model = gr.Button("Create the model file", variant="primary", elem_id="make-model")
            examples = gr.Button("Create a table of the examples", elem_id="make-examples")
            taken = gr.File(label="Download", visible=False, elem_id="taken")
        with gr.Column():
            code = gr.Code(
                label="Python code",
                language="python",
                interactive=False,
                wrap_lines=True,
                elem_id="code",
            )
    wiring.bind(code, downloads.python_code)
    file.connect(wiring, _classify, results=[rows, classified])
    pool.connect(wiring, _suggest, [n], results=[found, to_fill])
    wiring.on(model.click, _download(downloads.model_file), outputs=[taken])
    wiring.on(examples.click, _download(downloads.examples_file), outputs=[taken])


def _classify(session: Session, path: str, columns: TableColumns) -> tuple[str, Any]:
    target, rows = downloads.classified_file(session, path, columns)
    return views.rows_view(rows), gr.update(value=str(target), visible=True)


def _suggest(session: Session, path: str, columns: TableColumns, n: int) -> tuple[str, Any]:
    pool, found = session.suggest(path, int(n), columns)
    target = downloads.suggestions_file(session, pool, found)
    return views.suggestions_view(found), gr.update(value=str(target), visible=True)


def _download(make: Any) -> Any:
    def download(session: Session) -> Any:
        return gr.update(value=str(make(session)), visible=True)

    return download

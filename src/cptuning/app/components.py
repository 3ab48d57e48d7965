"""Gradio components that all tabs use."""

from typing import Any

import gradio as gr

from cptuning.app.session import Session


def html_block(value: str = "", *, script: str | None = None, **options: Any) -> gr.HTML:
    """An HTML component in the style of the page; a script runs once, when it is first shown."""
    return gr.HTML(value, js_on_load=script, apply_default_css=False, **options)


def heading(title: str) -> gr.HTML:
    """The heading of a section."""
    return html_block(f"<h2>{title}</h2>")


def labels_update(session: Session) -> Any:
    """An update of a picker of labels: of one, or of several where a text may have them."""
    return gr.update(
        choices=session.labels,
        multiselect=session.several,
        label="Labels" if session.several else "Label",
    )
